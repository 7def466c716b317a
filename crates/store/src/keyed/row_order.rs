//! The order of the rows of a segment by its key.
//!
//! Numbers and codes are packed page by page as they are read, and sorted in buckets by all threads; other keys are bytes
//! ([`super::byte_order`]).

use coload_ddl::{Key, Schema};
use coload_page::{PageMeta, PageView};
use coload_threads::{in_order, relieve};
use coload_transform::{Divided, KeyBuckets, KeyOrder, PackedKeys, SORTED_ROWS_MAX};
use coload_types::{Error, Plain, Result, Values};

use super::bounds::bounds;
use super::byte_order::{KeyForm, KeyRows, KeysAre, order_by_bytes};
use super::fields::{for_each_codes, for_each_distances};
use super::given::{GivenPages, StoredPages};
use super::keys::{Float, float, null_in_key};
use super::pages::read_codes;
use super::run::canonical;
use super::sorting::SortWith;
use crate::SegmentFile;

/// Sorts the rows of a segment by a key.
///
/// # Errors
/// `Invalid` when a PRIMARY KEY has NULL, `Corrupt` when the segment is not what was written, `Limit` when it has too many rows.
pub(super) fn order_rows(
    segment: &SegmentFile,
    (schema, key): (&Schema, &Key),
    with: SortWith,
) -> Result<KeyOrder> {
    if segment.rows() > SORTED_ROWS_MAX as u64 {
        return Err(Error::Limit(format!(
            "{} rows are to be sorted at once, over {SORTED_ROWS_MAX}; lower --memory",
            segment.rows()
        )));
    }
    relieve();
    let Some(packed) = pack_keys(segment, schema, key)? else {
        return order_by_bytes(&SegmentKeys::compared(segment, schema, key)?, with);
    };
    let buckets = match packed.divide() {
        Divided::InOrder(order) => return Ok(order),
        Divided::Buckets(buckets) => buckets,
    };
    sort_divided(&buckets, segment.rows() as usize, with.threads)
}

/// The order of so many rows that were divided.
pub(super) fn sort_divided(buckets: &KeyBuckets, rows: usize, threads: usize) -> Result<KeyOrder> {
    let mut order = KeyOrder { rows: Some(Vec::with_capacity(rows)), repeated: Vec::new() };
    let sort = |bucket: usize| Ok(buckets.sort(bucket));
    in_order(buckets.count(), threads, sort, |_, bucket| {
        order.append(bucket);
        Ok::<(), Error>(())
    })?;
    Ok(order)
}

/// The keys of all rows as numbers; `None` where they are none, or have too many bits.
fn pack_keys(segment: &SegmentFile, schema: &Schema, key: &Key) -> Result<Option<PackedKeys>> {
    let rows = segment.rows() as usize;
    let (mut ranges, mut columns) = (Vec::new(), Vec::new());
    for column in key.columns() {
        let given = StoredPages::open(segment, *column)?;
        let has_nulls = segment.column(*column)?.index().pages.iter().any(|page| page.nulls > 0);
        let mut details = (0..given.count()).map(|page| given.detail(page));
        let is_coded = details.clone().all(|detail| detail.is_codes());
        let range = match segment.dictionary(*column)? {
            _ if float(schema, *column).is_some() => None,
            // NULL has the code after the last, and is last.
            Some(dictionary) if is_coded && !(has_nulls && key.is_unique()) => {
                Some((0, dictionary.len() as i64))
            }
            _ if has_nulls => None,
            _ => bounds(details.by_ref()),
        };
        let Some(range) = range else { return Ok(None) };
        ranges.push(range);
        columns.push(given);
    }
    let Some(mut keys) = PackedKeys::new(rows, &ranges) else { return Ok(None) };
    for (column, (given, range)) in columns.iter().zip(&ranges).enumerate() {
        let mut row = 0;
        let mut put = |distances: &[u64]| {
            keys.put(column, row, distances);
            row += distances.len();
            Ok(())
        };
        for page in 0..given.count() {
            let within = given.rows_of(page);
            given.with_view(page, &mut |view| match view {
                PageView::Codes(_) => for_each_codes(view, within.clone(), u64::from, &mut put),
                _ => for_each_distances(view, within.clone(), (range.0, None), &mut put),
            })?;
        }
    }
    segment.check()?;
    Ok(Some(keys))
}

/// The columns of the key of a segment, as they are sorted: codes of a sorted dictionary are as good as its values.
pub(crate) struct SegmentKeys<'a> {
    segment: &'a SegmentFile,
    columns: Vec<KeyColumn>,
    form: KeyForm,
}

/// A column of a key, and how it is read.
struct KeyColumn {
    column: usize,
    float: Option<Float>,
    /// Whether it is read as codes, NULL being the one after the last.
    is_coded: bool,
}

impl<'a> SegmentKeys<'a> {
    /// The keys of a segment, to be compared with each other.
    ///
    /// # Errors
    /// `Invalid` when a PRIMARY KEY has NULL; `Corrupt` when an index of the segment is damaged.
    pub fn compared(segment: &'a SegmentFile, schema: &Schema, key: &Key) -> Result<Self> {
        Self::of(segment, (schema, key.columns()), |column, pages| {
            let nulls: u64 = pages.iter().map(|page| u64::from(page.nulls)).sum();
            if key.is_unique() && nulls > 0 {
                return Err(null_in_key(column, nulls));
            }
            let is_coded = pages.iter().all(|page| page.detail.is_codes());
            let is_coded = is_coded && float(schema, column).is_none();
            // As codes NULL has a number.
            Ok((is_coded, nulls > 0 && !is_coded))
        })
        .map(|(columns, nullable)| {
            let form = KeyForm { nullable, keys_are: KeysAre::Compared };
            SegmentKeys { segment, columns, form }
        })
    }

    /// The values of some columns of a segment as keys of an index.
    ///
    /// # Errors
    /// `Corrupt` when an index of the segment is damaged.
    pub fn of_index(segment: &'a SegmentFile, schema: &Schema, columns: &[usize]) -> Result<Self> {
        // The same bytes in all segments, whether they have NULLs and dictionaries or not.
        let (columns, nullable) = Self::of(segment, (schema, columns), |_, _| Ok((false, true)))?;
        let form = KeyForm { nullable, keys_are: KeysAre::OfIndex };
        Ok(SegmentKeys { segment, columns, form })
    }

    /// The columns, and which of them may be NULL, by what a call says of each: whether it is read as codes, and whether it may be.
    fn of(
        segment: &SegmentFile,
        (schema, columns): (&Schema, &[usize]),
        read_as: impl Fn(usize, &[PageMeta]) -> Result<(bool, bool)>,
    ) -> Result<(Vec<KeyColumn>, Vec<bool>)> {
        let (mut all, mut nullable) = (Vec::new(), Vec::new());
        for column in columns {
            let (is_coded, may_be_null) =
                read_as(*column, &segment.column(*column)?.index().pages)?;
            all.push(KeyColumn { column: *column, float: float(schema, *column), is_coded });
            nullable.push(may_be_null);
        }
        Ok((all, nullable))
    }

    fn read(&self, of: &KeyColumn, page: usize) -> Result<Plain> {
        if of.is_coded {
            let codes = read_codes(self.segment, of.column, page)?.into_iter().map(i64::from);
            return Ok(Plain { values: Values::Int(codes.collect()), nulls: None });
        }
        let mut plain = Plain::empty(self.segment.physical(of.column));
        self.segment.decode_page(of.column, page, &mut plain)?;
        canonical(&mut plain, of.float);
        Ok(plain)
    }
}

impl KeyRows for SegmentKeys<'_> {
    fn pages(&self) -> usize {
        self.segment.page_rows().len()
    }

    fn rows_of(&self, page: usize) -> usize {
        self.segment.page_rows()[page] as usize
    }

    fn bytes(&self) -> u64 {
        let of = |column: &KeyColumn| {
            let open = self.segment.column(column.column);
            open.map_or(0, |open| open.index().pages.iter().map(|page| page.bytes).sum())
        };
        self.columns.iter().map(of).sum()
    }

    fn for_each_key(&self, page: usize, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let columns = self.columns.iter().map(|column| self.read(column, page));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.segment.check()?;
        self.form.for_each(&columns, 0..self.rows_of(page), each)
    }
}
