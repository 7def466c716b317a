//! The order of rows whose keys are bytes: texts, and numbers that are too wide to be packed.
//!
//! ```text
//!   pages of the key   some keys of some pages are a sample: in order, so that all are looked at, or not
//!   else               pages in turn, by all threads -> buckets -> each sorted by a thread, taken in order
//!   in passes          where all keys would be too much memory, some buckets at a time
//! ```
//!
//! Memory: a share of what the load may take, and a page of the key for each thread.

use std::ops::Range;

use coload_threads::{in_order, relieve};
use coload_transform::{
    KeyOrder, KeyPart, KeySample, SortedKeys, Splitters, put_compared_key, put_key, shared_bytes,
    sort_bucket,
};
use coload_types::{Error, Plain, Result, Values};

use super::sorting::SortWith;

/// Share of the memory that the keys of a pass may take.
const KEYS_SHARE: u64 = 4;
/// Pages that a sample is taken of, at most.
const SAMPLED_PAGES: usize = 32;
/// Bytes of a key as it is sorted for each of its bytes as it is stored, about, and those of a number.
const STORED_TIMES: u64 = 2;
const NUMBER_BYTES: u64 = 8;
/// Bytes that stand before a key.
const HEAD_BYTES: u64 = 5;

/// The keys of rows, page by page.
pub(crate) trait KeyRows: Sync {
    /// How many pages there are.
    fn pages(&self) -> usize;

    /// Rows of a page that are sorted.
    fn rows_of(&self, page: usize) -> usize;

    /// Bytes of all pages as they are stored.
    fn bytes(&self) -> u64;

    /// Calls with the key of each row of a page.
    ///
    /// # Errors
    /// `Corrupt` when the page is not what was written; those of the call.
    fn for_each_key(&self, page: usize, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// What bytes of keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeysAre {
    /// To be compared with each other.
    Compared,
    /// Those of an index, of whose first columns each is a key as well.
    OfIndex,
}

/// How the values of the columns of a key become bytes.
#[derive(Debug)]
pub(crate) struct KeyForm {
    /// Which columns may be NULL.
    pub nullable: Vec<bool>,
    pub keys_are: KeysAre,
}

impl KeyForm {
    /// Calls with the keys of some rows.
    ///
    /// # Errors
    /// Those of the call.
    pub fn for_each(
        &self,
        columns: &[Plain],
        rows: Range<usize>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let put = match self.keys_are {
            KeysAre::Compared => put_compared_key,
            KeysAre::OfIndex => put_key,
        };
        if let ([Plain { values: Values::Bytes(texts), .. }], [false], KeysAre::Compared) =
            (columns, &self.nullable[..], self.keys_are)
        {
            return rows.into_iter().try_for_each(|row| each(texts.get(row)));
        }
        let mut key = Vec::new();
        for row in rows {
            key.clear();
            put(columns, &self.nullable, row, &mut key);
            each(&key)?;
        }
        Ok(())
    }
}

/// Rows of a part of keys that are in memory.
const PART_ROWS: usize = 1 << 14;

/// Keys that are in memory: the columns of a partition.
pub(super) struct ColumnKeys {
    columns: Vec<Plain>,
    form: KeyForm,
}

impl ColumnKeys {
    /// The keys of all rows of some columns, to be compared with each other.
    pub fn compared(columns: Vec<Plain>) -> Self {
        let nullable = columns.iter().map(|column| column.nulls.is_some()).collect();
        ColumnKeys { columns, form: KeyForm { nullable, keys_are: KeysAre::Compared } }
    }

    fn part(&self, part: usize) -> Range<usize> {
        let rows = self.columns.first().map_or(0, Plain::len);
        part * PART_ROWS..rows.min((part + 1) * PART_ROWS)
    }
}

impl KeyRows for ColumnKeys {
    fn pages(&self) -> usize {
        self.columns.first().map_or(0, Plain::len).div_ceil(PART_ROWS)
    }

    fn rows_of(&self, page: usize) -> usize {
        self.part(page).len()
    }

    fn bytes(&self) -> u64 {
        let bytes = |column: &Plain| match &column.values {
            Values::Bytes(texts) => texts.bytes.len() as u64,
            Values::Int(_) | Values::Wide(_) => 0,
        };
        self.columns.iter().map(bytes).sum()
    }

    fn for_each_key(&self, page: usize, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.form.for_each(&self.columns, self.part(page), each)
    }
}

/// The order of rows by their keys, counted through all pages.
///
/// # Errors
/// `Corrupt` when a page is not what was written; `Limit` when a part of the keys is over 4 GiB.
pub(crate) fn order_by_bytes(keys: &impl KeyRows, with: SortWith) -> Result<KeyOrder> {
    let sample = sample(keys, with.threads)?;
    if sample.is_in_order()
        && let Some(repeated) = in_order_already(keys, with.threads)?
    {
        return Ok(KeyOrder { rows: None, repeated });
    }
    let mut order = KeyOrder { rows: Some(Vec::with_capacity(count(keys))), repeated: Vec::new() };
    sort_sampled(
        (keys, sample),
        with,
        |sorted| sorted.order(),
        |_, bucket| {
            order.append(bucket);
            Ok(())
        },
    )?;
    Ok(order)
}

/// Sorts all rows by their keys, makes something of each part of them by all threads, and takes that one after the other, with what all
/// keys begin with.
///
/// # Errors
/// As [`order_by_bytes`]; those of the last call.
pub(crate) fn sort_by_bytes<T: Send>(
    keys: &impl KeyRows,
    with: SortWith,
    make: impl Fn(&SortedKeys<'_>) -> T + Sync,
    take: impl FnMut(&[u8], T) -> Result<()>,
) -> Result<()> {
    sort_sampled((keys, sample(keys, with.threads)?), with, make, take)
}

/// Bytes that the keys of a segment have at most while they are sorted, of so many columns with so many bytes.
pub(crate) fn key_bytes_held(rows: u64, (columns, stored): (usize, u64), with: SortWith) -> u64 {
    let of_numbers = rows * (HEAD_BYTES + columns as u64 * (NUMBER_BYTES + 1));
    (of_numbers + stored * STORED_TIMES).min(with.memory / KEYS_SHARE)
}

fn count(keys: &impl KeyRows) -> usize {
    (0..keys.pages()).map(|page| keys.rows_of(page)).sum()
}

/// Some of the keys, in the order of the rows.
fn sample(keys: &impl KeyRows, threads: usize) -> Result<KeySample> {
    let rows = count(keys) as u64;
    let bytes = keys.bytes() * STORED_TIMES + rows * NUMBER_BYTES;
    let wanted = KeySample::wanted(rows, bytes);
    let pages = keys.pages().min(SAMPLED_PAGES);
    let page_of = |number: usize| number * keys.pages() / pages.max(1);
    let sampled: usize = (0..pages).map(|number| keys.rows_of(page_of(number))).sum();
    let stride = (sampled as u64 / wanted.max(1)).max(1);
    let take = |number: usize| {
        let (mut some, mut row) = (KeySample::new(wanted), 0);
        keys.for_each_key(page_of(number), &mut |key| {
            if row % stride == 0 {
                some.push(key);
            }
            row += 1;
            Ok(())
        })?;
        Ok::<_, Error>(some)
    };
    let mut all = KeySample::new(wanted);
    in_order(pages, threads, take, |_, some| {
        all.append(some);
        Ok::<(), Error>(())
    })?;
    Ok(all)
}

/// The rows whose keys are those of the rows before, where all keys come in order.
fn in_order_already(keys: &impl KeyRows, threads: usize) -> Result<Option<Vec<u32>>> {
    struct Page {
        /// Its first key and its last; `None` without rows.
        ends: Option<(Vec<u8>, Vec<u8>)>,
        rows: u32,
        repeated: Vec<u32>,
    }
    enum Stop {
        OutOfOrder,
        Failed(Error),
    }
    let look = |page: usize| {
        let mut of = Page { ends: None, rows: 0, repeated: Vec::new() };
        let mut is_broken = false;
        let looked = keys.for_each_key(page, &mut |key| {
            match &mut of.ends {
                Some((_, last)) => match key.cmp(last) {
                    std::cmp::Ordering::Less => {
                        is_broken = true;
                        return Err(Error::Invalid("a key out of order".into()));
                    }
                    std::cmp::Ordering::Equal => of.repeated.push(of.rows),
                    std::cmp::Ordering::Greater => {
                        last.clear();
                        last.extend_from_slice(key);
                    }
                },
                none => *none = Some((key.to_vec(), key.to_vec())),
            }
            of.rows += 1;
            Ok(())
        });
        match looked {
            _ if is_broken => Err(Stop::OutOfOrder),
            Err(error) => Err(Stop::Failed(error)),
            Ok(()) => Ok(of),
        }
    };
    let (mut repeated, mut before, mut last) = (Vec::new(), 0, None::<Vec<u8>>);
    let looked = in_order(keys.pages(), threads, look, |_, page| {
        if let Some((first, end)) = page.ends {
            match last.as_ref().map(|last| first.cmp(last)) {
                Some(std::cmp::Ordering::Less) => return Err(Stop::OutOfOrder),
                Some(std::cmp::Ordering::Equal) => repeated.push(before),
                Some(std::cmp::Ordering::Greater) | None => {}
            }
            last = Some(end);
        }
        repeated.extend(page.repeated.into_iter().map(|row| before + row));
        before += page.rows;
        Ok(())
    });
    match looked {
        Ok(()) => Ok(Some(repeated)),
        Err(Stop::OutOfOrder) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn sort_sampled<T: Send>(
    (keys, sample): (&impl KeyRows, KeySample),
    SortWith { threads, memory }: SortWith,
    make: impl Fn(&SortedKeys<'_>) -> T + Sync,
    mut take: impl FnMut(&[u8], T) -> Result<()>,
) -> Result<()> {
    let splitters = Splitters::of(sample, count(keys) as u64);
    for pass in splitters.passes(memory / KEYS_SHARE) {
        relieve();
        let parts = divide(keys, &splitters, (pass.clone(), threads))?;
        // All keys come in each pass.
        let shared = shared_by(&parts);
        let sort = |bucket: usize| {
            let sorted = sort_bucket(&parts, pass.start + bucket);
            let sorted = sorted.ok_or_else(|| {
                Error::Limit("keys that begin alike over 4 GiB; lower --memory".into())
            })?;
            Ok(make(&sorted))
        };
        in_order(pass.len(), threads, sort, |_, made| take(shared, made))?;
    }
    Ok(())
}

/// What all keys begin with that came to some parts.
fn shared_by<'p>(parts: &'p [KeyPart<'_>]) -> &'p [u8] {
    let starts = parts.iter().filter_map(KeyPart::shared);
    starts.reduce(|a, b| &a[..shared_bytes(a, b)]).unwrap_or_default()
}

/// Keys of the buckets of a pass, in parts that come in the order of the rows.
fn divide<'s>(
    keys: &impl KeyRows,
    splitters: &'s Splitters,
    (pass, threads): (Range<usize>, usize),
) -> Result<Vec<KeyPart<'s>>> {
    let parts = threads.clamp(1, keys.pages().max(1));
    let pages = |part: usize| part * keys.pages() / parts..(part + 1) * keys.pages() / parts;
    let read = |part: usize| {
        let mut row: usize = (0..pages(part).start).map(|page| keys.rows_of(page)).sum();
        let mut divided = KeyPart::new(splitters, pass.clone(), parts);
        for page in pages(part) {
            keys.for_each_key(page, &mut |key| {
                divided.push(row as u32, key);
                row += 1;
                Ok(())
            })?;
        }
        Ok::<_, Error>(divided)
    };
    let mut all = Vec::with_capacity(parts);
    in_order(parts, threads, read, |_, part| {
        all.push(part);
        Ok::<(), Error>(())
    })?;
    Ok(all)
}
