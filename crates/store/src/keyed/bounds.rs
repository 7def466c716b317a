//! Bounds of the numbers of pages.

use coload_page::PageDetail;

/// The least and the greatest number of pages; `None` if some do not tell.
pub(super) fn bounds<'p>(mut pages: impl Iterator<Item = &'p PageDetail>) -> Option<(i64, i64)> {
    pages.try_fold((i64::MAX, i64::MIN), |(least, greatest), page| match page {
        PageDetail::Int { min, max } => Some((least.min(*min), greatest.max(*max))),
        PageDetail::Codes { .. } | PageDetail::Wide { .. } | PageDetail::Text { .. } => None,
    })
}
