//! Where a server is and who we are to it: the URL, the environment, and the ports of named instances.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use coload_types::{Error, Result};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::version::TLS12;

use super::tds::{Encryption, Login};
use crate::tls::{Certificates, Checked, client_config};
use crate::url::{decode, take_parameters};

/// Port of the default instance.
const PORT: u16 = 1433;
/// Port of UDP at which the ports of instances are told.
const BROWSER_PORT: u16 = 1434;
/// How long to wait for a connection, unless the URL says otherwise.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long to wait for the port of an instance.
const BROWSER_PATIENCE: Duration = Duration::from_secs(2);

/// What a URL says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    host: String,
    instance: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    encrypt: Option<Encryption>,
    trusts_all: bool,
    certificate: Option<String>,
    certificate_name: Option<String>,
    program: Option<String>,
    reads_only: bool,
    patience: Option<Duration>,
}

/// How to log in to the server of a URL.
///
/// # Errors
/// `Invalid` when it is none or names nobody, `Unavailable` when nobody tells the port of an instance.
pub fn login_of_url(url: &str) -> Result<Login> {
    let parts = parts_of(url)?;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = Some(parts.host).filter(|host| !host.is_empty());
    let (host, instance, port) = match host {
        Some(host) => (host, parts.instance, parts.port),
        None => server_of(&variable("SQLCMDSERVER").unwrap_or_else(|| "localhost".to_owned()))?,
    };
    let user = parts.user.or_else(|| variable("SQLCMDUSER")).ok_or_else(|| {
        Error::Invalid(
            "a URL of SQL Server without a user: sqlserver://user@host/database, or SQLCMDUSER (the login of Windows is \
             not spoken)"
                .into(),
        )
    })?;
    let port = match (port, instance) {
        (Some(port), _) => port,
        (None, Some(instance)) => port_of_instance(&host, &instance)?,
        (None, None) => PORT,
    };
    let checked = if parts.trusts_all { Checked::Nothing } else { Checked::SignerAndName };
    let certificates = Certificates { root: parts.certificate, client: None };
    // The handshake within packets knows no messages behind its end, as TLS 1.3 has them, and each is a whole one.
    let mut tls = (*client_config(checked, &certificates, &[&TLS12])?).clone();
    tls.resumption = Resumption::disabled();
    Ok(Login {
        host,
        port,
        certificate_name: parts.certificate_name,
        encryption: parts.encrypt.unwrap_or(Encryption::All),
        tls: Arc::new(tls),
        user,
        password: parts.password.or_else(|| variable("SQLCMDPASSWORD")).unwrap_or_default(),
        database: parts.database.or_else(|| variable("SQLCMDDBNAME")).unwrap_or_default(),
        program: parts.program.unwrap_or_else(|| "coload".to_owned()),
        reads_only: parts.reads_only,
        patience: parts.patience.unwrap_or(PATIENCE),
    })
}

/// Host, instance and port of `host\instance,port`, as `sqlcmd` has it.
fn server_of(text: &str) -> Result<(String, Option<String>, Option<u16>)> {
    let text = text.strip_prefix("tcp:").unwrap_or(text);
    let (place, port) = match text.split_once(',') {
        Some((place, port)) => (place, Some(port)),
        None => (text, None),
    };
    let port = port
        .map(|port| port.trim().parse().map_err(|_| wrong("SQLCMDSERVER has no port that is one")));
    let (host, instance) = match place.split_once('\\') {
        Some((host, instance)) => (host, Some(instance.to_owned())),
        None => (place, None),
    };
    Ok((host.to_owned(), instance, port.transpose()?))
}

fn wrong(why: &str) -> Error {
    // The URL is not repeated, for a password may stand in it.
    Error::Invalid(format!(
        "{why}: a URL is as in sqlserver://user[:password]@host[:port]/database[?encrypt=...&trustServerCertificate=...]"
    ))
}

/// The parts of a URL.
fn parts_of(url: &str) -> Result<Parts> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = take_parameters(rest, |_| true);
    let (authority, path) = place.split_once('/').unwrap_or((place.as_str(), ""));
    let mut parts = Parts::default();
    let server = match authority.rsplit_once('@') {
        Some((who, server)) => {
            let (user, password) = match who.split_once(':') {
                Some((user, password)) => (user, Some(decode(password))),
                None => (who, None),
            };
            parts.user = Some(decode(user)).filter(|user| !user.is_empty());
            parts.password = password;
            server
        }
        None => authority,
    };
    let (host, port) = match server.strip_prefix('[').and_then(|server| server.split_once(']')) {
        Some((host, port)) => (host.to_owned(), port.strip_prefix(':')),
        None => match server.split_once(':') {
            Some((host, port)) => (decode(host), Some(port)),
            None => (decode(server), None),
        },
    };
    if let Some(port) = port {
        parts.port = Some(port.parse().map_err(|_| wrong("a port that is none"))?);
    }
    match host.split_once('\\') {
        Some((host, instance)) => {
            parts.host = host.to_owned();
            parts.instance = Some(instance.to_owned());
        }
        None => parts.host = host,
    }
    if path.contains('/') {
        return Err(wrong("more than a database behind the host"));
    }
    parts.database = Some(decode(path)).filter(|database| !database.is_empty());
    for (name, value) in parameters {
        parts.take(&name, value)?;
    }
    Ok(parts)
}

impl Parts {
    /// Takes a parameter, by any of the names that drivers have for it.
    fn take(&mut self, name: &str, value: String) -> Result<()> {
        let plain: String =
            decode(name).to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        let truth = || match value.to_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(true),
            "false" | "no" | "0" => Ok(false),
            _ => Err(wrong(&format!("{name} is true or false"))),
        };
        match plain.as_str() {
            "encrypt" => {
                self.encrypt = Some(match value.to_lowercase().as_str() {
                    "true" | "yes" | "1" | "mandatory" => Encryption::All,
                    "false" | "no" | "0" | "optional" => Encryption::Login,
                    "disable" | "dangerplaintext" => Encryption::Nothing,
                    "strict" => {
                        return Err(wrong(
                            "encrypt=strict (TDS 8) is not spoken: encrypt=true encrypts as well",
                        ));
                    }
                    _ => return Err(wrong("encrypt is true, false or disable")),
                });
            }
            "trustservercertificate" => self.trusts_all = truth()?,
            "servercertificate" | "certificate" => self.certificate = Some(value),
            "hostnameincertificate" => self.certificate_name = Some(value),
            "instance" | "instancename" => self.instance = Some(value),
            "database" | "databasename" | "initialcatalog" => match &self.database {
                Some(other) if *other != value => return Err(wrong("two databases")),
                _ => self.database = Some(value),
            },
            "user" | "userid" | "uid" | "username" => self.user = Some(value),
            "password" | "pwd" => self.password = Some(value),
            "port" => {
                self.port = Some(value.parse().map_err(|_| wrong("a port that is none"))?);
            }
            "appname" | "applicationname" | "app" => self.program = Some(value),
            "applicationintent" => self.reads_only = value.eq_ignore_ascii_case("readonly"),
            "connectiontimeout" | "connecttimeout" | "logintimeout" | "dialtimeout" => {
                let seconds = value.parse().map_err(|_| wrong("seconds that are no number"))?;
                self.patience = Some(Duration::from_secs(seconds)).filter(|p| !p.is_zero());
            }
            _ => return Err(wrong(&format!("{name} is no parameter that is known"))),
        }
        Ok(())
    }
}

/// Asks the browser of a host for the port of an instance.
fn port_of_instance(host: &str, instance: &str) -> Result<u16> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::Unavailable(format!(
            "the port of instance {instance} at {host} is not told ({why}): give it as in sqlserver://{host}:PORT/..."
        ))
    };
    let ask = || -> std::io::Result<Vec<u8>> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(BROWSER_PATIENCE))?;
        socket.connect((host, BROWSER_PORT))?;
        socket.send(&[&[4], instance.as_bytes()].concat())?;
        let mut answer = vec![0; 4096];
        let count = socket.recv(&mut answer)?;
        answer.truncate(count);
        Ok(answer)
    };
    let answer = ask().map_err(|e| failed(&e))?;
    port_of_answer(&answer).ok_or_else(|| failed(&"it has no TCP"))
}

/// The port in `...;tcp;PORT;...`, behind three bytes.
fn port_of_answer(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer.get(3..)?).into_owned();
    let mut words = text.split(';');
    words.by_ref().find(|word| word.eq_ignore_ascii_case("tcp"))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_parameters_of_drivers() {
        let parts = parts_of(
            "mssql://sa:p%40ss@db.example.com:1444/shop?encrypt=no&TrustServerCertificate=yes&app%20name=x&Connect%20Timeout=3",
        )
        .expect("a URL");
        let expected = Parts {
            host: "db.example.com".to_owned(),
            port: Some(1444),
            user: Some("sa".to_owned()),
            password: Some("p@ss".to_owned()),
            database: Some("shop".to_owned()),
            encrypt: Some(Encryption::Login),
            trusts_all: true,
            program: Some("x".to_owned()),
            patience: Some(Duration::from_secs(3)),
            ..Parts::default()
        };
        assert_eq!(parts, expected);
        let parts = parts_of(r"sqlserver://u@h\SQLEXPRESS?database=d").expect("a URL");
        assert_eq!(
            (parts.instance.as_deref(), parts.database.as_deref()),
            (Some("SQLEXPRESS"), Some("d"))
        );
        assert_eq!(parts_of("sqlserver://u@[::1]:7/d").expect("a URL").host, "::1");
        assert_eq!(
            server_of(r"tcp:h\i,1").expect("a server"),
            ("h".to_owned(), Some("i".to_owned()), Some(1))
        );
    }

    #[test]
    fn a_url_that_is_wrong_does_not_tell_its_password() {
        for url in [
            "sqlserver://u:secret@h:port/d",
            "sqlserver://u:secret@h/d/t/x",
            "sqlserver://u:secret@h/d?encrypt=maybe",
            "sqlserver://u:secret@h/d?what=1",
            "sqlserver://u:secret@h/d?database=e",
        ] {
            let error = parts_of(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_port_of_an_instance_is_read() {
        let answer =
            b"\x05\x40\0ServerName;H;InstanceName;I;IsClustered;No;Version;15.0;tcp;50123;;";
        assert_eq!(port_of_answer(answer), Some(50_123));
        assert_eq!(port_of_answer(b"\x05"), None);
        assert_eq!(port_of_answer(b"\x05\0\0ServerName;H;np;x;;"), None);
    }
}
