//! The end of a load into a cluster: one node is asked to commit what all leaves have prepared.

use coload_store::LoadId;
use coload_types::Result;
use coload_types::bytes::{ByteReader, put_varint};

/// A load that is to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The load.
    pub load: LoadId,
    /// Id of its table in the map.
    pub table: u64,
    /// Whether its inputs come once, so that nobody tries it again.
    pub comes_once: bool,
}

impl Commit {
    /// The message as bytes: 16 of the load, the table, and whether it comes once.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.load.as_u128().to_le_bytes().to_vec();
        put_varint(&mut out, self.table);
        out.push(u8::from(self.comes_once));
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let load = LoadId::from_u128(reader.i128()? as u128);
        let commit = Commit { load, table: reader.varint()?, comes_once: reader.u8()? != 0 };
        reader.finish()?;
        Ok(commit)
    }
}

/// A load that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version of the map that has it.
    pub version: u64,
    /// Rows that leaves had prepared; 0 when it was committed before.
    pub rows: u64,
    /// Whether it was committed before.
    pub already: bool,
}

impl Committed {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.version, self.rows, u64::from(self.already)] {
            put_varint(&mut out, number);
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (version, rows) = (reader.varint()?, reader.varint()?);
        let already = reader.varint()? != 0;
        reader.finish()?;
        Ok(Committed { version, rows, already })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_come_back_and_cut_ones_are_refused() {
        let commit = Commit { load: LoadId::from_u128(7), table: 300, comes_once: true };
        let committed = Committed { version: 900, rows: 70_000, already: true };
        let (a, b) = (commit.encode(), committed.encode());
        assert_eq!(Commit::decode(&a).unwrap(), commit);
        assert_eq!(Committed::decode(&b).unwrap(), committed);
        assert!((0..a.len()).all(|cut| Commit::decode(&a[..cut]).is_err()));
        assert!((0..b.len()).all(|cut| Committed::decode(&b[..cut]).is_err()));
    }
}
