//! A column of rows in another order: its values are gathered by row, and are pages again.
//!
//! Columns are gathered in the form that they are stored in: codes stay codes of a dictionary, which loses the values that no row has
//! any more.
//!
//! Cost: a column whole, decoded: 4 bytes a code, 8 or 16 a number, 8 and its bytes a text.

use coload_page::bitpack::BLOCK;
use coload_page::{Page, PageView, SymbolEncoder, encode_codes_u32, shrink_page};
use coload_space::Space;
use coload_transform::{PartitionColumn, encode_column};
use coload_types::{Bitmap, Dictionary, Error, Physical, Plain, Result, Values};

use super::sort_buffer::{Fixed, Numbers};
use super::texts::Texts;

/// What pages are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A segment: as few bytes as may be.
    Segment,
    /// A run, which is read once: no time is spent on fewer bytes.
    Run,
}

/// A page as it is kept in a form.
pub(super) fn finish_page(page: Page, form: Form) -> Result<Page> {
    match form {
        Form::Segment => shrink_page(page),
        Form::Run => Ok(page),
    }
}

/// The rows that a column gets, and how.
#[derive(Clone, Copy)]
pub(super) struct Gather<'a> {
    /// Rows of the column as it is, in the order that they get; some may be left out.
    pub rows: &'a [u32],
    /// Rows of each page that is made.
    pub page_rows: &'a [u32],
    pub form: Form,
    /// Where the column lies meanwhile.
    pub space: &'a dyn Space,
}

impl<'a> Gather<'a> {
    /// The rows of each page.
    pub fn cut(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let rows = self.rows;
        self.page_rows.iter().scan(0, move |start, count| {
            let page = *start..*start + *count as usize;
            *start = page.end;
            Some(&rows[page])
        })
    }

    /// Gathers codes of a dictionary, in which NULL has the code after the last.
    ///
    /// # Errors
    /// `Corrupt` for a code of no value; those of the space.
    pub fn codes(&self, codes: Vec<u32>, dictionary: Dictionary) -> Result<PartitionColumn> {
        let drops = self.rows.len() < codes.len();
        let codes = Numbers::put(codes, self.space)?;
        let view = codes.view()?;
        let mut picked = Vec::with_capacity(self.page_rows.len());
        for rows in self.cut() {
            picked.push(view.pick(rows, self.space)?);
        }
        let dictionary = if drops { drop_unused(dictionary, &mut picked)? } else { dictionary };
        let null = dictionary.len() as u32;
        let pages =
            picked.into_iter().map(|codes| finish_page(encode_codes_u32(&codes, null), self.form));
        let pages = pages.collect::<Result<_>>()?;
        Ok(PartitionColumn { dictionary: Some(dictionary), symbols: Vec::new(), pages })
    }

    /// Gathers values.
    ///
    /// # Errors
    /// `Limit` when texts of a page are too long; those of the space.
    pub fn values(&self, values: Decoded) -> Result<PartitionColumn> {
        let (values, nulls) = match values {
            Decoded::Texts(texts) => {
                let (pages, encoder) =
                    texts.pages(self.rows, self.cut(), (self.form, self.space))?;
                let symbols = encoder.iter().map(SymbolEncoder::table).collect();
                return Ok(PartitionColumn { dictionary: None, symbols, pages });
            }
            Decoded::Numbers(Plain { values, nulls }) => (values, nulls),
        };
        match values {
            Values::Int(values) => self.fixed(values, nulls.as_ref(), Values::Int),
            Values::Wide(values) => self.fixed(values, nulls.as_ref(), Values::Wide),
            Values::Bytes(_) => Err(Error::Corrupt("text in a column of numbers".into())),
        }
    }

    fn fixed<T: Fixed>(
        &self,
        values: Vec<T>,
        nulls: Option<&Bitmap>,
        wrap: impl Fn(Vec<T>) -> Values,
    ) -> Result<PartitionColumn> {
        let numbers = Numbers::put(values, self.space)?;
        let view = numbers.view()?;
        let page = |rows: &[u32]| {
            let values = wrap(view.pick(rows, self.space)?);
            let plain = Plain { values, nulls: pick_nulls(nulls, rows) };
            finish_page(encode_column(&plain, None)?, self.form)
        };
        let pages = self.cut().map(page).collect::<Result<_>>()?;
        Ok(PartitionColumn { dictionary: None, symbols: Vec::new(), pages })
    }
}

/// The values of a column as it is.
#[derive(Debug)]
pub(super) enum Decoded {
    Texts(Texts),
    Numbers(Plain),
}

impl Decoded {
    /// The values of so many pages, each of which is decoded by a call.
    ///
    /// # Errors
    /// Those of the call; `Corrupt` when a page holds another shape.
    pub fn read(
        physical: Physical,
        pages: usize,
        decode: impl Fn(usize, &mut Plain) -> Result<()>,
    ) -> Result<Self> {
        if physical != Physical::Bytes {
            let mut plain = Plain::empty(physical);
            (0..pages).try_for_each(|page| decode(page, &mut plain))?;
            return Ok(Decoded::Numbers(plain));
        }
        let mut texts = Texts::default();
        for page in 0..pages {
            let mut plain = Plain::empty(physical);
            decode(page, &mut plain)?;
            texts.push(plain)?;
        }
        Ok(Decoded::Texts(texts))
    }
}

/// Takes the values out of a dictionary that no row has, and makes the codes those of what is left.
fn drop_unused(dictionary: Dictionary, pages: &mut [Vec<u32>]) -> Result<Dictionary> {
    let count = dictionary.len();
    let mut used = vec![false; count + 1];
    for code in pages.iter().flatten() {
        let used = used.get_mut(*code as usize);
        *used.ok_or_else(|| Error::Corrupt(format!("code {code} of {count} values")))? = true;
    }
    if used[..count].iter().all(|used| *used) {
        return Ok(dictionary);
    }
    let mut values = Values::empty(dictionary.values().physical());
    let mut new_codes = Vec::with_capacity(count + 1);
    for (code, used) in used[..count].iter().enumerate() {
        new_codes.push(values.len() as u32);
        if *used {
            values.push(&dictionary.values().get(code));
        }
    }
    // NULL keeps the code after the last.
    new_codes.push(values.len() as u32);
    pages.iter_mut().flatten().for_each(|code| *code = new_codes[*code as usize]);
    Dictionary::new(values)
}

/// The bits of some rows; `None` when all are 0.
pub(super) fn pick_nulls(nulls: Option<&Bitmap>, rows: &[u32]) -> Option<Bitmap> {
    let nulls = nulls?;
    let mut picked = Bitmap::zeros(rows.len());
    let mut any = false;
    for (place, row) in rows.iter().enumerate() {
        if nulls.get(*row as usize) {
            picked.set(place);
            any = true;
        }
    }
    any.then_some(picked)
}

/// Appends the codes of a page, as `change` makes them.
///
/// # Errors
/// `Corrupt` when it holds values.
pub(super) fn append_codes(
    view: &PageView<'_>,
    out: &mut Vec<u32>,
    change: impl Fn(u32) -> u32,
) -> Result<()> {
    let PageView::Codes(view) = view else {
        return Err(Error::Corrupt("values in a column of codes".into()));
    };
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        out.extend(block[..count].iter().map(|code| change(*code)));
    }
    Ok(())
}
