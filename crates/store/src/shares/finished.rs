//! What is kept of a complete share, as bytes.
//!
//! ```text
//!   load 16  number  count  plan 8  mode 1  CREATE TABLE  started 8  rows  rejects  bytes
//!   inputs: count, names kept   segments: name, rows, bytes, seal 8   spans: input, from, to, start, end
//!   rules of keys: 1 and the rule, or 0   1, column and value of rows that delete, or 0
//!   rows that go: 0, or 1, count, and for each segment its file and the set of them
//! ```

use coload_ddl::{Schema, create_table_sql, parse_create_table};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use super::spans::SplitSpan;
use crate::change::{LoadMode, LoadTarget};
use crate::deleted::Deletions;
use crate::load_record::{INPUTS_KEPT_MAX, LoadId};
use crate::manifest::{put_value, read_value};
use crate::on_conflict::{DeleteWhere, OnConflict};

/// Which share of which load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareOf {
    /// Id of the load, which all its shares have.
    pub load: LoadId,
    /// Number of the share, from 1.
    pub number: u32,
    /// How many shares the load has.
    pub count: u32,
}

/// A segment of a share, in its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSegment {
    /// Name of the file.
    pub file: String,
    /// Rows that it has.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Checksum of its footer.
    pub seal: u64,
}

/// A share that is complete and not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedShare {
    /// Which share it is.
    pub of: ShareOf,
    /// Hash of what all shares of the load have in common: what was planned, and how it is read.
    pub plan: u64,
    /// Where the load goes.
    pub target: LoadTarget,
    /// What happens to keys of a PRIMARY KEY that are there.
    pub on_conflict: OnConflict,
    /// Which rows say that their keys go.
    pub delete_where: Option<DeleteWhere>,
    /// When the share began, microseconds since the epoch.
    pub started_us: i64,
    /// Rows of its segments.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
    /// Bytes of its inputs that were read.
    pub bytes: u64,
    /// Inputs whose first records it has.
    pub input_count: u64,
    /// Names of some of them, the first.
    pub inputs: Vec<String>,
    /// Its segments in order.
    pub segments: Vec<ShareSegment>,
    /// What it read of inputs that are cut at any byte.
    pub spans: Vec<SplitSpan>,
    /// Rows of the table that go in the version in which its rows come; of a load that only brings rows, `None`.
    pub gone: Option<Deletions>,
}

/// Least bytes of a segment, and of a span.
const SEGMENT_BYTES_MIN: usize = 11;
const SPAN_BYTES_MIN: usize = 5;

impl FinishedShare {
    /// The share as bytes.
    ///
    /// # Errors
    /// None: bytes in memory take all that is written.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = self.of.load.as_u128().to_le_bytes().to_vec();
        put_varint(&mut out, self.of.number.into());
        put_varint(&mut out, self.of.count.into());
        out.extend(self.plan.to_le_bytes());
        out.push(match self.target.mode {
            LoadMode::Append => 0,
            LoadMode::Replace => 1,
            LoadMode::Create => 2,
        });
        put_bytes(&mut out, create_table_sql(&self.target.name, &self.target.schema).as_bytes());
        out.extend(self.started_us.to_le_bytes());
        for number in [self.rows, self.rejects, self.bytes, self.input_count] {
            put_varint(&mut out, number);
        }
        let names = self.inputs.iter().take(INPUTS_KEPT_MAX);
        put_varint(&mut out, names.len() as u64);
        names.for_each(|name| put_bytes(&mut out, name.as_bytes()));
        put_varint(&mut out, self.segments.len() as u64);
        for ShareSegment { file, rows, bytes, seal } in &self.segments {
            put_bytes(&mut out, file.as_bytes());
            put_varint(&mut out, *rows);
            put_varint(&mut out, *bytes);
            out.extend(seal.to_le_bytes());
        }
        put_varint(&mut out, self.spans.len() as u64);
        for SplitSpan { input, from, to, start, end } in &self.spans {
            put_varint(&mut out, u64::from(*input));
            for number in [from, to, start, end] {
                put_varint(&mut out, *number);
            }
        }
        out.push(u8::from(self.on_conflict != OnConflict::Error));
        self.on_conflict.put(&mut out);
        out.push(u8::from(self.delete_where.is_some()));
        if let Some(DeleteWhere { column, value }) = &self.delete_where {
            put_varint(&mut out, *column as u64);
            put_value(&mut out, value);
        }
        out.push(u8::from(self.gone.is_some()));
        self.gone.iter().try_for_each(|gone| gone.put(&mut out))?;
        Ok(out)
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let of = ShareOf {
            load: LoadId::from_u128(reader.i128()? as u128),
            number: reader.varint_u32()?,
            count: reader.varint_u32()?,
        };
        let plan = reader.u64()?;
        let mode = match reader.u8()? {
            0 => LoadMode::Append,
            1 => LoadMode::Replace,
            2 => LoadMode::Create,
            other => return Err(Error::Corrupt(format!("mode {other} of a share"))),
        };
        let (name, schema) = parse_create_table(&text(&mut reader)?)?;
        let started_us = reader.u64()? as i64;
        let (rows, rejects) = (reader.varint()?, reader.varint()?);
        let (bytes, input_count) = (reader.varint()?, reader.varint()?);
        let inputs = (0..reader.count(1)?).map(|_| text(&mut reader)).collect::<Result<_>>()?;
        let mut segments = Vec::new();
        for _ in 0..reader.count(SEGMENT_BYTES_MIN)? {
            segments.push(ShareSegment {
                file: text(&mut reader)?,
                rows: reader.varint()?,
                bytes: reader.varint()?,
                seal: reader.u64()?,
            });
        }
        let mut spans = Vec::new();
        for _ in 0..reader.count(SPAN_BYTES_MIN)? {
            spans.push(SplitSpan {
                input: reader.varint_u32()?,
                from: reader.varint()?,
                to: reader.varint()?,
                start: reader.varint()?,
                end: reader.varint()?,
            });
        }
        let on_conflict = match reader.u8()? {
            0 => OnConflict::Error,
            _ => OnConflict::read(&mut reader, schema.len())?,
        };
        let delete_where = match reader.u8()? {
            0 => None,
            _ => Some(read_delete_where(&mut reader, &schema)?),
        };
        let gone = match reader.u8()? {
            0 => None,
            _ => Some(Deletions::read(&mut reader)?),
        };
        reader.finish()?;
        let target = LoadTarget { name, schema, mode };
        Ok(FinishedShare {
            of,
            plan,
            target,
            on_conflict,
            delete_where,
            started_us,
            rows,
            rejects,
            bytes,
            input_count,
            inputs,
            segments,
            spans,
            gone,
        })
    }
}

fn read_delete_where(reader: &mut ByteReader<'_>, schema: &Schema) -> Result<DeleteWhere> {
    let column = reader.varint_u32()? as usize;
    let Some(of) = schema.columns().get(column) else {
        return Err(Error::Corrupt(format!("rows of a share that delete by column {column}")));
    };
    let value = read_value(reader, of.data_type.physical(), reader.remaining())?;
    Ok(DeleteWhere { column, value })
}

fn text(reader: &mut ByteReader<'_>) -> Result<String> {
    String::from_utf8(reader.bytes()?.to_vec())
        .map_err(|_| Error::Corrupt("a text of a share that is not UTF-8".into()))
}
