//! Which rows repeat, and how long the stored runs are.

use super::Runs;
use crate::bitpack::{BLOCK, block_bytes, pack_block, unpack_block};
use crate::page::{Page, block_rows};
use coload_types::simd_dispatch;

/// Runs are looked for when they are at most this share of the rows, in tenths.
pub(super) const RUNS_MAX_TENTHS: usize = 7;
/// Widths of lengths that are tried.
const WIDTHS: [u8; 7] = [1, 2, 3, 4, 6, 8, 10];

/// More runs than this are not stored.
pub(super) fn runs_max(rows: usize) -> usize {
    rows * RUNS_MAX_TENTHS / 10
}

/// Runs as they are stored: one that is longer than `width` bits say is in pieces.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) lengths: Vec<u32>,
    /// Which run each is a piece of, if any is cut.
    pub(super) cut: Option<Vec<u32>>,
    /// Bits of a stored length.
    width: u8,
}

impl Found {
    /// How runs of `rows` rows of about `bits` bits each are stored best; `None` if storing them
    /// takes about as much space as the rows.
    pub(super) fn best(rows: usize, bits: usize, lengths: Vec<u32>) -> Option<Self> {
        let longest = lengths.iter().copied().max()?;
        let mut best = (usize::MAX, 0, 0);
        for width in WIDTHS {
            if best.0 <= lengths.len() * (bits + usize::from(width)) {
                break; // even if none were cut
            }
            let pieces = count_pieces(&lengths, width);
            best = best.min((pieces * (bits + usize::from(width)), width, pieces));
            if longest <= 1 << width {
                break; // more bits say no more
            }
        }
        let (cost, width, pieces) = best;
        if cost * 10 > rows * bits * 9 {
            return None;
        }
        if longest <= 1 << width {
            return Some(Found { lengths, cut: None, width });
        }
        let most = 1 << width;
        let (mut cut, mut of) = (Vec::with_capacity(pieces), Vec::with_capacity(pieces));
        for (run, length) in lengths.iter().enumerate() {
            let mut rest = *length;
            while rest > most {
                cut.push(most);
                of.push(run as u32);
                rest -= most;
            }
            cut.push(rest);
            of.push(run as u32);
        }
        Some(Found { lengths: cut, cut: Some(of), width })
    }

    /// The first row of each run to store.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> {
        self.lengths.iter().scan(0, |row, length| {
            let first = *row;
            *row += *length as usize;
            Some(first)
        })
    }

    pub(super) fn store(&self, values: &Page) -> (Runs, Vec<u8>) {
        let mut bytes = pack_lengths(&self.lengths, self.width);
        bytes.extend_from_slice(&values.bytes);
        (Runs { count: self.lengths.len() as u32, nulls: values.nulls, width: self.width }, bytes)
    }
}

/// The runs of `rows` rows of about `bits` bits each, if storing them takes less space.
pub(super) fn find_runs(rows: usize, bits: usize, differ: impl Fn(usize) -> bool) -> Option<Found> {
    let mut lengths = Vec::with_capacity(rows / 2);
    let most = runs_max(rows);
    let mut start = 0;
    for i in 1..rows {
        if differ(i) {
            if lengths.len() + 1 >= most {
                return None;
            }
            lengths.push((i - start) as u32);
            start = i;
        }
    }
    lengths.push((rows - start) as u32);
    Found::best(rows, bits, lengths)
}

/// Runs when none is longer than `1 << width`.
#[inline(always)]
fn count_pieces_inner(lengths: &[u32], width: u8) -> usize {
    let less_one = (1u32 << width) - 1;
    let pieces = |part: &[u32]| part.iter().map(|l| (l + less_one) >> width).sum::<u32>() as usize;
    lengths.chunks(BLOCK).map(pieces).sum()
}

simd_dispatch! {
    fn count_pieces(lengths: &[u32], width: u8) -> usize = count_pieces_inner;
}

fn pack_lengths(lengths: &[u32], width: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut block = [0; BLOCK];
    for part in lengths.chunks(BLOCK) {
        for (b, l) in block.iter_mut().zip(part) {
            *b = u64::from(l - 1);
        }
        pack_block(&block[..part.len()], width, &mut bytes);
    }
    bytes
}

pub(super) fn unpack_lengths(packed: &[u8], count: usize, width: u8) -> Vec<u32> {
    let mut lengths = Vec::with_capacity(count);
    let mut block = [0; BLOCK];
    for b in 0..count.div_ceil(BLOCK) {
        let rows = block_rows(count, b);
        unpack_block(&packed[b * block_bytes(BLOCK, width)..], rows, width, &mut block);
        lengths.extend(block[..rows].iter().map(|l| *l as u32 + 1));
    }
    lengths
}
