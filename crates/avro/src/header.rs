//! What a file begins with, and the heads of its blocks.

use std::sync::Arc;

use coload_arrow::{Fault, Result};

use crate::codec::Codec;
use crate::cursor::{Cursor, damaged};
use crate::layout::Layout;
use crate::schema::Schema;

/// What a file begins with.
pub const MAGIC: &[u8; 4] = b"Obj\x01";
/// Bytes of the marker behind the header and each block.
pub const MARKER_BYTES: usize = 16;
/// Most bytes of the head of a block.
pub const BLOCK_HEAD_BYTES_MAX: usize = 20;
/// Most entries of the metadata; writers have two, and few of their own.
const ENTRIES_MAX: u64 = 1 << 16;

/// The header of a file.
#[derive(Debug, Clone)]
pub struct Header {
    /// What its records are, as columns.
    pub layout: Arc<Layout>,
    /// How its blocks are compressed.
    pub codec: Codec,
    /// The marker that stands behind each of its blocks.
    pub marker: [u8; MARKER_BYTES],
    /// Bytes of the header.
    pub bytes: usize,
}

/// What the first bytes of a file are.
#[derive(Debug, Clone)]
pub enum Head {
    /// All of its header, and maybe more.
    Whole(Box<Header>),
    /// Less than its header: so many bytes must be there at least.
    Needs(u64),
}

/// Reads the header of a file from its first bytes.
///
/// # Errors
/// `Damaged` when they are none, `Unknown` for a schema or a compression that is not read.
pub fn decode_header(bytes: &[u8]) -> Result<Head> {
    let mut cursor = Cursor::new(bytes);
    match header(&mut cursor) {
        Ok(header) => Ok(Head::Whole(Box::new(header))),
        Err(error) => cursor.needed().map(Head::Needs).ok_or(error),
    }
}

fn header(cursor: &mut Cursor<'_>) -> Result<Header> {
    if cursor.array::<4>()? != *MAGIC {
        return damaged("a file that does not begin with Obj");
    }
    let (mut schema, mut codec) = (None, None);
    let mut entries = 0;
    loop {
        let (count, _) = cursor.items()?;
        if count == 0 {
            break;
        }
        entries += count;
        if entries > ENTRIES_MAX {
            return damaged(format!("metadata of {entries} entries"));
        }
        for _ in 0..count {
            let (key, value) = (cursor.sized()?, cursor.sized()?);
            match key {
                b"avro.schema" => schema = Some(value),
                b"avro.codec" => codec = Some(value),
                _ => {}
            }
        }
    }
    let marker = cursor.array()?;
    let Some(schema) = schema else { return damaged("there is no schema") };
    let layout = Arc::new(Layout::new(Schema::parse(schema)?)?);
    let codec = Codec::named(codec.unwrap_or(b"null"))?;
    Ok(Header { layout, codec, marker, bytes: cursor.at() })
}

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// Records of the block.
    pub rows: u64,
    /// Bytes of them, compressed.
    pub bytes: u64,
    /// Bytes of the head itself.
    pub head_bytes: usize,
}

impl BlockHead {
    /// Reads the head of a block; `None` when it is not there as a whole.
    ///
    /// # Errors
    /// `Damaged` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        let mut cursor = Cursor::new(bytes);
        if bytes.starts_with(MAGIC) {
            return damaged("another file begins where a block is expected (load each by itself)");
        }
        let read = (|| Ok((cursor.long()?, cursor.long()?)))();
        let (rows, bytes) = match read {
            Ok(read) => read,
            Err(_) if cursor.needed().is_some() => return Ok(None),
            Err(error) => return Err(error),
        };
        let row_count = u64::try_from(rows).ok().filter(|rows| *rows <= i32::MAX as u64);
        match (row_count, u64::try_from(bytes)) {
            (Some(rows), Ok(bytes)) => Ok(Some(BlockHead { rows, bytes, head_bytes: cursor.at() })),
            _ => Err(Fault::Damaged(format!("a block of {rows} records in {bytes} bytes"))),
        }
    }

    /// Bytes of the block with its head and the marker behind it.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.saturating_add((self.head_bytes + MARKER_BYTES) as u64)
    }
}
