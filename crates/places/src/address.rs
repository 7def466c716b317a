//! Addresses of objects: `s3://bucket/key`, `https://host/path`.

use coload_types::{Error, Result};

use crate::place::{PLACES, Place};

/// What stands between a scheme and the rest.
const AFTER_SCHEME: &str = "://";
/// What makes a key a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// An address as its parts.
#[derive(Clone, Copy)]
pub struct Address<'a> {
    /// All of it.
    pub text: &'a str,
    /// What speaks its scheme.
    pub place: &'static dyn Place,
    /// Bucket, container or host.
    pub authority: &'a str,
    /// What follows, without the first slash; for HTTP with its query.
    pub key: &'a str,
}

impl std::fmt::Debug for Address<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.shown())
    }
}

/// Whether a text is the address of an object, not a path.
pub fn is_address(text: &str) -> bool {
    text.split_once(AFTER_SCHEME).is_some_and(|(scheme, _)| place_of(scheme).is_some())
}

fn place_of(scheme: &str) -> Option<&'static dyn Place> {
    let knows = |place: &&&dyn Place| {
        place.schemes().iter().any(|known| known.eq_ignore_ascii_case(scheme))
    };
    PLACES.iter().find(knows).copied()
}

impl<'a> Address<'a> {
    /// Takes an address apart.
    ///
    /// # Errors
    /// `Invalid` when it names no object.
    pub fn parse(text: &'a str) -> Result<Self> {
        let parts = text.split_once(AFTER_SCHEME);
        let known = parts.and_then(|(scheme, rest)| Some((place_of(scheme)?, rest)));
        let Some((place, rest)) = known else {
            return Err(Error::Invalid(format!("{text} is not the address of an object")));
        };
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let address = Address { text, place, authority, key };
        if authority.is_empty() {
            return Err(Error::Invalid(format!(
                "{}: there is no bucket or host behind {AFTER_SCHEME}",
                address.shown()
            )));
        }
        Ok(address)
    }

    /// The address as messages show it: without a query, which may be a signature.
    pub fn shown(&self) -> &'a str {
        match self.place.lists() {
            true => self.text,
            false => self.text.split_once('?').map_or(self.text, |(before, _)| before),
        }
    }

    /// The address of an object beside it.
    pub fn of_key(&self, key: &str) -> String {
        let root = self.root();
        let slash = if root.ends_with('/') { "" } else { "/" };
        format!("{root}{slash}{key}")
    }

    /// The address up to the key.
    pub fn root(&self) -> &'a str {
        &self.text[..self.text.len() - self.key.len()]
    }

    /// Whether the key stands for several objects.
    pub fn is_pattern(&self) -> bool {
        self.place.lists() && self.key.contains(WILDCARDS)
    }

    /// Whether all objects below the key are meant.
    pub fn is_prefix(&self) -> bool {
        self.place.lists() && (self.key.is_empty() || self.key.ends_with('/'))
    }

    /// The folder below which a pattern finds all that it finds, and what follows it.
    pub fn folder(&self) -> (&'a str, &'a str) {
        let first = self.key.find(WILDCARDS).unwrap_or(self.key.len());
        let end = self.key[..first].rfind('/').map_or(0, |at| at + 1);
        self.key.split_at(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, authority, key) in [
            ("s3://bucket/a/b.csv", "bucket", "a/b.csv"),
            ("S3://bucket", "bucket", ""),
            ("https://host:8080/a%20b.csv?x=1", "host:8080", "a%20b.csv?x=1"),
            ("gs://bucket/what?.csv", "bucket", "what?.csv"),
        ] {
            let address = Address::parse(text).expect("an address");
            assert_eq!((address.authority, address.key), (authority, key), "{text}");
        }
        for text in ["s3:///key", "https://", "ftp://host/a.csv", "a.csv", "s3:/x"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        assert!(!is_address("data/s3/x.csv") && !is_address("C://x") && is_address("az://c/x"));
    }

    #[test]
    fn patterns_and_prefixes_are_told_from_keys() {
        let of = |text: &'static str| Address::parse(text).expect("an address");
        assert!(of("s3://b/x/*.csv").is_pattern() && !of("s3://b/x/*.csv").is_prefix());
        assert!(of("s3://b/x/").is_prefix() && of("s3://b").is_prefix());
        assert!(!of("https://b/x/?a=[1]").is_pattern() && !of("https://b/").is_prefix());
        assert_eq!(of("s3://b/x/y=*/z?.csv").folder(), ("x/", "y=*/z?.csv"));
        assert_eq!(of("s3://b/*").folder(), ("", "*"));
        assert_eq!(of("https://h/a.csv?signature=secret").shown(), "https://h/a.csv");
        assert_eq!(of("s3://b/a?.csv").shown(), "s3://b/a?.csv");
    }
}
