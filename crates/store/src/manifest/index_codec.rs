//! Indexes of tables, and the trees of segments, to bytes and back.

use coload_ddl::{Index, IndexKind, KEY_COLUMNS_MAX};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use super::SegmentEntry;
use super::column_codec::{corrupt, read_text};
use crate::deleted::FilePart;
use crate::directory::{index_name, parse_index_name};
use crate::index::IndexTree;
use crate::load_record::LoadId;

const PLAIN: u8 = 0;
const UNIQUE: u8 = 1;
/// name, kind, columns.
const INDEX_BYTES_MIN: usize = 4;
/// columns, writer, table, place, checksum.
const TREE_BYTES_MIN: usize = 29;

pub(super) fn put_indexes(out: &mut Vec<u8>, indexes: &[Index]) {
    put_varint(out, indexes.len() as u64);
    for index in indexes {
        put_bytes(out, index.name.as_bytes());
        out.push(match index.kind {
            IndexKind::Plain => PLAIN,
            IndexKind::Unique => UNIQUE,
        });
        put_columns(out, index.columns());
    }
}

pub(super) fn read_indexes(reader: &mut ByteReader<'_>) -> Result<Vec<Index>> {
    let count = reader.count(INDEX_BYTES_MIN)?;
    let mut indexes = Vec::with_capacity(count);
    for _ in 0..count {
        let name = read_text(reader)?;
        let kind = match reader.u8()? {
            PLAIN => IndexKind::Plain,
            UNIQUE => IndexKind::Unique,
            tag => return Err(corrupt(format!("kind of index {tag} is unknown"))),
        };
        let columns = read_columns(reader)?;
        indexes.push(Index::new(name, kind, columns).map_err(|e| corrupt(e.to_string()))?);
    }
    Ok(indexes)
}

pub(super) fn put_trees(out: &mut Vec<u8>, segment: &SegmentEntry) -> Result<()> {
    put_varint(out, segment.trees.len() as u64);
    for IndexTree { columns, part } in &segment.trees {
        let Some((writer, table)) = parse_index_name(&part.file) else {
            return Err(Error::Invalid(format!(
                "an index of segment {} is in a file of another name",
                segment.file
            )));
        };
        put_columns(out, columns);
        out.extend_from_slice(&writer.as_u128().to_le_bytes());
        for number in [table, part.offset, part.bytes] {
            put_varint(out, number);
        }
        out.extend_from_slice(&part.seal.to_le_bytes());
    }
    Ok(())
}

pub(super) fn read_trees(reader: &mut ByteReader<'_>, width: usize) -> Result<Vec<IndexTree>> {
    let count = reader.count(TREE_BYTES_MIN)?;
    let mut trees = Vec::with_capacity(count);
    for _ in 0..count {
        let columns = read_columns(reader)?;
        if columns.is_empty() || columns.iter().any(|column| *column >= width) {
            return Err(corrupt(format!("an index of columns {columns:?} of {width}")));
        }
        let writer = LoadId::from_u128(u128::from_le_bytes(reader.array()?));
        let file = index_name(writer, reader.varint()?);
        let (offset, bytes) = (reader.varint()?, reader.varint()?);
        let part = FilePart { file, offset, bytes, seal: reader.u64()? };
        trees.push(IndexTree { columns, part });
    }
    Ok(trees)
}

fn put_columns(out: &mut Vec<u8>, columns: &[usize]) {
    put_varint(out, columns.len() as u64);
    columns.iter().for_each(|column| put_varint(out, *column as u64));
}

fn read_columns(reader: &mut ByteReader<'_>) -> Result<Vec<usize>> {
    let count = reader.count(1)?;
    if count > KEY_COLUMNS_MAX {
        return Err(corrupt(format!("an index of {count} columns, over {KEY_COLUMNS_MAX}")));
    }
    (0..count).map(|_| reader.varint_u32().map(|column| column as usize)).collect()
}
