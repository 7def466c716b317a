//! Text that is decompressed before it is known to be needed.

use coload_types::Result;

use super::open::{Shared, Slot};
use super::{Block, SEGMENT_BYTES};
use crate::decoder::{Decoder, Filled, Start};

/// Members from the first that seems to start in a segment, to the first that starts in a later one.
pub struct Unit {
    /// Where its first member starts; `None` if that is not known yet, or none does.
    pub start: Option<u64>,
    /// Its text so far; `source_bytes` is where a block ends in the stored bytes.
    pub blocks: Vec<Block>,
    /// Bytes of its text.
    pub held: usize,
    pub decoder: Slot,
}

/// A block of a unit.
pub struct UnitStep {
    /// Where the unit starts, if this is its first block.
    start: Option<u64>,
    block: Block,
    decoder: Box<Decoder>,
    state: Filled,
}

impl Unit {
    /// A unit that a thread begins.
    pub fn begun() -> Self {
        Unit { start: None, blocks: Vec::new(), held: 0, decoder: Slot::Busy }
    }

    /// Takes a block; gives its bytes.
    pub fn push(&mut self, step: UnitStep, input: &Shared) -> usize {
        let UnitStep { start, block, decoder, state } = step;
        self.start = self.start.or(start);
        let bytes = block.text.len();
        self.held += bytes;
        self.blocks.push(block);
        self.decoder = input.slot(decoder, state);
        bytes
    }
}

/// Makes the next block of the unit in a segment, or the first if it has no decoder yet; `None` when no member
/// starts there.
///
/// # Errors
/// Those of decoding.
pub fn decode(
    input: &Shared,
    segment: u64,
    decoder: Option<Box<Decoder>>,
    fill: impl FnOnce(&mut Decoder) -> Result<(Block, Filled)>,
) -> Result<Option<UnitStep>> {
    let (mut decoder, start) = match decoder {
        Some(decoder) => (decoder, None),
        None => {
            let Some(decoder) = begin(input, segment)? else { return Ok(None) };
            let start = decoder.at();
            (decoder, Some(start))
        }
    };
    let (block, state) = fill(&mut decoder)?;
    Ok(Some(UnitStep { start, block, decoder, state }))
}

/// A decoder at the first place in a segment that looks like the start of a member.
fn begin(input: &Shared, segment: u64) -> Result<Option<Box<Decoder>>> {
    let Some(file) = &input.file else { return Ok(None) };
    let at = segment * SEGMENT_BYTES;
    let stop = at + SEGMENT_BYTES;
    let mut decoder = input.decoder(file.reader(at), at, stop, Start::Sought)?;
    if decoder.find_member()? {
        return Ok(Some(decoder));
    }
    input.keep(decoder);
    Ok(None)
}
