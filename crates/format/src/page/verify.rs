//! Checks all of a page that comes from elsewhere: what a scan believes without looking must be true.
//!
//! A page's range is used to skip it and to answer MIN and MAX, its codes index a dictionary without a
//! check, and its text is taken for UTF-8. So a page from the network is unpacked once here.
//!
//! Cost: an unpack and a compare for each number or code, a table look-up for each symbol of text.

use super::{BlocksPage, Page, PageDetail, PageView};
use crate::bitpack::BLOCK;
use crate::calendar::{DATE_DAYS, DAY_MICROS};
use crate::parse_value::check_text;
use crate::runs::runs_of_page;
use crate::symbols::ESCAPE;
use crate::{
    DataType, Dictionary, Error, Physical, Result, Strings, SymbolDecoder, Values, simd_dispatch,
};

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
        PageView::Int(view) | PageView::Wide(view) | PageView::Text(view) => {
            let of_null = lengths.iter().enumerate().filter(|(i, _)| view.is_null(*i));
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
        (PageView::Text(view), PageDetail::Text { symbols }) if physical == Physical::Bytes => {
            let decoder = match symbols {
                0 => None,
                n => Some(
                    rules
                        .decoders
                        .get(*n as usize - 1)
                        .ok_or_else(|| wrong("no such symbol table"))?,
                ),
            };
            verify_text(&view, page.nulls, decoder, rules.data_type)
        }
        _ => Err(wrong("of another type than its column")),
    }
}

/// What a block of codes has.
struct CodesSeen {
    low: u32,
    /// Largest that is not NULL, 0 if all are.
    high: u32,
    top: u32,
    nulls: u32,
}

#[inline(always)]
fn see_codes_inner(codes: &[u32], null: u32) -> CodesSeen {
    let mut seen = CodesSeen { low: u32::MAX, high: 0, top: 0, nulls: 0 };
    for code in codes {
        let is_null = *code == null;
        seen.low = seen.low.min(*code);
        seen.top = seen.top.max(*code);
        seen.high = seen.high.max(if is_null { 0 } else { *code });
        seen.nulls += u32::from(is_null);
    }
    seen
}

simd_dispatch! {
    fn see_codes(codes: &[u32], null: u32) -> CodesSeen = see_codes_inner;
}

/// Smallest code, largest that is not NULL (0 if all are), NULLs; no code is above `null`.
fn code_range(view: &super::CodesPage<'_>, null: u32) -> Result<(u32, u32, u64)> {
    let (mut low, mut high, mut nulls, mut top) = (u32::MAX, 0, 0u64, 0);
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        let seen = see_codes(&block[..count], null);
        (low, high, top) = (low.min(seen.low), high.max(seen.high), top.max(seen.top));
        nulls += u64::from(seen.nulls);
    }
    if top > null { Err(wrong("a code out of its dictionary")) } else { Ok((low, high, nulls)) }
}

/// Checks that the null bits are as many as the page says.
fn check_null_bits(view: &BlocksPage<'_>, nulls: u32) -> Result<()> {
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
    ($name:ident, $ty:ident, $unpack:ident) => {
        fn $name(view: &BlocksPage<'_>, nulls: u32) -> Result<Option<($ty, $ty)>> {
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

value_range!(int_range, i64, unpack_int);
value_range!(wide_range, i128, unpack_wide);

/// The numbers that an `Int` type has.
fn int_limits(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::Boolean => (0, 1),
        DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer | DataType::Real => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::Decimal { precision, .. } => {
            let limit = 10i64.saturating_pow(u32::from(precision)).saturating_sub(1);
            (-limit, limit)
        }
        DataType::Date => (*DATE_DAYS.start(), *DATE_DAYS.end()),
        DataType::Time => (0, DAY_MICROS - 1),
        // A zone may move the last moment of a year into the next.
        DataType::Timestamp | DataType::TimestampTz => {
            ((DATE_DAYS.start() - 1) * DAY_MICROS, (DATE_DAYS.end() + 2) * DAY_MICROS)
        }
        _ => (i64::MIN, i64::MAX),
    }
}

fn check_int_range(range: Option<(i64, i64)>, data_type: DataType) -> Result<()> {
    let (low, high) = int_limits(data_type);
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
    view: &BlocksPage<'_>,
    nulls: u32,
    decoder: Option<&SymbolDecoder>,
    data_type: DataType,
) -> Result<()> {
    check_null_bits(view, nulls)?;
    let limit = text_limit(data_type);
    let mut ends = [0; BLOCK];
    let (mut sums, mut scratch) = (Vec::new(), Vec::new());
    let mut total = 0;
    for b in 0..view.rows().div_ceil(BLOCK) {
        let (bytes, count) = view.text_block(b, &mut ends)?;
        total += bytes.len();
        let mut start = 0;
        for (g, ends) in ends[..count].chunks(GROUP).enumerate() {
            let strings = Group { bytes, start, ends };
            start = ends[ends.len() - 1] as usize;
            let first = b * BLOCK + g * GROUP;
            if view.has_nulls()
                && strings.iter().enumerate().any(|(i, s)| !s.is_empty() && view.is_null(first + i))
            {
                return Err(wrong("text in a row that is NULL"));
            }
            let Some(decoder) = decoder else {
                strings.iter().try_for_each(|string| check_string(string, data_type))?;
                continue;
            };
            if data_type.is_text() && strings.are_plain_ascii(decoder, limit, &mut sums) {
                continue;
            }
            for string in strings.iter() {
                scratch.clear();
                decoder.decode(string, &mut scratch);
                check_string(&scratch, data_type)?;
            }
        }
    }
    if total == view.text_bytes() { Ok(()) } else { Err(wrong("text after the last row")) }
}

/// Strings that are checked at once.
const GROUP: usize = 64;

/// Some strings of a block, one after the other.
struct Group<'a> {
    /// Those of the whole block.
    bytes: &'a [u8],
    start: usize,
    /// Not empty.
    ends: &'a [u32],
}

impl<'a> Group<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, mut start) = (self.bytes, self.start);
        self.ends.iter().map(move |end| {
            let string = &bytes[start..*end as usize];
            start = *end as usize;
            string
        })
    }

    /// Whether the symbols tell that all are ASCII without NUL, and none is longer than `limit`.
    fn are_plain_ascii(&self, decoder: &SymbolDecoder, limit: usize, sums: &mut Vec<u32>) -> bool {
        let end = self.ends[self.ends.len() - 1] as usize;
        if !decoder.sum_plain_ascii(&self.bytes[self.start..end], sums) {
            return false;
        }
        // An escape at the end of a string would take the first symbol of the next for its byte.
        let (mut before, mut longest, mut split) = (0, 0, false);
        for end in self.ends {
            let end = *end as usize;
            split |= end > self.start && self.bytes[end - 1] == ESCAPE;
            let sum = sums[end - self.start];
            longest = longest.max(sum - before);
            before = sum;
        }
        !split && longest as usize <= limit
    }
}

fn text_limit(data_type: DataType) -> usize {
    match data_type {
        DataType::Char(limit) | DataType::Varchar(Some(limit)) | DataType::Binary(Some(limit)) => {
            limit as usize
        }
        _ => usize::MAX,
    }
}

fn check_string(string: &[u8], data_type: DataType) -> Result<()> {
    let good = match data_type {
        DataType::Char(limit) => check_text(string, Some(limit)).is_ok(),
        DataType::Varchar(limit) => check_text(string, limit).is_ok(),
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
