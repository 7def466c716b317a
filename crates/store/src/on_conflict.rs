//! What becomes of records whose key is there already.

use coload_ddl::{Index, Key, Schema};
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result, Value};

/// What happens when a key of a PRIMARY KEY is in the table already, or comes twice in a load.
///
/// Of the records of a load with one key one is chosen first, by their order in the input; then it meets the row of the
/// table. So the outcome does not depend on the number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Nothing is added, and the error names the key.
    #[default]
    Error,
    /// The row of the table stays; of the records the first. So it is with values of UNIQUE that come twice.
    Ignore,
    /// As `Ignore` for the PRIMARY KEY; values of UNIQUE that come twice are an error.
    IgnoreKey,
    /// As `Ignore` for an index of UNIQUE, by its number in the schema of the load; keys of the PRIMARY KEY and values of other indexes that
    /// come twice are an error.
    IgnoreUnique(usize),
    /// As `Ignore`, and records that are left out are told with their places and set aside ([`crate::ReadyLoad::find_rejects`]).
    Reject,
    /// The row of the table gives way; of the records the last is added.
    Replace,
    /// The row of the table gives way; records with the same key are an error, as their order says nothing.
    ReplaceOnce,
    /// The row or record with the greatest value of this column stays, of equal ones the record that comes last; NULL is
    /// less than all values.
    Newest(usize),
}

/// Which rows of a load are none of the table, and take those away that have their keys: the records of a change feed that delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteWhere {
    /// A column of the table.
    pub column: usize,
    /// The value that such rows have in it, as SQL compares values.
    pub value: Value,
}

impl DeleteWhere {
    /// Checks that a load into a table can have such rows.
    ///
    /// # Errors
    /// `Invalid` when it has no PRIMARY KEY or not this column, or rows of the table do not give way to those of the load.
    pub(crate) fn check(
        &self,
        table: &str,
        schema: &Schema,
        key: Option<&Key>,
        on_conflict: OnConflict,
    ) -> Result<()> {
        let gives_way = matches!(on_conflict, OnConflict::Replace | OnConflict::Newest(_));
        let why = match schema.columns().get(self.column) {
            _ if !key.is_some_and(Key::is_unique) => "it has no PRIMARY KEY, which tells the row",
            _ if !gives_way => "rows of the table stay where their key comes again",
            Some(column) if column.data_type.physical() == self.value.physical() => return Ok(()),
            _ => "it has another column there",
        };
        Err(Error::Invalid(format!("records cannot delete rows of table {table}: {why}")))
    }
}

/// What tells rows of a table apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableKeys {
    /// Its key.
    pub key: Option<Key>,
    /// Whether it has an index of UNIQUE.
    pub has_unique: bool,
}

/// What became of the rows of a load into a table with a PRIMARY KEY, or whose values of UNIQUE may come again: together as many as the load has, but for `deleted`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// Rows whose keys were not in the table.
    pub added: u64,
    /// Rows that took the place of one of the table.
    pub replaced: u64,
    /// Rows that were left out, as one of the table stayed.
    pub ignored: u64,
    /// Rows that gave way to another one of the load with the same key.
    pub twice: u64,
    /// Rows that were left out for one of the table or of the load, and are rejects ([`OnConflict::Reject`]).
    pub rejected: u64,
    /// Rows that are not in the table, as they say that their keys go.
    pub deleting: u64,
    /// Rows of the table that went by these; they are no rows of the load.
    pub deleted: u64,
}

impl KeyCounts {
    /// Rows of the load that are in the table now.
    pub fn kept(self) -> u64 {
        self.added + self.replaced
    }
}

/// What happens to keys that are there, as bytes; an error is none.
const IGNORE: u8 = 1;
const REPLACE: u8 = 2;
const NEWEST: u8 = 3;
const REJECT: u8 = 4;
const IGNORE_KEY: u8 = 5;
const IGNORE_UNIQUE: u8 = 6;

impl OnConflict {
    /// Appends the rule as bytes; nothing where such keys are an error.
    pub fn put(self, out: &mut Vec<u8>) {
        match self {
            OnConflict::Error => {}
            OnConflict::Ignore => out.push(IGNORE),
            OnConflict::IgnoreKey => out.push(IGNORE_KEY),
            OnConflict::IgnoreUnique(index) => {
                out.push(IGNORE_UNIQUE);
                put_varint(out, index as u64);
            }
            OnConflict::Reject => out.push(REJECT),
            OnConflict::Replace | OnConflict::ReplaceOnce => out.push(REPLACE),
            OnConflict::Newest(column) => {
                out.push(NEWEST);
                put_varint(out, column as u64);
            }
        }
    }

    /// Reads a rule that [`Self::put`] wrote, of a table with so many columns.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn read(reader: &mut ByteReader<'_>, columns: usize) -> Result<Self> {
        Ok(match reader.u8()? {
            IGNORE => OnConflict::Ignore,
            REJECT => OnConflict::Reject,
            IGNORE_KEY => OnConflict::IgnoreKey,
            // Whether the table has it is looked at when the load begins.
            IGNORE_UNIQUE => OnConflict::IgnoreUnique(reader.varint_u32()? as usize),
            REPLACE => OnConflict::Replace,
            NEWEST => match reader.varint_u32()? as usize {
                column if column < columns => OnConflict::Newest(column),
                column => {
                    let text = format!("the newest row by column {column} of {columns}");
                    return Err(Error::Corrupt(text));
                }
            },
            other => return Err(Error::Corrupt(format!("rule {other} for keys that are there"))),
        })
    }

    /// Whether the rows of the input are told whose keys come again: by an error, or as rejects.
    pub fn tells_rows(self) -> bool {
        matches!(self, OnConflict::Error | OnConflict::ReplaceOnce | OnConflict::Reject)
    }

    /// Whether no row of the table gives way to one of the load.
    pub fn only_adds(self) -> bool {
        match self {
            OnConflict::Error | OnConflict::Ignore | OnConflict::Reject => true,
            OnConflict::IgnoreKey | OnConflict::IgnoreUnique(_) => true,
            OnConflict::Replace | OnConflict::ReplaceOnce | OnConflict::Newest(_) => false,
        }
    }

    /// Whether rows are left out for values of UNIQUE.
    pub fn ignores_unique(self) -> bool {
        matches!(self, OnConflict::Ignore | OnConflict::IgnoreUnique(_))
    }

    /// What it says of the PRIMARY KEY alone.
    pub(crate) fn of_key(self) -> Self {
        match self {
            OnConflict::IgnoreKey => OnConflict::Ignore,
            OnConflict::IgnoreUnique(_) => OnConflict::Error,
            other => other,
        }
    }

    /// Checks that a table has what this speaks of; `schema` is that of the load.
    ///
    /// # Errors
    /// `Invalid` when it has no PRIMARY KEY, or not this column or index.
    pub(crate) fn check(self, table: &str, schema: &Schema, keys: &TableKeys) -> Result<()> {
        let has_key = keys.key.as_ref().is_some_and(Key::is_unique);
        let fits = match self {
            OnConflict::Error => true,
            OnConflict::Ignore => has_key || keys.has_unique,
            OnConflict::IgnoreUnique(index) => {
                schema.indexes().get(index).is_some_and(Index::is_unique)
            }
            _ => has_key,
        };
        if !fits {
            let or_unique = match self {
                OnConflict::Ignore | OnConflict::IgnoreUnique(_) => " and no UNIQUE",
                _ if keys.has_unique => {
                    ", and of values of UNIQUE only ignore can be said, or MERGE INTO"
                }
                _ => "",
            };
            return Err(Error::Invalid(format!(
                "cannot tell conflicts of keys in table {table}: it has no PRIMARY KEY{or_unique} (make it with one, or leave out what \
                 is to happen on conflicts)"
            )));
        }
        match self {
            OnConflict::Newest(column) if column >= schema.len() => Err(Error::Invalid(format!(
                "the newest row of table {table} is to be told by column {}, and it has {}",
                column + 1,
                schema.len()
            ))),
            _ => Ok(()),
        }
    }
}
