//! Who a load is, and what it left behind in the manifest.
//!
//! A table keeps the records of up to [`LOADS_KEPT_MAX`] of its last loads, and the count of all. Those before are
//! in files of their own as long as they are remembered: see `older_loads`.

use std::fmt;
use std::str::FromStr;

use coload_types::{Error, Result};

/// Most load records of a table that the manifest has; when there are more, the older half goes.
pub const LOADS_KEPT_MAX: usize = 1_000;
/// Most input names a load record keeps; the rest is only counted.
pub const INPUTS_KEPT_MAX: usize = 16;
/// Most bytes of an input name that a load record keeps.
pub const INPUT_NAME_BYTES_MAX: usize = 512;

/// The id of one load: 128 random bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(u128);

impl LoadId {
    /// A new random id.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|e| Error::Unavailable(format!("cannot make a load id: {e}")))?;
        Ok(LoadId(u128::from_le_bytes(bytes)))
    }

    /// The id with these bits.
    pub const fn from_u128(bits: u128) -> Self {
        LoadId(bits)
    }

    /// All 128 bits as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for LoadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for LoadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadId({self})")
    }
}

impl FromStr for LoadId {
    type Err = Error;

    /// Exactly 32 lower-case hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 32
            && text.bytes().all(digits)
            && let Ok(bits) = u128::from_str_radix(text, 16)
        {
            return Ok(LoadId(bits));
        }
        Err(Error::Invalid(format!("{text:?} is not a load id (32 hexadecimal digits)")))
    }
}

/// What a load did to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadKind {
    /// Files added to the table.
    Append,
    /// Files in place of what the table held.
    Replace,
    /// Files into a new table.
    Create,
    /// Rows of an SQL INSERT.
    Insert,
    /// Rows of an SQL UPDATE or MERGE, in the place of others.
    Update,
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadKind::Append => "append",
            LoadKind::Replace => "replace",
            LoadKind::Create => "create",
            LoadKind::Insert => "insert",
            LoadKind::Update => "update",
        })
    }
}

/// What is remembered of one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRecord {
    /// The load: names its segments, and is never used again.
    pub id: LoadId,
    /// What it is known by when the same load comes again; its id, if it comes from nowhere twice.
    pub key: LoadId,
    /// The version that showed it first; 0 if an older program published it.
    pub version: u64,
    /// Whether the table still holds its rows: TRUNCATE and loads that replace end that.
    pub held: bool,
    /// What the load did to its table.
    pub kind: LoadKind,
    /// When it began, microseconds since the epoch.
    pub started_us: i64,
    /// When it was ready to be published, microseconds since the epoch.
    pub finished_us: i64,
    /// Names of its first inputs, at most [`INPUTS_KEPT_MAX`]; see [`LoadRecord::set_inputs`].
    pub inputs: Vec<String>,
    /// How many more inputs it had than `inputs` names.
    pub inputs_more: u64,
    /// Rows that it added to its table.
    pub rows: u64,
    /// Records that were set aside as rejects.
    pub rejects: u64,
    /// Bytes of its inputs as they are stored, compressed ones included.
    pub bytes: u64,
}

impl LoadRecord {
    /// A record without inputs and counts, for the caller to fill in.
    pub fn new(id: LoadId, kind: LoadKind) -> Self {
        LoadRecord {
            id,
            key: id,
            version: 0,
            held: true,
            kind,
            started_us: 0,
            finished_us: 0,
            inputs: Vec::new(),
            inputs_more: 0,
            rows: 0,
            rejects: 0,
            bytes: 0,
        }
    }

    /// Keeps the first names, each cut to [`INPUT_NAME_BYTES_MAX`] (the end of a path says more
    /// than its start, so the start is cut), and counts the rest.
    pub fn set_inputs<S: AsRef<str>>(&mut self, names: impl ExactSizeIterator<Item = S>) {
        let count = names.len();
        self.inputs = names.take(INPUTS_KEPT_MAX).map(|n| shorten_name(n.as_ref())).collect();
        self.inputs_more = (count - self.inputs.len()) as u64;
    }
}

/// The end of a name, with an ellipsis for what was cut.
fn shorten_name(name: &str) -> String {
    if name.len() <= INPUT_NAME_BYTES_MAX {
        return name.to_owned();
    }
    const MARK: &str = "...";
    let mut start = name.len() - (INPUT_NAME_BYTES_MAX - MARK.len());
    while !name.is_char_boundary(start) {
        start += 1;
    }
    format!("{MARK}{}", &name[start..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_load_id_is_read_back_as_written() {
        let id = LoadId::random().unwrap();
        assert_eq!(id.to_string().parse::<LoadId>().unwrap(), id);
        assert_eq!(LoadId::from_u128(0xab).to_string(), "000000000000000000000000000000ab");
        for bad in
            ["", "ab", "+00000000000000000000000000000ab", "000000000000000000000000000000AB"]
        {
            assert!(bad.parse::<LoadId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn input_names_are_capped_and_the_rest_is_counted() {
        let mut record = LoadRecord::new(LoadId::from_u128(1), LoadKind::Append);
        let mut names = vec![String::from("a.csv"); INPUTS_KEPT_MAX + 5];
        names[1] = "é".repeat(INPUT_NAME_BYTES_MAX);
        record.set_inputs(names.iter());
        assert_eq!(record.inputs.len(), INPUTS_KEPT_MAX);
        assert_eq!(record.inputs_more, 5);
        assert!(record.inputs[1].len() <= INPUT_NAME_BYTES_MAX);
        assert!(record.inputs[1].starts_with("...é"));
    }
}
