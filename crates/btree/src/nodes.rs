//! The inner nodes: lines of eight starts, level upon level.
//!
//! ```text
//!   level 0   a start for each leaf, up to whole lines filled with the greatest number
//!   level 1   the first start of each line of level 0, and so on, up to one line
//! ```

use crate::{LINE_BYTES, LINE_STARTS};

/// Most levels of so many leaves as a tree may have, which are counted by 32 bits.
const LEVELS_MAX: usize = 11;

/// Where the levels of a tree begin, in lines, and how many starts each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    starts: [usize; LEVELS_MAX],
    first_line: [usize; LEVELS_MAX],
    count: usize,
    lines: usize,
}

impl Levels {
    /// The levels over so many leaves.
    pub fn over(leaves: u32) -> Self {
        let mut levels =
            Levels { starts: [0; LEVELS_MAX], first_line: [0; LEVELS_MAX], count: 0, lines: 0 };
        let mut starts = leaves as usize;
        while starts > 0 && levels.count < LEVELS_MAX {
            levels.starts[levels.count] = starts;
            levels.first_line[levels.count] = levels.lines;
            levels.count += 1;
            let lines = starts.div_ceil(LINE_STARTS);
            levels.lines += lines;
            starts = if lines == 1 { 0 } else { lines };
        }
        levels
    }

    /// Bytes of all lines.
    pub fn bytes(&self) -> usize {
        self.lines * LINE_BYTES
    }

    /// How many leaves start at a number or below it.
    pub fn count_to(&self, nodes: &[u8], start: u64) -> usize {
        let mut line = 0;
        for level in (0..self.count).rev() {
            let below = count_in_line(self.line(nodes, level, line), start);
            let at = (line * LINE_STARTS + below).min(self.starts[level]);
            if level == 0 {
                return at;
            }
            // The line below whose first start is the last that is not greater.
            let Some(next) = at.checked_sub(1) else { return 0 };
            line = next;
        }
        0
    }

    /// The start of a leaf.
    pub fn start(&self, nodes: &[u8], leaf: usize) -> u64 {
        self.line(nodes, 0, leaf / LINE_STARTS)[leaf % LINE_STARTS]
    }

    fn line(&self, nodes: &[u8], level: usize, line: usize) -> [u64; LINE_STARTS] {
        let at = (self.first_line[level] + line) * LINE_BYTES;
        let mut starts = [u64::MAX; LINE_STARTS];
        let bytes = nodes.get(at..at + LINE_BYTES).unwrap_or_default();
        for (start, bytes) in starts.iter_mut().zip(bytes.as_chunks().0) {
            *start = u64::from_le_bytes(*bytes);
        }
        starts
    }
}

fn count_in_line(line: [u64; LINE_STARTS], start: u64) -> usize {
    line.iter().map(|other| usize::from(*other <= start)).sum()
}

/// Appends the levels over leaves with these starts.
pub fn put_nodes(starts: &[u64], out: &mut Vec<u8>) {
    let mut level = starts.to_vec();
    while !level.is_empty() {
        level.iter().for_each(|start| out.extend_from_slice(&start.to_le_bytes()));
        let lines = level.len().div_ceil(LINE_STARTS);
        for _ in level.len()..lines * LINE_STARTS {
            out.extend_from_slice(&u64::MAX.to_le_bytes());
        }
        level = match lines {
            1 => Vec::new(),
            _ => level.iter().step_by(LINE_STARTS).copied().collect(),
        };
    }
}
