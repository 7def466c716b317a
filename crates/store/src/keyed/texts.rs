//! Texts of a whole column that get another order; they may be more than 4 GiB.

use std::ops::Range;

use coload_page::{Page, SymbolEncoder};
use coload_space::{Piece, Space};
use coload_transform::encode_column;
use coload_types::{Bitmap, Error, Plain, Result, Strings, Values};

use super::gather::{Form, finish_page, pick_nulls};
use super::sort_buffer::TextPages;

/// Texts that symbols are made of, and their bytes.
const TRAINED_ROWS: usize = 1 << 14;
const TRAINED_BYTES: usize = 1 << 20;
/// Bytes of a line of a cache.
const LINE_BYTES: usize = 64;

/// The texts of a column, in the pages that they stood in.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pages: Vec<Vec<u8>>,
    /// Page of each row, and where its text ends there.
    places: Vec<(u32, u32)>,
    nulls: Option<Bitmap>,
}

impl Texts {
    /// Appends the rows of a page.
    ///
    /// # Errors
    /// `Corrupt` when they are no texts.
    pub fn push(&mut self, page: Plain) -> Result<()> {
        let Plain { values: Values::Bytes(mut strings), nulls } = page else {
            return Err(Error::Corrupt("numbers in a column of text".into()));
        };
        let (rows, number) = (self.places.len(), self.pages.len() as u32);
        self.places.extend(strings.ends.iter().map(|end| (number, *end)));
        if let Some(nulls) = &nulls {
            let all = self.nulls.get_or_insert_with(|| Bitmap::zeros(rows));
            (0..nulls.len()).for_each(|row| all.push(nulls.get(row)));
        } else if let Some(all) = &mut self.nulls {
            all.extend_zeros(strings.len());
        }
        strings.bytes.shrink_to_fit();
        self.pages.push(strings.bytes);
        Ok(())
    }

    /// Pages of the rows in another order.
    ///
    /// # Errors
    /// `Limit` when texts of a page are too long; those of the space.
    pub fn pages<'r>(
        self,
        rows: &[u32],
        cut: impl Iterator<Item = &'r [u32]>,
        (form, space): (Form, &dyn Space),
    ) -> Result<(Vec<Page>, Option<SymbolEncoder>)> {
        let Texts { pages, places, nulls } = self;
        let pages = TextPages::put(pages, space)?;
        let view = TextsView { pages: pages.view()?, places: &places };
        let encoder = if form == Form::Segment { view.train(rows) } else { None };
        let mut made = Vec::new();
        for rows in cut {
            let picked = view.pick(rows.iter())?;
            space.touch((rows.len() * 2 + picked.bytes.len() / LINE_BYTES) as u64);
            let values = Values::Bytes(picked);
            let plain = Plain { values, nulls: pick_nulls(nulls.as_ref(), rows) };
            made.push(finish_page(encode_column(&plain, encoder.as_ref())?, form)?);
        }
        pages.check()?;
        Ok((made, encoder))
    }
}

/// Texts that are picked from.
struct TextsView<'a> {
    pages: Vec<Piece<'a>>,
    places: &'a [(u32, u32)],
}

impl TextsView<'_> {
    /// Page of the text of a row, and its bytes there.
    #[inline]
    fn place(&self, row: usize) -> (u32, Range<u32>) {
        let (page, end) = self.places[row];
        let before = row.checked_sub(1).map(|row| self.places[row]);
        let start = before.filter(|(other, _)| *other == page).map_or(0, |(_, end)| end);
        (page, start..end)
    }

    fn pick<'r>(&self, rows: impl Iterator<Item = &'r u32>) -> Result<Strings> {
        // Where texts stand is read first, and their first bytes with it: what is not in a cache is waited for at once, and
        // not text by text.
        let mut places = Vec::with_capacity(rows.size_hint().0);
        let (mut bytes, mut first_bytes) = (0_u64, 0_u8);
        for row in rows {
            let (page, text) = self.place(*row as usize);
            bytes += u64::from(text.end - text.start);
            let first = self.pages[page as usize].get(text.start as usize);
            first_bytes ^= first.copied().unwrap_or_default();
            places.push((page, text));
        }
        std::hint::black_box(first_bytes);
        let mut strings = Strings::default();
        if !strings.has_room(bytes) {
            return Err(Error::Limit("text of one page over 4 GiB".into()));
        }
        strings.bytes.reserve_exact(bytes as usize);
        strings.ends.reserve_exact(places.len());
        for (page, text) in places {
            strings.push(&self.pages[page as usize][text.start as usize..text.end as usize]);
        }
        Ok(strings)
    }

    /// Symbols made of some texts from everywhere.
    fn train(&self, rows: &[u32]) -> Option<SymbolEncoder> {
        let bytes: usize = self.pages.iter().map(|page| page.len()).sum();
        let mean = bytes / self.places.len().max(1);
        let wanted = (TRAINED_BYTES / mean.max(1)).clamp(1, TRAINED_ROWS);
        let step = rows.len().div_ceil(wanted).max(1);
        let sample = self.pick(rows.iter().step_by(step)).ok()?;
        (!sample.bytes.is_empty()).then(|| SymbolEncoder::train_strings(&[&sample]))
    }
}
