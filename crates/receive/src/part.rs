//! A partition that is durable, as the journal of its load tells it.

use std::collections::BTreeMap;

use coload_store::{LoadJournal, SegmentEntry, SegmentFile};
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};
use coload_wire::{InputShare, PartitionAccount, Rejects};

/// Most bytes of rejects that a client is told of partitions that are durable.
pub const WELCOME_REJECTS_BYTES_MAX: usize = 8 << 20;

/// Bytes of a part beside its account, and of the checksum behind it.
const PART_BYTES: usize = 40;

/// A partition that is durable. Its rejects are in the journal only: a load may have many.
#[derive(Debug, Clone)]
pub struct Part {
    /// Inputs it has records of, in order.
    pub files: Vec<InputShare>,
    /// Records that were set aside as rejects.
    pub rejects: u64,
    /// Rows and bytes of its segment; no rows, no segment.
    pub rows: u64,
    /// Bytes of its segment.
    pub bytes: u64,
    /// Checksum of its segment's footer; `None` if an older program wrote it.
    pub seal: Option<u64>,
    /// Its entry, if this process wrote it.
    pub entry: Option<SegmentEntry>,
}

impl Part {
    /// A partition of which no segment is known.
    pub fn new(account: &PartitionAccount) -> Self {
        Part {
            files: account.files.clone(),
            rejects: account.rejects.len(),
            rows: account.rows(),
            bytes: 0,
            seal: None,
            entry: None,
        }
    }

    /// The part as bytes, with its account: rows, bytes, account, seal.
    pub fn encode(&self, account: &PartitionAccount) -> Vec<u8> {
        let mut out = Vec::with_capacity(account.bytes_at_most() + PART_BYTES);
        put_varint(&mut out, self.rows);
        put_varint(&mut out, self.bytes);
        account.put(&mut out);
        out.extend(self.seal.iter().flat_map(|seal| seal.to_le_bytes()));
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<(Self, PartitionAccount)> {
        let mut reader = ByteReader::new(bytes);
        let (rows, bytes) = (reader.varint()?, reader.varint()?);
        let account = PartitionAccount::read(&mut reader)?;
        let seal = if reader.remaining() == 0 { None } else { Some(reader.u64()?) };
        reader.finish()?;
        Ok((Part { rows, bytes, seal, ..Part::new(&account) }, account))
    }

    /// Records that a filter left out.
    pub fn filtered(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| file.filtered.saturating_add(sum))
    }

    /// What became of its records, without the rejects.
    pub fn account_without_rejects(&self) -> PartitionAccount {
        PartitionAccount { files: self.files.clone(), rejects: Rejects::default() }
    }

    /// The entry of its segment.
    ///
    /// # Errors
    /// `Corrupt` when the segment is not the one that was journalled.
    pub fn entry_in(&self, journal: &LoadJournal, number: u32) -> Result<SegmentEntry> {
        self.entry.clone().map_or_else(|| self.reopen(journal, number), Ok)
    }

    fn reopen(&self, journal: &LoadJournal, number: u32) -> Result<SegmentEntry> {
        let file = SegmentFile::open(&journal.existing_segment_path(number))?;
        let columns = file.stats()?;
        let other = self.seal.is_some_and(|seal| seal != file.seal());
        if other || file.rows() != self.rows || file.bytes() != self.bytes {
            return Err(Error::corrupt(file.path(), "another segment than its journal says"));
        }
        Ok(SegmentEntry {
            file: journal.segment_name(number),
            rows: self.rows,
            deleted: None,
            bytes: self.bytes,
            load: journal.id(),
            seal: Some(file.seal()),
            stored: None,
            trees: Vec::new(),
            columns,
        })
    }
}

/// The accounts of durable partitions that a client is told. One whose rejects are too many for one message
/// is left out, and comes again: the client counts its records, and what it sends of it is passed over.
pub fn told_parts(
    parts: &BTreeMap<u32, Part>,
    journal: &LoadJournal,
    mut room: usize,
) -> Result<Vec<(u32, PartitionAccount)>> {
    let mut told = Vec::with_capacity(parts.len());
    for (number, part) in parts {
        if part.rejects == 0 {
            told.push((*number, part.account_without_rejects()));
            continue;
        }
        if room == 0 {
            continue;
        }
        let (_, account) = Part::decode(&journal.part(*number)?)?;
        if account.rejects.bytes() > room {
            room = 0;
            continue;
        }
        room -= account.rejects.bytes();
        told.push((*number, account));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_ddl::parse_columns;
    use coload_source::{Reject, RejectedValue};
    use coload_store::{LoadId, LoadMode, LoadTarget, Store};
    use coload_types::Place;

    fn account(rejects: u64) -> PartitionAccount {
        let part = InputShare { rows: 3, rejects, lines: 3, end: 30, ..InputShare::default() };
        let mut account = PartitionAccount { files: vec![part], ..PartitionAccount::default() };
        for line in 0..rejects {
            let place = Place { file: "a.csv".into(), line, byte: 2 * line, field: 0 };
            let (reason, advice) = ("the record has 1 field".into(), "--ragged pad".into());
            let (value, raw) = (RejectedValue::Within(0..0), b"x".to_vec());
            let (part, column) = (None, None);
            account.rejects.push(&Reject { place, part, column, value, reason, advice, raw });
        }
        account
    }

    /// All rejects of all durable partitions went in one message to a client that went on: of many, no load could.
    #[test]
    fn a_client_is_told_of_no_more_rejects_than_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(folder.path().join("s")).unwrap();
        let schema = parse_columns("a BIGINT").unwrap();
        let target = LoadTarget { name: "t".into(), schema, mode: LoadMode::Append };
        let journal = store.begin_journal(LoadId::from_u128(5), &target, b"what".to_vec()).unwrap();
        let accounts = [account(10), account(0), account(1_000), account(0), account(1)];
        let mut parts = BTreeMap::new();
        for (number, account) in (0..).zip(&accounts) {
            let part = Part::new(account);
            journal.put_part(number, part.encode(account)).unwrap();
            let (read, same) = Part::decode(&journal.part(number).unwrap()).unwrap();
            assert_eq!((&same, read.rejects), (account, account.rejects.len()));
            parts.insert(number, part);
        }
        let numbers = |room| -> Vec<u32> {
            let told = told_parts(&parts, &journal, room).unwrap();
            assert!(told.iter().all(|(n, told)| told.files == accounts[*n as usize].files));
            told.into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(1 << 20), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(1_000), [0, 1, 3]);
        let told = told_parts(&parts, &journal, 1 << 20).unwrap();
        assert_eq!(told[2].1.rejects, accounts[2].rejects);
    }
}
