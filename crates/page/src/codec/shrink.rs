//! Chooses the codec of a page.

use super::{CODECS, CodecId, Sample};
use crate::page::Page;
use crate::runs::{inner_page, replace_inner, shrink_to_runs};
use coload_types::Result;

/// Another codec is tried where it is expected to take less than this share of the bytes: less of a gain may be none.
const WORTH: (usize, usize) = (99, 100);

/// Pages of fewer bytes keep their codec: to choose another takes longer than to write them, and a table may have a
/// thousand columns of such.
const BYTES_MIN: usize = 4 << 10;

/// Stores a page in fewer bytes if there is a way: as runs, with another codec, or both. A page that is not as it was made
/// first stays as it is.
///
/// Cost: a look at some blocks of the page, and the work of one codec if it is expected to pay.
///
/// # Errors
/// `Corrupt` when the page does not add up.
pub fn shrink_page(page: Page) -> Result<Page> {
    if !is_ordinary(&page) {
        return Ok(page);
    }
    let page = shrink_to_runs(page)?;
    if page.detail.is_codes() || page.detail.symbols() > 0 || page.bytes.len() < BYTES_MIN {
        return Ok(page);
    }
    if page.runs.is_none() {
        return shrink_values(page);
    }
    let Some(inner) = inner_page(&page)? else { return Ok(page) };
    let before = inner.bytes.len();
    let inner = shrink_values(inner)?;
    if inner.bytes.len() < before { replace_inner(page, &inner) } else { Ok(page) }
}

/// Whether a page is of a codec that pages are made with first.
fn is_ordinary(page: &Page) -> bool {
    let first = [CodecId::CODES, CodecId::FRAMES, CodecId::WIDE_FRAMES, CodecId::TEXT];
    first.contains(&page.codec)
}

/// The codecs that others are weighed against have no estimate; the expected bytes and codec of the best of the others.
fn best(sample: &Sample) -> Option<(usize, u8)> {
    let numbered = CODECS.iter().zip(0..);
    numbered.filter_map(|(codec, number)| Some((codec.estimate(sample)?, number))).min()
}

fn shrink_values(page: Page) -> Result<Page> {
    Ok(match recode(&page)? {
        Some((codec, bytes)) if bytes.len() < page.bytes.len() => Page { codec, bytes, ..page },
        _ => page,
    })
}

/// The codec that is expected to take the least bytes for a page, and these, if it is worth it.
fn recode(page: &Page) -> Result<Option<(CodecId, Vec<u8>)>> {
    let view = page.view()?;
    let Some(sample) = Sample::of(&view)? else { return Ok(None) };
    let Some((bytes, number)) = best(&sample) else { return Ok(None) };
    if bytes * WORTH.1 > page.bytes.len() * WORTH.0 {
        return Ok(None);
    }
    let codec = CodecId(number);
    Ok(codec.codec()?.encode(&view)?.map(|bytes| (codec, bytes)))
}

/// The bytes that a sample of strings is expected to take with the best codec for whole strings, of those that do without
/// symbols.
pub(crate) fn whole_estimate(sample: &Sample) -> Option<(usize, CodecId)> {
    // Pages of so few strings keep their codec.
    if matches!(sample, Sample::Text { strings, .. } if strings.bytes.len() < BYTES_MIN) {
        return None;
    }
    best(sample).map(|(bytes, number)| (bytes, CodecId(number)))
}
