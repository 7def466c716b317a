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

/// What a node is told to look at: the map of the cluster, and perhaps whether it works on a load for which it holds a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The load that is asked for.
    pub held_for: Option<LoadId>,
}

impl Look {
    /// The message as bytes: nothing, or the 16 of the load.
    pub fn encode(&self) -> Vec<u8> {
        self.held_for.map_or(Vec::new(), |load| load.as_u128().to_le_bytes().to_vec())
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let held_for = match reader.remaining() {
            0 => None,
            _ => Some(LoadId::from_u128(reader.i128()? as u128)),
        };
        reader.finish()?;
        Ok(Look { held_for })
    }
}

/// What a node says when it has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// The version of the map that is done.
    pub version: u64,
    /// Whether it works on the load that it was asked for.
    pub holds: bool,
}

impl Looked {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.version);
        out.push(u8::from(self.holds));
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let looked = Looked { version: reader.varint()?, holds: reader.u8()? != 0 };
        reader.finish()?;
        Ok(looked)
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
        for held_for in [None, Some(LoadId::from_u128(7))] {
            assert_eq!(Look::decode(&Look { held_for }.encode()).unwrap(), Look { held_for });
        }
        assert!(Look::decode(&[1]).is_err());
        let looked = Looked { version: 300, holds: true };
        assert_eq!(Looked::decode(&looked.encode()).unwrap(), looked);
        assert!(Looked::decode(&looked.encode()[..2]).is_err());
    }
}
