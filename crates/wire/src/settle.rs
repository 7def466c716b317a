//! Rows of a load that are left out for their keys: the server knows which, and their client which records they were.

use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};

/// What has the key of a row that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowIs {
    /// A row of the table.
    InTable,
    /// A row of the load that comes before it.
    Earlier,
}

/// Rows that are left out, by their numbers among those of the load in the order of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts {
    /// Rows of the load.
    of: u64,
    /// First row, rows, and what they are, of rows that follow each other.
    runs: Vec<(u64, u64, RowIs)>,
}

impl Conflicts {
    /// None of so many rows.
    pub fn new(of: u64) -> Self {
        Conflicts { of, runs: Vec::new() }
    }

    /// Rows of the load, those that are left out among them.
    pub fn of(&self) -> u64 {
        self.of
    }

    /// Adds a row behind all others.
    pub fn push(&mut self, number: u64, is: RowIs) {
        match self.runs.last_mut() {
            Some((first, rows, of)) if *of == is && *first + *rows == number => *rows += 1,
            _ => self.runs.push((number, 1, is)),
        }
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, RowIs)> + '_ {
        let each = |(first, rows, is): &(u64, u64, RowIs)| {
            let is = *is;
            (*first..*first + *rows).map(move |number| (number, is))
        };
        self.runs.iter().flat_map(each)
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(_, rows, _)| rows).sum()
    }

    /// The rows as bytes: rows of the load, and of each run the rows before it that are not left out, and twice its rows, and 1 where these came earlier.
    pub fn encode(&self) -> Vec<u8> {
        let (mut out, mut end) = (Vec::new(), 0);
        put_varint(&mut out, self.of);
        put_varint(&mut out, self.runs.len() as u64);
        for (first, rows, is) in &self.runs {
            put_varint(&mut out, first - end);
            put_varint(&mut out, rows << 1 | u64::from(*is == RowIs::Earlier));
            end = first + rows;
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let rows = reader.varint()?;
        let count = reader.count(2)?;
        let (mut runs, mut end) = (Vec::with_capacity(count), 0_u64);
        for _ in 0..count {
            let (gap, told) = (reader.varint()?, reader.varint()?);
            let (run, is) =
                (told >> 1, if told & 1 == 0 { RowIs::InTable } else { RowIs::Earlier });
            let first = end.checked_add(gap);
            let after = first.and_then(|first| first.checked_add(run));
            match (first, after) {
                (Some(first), Some(after)) if run > 0 && after <= rows => {
                    runs.push((first, run, is));
                    end = after;
                }
                _ => return Err(Error::Corrupt(format!("rows that are left out of {rows}"))),
            }
        }
        reader.finish()?;
        Ok(Conflicts { of: rows, runs })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_come_back_and_others_than_there_are_do_not() {
        let rows =
            [(3, RowIs::InTable), (4, RowIs::InTable), (5, RowIs::Earlier), (9, RowIs::Earlier)];
        let mut conflicts = Conflicts::new(10);
        rows.iter().for_each(|(number, is)| conflicts.push(*number, *is));
        let bytes = conflicts.encode();
        let same = Conflicts::decode(&bytes).unwrap();
        assert_eq!((same.rows().collect::<Vec<_>>(), same.count()), (rows.to_vec(), 4));
        assert!(Conflicts::decode(&Conflicts { of: 9, ..conflicts }.encode()).is_err());
        for cut in 0..bytes.len() {
            assert!(Conflicts::decode(&bytes[..cut]).is_err());
        }
        let mut none = Vec::new();
        put_varint(&mut none, u64::MAX);
        none.push(1);
        put_varint(&mut none, u64::MAX);
        put_varint(&mut none, u64::MAX);
        assert!(Conflicts::decode(&none).is_err());
    }
}
