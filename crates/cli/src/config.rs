//! The file of settings: `$XDG_CONFIG_HOME/coload/config.toml`, or `~/.config/coload/config.toml`.
//!
//! Flags and variables go before it. A key that is not known, and a value of another type, are errors that name the file.

use std::path::{Path, PathBuf};

use coload::{Error, Result};
use toml::de::{DeTable, DeValue};

/// Settings of `coload sql`; `None` where the file says nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The store or server that is opened.
    pub store: Option<String>,
    /// Form of the answers.
    pub output: Option<String>,
    /// Rows of a table that are shown; 0 for all.
    pub max_rows: Option<usize>,
    /// Answers on a terminal go through a pager.
    pub pager: Option<bool>,
    /// Each statement is followed by its time.
    pub timing: Option<bool>,
}

impl Config {
    /// The settings of the user; those of a file that is not there are empty.
    ///
    /// # Errors
    /// `Invalid` when the file cannot be read, or holds something else.
    pub fn read() -> Result<Self> {
        let Some(path) = path() else { return Ok(Config::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(Error::io("read", &path, &error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::Invalid(format!("{}: {what}", path.display()));
        let table = DeTable::parse(text).map_err(|e| wrong(e.to_string()))?;
        let mut config = Config::default();
        for (key, value) in table.into_inner() {
            let is_taken = match (key.get_ref().as_ref(), value.into_inner()) {
                ("store", DeValue::String(text)) => config.store.replace(text.into()).is_none(),
                ("output", DeValue::String(text)) => config.output.replace(text.into()).is_none(),
                ("max_rows", DeValue::Integer(rows)) => {
                    match usize::from_str_radix(rows.as_str(), rows.radix()) {
                        Ok(rows) => config.max_rows.replace(rows).is_none(),
                        Err(_) => false,
                    }
                }
                ("pager", DeValue::Boolean(is_on)) => config.pager.replace(is_on).is_none(),
                ("timing", DeValue::Boolean(is_on)) => config.timing.replace(is_on).is_none(),
                _ => false,
            };
            if !is_taken {
                let key = key.get_ref();
                return Err(wrong(format!(
                    "{key} is not understood: there is store = \"..\", output = \"table\", max_rows = 40, pager = true and \
                     timing = true"
                )));
            }
        }
        Ok(config)
    }
}

fn path() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let folder = folder.filter(|folder| folder.is_absolute()).or_else(home)?;
    Some(folder.join("coload/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_and_others_told() {
        let path = Path::new("/c/config.toml");
        let text = "# mine\nstore = \"/data\"\nmax_rows = 0\npager = true\n";
        let expected = Config {
            store: Some("/data".into()),
            max_rows: Some(0),
            pager: Some(true),
            ..Config::default()
        };
        assert_eq!(Config::parse(text, path).ok(), Some(expected));
        for wrong in
            ["stores = \"x\"", "pager = 1", "max_rows = -1", "store = \"a\"\nstore = \"b\"", "x"]
        {
            let error = Config::parse(wrong, path).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.starts_with("/c/config.toml: "), "{wrong}: {error}");
        }
    }
}
