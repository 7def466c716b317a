//! Where the first block of a part of a file begins.
//!
//! ```text
//!   file   header M | block M | block M | bl M ock M | block M      M: the marker of the file
//!   part                  [ from ..                                 the first block behind the next marker
//! ```
//!
//! A marker may stand within a block by chance, or because somebody put it there. So what stands behind it must have the
//! head of a block, and the marker again where that block ends. What looks like a block all the same, only the blocks
//! before it tell from one: they are passed where that is in doubt, head by head.
//!
//! Cost: the first is a read of some blocks, and two small reads for each marker that no block follows. The other is a
//! read of 36 bytes for each block before the part.

use std::sync::Arc;

use coload_avro::{BLOCK_HEAD_BYTES_MAX, BlockHead, Header, MARKER_BYTES};
use coload_input::RawFile;
use coload_types::Result;
use memchr::memmem::Finder;

use super::files::{Walk, read_header};
use super::input::fault;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::starts::{RecordAt, file_of};
use crate::typed::{Asked, batch_bytes_max, read_at};

/// Bytes that are looked through for markers at once.
const WINDOW_BYTES: u64 = 1 << 20;

/// An input of a request, looked at.
fn open(request: &LoadRequest, number: usize) -> Result<(Arc<RawFile>, Header)> {
    let file = file_of(request, number)?;
    let asked = Asked { request, resources: &Resources::default() };
    let header = read_header(&file, batch_bytes_max(asked));
    let header = header.map_err(|error| fault(asked, (number, 0), None, error))?;
    Ok((file, header))
}

/// The first byte of the first block at `from` or later, as the markers say; the end of the file if there is none.
///
/// # Errors
/// `Unavailable` when the input cannot be read, `Input` when its header is damaged.
pub fn first_block_behind(request: &LoadRequest, number: usize, from: u64) -> Result<u64> {
    let (file, header) = open(request, number)?;
    let head = header.bytes as u64;
    if from <= head {
        return Ok(head);
    }
    let end = file.bytes();
    let finder = Finder::new(&header.marker);
    let mut at = from - MARKER_BYTES as u64;
    while at + (MARKER_BYTES as u64) < end {
        let bytes = read_at(&file, at, WINDOW_BYTES.min(end - at) as usize)?;
        let mut seen = 0;
        // A marker may overlap with what looks like one.
        while let Some(found) = finder.find(&bytes[seen..]) {
            seen += found + 1;
            let behind = at + (seen - 1 + MARKER_BYTES) as u64;
            if behind == end || is_block(&file, behind, &header)? {
                return Ok(behind);
            }
        }
        // The next one may begin here.
        at += (bytes.len() - (MARKER_BYTES - 1)) as u64;
    }
    Ok(end)
}

/// Whether what stands at a byte has the head of a block, and the marker behind it.
fn is_block(file: &RawFile, at: u64, header: &Header) -> Result<bool> {
    let left = file.bytes() - at;
    let head = read_at(file, at, left.min(BLOCK_HEAD_BYTES_MAX as u64) as usize)?;
    let Ok(Some(block)) = BlockHead::decode(&head) else { return Ok(false) };
    if block.total_bytes() > left {
        return Ok(false);
    }
    let marker = at + block.total_bytes() - MARKER_BYTES as u64;
    Ok(read_at(file, marker, MARKER_BYTES)? == header.marker)
}

/// The first block that begins at `from` or later, as those before it say, and how many records these have; `known` is one
/// that begins before, if some is known.
///
/// # Errors
/// `Input` when a block before is damaged, `Unavailable` when the input cannot be read.
pub fn first_block_at(
    request: &LoadRequest,
    number: usize,
    from: u64,
    known: Option<RecordAt>,
) -> Result<RecordAt> {
    let (file, header) = open(request, number)?;
    let mut at = known.unwrap_or(RecordAt { byte: header.bytes as u64, lines: 0 });
    // They are passed, and not read.
    let mut walk = Walk::new(&file, header.marker, at.byte, u64::MAX);
    while at.byte < from {
        let block = walk.pass_block().map_err(|error| {
            let asked = Asked { request, resources: &Resources::default() };
            fault(asked, (number, walk.at), known.is_none().then_some(walk.blocks), error)
        })?;
        let Some(block) = block else { break };
        at = RecordAt { byte: walk.at, lines: at.lines + block.rows };
    }
    Ok(at)
}
