//! What happens to keys that are there already, as a user says it.

use coload_ddl::Schema;
use coload_store::OnConflict;
use coload_types::{Error, Result};

/// What happens to a key of a PRIMARY KEY that is in the table already, or comes twice in a load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConflictRule {
    /// Nothing is loaded.
    #[default]
    Error,
    /// The row of the table stays; of the records the first is added.
    Ignore,
    /// As `Ignore`, and records that are not added are rejects.
    Reject,
    /// The row of the table gives way; of the records the last is added.
    Replace,
    /// The row or record stays that has the greatest value in the column of this name.
    Newest(String),
}

impl ConflictRule {
    /// Reads `error`, `reject`, `ignore`, `replace` or `newest:COLUMN`.
    ///
    /// # Errors
    /// `Invalid` for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "error" => Ok(ConflictRule::Error),
            "ignore" => Ok(ConflictRule::Ignore),
            "replace" => Ok(ConflictRule::Replace),
            "reject" => Ok(ConflictRule::Reject),
            _ => match text.split_once(':') {
                Some(("newest", column)) if !column.trim().is_empty() => {
                    Ok(ConflictRule::Newest(column.trim().to_owned()))
                }
                _ => Err(Error::Invalid(format!(
                    "{text:?} is none of error, reject, ignore, replace and newest:COLUMN"
                ))),
            },
        }
    }

    /// The same for a table of these columns.
    ///
    /// # Errors
    /// `Invalid` when there is no such column.
    pub(crate) fn in_table(&self, table: &str, schema: &Schema) -> Result<OnConflict> {
        let name = match self {
            ConflictRule::Error => return Ok(OnConflict::Error),
            ConflictRule::Ignore => return Ok(OnConflict::Ignore),
            ConflictRule::Reject => return Ok(OnConflict::Reject),
            ConflictRule::Replace => return Ok(OnConflict::Replace),
            ConflictRule::Newest(name) => name,
        };
        let columns = schema.columns();
        let position = schema.position(name);
        position.map(OnConflict::Newest).ok_or_else(|| {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            Error::Invalid(format!(
                "newest:{name}: table {table} has no such column (it has {})",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rules_are_read() {
        let schema = coload_ddl::parse_columns("a BIGINT, Changed TIMESTAMP").unwrap();
        let read = |text: &str| ConflictRule::parse(text).and_then(|r| r.in_table("t", &schema));
        assert_eq!(read("error").unwrap(), OnConflict::Error);
        assert_eq!(read("ignore").unwrap(), OnConflict::Ignore);
        assert_eq!(read("reject").unwrap(), OnConflict::Reject);
        assert_eq!(read("replace").unwrap(), OnConflict::Replace);
        assert_eq!(read("newest:changed").unwrap(), OnConflict::Newest(1));
        for (text, what) in [
            ("newest:b", "has no such column (it has a, Changed)"),
            ("newest:", "none of error"),
            ("Replace", "none of error"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
