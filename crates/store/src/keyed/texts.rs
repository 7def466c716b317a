//! Texts of a column that get another order; they may be more than 4 GiB.
//!
//! ```text
//!   rows as they are    7 2 9 0 5 ..    each is read once, in turn, and goes to the bucket that its new place is in
//!   buckets             0 2 .. | 5 7 .. | 9 ..
//!   pages               their texts are found within a bucket, in the cache
//! ```
//!
//! A text that is looked for where it was would be waited for twice, its place and its bytes: rows of a shuffled input lie anywhere.
//!
//! Memory: 8 bytes a row, 4 more until all are read, and the bytes of the texts.

use coload_page::{Page, SymbolEncoder};
use coload_space::{Piece, Space};
use coload_transform::encode_column;
use coload_types::{Bitmap, Error, Plain, Result, Strings, Values};

use super::gather::{Form, finish_page};
use super::sort_buffer::TextPages;

/// Texts that symbols are made of, and their bytes.
const TRAINED_ROWS: usize = 1 << 14;
const TRAINED_BYTES: usize = 1 << 20;
/// Bytes of a line of a cache.
const LINE_BYTES: usize = 64;
/// Bytes that a bucket should have: half of a cache of the second level.
const BUCKET_BYTES: usize = 512 << 10;
/// Rows of a bucket as a power of two, at least and at most: many buckets are as many places that are written to in turn.
const BUCKET_BITS: std::ops::RangeInclusive<u32> = 6..=14;
/// Bits of the length of a text in the place of one; the others are where it begins.
const LENGTH_BITS: u32 = 31;
/// What a row has that gets no place.
const NO_PLACE: u32 = u32::MAX;

/// The texts of a column, on their way to their new places.
#[derive(Debug)]
pub(super) struct Texts {
    /// The new place of each row.
    to: Vec<u32>,
    /// Rows that came so far.
    row: usize,
    /// Rows of a bucket, as a power of two; known with the first texts.
    bits: Option<u32>,
    buckets: Vec<Vec<u8>>,
    /// Where each text begins in its bucket, and its length.
    spans: Vec<u64>,
    /// Places of NULL.
    nulls: Option<Bitmap>,
}

impl Texts {
    /// Room for the texts of so many rows, of which these get places, in this order.
    pub fn new(count: usize, rows: &[u32]) -> Self {
        let mut to = vec![NO_PLACE; count];
        for (place, row) in rows.iter().enumerate() {
            to[*row as usize] = place as u32;
        }
        let spans = vec![0; rows.len()];
        Texts { to, row: 0, bits: None, buckets: Vec::new(), spans, nulls: None }
    }

    /// Takes the texts of the next rows.
    ///
    /// # Errors
    /// `Corrupt` when they are no texts, or more than there are rows; `Limit` when those of a bucket are too long.
    pub fn push(&mut self, page: &Plain) -> Result<()> {
        let Values::Bytes(strings) = &page.values else {
            return Err(Error::Corrupt("numbers in a column of text".into()));
        };
        let rows = self.row..self.row + strings.len();
        let Some(to) = self.to.get(rows.clone()) else {
            return Err(Error::Corrupt("a column with more rows than its segment".into()));
        };
        self.row = rows.end;
        if strings.is_empty() {
            return Ok(());
        }
        let bits = *self.bits.get_or_insert_with(|| {
            let mean = strings.bytes.len() / strings.len();
            let rows = (BUCKET_BYTES / mean.max(1)).max(1).ilog2();
            rows.clamp(*BUCKET_BITS.start(), *BUCKET_BITS.end())
        });
        if self.buckets.is_empty() {
            self.buckets = vec![Vec::new(); (self.spans.len() >> bits) + 1];
        }
        for (row, place) in to.iter().enumerate() {
            if *place == NO_PLACE {
                continue;
            }
            let text = strings.get(row);
            let bucket = &mut self.buckets[(place >> bits) as usize];
            let (start, length) = (bucket.len() as u64, text.len() as u64);
            if start >> (u64::BITS - LENGTH_BITS) != 0 || length >> LENGTH_BITS != 0 {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            bucket.extend_from_slice(text);
            self.spans[*place as usize] = start << LENGTH_BITS | length;
        }
        if let Some(nulls) = &page.nulls {
            let all = self.nulls.get_or_insert_with(|| Bitmap::zeros(self.spans.len()));
            for (row, place) in to.iter().enumerate() {
                if nulls.get(row) && *place != NO_PLACE {
                    all.set(*place as usize);
                }
            }
        }
        Ok(())
    }

    /// Pages of the rows in their new places, of so many rows each.
    ///
    /// # Errors
    /// `Corrupt` when rows did not come; `Limit` when texts of a page are too long; those of the space.
    pub fn pages(
        self,
        page_rows: &[u32],
        (form, space): (Form, &dyn Space),
    ) -> Result<(Vec<Page>, Option<SymbolEncoder>)> {
        let Texts { to, row, bits, buckets, spans, nulls } = self;
        if row < to.len() {
            return Err(Error::Corrupt("a column with fewer rows than its segment".into()));
        }
        drop(to);
        let buckets = TextPages::put(buckets, space)?;
        let view =
            Placed { buckets: buckets.view()?, bits: bits.unwrap_or_default(), spans: &spans };
        let encoder = if form == Form::Segment { view.train() } else { None };
        let (mut made, mut start) = (Vec::with_capacity(page_rows.len()), 0);
        for rows in page_rows {
            let places = start..start + *rows as usize;
            start = places.end;
            let picked = view.pick(places.clone())?;
            space.touch((places.len() * 2 + picked.bytes.len() / LINE_BYTES) as u64);
            let nulls = nulls.as_ref().and_then(|nulls| cut_nulls(nulls, places));
            let plain = Plain { values: Values::Bytes(picked), nulls };
            made.push(finish_page(encode_column(&plain, encoder.as_ref())?, form)?);
        }
        buckets.check()?;
        Ok((made, encoder))
    }
}

/// The bits of some places; `None` when all are 0.
fn cut_nulls(nulls: &Bitmap, places: std::ops::Range<usize>) -> Option<Bitmap> {
    let mut cut = Bitmap::zeros(places.len());
    let mut any = false;
    for (at, place) in places.enumerate() {
        if nulls.get(place) {
            cut.set(at);
            any = true;
        }
    }
    any.then_some(cut)
}

/// Texts in their places.
struct Placed<'a> {
    buckets: Vec<Piece<'a>>,
    bits: u32,
    spans: &'a [u64],
}

impl Placed<'_> {
    #[inline]
    fn get(&self, place: usize) -> &[u8] {
        let span = self.spans[place];
        let (start, length) = ((span >> LENGTH_BITS) as usize, span & ((1 << LENGTH_BITS) - 1));
        &self.buckets[place >> self.bits][start..start + length as usize]
    }

    fn pick(&self, places: impl Iterator<Item = usize> + Clone) -> Result<Strings> {
        let length = |place: usize| self.spans[place] & ((1 << LENGTH_BITS) - 1);
        let bytes: u64 = places.clone().map(length).sum();
        let mut strings = Strings::default();
        if !strings.has_room(bytes) {
            return Err(Error::Limit("text of one page over 4 GiB".into()));
        }
        strings.bytes.reserve_exact(bytes as usize);
        places.for_each(|place| strings.push(self.get(place)));
        Ok(strings)
    }

    /// Symbols made of some texts from everywhere.
    fn train(&self) -> Option<SymbolEncoder> {
        let bytes: usize = self.buckets.iter().map(|bucket| bucket.len()).sum();
        let rows = self.spans.len();
        let wanted = (TRAINED_BYTES / (bytes / rows.max(1)).max(1)).clamp(1, TRAINED_ROWS);
        let sample = self.pick((0..rows).step_by(rows.div_ceil(wanted).max(1))).ok()?;
        (!sample.bytes.is_empty()).then(|| SymbolEncoder::train_strings(&[&sample]))
    }
}
