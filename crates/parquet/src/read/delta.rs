//! Numbers as differences to the ones before, and texts by their lengths and what they share with the ones before.
//!
//! ```text
//!   numbers   values of a block, small blocks of it, values in all, the first value | block ...
//!   block     the least difference | a width for each small block | small blocks of packed differences to the least
//!   lengths   lengths as such numbers | texts
//!   texts     lengths of what is shared, as such numbers | the rest, as lengths are
//! ```
//!
//! Source: parquet.apache.org, encodings, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY.

use coload_arrow::{Fault, Result};

use super::bytes::{bits_at, cut_off, varint};

/// Widest difference.
const WIDTH_MAX: u8 = 64;

/// Reads numbers one by one.
#[derive(Debug, Clone)]
pub(super) struct Deltas<'a> {
    bytes: &'a [u8],
    /// Values of a small block, and small blocks of a block.
    small: usize,
    count: usize,
    /// Numbers that were not read.
    left: u64,
    value: i64,
    is_first: bool,
    least: i64,
    widths: &'a [u8],
    /// The small block, the next value of it, and where its bytes start.
    block: usize,
    next: usize,
    at: usize,
}

fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl<'a> Deltas<'a> {
    /// Numbers of a page with so many rows at most.
    pub(super) fn new(bytes: &'a [u8], rows: usize) -> Result<Self> {
        let damaged = |what: String| Fault::Damaged(format!("differences: {what}"));
        let mut at = 0;
        let values = varint(bytes, &mut at)?;
        let count = varint(bytes, &mut at)?;
        let left = varint(bytes, &mut at)?;
        let value = signed(varint(bytes, &mut at)?);
        let small = values.checked_div(count).filter(|small| {
            *small > 0 && small % 8 == 0 && small.checked_mul(count) == Some(values)
        });
        let (Some(small), Ok(count)) =
            (small.and_then(|s| usize::try_from(s).ok()), usize::try_from(count))
        else {
            return Err(damaged(format!("blocks of {values} values in {count} parts")));
        };
        if left > rows as u64 {
            return Err(damaged(format!("{left} values in a page of {rows} rows")));
        }
        Ok(Deltas {
            bytes,
            small,
            count,
            left,
            value,
            is_first: true,
            least: 0,
            widths: &[],
            block: count,
            next: small,
            at,
        })
    }

    /// Bytes of the small block that is being read.
    fn small_bytes(&self) -> usize {
        let width = self.widths.get(self.block).copied().unwrap_or(0);
        (self.small / 8).saturating_mul(width.into())
    }

    pub(super) fn next(&mut self) -> Result<i64> {
        self.left = self.left.checked_sub(1).ok_or_else(cut_off)?;
        if self.is_first {
            self.is_first = false;
            return Ok(self.value);
        }
        if self.next == self.small {
            self.at = self.at.checked_add(self.small_bytes()).ok_or_else(cut_off)?;
            (self.block, self.next) = (self.block + 1, 0);
            if self.block >= self.count {
                self.least = signed(varint(self.bytes, &mut self.at)?);
                let end = self.at.checked_add(self.count).ok_or_else(cut_off)?;
                self.widths = self.bytes.get(self.at..end).ok_or_else(cut_off)?;
                (self.block, self.at) = (0, end);
            }
        }
        let width = self.widths[self.block];
        if width > WIDTH_MAX {
            return Err(Fault::Damaged(format!("differences of {width} bits")));
        }
        let bytes = self.bytes.get(self.at..).unwrap_or_default();
        let delta =
            bits_at(bytes, self.next * usize::from(width), width.into()).ok_or_else(cut_off)?;
        self.next += 1;
        self.value = self.value.wrapping_add(self.least).wrapping_add(delta as i64);
        Ok(self.value)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.next().map(drop))
    }

    /// The bytes behind the numbers.
    fn rest(mut self) -> Result<&'a [u8]> {
        while self.left > 0 {
            self.next()?;
        }
        let read = if self.widths.is_empty() { 0 } else { self.small_bytes() };
        let end = self.at.checked_add(read).ok_or_else(cut_off)?;
        self.bytes.get(end..).ok_or_else(cut_off)
    }

    fn length(&mut self) -> Result<usize> {
        usize::try_from(self.next()?)
            .map_err(|_| Fault::Damaged("a text of a length below 0".into()))
    }
}

/// Reads texts whose lengths come first.
#[derive(Debug)]
pub(super) struct Lengths<'a> {
    lengths: Deltas<'a>,
    texts: &'a [u8],
}

impl<'a> Lengths<'a> {
    pub(super) fn new(bytes: &'a [u8], rows: usize) -> Result<Self> {
        let lengths = Deltas::new(bytes, rows)?;
        let texts = lengths.clone().rest()?;
        Ok(Lengths { lengths, texts })
    }

    pub(super) fn next(&mut self) -> Result<&'a [u8]> {
        let length = self.lengths.length()?;
        let (text, rest) = self.texts.split_at_checked(length).ok_or_else(cut_off)?;
        self.texts = rest;
        Ok(text)
    }
}

/// Reads texts that begin as the ones before.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    shared: Deltas<'a>,
    rests: Lengths<'a>,
    text: Vec<u8>,
    bytes_max: u64,
}

impl<'a> Shared<'a> {
    /// Texts of `bytes_max` at most.
    pub(super) fn new(bytes: &'a [u8], rows: usize, bytes_max: u64) -> Result<Self> {
        let shared = Deltas::new(bytes, rows)?;
        let rests = Lengths::new(shared.clone().rest()?, rows)?;
        Ok(Shared { shared, rests, text: Vec::new(), bytes_max })
    }

    pub(super) fn next(&mut self) -> Result<&[u8]> {
        let shared = self.shared.length()?;
        if shared > self.text.len() {
            return Err(Fault::Damaged("a text that shares more than the one before has".into()));
        }
        let rest = self.rests.next()?;
        match shared as u64 + rest.len() as u64 {
            bytes if bytes > self.bytes_max => return Err(Fault::TooLarge(bytes)),
            _ => {}
        }
        self.text.truncate(shared);
        self.text.extend_from_slice(rest);
        Ok(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn push_varint(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    /// Writes numbers as differences, each of 64 bits: the slow model.
    fn written(numbers: &[i64]) -> Vec<u8> {
        let zigzag = |value: i64| (value << 1 ^ value >> 63) as u64;
        let mut out = Vec::new();
        for value in [128, 4, numbers.len() as u64, zigzag(numbers.first().copied().unwrap_or(0))] {
            push_varint(value, &mut out);
        }
        let deltas: Vec<i64> =
            numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        for block in deltas.chunks(128) {
            let least = *block.iter().min().unwrap();
            push_varint(zigzag(least), &mut out);
            let smalls: Vec<&[i64]> = block.chunks(32).collect();
            out.extend((0..4).map(|n| if n < smalls.len() { 64 } else { 7 }));
            for small in smalls {
                for n in 0..32 {
                    let delta = small.get(n).map_or(0, |delta| delta.wrapping_sub(least));
                    out.extend(delta.to_le_bytes());
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn numbers_and_texts_are_read_as_they_were_written(
            numbers in prop::collection::vec(any::<i64>(), 0..300),
            texts in prop::collection::vec("[ab]{0,4}", 0..200),
        ) {
            let mut bytes = written(&numbers);
            bytes.extend(b"rest");
            let mut deltas = Deltas::new(&bytes, numbers.len()).unwrap();
            prop_assert_eq!(deltas.clone().rest().unwrap(), b"rest");
            for number in &numbers {
                prop_assert_eq!(deltas.next().unwrap(), *number);
            }
            prop_assert!(deltas.next().is_err());
            let shared: Vec<i64> = (0..texts.len()).map(|n| {
                let before = n.checked_sub(1).map_or("", |n| texts[n].as_str());
                before.bytes().zip(texts[n].bytes()).take_while(|(a, b)| a == b).count() as i64
            }).collect();
            let rests: Vec<&str> = texts.iter().zip(&shared).map(|(text, n)| &text[*n as usize..]).collect();
            let mut bytes = written(&shared);
            bytes.extend(written(&rests.iter().map(|rest| rest.len() as i64).collect::<Vec<_>>()));
            bytes.extend(rests.concat().bytes());
            let mut read = Shared::new(&bytes, texts.len(), 99).unwrap();
            for text in &texts {
                prop_assert_eq!(read.next().unwrap(), text.as_bytes());
            }
        }

        #[test]
        fn any_bytes_give_texts_or_an_error(bytes: Vec<u8>) {
            if let Ok(mut texts) = Shared::new(&bytes, 500, 1000) {
                while texts.next().is_ok() {}
            }
        }
    }
}
