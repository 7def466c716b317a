//! Predicates prepared for one segment, and for one page of it.
//!
//! On a column with a dictionary a test becomes ranges of codes by binary searches, once for the
//! segment. A page whose smallest and largest code (or number) decide the test is not read at all.
//!
//! Where predicates bind the key of a table, the B+ tree of a segment tells which rows can pass ([`crate::key_range`]): pages without any
//! are not opened, and of the others only the blocks are tested that have some.
//!
//! Deleted rows pass no filter: their bits are dropped block by block, in pages that have some.

use std::ops::{Bound, Range};
use std::sync::Arc;

use coload_page::bitpack::BLOCK;
use coload_page::{PageDetail, PageView, block_rows};
use coload_store::{DeletedRows, ExpandedPages, SegmentFile};
use coload_types::{Dictionary, Error, Physical, Result, Value, Values};

use crate::compare::{Scratch, max_of_width};
use crate::index_rows::index_rows;
use crate::key_range::key_rows;
use crate::mask::{BlockMask, MASK_WORDS, Selection};
use crate::page_test::{PageTest, RANGES_MAX};
use crate::predicate::{Predicate, Test};
use crate::ranges::{Ranges, Step};

/// Predicates prepared for one segment; a row must pass them all.
#[derive(Debug, Clone)]
pub struct Filter {
    tests: Vec<ColumnTest>,
    deleted: Option<Arc<DeletedRows>>,
    /// Rows that can pass, where the key tells it.
    key_rows: Option<Range<u64>>,
    /// Rows that can pass, ascending, where an index tells few.
    found: Option<Arc<[u32]>>,
    /// First row of each page, where one of these needs it.
    starts: Arc<[u64]>,
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

/// A filter on one page.
pub struct PageFilter<'a> {
    rows: usize,
    /// `None` when no row can pass.
    tests: Option<Vec<PageTest<'a>>>,
    /// Deleted rows of the segment, and the page's first row, if some of the page are deleted.
    deleted: Option<(&'a DeletedRows, u64)>,
    /// Rows of the page that can pass, if these are not all.
    part: Option<Range<usize>>,
    /// Rows of the segment, of those in the page, that can pass, and the page's first row, where an index tells them.
    found: Option<(&'a [u32], u64)>,
    /// Made with the first block that is tested.
    scratch: Option<Scratch>,
}

impl Filter {
    /// Prepares predicates for a segment, of which some rows may be deleted: two binary searches in a dictionary for each bound.
    ///
    /// # Errors
    /// `Invalid` when a test does not fit its column, `Corrupt` when a dictionary is damaged.
    pub fn new(
        segment: &SegmentFile,
        deleted: Option<&Arc<DeletedRows>>,
        predicates: &[Predicate],
    ) -> Result<Self> {
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
        let deleted = deleted.map(Arc::clone);
        let key_rows = key_rows(segment, predicates)?;
        let found = index_rows(segment, predicates)?;
        let starts = match deleted.is_some() || key_rows.is_some() || found.is_some() {
            true => page_starts(segment),
            false => Arc::default(),
        };
        Ok(Filter { tests, deleted, key_rows, found, starts })
    }

    /// Looks at a page: its statistics first, its bytes only when they decide nothing. `expanded` is
    /// room for its columns.
    ///
    /// # Errors
    /// `Corrupt` when the page is not what was written.
    pub fn open<'a>(
        &'a self,
        segment: &'a SegmentFile,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<PageFilter<'a>> {
        let rows = segment.page_rows()[page] as usize;
        let none = || {
            let (deleted, part, found, scratch) = (None, None, None, None);
            Ok(PageFilter { rows, tests: None, deleted, part, found, scratch })
        };
        let (part, found) = (self.part_of_page(page, rows), self.found_of_page(page, rows));
        if part.as_ref().is_some_and(Range::is_empty) || found.is_some_and(|(f, _)| f.is_empty()) {
            return none();
        }
        let mut tests = Vec::with_capacity(self.tests.len());
        for test in &self.tests {
            match test.open(segment, page, expanded)? {
                Verdict::All => {}
                Verdict::None => return none(),
                Verdict::Look(test) => tests.push(test),
            }
        }
        tests.sort_by_key(PageTest::cost);
        let deleted = self.deleted_of_page(page, rows);
        if deleted.is_some_and(|(_, _, count)| count == rows as u64) {
            return none();
        }
        let deleted = deleted.map(|(deleted, start, _)| (deleted, start));
        Ok(PageFilter { rows, tests: Some(tests), deleted, part, found, scratch: None })
    }

    /// The selected rows of a page.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn select(&self, segment: &SegmentFile, page: usize, out: &mut Selection) -> Result<()> {
        let expanded = ExpandedPages::default();
        let mut filter = self.open(segment, page, &expanded)?;
        out.reset(filter.rows);
        for block in 0..filter.rows.div_ceil(BLOCK) {
            out.push(filter.block(block)?);
        }
        Ok(())
    }
}

/// First row of each page.
fn page_starts(segment: &SegmentFile) -> Arc<[u64]> {
    let starts = segment.page_rows().iter().scan(0, |next, rows| {
        let start = *next;
        *next += u64::from(*rows);
        Some(start)
    });
    starts.collect()
}

impl Filter {
    /// The deleted rows, where the page starts, and how many of its rows are deleted, if any.
    fn deleted_of_page(&self, page: usize, rows: usize) -> Option<(&DeletedRows, u64, u64)> {
        let deleted = self.deleted.as_ref()?;
        let start = self.starts[page];
        match deleted.count_in(start..start + rows as u64) {
            0 => None,
            count => Some((deleted, start, count)),
        }
    }

    /// The rows of a page that can pass by an index, counted in the segment, and the page's first row; `None` for all.
    fn found_of_page(&self, page: usize, rows: usize) -> Option<(&[u32], u64)> {
        let found = self.found.as_ref()?;
        let start = self.starts[page];
        let place = |row: u64| found.partition_point(|found| u64::from(*found) < row);
        Some((&found[place(start)..place(start + rows as u64)], start))
    }

    /// The rows of a page that can pass by the key; `None` for all of it.
    fn part_of_page(&self, page: usize, rows: usize) -> Option<Range<usize>> {
        let key_rows = self.key_rows.as_ref()?;
        let start = self.starts[page];
        let within = |row: u64| row.saturating_sub(start).min(rows as u64) as usize;
        let part = within(key_rows.start)..within(key_rows.end);
        (part != (0..rows)).then_some(part)
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
            && self.deleted.is_none()
            && self.part.is_none()
            && self.found.is_none()
    }

    /// How many rows of the page pass, where none needs to be looked at for it.
    pub fn known_count(&self) -> Option<u64> {
        match (&self.tests, self.deleted) {
            (None, _) => Some(0),
            (Some(tests), _)
                if !tests.is_empty() || self.part.is_some() || self.found.is_some() =>
            {
                None
            }
            (Some(_), None) => Some(self.rows as u64),
            (Some(_), Some((deleted, start))) => {
                let rows = self.rows as u64;
                Some(rows - deleted.count_in(start..start + rows))
            }
        }
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
        if let Some(part) = &self.part {
            let within = |row: usize| BlockMask::first(row.saturating_sub(block * BLOCK));
            mask.keep(&within(part.end).words);
            mask.drop_rows(&within(part.start).words);
            if mask.is_empty() {
                return Ok(mask);
            }
        }
        if let Some((found, start)) = self.found {
            let first = start + (block * BLOCK) as u64;
            let place = |row: u64| found.partition_point(|found| u64::from(*found) < row);
            let mut words = [0_u64; MASK_WORDS];
            for row in &found[place(first)..place(first + BLOCK as u64)] {
                let bit = (u64::from(*row) - first) as usize;
                words[bit / 64] |= 1 << (bit % 64);
            }
            mask.keep(&words);
            if mask.is_empty() {
                return Ok(mask);
            }
        }
        if let Some((deleted, start)) = self.deleted {
            let mut words = [0; MASK_WORDS];
            deleted.fill_words(start + (block * BLOCK) as u64, &mut words);
            mask.drop_rows(&words);
        }
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
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Box<[u8]>> {
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
    fn open<'a>(
        &'a self,
        segment: &'a SegmentFile,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<Verdict<'a>> {
        let column = segment.column(self.column)?;
        let meta = &column.index().pages[page];
        let only_nulls = matches!(self.test, Test::IsNull);
        if let PageDetail::Codes { base, max, .. } = meta.detail {
            let Some(codes) = &self.codes else {
                return Err(Error::Corrupt("codes without dictionary".into()));
            };
            let view = || segment.page(self.column, page, expanded);
            return codes.open((base, max), meta.nulls, view);
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
        let view = segment.page(self.column, page, expanded)?;
        Ok(Verdict::Look(match (view, &self.values) {
            (view, _) if only_nulls => PageTest::Nulls { bits: view.null_bits() },
            (PageView::Int(page), ValueSet::Int(ranges)) => PageTest::Int { page, ranges },
            (PageView::Wide(page), ValueSet::Wide(ranges)) => PageTest::Wide { page, ranges },
            (PageView::Text(page), ValueSet::Bytes) => {
                let decoder = page.decoder(column.decoders())?;
                PageTest::Text { page, decoder, test: &self.test }
            }
            _ => return Err(Error::Corrupt("page of another type".into())),
        }))
    }
}

impl CodeSet {
    /// Decides on a page of codes `base..=max` and perhaps NULLs.
    fn open<'a>(
        &'a self,
        (base, max): (u32, u32),
        nulls: u32,
        view: impl FnOnce() -> Result<PageView<'a>>,
    ) -> Result<Verdict<'a>> {
        let null_passes = nulls > 0 && self.ranges.contains(self.null);
        if self.ranges.covers(base, max) && (nulls == 0 || null_passes) {
            return Ok(Verdict::All);
        }
        if self.ranges.clip(base, max).is_empty() && !null_passes {
            return Ok(Verdict::None);
        }
        let PageView::Codes(page) = view()? else {
            return Err(Error::Corrupt("page of another type".into()));
        };
        let reach = u64::from(base) + max_of_width(page.width);
        let clipped = self.ranges.clip(base, reach.min(u64::from(u32::MAX)) as u32);
        if clipped.as_slice().len() > RANGES_MAX {
            return Ok(Verdict::Look(PageTest::Table { page, table: &self.table }));
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
