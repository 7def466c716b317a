//! Messages at the beginning and the end of a load, and what the server tells of itself meanwhile.

use coload_ddl::Schema;
use coload_store::{KeyCounts, LoadId};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use coload_source::{Mended, Mending, Reject};

use crate::account::{put_files, read_files};
use crate::description::read_began;
use crate::legs::{put_columns, read_columns};
use crate::rejects::{put_some, read_some};
use crate::share::SharesDone;
use crate::{InputShare, PartitionAccount, read_text};

fn put_id(out: &mut Vec<u8>, id: LoadId) {
    out.extend(id.as_u128().to_le_bytes());
}

fn read_id(reader: &mut ByteReader<'_>) -> Result<LoadId> {
    Ok(LoadId::from_u128(reader.i128()? as u128))
}

/// One more connection of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// Id of the load, as the welcome told it.
    pub id: LoadId,
    /// Which attempt of the client.
    pub attempt: u64,
}

impl Join {
    /// The message as bytes: 16 of the id and 8 of the attempt.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        put_id(&mut out, self.id);
        out.extend(self.attempt.to_le_bytes());
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let join = Join { id: read_id(&mut reader)?, attempt: reader.u64()? };
        reader.finish()?;
        Ok(join)
    }
}

/// Where a load goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Welcome {
    /// Id of the load, by which further connections join it.
    pub id: LoadId,
    /// Which attempt of the client this is; further connections name it.
    pub attempt: u64,
    /// Partitions that are durable, in order.
    pub parts: Vec<(u32, PartitionAccount)>,
    /// Bytes of each input that are durable, for `pipe` and `seq`.
    pub stored: Vec<u64>,
    /// When the load began, microseconds since the epoch: its first attempt. Told to clients that said when they
    /// began.
    pub began_us: Option<i64>,
    /// Columns of the table, if they became wider since the load began. Told to clients that can go on then.
    pub columns: Option<Schema>,
    /// With those: partitions of which the text of columns that became text is wanted.
    pub reread_partitions: u32,
}

impl Welcome {
    /// The welcome as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_id(&mut out, self.id);
        out.extend(self.attempt.to_le_bytes());
        put_varint(&mut out, self.parts.len() as u64);
        for (number, account) in &self.parts {
            put_varint(&mut out, u64::from(*number));
            account.put(&mut out);
        }
        put_varint(&mut out, self.stored.len() as u64);
        for bytes in &self.stored {
            put_varint(&mut out, *bytes);
        }
        if let Some(time) = self.began_us {
            out.extend(time.to_le_bytes());
            if let Some(columns) = &self.columns {
                put_columns(&mut out, columns);
                put_varint(&mut out, u64::from(self.reread_partitions));
            }
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (id, attempt) = (read_id(&mut reader)?, reader.u64()?);
        let count = reader.count(3)?;
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            parts.push((reader.varint_u32()?, PartitionAccount::read(&mut reader)?));
        }
        let count = reader.count(1)?;
        let stored = (0..count).map(|_| reader.varint()).collect::<Result<_>>()?;
        let began_us = match reader.remaining() {
            0 => None,
            _ => Some(read_began(&mut reader)?),
        };
        let (columns, reread_partitions) = match reader.remaining() {
            0 => (None, 0),
            _ => (Some(read_columns(&mut reader)?), reader.varint_u32()?),
        };
        reader.finish()?;
        Ok(Welcome { id, attempt, parts, stored, began_us, columns, reread_partitions })
    }
}

/// The client has sent all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Partitions of the load.
    pub partitions: u32,
    /// Records of all inputs.
    pub records: u64,
    /// Records of these that became rows.
    pub rows: u64,
    /// Bytes of text that were read.
    pub bytes: u64,
    /// When the client began, microseconds since the epoch.
    pub started_us: i64,
}

impl Finish {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, u64::from(self.partitions));
        for number in [self.records, self.rows, self.bytes] {
            put_varint(&mut out, number);
        }
        out.extend(self.started_us.to_le_bytes());
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let finish = Finish {
            partitions: reader.varint_u32()?,
            records: reader.varint()?,
            rows: reader.varint()?,
            bytes: reader.varint()?,
            started_us: reader.u64()? as i64,
        };
        reader.finish()?;
        Ok(finish)
    }
}

/// What a load did, as the server tells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// The load's id, 0 when not told.
    pub id: u128,
    /// Set when the load was published before: nothing was loaded now.
    pub already: bool,
    /// Version of the store that shows the rows.
    pub version: u64,
    /// Rows that the table has got.
    pub rows: u64,
    /// Records that were set aside as rejects.
    pub rejects: u64,
    /// Bytes of the segments.
    pub bytes_stored: u64,
    /// Number of segments that were published.
    pub segments: u64,
    /// CPU time of the server's part of the load, nanoseconds.
    pub cpu_ns: u64,
    /// Most memory that the server's process held, bytes.
    pub peak_memory: u64,
    /// For `pipe` and `seq`: what became of the records of each input.
    pub files: Vec<InputShare>,
    /// For `pipe` and `seq`: the first rejects.
    pub first_rejects: Vec<Reject>,
    /// What else there is to say, in words: what the merge of small segments did, empty if nothing; of a load that was
    /// published before, when, and what its table holds.
    pub note: String,
    /// For `pipe` and `seq`: bytes of the file of rejects, which the client fetches.
    pub rejects_bytes: u64,
    /// For `pipe` and `seq`: records of each of `files` that were mended, up to the last with some.
    pub mended: Vec<Mended>,
    /// For a share of a load of several workers: what became of all of them.
    pub shares: Option<SharesDone>,
    /// What became of the rows by their keys, where the client said what is to; a share has none.
    pub keys: Option<KeyCounts>,
}

impl Done {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.id.to_le_bytes());
        out.push(u8::from(self.already) | if self.keys.is_some() { KEYS } else { 0 });
        for number in [
            self.version,
            self.rows,
            self.rejects,
            self.bytes_stored,
            self.segments,
            self.cpu_ns,
            self.peak_memory,
        ] {
            put_varint(&mut out, number);
        }
        put_files(&mut out, &self.files);
        put_some(&mut out, &self.first_rejects);
        put_bytes(&mut out, self.note.as_bytes());
        put_varint(&mut out, self.rejects_bytes);
        put_varint(&mut out, self.mended.len() as u64);
        self.mended.iter().for_each(|mended| put_mended(&mut out, mended));
        if let Some(keys) = &self.keys {
            put_keys(&mut out, *keys);
        }
        if let Some(shares) = &self.shares {
            shares.put(&mut out);
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let id = reader.i128()? as u128;
        let flags = reader.u8()?;
        let mut done = Done {
            id,
            already: flags & !KEYS != 0,
            version: reader.varint()?,
            rows: reader.varint()?,
            rejects: reader.varint()?,
            bytes_stored: reader.varint()?,
            segments: reader.varint()?,
            cpu_ns: reader.varint()?,
            peak_memory: reader.varint()?,
            files: read_files(&mut reader)?,
            first_rejects: read_some(&mut reader)?,
            note: read_text(&mut reader)?,
            rejects_bytes: reader.varint()?,
            mended: Vec::new(),
            shares: None,
            keys: None,
        };
        let count = reader.count(MENDED_BYTES_MIN)?;
        done.mended = (0..count).map(|_| read_mended(&mut reader)).collect::<Result<_>>()?;
        if flags & KEYS != 0 {
            done.keys = Some(read_keys(&mut reader)?);
        }
        if reader.remaining() > 0 {
            done.shares = Some(SharesDone::read(&mut reader)?);
        }
        reader.finish()?;
        Ok(done)
    }
}

/// Flag beside that of a load that was published before: what became of the rows by their keys is told. Who does not say what is to
/// become of them is not told.
const KEYS: u8 = 2;

pub(crate) fn put_keys(out: &mut Vec<u8>, keys: KeyCounts) {
    let KeyCounts { added, replaced, ignored, twice, rejected, deleting, deleted } = keys;
    for count in [added, replaced, ignored, twice, rejected, deleting, deleted] {
        put_varint(out, count);
    }
}

pub(crate) fn read_keys(reader: &mut ByteReader<'_>) -> Result<KeyCounts> {
    Ok(KeyCounts {
        added: reader.varint()?,
        replaced: reader.varint()?,
        ignored: reader.varint()?,
        twice: reader.varint()?,
        rejected: reader.varint()?,
        deleting: reader.varint()?,
        deleted: reader.varint()?,
    })
}

/// Bytes of what was mended in an input where nothing was: a count for each kind, and no places.
const MENDED_BYTES_MIN: usize = Mending::ALL.len() + 1;

fn put_mended(out: &mut Vec<u8>, mended: &Mended) {
    for mending in Mending::ALL {
        put_varint(out, mended.count(mending));
    }
    put_varint(out, mended.first.len() as u64);
    for (mending, line, offset) in &mended.first {
        out.push(*mending as u8);
        put_varint(out, *line);
        put_varint(out, *offset);
    }
}

fn read_mended(reader: &mut ByteReader<'_>) -> Result<Mended> {
    let mut counts = [0; Mending::ALL.len()];
    for count in &mut counts {
        *count = reader.varint()?;
    }
    let mut first = Vec::new();
    for _ in 0..reader.count(3)? {
        let kind = usize::from(reader.u8()?);
        let Some(mending) = Mending::ALL.get(kind) else {
            return Err(Error::Corrupt(format!("a record mended in way {kind}")));
        };
        first.push((*mending, reader.varint()?, reader.varint()?));
    }
    Ok(Mended::new(counts, first))
}

/// What the server tells with each acknowledgement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerLoad {
    /// Share of the server's cores that are busy with anything, 0 to 1.
    pub cpu_busy: f32,
    /// Cores that loads may use.
    pub load_cpu: f32,
    /// Bytes that wait to be transformed or merged.
    pub backlog_bytes: u64,
    /// Number of queries that run on the server now.
    pub queries: u32,
    /// Their latency of late, microseconds; 0 when not known.
    pub query_latency_us: u64,
    /// CPU nanoseconds of the load's work so far.
    pub cpu_ns: u64,
    /// Nanoseconds a row that transforming a plain column takes here: column and cost, those measured.
    pub plain_costs: Vec<(u32, f32)>,
    /// Nanoseconds a wire byte that taking a placed column takes here; 0 until measured.
    pub placed_cost: f32,
    /// Bytes of the largest text of a fragment that is taken here; 0 when none is. Told to clients that may send them.
    pub text_bytes_max: u64,
    /// Share of a core that a thread of loads gets; 0 until measured. Told to the same clients.
    pub core_share: f32,
}

impl ServerLoad {
    /// The load as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.cpu_busy.to_le_bytes());
        out.extend(self.load_cpu.to_le_bytes());
        put_varint(&mut out, self.backlog_bytes);
        put_varint(&mut out, u64::from(self.queries));
        put_varint(&mut out, self.query_latency_us);
        put_varint(&mut out, self.cpu_ns);
        out.extend(self.placed_cost.to_le_bytes());
        put_varint(&mut out, self.plain_costs.len() as u64);
        for (column, cost) in &self.plain_costs {
            put_varint(&mut out, u64::from(*column));
            out.extend(cost.to_le_bytes());
        }
        if self.text_bytes_max > 0 || self.core_share > 0.0 {
            put_varint(&mut out, self.text_bytes_max);
            out.extend(self.core_share.to_le_bytes());
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let float = |reader: &mut ByteReader<'_>| -> Result<f32> {
            let value = f32::from_le_bytes(reader.array()?);
            let good = value.is_finite() && value >= 0.0;
            good.then_some(value).ok_or_else(|| Error::Corrupt("a cost that is none".into()))
        };
        let mut load = ServerLoad {
            cpu_busy: float(&mut reader)?,
            load_cpu: float(&mut reader)?,
            backlog_bytes: reader.varint()?,
            queries: reader.varint_u32()?,
            query_latency_us: reader.varint()?,
            cpu_ns: reader.varint()?,
            placed_cost: float(&mut reader)?,
            plain_costs: Vec::new(),
            text_bytes_max: 0,
            core_share: 0.0,
        };
        for _ in 0..reader.count(5)? {
            load.plain_costs.push((reader.varint_u32()?, float(&mut reader)?));
        }
        if reader.remaining() > 0 {
            load.text_bytes_max = reader.varint()?;
            load.core_share = float(&mut reader)?;
        }
        reader.finish()?;
        Ok(load)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{InputShare, Rejects};
    use coload_ddl::parse_columns;

    #[test]
    fn messages_come_back_and_cut_ones_are_refused() {
        let account = PartitionAccount {
            files: vec![InputShare {
                file: 0,
                rows: 3,
                lines: 3,
                end: 30,
                ..InputShare::default()
            }],
            rejects: Rejects::default(),
        };
        let id = LoadId::from_u128(9 << 70);
        let join = Join { id, attempt: 4 };
        assert_eq!(Join::decode(&join.encode()).unwrap(), join);
        let parts = vec![(0, account.clone()), (2, account.clone())];
        let stored = vec![7, 0];
        let old = Welcome {
            id,
            attempt: 4,
            parts,
            stored,
            began_us: None,
            columns: None,
            reread_partitions: 0,
        };
        assert_eq!(Welcome::decode(&old.encode()).unwrap(), old);
        let welcome = Welcome { began_us: Some(-9), ..old.clone() };
        assert_eq!(Welcome::decode(&welcome.encode()).unwrap(), welcome);
        let columns = parse_columns("a DECIMAL(9,1)").ok();
        let wider = Welcome { columns, reread_partitions: 3, ..welcome.clone() };
        assert_eq!(Welcome::decode(&wider.encode()).unwrap(), wider);
        let odd = Welcome { began_us: Some(i64::MIN), ..old.clone() };
        assert!(Welcome::decode(&odd.encode()).is_err());
        let finish = Finish { partitions: 3, records: 9, rows: 9, bytes: 90, started_us: -5 };
        assert_eq!(Finish::decode(&finish.encode()).unwrap(), finish);
        let done = Done {
            already: true,
            version: 4,
            note: "no".into(),
            files: account.files,
            ..Done::default()
        };
        assert_eq!(Done::decode(&done.encode()).unwrap(), done);
        let load = ServerLoad { cpu_busy: 0.5, plain_costs: vec![(3, 1.5)], ..Default::default() };
        assert_eq!(ServerLoad::decode(&load.encode()).unwrap(), load);
        let takes_texts = ServerLoad { text_bytes_max: 9, core_share: 0.5, ..load.clone() };
        assert_eq!(ServerLoad::decode(&takes_texts.encode()).unwrap(), takes_texts);
        for cut in 0..welcome.encode().len() {
            // Without the time it is the welcome to an old client.
            let cut = Welcome::decode(&welcome.encode()[..cut]);
            assert!(cut.is_err() || cut.is_ok_and(|cut| cut == old));
        }
        let odd = ServerLoad { cpu_busy: f32::NAN, ..load };
        assert!(ServerLoad::decode(&odd.encode()).is_err());
    }
}
