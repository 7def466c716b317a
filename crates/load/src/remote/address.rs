//! Addresses of servers: `coload://[user@]host:port[/table]`, and `coloads://` for TLS.

use std::fmt;
use std::str::FromStr;

use coload_types::{Error, Result};

/// Port of a server that names none.
const PORT_DEFAULT: u16 = 8470;

/// Where a server is, and perhaps who asks and which table is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name of the user who logs in; `None` where the address has none.
    pub user: Option<String>,
    /// Name or number of the machine; of IPv6, without brackets.
    pub host: String,
    /// Port on which the server listens.
    pub port: u16,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Table, after the slash.
    pub table: Option<String>,
}

impl Address {
    /// Whether a text is meant to be an address rather than a directory.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("coload://") || text.starts_with("coloads://")
    }

    /// Host and port as one text; an address of IPv6 is in brackets.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "coloads://" } else { "coload://" })?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.authority())?;
        self.table.as_ref().map_or(Ok(()), |table| write!(f, "/{table}"))
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // A password that somebody wrote here is not repeated.
        let wrong = |why: &str| {
            Error::Invalid(format!("not an address as in coload://[user@]host:port[/table]: {why}"))
        };
        let (tls, rest) = match (text.strip_prefix("coload://"), text.strip_prefix("coloads://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(wrong("it begins with neither coload:// nor coloads://")),
        };
        let (place, table) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        if user.is_some_and(|u| u.is_empty() || u.contains(':')) {
            return Err(wrong(
                "only a user stands before @ (set COLOAD_PASSWORD for the password)",
            ));
        }
        let (host, port) = match place.strip_prefix('[').and_then(|p| p.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
            None => place.split_once(':').unwrap_or((place, "")),
        };
        if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
            return Err(wrong("the host is missing or no name"));
        }
        let port = match port {
            "" => PORT_DEFAULT,
            port => port.parse().map_err(|_| wrong("the port is no number up to 65535"))?,
        };
        Ok(Address {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            tls,
            table: (!table.is_empty()).then(|| table.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, shown) in [
            ("coload://db:9000", "coload://db:9000"),
            ("coload://db", "coload://db:8470"),
            ("coloads://ada@db.example:1/t", "coloads://ada@db.example:1/t"),
            ("coload://[::1]:7/", "coload://[::1]:7"),
            ("coload://[::1]", "coload://[::1]:8470"),
            ("coload://a@b@10.0.0.1:7/my table", "coload://a@b@10.0.0.1:7/my table"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse::<Address>().unwrap(), address);
        }
        assert_eq!("coload://[::1]:7".parse::<Address>().unwrap().authority(), "[::1]:7");
    }

    #[test]
    fn other_texts_are_refused_and_passwords_not_repeated() {
        for text in [
            "db:9000",
            "http://db:9000",
            "coload://",
            "coload://:9000",
            "coload://@db:1",
            "coload://db:70000",
            "coload://db:x",
            "coload://ada:secret@db:1",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
