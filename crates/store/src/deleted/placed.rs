//! Rows of a table that are told by their places: the number of the segment in a version, and of the row in it.
//!
//! ```text
//!   0 all rows | 1 count: number of the segment, bytes: a set in the standard format of Roaring
//! ```
//!
//! Who tells them has read the version at another machine and knows no names of files. Bytes of others are hostile.

use std::collections::BTreeMap;

use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};
use roaring::RoaringBitmap;

use super::Deletions;
use crate::manifest::TableEntry;
use crate::snapshot::Snapshot;

/// Rows of a table by their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacedRows {
    /// All that are there.
    All,
    /// Sets of rows, by the numbers of segments.
    Some(BTreeMap<u32, RoaringBitmap>),
}

impl Default for PlacedRows {
    fn default() -> Self {
        PlacedRows::Some(BTreeMap::new())
    }
}

impl PlacedRows {
    /// Adds a row. `false` if it was there already.
    pub fn insert(&mut self, segment: u32, row: u32) -> bool {
        match self {
            PlacedRows::All => false,
            PlacedRows::Some(sets) => sets.entry(segment).or_default().insert(row),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        matches!(self, PlacedRows::Some(sets) if sets.is_empty())
    }

    /// The rows as bytes.
    ///
    /// # Errors
    /// None: bytes in memory take all that is written.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let PlacedRows::Some(sets) = self else { return Ok(vec![0]) };
        let mut out = vec![1];
        put_varint(&mut out, sets.len() as u64);
        for (segment, rows) in sets {
            put_varint(&mut out, u64::from(*segment));
            put_bytes(&mut out, &set_bytes(rows)?);
        }
        Ok(out)
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let rows = match reader.u8()? {
            0 => PlacedRows::All,
            1 => {
                let mut sets = BTreeMap::new();
                for _ in 0..reader.count(2)? {
                    let segment = reader.varint_u32()?;
                    sets.insert(segment, read_set(&mut reader)?);
                }
                PlacedRows::Some(sets)
            }
            other => return Err(Error::Corrupt(format!("rows that are told in way {other}"))),
        };
        reader.finish()?;
        Ok(rows)
    }

    /// The rows in a version of the table.
    ///
    /// # Errors
    /// `Corrupt` when the version has no such rows.
    pub fn deletions(&self, snapshot: &Snapshot, table: &TableEntry) -> Result<Deletions> {
        let mut deletions = Deletions::default();
        match self {
            PlacedRows::All => {
                for segment in &table.segments {
                    let deleted = snapshot.deleted_rows(segment)?;
                    deletions.insert_all(segment, deleted.as_deref())?;
                }
            }
            PlacedRows::Some(sets) => {
                for (number, rows) in sets {
                    let segment = table.segments.get(*number as usize).ok_or_else(|| {
                        Error::Corrupt(format!(
                            "rows of segment {number} of table {}, which has {}",
                            table.name,
                            table.segments.len()
                        ))
                    })?;
                    deletions.extend(segment, rows.iter().map(u64::from))?;
                }
            }
        }
        Ok(deletions)
    }
}

impl Deletions {
    /// The rows as bytes: count; the name of a segment's file, bytes: a set in the standard format of Roaring.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<()> {
        put_varint(out, self.segments.len() as u64);
        for (file, rows) in &self.segments {
            put_bytes(out, file.as_bytes());
            put_bytes(out, &set_bytes(rows)?);
        }
        Ok(())
    }

    /// Reads what [`Self::put`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let mut segments = BTreeMap::new();
        for _ in 0..reader.count(2)? {
            let file = String::from_utf8(reader.bytes()?.to_vec())
                .map_err(|_| Error::Corrupt("a name of a segment that is not UTF-8".into()))?;
            segments.insert(file, read_set(reader)?);
        }
        Ok(Deletions { segments })
    }
}

fn set_bytes(rows: &RoaringBitmap) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    rows.serialize_into(&mut bytes)
        .map_err(|e| Error::Refused(format!("internal error: a set of rows: {e}")))?;
    Ok(bytes)
}

fn read_set(reader: &mut ByteReader<'_>) -> Result<RoaringBitmap> {
    let rows = RoaringBitmap::deserialize_from(reader.bytes()?)
        .map_err(|e| Error::Corrupt(format!("a set of rows: {e}")))?;
    match rows.is_empty() {
        true => Err(Error::Corrupt("a set of no rows".into())),
        false => Ok(rows),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_come_back_and_cut_ones_are_refused() {
        let mut rows = PlacedRows::default();
        assert!(rows.is_empty() && rows.insert(3, 70_000) && !rows.insert(3, 70_000));
        assert!(rows.insert(0, 5) && rows.insert(3, 1));
        for rows in [rows, PlacedRows::All, PlacedRows::default()] {
            let bytes = rows.encode().unwrap();
            assert_eq!(PlacedRows::decode(&bytes).unwrap(), rows);
            assert!((0..bytes.len()).all(|cut| PlacedRows::decode(&bytes[..cut]).is_err()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = PlacedRows::decode(&bytes);
        }
    }
}
