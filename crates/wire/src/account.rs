//! What became of the records of a partition.

use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};

use crate::FRAGMENTS_MAX;
use crate::block::FRAGMENT_ROWS_MAX;
use crate::rejects::Rejects;

/// Set in the number of an input whose records were filtered: their count follows. No load has so many
/// inputs.
const WITH_FILTERED: u32 = 1 << 31;

/// Most bytes of a [`InputShare`].
const INPUT_SHARE_BYTES: usize = 55;

/// What one partition has of one input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputShare {
    /// Number of the input.
    pub file: u32,
    /// Records that became rows of the partition.
    pub rows: u64,
    /// Records that were set aside as rejects.
    pub rejects: u64,
    /// Records that a filter left out.
    pub filtered: u64,
    /// Lines of the input that the partition covers.
    pub lines: u64,
    /// Byte of the input after the last record.
    pub end: u64,
}

/// What became of the records of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionAccount {
    /// Inputs it has records of, in order.
    pub files: Vec<InputShare>,
    /// Records that could not become rows.
    pub rejects: Rejects,
}

impl PartitionAccount {
    /// Rows of all inputs.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|f| f.rows).sum()
    }

    /// Records of all inputs that a filter left out.
    pub fn filtered(&self) -> u64 {
        self.files.iter().fold(0, |sum, f| f.filtered.saturating_add(sum))
    }

    /// Adds what the next piece has.
    pub fn add(&mut self, part: InputShare) {
        match self.files.last_mut() {
            Some(last) if last.file == part.file => {
                last.rows += part.rows;
                last.rejects += part.rejects;
                last.filtered += part.filtered;
                last.lines += part.lines;
                last.end = part.end;
            }
            _ => self.files.push(part),
        }
    }

    /// At least as many bytes as it has when it is encoded, so that a buffer for it need not grow.
    pub fn bytes_at_most(&self) -> usize {
        self.rejects.bytes() + INPUT_SHARE_BYTES * self.files.len() + 20
    }

    /// Appends the account, as the seal of a partition has it.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_files(out, &self.files);
        self.rejects.put(out);
    }

    /// Reads what [`Self::put`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none, or its rejects do not add up.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let files = read_files(reader)?;
        let rejects = Rejects::read(reader)?;
        let told: u64 = files.iter().fold(0, |sum, f| sum.saturating_add(f.rejects));
        if told != rejects.len() {
            return Err(Error::Corrupt("rejects of a partition do not add up".into()));
        }
        Ok(PartitionAccount { files, rejects })
    }
}

pub(crate) fn put_files(out: &mut Vec<u8>, files: &[InputShare]) {
    put_varint(out, files.len() as u64);
    for part in files {
        // Most loads have no filter, and old servers know of none.
        let with = if part.filtered > 0 { WITH_FILTERED } else { 0 };
        put_varint(out, u64::from(part.file | with));
        for number in [part.rows, part.rejects, part.lines, part.end] {
            put_varint(out, number);
        }
        if part.filtered > 0 {
            put_varint(out, part.filtered);
        }
    }
}

pub(crate) fn read_files(reader: &mut ByteReader<'_>) -> Result<Vec<InputShare>> {
    let count = reader.count(5)?;
    let mut files = Vec::with_capacity(count);
    for _ in 0..count {
        let number = reader.varint_u32()?;
        let mut part = InputShare {
            file: number & !WITH_FILTERED,
            rows: reader.varint()?,
            rejects: reader.varint()?,
            filtered: 0,
            lines: reader.varint()?,
            end: reader.varint()?,
        };
        if number & WITH_FILTERED != 0 {
            part.filtered = reader.varint()?;
        }
        files.push(part);
    }
    Ok(files)
}

/// The order of the rows of a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowsAre {
    /// That of the input.
    #[default]
    AsRead,
    /// That of the table's key; rows of equal keys are in that of the input.
    Sorted,
}

/// Ends a partition: how many blocks it has, and what became of its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seal {
    /// Number of the partition in the load.
    pub partition: u32,
    /// Blocks that it has.
    pub blocks: u64,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
    /// What became of its records.
    pub account: PartitionAccount,
    /// The order of its rows.
    pub rows_are: RowsAre,
}

impl Seal {
    /// The seal as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(self.account.bytes_at_most() + 5 * self.page_rows.len() + 30);
        put_varint(&mut out, u64::from(self.partition));
        put_varint(&mut out, self.blocks);
        put_varint(&mut out, self.page_rows.len() as u64);
        for rows in &self.page_rows {
            put_varint(&mut out, u64::from(*rows));
        }
        self.account.put(&mut out);
        out.push(match self.rows_are {
            RowsAre::AsRead => 0,
            RowsAre::Sorted => 1,
        });
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none, or its rows do not add up.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (partition, blocks) = (reader.varint_u32()?, reader.varint()?);
        let count = reader.count(1)?;
        if count > FRAGMENTS_MAX {
            return Err(Error::Corrupt(format!("a partition of {count} fragments")));
        }
        let page_rows = (0..count).map(|_| reader.varint_u32()).collect::<Result<Vec<_>>>()?;
        let account = PartitionAccount::read(&mut reader)?;
        let rows_are = match reader.u8()? {
            0 => RowsAre::AsRead,
            1 => RowsAre::Sorted,
            other => return Err(Error::Corrupt(format!("order {other} of a partition"))),
        };
        reader.finish()?;
        let rows: u64 = page_rows.iter().map(|r| u64::from(*r)).sum();
        let fits = |r: &u32| (1..=FRAGMENT_ROWS_MAX).contains(&(*r as usize));
        if rows != account.files.iter().fold(0, |sum, f| f.rows.saturating_add(sum))
            || !page_rows.iter().all(fits)
        {
            return Err(Error::Corrupt("rows of a partition do not add up".into()));
        }
        Ok(Seal { partition, blocks, page_rows, account, rows_are })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_source::{Reject, RejectedValue};
    use coload_types::Place;

    fn seal() -> Seal {
        let reject = Reject {
            place: Place { file: "a.csv".into(), line: 4, byte: 70, field: 2 },
            part: None,
            column: Some("price".into()),
            value: RejectedValue::Within(2..6),
            reason: "is not DECIMAL".into(),
            advice: "--null".into(),
            raw: b"1;12,5".to_vec(),
        };
        let mut account = PartitionAccount::default();
        let part = InputShare { file: 1, rows: 20, rejects: 1, filtered: 3, lines: 21, end: 900 };
        account.add(part);
        account.add(InputShare { rejects: 0, ..part });
        account.add(InputShare { file: 2, rejects: 0, filtered: 0, ..part });
        account.rejects.push(&reject);
        let rows_are = RowsAre::Sorted;
        Seal { partition: 7, blocks: 3, page_rows: vec![40, 20], account, rows_are }
    }

    #[test]
    fn a_seal_comes_back_and_one_that_does_not_add_up_is_refused() {
        assert_eq!(Seal::decode(&seal().encode()).unwrap(), seal());
        let mut wrong = seal();
        wrong.page_rows[0] = 41;
        assert!(Seal::decode(&wrong.encode()).is_err());
        let mut wrong = seal();
        wrong.account.rejects = Rejects::default();
        assert!(Seal::decode(&wrong.encode()).is_err());
        let bytes = seal().encode();
        for cut in 0..bytes.len() {
            assert!(Seal::decode(&bytes[..cut]).is_err());
        }
    }
}
