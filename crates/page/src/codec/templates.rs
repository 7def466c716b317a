//! Strings that differ in digits only, as ids, UUIDs and hashes do: the template once, and a number for each group of digits.
//!
//! ```text
//!   INV-2024-329745105    literal "INV-20"  2 digits  literal "-"  9 digits      numbers 24, 329745105
//!
//!   [null bits]  parts u8, for each its kind u8, its length u8 and, of a literal, its bytes
//!   per block: exceptions u16, bytes of exceptions u32
//!   per block and group: least number u64
//!   per block and group: width u8
//!   for each block and group: blocks of number - least
//!   exceptions of each block: rows of the block u16, then lengths u32, then bytes
//! ```
//!
//! | kind | part |
//! |---|---|
//! | 0 | literal |
//! | 1 | decimal digits, with leading zeros; at most 18 |
//! | 2, 3 | hexadecimal digits in small letters, in capitals; at most 16 |
//! | 4 | a decimal number without leading zeros; its length says how many digits at most |
//!
//! A string that is not of the template is an exception, which stands as it is. A NULL row has numbers that mean nothing.
//!
//! Cost: an unpack for each group, and some instructions a digit.

mod digits;
mod encode;
mod find;

use encode::Encoder;
use std::sync::Arc;

use super::{Codec, Content, Sample, take_nulls};
use crate::bitpack::{BLOCK, block_bytes, unpack_block, width_of};
use crate::page::{PageMeta, block_rows};
use crate::view::{PageView, TextBlock, TextBlocks, TextScratch, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

/// Most bytes of a string that a template makes, so that few bytes do not make a long text.
const STRING_MAX: usize = 256;
/// Most groups of digits.
const GROUPS_MAX: usize = 12;
/// Most digits of a decimal group.
const DECIMAL_MAX: u8 = 18;
/// Most digits of a hexadecimal group.
const HEX_MAX: u8 = 16;

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Digits(u8),
    HexSmall(u8),
    HexCapital(u8),
    Number(u8),
}

impl Part {
    fn is_group(&self) -> bool {
        !matches!(self, Part::Literal(_))
    }

    /// Bytes that it takes of a string, at most.
    fn length(&self) -> usize {
        match self {
            Part::Literal(bytes) => bytes.len(),
            Part::Digits(n) | Part::HexSmall(n) | Part::HexCapital(n) | Part::Number(n) => {
                usize::from(*n)
            }
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Part::Literal(_) => 0,
            Part::Digits(_) => 1,
            Part::HexSmall(_) => 2,
            Part::HexCapital(_) => 3,
            Part::Number(_) => 4,
        };
        out.extend([kind, self.length() as u8]);
        if let Part::Literal(bytes) = self {
            out.extend_from_slice(bytes);
        }
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let (kind, length) = (reader.u8()?, reader.u8()?);
        Ok(match kind {
            0 => Part::Literal(reader.take(usize::from(length))?.to_vec()),
            1 if length <= DECIMAL_MAX => Part::Digits(length),
            2 if length <= HEX_MAX => Part::HexSmall(length),
            3 if length <= HEX_MAX => Part::HexCapital(length),
            4 if length <= DECIMAL_MAX => Part::Number(length),
            _ => return Err(Error::Corrupt(format!("part {kind} of a template, {length} bytes"))),
        })
    }

    /// Appends what a number stands for; digits that it has too many are lost.
    #[inline(always)]
    fn format(&self, number: u64, out: &mut Vec<u8>) {
        match self {
            Part::Literal(bytes) => out.extend_from_slice(bytes),
            Part::Digits(count) => digits::put_decimal(number, usize::from(*count), out),
            Part::HexSmall(count) => digits::put_hex(number, usize::from(*count), 0x27, out),
            Part::HexCapital(count) => digits::put_hex(number, usize::from(*count), 0x07, out),
            Part::Number(_) => digits::put_number(number, out),
        }
    }
}

/// The parts of all strings of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template {
    parts: Vec<Part>,
    groups: usize,
}

impl Template {
    fn new(parts: Vec<Part>) -> Option<Self> {
        let groups = parts.iter().filter(|part| part.is_group()).count();
        let length: usize = parts.iter().map(Part::length).sum();
        let fits = parts.len() < 256 && groups <= GROUPS_MAX && length <= STRING_MAX;
        fits.then_some(Template { parts, groups })
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let parts = (0..reader.u8()?).map(|_| Part::read(reader)).collect::<Result<Vec<_>>>()?;
        Template::new(parts).ok_or_else(|| Error::Corrupt("a template is too long".into()))
    }

    /// Sets the numbers of a string; whether it is of the template.
    #[inline]
    fn parse(&self, mut string: &[u8], numbers: &mut [u64; GROUPS_MAX]) -> bool {
        let mut group = 0;
        for part in &self.parts {
            let number = match part {
                Part::Literal(literal) => {
                    let Some(rest) = string.strip_prefix(literal.as_slice()) else { return false };
                    string = rest;
                    continue;
                }
                Part::Number(most) => {
                    let count = digits::count_digits(string);
                    if count > usize::from(*most) || count > 1 && string[0] == b'0' {
                        return false;
                    }
                    let Some((number, rest)) = digits::parse_decimal(string, count) else {
                        return false;
                    };
                    string = rest;
                    number
                }
                fixed => {
                    let parsed = match fixed {
                        Part::HexSmall(count) => {
                            digits::parse_hex_small(string, usize::from(*count))
                        }
                        Part::HexCapital(count) => {
                            digits::parse_hex_capital(string, usize::from(*count))
                        }
                        other => digits::parse_decimal(string, other.length()),
                    };
                    let Some((number, rest)) = parsed else { return false };
                    string = rest;
                    number
                }
            };
            numbers[group] = number;
            group += 1;
        }
        string.is_empty()
    }
}

/// Strings as the numbers that stand in a template.
#[derive(Debug)]
pub(super) struct Templates;

impl Codec for Templates {
    fn name(&self) -> &'static str {
        "template"
    }

    fn content(&self) -> Content {
        Content::Text
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let rows = meta.rows as usize;
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let template = Template::read(&mut reader)?;
        let (blocks, groups) = (rows.div_ceil(BLOCK), template.groups);
        let exceptions: &[[u8; 6]] = reader.take(blocks * 6)?.as_chunks().0;
        let least = reader.take(blocks * groups * 8)?.as_chunks().0;
        let widths = reader.take(blocks * groups)?;
        let (mut places, mut packed, mut listed) = (Vec::with_capacity(blocks), 0, 0);
        for (block, [a, b, bytes @ ..]) in exceptions.iter().enumerate() {
            let count = usize::from(u16::from_le_bytes([*a, *b]));
            let text = u32::from_le_bytes(*bytes) as usize;
            places.push(Place { packed, listed, count, text });
            for width in &widths[block * groups..(block + 1) * groups] {
                if *width > 64 {
                    return Err(Error::Corrupt(format!("width {width} in a page")));
                }
                packed += block_bytes(block_rows(rows, block), *width);
            }
            listed += count * LISTED_BYTES + text;
        }
        let packed = reader.take(packed)?;
        let listed = reader.take(listed)?;
        reader.finish()?;
        let blocks = Blocks { template, rows, nulls, places, least, widths, packed, listed };
        Ok(PageView::Text(ValuesPage::new(meta, nulls, Arc::new(blocks))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Text { strings, rows, .. } = sample else { return None };
        let template = find::template_of(strings)?;
        let mut numbers = [0; GROUPS_MAX];
        let (mut low, mut high) = ([u64::MAX; GROUPS_MAX], [0; GROUPS_MAX]);
        let mut listed = 0;
        for string in strings.iter() {
            if !template.parse(string, &mut numbers) {
                listed += LISTED_BYTES + string.len();
                continue;
            }
            for ((low, high), number) in low.iter_mut().zip(&mut high).zip(&numbers) {
                (*low, *high) = ((*low).min(*number), (*high).max(*number));
            }
        }
        let pairs = low.iter().zip(&high).take(template.groups);
        let bits: usize = pairs.map(|(l, h)| usize::from(width_of(h.saturating_sub(*l)))).sum();
        let heads = rows.div_ceil(BLOCK) * (6 + 9 * template.groups);
        Some(bits * rows / 8 + listed * rows / strings.len() + heads)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Text(page) = page else { return Ok(None) };
        let Some(Sample::Text { strings, .. }) = Sample::of_text(page)? else { return Ok(None) };
        let Some(template) = find::template_of(&strings) else { return Ok(None) };
        let mut encoder = Encoder::new(&template);
        let mut scratch = TextScratch::default();
        for block in 0..page.rows().div_ceil(BLOCK) {
            let strings = page.text_block(block, &mut scratch)?;
            encoder.push_block(strings, |row| page.is_null(block * BLOCK + row));
        }
        Ok(Some(encoder.finish(page.null_bits().unwrap_or(&[]))))
    }
}

/// Bytes of an exception besides its text.
const LISTED_BYTES: usize = 6;

/// Where a block stands, and how many exceptions it has with how many bytes of text.
#[derive(Debug)]
struct Place {
    packed: usize,
    listed: usize,
    count: usize,
    text: usize,
}

#[derive(Debug)]
struct Blocks<'a> {
    template: Template,
    rows: usize,
    nulls: Option<&'a [u8]>,
    places: Vec<Place>,
    least: &'a [[u8; 8]],
    widths: &'a [u8],
    packed: &'a [u8],
    listed: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// The numbers of a block, by group.
    fn numbers(&self, block: usize) -> Vec<[u64; BLOCK]> {
        let (groups, count) = (self.template.groups, block_rows(self.rows, block));
        let mut all = vec![[0; BLOCK]; groups];
        let mut at = self.places[block].packed;
        for (group, numbers) in all.iter_mut().enumerate() {
            let width = self.widths[block * groups + group];
            let least = u64::from_le_bytes(self.least[block * groups + group]);
            let bytes = block_bytes(count, width);
            unpack_block(&self.packed[at..at + bytes], count, width, numbers);
            numbers.iter_mut().for_each(|number| *number = number.wrapping_add(least));
            at += bytes;
        }
        all
    }

    /// The rows of a block that are exceptions, in order, and their strings.
    fn listed(&self, block: usize) -> Result<Vec<(usize, &'a [u8])>> {
        let wrong = || Error::Corrupt("exceptions of a page do not add up".into());
        let Place { listed, count, text, .. } = self.places[block];
        let all = &self.listed[listed..listed + count * LISTED_BYTES + text];
        let (rows, rest) = all.split_at(count * 2);
        let (lengths, mut texts) = rest.split_at(count * 4);
        let mut found: Vec<(usize, &[u8])> = Vec::with_capacity(count);
        for (row, length) in rows.as_chunks().0.iter().zip(lengths.as_chunks().0) {
            let row = usize::from(u16::from_le_bytes(*row));
            let length = u32::from_le_bytes(*length) as usize;
            let (string, rest) = texts.split_at_checked(length).ok_or_else(wrong)?;
            if found.last().is_some_and(|(last, _)| *last >= row) {
                return Err(wrong());
            }
            found.push((row, string));
            texts = rest;
        }
        let inside = found.last().is_none_or(|(last, _)| *last < block_rows(self.rows, block));
        if inside && texts.is_empty() { Ok(found) } else { Err(wrong()) }
    }
}

impl<'a> TextBlocks<'a> for Blocks<'a> {
    fn strings<'s>(&'s self, block: usize, scratch: &'s mut TextScratch) -> Result<TextBlock<'s>> {
        let count = block_rows(self.rows, block);
        let numbers = self.numbers(block);
        let listed = self.listed(block)?;
        let mut listed = listed.iter().peekable();
        let TextScratch { ends, bytes } = scratch;
        bytes.clear();
        for (row, end) in ends[..count].iter_mut().enumerate() {
            let at = block * BLOCK + row;
            if let Some((_, string)) = listed.next_if(|(listed, _)| *listed == row) {
                bytes.extend_from_slice(string);
            } else if self.nulls.is_none_or(|n| n[at / 8] >> (at % 8) & 1 == 0) {
                let mut group = 0;
                for part in &self.template.parts {
                    let number = numbers.get(group).map_or(0, |of| of[row]);
                    part.format(number, bytes);
                    group += usize::from(part.is_group());
                }
            }
            *end = bytes.len() as u32;
        }
        Ok(TextBlock { bytes, ends, count })
    }
}
