//! What a caller may do to which tables.
//!
//! ```text
//!   read   SELECT from it
//!   load   read, add rows to it, make it when it is not there
//!   admin  load, replace, empty or drop it, delete and change its rows
//! ```
//!
//! Besides, files and objects outside of the store are read by who has `external:PLACE` for one of the places that the server has
//! (`external`).
//!
//! Invariant: a table that a caller may not read does not exist for the planner, so that no form of a
//! query can reach it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::external::{Allowed, ExternalPlace};

/// What may be done; each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Query the table.
    Read,
    /// Query the table, add rows, and make it when it is not there.
    Load,
    /// Replace, empty and drop, delete and change rows.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Read => "read",
            Role::Load => "load",
            Role::Admin => "admin",
        })
    }
}

/// Something that a user may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// A role on tables.
    Tables(TableGrant),
    /// To read what is in a place outside of the store; in all that the server has if `None`.
    External(Option<ExternalPlace>),
}

/// A role on a table, or on all whose names start alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGrant {
    role: Role,
    /// Lower case; without the star.
    name: String,
    is_prefix: bool,
}

impl FromStr for Grant {
    type Err = Error;

    /// `ROLE:TABLE`, where TABLE may end with a star: `read:*`, `load:staging_*`, `admin:orders`; and `external:PLACE`, or
    /// `external:*`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(("external", place)) = text.split_once(':') {
            return Ok(Grant::External(match place {
                "*" => None,
                _ => Some(ExternalPlace::parse(place)?),
            }));
        }
        let role = match text.split_once(':') {
            Some(("read", _)) => Role::Read,
            Some(("load", _)) => Role::Load,
            Some(("admin", _)) => Role::Admin,
            _ => {
                return Err(Error::Invalid(format!(
                    "{text:?} is no right: write read:TABLE, load:TABLE or admin:TABLE, where TABLE \
                     may end with *, or external:PLACE"
                )));
            }
        };
        let table = text.split_once(':').map_or("", |(_, table)| table).to_lowercase();
        let (name, is_prefix) = match table.strip_suffix('*') {
            Some(prefix) => (prefix.to_owned(), true),
            None => (table, false),
        };
        if name.contains('*') || (name.is_empty() && !is_prefix) {
            return Err(Error::Invalid(format!(
                "{text:?} is no right: a star may end a name only"
            )));
        }
        Ok(Grant::Tables(TableGrant { role, name, is_prefix }))
    }
}

impl TableGrant {
    fn covers(&self, table: &str) -> bool {
        let table = table.to_lowercase();
        if self.is_prefix { table.starts_with(&self.name) } else { table == self.name }
    }
}

/// A caller's name and grants. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rights {
    user: Arc<str>,
    grants: Arc<[TableGrant]>,
    external: Allowed,
}

impl Rights {
    /// Everything, for the owner of the store.
    pub fn all() -> Self {
        let everything = TableGrant { role: Role::Admin, name: String::new(), is_prefix: true };
        Rights { user: "".into(), grants: [everything].into(), external: Allowed::Everything }
    }

    /// What a user was granted.
    pub fn of(user: &str, grants: Vec<Grant>) -> Self {
        let (mut tables, mut places, mut everywhere) = (Vec::new(), Vec::new(), false);
        for grant in grants {
            match grant {
                Grant::Tables(grant) => tables.push(grant),
                Grant::External(Some(place)) => places.push(place),
                Grant::External(None) => everywhere = true,
            }
        }
        let external = if everywhere { Allowed::Everything } else { Allowed::Within(places) };
        Rights { user: user.into(), grants: tables.into(), external }
    }

    /// The places outside of the store that may be read, as far as the server has them.
    pub(crate) fn external(&self) -> &Allowed {
        &self.external
    }

    /// Why a place must not be read that the server has.
    pub(crate) fn not_granted(&self, error: &Error) -> Error {
        Error::Refused(format!("user {:?} has no right external on it: {error}", self.user))
    }

    /// The user's name; empty for the owner.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The greatest role on a table.
    pub fn on(&self, table: &str) -> Option<Role> {
        self.grants.iter().filter(|g| g.covers(table)).map(|g| g.role).max()
    }

    /// Whether the table may be seen.
    pub fn may_read(&self, table: &str) -> bool {
        self.on(table).is_some()
    }

    /// Asks for a role on a table.
    ///
    /// # Errors
    /// `Refused` without it.
    pub fn require(&self, role: Role, table: &str) -> Result<()> {
        match self.on(table) {
            Some(granted) if granted >= role => Ok(()),
            _ => Err(Error::Refused(format!(
                "user {:?} has no right {role} on table {table}",
                self.user
            ))),
        }
    }

    /// Asks for a role on all tables.
    ///
    /// # Errors
    /// `Refused` without it; `what` is what it would be for.
    pub fn require_everywhere(&self, role: Role, what: &str) -> Result<()> {
        let everywhere = |g: &TableGrant| g.role >= role && g.is_prefix && g.name.is_empty();
        if self.grants.iter().any(everywhere) {
            return Ok(());
        }
        Err(Error::Refused(format!("{what} needs {role}:*, which user {:?} has not", self.user)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_greatest_grant_on_a_table_counts() {
        let grants = ["read:*", "load:stage_*", "admin:Orders"].map(|g| g.parse().unwrap());
        let rights = Rights::of("ada", grants.to_vec());
        assert_eq!(rights.on("anything"), Some(Role::Read));
        assert_eq!(rights.on("STAGE_1"), Some(Role::Load));
        assert_eq!(rights.on("orders"), Some(Role::Admin));
        assert_eq!(rights.on("orders2"), Some(Role::Read));
        assert!(rights.require(Role::Load, "stage_1").is_ok());
        let refused = rights.require(Role::Admin, "stage_1").unwrap_err();
        assert!(matches!(&refused, Error::Refused(t) if t.contains("ada")), "{refused}");
        assert!(rights.require_everywhere(Role::Read, "x").is_ok());
        assert!(rights.require_everywhere(Role::Admin, "x").is_err());
        assert_eq!(Rights::of("eve", Vec::new()).on("orders"), None);
    }

    #[test]
    fn what_is_no_grant_is_refused() {
        for text in [
            "",
            "read",
            "write:t",
            "read:",
            "load:a*b",
            "admin:*x*",
            "external:",
            "external:/no/such/place",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }
}
