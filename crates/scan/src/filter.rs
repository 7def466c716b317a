//! Predicates prepared for one segment, and for one page of it.
//!
//! On a column with a dictionary a test becomes ranges of codes by binary searches, once for the
//! segment. A page whose smallest and largest code (or number) decide the test is not read at all.

use std::ops::Bound;

use coload_format::bitpack::BLOCK;
use coload_format::page::{BlocksPage, CodesPage, PageDetail, PageView, block_rows};
use coload_format::{Dictionary, Error, Physical, Result, SymbolDecoder, Value, Values};
use coload_store::SegmentFile;

use crate::compare::{Scratch, mask_packed, max_of_width};
use crate::mask::{BlockMask, MASK_WORDS, Selection};
use crate::predicate::{Predicate, Test};
use crate::ranges::{Ranges, Step};
use crate::unpack::unpack_to_32;

/// Over this many ranges in a page, codes are looked up in a table instead.
const RANGES_MAX: usize = 8;

/// Predicates prepared for one segment; a row must pass them all.
#[derive(Debug, Clone)]
pub struct Filter {
    tests: Vec<ColumnTest>,
}

#[derive(Debug, Clone)]
struct ColumnTest {
    column: usize,
    test: Test,
    /// Codes that pass, with the null code among them if NULL does.
    codes: Option<CodeSet>,
    /// Numbers that pass on pages of numbers.
    values: ValueSet,
}

#[derive(Debug, Clone)]
struct CodeSet {
    ranges: Ranges<u32>,
    null: u32,
    /// A byte for each code and for NULL, when the ranges are many.
    table: Vec<u8>,
}

#[derive(Debug, Clone)]
enum ValueSet {
    Int(Ranges<i64>),
    Wide(Ranges<i128>),
    Bytes,
}

/// What a page's statistics say of a test.
enum Verdict<'a> {
    All,
    None,
    Look(PageTest<'a>),
}

/// A test on one page.
enum PageTest<'a> {
    Codes { page: CodesPage<'a>, ranges: Vec<(u64, u64)> },
    Table { page: CodesPage<'a>, table: &'a [u8] },
    Int { page: BlocksPage<'a>, ranges: &'a Ranges<i64> },
    Wide { page: BlocksPage<'a>, ranges: &'a Ranges<i128> },
    Text { page: BlocksPage<'a>, decoder: Option<&'a SymbolDecoder>, test: &'a Test },
    Nulls { page: BlocksPage<'a> },
}

/// A filter on one page.
pub struct PageFilter<'a> {
    rows: usize,
    /// `None` when no row can pass.
    tests: Option<Vec<PageTest<'a>>>,
    /// Made with the first block that is tested.
    scratch: Option<Scratch>,
}

impl Filter {
    /// Prepares predicates for a segment: two binary searches in a dictionary for each bound.
    ///
    /// # Errors
    /// `Invalid` when a test does not fit its column, `Corrupt` when a dictionary is damaged.
    pub fn new(segment: &SegmentFile, predicates: &[Predicate]) -> Result<Self> {
        let mut tests = Vec::with_capacity(predicates.len());
        for predicate in predicates {
            if predicate.column >= segment.column_count() {
                return Err(Error::Invalid(format!("no column {}", predicate.column)));
            }
            let physical = segment.physical(predicate.column);
            predicate.test.check(physical)?;
            let codes = segment
                .dictionary(predicate.column)?
                .map(|dictionary| CodeSet::new(&predicate.test, dictionary));
            let values = match physical {
                Physical::Int => ValueSet::Int(number_ranges(&predicate.test, |v| match v {
                    Value::Int(v) => Some(*v),
                    _ => None,
                })),
                Physical::Wide => ValueSet::Wide(number_ranges(&predicate.test, |v| match v {
                    Value::Wide(v) => Some(*v),
                    _ => None,
                })),
                Physical::Bytes => ValueSet::Bytes,
            };
            let test = predicate.test.clone();
            tests.push(ColumnTest { column: predicate.column, test, codes, values });
        }
        Ok(Filter { tests })
    }

    /// Looks at a page: its statistics first, its bytes only when they decide nothing.
    ///
    /// # Errors
    /// `Corrupt` when the page is not what was written.
    pub fn open<'a>(&'a self, segment: &'a SegmentFile, page: usize) -> Result<PageFilter<'a>> {
        let rows = segment.page_rows()[page] as usize;
        let mut tests = Vec::with_capacity(self.tests.len());
        for test in &self.tests {
            match test.open(segment, page)? {
                Verdict::All => {}
                Verdict::None => {
                    return Ok(PageFilter { rows, tests: None, scratch: None });
                }
                Verdict::Look(test) => tests.push(test),
            }
        }
        tests.sort_by_key(PageTest::cost);
        Ok(PageFilter { rows, tests: Some(tests), scratch: None })
    }

    /// The selected rows of a page.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn select(&self, segment: &SegmentFile, page: usize, out: &mut Selection) -> Result<()> {
        let mut filter = self.open(segment, page)?;
        out.reset(filter.rows);
        for block in 0..filter.rows.div_ceil(BLOCK) {
            out.push(filter.block(block)?);
        }
        Ok(())
    }
}

impl PageFilter<'_> {
    /// Whether no row of the page can pass.
    pub fn is_none(&self) -> bool {
        self.tests.is_none()
    }

    /// Whether all rows of the page are known to pass.
    pub fn is_all(&self) -> bool {
        self.tests.as_ref().is_some_and(Vec::is_empty)
    }

    /// The rows of a block that pass.
    ///
    /// # Errors
    /// `Corrupt` when text of the page does not add up.
    pub fn block(&mut self, block: usize) -> Result<BlockMask> {
        let Some(tests) = &self.tests else {
            return Ok(BlockMask::NONE);
        };
        let mut mask = BlockMask::first(block_rows(self.rows, block));
        for test in tests {
            let scratch = self.scratch.get_or_insert_default();
            test.keep(block, &mut mask, scratch)?;
            if mask.is_empty() {
                break;
            }
        }
        Ok(mask)
    }
}

impl CodeSet {
    fn new(test: &Test, dictionary: &Dictionary) -> Self {
        let null = dictionary.null_code().0;
        let ranges = code_ranges(test, dictionary);
        let mut table = Vec::new();
        if ranges.as_slice().len() > RANGES_MAX {
            table.resize(dictionary.len() + 1, 0);
            for (low, high) in ranges.as_slice() {
                table[*low as usize..=*high as usize].fill(1);
            }
        }
        CodeSet { ranges, null, table }
    }
}

/// The codes whose values pass; all at most the null code.
fn code_ranges(test: &Test, dictionary: &Dictionary) -> Ranges<u32> {
    let null = dictionary.null_code().0;
    let point = |value: &Value| dictionary.find(value).map(|code| (code.0, code.0));
    let half_open = |low: u32, high: u32| match high.checked_sub(1) {
        Some(last) => Ranges::union(vec![(low, last)]),
        None => Ranges::default(),
    };
    match test {
        Test::Range { low, high } => {
            let low = match low {
                Bound::Included(v) => dictionary.lower_bound(v).0,
                Bound::Excluded(v) => dictionary.upper_bound(v).0,
                Bound::Unbounded => 0,
            };
            let high = match high {
                Bound::Included(v) => dictionary.upper_bound(v).0,
                Bound::Excluded(v) => dictionary.lower_bound(v).0,
                Bound::Unbounded => null,
            };
            half_open(low, high)
        }
        Test::In(values) => Ranges::union(values.iter().filter_map(point).collect()),
        Test::NotIn(values) => {
            let listed = Ranges::union(values.iter().filter_map(point).collect());
            match null.checked_sub(1) {
                Some(last) => listed.complement().clip(0, last),
                None => Ranges::default(),
            }
        }
        Test::Prefix(prefix) => {
            let low = dictionary.lower_bound(&Value::Bytes(prefix.clone())).0;
            let high = match after_prefix(prefix) {
                Some(end) => dictionary.lower_bound(&Value::Bytes(end)).0,
                None => null,
            };
            half_open(low, high)
        }
        Test::Accepts(accepts) => match dictionary.values() {
            Values::Bytes(strings) => Ranges::union(
                strings
                    .iter()
                    .zip(0u32..)
                    .filter(|(string, _)| accepts(string))
                    .map(|(_, code)| (code, code))
                    .collect(),
            ),
            _ => Ranges::default(),
        },
        Test::IsNull => Ranges::union(vec![(null, null)]),
        Test::IsNotNull => half_open(0, null),
    }
}

/// The smallest string above all that start with `prefix`.
fn after_prefix(prefix: &[u8]) -> Option<Box<[u8]>> {
    let last = prefix.iter().rposition(|b| *b < 255)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// The numbers that pass; NULL is not their matter.
fn number_ranges<T: Step>(test: &Test, number: impl Fn(&Value) -> Option<T>) -> Ranges<T> {
    let points = |values: &[Value]| {
        Ranges::union(values.iter().filter_map(&number).map(|v| (v, v)).collect())
    };
    match test {
        Test::Range { low, high } => {
            let low = match low {
                Bound::Included(v) => number(v),
                Bound::Excluded(v) => number(v).and_then(T::next),
                Bound::Unbounded => Some(T::MIN),
            };
            let high = match high {
                Bound::Included(v) => number(v),
                Bound::Excluded(v) => number(v).and_then(T::previous),
                Bound::Unbounded => Some(T::MAX),
            };
            match (low, high) {
                (Some(low), Some(high)) => Ranges::union(vec![(low, high)]),
                _ => Ranges::default(),
            }
        }
        Test::In(values) => points(values),
        Test::NotIn(values) => points(values).complement(),
        Test::IsNotNull => Ranges::union(vec![(T::MIN, T::MAX)]),
        Test::IsNull | Test::Prefix(_) | Test::Accepts(_) => Ranges::default(),
    }
}

impl ColumnTest {
    fn open<'a>(&'a self, segment: &'a SegmentFile, page: usize) -> Result<Verdict<'a>> {
        let column = segment.column(self.column)?;
        let meta = &column.index().pages[page];
        let only_nulls = matches!(self.test, Test::IsNull);
        if let PageDetail::Codes { base, max, .. } = meta.detail {
            let Some(codes) = &self.codes else {
                return Err(Error::Corrupt("codes without dictionary".into()));
            };
            return self.open_codes(codes, base, max, meta.nulls, segment, page);
        }
        if meta.nulls == 0 && only_nulls || meta.nulls == meta.rows && !only_nulls {
            return Ok(Verdict::None);
        }
        if meta.nulls == meta.rows {
            return Ok(Verdict::All);
        }
        let decided = match (&meta.detail, &self.values) {
            _ if only_nulls => None,
            (PageDetail::Int { min, max }, ValueSet::Int(ranges)) => decide(ranges, *min, *max),
            (PageDetail::Wide { min, max }, ValueSet::Wide(ranges)) => decide(ranges, *min, *max),
            (PageDetail::Text { .. }, ValueSet::Bytes) => {
                matches!(self.test, Test::IsNotNull).then_some(true)
            }
            _ => return Err(Error::Corrupt("page of another type".into())),
        };
        match decided {
            Some(false) => return Ok(Verdict::None),
            Some(true) if meta.nulls == 0 => return Ok(Verdict::All),
            _ => {}
        }
        let view = segment.page(self.column, page)?;
        Ok(Verdict::Look(match (view, &self.values) {
            (PageView::Int(page) | PageView::Wide(page) | PageView::Text(page), _)
                if only_nulls =>
            {
                PageTest::Nulls { page }
            }
            (PageView::Int(page), ValueSet::Int(ranges)) => PageTest::Int { page, ranges },
            (PageView::Wide(page), ValueSet::Wide(ranges)) => PageTest::Wide { page, ranges },
            (PageView::Text(page), ValueSet::Bytes) => {
                let decoder = find_decoder(&page, column.decoders())?;
                PageTest::Text { page, decoder, test: &self.test }
            }
            _ => return Err(Error::Corrupt("page of another type".into())),
        }))
    }

    fn open_codes<'a>(
        &'a self,
        codes: &'a CodeSet,
        base: u32,
        max: u32,
        nulls: u32,
        segment: &'a SegmentFile,
        page: usize,
    ) -> Result<Verdict<'a>> {
        let null_passes = nulls > 0 && codes.ranges.contains(codes.null);
        if codes.ranges.covers(base, max) && (nulls == 0 || null_passes) {
            return Ok(Verdict::All);
        }
        if codes.ranges.clip(base, max).is_empty() && !null_passes {
            return Ok(Verdict::None);
        }
        let PageView::Codes(page) = segment.page(self.column, page)? else {
            return Err(Error::Corrupt("page of another type".into()));
        };
        let reach = u64::from(base) + max_of_width(page.width);
        let clipped = codes.ranges.clip(base, reach.min(u64::from(u32::MAX)) as u32);
        if clipped.as_slice().len() > RANGES_MAX {
            return Ok(Verdict::Look(PageTest::Table { page, table: &codes.table }));
        }
        let offset = |code: u32| u64::from(code - base);
        let ranges = clipped.as_slice().iter().map(|r| (offset(r.0), offset(r.1))).collect();
        Ok(Verdict::Look(PageTest::Codes { page, ranges }))
    }
}

/// Whether all of `min..=max` pass, or none.
fn decide<T: Step>(ranges: &Ranges<T>, min: T, max: T) -> Option<bool> {
    if ranges.covers(min, max) {
        Some(true)
    } else if ranges.clip(min, max).is_empty() {
        Some(false)
    } else {
        None
    }
}

/// The decoder that a `Text` page names.
///
/// # Errors
/// `Corrupt` when it is not there.
pub fn find_decoder<'a>(
    page: &BlocksPage<'_>,
    decoders: &'a [SymbolDecoder],
) -> Result<Option<&'a SymbolDecoder>> {
    match page.symbols() {
        0 => Ok(None),
        n => match decoders.get(n as usize - 1) {
            Some(decoder) => Ok(Some(decoder)),
            None => Err(Error::Corrupt(format!("no symbol table {n}"))),
        },
    }
}

/// The null bits of one block.
pub fn null_words(page: &BlocksPage<'_>, block: usize) -> Option<[u64; MASK_WORDS]> {
    let bits = page.null_bits()?;
    let start = (block * BLOCK / 8).min(bits.len());
    let bytes = &bits[start..(start + BLOCK / 8).min(bits.len())];
    let mut words = [0; MASK_WORDS];
    for (word, eight) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut raw = [0; 8];
        raw[..eight.len()].copy_from_slice(eight);
        *word = u64::from_le_bytes(raw);
    }
    Some(words)
}

impl PageTest<'_> {
    /// Order in which tests are made: narrow codes first, strings last.
    fn cost(&self) -> u32 {
        match self {
            PageTest::Nulls { .. } => 0,
            PageTest::Codes { page, ranges } => u32::from(page.width) * ranges.len() as u32,
            PageTest::Int { ranges, .. } => 40 * ranges.as_slice().len().max(1) as u32,
            PageTest::Table { .. } => 300,
            PageTest::Wide { .. } => 1_000,
            PageTest::Text { .. } => 10_000,
        }
    }

    /// Drops from `mask` the rows that do not pass.
    fn keep(&self, block: usize, mask: &mut BlockMask, scratch: &mut Scratch) -> Result<()> {
        match self {
            PageTest::Codes { page, ranges } => {
                let (packed, count) = page.packed(block);
                mask.keep(&mask_packed(packed, count, page.width, ranges, scratch));
            }
            PageTest::Table { page, table } => keep_listed(page, table, block, mask, scratch),
            PageTest::Int { page, ranges } => keep_int(page, ranges, block, mask, scratch),
            PageTest::Wide { page, ranges } => keep_wide(page, ranges, block, mask),
            PageTest::Text { page, decoder, test } => {
                drop_nulls(page, block, mask);
                keep_text(page, *decoder, test, block, mask)?;
            }
            PageTest::Nulls { page } => {
                mask.keep(&null_words(page, block).unwrap_or([0; MASK_WORDS]));
            }
        }
        Ok(())
    }
}

fn drop_nulls(page: &BlocksPage<'_>, block: usize, mask: &mut BlockMask) {
    if let Some(nulls) = null_words(page, block) {
        mask.drop_rows(&nulls);
    }
}

fn keep_listed(
    page: &CodesPage<'_>,
    table: &[u8],
    block: usize,
    mask: &mut BlockMask,
    scratch: &mut Scratch,
) {
    let offsets = &mut *scratch.lanes_32;
    unpack_to_32(page.packed(block).0, page.width, offsets);
    let table = table.get(page.base as usize..).unwrap_or(&[]);
    let mut listed = [0u64; MASK_WORDS];
    for (word, chunk) in listed.iter_mut().zip(offsets.chunks_exact(64)) {
        for (i, offset) in chunk.iter().enumerate() {
            let bit = table.get(*offset as usize).copied().unwrap_or(0);
            *word |= u64::from(bit) << i;
        }
    }
    mask.keep(&listed);
}

fn keep_int(
    page: &BlocksPage<'_>,
    ranges: &Ranges<i64>,
    block: usize,
    mask: &mut BlockMask,
    scratch: &mut Scratch,
) {
    let (packed, width, count) = page.packed(block);
    let base = page.int_base(block);
    let max = max_of_width(width);
    // A block near the end of i64 reaches past it on paper only: no stored value does.
    let top = i128::from(base) + i128::from(max);
    let clipped = ranges.clip(base, top.min(i128::from(i64::MAX)) as i64);
    let offset = |v: i64| v.wrapping_sub(base) as u64;
    match clipped.as_slice() {
        [] => *mask = BlockMask::NONE,
        [(low, high)] if offset(*low) == 0 && i128::from(*high) >= top.min(i64::MAX.into()) => {
            drop_nulls(page, block, mask);
        }
        few if few.len() <= RANGES_MAX => {
            let mut offsets = [(0, 0); RANGES_MAX];
            for (o, (low, high)) in offsets.iter_mut().zip(few) {
                *o = (offset(*low), offset(*high));
            }
            mask.keep(&mask_packed(packed, count, width, &offsets[..few.len()], scratch));
            drop_nulls(page, block, mask);
        }
        _ => {
            let mut values = [0; BLOCK];
            page.unpack_int(block, &mut values);
            keep_rows(mask, |row| clipped.contains(values[row]));
            drop_nulls(page, block, mask);
        }
    }
}

fn keep_wide(page: &BlocksPage<'_>, ranges: &Ranges<i128>, block: usize, mask: &mut BlockMask) {
    let mut values = [0; BLOCK];
    page.unpack_wide(block, &mut values);
    keep_rows(mask, |row| ranges.contains(values[row]));
    drop_nulls(page, block, mask);
}

fn keep_text(
    page: &BlocksPage<'_>,
    decoder: Option<&SymbolDecoder>,
    test: &Test,
    block: usize,
    mask: &mut BlockMask,
) -> Result<()> {
    let mut ends = [0; BLOCK];
    let (bytes, _) = page.text_block(block, &mut ends)?;
    let mut decoded = Vec::new();
    // One reused value for tests against values, so that no row allocates.
    keep_rows(mask, |row| {
        let start = if row == 0 { 0 } else { ends[row - 1] as usize };
        let stored = &bytes[start..ends[row] as usize];
        let string = match decoder {
            Some(decoder) => {
                decoded.clear();
                decoder.decode(stored, &mut decoded);
                &decoded
            }
            None => stored,
        };
        accepts_bytes(test, string)
    });
    Ok(())
}

/// [`Test::matches`] for a string that is not a [`Value`].
fn accepts_bytes(test: &Test, string: &[u8]) -> bool {
    let equals = |v: &Value| matches!(v, Value::Bytes(b) if **b == *string);
    let compare = |v: &Value| match v {
        Value::Bytes(b) => string.cmp(b),
        _ => std::cmp::Ordering::Greater,
    };
    match test {
        Test::Range { low, high } => {
            (match low {
                Bound::Included(v) => compare(v).is_ge(),
                Bound::Excluded(v) => compare(v).is_gt(),
                Bound::Unbounded => true,
            }) && match high {
                Bound::Included(v) => compare(v).is_le(),
                Bound::Excluded(v) => compare(v).is_lt(),
                Bound::Unbounded => true,
            }
        }
        Test::In(values) => values.iter().any(equals),
        Test::NotIn(values) => !values.iter().any(equals),
        Test::Prefix(prefix) => string.starts_with(prefix),
        Test::Accepts(accepts) => accepts(string),
        Test::IsNull => false,
        Test::IsNotNull => true,
    }
}

/// Keeps the selected rows that pass a test made row by row.
fn keep_rows(mask: &mut BlockMask, mut passes: impl FnMut(usize) -> bool) {
    let mut kept = BlockMask::NONE;
    mask.for_each(|row| {
        if passes(row) {
            kept.set(row);
        }
    });
    *mask = kept;
}
