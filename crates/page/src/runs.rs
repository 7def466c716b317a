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

use crate::bitpack::{BLOCK, block_bytes, pack_block, packed_bytes, unpack_block, width_of};
use crate::codec::{encode_codes_u32, encode_int, encode_text, encode_wide};
use crate::page::{Page, PageDetail, block_rows};
use crate::view::{PageView, ValuesPage};
use coload_types::{Bitmap, Error, Result, simd_dispatch};
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

/// Runs are looked for when they are at most this share of the rows, in tenths.
const RUNS_MAX_TENTHS: usize = 7;
/// Widths of lengths that are tried.
const WIDTHS: [u8; 7] = [1, 2, 3, 4, 6, 8, 10];

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

/// More runs than this are not stored.
fn runs_max(rows: usize) -> usize {
    rows * RUNS_MAX_TENTHS / 10
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
    let wrong = || Error::Corrupt("runs do not add up to their page".into());
    let split = packed_bytes(runs.count as usize, runs.width);
    let (lengths, rest) = page.bytes.split_at_checked(split).ok_or_else(wrong)?;
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

/// The page of the values of a page stored as runs.
fn values_page(page: &Page, runs: Runs, bytes: &[u8]) -> Page {
    Page {
        codec: page.codec,
        detail: page.detail.clone(),
        rows: runs.count,
        nulls: runs.nulls,
        bytes: bytes.to_vec(),
        runs: None,
    }
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
            let values = view.values();
            find_values(&view, bits, |i| values[i] != values[i - 1]).map(|runs| {
                let inner: Vec<i128> = runs.rows().map(|i| values[i]).collect();
                runs.store(&encode_wide(&inner, run_nulls(&runs, &view).as_ref()))
            })
        }
        PageView::Text(view) => {
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

/// The ordinary page of one stored as runs.
///
/// # Errors
/// `Corrupt` when lengths and values do not agree with the page's counts.
pub fn expand_runs(page: &Page) -> Result<Page> {
    let Some((values, lengths)) = runs_of_page(page)? else { return Ok(page.clone()) };
    let expanded = expand_values(&values, &lengths)?;
    let same = expanded.detail == page.detail && expanded.nulls == page.nulls;
    if same { Ok(expanded) } else { Err(wrong_runs()) }
}

/// The page of the values of a page stored as runs; `None` for an ordinary page.
///
/// # Errors
/// `Corrupt` when the page is shorter than the lengths of its runs.
pub(crate) fn inner_page(page: &Page) -> Result<Option<Page>> {
    let Some(runs) = page.runs else { return Ok(None) };
    let split = packed_bytes(runs.count as usize, runs.width);
    let (_, rest) = page.bytes.split_at_checked(split).ok_or_else(wrong_runs)?;
    Ok(Some(values_page(page, runs, rest)))
}

/// The page stored as runs with the same values in another codec.
///
/// # Errors
/// `Corrupt` when the page is shorter than the lengths of its runs.
pub(crate) fn replace_inner(mut page: Page, inner: &Page) -> Result<Page> {
    let Some(runs) = page.runs else { return Ok(page) };
    let split = packed_bytes(runs.count as usize, runs.width);
    if split > page.bytes.len() {
        return Err(wrong_runs());
    }
    page.bytes.truncate(split);
    page.bytes.extend_from_slice(&inner.bytes);
    page.bytes.shrink_to_fit();
    page.codec = inner.codec;
    Ok(page)
}

/// The page of the values of a page stored as runs, and how often each stands; `None` for an ordinary
/// page.
///
/// # Errors
/// `Corrupt` when the lengths do not agree with the page's rows.
pub(crate) fn runs_of_page(page: &Page) -> Result<Option<(Page, Vec<u32>)>> {
    let Some(runs) = page.runs else { return Ok(None) };
    if runs.width > 32 || runs.count > page.rows || runs.nulls > runs.count {
        return Err(wrong_runs());
    }
    let count = runs.count as usize;
    let split = packed_bytes(count, runs.width);
    let (packed, rest) = page.bytes.split_at_checked(split).ok_or_else(wrong_runs)?;
    let lengths = unpack_lengths(packed, count, runs.width);
    let rows: u64 = lengths.iter().map(|l| u64::from(*l)).sum();
    if rows != u64::from(page.rows) {
        return Err(wrong_runs());
    }
    Ok(Some((values_page(page, runs, rest), lengths)))
}

fn wrong_runs() -> Error {
    Error::Corrupt("runs do not add up to their page".into())
}

/// Whether the first rows of a page say that looking for runs is in vain.
fn rarely_repeats<T: PartialEq>(first: &[T]) -> bool {
    let changes = first.windows(2).filter(|w| w[0] != w[1]).count();
    changes * 10 > first.len() * (RUNS_MAX_TENTHS + 1)
}

fn expand_values(values: &Page, lengths: &[u32]) -> Result<Page> {
    match values.view()? {
        PageView::Codes(view) => {
            let mut rows = Vec::new();
            let mut null = u32::MAX;
            let mut block = [0; BLOCK];
            for b in 0..view.rows.div_ceil(BLOCK) {
                let count = view.unpack(b, &mut block);
                for (code, length) in block[..count].iter().zip(&lengths[b * BLOCK..]) {
                    if *code > view.max {
                        null = *code;
                    }
                    rows.extend(std::iter::repeat_n(*code, *length as usize));
                }
            }
            Ok(encode_codes_u32(&rows, null))
        }
        PageView::Int(view) => {
            let rows = repeat(&view.values(), lengths);
            Ok(encode_int(&rows, row_nulls(lengths, &view).as_ref()))
        }
        PageView::Wide(view) => {
            let rows = repeat(&view.values(), lengths);
            Ok(encode_wide(&rows, row_nulls(lengths, &view).as_ref()))
        }
        PageView::Text(view) => {
            let (bytes, ends) = view.all_strings()?;
            let rows = repeat(&text_slices(&bytes, &ends), lengths);
            join_text(&rows, row_nulls(lengths, &view).as_ref(), view.symbols())
        }
    }
}

/// Runs as they are stored: one that is longer than `width` bits say is in pieces.
#[derive(Debug)]
struct Found {
    lengths: Vec<u32>,
    /// Which run each is a piece of, if any is cut.
    cut: Option<Vec<u32>>,
    /// Bits of a stored length.
    width: u8,
}

impl Found {
    /// How runs of `rows` rows of about `bits` bits each are stored best; `None` if storing them
    /// takes about as much space as the rows.
    fn best(rows: usize, bits: usize, lengths: Vec<u32>) -> Option<Self> {
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
    fn rows(&self) -> impl Iterator<Item = usize> {
        self.lengths.iter().scan(0, |row, length| {
            let first = *row;
            *row += *length as usize;
            Some(first)
        })
    }

    fn store(&self, values: &Page) -> (Runs, Vec<u8>) {
        let mut bytes = pack_lengths(&self.lengths, self.width);
        bytes.extend_from_slice(&values.bytes);
        (Runs { count: self.lengths.len() as u32, nulls: values.nulls, width: self.width }, bytes)
    }
}

/// The runs of `rows` rows of about `bits` bits each, if storing them takes less space.
fn find_runs(rows: usize, bits: usize, differ: impl Fn(usize) -> bool) -> Option<Found> {
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

fn unpack_lengths(packed: &[u8], count: usize, width: u8) -> Vec<u32> {
    let mut lengths = Vec::with_capacity(count);
    let mut block = [0; BLOCK];
    for b in 0..count.div_ceil(BLOCK) {
        let rows = block_rows(count, b);
        unpack_block(&packed[b * block_bytes(BLOCK, width)..], rows, width, &mut block);
        lengths.extend(block[..rows].iter().map(|l| *l as u32 + 1));
    }
    lengths
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

fn repeat<T: Copy>(values: &[T], lengths: &[u32]) -> Vec<T> {
    let pairs = values.iter().zip(lengths);
    pairs.flat_map(|(v, l)| std::iter::repeat_n(*v, *l as usize)).collect()
}

fn run_nulls<B: ?Sized>(runs: &Found, view: &ValuesPage<'_, B>) -> Option<Bitmap> {
    view.has_nulls().then(|| {
        let mut nulls = Bitmap::zeros(0);
        runs.rows().for_each(|i| nulls.push(view.is_null(i)));
        nulls
    })
}

fn row_nulls<B: ?Sized>(lengths: &[u32], view: &ValuesPage<'_, B>) -> Option<Bitmap> {
    view.has_nulls().then(|| {
        let mut nulls = Bitmap::zeros(0);
        for (run, length) in lengths.iter().enumerate() {
            (0..*length).for_each(|_| nulls.push(view.is_null(run)));
        }
        nulls
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::codec::encode_codes_u16;

    fn comes_back(page: Page) -> (usize, usize) {
        let before = page.bytes.len();
        let shrunk = shrink_to_runs(page.clone()).unwrap();
        assert_eq!(expand_runs(&shrunk).unwrap(), page);
        (before, shrunk.bytes.len())
    }

    #[test]
    fn pages_with_runs_shrink_and_come_back() {
        let codes: Vec<u16> = (0..9000u32).map(|i| (i / 4 * 7919 % 300) as u16).collect();
        let (before, after) = comes_back(encode_codes_u16(&codes, 300));
        assert!(after * 2 < before, "{after} of {before}");
        let with_nulls: Vec<u16> =
            codes.iter().map(|c| if c % 5 == 0 { 300 } else { *c }).collect();
        comes_back(encode_codes_u16(&with_nulls, 300));
        comes_back(encode_codes_u16(&[7; 5000], 9));
        let ints: Vec<i64> = codes.iter().map(|c| i64::from(*c) * 1_000_003).collect();
        let mut nulls = Bitmap::zeros(ints.len());
        (0..400).for_each(|i| nulls.set(i));
        comes_back(encode_int(&ints, None));
        comes_back(encode_int(&ints, Some(&nulls)));
        let wides: Vec<i128> = ints.iter().map(|i| i128::from(*i) << 40).collect();
        comes_back(encode_wide(&wides, Some(&nulls)));
        let texts: Vec<String> = codes.iter().map(|c| "x".repeat(*c as usize % 20)).collect();
        let slices: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        comes_back(join_text(&slices, None, 1).unwrap());
    }

    #[test]
    fn runs_of_codes_are_those_of_their_page() {
        for (rows, run, distinct) in [(9000, 4, 300u16), (70_000, 90, 2), (5000, 1, 7)] {
            let code = |i: u32| ((i / run).wrapping_mul(7919) % (u32::from(distinct) + 1)) as u16;
            let codes: Vec<u16> = (0..rows).map(code).collect();
            let page = encode_codes_u16(&codes, distinct);
            let Some(runs) = RowRuns::find(&codes, distinct as usize) else {
                assert_eq!(run, 1);
                continue;
            };
            let values: Vec<u16> = runs.rows().map(|i| codes[i]).collect();
            let stored = runs.store_codes(&encode_codes_u16(&values, distinct)).unwrap();
            assert_eq!(expand_runs(&stored).unwrap(), page);
            let map = |c: u32| (c < u32::from(distinct)).then_some(c * 3 + 1);
            let mapped = map_codes(&stored, map, 40_000).unwrap();
            assert_eq!(expand_runs(&mapped).unwrap(), map_codes(&page, map, 40_000).unwrap());
        }
    }

    #[test]
    fn rows_that_differ_stay_as_they_are() {
        let codes: Vec<u16> = (0..5000).map(|i| i % 300).collect();
        let page = encode_codes_u16(&codes, 300);
        assert_eq!(shrink_to_runs(page.clone()).unwrap(), page);
    }

    #[test]
    fn lying_runs_are_refused() {
        let codes: Vec<u16> = (0..9000).map(|i| i / 40).collect();
        let page = shrink_to_runs(encode_codes_u16(&codes, 300)).unwrap();
        let runs = page.runs.unwrap();
        for lie in [
            Runs { count: runs.count - 1, ..runs },
            Runs { count: u32::MAX, ..runs },
            Runs { width: 33, ..runs },
            Runs { width: 0, ..runs },
        ] {
            assert!(expand_runs(&Page { runs: Some(lie), ..page.clone() }).is_err());
        }
    }
}
