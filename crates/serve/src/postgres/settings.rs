//! Settings of a session: those that clients of PostgreSQL set and ask for.
//!
//! A setting that would change what is answered takes only the value that holds here; who sets another one is told. One that
//! changes nothing keeps what it was given.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fault::{Fault, code};

/// The version of PostgreSQL whose protocol and catalogue this is like.
pub(super) const SERVER_VERSION: &str = concat!("15.0 (Coload ", env!("CARGO_PKG_VERSION"), ")");

/// Which values a setting takes.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// Any: nothing depends on it.
    Anything,
    /// Those that mean what holds.
    Only(&'static [&'static str]),
    /// A time, of which the number counts milliseconds.
    Time,
    Truth,
    /// Nobody sets it.
    Nothing,
}

/// Name in lower case, value at the start, and what it may become.
const SETTINGS: &[(&str, &str, Takes)] = &[
    ("application_name", "", Takes::Anything),
    ("bytea_output", "hex", Takes::Only(&["hex"])),
    ("client_encoding", "UTF8", Takes::Only(&["utf8", "utf-8", "unicode"])),
    ("client_min_messages", "notice", Takes::Anything),
    ("datestyle", "ISO, YMD", Takes::Only(&["iso", "iso, ymd", "iso, mdy", "iso, dmy", "ymd"])),
    (
        "default_transaction_isolation",
        "read committed",
        Takes::Only(&["read committed", "read uncommitted"]),
    ),
    ("default_transaction_read_only", "off", Takes::Truth),
    ("extra_float_digits", "1", Takes::Anything),
    ("idle_in_transaction_session_timeout", "0", Takes::Anything),
    ("in_hot_standby", "off", Takes::Nothing),
    ("integer_datetimes", "on", Takes::Nothing),
    ("intervalstyle", "postgres", Takes::Only(&["postgres"])),
    ("is_superuser", "off", Takes::Nothing),
    ("jit", "off", Takes::Anything),
    ("lock_timeout", "0", Takes::Anything),
    ("max_identifier_length", "63", Takes::Nothing),
    ("max_index_keys", "32", Takes::Nothing),
    ("row_security", "on", Takes::Anything),
    (
        "search_path",
        "\"$user\", public",
        Takes::Only(&[
            "public",
            "\"$user\", public",
            "$user, public",
            "public, pg_catalog",
            "pg_catalog, public",
            "pg_catalog",
            "",
        ]),
    ),
    ("server_encoding", "UTF8", Takes::Nothing),
    ("server_version", SERVER_VERSION, Takes::Nothing),
    ("server_version_num", "150000", Takes::Nothing),
    ("session_authorization", "", Takes::Nothing),
    ("standard_conforming_strings", "on", Takes::Only(&["on", "true", "1"])),
    ("statement_timeout", "0", Takes::Time),
    ("synchronous_commit", "on", Takes::Only(&["on"])),
    (
        "timezone",
        "UTC",
        Takes::Only(&["utc", "etc/utc", "gmt", "etc/gmt", "zulu", "0", "+00", "+00:00"]),
    ),
    (
        "transaction_isolation",
        "read committed",
        Takes::Only(&["read committed", "read uncommitted"]),
    ),
    ("transaction_read_only", "off", Takes::Truth),
];

/// Those of which a client is told when it logs in, as PostgreSQL spells them.
const TOLD: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The settings of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// What is not as at the start.
    set: BTreeMap<&'static str, String>,
}

fn find(name: &str) -> Option<&'static (&'static str, &'static str, Takes)> {
    let name = name.to_ascii_lowercase();
    SETTINGS.iter().find(|(known, ..)| *known == name)
}

/// Whether there is such a setting.
pub(super) fn is_setting(name: &str) -> bool {
    find(name).is_some()
}

fn unknown(name: &str) -> Fault {
    Fault::error(code::NO_PARAMETER, format!("no setting is named {name:?}; SHOW ALL lists them"))
}

impl Settings {
    /// The value of a setting.
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn get(&self, name: &str) -> Result<&str, Fault> {
        let (known, at_start, _) = find(name).ok_or_else(|| unknown(name))?;
        Ok(self.set.get(known).map_or(at_start, String::as_str))
    }

    /// Names and values of all.
    pub fn all(&self) -> Vec<(&'static str, &str)> {
        let value = |name, at_start| self.set.get(name).map_or(at_start, String::as_str);
        SETTINGS.iter().map(|(name, at_start, _)| (*name, value(*name, *at_start))).collect()
    }

    /// Those that a client is told when it logs in.
    pub fn told(&self) -> Vec<(&'static str, &str)> {
        TOLD.into_iter().map(|name| (name, self.get(name).unwrap_or_default())).collect()
    }

    /// Whether a client is told of a setting that changes, and how it is spelled then.
    pub fn told_name(name: &str) -> Option<&'static str> {
        TOLD.into_iter().find(|known| known.eq_ignore_ascii_case(name))
    }

    /// Sets one.
    ///
    /// # Errors
    /// When there is no such setting, or the value would not hold.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        // Names with a point are those of extensions, whose clients keep what they like in them.
        let Some((known, at_start, takes)) = find(name) else {
            return if name.contains('.') { Ok(()) } else { Err(unknown(name)) };
        };
        let value = value.trim();
        let refused = |instead: &str| {
            Err(Fault::error(code::PARAMETER, format!("{name} cannot become {value:?}: {instead}")))
        };
        let kept = match takes {
            Takes::Anything => value.to_owned(),
            Takes::Nothing => return refused("it tells what the server is"),
            Takes::Only(values) => {
                // Some clients quote what they send when they log in.
                let plain = value.replace(['"', '\''], "").to_lowercase();
                match values.iter().any(|taken| taken.replace('"', "") == plain) {
                    // What is meant is the value that is there.
                    true => return Ok(()),
                    false => return refused(&format!("it is {at_start} here")),
                }
            }
            Takes::Truth => match &*value.to_lowercase() {
                "on" | "true" | "1" | "yes" => "on".to_owned(),
                "off" | "false" | "0" | "no" => "off".to_owned(),
                _ => return refused("on or off"),
            },
            Takes::Time => match millis(value) {
                Some(0) => "0".to_owned(),
                Some(millis) => format!("{millis}ms"),
                None => return refused("a time such as 30s, or milliseconds"),
            },
        };
        self.set.insert(known, kept);
        Ok(())
    }

    /// Keeps what a client says before it has logged in. A zone that is another than ours is no reason to refuse it: it is told
    /// which one holds, and instants are sent with theirs.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn begin(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        match self.set(name, value) {
            Err(_) if name.eq_ignore_ascii_case("timezone") => Ok(()),
            set => set,
        }
    }

    /// Who the session is of.
    pub fn set_user(&mut self, user: &str) {
        self.set.insert("session_authorization", user.to_owned());
    }

    /// Sets one, or all, to what it was at the start.
    pub fn reset(&mut self, name: Option<&str>) {
        self.set.retain(|known, _| {
            let is_meant = name.is_none_or(|name| name.eq_ignore_ascii_case(known));
            *known == "session_authorization" || !is_meant
        });
    }

    /// Whether statements may only read.
    pub fn is_read_only(&self) -> bool {
        ["default_transaction_read_only", "transaction_read_only"]
            .iter()
            .any(|name| self.get(name).is_ok_and(|value| value == "on"))
    }

    /// How long a statement may run.
    pub fn statement_time(&self) -> Option<Duration> {
        let millis = millis(self.get("statement_timeout").ok()?)?;
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// Milliseconds of a time as PostgreSQL has them.
fn millis(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let count: u64 = value[..digits].parse().ok()?;
    let unit = match value[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_setting_that_would_not_hold_is_refused() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("timezone", "Europe/Berlin"),
            ("client_encoding", "LATIN1"),
            ("standard_conforming_strings", "off"),
            ("server_version", "9"),
            ("search_path", "other"),
            ("statement_timeout", "soon"),
            ("no_such", "1"),
        ] {
            assert!(settings.set(name, value).is_err(), "{name}");
        }
        for (name, value) in [
            ("TimeZone", "UTC"),
            ("DateStyle", "ISO"),
            ("search_path", "\"$user\",  public".trim()),
            ("my.own", "x"),
        ] {
            let set = settings.set(name, &value.replace("  ", " "));
            assert!(set.is_ok(), "{name}: {set:?}");
        }
        assert_eq!(settings.get("TIMEZONE").unwrap(), "UTC");
        assert!(settings.begin("TimeZone", "Europe/Berlin").is_ok());
        assert_eq!(settings.get("timezone").unwrap(), "UTC");
    }

    #[test]
    fn times_of_statements_have_units() {
        let mut settings = Settings::default();
        settings.set("statement_timeout", "2s").unwrap();
        assert_eq!(settings.statement_time(), Some(Duration::from_secs(2)));
        settings.reset(None);
        assert_eq!(settings.statement_time(), None);
    }

    #[test]
    fn each_setting_that_is_told_is_one() {
        let settings = Settings::default();
        assert!(settings.told().iter().all(|(name, _)| is_setting(name)));
    }
}
