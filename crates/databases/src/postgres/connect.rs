//! Where a server is and who we are to it: the URL, the environment, `.pgpass`.

use std::path::PathBuf;
use std::time::Duration;

use coload_types::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{Certificates, Checked, MakeTls};
use crate::url::{file_name, take_parameters};

/// How long to wait for a server to let us in, unless `connect_timeout` says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A server, and how to connect to it.
#[derive(Debug, Clone)]
pub struct Server {
    /// Hosts, ports, user, password, database.
    pub config: Config,
    /// Makes connections secret.
    pub tls: MakeTls,
}

impl Server {
    /// The server of a URL.
    ///
    /// # Errors
    /// `Invalid` when it is none.
    pub fn of_url(url: &str) -> Result<Self> {
        let (url, parameters) = take_parameters(url, |name| {
            matches!(name, "sslmode" | "sslrootcert" | "sslcert" | "sslkey")
        });
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let parameter = |name: &str, in_environment: &str| {
            let given = parameters.iter().rev().find(|(found, _)| found == name);
            given.map(|(_, value)| value.clone()).or_else(|| variable(in_environment))
        };
        // The text of the error may repeat the URL, in which a password may stand.
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Error::Invalid(format!(
                "not a URL as in postgres://[user[:password]@]host[:port]/database[?sslmode=...]: {}",
                cause.unwrap_or_default()
            ))
        })?;
        let root = parameter("sslrootcert", "PGSSLROOTCERT").filter(|file| file != "system");
        let mode = parameter("sslmode", "PGSSLMODE").unwrap_or_else(|| "prefer".to_owned());
        let (mode, checked) = match (mode.as_str(), &root) {
            ("disable", _) => (SslMode::Disable, Checked::Nothing),
            // As libpq does: who names a root wants it to be checked.
            ("require", Some(_)) | ("verify-ca", _) => (SslMode::Require, Checked::Signer),
            ("allow" | "prefer", _) => (SslMode::Prefer, Checked::Nothing),
            ("require", None) => (SslMode::Require, Checked::Nothing),
            ("verify-full", _) => (SslMode::Require, Checked::SignerAndName),
            (other, _) => {
                return Err(Error::Invalid(format!(
                    "sslmode={other}: it is disable, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        config.ssl_mode(mode);
        let client = parameter("sslcert", "PGSSLCERT").zip(parameter("sslkey", "PGSSLKEY"));
        let tls = MakeTls::new(checked, &Certificates { root, client })?;
        if config.get_hosts().is_empty() {
            config.host(variable("PGHOST").unwrap_or_else(|| "localhost".to_owned()));
        }
        if config.get_ports().is_empty()
            && let Some(port) = variable("PGPORT").and_then(|port| port.parse().ok())
        {
            config.port(port);
        }
        if config.get_user().is_none() {
            let user = variable("PGUSER").or_else(|| variable("USER"));
            config.user(user.unwrap_or_else(|| "postgres".to_owned()));
        }
        if config.get_dbname().is_none()
            && let Some(name) = variable("PGDATABASE")
        {
            config.dbname(name);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("coload");
        }
        if config.get_password().is_none() {
            let password = variable("PGPASSWORD").or_else(|| password_of_file(&config));
            password.iter().for_each(|password| {
                config.password(password);
            });
        }
        Ok(Server { config, tls })
    }
}

impl Server {
    /// Engine, host and port, as a name for a file.
    pub fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        file_name("postgres", &host, port)
    }
}

/// The password that `.pgpass` has for the first host.
fn password_of_file(config: &Config) -> Option<String> {
    let file = match std::env::var_os("PGPASSFILE") {
        Some(file) => PathBuf::from(file),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".pgpass"),
    };
    // libpq reads it only if nobody else may.
    let meta = std::fs::metadata(&file).ok()?;
    if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 != 0 {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(host) => host.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user()?;
    let wanted = [&host, port.as_str(), config.get_dbname().unwrap_or(user), user];
    password_of(&text, &wanted)
}

/// The password of the first line that has all of host, port, database and user, or `*` for them.
fn password_of(text: &str, wanted: &[&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => fields.last_mut()?.extend(chars.next()),
                ':' if fields.len() < 5 => fields.push(String::new()),
                other => fields.last_mut()?.push(other),
            }
        }
        let password = (fields.len() == 5).then(|| fields.pop()).flatten()?;
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_pgpass_that_fits_has_the_password() {
        let text = "# a comment\nother:5432:*:ada:no\n\\:\\:1:5433:d\\\\b:ada:p\\:w\n*:*:*:ada:any:thing\n";
        let password = |host, port| password_of(text, &[host, port, "d\\b", "ada"]);
        assert_eq!(password("::1", "5433").as_deref(), Some("p:w"));
        assert_eq!(password("h", "1").as_deref(), Some("any:thing"));
        assert_eq!(password_of(text, &["h", "1", "d", "eve"]), None);
    }

    #[test]
    fn a_url_that_is_wrong_does_not_tell_its_password() {
        for url in ["postgres://u:secret@h:port/db", "postgres://u:secret@h/db?sslmode=maybe"] {
            let error = Server::of_url(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let server = Server::of_url("postgres://u:secret@h/db").expect("a URL");
        assert!(!format!("{server:?}").contains("secret"), "{server:?}");
    }
}
