//! Pages whose rows repeat are stored as runs: a page of the values that differ from the one before,
//! and how often each stands.
//!
//! ```text
//!   rows    7 7 7 7 2 2 7          values  7 2 7      lengths - 1   3 1 0
//!
//!   bytes   blocks of lengths less 1, bit-packed, one width      the page of the values
//! ```
//!
//! A run longer than its width can say is cut in two; the width is the one that takes the least
//! space. Any page can be stored so. It is written where rows come in groups, as the lines of one
//! document do, and a reader turns it back into the ordinary page ([`expand_runs`]) before it looks
//! inside, so that nothing else knows of runs.
//!
//! Cost: codes are compared with the one before, a vector at a time, before they are packed
//! ([`RowRuns`]), or come as runs already; any other page is unpacked once to look for runs
//! ([`shrink_to_runs`]), and packed again if that pays.

mod expand;
mod found;

pub use expand::expand_runs;
pub(crate) use expand::{inner_page, replace_inner, runs_of_page};

use crate::bitpack::{BLOCK, packed_bytes, width_of};
use crate::codec::{encode_codes_u32, encode_int, encode_text, encode_wide};
use crate::page::{Page, PageDetail};
use crate::view::{PageView, TextScratch, ValuesPage};
use coload_types::{Bitmap, Result, simd_dispatch};
use expand::{values_page, wrong_runs};
use found::{Found, RUNS_MAX_TENTHS, find_runs, runs_max};
use std::borrow::Cow;

/// What a page stored as runs says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Runs: rows of the page of values.
    pub count: u32,
    /// Runs that are NULL.
    pub nulls: u32,
    /// Bits of a length.
    pub width: u8,
}

/// The runs of a page, known before the page is made.
#[derive(Debug)]
pub struct RowRuns {
    found: Found,
    rows: u32,
}

impl RowRuns {
    /// Looks for runs among codes of a dictionary with `distinct` values; `None` when storing them
    /// would take as much space.
    pub fn find(codes: &[u16], distinct: usize) -> Option<Self> {
        let most = runs_max(codes.len());
        if codes.len() < 2 || count_changes(codes) >= most {
            return None;
        }
        let mut starts = vec![0u32; most + 1];
        let mut count = 1;
        for (i, pair) in codes.windows(2).enumerate() {
            starts[count] = i as u32 + 1;
            count += usize::from(pair[0] != pair[1]);
        }
        starts.truncate(count);
        let ends = starts[1..].iter().copied().chain([codes.len() as u32]);
        let lengths = starts.iter().zip(ends).map(|(s, e)| e - s).collect();
        Self::of_lengths(lengths, usize::from(width_of(distinct as u64)))
    }

    /// The runs of these lengths, each of one value of about `bits` bits, next to runs of other
    /// values; `None` when storing them would take as much space.
    pub fn of_lengths(lengths: Vec<u32>, bits: usize) -> Option<Self> {
        let rows: u32 = lengths.iter().sum();
        if rows < 2 || lengths.len() > runs_max(rows as usize) {
            return None;
        }
        Some(RowRuns { found: Found::best(rows as usize, bits, lengths)?, rows })
    }

    /// A row of each run to store.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.found.rows()
    }

    /// The values to store, of those of the runs that were given or found: a run may be stored as
    /// several.
    pub fn values<'a, T: Copy>(&self, runs: &'a [T]) -> Cow<'a, [T]> {
        match &self.found.cut {
            Some(of) => Cow::Owned(of.iter().map(|run| runs[*run as usize]).collect()),
            None => Cow::Borrowed(runs),
        }
    }

    /// The page of the runs whose values are a page of codes; `None` when it is no smaller than an
    /// ordinary one.
    pub fn store_codes(&self, values: &Page) -> Option<Page> {
        let PageDetail::Codes { width, .. } = values.detail else { return None };
        let nulls = match values.nulls {
            0 => 0,
            _ => null_rows(values, &self.found.lengths)?,
        };
        let page = self.store(values, nulls);
        (page.bytes.len() < packed_bytes(self.rows as usize, width)).then_some(page)
    }

    /// The page of the runs with these values; `nulls` of the rows are NULL.
    pub fn store(&self, values: &Page, nulls: u32) -> Page {
        let (runs, bytes) = self.found.store(values);
        let (codec, detail) = (values.codec, values.detail.clone());
        Page { codec, detail, rows: self.rows, nulls, bytes, runs: Some(runs) }
    }
}

/// Rows of the runs that are NULL.
fn null_rows(values: &Page, lengths: &[u32]) -> Option<u32> {
    let Ok(PageView::Codes(view)) = values.view() else { return None };
    let mut rows = 0;
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        for (code, length) in block[..count].iter().zip(&lengths[b * BLOCK..]) {
            rows += if *code > view.max { *length } else { 0 };
        }
    }
    Some(rows)
}

/// The page of codes with each code mapped by a strictly increasing `map`; `null` is NULL's new code.
///
/// # Errors
/// `Corrupt` when the page is none.
pub fn map_codes(page: &Page, map: impl Fn(u32) -> Option<u32>, null: u32) -> Result<Page> {
    let Some(runs) = page.runs else {
        return map_packed(page, map, null);
    };
    let split = packed_bytes(runs.count as usize, runs.width);
    let (lengths, rest) = page.bytes.split_at_checked(split).ok_or_else(wrong_runs)?;
    let mapped = map_packed(&values_page(page, runs, rest), map, null)?;
    let mut bytes = lengths.to_vec();
    bytes.extend_from_slice(&mapped.bytes);
    Ok(Page {
        codec: mapped.codec,
        detail: mapped.detail,
        rows: page.rows,
        nulls: page.nulls,
        bytes,
        runs: page.runs,
    })
}

fn map_packed(page: &Page, map: impl Fn(u32) -> Option<u32>, null: u32) -> Result<Page> {
    let PageView::Codes(view) = page.view()? else { return Ok(page.clone()) };
    let mut codes = view.codes();
    codes.iter_mut().for_each(|code| *code = map(*code).unwrap_or(null));
    Ok(encode_codes_u32(&codes, null))
}

/// Codes that differ from the one before.
#[inline(always)]
fn count_changes_inner(codes: &[u16]) -> usize {
    let mut changes = 0;
    for (a, b) in codes.chunks(BLOCK).zip(codes[1..].chunks(BLOCK)) {
        let differ = |(a, b): (&u16, &u16)| u16::from(a != b);
        changes += usize::from(a.iter().zip(b).map(differ).sum::<u16>());
    }
    changes
}

simd_dispatch! {
    fn count_changes(codes: &[u16]) -> usize = count_changes_inner;
}

/// Stores a page as runs if that takes less space.
///
/// # Errors
/// `Corrupt` when the page is none.
pub fn shrink_to_runs(page: Page) -> Result<Page> {
    if page.runs.is_some() || page.rows < 2 || page.bytes.is_empty() {
        return Ok(page);
    }
    Ok(match runs_in(&page)? {
        Some((runs, bytes)) if bytes.len() < page.bytes.len() => {
            Page { runs: Some(runs), bytes, ..page }
        }
        _ => page,
    })
}

/// The page as runs, and its bytes; `None` if it has too few that repeat.
fn runs_in(page: &Page) -> Result<Option<(Runs, Vec<u8>)>> {
    let rows = page.rows as usize;
    let bits = page.bytes.len() * 8 / rows;
    Ok(match page.view()? {
        PageView::Codes(view) => {
            let mut first = [0; BLOCK];
            let count = view.unpack(0, &mut first);
            if rarely_repeats(&first[..count]) {
                return Ok(None);
            }
            let codes = view.codes();
            let runs = find_runs(rows, usize::from(view.width), |i| codes[i] != codes[i - 1]);
            runs.map(|runs| {
                let null = codes.iter().copied().find(|c| *c > view.max).unwrap_or(u32::MAX);
                let values: Vec<u32> = runs.rows().map(|i| codes[i]).collect();
                runs.store(&encode_codes_u32(&values, null))
            })
        }
        PageView::Int(view) => {
            let mut first = [0; BLOCK];
            let count = view.unpack_int(0, &mut first);
            if rarely_repeats(&first[..count]) {
                return Ok(None);
            }
            let values = view.values();
            find_values(&view, bits, |i| values[i] != values[i - 1]).map(|runs| {
                let inner: Vec<i64> = runs.rows().map(|i| values[i]).collect();
                runs.store(&encode_int(&inner, run_nulls(&runs, &view).as_ref()))
            })
        }
        PageView::Wide(view) => {
            let mut first = [0; BLOCK];
            let count = view.unpack_wide(0, &mut first);
            if rarely_repeats(&first[..count]) {
                return Ok(None);
            }
            let values = view.values();
            find_values(&view, bits, |i| values[i] != values[i - 1]).map(|runs| {
                let inner: Vec<i128> = runs.rows().map(|i| values[i]).collect();
                runs.store(&encode_wide(&inner, run_nulls(&runs, &view).as_ref()))
            })
        }
        PageView::Text(view) => {
            let mut scratch = TextScratch::default();
            let first = view.text_block(0, &mut scratch)?;
            let first: Vec<&[u8]> = (0..first.count).map(|row| first.get(row)).collect();
            if rarely_repeats(&first) {
                return Ok(None);
            }
            let (bytes, ends) = view.all_strings()?;
            let strings = text_slices(&bytes, &ends);
            let store = |runs: Found| -> Result<(Runs, Vec<u8>)> {
                let inner: Vec<&[u8]> = runs.rows().map(|i| strings[i]).collect();
                let nulls = run_nulls(&runs, &view);
                Ok(runs.store(&join_text(&inner, nulls.as_ref(), view.symbols())?))
            };
            find_values(&view, bits, |i| strings[i] != strings[i - 1]).map(store).transpose()?
        }
    })
}

/// As [`find_runs`], for values that may be NULL.
fn find_values<B: ?Sized>(
    view: &ValuesPage<'_, B>,
    bits: usize,
    differ: impl Fn(usize) -> bool,
) -> Option<Found> {
    find_runs(view.rows(), bits, |i| differ(i) || view.is_null(i) != view.is_null(i - 1))
}

/// Whether the first rows of a page say that looking for runs is in vain.
fn rarely_repeats<T: PartialEq>(first: &[T]) -> bool {
    let changes = first.windows(2).filter(|w| w[0] != w[1]).count();
    changes * 10 > first.len() * (RUNS_MAX_TENTHS + 1)
}

/// The encoded strings of a page: equal codes are equal strings.
fn text_slices<'t>(bytes: &'t [u8], ends: &[u32]) -> Vec<&'t [u8]> {
    let mut start = 0;
    let string = |end: &u32| {
        let string = &bytes[start..*end as usize];
        start = *end as usize;
        string
    };
    ends.iter().map(string).collect()
}

fn join_text(strings: &[&[u8]], nulls: Option<&Bitmap>, symbols: u32) -> Result<Page> {
    let lengths: Vec<u32> = strings.iter().map(|s| s.len() as u32).collect();
    encode_text(&strings.concat(), &lengths, nulls, symbols)
}

fn run_nulls<B: ?Sized>(runs: &Found, view: &ValuesPage<'_, B>) -> Option<Bitmap> {
    view.has_nulls().then(|| {
        let mut nulls = Bitmap::zeros(0);
        runs.rows().for_each(|i| nulls.push(view.is_null(i)));
        nulls
    })
}

#[cfg(test)]
mod tests;
