//! Checks all of a page that comes from elsewhere: what a scan believes without looking must be true.
//!
//! A page's range is used to skip it and to answer MIN and MAX, its codes index a dictionary without a
//! check, and its text is taken for UTF-8. So a page from the network is unpacked once here.
//!
//! Cost: an unpack and a compare for each number or code, a table look-up for each symbol of text.

use coload_types::parse_value::check_text;
use coload_types::{
    DataType, Dictionary, Error, Physical, Result, Strings, Values, is_list, simd_dispatch,
};

use super::{Page, PageDetail};
use crate::SymbolDecoder;
use crate::bitpack::BLOCK;
use crate::codec::CodesPage;
use crate::runs::runs_of_page;
use crate::symbols::{ESCAPE, NOT_PLAIN};
use crate::view::{IntPage, PageView, TextPage, TextScratch, ValuesPage, WidePage};

/// What the pages of a column may hold.
#[derive(Debug, Clone, Copy)]
pub struct PageRules<'a> {
    /// Type of the column.
    pub data_type: DataType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// Values in the dictionary that codes point into; `None` when there is none.
    pub dictionary: Option<u32>,
    /// Decoders of the symbol tables that `Text` pages name, 1-based there.
    pub decoders: &'a [SymbolDecoder],
}

fn wrong(what: &str) -> Error {
    Error::Corrupt(format!("page: {what}"))
}

/// Checks a page, also one stored as runs.
///
/// # Errors
/// `Corrupt` that says what does not agree.
pub fn verify_page(page: &Page, rules: &PageRules<'_>) -> Result<()> {
    if page.nulls > page.rows {
        return Err(wrong("more NULLs than rows"));
    }
    if page.nulls > 0 && !rules.nullable {
        return Err(wrong("NULL in a column that is NOT NULL"));
    }
    match runs_of_page(page)? {
        None => verify_values(page, rules),
        Some((values, lengths)) => {
            verify_values(&values, rules)?;
            let nulls = null_rows(&values, &lengths, rules.dictionary)?;
            if nulls != u64::from(page.nulls) {
                return Err(wrong("NULLs of its runs do not add up"));
            }
            Ok(())
        }
    }
}

/// Rows that are NULL when each row of `values` stands `lengths` times.
fn null_rows(values: &Page, lengths: &[u32], dictionary: Option<u32>) -> Result<u64> {
    if values.nulls == 0 {
        return Ok(0);
    }
    let mut nulls = 0;
    match values.view()? {
        PageView::Codes(view) => {
            let mut block = [0; BLOCK];
            for (b, lengths) in lengths.chunks(BLOCK).enumerate() {
                let count = view.unpack(b, &mut block);
                let of_null =
                    block[..count].iter().zip(lengths).filter(|(c, _)| Some(**c) == dictionary);
                nulls += of_null.map(|(_, l)| u64::from(*l)).sum::<u64>();
            }
        }
        view => {
            let bits = view.null_bits().unwrap_or(&[]);
            let is_null = |row: usize| bits.get(row / 8).is_some_and(|b| b >> (row % 8) & 1 == 1);
            let of_null = lengths.iter().enumerate().filter(|(i, _)| is_null(*i));
            nulls = of_null.map(|(_, l)| u64::from(*l)).sum();
        }
    }
    Ok(nulls)
}

fn verify_values(page: &Page, rules: &PageRules<'_>) -> Result<()> {
    let physical = rules.data_type.physical();
    match (page.view()?, &page.detail) {
        (PageView::Codes(view), PageDetail::Codes { base, max, .. }) => {
            let Some(null) = rules.dictionary else {
                return Err(wrong("codes without dictionary"));
            };
            let (low, high, nulls) = code_range(&view, null)?;
            let exact = view.rows == 0 || (low == *base && high.max(low) == *max);
            if !exact || nulls != u64::from(page.nulls) {
                return Err(wrong("codes and their range do not agree"));
            }
            Ok(())
        }
        (PageView::Int(view), PageDetail::Int { min, max }) if physical == Physical::Int => {
            let range = int_range(&view, page.nulls)?;
            if range.unwrap_or((0, 0)) != (*min, *max) {
                return Err(wrong("numbers and their range do not agree"));
            }
            check_int_range(range, rules.data_type)
        }
        (PageView::Wide(view), PageDetail::Wide { min, max }) if physical == Physical::Wide => {
            let range = wide_range(&view, page.nulls)?;
            if range.unwrap_or((0, 0)) != (*min, *max) {
                return Err(wrong("numbers and their range do not agree"));
            }
            check_wide_range(range, rules.data_type)
        }
        (PageView::Text(view), PageDetail::Text { .. }) if physical == Physical::Bytes => {
            verify_text(&view, page.nulls, view.decoder(rules.decoders)?, rules.data_type)
        }
        _ => Err(wrong("of another type than its column")),
    }
}

/// Smallest code, largest that is not NULL (0 if all are), largest, and NULLs.
type CodesSeen = (u32, u32, u32, usize);

/// A pass for each, which are vectors of instructions, over what is in the first-level cache.
#[inline(always)]
fn see_codes_inner(codes: &[u32], null: u32) -> CodesSeen {
    let low = codes.iter().fold(u32::MAX, |low, code| low.min(*code));
    let top = codes.iter().fold(0, |top, code| top.max(*code));
    if top < null {
        return (low, top, top, 0);
    }
    let nulls = codes.iter().filter(|code| **code == null).count();
    // How far below NULL, wrapped around, so that NULL is the least.
    let below = codes.iter().fold(0u32, |most, code| most.max(code.wrapping_sub(null)));
    let high = if below == 0 { 0 } else { below.wrapping_add(null) };
    (low, high, top, nulls)
}

simd_dispatch! {
    fn see_codes(codes: &[u32], null: u32) -> CodesSeen = see_codes_inner;
}

/// Smallest code, largest that is not NULL (0 if all are), NULLs; no code is above `null`.
fn code_range(view: &CodesPage<'_>, null: u32) -> Result<(u32, u32, u64)> {
    let (mut low, mut high, mut nulls, mut top) = (u32::MAX, 0, 0u64, 0);
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        let seen = see_codes(&block[..count], null);
        (low, high, top) = (low.min(seen.0), high.max(seen.1), top.max(seen.2));
        nulls += seen.3 as u64;
    }
    if top > null { Err(wrong("a code out of its dictionary")) } else { Ok((low, high, nulls)) }
}

/// Checks that the null bits are as many as the page says.
fn check_null_bits<B: ?Sized>(view: &ValuesPage<'_, B>, nulls: u32) -> Result<()> {
    let Some(bits) = view.null_bits() else { return Ok(()) };
    let mut count: u32 = bits.iter().map(|b| b.count_ones()).sum();
    let spare = view.rows() % 8;
    if spare > 0
        && let Some(last) = bits.last()
    {
        count -= (last >> spare).count_ones();
    }
    if count == nulls { Ok(()) } else { Err(wrong("null bits and NULLs do not agree")) }
}

macro_rules! value_range {
    ($name:ident, $page:ident, $ty:ident, $unpack:ident) => {
        fn $name(view: &$page<'_>, nulls: u32) -> Result<Option<($ty, $ty)>> {
            check_null_bits(view, nulls)?;
            let (mut low, mut high) = ($ty::MAX, $ty::MIN);
            let mut block = [0; BLOCK];
            for b in 0..view.rows().div_ceil(BLOCK) {
                let count = view.$unpack(b, &mut block);
                if !view.has_nulls() {
                    for v in &block[..count] {
                        low = low.min(*v);
                        high = high.max(*v);
                    }
                    continue;
                }
                for (i, v) in block[..count].iter().enumerate() {
                    if !view.is_null(b * BLOCK + i) {
                        low = low.min(*v);
                        high = high.max(*v);
                    }
                }
            }
            Ok((low <= high).then_some((low, high)))
        }
    };
}

value_range!(int_range, IntPage, i64, unpack_int);
value_range!(wide_range, WidePage, i128, unpack_wide);

fn check_int_range(range: Option<(i64, i64)>, data_type: DataType) -> Result<()> {
    let (low, high) = data_type.facts().limits;
    match range {
        Some((min, max)) if min < low || max > high => {
            Err(Error::Corrupt(format!("page: {min} to {max} are not all {data_type}")))
        }
        _ => Ok(()),
    }
}

fn check_wide_range(range: Option<(i128, i128)>, data_type: DataType) -> Result<()> {
    let DataType::Decimal { precision, .. } = data_type else { return Ok(()) };
    let limit = 10i128.saturating_pow(u32::from(precision)) - 1;
    match range {
        Some((min, max)) if min < -limit || max > limit => {
            Err(Error::Corrupt(format!("page: {min} to {max} are not all {data_type}")))
        }
        _ => Ok(()),
    }
}

fn verify_text(
    view: &TextPage<'_>,
    nulls: u32,
    decoder: Option<&SymbolDecoder>,
    data_type: DataType,
) -> Result<()> {
    check_null_bits(view, nulls)?;
    let (mut texts, mut scratch) = (TextScratch::default(), Scratch::default());
    let mut total = 0;
    for b in 0..view.rows().div_ceil(BLOCK) {
        let strings = view.text_block(b, &mut texts)?;
        // Few bytes may stand for many; none of ours stand for so many.
        total += strings.bytes.len();
        if total > u32::MAX as usize {
            return Err(wrong("text over 4 GiB"));
        }
        let mut start = 0;
        for (g, ends) in strings.ends().chunks(GROUP).enumerate() {
            let text = &strings.bytes[start..ends[ends.len() - 1] as usize];
            let group = Group { text, start: start as u32, ends };
            start += text.len();
            let first = b * BLOCK + g * GROUP;
            let is_null = |(i, s): (usize, &[u8])| !s.is_empty() && view.is_null(first + i);
            if view.has_nulls() && group.strings().enumerate().any(is_null) {
                return Err(wrong("text in a row that is NULL"));
            }
            match decoder {
                Some(decoder) => group.verify_symbols(decoder, data_type, &mut scratch)?,
                None => group.strings().try_for_each(|s| check_string(s, data_type))?,
            }
        }
    }
    Ok(())
}

/// Strings that are checked at once.
const GROUP: usize = 64;

/// Some strings of a block, one after the other.
struct Group<'a> {
    text: &'a [u8],
    /// Where they start and end in the block.
    start: u32,
    ends: &'a [u32],
}

#[derive(Default)]
struct Scratch {
    /// Bytes that stand before each code.
    sums: Vec<u32>,
    string: Vec<u8>,
}

impl<'a> Group<'a> {
    fn strings(&self) -> impl Iterator<Item = &'a [u8]> {
        let (text, mut from) = (self.text, 0);
        self.ends.iter().map(move |end| {
            let to = (*end - self.start) as usize;
            let string = &text[from..to];
            from = to;
            string
        })
    }

    /// Checks strings of symbols; decodes only those that the sums of lengths do not tell enough of.
    fn verify_symbols(
        &self,
        decoder: &SymbolDecoder,
        data_type: DataType,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let limit = text_limit(data_type);
        let summed = data_type.is_text() && decoder.sum_lengths(self.text, &mut scratch.sums);
        let mut from = 0;
        for string in self.strings() {
            let to = from + string.len();
            // An escape at the end of a string took the first symbol of the next for its byte.
            let whole =
                string.last() != Some(&ESCAPE) && (from == 0 || self.text[from - 1] != ESCAPE);
            let plain = summed && whole && {
                let length = scratch.sums[to] - scratch.sums[from];
                length < NOT_PLAIN && length as usize <= limit
            };
            from = to;
            if !plain {
                scratch.string.clear();
                decoder.decode(string, &mut scratch.string);
                check_string(&scratch.string, data_type)?;
            }
        }
        Ok(())
    }
}

fn text_limit(data_type: DataType) -> usize {
    data_type.length_max().map_or(usize::MAX, |limit| limit as usize)
}

fn check_string(string: &[u8], data_type: DataType) -> Result<()> {
    let good = match data_type {
        DataType::List(element) => is_list(string, element),
        _ if data_type.is_text() => check_text(string, data_type.length_max()).is_ok(),
        _ => string.len() <= text_limit(data_type),
    };
    if good {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&string[..string.len().min(40)]);
    Err(Error::Corrupt(format!("page: {shown:?} is not {data_type}")))
}

/// Checks that the values of a dictionary, which is sorted, are of a type.
///
/// # Errors
/// `Corrupt` with a value that is not.
pub fn verify_dictionary(dictionary: &Dictionary, data_type: DataType) -> Result<()> {
    verify_values_of(dictionary.values(), data_type)
}

/// Checks that values, in any order, are of a type. What stands for NULL is a value of all types.
///
/// # Errors
/// `Corrupt` with a value that is not.
pub fn verify_values_of(values: &Values, data_type: DataType) -> Result<()> {
    match (values, data_type.physical()) {
        (Values::Int(v), Physical::Int) => {
            let range = v.iter().fold(None, |r: Option<(i64, i64)>, v| {
                Some(r.map_or((*v, *v), |(low, high)| (low.min(*v), high.max(*v))))
            });
            check_int_range(range, data_type)
        }
        (Values::Wide(v), Physical::Wide) => {
            let range = v.iter().min().copied().zip(v.iter().max().copied());
            check_wide_range(range, data_type)
        }
        (Values::Bytes(v), Physical::Bytes) => verify_strings(v, data_type),
        _ => Err(wrong("values of another type than their column")),
    }
}

fn verify_strings(strings: &Strings, data_type: DataType) -> Result<()> {
    strings.iter().try_for_each(|s| check_string(s, data_type))
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
