//! The values of a page, one after the other, without those of rows that are NULL; then put where their rows are.

use coload_arrow::{ArrowType, Bits, Fault, Result, SliceValues, Strings};

use super::bytes::{cut_off, split_sized, split_word};
use super::delta::{Deltas, Lengths, Shared};
use super::head::Encoding;
use super::levels::Hybrid;
use super::schema::Physical;

/// Values, as they are stored.
#[derive(Debug, Clone)]
pub(super) enum Stock {
    /// Places in a dictionary.
    Keys(Vec<u32>),
    /// A byte for each truth.
    Truths(Vec<u8>),
    /// So many bytes each.
    Fixed(usize, Vec<u8>),
    /// Where each text ends, behind 0, and the texts.
    Texts(Vec<usize>, Vec<u8>),
}

/// Values that are read of a page.
pub(super) struct Wanted {
    /// Rows of the page.
    pub rows: usize,
    /// Values before them.
    pub skip: usize,
    /// How many.
    pub take: usize,
    /// Most bytes that all values may take.
    pub bytes_max: u64,
}

impl Stock {
    /// No values of this kind; `rows` are expected.
    pub(super) fn new(physical: Physical, rows: usize) -> Self {
        match physical {
            Physical::Boolean => Stock::Truths(Vec::with_capacity(rows)),
            Physical::ByteArray => {
                let mut ends = Vec::with_capacity(rows + 1);
                ends.push(0);
                Stock::Texts(ends, Vec::new())
            }
            other => {
                let width = other.width().unwrap_or(1);
                Stock::Fixed(width, Vec::with_capacity(rows.saturating_mul(width)))
            }
        }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Stock::Keys(keys) => keys.len(),
            Stock::Truths(truths) => truths.len(),
            Stock::Fixed(width, bytes) => bytes.len() / width,
            Stock::Texts(ends, _) => ends.len() - 1,
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Stock::Keys(keys) => keys.len() * 4,
            Stock::Truths(truths) => truths.len(),
            Stock::Fixed(_, bytes) => bytes.len(),
            Stock::Texts(ends, bytes) => ends.len() * 8 + bytes.len(),
        };
        bytes as u64
    }

    /// Appends values of a page that are no places in a dictionary.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        encoding: Encoding,
        physical: Physical,
        wanted: &Wanted,
    ) -> Result<()> {
        let Wanted { skip, take, rows, bytes_max } = *wanted;
        let is = |what: &str| Fault::Unknown(format!("values are {what}, which is not read"));
        match (self, encoding) {
            (Stock::Fixed(width, out), Encoding::Plain) => {
                let from = skip.checked_mul(*width).ok_or_else(cut_off)?;
                let to = take.checked_mul(*width).and_then(|bytes| bytes.checked_add(from));
                let bytes = to.and_then(|to| data.get(from..to)).ok_or_else(cut_off)?;
                out.extend_from_slice(bytes);
            }
            (Stock::Fixed(width, out), Encoding::Split) => {
                let count = data.len() / *width;
                if skip.checked_add(take).is_none_or(|end| end > count) {
                    return Err(cut_off());
                }
                for number in skip..skip + take {
                    out.extend((0..*width).map(|byte| data[byte * count + number]));
                }
            }
            (Stock::Fixed(width, out), Encoding::Deltas)
                if matches!(physical, Physical::Int32 | Physical::Int64) =>
            {
                let mut deltas = Deltas::new(data, rows)?;
                deltas.skip(skip)?;
                for _ in 0..take {
                    out.extend_from_slice(&deltas.next()?.to_le_bytes()[..*width]);
                }
            }
            (Stock::Fixed(width, out), Encoding::DeltaTexts) => {
                let mut texts = Shared::new(data, rows, bytes_max)?;
                for number in 0..skip + take {
                    let text = texts.next()?;
                    if text.len() != *width {
                        return Err(Fault::Damaged("values of another length than all".into()));
                    }
                    if number >= skip {
                        out.extend_from_slice(text);
                    }
                }
            }
            (Stock::Truths(out), Encoding::Plain) => {
                let bit = |row: usize| Some(data.get(row / 8)? >> (row % 8) & 1);
                for row in skip..skip + take {
                    out.push(bit(row).ok_or_else(cut_off)?);
                }
            }
            (Stock::Truths(out), Encoding::Runs) => {
                let mut numbers = Hybrid::new(split_sized(data)?.0, 1)?;
                let mut truths = Vec::new();
                numbers.skip(skip)?;
                numbers.read_to(take, &mut truths)?;
                if truths.iter().any(|truth| *truth > 1) {
                    return Err(Fault::Damaged("a truth that is neither 0 nor 1".to_owned()));
                }
                out.extend(truths.into_iter().map(|truth| truth as u8));
            }
            (Stock::Texts(ends, bytes), Encoding::Plain) => {
                plain_texts(data, wanted, ends, bytes)?;
            }
            (Stock::Texts(ends, bytes), Encoding::DeltaLengths) => {
                let mut texts = Lengths::new(data, rows)?;
                (0..skip).try_for_each(|_| texts.next().map(drop))?;
                for _ in 0..take {
                    push_text(texts.next()?, ends, bytes, bytes_max)?;
                }
            }
            (Stock::Texts(ends, bytes), Encoding::DeltaTexts) => {
                let mut texts = Shared::new(data, rows, bytes_max)?;
                (0..skip).try_for_each(|_| texts.next().map(drop))?;
                for _ in 0..take {
                    push_text(texts.next()?, ends, bytes, bytes_max)?;
                }
            }
            (_, other) => return Err(is(&format!("{other:?}"))),
        }
        Ok(())
    }

    /// Appends the values of places in a dictionary, which are below its length.
    pub(super) fn resolve(&mut self, keys: &[u32], of: &Stock, bytes_max: u64) -> Result<()> {
        match (self, of) {
            (Stock::Keys(out), _) => out.extend_from_slice(keys),
            (Stock::Truths(out), Stock::Truths(of)) => {
                out.extend(keys.iter().map(|key| of[*key as usize]));
            }
            (Stock::Fixed(8, out), Stock::Fixed(8, of)) => gather::<8>(keys, of, out),
            (Stock::Fixed(4, out), Stock::Fixed(4, of)) => gather::<4>(keys, of, out),
            (Stock::Fixed(width, out), Stock::Fixed(_, of)) => {
                for key in keys {
                    let at = *key as usize * *width;
                    out.extend_from_slice(&of[at..at + *width]);
                }
            }
            (Stock::Texts(ends, out), Stock::Texts(of_ends, of)) => {
                let text = |key: u32| of_ends[key as usize]..of_ends[key as usize + 1];
                let total =
                    keys.iter().fold(out.len() as u64, |sum, key| sum + text(*key).len() as u64);
                if total > bytes_max {
                    return Err(Fault::TooLarge(total));
                }
                out.reserve(total as usize - out.len());
                for key in keys {
                    out.extend_from_slice(&of[text(*key)]);
                    ends.push(out.len());
                }
            }
            _ => return Err(Fault::Damaged("a dictionary of other values".to_owned())),
        }
        Ok(())
    }

    /// Puts the values from one on where their rows are; those of NULL are empty.
    pub(super) fn spread(&mut self, from: usize, valid: &[bool]) {
        match self {
            Stock::Keys(keys) => spread(keys, from, valid, 0),
            Stock::Truths(truths) => spread(truths, from, valid, 0),
            Stock::Fixed(width, bytes) => spread_wide(bytes, *width, from, valid),
            Stock::Texts(ends, _) => {
                let mut next = ends.len();
                ends.resize(from + 1 + valid.len(), 0);
                for (row, valid) in valid.iter().enumerate().rev() {
                    // Where a row has no text, the one before has ended.
                    ends[from + 1 + row] = ends[next - 1];
                    next -= usize::from(*valid);
                }
            }
        }
    }

    /// The values, as rows of a type.
    ///
    /// # Errors
    /// `Damaged` when a decimal has more bytes than any has.
    pub(super) fn finish(
        self,
        physical: Physical,
        values: &ArrowType,
    ) -> Result<SliceValues<'static>> {
        let decimal = match values {
            ArrowType::Decimal { width, .. } => Some(*width),
            _ => None,
        };
        Ok(match (self, physical, decimal) {
            (Stock::Keys(keys), ..) => SliceValues::Keys(keys, 0),
            (Stock::Truths(truths), ..) => {
                let byte = |truths: &[u8]| truths.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
                SliceValues::Bits(Bits::new(truths.chunks(8).map(byte).collect()))
            }
            (Stock::Fixed(own, bytes), Physical::Fixed(_), Some(width)) => {
                let mut out = Vec::with_capacity(bytes.len() / own * width);
                for number in bytes.chunks_exact(own) {
                    push_number(number, width, &mut out)?;
                }
                SliceValues::Fixed(width, out.into())
            }
            (Stock::Fixed(width, bytes), ..) => SliceValues::Fixed(width, bytes.into()),
            (Stock::Texts(ends, bytes), _, Some(width)) => {
                let mut out = Vec::with_capacity((ends.len() - 1) * width);
                for pair in ends.windows(2) {
                    push_number(&bytes[pair[0]..pair[1]], width, &mut out)?;
                }
                SliceValues::Fixed(width, out.into())
            }
            (Stock::Texts(places, bytes), ..) => {
                SliceValues::Strings(Strings::Ends { places, bytes: bytes.into() })
            }
        })
    }
}

/// Appends the number of some bytes, of which the highest comes first, as one of so many, of which the lowest does.
fn push_number(bytes: &[u8], width: usize, out: &mut Vec<u8>) -> Result<()> {
    let sign = match bytes.first() {
        Some(first) if first & 0x80 != 0 => 0xff,
        _ => 0,
    };
    // What is longer may begin with bytes that say no more than the sign.
    let bytes = match bytes.len().checked_sub(width) {
        Some(more) if more > 0 => {
            let (head, rest) = bytes.split_at(more);
            let next = rest.first().copied().unwrap_or_default();
            if head.iter().any(|byte| *byte != sign) || (next ^ sign) & 0x80 != 0 {
                return Err(Fault::Damaged(
                    "a decimal of more digits than its type has".to_owned(),
                ));
            }
            rest
        }
        _ => bytes,
    };
    out.extend(bytes.iter().rev());
    out.extend(std::iter::repeat_n(sign, width - bytes.len()));
    Ok(())
}

fn push_text(
    text: &[u8],
    ends: &mut Vec<usize>,
    bytes: &mut Vec<u8>,
    bytes_max: u64,
) -> Result<()> {
    match bytes.len() as u64 + text.len() as u64 {
        total if total > bytes_max => Err(Fault::TooLarge(total)),
        _ => {
            bytes.extend_from_slice(text);
            ends.push(bytes.len());
            Ok(())
        }
    }
}

/// Texts with their lengths before them.
fn plain_texts(
    mut data: &[u8],
    wanted: &Wanted,
    ends: &mut Vec<usize>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    for _ in 0..wanted.skip {
        let (length, rest) = split_word(data)?;
        data = rest.get(length..).ok_or_else(cut_off)?;
    }
    ends.reserve(wanted.take);
    for _ in 0..wanted.take {
        let (length, rest) = split_word(data)?;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
        push_text(text, ends, bytes, wanted.bytes_max)?;
        data = rest;
    }
    Ok(())
}

fn gather<const N: usize>(keys: &[u32], of: &[u8], out: &mut Vec<u8>) {
    let of = of.as_chunks::<N>().0;
    out.reserve(keys.len() * N);
    for key in keys {
        out.extend_from_slice(&of[*key as usize]);
    }
}

fn spread<T: Copy>(values: &mut Vec<T>, from: usize, valid: &[bool], none: T) {
    let mut next = values.len();
    values.resize(from + valid.len(), none);
    for (row, valid) in valid.iter().enumerate().rev() {
        next -= usize::from(*valid);
        values[from + row] = if *valid { values[next] } else { none };
    }
}

fn spread_wide(bytes: &mut Vec<u8>, width: usize, from: usize, valid: &[bool]) {
    let mut next = bytes.len();
    bytes.resize((from + valid.len()) * width, 0);
    for (row, valid) in valid.iter().enumerate().rev() {
        let at = (from + row) * width;
        if *valid {
            next -= width;
            bytes.copy_within(next..next + width, at);
        } else {
            bytes[at..at + width].fill(0);
        }
    }
}
