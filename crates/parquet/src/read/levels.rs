//! Runs and packed numbers, one after the other: levels, and places in a dictionary.
//!
//! ```text
//!   run      length << 1           | the number, in whole bytes
//!   packed   groups of 8 << 1 | 1  | 8 numbers of the width each, lowest bit first
//! ```
//!
//! Cost: a run nothing a number; a packed number a shift.
//!
//! Source: parquet.apache.org, encodings, RLE and bit packing.

use std::ops::Range;

use coload_arrow::{Fault, Result};

use super::bytes::{bits_at, cut_off, split_sized, varint};
use super::head::Encoding;
use super::walk::PageForm;

/// Widest numbers.
const WIDTH_MAX: u32 = 32;
/// Numbers of a group.
const GROUP: usize = 8;

/// Reads runs and packed numbers.
#[derive(Debug, Clone)]
pub(super) struct Hybrid<'a> {
    bytes: &'a [u8],
    at: usize,
    width: u32,
    part: Part<'a>,
}

/// Numbers next to each other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// The same so many times.
    Run(u32, usize),
    /// So many packed ones, from a bit on.
    Packed { bytes: &'a [u8], bit: usize, count: usize },
}

impl Part<'_> {
    fn count(&self) -> usize {
        match self {
            Part::Run(_, count) | Part::Packed { count, .. } => *count,
        }
    }
}

impl<'a> Hybrid<'a> {
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Result<Self> {
        if width > WIDTH_MAX {
            return Err(Fault::Damaged(format!("numbers of {width} bits")));
        }
        Ok(Hybrid { bytes, at: 0, width, part: Part::Run(0, 0) })
    }

    /// The next numbers, so many at most and one at least.
    pub(super) fn next(&mut self, most: usize) -> Result<Part<'a>> {
        if self.part.count() == 0 {
            self.part = self.read()?;
        }
        let count = self.part.count().min(most);
        let width = self.width as usize;
        Ok(match &mut self.part {
            Part::Run(number, left) => {
                *left -= count;
                Part::Run(*number, count)
            }
            Part::Packed { bytes, bit, count: left } => {
                let part = Part::Packed { bytes, bit: *bit, count };
                *left -= count;
                *bit += count * width;
                part
            }
        })
    }

    fn read(&mut self) -> Result<Part<'a>> {
        let head = varint(self.bytes, &mut self.at)?;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        let part = if head & 1 == 0 {
            let size = self.width.div_ceil(8) as usize;
            let bytes = rest.get(..size).ok_or_else(cut_off)?;
            let mut word = [0; 4];
            word[..size].copy_from_slice(bytes);
            self.at += size;
            let number = u32::from_le_bytes(word);
            Part::Run(number, count)
        } else {
            // The last group may be cut where its numbers end.
            let width = self.width as usize;
            let size = count.saturating_mul(width).min(rest.len());
            self.at += size;
            let held = (size * 8).checked_div(width).unwrap_or(usize::MAX);
            Part::Packed { bytes: &rest[..size], bit: 0, count: count.saturating_mul(8).min(held) }
        };
        match part.count() {
            0 if rest.is_empty() => Err(cut_off()),
            0 => self.read_after_empty(),
            _ => Ok(part),
        }
    }

    /// Empty runs are no numbers; each takes bytes, so that they end.
    fn read_after_empty(&mut self) -> Result<Part<'a>> {
        loop {
            let mut at = self.at;
            let head = varint(self.bytes, &mut at)?;
            if head >> 1 != 0 {
                return self.read();
            }
            let size = if head & 1 == 0 { self.width.div_ceil(8) as usize } else { 0 };
            self.at = at + size;
        }
    }

    /// Passes over numbers.
    pub(super) fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            count -= self.next(count)?.count();
        }
        Ok(())
    }

    /// Appends the next numbers.
    pub(super) fn read_to(&mut self, mut count: usize, out: &mut Vec<u32>) -> Result<()> {
        out.reserve(count);
        while count > 0 {
            let part = self.next(count)?;
            count -= part.count();
            match part {
                Part::Run(number, count) => out.extend(std::iter::repeat_n(number, count)),
                Part::Packed { bytes, bit, count } => unpack(bytes, bit, self.width, count, out)?,
            }
        }
        Ok(())
    }
}

/// Appends packed numbers.
fn unpack(bytes: &[u8], bit: usize, width: u32, count: usize, out: &mut Vec<u32>) -> Result<()> {
    if width == 0 {
        out.extend(std::iter::repeat_n(0, count));
        return Ok(());
    }
    let step = width as usize;
    let one_by_one = |numbers: Range<usize>, out: &mut Vec<u32>| -> Result<()> {
        for number in numbers {
            let found = bits_at(bytes, bit + number * step, width).ok_or_else(cut_off)?;
            out.push(found as u32);
        }
        Ok(())
    };
    // Numbers before one that begins with its byte, eight at a time, and the last ones.
    let before = (0..GROUP).find(|before| (bit + before * step).is_multiple_of(8)).unwrap_or(0);
    let before = before.min(count);
    one_by_one(0..before, out)?;
    let aligned = bytes.get((bit + before * step) / 8..).unwrap_or_default();
    let groups = ((count - before) / GROUP).min(aligned.len() / step);
    unpack_any(aligned, step, groups, out);
    one_by_one(before + groups * GROUP..count, out)
}

/// Appends groups of numbers of this width.
fn unpack_any(bytes: &[u8], width: usize, groups: usize, out: &mut Vec<u32>) {
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_groups::<$width>(bytes, groups, out),)*
                _ => {}
            }
        };
    }
    of_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// A group of numbers of a width that is known when this is compiled: shifts by constants.
fn unpack_groups<const WIDTH: usize>(bytes: &[u8], groups: usize, out: &mut Vec<u32>) {
    let mask = (1_u64 << WIDTH) - 1;
    for group in bytes.as_chunks::<WIDTH>().0.iter().take(groups) {
        // So that 8 bytes from any number on are there.
        let mut padded = [0_u8; WIDTH_MAX as usize + 8];
        padded[..WIDTH].copy_from_slice(group);
        let mut numbers = [0_u32; GROUP];
        for (at, number) in numbers.iter_mut().enumerate() {
            let bit = at * WIDTH;
            let word = padded[bit / 8..].first_chunk::<8>().copied().unwrap_or_default();
            *number = (u64::from_le_bytes(word) >> (bit % 8) & mask) as u32;
        }
        out.extend_from_slice(&numbers);
    }
}

/// Which rows of a page are no NULL.
#[derive(Debug)]
pub(super) struct Validity {
    /// Values of rows before those that are read.
    pub before: usize,
    /// Values of these.
    pub count: usize,
    /// For each of these whether it has a value; all if `None`.
    pub valid: Option<Vec<bool>>,
}

impl Validity {
    /// All rows have values.
    pub(super) fn all(skip: usize, take: usize) -> Self {
        Validity { before: skip, count: take, valid: None }
    }

    /// Reads levels of which the highest, `most`, is that of values: those of `take` rows after `skip`.
    fn of_levels(mut levels: Hybrid<'_>, most: u32, skip: usize, take: usize) -> Result<Self> {
        let mut validity = Validity { before: 0, count: 0, valid: None };
        let mut left = skip;
        while left > 0 {
            let part = levels.next(left)?;
            left -= part.count();
            validity.before += highest(part, most)?;
        }
        let mut done = 0;
        while done < take {
            let part = levels.next(take - done)?;
            let (count, of_part) = (part.count(), highest(part, most)?);
            if of_part < count || validity.valid.is_some() {
                let valid = validity.valid.get_or_insert_with(|| {
                    let mut valid = Vec::with_capacity(take);
                    valid.resize(done, true);
                    valid
                });
                match part {
                    Part::Run(level, count) => valid.resize(valid.len() + count, level == most),
                    Part::Packed { .. } if most > 1 => {
                        valid.extend(
                            packed_levels(part, most).map(|level| level == u64::from(most)),
                        );
                    }
                    Part::Packed { bytes, bit, count } => valid
                        .extend((bit..bit + count).map(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1)),
                }
            }
            validity.count += of_part;
            done += count;
        }
        Ok(validity)
    }
}

/// Bits of levels up to a highest one.
pub(super) fn width_of(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// Packed levels, one by one; those that are cut off are 0.
fn packed_levels(part: Part<'_>, most: u32) -> impl Iterator<Item = u64> + '_ {
    let width = width_of(most);
    let (bytes, bit, count) = match part {
        Part::Packed { bytes, bit, count } => (bytes, bit, count),
        Part::Run(..) => (&[][..], 0, 0),
    };
    (0..count).map(move |number| bits_at(bytes, bit + number * width as usize, width).unwrap_or(0))
}

/// How many levels are the highest one.
fn highest(part: Part<'_>, most: u32) -> Result<usize> {
    let too_high =
        |level: u64| Fault::Damaged(format!("a level {level}, and {most} is the highest"));
    match part {
        _ if most == 1 => ones(part),
        Part::Run(level, _) if level > most => Err(too_high(level.into())),
        Part::Run(level, count) => Ok(if level == most { count } else { 0 }),
        Part::Packed { .. } => {
            let mut found = 0;
            for level in packed_levels(part, most) {
                if level > u64::from(most) {
                    return Err(too_high(level));
                }
                found += usize::from(level == u64::from(most));
            }
            Ok(found)
        }
    }
}

/// How many levels are 1.
fn ones(part: Part<'_>) -> Result<usize> {
    match part {
        Part::Run(level @ (0 | 1), count) => Ok(level as usize * count),
        Part::Run(level, _) => {
            Err(Fault::Damaged(format!("a level {level}, and 1 is the highest")))
        }
        Part::Packed { bytes, bit, count } => {
            let mut ones = 0;
            let mut bit = bit;
            let end = bit + count;
            while bit < end {
                let bits = (8 - bit % 8).min(end - bit);
                let byte = bytes[bit / 8] >> (bit % 8) & (0xff >> (8 - bits));
                ones += byte.count_ones() as usize;
                bit += bits;
            }
            Ok(ones)
        }
    }
}

/// Which of `take` rows after `skip` of a page of `rows` have values, and the bytes of the values. `most` is the level of a
/// value, 0 where there are no levels.
pub(super) fn split_levels(
    page: &[u8],
    form: PageForm,
    most: u32,
    (rows, skip, take): (usize, usize, usize),
) -> Result<(Validity, &[u8])> {
    match form {
        PageForm::Two { levels, .. } => {
            let (levels, values) = page.split_at_checked(levels as usize).ok_or_else(cut_off)?;
            let validity = match most > 0 && !levels.is_empty() {
                true => {
                    Validity::of_levels(Hybrid::new(levels, width_of(most))?, most, skip, take)?
                }
                false => Validity::all(skip, take),
            };
            Ok((validity, values))
        }
        PageForm::One { .. } | PageForm::Dictionary if most == 0 => {
            Ok((Validity::all(skip, take), page))
        }
        PageForm::One { levels: Encoding::BitPacked } if most > 1 => Err(Fault::Unknown(
            "levels of groups are packed as old writers did, which is not read".to_owned(),
        )),
        PageForm::One { levels: Encoding::BitPacked } => {
            let (levels, values) = page.split_at_checked(rows.div_ceil(8)).ok_or_else(cut_off)?;
            // Here the highest bit comes first.
            let levels: Vec<u8> = levels.iter().map(|byte| byte.reverse_bits()).collect();
            let mut head = vec![];
            let mut groups = (levels.len() as u64) << 1 | 1;
            while groups >= 0x80 {
                head.push(groups as u8 | 0x80);
                groups >>= 7;
            }
            head.push(groups as u8);
            head.extend(levels);
            Ok((Validity::of_levels(Hybrid::new(&head, 1)?, 1, skip, take)?, values))
        }
        PageForm::One { levels: Encoding::Runs } | PageForm::Dictionary => {
            let (levels, values) = split_sized(page)?;
            let levels = Hybrid::new(levels, width_of(most))?;
            Ok((Validity::of_levels(levels, most, skip, take)?, values))
        }
        PageForm::One { levels } => Err(Fault::Damaged(format!("levels that are {levels:?}"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::hybrid::push_hybrid;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(
            runs in prop::collection::vec((any::<u32>(), 1..40_usize), 0..20),
            width in 1..=32_u32,
            skip in 0..200_usize,
        ) {
            let mask = u32::MAX >> (32 - width);
            let numbers: Vec<u32> =
                runs.iter().flat_map(|(n, count)| (0..*count).map(move |at| n.wrapping_add(at as u32 / 9) & mask)).collect();
            let mut bytes = Vec::new();
            push_hybrid(&numbers, width as u8, &mut bytes);
            let skip = skip.min(numbers.len());
            let mut hybrid = Hybrid::new(&bytes, width).unwrap();
            let mut read = Vec::new();
            hybrid.skip(skip).unwrap();
            hybrid.read_to(numbers.len() - skip, &mut read).unwrap();
            prop_assert_eq!(&read[..], &numbers[skip..]);
        }

        #[test]
        fn levels_are_counted_as_they_were_written(
            valid in prop::collection::vec(prop::bool::weighted(0.8), 0..200),
            skip: prop::sample::Index,
            is_packed: bool,
        ) {
            let skip = skip.index(valid.len() + 1);
            let levels: Vec<u32> = valid.iter().map(|valid| u32::from(*valid)).collect();
            let (mut bytes, form) = match is_packed {
                true => {
                    let byte = |levels: &[u32]| {
                        levels.iter().enumerate().map(|(n, level)| (*level as u8) << (7 - n)).sum::<u8>()
                    };
                    (levels.chunks(8).map(byte).collect::<Vec<_>>(), PageForm::One { levels: Encoding::BitPacked })
                }
                false => {
                    let mut hybrid = Vec::new();
                    push_hybrid(&levels, 1, &mut hybrid);
                    let mut bytes = (hybrid.len() as u32).to_le_bytes().to_vec();
                    bytes.extend(hybrid);
                    (bytes, PageForm::One { levels: Encoding::Runs })
                }
            };
            bytes.extend(b"values");
            let take = valid.len() - skip;
            let (found, values) = split_levels(&bytes, form, 1, (valid.len(), skip, take)).unwrap();
            prop_assert_eq!(values, b"values");
            prop_assert_eq!(found.before, valid[..skip].iter().filter(|v| **v).count());
            prop_assert_eq!(found.count, valid[skip..].iter().filter(|v| **v).count());
            match found.valid {
                Some(found) => prop_assert_eq!(&found[..], &valid[skip..]),
                None => prop_assert!(valid[skip..].iter().all(|valid| *valid)),
            }
        }

        #[test]
        fn any_bytes_give_numbers_or_an_error(bytes: Vec<u8>, width in 0..33_u32, count in 0..300_usize) {
            let mut out = Vec::new();
            let _ = Hybrid::new(&bytes, width).unwrap().read_to(count, &mut out);
            prop_assert!(out.len() <= count);
            let _ = split_levels(&bytes, PageForm::One { levels: Encoding::Runs }, 1, (count, 3.min(count), count));
        }
    }
}
