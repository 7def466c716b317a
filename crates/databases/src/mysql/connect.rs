//! Where a server is and who we are to it: the URL, the environment, `.my.cnf`.

use std::path::PathBuf;

use coload_types::{Error, Result};
use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};

use crate::url::take_parameters;

/// Parameters of the URL that are ours.
const OURS: [&str; 8] =
    ["ssl-mode", "sslmode", "ssl-ca", "sslrootcert", "ssl-cert", "sslcert", "ssl-key", "sslkey"];

/// How to connect to the server of a URL.
///
/// # Errors
/// `Invalid` when it is none.
pub fn opts_of_url(url: &str) -> Result<Opts> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (url, parameters) =
        take_parameters(&format!("mysql://{rest}"), |name| OURS.contains(&name));
    // The error may repeat the URL, in which a password may stand.
    let opts = Opts::from_url(&url).map_err(|_| {
        Error::Invalid(
            "not a URL as in mysql://[user[:password]@]host[:port]/database[?ssl-mode=...]".into(),
        )
    })?;
    let parameter = |names: [&str; 2]| {
        let given = parameters.iter().rev().find(|(found, _)| names.contains(&found.as_str()));
        given.map(|(_, value)| value.clone())
    };
    let file = client_file();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut builder = OptsBuilder::from_opts(opts.clone()).prefer_socket(false);
    if opts.user().is_none() {
        builder = builder.user(file.user.or_else(|| variable("USER")));
    }
    if opts.pass().is_none() {
        builder = builder.pass(variable("MYSQL_PWD").or(file.password));
    }
    let root = parameter(["ssl-ca", "sslrootcert"]);
    let identity = parameter(["ssl-cert", "sslcert"]).zip(parameter(["ssl-key", "sslkey"]));
    let mode = parameter(["ssl-mode", "sslmode"]).map(|mode| mode.to_lowercase().replace('-', "_"));
    let tls = |checks_signer: bool, checks_name: bool| {
        let roots = root.iter().map(|root| PathBuf::from(root).into()).collect();
        let identity = identity.clone().map(|(certificate, key)| {
            ClientIdentity::new(PathBuf::from(certificate).into(), PathBuf::from(key).into())
        });
        SslOpts::default()
            .with_client_identity(identity)
            .with_disable_built_in_roots(root.is_some())
            .with_root_certs(roots)
            .with_danger_accept_invalid_certs(!checks_signer)
            .with_danger_skip_domain_validation(!checks_name)
    };
    let tls = match mode.as_deref() {
        None if opts.ssl_opts().is_some() => opts.ssl_opts().cloned(),
        None | Some("disable" | "disabled") => None,
        Some("require" | "required") => Some(tls(false, false)),
        Some("verify_ca") => Some(tls(true, false)),
        Some("verify_full" | "verify_identity") => Some(tls(true, true)),
        Some(other) => {
            return Err(Error::Invalid(format!(
                "ssl-mode={other}: it is disabled, required, verify_ca or verify_identity"
            )));
        }
    };
    Ok(builder.ssl_opts(tls).into())
}

/// What `.my.cnf` says of clients.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClientFile {
    user: Option<String>,
    password: Option<String>,
}

fn client_file() -> ClientFile {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let text = home.and_then(|home| std::fs::read_to_string(home.join(".my.cnf")).ok());
    read_client_file(&text.unwrap_or_default())
}

/// Reads `user` and `password` of the section `[client]`; the last one counts.
fn read_client_file(text: &str) -> ClientFile {
    let mut found = ClientFile::default();
    let mut is_client = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_client = line == "[client]";
        } else if is_client && let Some((name, value)) = line.split_once('=') {
            let value = value.trim();
            let quoted = |quote| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
            let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value).to_owned();
            match name.trim() {
                "user" => found.user = Some(value),
                "password" => found.password = Some(value),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_clients_has_user_and_password() {
        let text = "[mysqld]\nuser=mysql\n[client]\nuser = ada\npassword=\"a=b #\"\n[other]\npassword=no\n";
        let read = read_client_file(text);
        assert_eq!(read.user.as_deref(), Some("ada"));
        assert_eq!(read.password.as_deref(), Some("a=b #"));
        assert_eq!(read_client_file("password=x"), ClientFile::default());
    }

    #[test]
    fn a_url_that_is_wrong_does_not_tell_its_password() {
        for url in ["mysql://u:secret@h:port/d", "mysql://u:secret@h/d?ssl-mode=maybe"] {
            let error = opts_of_url(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
