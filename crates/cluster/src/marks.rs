//! What single nodes say beside the map: which loads they have prepared, and how far they have come.
//!
//! ```text
//!   PLACE/prepared/<load>-<node>     the node has its rows of the load, durable, and keeps them until the map decides
//!   PLACE/nodes/<node>.applied       the node has done all events up to this version
//! ```
//!
//! Each is written by the node that it is of. A mark tells the version of the map that the node knew then: one that was
//! made before a load was given up does not count when the load is tried again.

use coload_store::LoadId;
use coload_types::bytes::{ByteReader, checksum, put_varint};
use coload_types::{Error, Result};

use crate::map::NodeId;
use crate::maps::Maps;

/// What a node says of a load that it has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// Version of the map that it knew.
    pub version: u64,
    /// Id of the table.
    pub table: u64,
    /// Rows that it has.
    pub rows: u64,
}

fn prepared_name(load: LoadId, node: NodeId) -> String {
    format!("prepared/{load}-{node}")
}

fn applied_name(node: NodeId) -> String {
    format!("nodes/{node}.applied")
}

fn sealed(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.iter().for_each(|number| put_varint(&mut out, *number));
    let sum = checksum(&out);
    out.extend(sum.to_le_bytes());
    out
}

fn unsealed<const N: usize>(bytes: &[u8]) -> Result<[u64; N]> {
    let wrong = || Error::Corrupt("a mark of a node of the cluster".into());
    let length = bytes.len().checked_sub(8).ok_or_else(wrong)?;
    let (body, sum) = bytes.split_at(length);
    if checksum(body).to_le_bytes() != *sum {
        return Err(wrong());
    }
    let mut reader = ByteReader::new(body);
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = reader.varint()?;
    }
    reader.finish()?;
    Ok(numbers)
}

impl Maps {
    /// Says that a node has prepared a load; durable when this returns.
    ///
    /// # Errors
    /// `Unavailable` when the place is away.
    pub fn put_prepared(&self, load: LoadId, node: NodeId, mark: Prepared) -> Result<()> {
        let Prepared { version, table, rows } = mark;
        self.place().replace(&prepared_name(load, node), &sealed(&[version, table, rows]))
    }

    /// What a node says of a load that it has prepared.
    ///
    /// # Errors
    /// As [`Self::put_prepared`]; `Corrupt` when it is damaged.
    pub fn prepared(&self, load: LoadId, node: NodeId) -> Result<Option<Prepared>> {
        let Some(bytes) = self.place().read(&prepared_name(load, node))? else { return Ok(None) };
        let [version, table, rows] = unsealed(&bytes)?;
        Ok(Some(Prepared { version, table, rows }))
    }

    /// Takes back what was said of a load: it is published, or given up.
    ///
    /// # Errors
    /// As [`Self::put_prepared`].
    pub fn forget_prepared(&self, load: LoadId, node: NodeId) -> Result<()> {
        self.place().remove(&prepared_name(load, node))
    }

    /// Says how far a node has come.
    ///
    /// # Errors
    /// As [`Self::put_prepared`].
    pub fn put_applied(&self, node: NodeId, version: u64) -> Result<()> {
        self.place().replace(&applied_name(node), &sealed(&[version]))
    }

    /// How far a node says that it has come; 0 when it has said nothing.
    ///
    /// # Errors
    /// As [`Self::prepared`].
    pub fn applied(&self, node: NodeId) -> Result<u64> {
        match self.place().read(&applied_name(node))? {
            None => Ok(0),
            Some(bytes) => Ok(unsealed::<1>(&bytes)?[0]),
        }
    }
}
