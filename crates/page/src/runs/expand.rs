//! Pages stored as runs, and what is in them.

use super::found::unpack_lengths;
use super::{Runs, join_text, text_slices};
use crate::bitpack::{BLOCK, packed_bytes};
use crate::codec::{encode_codes_u32, encode_int, encode_wide};
use crate::page::Page;
use crate::view::{PageView, ValuesPage};
use coload_types::{Bitmap, Error, Result};

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

pub(super) fn wrong_runs() -> Error {
    Error::Corrupt("runs do not add up to their page".into())
}

/// The page of the values of a page stored as runs.
pub(super) fn values_page(page: &Page, runs: Runs, bytes: &[u8]) -> Page {
    Page {
        codec: page.codec,
        detail: page.detail.clone(),
        rows: runs.count,
        nulls: runs.nulls,
        bytes: bytes.to_vec(),
        runs: None,
    }
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

fn repeat<T: Copy>(values: &[T], lengths: &[u32]) -> Vec<T> {
    let pairs = values.iter().zip(lengths);
    pairs.flat_map(|(v, l)| std::iter::repeat_n(*v, *l as usize)).collect()
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
