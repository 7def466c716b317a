//! What single nodes say beside the map: which loads they have prepared, and how far they have come.
//!
//! ```text
//!   PLACE/prepared/<load>-<node>     the node has its rows of the load, durable, and keeps them until the map decides
//!   PLACE/prepared/<load>-<node>.fits  they fit the table, which is held for the load; or why they do not
//!   PLACE/nodes/<node>.applied       the node has done all events up to this version
//! ```
//!
//! Each is written by the node that it is of. A mark tells the version of the map that the node knew then: one that was
//! made before a load was given up does not count when the load is tried again.

use coload_store::LoadId;
use coload_types::bytes::{ByteReader, checksum, put_bytes, put_varint};
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
    /// Whether what is in the table may forbid them.
    pub fits: Fits,
}

/// Whether rows that are prepared fit their table, whatever is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// They do.
    Always,
    /// The leaf says so, once the table is held.
    IfHeld,
}

/// What a node says of a load that it has prepared, and for which its table is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The version that holds the table.
    pub since: u64,
    /// Why its rows do not fit the table, if they do not.
    pub refused: Option<String>,
}

fn prepared_name(load: LoadId, node: NodeId) -> String {
    format!("prepared/{load}-{node}")
}

fn verdict_name(load: LoadId, node: NodeId) -> String {
    format!("prepared/{load}-{node}.fits")
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
        let Prepared { version, table, rows, fits } = mark;
        let numbers = [version, table, rows, u64::from(fits == Fits::IfHeld)];
        self.place().replace(&prepared_name(load, node), &sealed(&numbers))
    }

    /// What a node says of a load that it has prepared.
    ///
    /// # Errors
    /// As [`Self::put_prepared`]; `Corrupt` when it is damaged.
    pub fn prepared(&self, load: LoadId, node: NodeId) -> Result<Option<Prepared>> {
        let Some(bytes) = self.place().read(&prepared_name(load, node))? else { return Ok(None) };
        let [version, table, rows, held] = unsealed(&bytes)?;
        let fits = if held == 0 { Fits::Always } else { Fits::IfHeld };
        Ok(Some(Prepared { version, table, rows, fits }))
    }

    /// Says whether the rows of a load fit its table, which is held.
    ///
    /// # Errors
    /// As [`Self::put_prepared`].
    pub fn put_verdict(&self, load: LoadId, node: NodeId, verdict: &Verdict) -> Result<()> {
        let mut out = Vec::new();
        put_varint(&mut out, verdict.since);
        put_bytes(&mut out, verdict.refused.as_deref().unwrap_or_default().as_bytes());
        let sum = checksum(&out);
        out.extend(sum.to_le_bytes());
        self.place().replace(&verdict_name(load, node), &out)
    }

    /// What a node says of whether the rows of a load fit.
    ///
    /// # Errors
    /// As [`Self::prepared`].
    pub fn verdict(&self, load: LoadId, node: NodeId) -> Result<Option<Verdict>> {
        let Some(bytes) = self.place().read(&verdict_name(load, node))? else { return Ok(None) };
        let wrong = || Error::Corrupt("what a node of the cluster says of a load".into());
        let (body, sum) = bytes.split_at(bytes.len().checked_sub(8).ok_or_else(wrong)?);
        if checksum(body).to_le_bytes() != *sum {
            return Err(wrong());
        }
        let mut reader = ByteReader::new(body);
        let since = reader.varint()?;
        let text = String::from_utf8_lossy(reader.bytes()?).into_owned();
        reader.finish()?;
        Ok(Some(Verdict { since, refused: (!text.is_empty()).then_some(text) }))
    }

    /// Takes back what was said of a load: it is published, or given up.
    ///
    /// # Errors
    /// As [`Self::put_prepared`].
    pub fn forget_prepared(&self, load: LoadId, node: NodeId) -> Result<()> {
        self.place().remove(&verdict_name(load, node))?;
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
