//! A partition that is durable, as the journal of its load tells it.

use coload_format::bytes::{ByteReader, put_varint};
use coload_format::{Error, Result};
use coload_load::wire::PartitionAccount;
use coload_store::{ColumnStats, LoadJournal, SegmentEntry, SegmentFile, column_stats};

/// A partition that is durable.
#[derive(Debug, Clone)]
pub struct Part {
    /// What became of its records; its rejects are in the journal only.
    pub account: PartitionAccount,
    /// Records rejected.
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
    /// The part as bytes: rows, bytes, account, seal.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows);
        put_varint(&mut out, self.bytes);
        self.account.put(&mut out);
        out.extend(self.seal.iter().flat_map(|seal| seal.to_le_bytes()));
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (rows, bytes) = (reader.varint()?, reader.varint()?);
        let account = PartitionAccount::read(&mut reader)?;
        let seal = if reader.remaining() == 0 { None } else { Some(reader.u64()?) };
        reader.finish()?;
        let rejects = account.rejects.len() as u64;
        Ok(Part { account, rejects, rows, bytes, seal, entry: None })
    }

    /// The part without its rejects: a load may have many.
    pub fn without_rejects(mut self) -> Self {
        self.account.rejects = Vec::new();
        self
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
        let columns = (0..file.column_count())
            .map(|c| Ok(column_stats(&file.column(c)?.index().pages, file.dictionary(c)?)))
            .collect::<Result<Vec<ColumnStats>>>()?;
        let other = self.seal.is_some_and(|seal| seal != file.seal());
        if other || file.rows() != self.rows || file.bytes() != self.bytes {
            return Err(Error::corrupt(file.path(), "another segment than its journal says"));
        }
        Ok(SegmentEntry {
            file: journal.segment_name(number),
            rows: self.rows,
            bytes: self.bytes,
            load: journal.id(),
            seal: Some(file.seal()),
            columns,
        })
    }
}
