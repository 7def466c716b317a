//! Which files and objects statements may read.
//!
//! A place is a directory, a file, or the beginning of an address such as `s3://bucket/prefix`. Files are compared by the paths
//! that they have without links, so that neither `..` nor a link leads out of a directory. A name is looked at before anything
//! is opened or listed, so that an answer does not tell what is elsewhere; what was found is looked at again.

use std::path::{Component, Path, PathBuf};

use coload_input::{ArchiveAt, InputSource, Inputs};
use coload_types::{Error, Result};

/// The places that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// All that the process can read.
    Everything,
    /// What is in one of these; nothing if there are none.
    Within(Vec<ExternalPlace>),
}

/// A place that may be read, with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalPlace {
    /// A directory or a file, without links.
    Path(PathBuf),
    /// The beginning of an address.
    Address(String),
}

/// What begins a pattern.
const PATTERN: [char; 4] = ['*', '?', '[', '{'];

impl ExternalPlace {
    /// A place as it is written.
    ///
    /// # Errors
    /// `Invalid` when there is no such directory or file, or an address leads upwards.
    pub fn parse(text: &str) -> Result<Self> {
        if text.contains("://") {
            return match leads_up(text) {
                false => Ok(ExternalPlace::Address(text.to_owned())),
                true => Err(Error::Invalid(format!("{text:?}: .. is no place"))),
            };
        }
        let path = std::fs::canonicalize(text);
        let path = path.map_err(|e| Error::io("find the place", Path::new(text), &e))?;
        Ok(ExternalPlace::Path(path))
    }

    fn has_path(&self, path: &Path) -> bool {
        matches!(self, ExternalPlace::Path(place) if path.starts_with(place))
    }

    fn has_address(&self, address: &str) -> bool {
        let ExternalPlace::Address(place) = self else { return false };
        let rest = address.strip_prefix(place.as_str());
        rest.is_some_and(|rest| place.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
            && !leads_up(address)
    }
}

/// Whether an address has a segment that means the one above, as it is or escaped.
fn leads_up(address: &str) -> bool {
    let plain = address.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/");
    plain.split(['/', '\\']).any(|segment| segment == "..") || plain.contains("%25")
}

impl Allowed {
    /// Looks at the name of inputs, which may be a pattern.
    ///
    /// # Errors
    /// `Refused` when it leads elsewhere.
    pub(super) fn check_name(&self, name: &str) -> Result<()> {
        let Allowed::Within(places) = self else { return Ok(()) };
        let within = match name.contains("://") {
            // What a pattern stands for is behind its beginning.
            true => places.iter().any(|place| place.has_address(beginning(name))),
            false => {
                path_of(name).is_some_and(|path| places.iter().any(|place| place.has_path(&path)))
            }
        };
        if within { Ok(()) } else { Err(elsewhere(name)) }
    }

    /// Looks at inputs that were found.
    ///
    /// # Errors
    /// `Refused` when one is elsewhere.
    pub(super) fn check_found(&self, inputs: &Inputs) -> Result<()> {
        let Allowed::Within(places) = self else { return Ok(()) };
        for input in inputs.iter() {
            let within = match &input.source {
                InputSource::File { path, .. }
                | InputSource::Part { path, .. }
                | InputSource::Member { archive: ArchiveAt::File { path, .. }, .. } => {
                    let path = std::fs::canonicalize(path).ok();
                    path.is_some_and(|path| places.iter().any(|place| place.has_path(&path)))
                }
                InputSource::Object(object)
                | InputSource::Member { archive: ArchiveAt::Object(object), .. } => {
                    places.iter().any(|place| place.has_address(object.address()))
                }
                InputSource::Stdin | InputSource::Stream { .. } | InputSource::Rows { .. } => false,
            };
            if !within {
                return Err(elsewhere(&input.name));
            }
        }
        Ok(())
    }
}

fn elsewhere(name: &str) -> Error {
    Error::Refused(format!("{name} is in no place that may be read"))
}

/// What stands before the first part of a name that is a pattern, up to its last slash.
fn beginning(name: &str) -> &str {
    let Some(at) = name.find(PATTERN) else { return name };
    let slash = name[..at].rfind('/').map_or(0, |slash| slash + 1);
    // s3://* has no beginning.
    if name[..slash].ends_with("://") { "" } else { &name[..slash] }
}

/// The path without links of a file, or of the directory in which those of a pattern are. What is not there has the path that it
/// would have, if that leads nowhere upwards.
fn path_of(name: &str) -> Option<PathBuf> {
    // The member of an archive is in the archive.
    let name = name.split('!').next().unwrap_or(name);
    let start = beginning(name);
    let start = if start.is_empty() { "." } else { start };
    if let Ok(path) = std::fs::canonicalize(start) {
        return Some(path);
    }
    let absolute = std::path::absolute(start).ok()?;
    if absolute.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    // As far as it is there it may be a link.
    let there = absolute.ancestors().find_map(|above| {
        let path = std::fs::canonicalize(above).ok()?;
        Some((path, absolute.strip_prefix(above).ok()?.to_owned()))
    });
    there.map(|(path, rest)| path.join(rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn within(place: &str) -> Allowed {
        Allowed::Within(vec![ExternalPlace::parse(place).unwrap()])
    }

    #[test]
    fn nothing_is_allowed_by_no_place() {
        for name in ["a.csv", "/etc/passwd", "s3://bucket/key", "-", ""] {
            assert!(Allowed::Within(Vec::new()).check_name(name).is_err(), "{name}");
            assert!(Allowed::Everything.check_name(name).is_ok());
        }
    }

    #[test]
    fn neither_dots_nor_links_nor_patterns_lead_out_of_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("in/deep")).unwrap();
        std::fs::create_dir(root.join("inner")).unwrap();
        std::fs::write(root.join("secret.csv"), "a\n1\n").unwrap();
        std::fs::write(root.join("in/a.csv"), "a\n1\n").unwrap();
        std::os::unix::fs::symlink(root.join("secret.csv"), root.join("in/link.csv")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("in/up")).unwrap();
        let allowed = within(&root.join("in").to_string_lossy());
        let check = |name: &str| allowed.check_name(&format!("{}/{name}", root.display())).is_ok();
        let fine = [
            "in/a.csv",
            "in/*.csv",
            "in/deep/*",
            "in",
            "in/**/*.csv",
            "in/a.zip!b.csv",
            "in/deep/../a.csv",
        ];
        for name in fine {
            assert!(check(name), "{name}");
        }
        let wrong = [
            "secret.csv",
            "in/../secret.csv",
            "in/link.csv",
            "in/up/secret.csv",
            "inner/a.csv",
            "*/a.csv",
            "i*/a.csv",
            "in/up/*.csv",
            "in/up/new/a.csv",
            "in/new/../../secret.csv",
            "",
            "in/link.csv!a",
        ];
        for name in wrong {
            assert!(!check(name), "{name}");
        }
        assert!(allowed.check_name("s3://bucket/in").is_err());
        assert!(allowed.check_name("-").is_err());
    }

    #[test]
    fn addresses_begin_as_they_must() {
        let allowed = within("s3://bucket/public");
        for name in
            ["s3://bucket/public", "s3://bucket/public/a.csv", "s3://bucket/public/*/b.parquet"]
        {
            assert!(allowed.check_name(name).is_ok(), "{name}");
        }
        let wrong = [
            "s3://bucket/publicity/a.csv",
            "s3://bucket/public*",
            "s3://bucket/public/../private/a.csv",
            "s3://bucket/public/%2e%2E/private",
            "s3://bucket/public/%252e%252e/private",
            "s3://bucket/*/a.csv",
            "s3://*",
            "s3://bucket2/public/a",
            "gs://bucket/public/a",
            "/etc/passwd",
        ];
        for name in wrong {
            assert!(allowed.check_name(name).is_err(), "{name}");
        }
        assert!(ExternalPlace::parse("s3://bucket/../x").is_err());
        assert!(ExternalPlace::parse("/no/such/place").is_err());
    }
}
