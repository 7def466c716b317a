//! The loads of a server, as `coload loads` shows them.

use coload_store::{LoadId, ShareOf};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use crate::read_text;

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadStage {
    /// A client sends the load now.
    Arriving,
    /// No client sends; the same load goes on where this one ended.
    Waiting,
    /// Its rows are visible.
    Published,
}

/// One load of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadStatus {
    /// Id of the load, which `coload loads --abort` takes.
    pub id: LoadId,
    /// Name of the table.
    pub table: String,
    /// How far it is.
    pub state: LoadStage,
    /// Rows that were acknowledged, and are durable.
    pub rows: u64,
    /// Records that were set aside as rejects.
    pub rejects: u64,
    /// Bytes stored for it, or of its input when it is published.
    pub bytes: u64,
    /// Seconds since something was acknowledged last, or since it was published.
    pub idle_s: u64,
    /// Names of its first inputs.
    pub inputs: Vec<String>,
    /// Which share it is, if it is one of a load of several workers.
    pub share: Option<ShareStatus>,
}

/// A share of a load in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareStatus {
    /// Which share of which load, which `coload loads --abort` takes.
    pub of: ShareOf,
    /// Whether it is complete.
    pub is_complete: bool,
}

/// The statuses as bytes.
pub fn write_statuses(statuses: &[LoadStatus]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, statuses.len() as u64);
    for status in statuses {
        out.extend(status.id.as_u128().to_le_bytes());
        put_bytes(&mut out, status.table.as_bytes());
        out.push(match status.state {
            LoadStage::Arriving => 0,
            LoadStage::Waiting => 1,
            LoadStage::Published => 2,
        });
        for number in [status.rows, status.rejects, status.bytes, status.idle_s] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, status.inputs.len() as u64);
        for input in &status.inputs {
            put_bytes(&mut out, input.as_bytes());
        }
    }
    // Behind the list, so that it is the same where there are none.
    for (index, share) in (0_u64..).zip(statuses).filter_map(|(i, s)| Some((i, s.share?))) {
        put_varint(&mut out, index);
        out.extend(share.of.load.as_u128().to_le_bytes());
        put_varint(&mut out, share.of.number.into());
        put_varint(&mut out, share.of.count.into());
        out.push(u8::from(share.is_complete));
    }
    out
}

/// Reads what [`write_statuses`] wrote.
///
/// # Errors
/// `Corrupt` when it is none.
pub fn read_statuses(bytes: &[u8]) -> Result<Vec<LoadStatus>> {
    let mut reader = ByteReader::new(bytes);
    let count = reader.count(20)?;
    let mut statuses = Vec::with_capacity(count);
    for _ in 0..count {
        let id = LoadId::from_u128(reader.i128()? as u128);
        let table = read_text(&mut reader)?;
        let state = match reader.u8()? {
            0 => LoadStage::Arriving,
            1 => LoadStage::Waiting,
            _ => LoadStage::Published,
        };
        let (rows, rejects) = (reader.varint()?, reader.varint()?);
        let (bytes, idle_s) = (reader.varint()?, reader.varint()?);
        let count = reader.count(1)?;
        let inputs = (0..count).map(|_| read_text(&mut reader)).collect::<Result<_>>()?;
        let share = None;
        statuses.push(LoadStatus { id, table, state, rows, rejects, bytes, idle_s, inputs, share });
    }
    while reader.remaining() > 0 {
        let index = reader.varint()?;
        let load = LoadId::from_u128(reader.i128()? as u128);
        let of = ShareOf { load, number: reader.varint_u32()?, count: reader.varint_u32()? };
        let share = ShareStatus { of, is_complete: reader.u8()? != 0 };
        let status = usize::try_from(index).ok().and_then(|index| statuses.get_mut(index));
        let Some(status) = status else {
            return Err(Error::Corrupt(format!("a share of load {index} of {count}")));
        };
        status.share = Some(share);
    }
    reader.finish()?;
    Ok(statuses)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn statuses_come_back() {
        let status = LoadStatus {
            id: LoadId::from_u128(3),
            table: "t".into(),
            state: LoadStage::Waiting,
            rows: 1,
            rejects: 2,
            bytes: 3,
            idle_s: 4,
            inputs: vec!["a.csv".into(), "b.csv".into()],
            share: None,
        };
        let of = ShareOf { load: LoadId::from_u128(4), number: 2, count: 3 };
        let share = Some(ShareStatus { of, is_complete: true });
        let statuses = vec![status.clone(), LoadStatus { share, ..status }];
        assert_eq!(read_statuses(&write_statuses(&statuses)).unwrap(), statuses);
    }
}
