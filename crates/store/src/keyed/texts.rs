//! Texts of a column that get another order; they may be more than 4 GiB.
//!
//! ```text
//!   rows as they are    7 2 9 0 5 ..    each is read once, in turn, and goes to the bucket that its new place is in
//!   buckets             place length text | place length text | ..      in the order in which they came
//!   pages               the texts of a bucket are found in the cache, by their places in it
//! ```
//!
//! A text that is looked for where it was would be waited for twice, its place and its bytes: rows of a shuffled input lie anywhere.
//! Texts may be codes of symbols, and stay what they are.
//!
//! Where all texts are too much memory, those of some of the new pages are placed at a time: the others are read in vain.
//!
//! Memory: the bytes of the texts that are placed, and 3 more of each, or 7 of one that is long.

use std::ops::Range;

use coload_page::{Page, SymbolEncoder, encode_text};
use coload_threads::in_order;
use coload_transform::encode_column;
use coload_types::{Bitmap, Error, Plain, Result, Strings, Values};

use super::gather::{Gather, finish_page};
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
/// Room that is made for a bucket before its texts come, at most.
const ROOM_MAX: usize = 1 << 20;
/// Bits of the length of a text in its span; the others are where it begins.
const LENGTH_BITS: u32 = 31;
/// Bytes before a text: its place in the bucket, and its length in one byte; [`LONG`] says that it follows in four.
const HEAD_BYTES: usize = 3;
const LONG_HEAD_BYTES: usize = 7;
const LONG: u8 = u8::MAX;
/// Texts of so many bytes are copied by one instruction or two, with what follows them.
const SHORT: usize = 32;
/// What a row has that gets no place.
const NO_PLACE: u32 = u32::MAX;

/// The new place of each of so many rows, where these rows get places in this order; they are fewer than [`NO_PLACE`].
pub(super) fn places_of(count: usize, rows: &[u32]) -> Vec<u32> {
    let mut to = vec![NO_PLACE; count];
    for (place, row) in rows.iter().enumerate() {
        to[*row as usize] = place as u32;
    }
    to
}

/// What pages of texts are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextsAre {
    /// As they are; pages of a segment get symbols.
    Plain,
    /// Codes of a table of symbols.
    Codes,
}

/// The texts of a column, on their way to their new places.
pub(super) struct Texts<'a> {
    /// The new place of each row.
    to: &'a [u32],
    /// The places that are given now.
    places: Range<usize>,
    texts_are: TextsAre,
    /// Bytes of a text, about.
    mean: usize,
    /// Rows of a bucket, as a power of two.
    bits: u32,
    /// Of how many rows one is taken for the choice of symbols.
    stride: usize,
}

/// Texts of some pages, in buckets.
pub(super) struct TextPart<'a> {
    to: &'a [u32],
    places: Range<usize>,
    bits: u32,
    buckets: Vec<Vec<u8>>,
    /// Rows that came.
    rows: usize,
    /// Places of NULL, counted from the first that is given.
    nulls: Option<Bitmap>,
    /// Some of the texts.
    sample: Option<Strings>,
    stride: usize,
}

impl<'a> Texts<'a> {
    /// Texts of rows that get these places, of which some are given now; all have so many bytes.
    pub fn new(to: &'a [u32], (places, bytes): (Range<usize>, u64), texts_are: TextsAre) -> Self {
        let mean = bytes as usize / to.len().max(1);
        let rows = (BUCKET_BYTES / mean.max(1)).max(1).ilog2();
        let bits = rows.clamp(*BUCKET_BITS.start(), *BUCKET_BITS.end());
        let wanted = (TRAINED_BYTES / mean.max(1)).clamp(1, TRAINED_ROWS);
        let stride = to.len().div_ceil(wanted).max(1);
        Texts { to, places, texts_are, mean, bits, stride }
    }

    /// Buckets for one of some parts of the pages, which takes a sample of the texts if symbols may be made of them.
    pub fn part(&self, parts: usize, samples: bool) -> TextPart<'a> {
        let Texts { to, ref places, mean, bits, stride, .. } = *self;
        // Room that is not touched costs nothing, and what grows is copied.
        let bytes = places.len().min(1 << bits) * (mean + HEAD_BYTES) / parts;
        let room = (bytes + bytes / 8).min(ROOM_MAX);
        let count = places.len().div_ceil(1 << bits);
        let buckets = (0..count).map(|_| Vec::with_capacity(room)).collect();
        let sample = (samples && self.texts_are == TextsAre::Plain).then(Strings::default);
        TextPart { to, places: places.clone(), bits, buckets, rows: 0, nulls: None, sample, stride }
    }

    /// Symbols for texts such as those of the samples that parts took.
    pub fn train(&self, parts: &[TextPart<'_>]) -> Option<SymbolEncoder> {
        let samples = parts.iter().filter_map(|part| part.sample.as_ref());
        let samples: Vec<&Strings> = samples.filter(|s| !s.bytes.is_empty()).collect();
        (!samples.is_empty()).then(|| SymbolEncoder::train_strings(&samples))
    }

    /// Gives pages of the rows in their new places, one after the other: plain texts with these symbols, if there are some. Parts come
    /// in the order of the pages.
    ///
    /// # Errors
    /// `Corrupt` when rows did not come; `Limit` when texts of a page are too long; those of the space and of the call.
    pub fn pages(
        self,
        parts: Vec<TextPart<'_>>,
        (gather, encoder): (Gather<'_>, Option<&SymbolEncoder>),
        pages: Range<usize>,
        mut take: impl FnMut(Page) -> Result<()>,
    ) -> Result<()> {
        let Gather { form, space, threads, .. } = gather;
        if parts.iter().map(|part| part.rows).sum::<usize>() != self.to.len() {
            return Err(Error::Corrupt("a column with other rows than its segment".into()));
        }
        let (mut buckets, mut nulls) = (Vec::new(), Vec::new());
        for part in parts {
            buckets.push(part.buckets);
            nulls.extend(part.nulls);
        }
        let placed = Placed {
            buckets: TextPages::put(buckets, space)?,
            bucket_rows: 1 << self.bits,
            places: self.places.len(),
        };
        let mut start = 0;
        let range = |rows: &u32| {
            let range = start..start + *rows as usize;
            start = range.end;
            range
        };
        let ranges: Vec<Range<usize>> = gather.pages.rows[pages].iter().map(range).collect();
        let make = |page: usize| {
            let places = ranges[page].clone();
            let strings = placed.take(places.clone())?;
            space.touch((places.len() * 2 + strings.bytes.len() / LINE_BYTES) as u64);
            let nulls = cut_nulls(&nulls, places);
            let page = match self.texts_are {
                TextsAre::Codes => {
                    encode_text(&strings.bytes, &lengths_of(&strings), nulls.as_ref(), 1)?
                }
                TextsAre::Plain => {
                    let plain = Plain { values: Values::Bytes(strings), nulls };
                    encode_column(&plain, encoder)?
                }
            };
            finish_page(page, form)
        };
        in_order(ranges.len(), threads, make, |_, page| take(page))
    }
}

impl TextPart<'_> {
    /// Takes the texts of some rows from one on, one after the other, and where each ends.
    ///
    /// # Errors
    /// `Corrupt` when they are more than there are rows; `Limit` when those of a bucket are too long.
    pub fn push(
        &mut self,
        first: usize,
        (bytes, ends): (&[u8], &[u32]),
        nulls: Option<&Bitmap>,
    ) -> Result<()> {
        let Some(to) = self.to.get(first..first + ends.len()) else {
            return Err(Error::Corrupt("a column with more rows than its segment".into()));
        };
        self.rows += to.len();
        let (bits, mask) = (self.bits, (1 << self.bits) - 1);
        // Who has no place is behind all of them.
        let (first_place, places) = (self.places.start as u32, self.places.len() as u32);
        let mut start = 0;
        for (place, end) in to.iter().zip(ends) {
            let text = start as usize..*end as usize;
            start = *end;
            let place = place.wrapping_sub(first_place);
            if place >= places {
                continue;
            }
            let bucket = &mut self.buckets[(place >> bits) as usize];
            if bucket.len() >> (u64::BITS - LENGTH_BITS) != 0 || text.len() >> LENGTH_BITS != 0 {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            put_head((place & mask) as u16, text.len() as u32, bucket);
            append(bucket, bytes, text);
        }
        if let Some(sample) = &mut self.sample {
            take_sample(sample, (first, self.stride, self.to.len()), (bytes, ends));
        }
        if let Some(nulls) = nulls {
            let all = self.nulls.get_or_insert_with(|| Bitmap::zeros(self.places.len()));
            for (row, place) in to.iter().enumerate() {
                let place = place.wrapping_sub(first_place);
                if nulls.get(row) && place < places {
                    all.set(place as usize);
                }
            }
        }
        Ok(())
    }
}

/// Takes texts of some rows into a sample. Which they are depends on the rows of the page alone, not on who else came.
fn take_sample(
    sample: &mut Strings,
    (first, stride, rows): (usize, usize, usize),
    (bytes, ends): (&[u8], &[u32]),
) {
    let most = sample.bytes.len() + (TRAINED_BYTES * ends.len()).div_ceil(rows.max(1));
    for row in (first.next_multiple_of(stride) - first..ends.len()).step_by(stride) {
        let start = row.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let end = (ends[row] as usize).min(start + TRAINED_BYTES);
        if sample.bytes.len() < most {
            sample.push(&bytes[start..end]);
        }
    }
}

/// Appends what stands before a text of a bucket.
#[inline(always)]
fn put_head(place: u16, length: u32, bucket: &mut Vec<u8>) {
    let mut head = [0; LONG_HEAD_BYTES + 1];
    head[..2].copy_from_slice(&place.to_le_bytes());
    let is_long = length >= u32::from(LONG);
    head[2] = if is_long { LONG } else { length as u8 };
    head[HEAD_BYTES..LONG_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    let end = bucket.len() + if is_long { LONG_HEAD_BYTES } else { HEAD_BYTES };
    bucket.extend_from_slice(&head);
    bucket.truncate(end);
}

/// Appends some bytes of others; those after a short text are written with it, and written over.
#[inline(always)]
fn append(to: &mut Vec<u8>, from: &[u8], range: Range<usize>) {
    match from[range.start..].first_chunk::<SHORT>() {
        Some(chunk) if range.len() <= SHORT => {
            let end = to.len() + range.len();
            to.extend_from_slice(chunk);
            to.truncate(end);
        }
        _ => to.extend_from_slice(&from[range]),
    }
}

fn lengths_of(strings: &Strings) -> Vec<u32> {
    let mut start = 0;
    let length = |end: &u32| {
        let length = end - start;
        start = *end;
        length
    };
    strings.ends.iter().map(length).collect()
}

/// The bits of some places; `None` when all are 0.
fn cut_nulls(parts: &[Bitmap], places: Range<usize>) -> Option<Bitmap> {
    let mut cut = Bitmap::zeros(places.len());
    let mut any = false;
    for nulls in parts {
        for (at, place) in places.clone().enumerate() {
            if nulls.get(place) {
                cut.set(at);
                any = true;
            }
        }
    }
    any.then_some(cut)
}

/// Texts in their places.
struct Placed {
    buckets: TextPages,
    bucket_rows: usize,
    places: usize,
}

impl Placed {
    /// The texts of some places.
    fn take(&self, places: Range<usize>) -> Result<Strings> {
        let (mut strings, mut spans) = (Strings::default(), Vec::new());
        let mut next = places.start;
        while next < places.end {
            let (number, at) = (next / self.bucket_rows, next % self.bucket_rows);
            let first = number * self.bucket_rows;
            let count = self.bucket_rows.min(self.places.saturating_sub(first));
            let taken = (places.end - next).min(count.saturating_sub(at));
            let bucket = self.buckets.read(number)?;
            find_spans(&bucket, count, &mut spans)?;
            let Some(spans) = spans.get(at..at + taken).filter(|spans| !spans.is_empty()) else {
                return Err(Error::Corrupt("a page of more rows than there are".into()));
            };
            let length = |span: &u64| span & ((1 << LENGTH_BITS) - 1);
            let bytes: u64 = spans.iter().map(length).sum();
            if !strings.has_room(bytes) {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            strings.bytes.reserve(bytes as usize + SHORT);
            strings.ends.reserve(taken);
            for span in spans {
                let start = (span >> LENGTH_BITS) as usize;
                append(&mut strings.bytes, &bucket, start..start + length(span) as usize);
                strings.ends.push(strings.bytes.len() as u32);
            }
            drop(bucket);
            self.buckets.check()?;
            next += taken;
        }
        Ok(strings)
    }
}

/// Finds the texts of a bucket of so many rows.
fn find_spans(bucket: &[u8], count: usize, spans: &mut Vec<u64>) -> Result<()> {
    let wrong = || Error::Corrupt("texts in a space are not what was written".into());
    spans.clear();
    spans.resize(count, 0);
    let (mut at, mut found) = (0, 0);
    while at < bucket.len() {
        let head = bucket[at..].first_chunk::<HEAD_BYTES>().ok_or_else(wrong)?;
        let [low, high, short] = *head;
        let (length, head_bytes) = match short {
            LONG => {
                let bytes = bucket[at + HEAD_BYTES..].first_chunk().ok_or_else(wrong)?;
                (u32::from_le_bytes(*bytes), LONG_HEAD_BYTES)
            }
            short => (u32::from(short), HEAD_BYTES),
        };
        let start = at + head_bytes;
        at = start + length as usize;
        let span = spans.get_mut(usize::from(u16::from_le_bytes([low, high])));
        *span.ok_or_else(wrong)? = (start as u64) << LENGTH_BITS | u64::from(length);
        found += 1;
    }
    if at != bucket.len() || found != count { Err(wrong()) } else { Ok(()) }
}
