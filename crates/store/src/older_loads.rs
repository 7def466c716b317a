//! Loads of a table that are long ago and still remembered: files that never change, as segments.
//!
//! ```text
//!   "COLOADS\x01"  varint count
//!   count times    key 16  id 16  varint version  signed finished  varint rows  varint rejects
//!   u64 XXH3 of everything before it
//! ```
//!
//! A manifest has the last loads of each table itself. When there are more than [`LOADS_KEPT_MAX`], the older half is
//! written to such a file, which the manifest names with its checksum. So a manifest grows by some 35 bytes for each
//! 500 loads, and publishing costs the same however many there were.
//!
//! Forgotten is what the table no longer holds (TRUNCATE, DROP, loads that replace: the manifest names the files no
//! more, and cleaning removes them), and what is older than the store remembers.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use coload_types::bytes::{ByteReader, checksum, put_signed, put_varint};
use coload_types::{Error, Result};

use crate::directory::{Layout, older_name, sync_dir, write_new};
use crate::failpoints;
use crate::load_record::{LOADS_KEPT_MAX, LoadId, LoadKind, LoadRecord};
use crate::manifest::{Manifest, TableEntry};
use crate::work_dir::WorkDir;

const MAGIC: &[u8; 8] = b"COLOADS\x01";
/// key, id, version, finished, rows, rejects.
const LOAD_BYTES_MIN: usize = 36;
/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;
/// More than any such file has: [`LOADS_KEPT_MAX`] loads of at most 72 bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file with older loads of a table, as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OlderLoads {
    /// File name below `segments/`: always `<id of who wrote it>-<table id>.loads`.
    pub file: String,
    /// Loads in the file.
    pub count: u32,
    /// When the last of them finished, microseconds since the epoch.
    pub newest_us: i64,
    /// The checksum of the file.
    pub seal: u64,
}

/// A load that is published, and that its table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedLoad {
    /// Key by which the load is known when it comes again.
    pub key: LoadId,
    /// Id under which the load was published.
    pub id: LoadId,
    /// The version that showed it first; 0 if that is not known.
    pub version: u64,
    /// When it was ready to be published, microseconds since the epoch.
    pub finished_us: i64,
    /// Rows that it added to its table.
    pub rows: u64,
    /// Records that were set aside as rejects.
    pub rejects: u64,
}

impl RememberedLoad {
    fn of(record: &LoadRecord) -> Self {
        let LoadRecord { key, id, version, finished_us, rows, rejects, .. } = *record;
        RememberedLoad { key, id, version, finished_us, rows, rejects }
    }
}

/// Microseconds since the epoch.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or(Duration::ZERO).as_micros()).unwrap_or(i64::MAX)
}

/// The time before which finished loads are forgotten.
fn forgotten_before(manifest: &Manifest, now_us: i64) -> i64 {
    now_us.saturating_sub(i64::from(manifest.remember_days).saturating_mul(DAY_US))
}

/// The load of this key that a table holds and remembers.
pub(crate) fn find(
    layout: &Layout,
    manifest: &Manifest,
    table: &TableEntry,
    key: LoadId,
) -> Result<Option<RememberedLoad>> {
    let since = forgotten_before(manifest, now_us());
    let recent = |load: &&LoadRecord| load.held && load.key == key && load.finished_us >= since;
    if let Some(record) = table.loads.iter().rev().find(recent) {
        return Ok(Some(RememberedLoad::of(record)));
    }
    for older in table.older.iter().rev().filter(|older| older.newest_us >= since) {
        let loads = read(&layout.segment(&older.file), older)?;
        let found = loads.into_iter().rev().find(|l| l.key == key && l.finished_us >= since);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Moves loads that a manifest has no room for into files of `work`, durable, and drops those that are forgotten.
pub(crate) fn move_out(layout: &Layout, work: &mut WorkDir, manifest: &mut Manifest) -> Result<()> {
    let since = forgotten_before(manifest, now_us());
    let mut made = false;
    for table in &mut manifest.tables {
        if table.loads.len() <= LOADS_KEPT_MAX {
            continue;
        }
        table.older.retain(|older| older.newest_us >= since);
        let moved: Vec<RememberedLoad> = table
            .loads
            .drain(..table.loads.len() - LOADS_KEPT_MAX / 2)
            .filter(|load| {
                // Statements have no key by which they could come again.
                let comes_again = !matches!(load.kind, LoadKind::Insert | LoadKind::Update);
                load.held && comes_again && load.finished_us >= since
            })
            .map(|load| RememberedLoad::of(&load))
            .collect();
        let Some(newest_us) = moved.iter().map(|load| load.finished_us).max() else { continue };
        let (bytes, seal) = encode(&moved);
        let file = older_name(work.id(), table.id);
        let path = layout.segment(&file);
        work.note_installed(path.clone());
        write_new(failpoints::WRITE_LOADS, &path, &bytes)?;
        table.older.push(OlderLoads { file, count: moved.len() as u32, newest_us, seal });
        made = true;
    }
    match made {
        true => sync_dir("store::publish::sync_segments_dir", &layout.segments),
        false => Ok(()),
    }
}

fn encode(loads: &[RememberedLoad]) -> (Vec<u8>, u64) {
    let mut out = MAGIC.to_vec();
    put_varint(&mut out, loads.len() as u64);
    for load in loads {
        out.extend(load.key.as_u128().to_le_bytes());
        out.extend(load.id.as_u128().to_le_bytes());
        put_varint(&mut out, load.version);
        put_signed(&mut out, load.finished_us);
        put_varint(&mut out, load.rows);
        put_varint(&mut out, load.rejects);
    }
    let seal = checksum(&out);
    out.extend(seal.to_le_bytes());
    (out, seal)
}

/// Reads the file that a manifest names.
pub(crate) fn read(path: &Path, older: &OlderLoads) -> Result<Vec<RememberedLoad>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::corrupt(path, "the manifest names this file of loads, and it is gone")
        }
        _ => Error::io("open", path, &e),
    })?;
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|e| Error::io("read", path, &e))?;
    decode(&bytes, older).map_err(|e| match e {
        Error::Corrupt(what) => Error::corrupt(path, what),
        other => other,
    })
}

fn decode(bytes: &[u8], older: &OlderLoads) -> Result<Vec<RememberedLoad>> {
    let wrong = |what: &str| Error::Corrupt(format!("loads: {what}"));
    let (content, sum) = bytes.split_last_chunk::<8>().ok_or_else(|| wrong("too short"))?;
    let sum = u64::from_le_bytes(*sum);
    if sum != older.seal || checksum(content) != sum {
        return Err(wrong("another checksum than the manifest says"));
    }
    let mut reader = ByteReader::new(content);
    if &reader.array::<8>()? != MAGIC {
        return Err(wrong("another magic number"));
    }
    let count = reader.count(LOAD_BYTES_MIN)?;
    let mut loads = Vec::with_capacity(count);
    let id = |bytes| LoadId::from_u128(u128::from_le_bytes(bytes));
    for _ in 0..count {
        loads.push(RememberedLoad {
            key: id(reader.array()?),
            id: id(reader.array()?),
            version: reader.varint()?,
            finished_us: reader.signed()?,
            rows: reader.varint()?,
            rejects: reader.varint()?,
        });
    }
    reader.finish()?;
    if count != older.count as usize {
        return Err(wrong("another count than the manifest says"));
    }
    Ok(loads)
}
