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

use super::narrow::{Narrow, pick};
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
    pub fn codes(&self, codes: Codes, dictionary: Dictionary) -> Result<PartitionColumn> {
        let drops = self.rows.len() < codes.0.len();
        let mut picked = Vec::with_capacity(self.page_rows.len());
        codes.0.pick(
            self.cut(),
            self.space,
            |code| code as u32,
            |_, codes| {
                picked.push(codes);
                Ok(())
            },
        )?;
        let dictionary = if drops { drop_unused(dictionary, &mut picked)? } else { dictionary };
        let null = dictionary.len() as u32;
        let pages =
            picked.into_iter().map(|codes| finish_page(encode_codes_u32(&codes, null), self.form));
        let pages = pages.collect::<Result<_>>()?;
        Ok(PartitionColumn { dictionary: Some(dictionary), symbols: Vec::new(), pages })
    }

    /// Gathers the values of a column as it is, whose pages are decoded by a call.
    ///
    /// # Errors
    /// Those of the call; `Corrupt` when a page holds another shape; `Limit` when texts of a page are too long; those of the space.
    pub fn values(
        &self,
        given: Given,
        decode: impl Fn(usize, &mut Plain) -> Result<()>,
    ) -> Result<PartitionColumn> {
        let Given { physical, pages, rows, bounds } = given;
        let decoded = |page: usize| {
            let mut plain = Plain::empty(physical);
            decode(page, &mut plain).map(|()| plain)
        };
        let mut nulls = Nulls::default();
        let mut made = Vec::with_capacity(self.page_rows.len());
        let mut finish = |values: Values, nulls: Option<Bitmap>| {
            made.push(finish_page(encode_column(&Plain { values, nulls }, None)?, self.form)?);
            Ok(())
        };
        match physical {
            Physical::Bytes => {
                let mut texts = Texts::new(rows, self.rows);
                (0..pages).try_for_each(|page| texts.push(&decoded(page)?))?;
                let (pages, encoder) = texts.pages(self.page_rows, (self.form, self.space))?;
                let symbols = encoder.iter().map(SymbolEncoder::table).collect();
                return Ok(PartitionColumn { dictionary: None, symbols, pages });
            }
            Physical::Int => {
                let (least, greatest) = bounds.unwrap_or((i64::MIN, i64::MAX));
                let range = greatest.wrapping_sub(least) as u64;
                let mut offsets = Narrow::up_to(range, rows);
                for page in 0..pages {
                    let mut plain = decoded(page)?;
                    let Values::Int(values) = &mut plain.values else { return Err(other_shape()) };
                    // What stands where NULL is has no bounds.
                    nulls.push(plain.nulls.as_ref(), values.len(), |row| values[row] = least);
                    offsets.extend(values, |value| value.wrapping_sub(least) as u64)?;
                }
                let value = |offset: u64| least.wrapping_add(offset as i64);
                offsets.pick(self.cut(), self.space, value, |rows, mut values| {
                    let nulls = nulls.pick(rows, |place| values[place] = 0);
                    finish(Values::Int(values), nulls)
                })?;
            }
            Physical::Wide => {
                let mut all = Vec::with_capacity(rows);
                for page in 0..pages {
                    let plain = decoded(page)?;
                    let Values::Wide(values) = &plain.values else { return Err(other_shape()) };
                    nulls.push(plain.nulls.as_ref(), values.len(), |_| {});
                    all.extend_from_slice(values);
                }
                pick(
                    all,
                    self.cut(),
                    self.space,
                    |value: i128| value,
                    |rows, values| finish(Values::Wide(values), nulls.pick(rows, |_| {})),
                )?;
            }
        }
        Ok(PartitionColumn { dictionary: None, symbols: Vec::new(), pages: made })
    }
}

fn other_shape() -> Error {
    Error::Corrupt("a page of a column holds values of another shape".into())
}

/// What is known of a column as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub physical: Physical,
    pub pages: usize,
    /// Rows of all pages.
    pub rows: usize,
    /// The least and the greatest number, if they are known.
    pub bounds: Option<(i64, i64)>,
}

/// Which rows of a column are NULL.
#[derive(Debug, Default)]
struct Nulls {
    rows: usize,
    bits: Option<Bitmap>,
}

impl Nulls {
    /// Takes those of a page, and calls with each.
    fn push(&mut self, nulls: Option<&Bitmap>, rows: usize, mut each: impl FnMut(usize)) {
        if let Some(nulls) = nulls {
            let all = self.bits.get_or_insert_with(|| Bitmap::zeros(self.rows));
            for row in 0..rows {
                let is_null = nulls.get(row);
                all.push(is_null);
                if is_null {
                    each(row);
                }
            }
        } else if let Some(all) = &mut self.bits {
            all.extend_zeros(rows);
        }
        self.rows += rows;
    }

    /// Those of some rows, and calls with the place of each; `None` when there are none.
    fn pick(&self, rows: &[u32], mut each: impl FnMut(usize)) -> Option<Bitmap> {
        let bits = self.bits.as_ref()?;
        let mut picked = Bitmap::zeros(rows.len());
        let mut any = false;
        for (place, row) in rows.iter().enumerate() {
            if bits.get(*row as usize) {
                picked.set(place);
                each(place);
                any = true;
            }
        }
        any.then_some(picked)
    }
}

/// Codes of a column as it is.
#[derive(Debug)]
pub(super) struct Codes(Narrow);

impl Codes {
    /// Room for the codes of so many rows; NULL has the code after the last of the dictionary.
    pub fn of(dictionary: &Dictionary, rows: usize) -> Self {
        Codes(Narrow::up_to(dictionary.len() as u64, rows))
    }

    /// Appends the codes of a page, as `change` makes them.
    ///
    /// # Errors
    /// `Corrupt` when it holds values, or a code of no value.
    pub fn append(&mut self, view: &PageView<'_>, change: impl Fn(u32) -> u32) -> Result<()> {
        for_each_codes(view, |codes| self.0.extend(codes, |code| change(code).into()))
    }
}

/// Calls with the codes of a page, block by block.
///
/// # Errors
/// `Corrupt` when it holds values; those of the call.
pub(super) fn for_each_codes(
    view: &PageView<'_>,
    mut take: impl FnMut(&[u32]) -> Result<()>,
) -> Result<()> {
    let PageView::Codes(view) = view else {
        return Err(Error::Corrupt("values in a column of codes".into()));
    };
    let mut block = [0; BLOCK];
    (0..view.rows.div_ceil(BLOCK)).try_for_each(|b| {
        let count = view.unpack(b, &mut block);
        take(&block[..count])
    })
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
