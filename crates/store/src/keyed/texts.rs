//! Texts of a whole column that get another order; they may be more than 4 GiB.

use coload_page::{Page, SymbolDecoder, SymbolEncoder, shrink_page};
use coload_transform::{PartitionColumn, encode_column};
use coload_types::{Bitmap, Error, Physical, Plain, Result, Strings, Values};

use super::order::{pick_nulls, plain_page};
use crate::append_page;

/// Texts that symbols are made of, and their bytes.
const TRAINED_ROWS: usize = 1 << 14;
const TRAINED_BYTES: usize = 1 << 20;

/// The texts of a column, in the pages that they stood in.
pub(super) struct Texts {
    pages: Vec<Strings>,
    /// Page of each row, and where its text ends there.
    places: Vec<(u32, u32)>,
    nulls: Option<Bitmap>,
}

impl Texts {
    /// Decodes a column.
    ///
    /// # Errors
    /// `Corrupt` when it holds no text.
    pub fn decode(given: &PartitionColumn, decoders: &[SymbolDecoder]) -> Result<Self> {
        let (pages, places) = (Vec::with_capacity(given.pages.len()), Vec::new());
        let mut texts = Texts { pages, places, nulls: None };
        for (number, page) in (0..).zip(&given.pages) {
            let mut plain = Plain::empty(Physical::Bytes);
            let dictionary = given.dictionary.as_ref();
            append_page(&plain_page(page)?.view()?, dictionary, decoders, &mut plain)?;
            let Plain { values: Values::Bytes(mut strings), nulls } = plain else {
                return Err(Error::Corrupt("numbers in a column of text".into()));
            };
            let rows = texts.places.len();
            texts.places.extend(strings.ends.iter().map(|end| (number, *end)));
            if let Some(nulls) = &nulls {
                let all = texts.nulls.get_or_insert_with(|| Bitmap::zeros(rows));
                (0..nulls.len()).for_each(|row| all.push(nulls.get(row)));
            } else if let Some(all) = &mut texts.nulls {
                all.extend_zeros(strings.len());
            }
            strings.ends = Vec::new();
            strings.bytes.shrink_to_fit();
            texts.pages.push(strings);
        }
        Ok(texts)
    }

    fn get(&self, row: usize) -> &[u8] {
        let (page, end) = self.places[row];
        let before = row.checked_sub(1).map(|row| self.places[row]);
        let start = before.filter(|(other, _)| *other == page).map_or(0, |(_, end)| end);
        &self.pages[page as usize].bytes[start as usize..end as usize]
    }

    fn pick<'a>(&self, rows: impl Iterator<Item = &'a u32> + Clone) -> Result<Strings> {
        let bytes: usize = rows.clone().map(|row| self.get(*row as usize).len()).sum();
        let mut strings = Strings::default();
        if !strings.has_room(bytes as u64) {
            return Err(Error::Limit("text of one page over 4 GiB".into()));
        }
        strings.bytes.reserve_exact(bytes);
        rows.for_each(|row| strings.push(self.get(*row as usize)));
        Ok(strings)
    }

    /// Symbols made of some texts from everywhere.
    pub fn train(&self, rows: &[u32]) -> Option<SymbolEncoder> {
        let bytes: usize = self.pages.iter().map(|page| page.bytes.len()).sum();
        let mean = bytes / self.places.len().max(1);
        let wanted = (TRAINED_BYTES / mean.max(1)).clamp(1, TRAINED_ROWS);
        let step = rows.len().div_ceil(wanted).max(1);
        let sample = self.pick(rows.iter().step_by(step)).ok()?;
        (!sample.bytes.is_empty()).then(|| SymbolEncoder::train_strings(&[&sample]))
    }

    /// A page of some rows.
    ///
    /// # Errors
    /// `Limit` when their text is too long.
    pub fn page(&self, rows: &[u32], encoder: Option<&SymbolEncoder>) -> Result<Page> {
        let values = Values::Bytes(self.pick(rows.iter())?);
        let nulls = pick_nulls(self.nulls.as_ref(), rows);
        shrink_page(encode_column(&Plain { values, nulls }, encoder)?)
    }
}
