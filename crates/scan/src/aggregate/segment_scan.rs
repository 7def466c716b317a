//! An aggregate query prepared for one segment, and its loop over the blocks of a page.

use std::sync::Arc;

use coload_page::bitpack::BLOCK;
use coload_page::{CodesPage, PageDetail, PageView, block_rows};
use coload_store::{DeletedRows, ExpandedPages, SegmentFile};
use coload_types::{Error, Physical, Result, Value, Values};

use super::add_rows::{MaskedRows, ScatteredRows};
use super::bounds::{
    RootPlan, Shape, magnitude, plain_shape, plan_column, plan_root, term_interval,
};
use super::expr::{Aggregate, Query};
use super::groups::{GroupPage, GroupScratch, GroupSpace};
use super::program::{Output, Program, Root, Step};
use super::state::{Dense, State, SumSize};
use super::value_tables::CodeValues;
use super::vectors::{NumberPage, Rows, Vector, compute_root, load_column, row_slots};
use super::{FEW_ROWS, MASKED_GROUPS_MAX};
use crate::compare::{Scratch, mask_packed, mask_u8};
use crate::filter::Filter;
use crate::mask::{BlockMask, MASK_WORDS, POSITIONS_SPARE};
use crate::page_test::null_words;
use crate::unpack::unpack_rows;

/// How much of a page had to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageWork {
    /// Nothing: its statistics say that no row counts.
    Pruned,
    /// No row was tested: its statistics say that all count.
    Untested,
    /// Each row was tested.
    Tested,
}

/// An aggregate query prepared for one segment.
#[derive(Debug, Clone)]
pub struct SegmentScan {
    program: Arc<Program>,
    filter: Filter,
    groups: GroupSpace,
    /// What codes stand for, by the column's position in [`Program::columns`].
    codes: Vec<CodeValues>,
}

/// Whether a segment can answer a query: the grouping columns hold codes only and make few groups,
/// and arithmetic is on numbers.
///
/// # Errors
/// `Corrupt` when an index of a column is damaged.
pub fn supports(segment: &SegmentFile, query: &Query) -> Result<bool> {
    for aggregate in &query.aggregates {
        let mut numbers = true;
        aggregate.for_columns(|column| {
            numbers &= column < segment.column_count()
                && (matches!(aggregate, Aggregate::Count(_))
                    || segment.physical(column) != Physical::Bytes);
        });
        if !numbers {
            return Ok(false);
        }
    }
    if query.groups.iter().any(|column| *column >= segment.column_count()) {
        return Ok(false);
    }
    Ok(GroupSpace::new(segment, &query.groups)?.is_some())
}

impl SegmentScan {
    /// Prepares a query for a segment, of which some rows may be deleted; `program` is its aggregates, compiled.
    ///
    /// # Errors
    /// `Invalid` when the segment cannot answer it (see [`supports`]) or a predicate does not fit
    /// its column, `Corrupt` when the segment is damaged.
    pub fn new(
        segment: &SegmentFile,
        deleted: Option<&Arc<DeletedRows>>,
        query: &Query,
        program: Arc<Program>,
    ) -> Result<Self> {
        let groups = GroupSpace::new(segment, &query.groups)?.ok_or_else(|| {
            Error::Invalid("grouping columns without codes, or too many groups".into())
        })?;
        let filter = Filter::new(segment, deleted, &query.predicates)?;
        let mut codes = Vec::with_capacity(program.columns.len());
        for (slot, column) in program.columns.iter().enumerate() {
            let is_number = program.roots.contains(&Root::Column(slot));
            if is_number && segment.physical(*column) == Physical::Bytes {
                return Err(Error::Invalid(format!("column {column} holds no numbers")));
            }
            codes.push(match segment.dictionary(*column)? {
                Some(dictionary) if is_number => CodeValues::new(dictionary),
                _ => CodeValues::None,
            });
        }
        Ok(SegmentScan { program, filter, groups, codes })
    }

    /// The values of a group's columns.
    pub(super) fn key(&self, segment: &SegmentFile, group: usize) -> Result<Vec<Option<Value>>> {
        self.groups.key(segment, group)
    }

    /// Adds the rows of one page to `state`, where they go to the groups of segment `index`.
    ///
    /// # Errors
    /// `Corrupt` when the page is damaged, `Invalid` when a number is over 128 bits.
    pub fn aggregate_page(
        &self,
        segment: &SegmentFile,
        page: usize,
        index: usize,
        state: &mut State,
    ) -> Result<PageWork> {
        let expanded = ExpandedPages::default();
        let mut filter = self.filter.open(segment, page, &expanded)?;
        if filter.is_none() {
            return Ok(PageWork::Pruned);
        }
        let mut scratch = std::mem::take(&mut state.scratch);
        scratch.vectors.resize_with(self.program.roots.len(), Vector::new);
        let dense = state.dense(index, &self.program, self.groups.total);
        let plan = PagePlan::open(self, segment, page, &expanded)?;
        let rows = segment.page_rows()[page] as usize;
        let mut scan = PageScan { plan, dense, scratch, sizes: Vec::new() };
        let counted = filter.known_count().filter(|_| self.groups.total == 1);
        if let Some(count) = counted.filter(|_| scan.plan.only_counts()) {
            scan.dense.rows[0] += count;
        } else {
            scan.reserve(rows)?;
            for block in 0..rows.div_ceil(BLOCK) {
                scan.add_block(block, &filter.block(block)?, block_rows(rows, block))?;
            }
        }
        state.scratch = scan.scratch;
        segment.check()?;
        Ok(if filter.is_all() { PageWork::Untested } else { PageWork::Tested })
    }
}

/// Where the NULLs of a column stand.
enum NullSource<'a> {
    Codes { page: CodesPage<'a>, offset: u64 },
    Bits(Option<&'a [u8]>),
}

/// What is opened of one page.
struct PagePlan<'a> {
    program: &'a Program,
    total: usize,
    groups: GroupPage<'a>,
    /// By root; `None` for computed roots.
    numbers: Vec<Option<NumberPage<'a>>>,
    plans: Vec<RootPlan>,
    /// By slot; only columns with NULLs in this page.
    nulls: Vec<Option<NullSource<'a>>>,
}

impl<'a> PagePlan<'a> {
    fn open(
        scan: &'a SegmentScan,
        segment: &'a SegmentFile,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<Self> {
        let program = &*scan.program;
        let (mut numbers, mut plans) = (Vec::new(), Vec::new());
        for root in &program.roots {
            match root {
                Root::Column(slot) => {
                    let (number, plan) = open_numbers(scan, segment, page, *slot, expanded)?;
                    numbers.push(Some(number));
                    plans.push(plan);
                }
                _ => {
                    numbers.push(None);
                    plans.push(plan_root(root, &plans));
                }
            }
        }
        let nulls = program
            .columns
            .iter()
            .map(|column| open_nulls(segment, *column, page, expanded))
            .collect::<Result<_>>()?;
        let groups = scan.groups.open(segment, page, expanded)?;
        Ok(PagePlan { program, total: scan.groups.total, groups, numbers, plans, nulls })
    }

    fn only_counts(&self) -> bool {
        self.program.outputs.iter().all(|output| output.step == Step::Count)
            && self.nulls.iter().all(Option::is_none)
    }
}

fn open_numbers<'a>(
    scan: &'a SegmentScan,
    segment: &'a SegmentFile,
    page: usize,
    slot: usize,
    expanded: &'a ExpandedPages,
) -> Result<(NumberPage<'a>, RootPlan)> {
    let column = scan.program.columns[slot];
    let codes = &scan.codes[slot];
    let dictionary = segment.dictionary(column)?.map(|d| d.values());
    let plan = match &segment.column(column)?.index().pages[page].detail {
        PageDetail::Codes { base, max, .. } => {
            let at = |code: u32| match dictionary {
                Some(Values::Int(v)) => v.get(code as usize).map(|v| i128::from(*v)),
                Some(Values::Wide(v)) => v.get(code as usize).copied(),
                _ => None,
            };
            let shape = match (codes, dictionary) {
                (CodeValues::Lookup, Some(Values::Wide(_))) => Shape::Huge,
                (CodeValues::Lookup, _) => Shape::Wide,
                _ => Shape::Narrow,
            };
            // All NULL: no value is looked at.
            plan_column(at(*base).unwrap_or(0), at(*max).unwrap_or(0), shape)
        }
        PageDetail::Int { min, max } => {
            let (min, max) = (i128::from(*min), i128::from(*max));
            plan_column(min, max, plain_shape(min, max))
        }
        PageDetail::Wide { min, max } => plan_column(*min, *max, Shape::Huge),
        PageDetail::Text { .. } => return Err(Error::Corrupt("page holds no numbers".into())),
    };
    Ok((NumberPage { view: segment.page(column, page, expanded)?, codes, dictionary }, plan))
}

fn open_nulls<'a>(
    segment: &'a SegmentFile,
    column: usize,
    page: usize,
    expanded: &'a ExpandedPages,
) -> Result<Option<NullSource<'a>>> {
    if segment.column(column)?.index().pages[page].nulls == 0 {
        return Ok(None);
    }
    Ok(Some(match segment.page(column, page, expanded)? {
        PageView::Codes(codes) => {
            let null = segment.dictionary(column)?.map_or(0, |d| d.null_code().0);
            NullSource::Codes { page: codes, offset: u64::from(null.wrapping_sub(codes.base)) }
        }
        values => NullSource::Bits(values.null_bits()),
    }))
}

impl NullSource<'_> {
    fn words(&self, block: usize, rows: Rows<'_>, scratch: &mut Scratch) -> [u64; MASK_WORDS] {
        let mut words = [0; MASK_WORDS];
        match (self, rows) {
            (NullSource::Codes { page, offset }, Rows::All) => {
                let (packed, count) = page.packed(block);
                if *offset <= crate::compare::max_of_width(page.width) {
                    words = mask_packed(packed, count, page.width, &[(*offset, *offset)], scratch);
                }
            }
            (NullSource::Codes { page, offset }, Rows::Few(positions)) => {
                let (packed, _) = page.packed(block);
                unpack_rows(packed, page.width, positions, |i, found| {
                    words[i / 64] |= u64::from(u64::from(found) == *offset) << (i % 64);
                });
            }
            (NullSource::Bits(bits), Rows::All) => {
                words = null_words(*bits, block).unwrap_or(words);
            }
            (NullSource::Bits(bits), Rows::Few(positions)) => {
                for (i, row) in positions.iter().enumerate() {
                    let at = block * BLOCK + usize::from(*row);
                    let is_null = bits.is_some_and(|b| b[at / 8] >> (at % 8) & 1 == 1);
                    words[i / 64] |= u64::from(is_null) << (i % 64);
                }
            }
        }
        words
    }
}

/// Buffers of one block, kept to spare their allocation.
#[derive(Debug)]
pub struct ScanScratch {
    positions: Box<[u16; BLOCK + POSITIONS_SPARE]>,
    /// Values of each root, in the order of the program's roots.
    vectors: Vec<Vector>,
    groups: GroupScratch,
    compare: Scratch,
}

impl Default for ScanScratch {
    fn default() -> Self {
        ScanScratch {
            positions: Box::new([0; BLOCK + POSITIONS_SPARE]),
            vectors: Vec::new(),
            groups: GroupScratch::default(),
            compare: Scratch::default(),
        }
    }
}

/// The loop over one page.
struct PageScan<'a, 'b> {
    plan: PagePlan<'a>,
    dense: &'b mut Dense,
    scratch: ScanScratch,
    /// By output: where rows are added one by one.
    sizes: Vec<SumSize>,
}

/// The rows of one block that count.
struct BlockRows<'a> {
    rows: Rows<'a>,
    /// Places of each vector that are computed: the rows, made up to whole words of the mask.
    slots: usize,
    mask: [u64; MASK_WORDS],
    /// By output: rows it skips.
    nulls: Vec<Option<[u64; MASK_WORDS]>>,
}

impl PageScan<'_, '_> {
    fn reserve(&mut self, rows: usize) -> Result<()> {
        let (plan, total) = (&self.plan, self.plan.total);
        for (output, accumulator) in plan.program.outputs.iter().zip(&mut self.dense.accumulators) {
            let size = match &output.step {
                Step::Sum(term) if total > MASKED_GROUPS_MAX => {
                    let most = magnitude(term_interval(term, &plan.plans))
                        .and_then(|m| m.checked_mul(rows as i64));
                    accumulator.reserve(most, total)?
                }
                _ => SumSize::Large,
            };
            self.sizes.push(size);
        }
        Ok(())
    }

    fn add_block(&mut self, block: usize, selected: &BlockMask, count: usize) -> Result<()> {
        let selected_count = selected.count();
        if selected_count == 0 {
            return Ok(());
        }
        let mut positions = [0; FEW_ROWS + POSITIONS_SPARE];
        let (rows, mask) = if selected_count <= FEW_ROWS && selected_count < count {
            let few = selected.positions(&mut positions);
            (Rows::Few(&positions[..few]), BlockMask::first(few).words)
        } else {
            (Rows::All, selected.words)
        };
        let slots = row_slots(rows);
        self.load(block, rows, slots, &mask)?;
        let nulls = self.output_nulls(block, rows);
        let rows = BlockRows { rows, slots, mask, nulls };
        match self.plan.total {
            1 => self.add_masked(0, &rows.mask, selected_count as u64, &rows),
            2..=MASKED_GROUPS_MAX => self.add_groups(block, &rows),
            _ => self.scatter(block, &rows),
        }
    }

    fn load(&mut self, block: usize, rows: Rows<'_>, slots: usize, mask: &[u64]) -> Result<()> {
        for (index, root) in self.plan.program.roots.iter().enumerate() {
            match &self.plan.numbers[index] {
                Some(page) => {
                    let shape = self.plan.plans[index].shape;
                    load_column(page, shape, block, rows, &mut self.scratch.vectors[index])?;
                }
                None => {
                    let plans = &self.plan.plans;
                    compute_root(index, root, plans, slots, mask, &mut self.scratch.vectors);
                }
            }
        }
        Ok(())
    }

    fn output_nulls(&mut self, block: usize, rows: Rows<'_>) -> Vec<Option<[u64; MASK_WORDS]>> {
        if self.plan.nulls.iter().all(Option::is_none) {
            return Vec::new();
        }
        let compare = &mut self.scratch.compare;
        let mut words = |source: &NullSource<'_>| source.words(block, rows, compare);
        let by_slot: Vec<_> =
            self.plan.nulls.iter().map(|source| source.as_ref().map(&mut words)).collect();
        let join = |output: &Output| {
            output.slots.iter().filter_map(|slot| by_slot[*slot]).reduce(|mut a, b| {
                for (a, b) in a.iter_mut().zip(b) {
                    *a |= b;
                }
                a
            })
        };
        self.plan.program.outputs.iter().map(join).collect()
    }

    fn add_groups(&mut self, block: usize, rows: &BlockRows<'_>) -> Result<()> {
        self.plan.groups.load_u8(block, rows.rows, &mut self.scratch.groups);
        for group in 0..self.plan.total {
            let mut mask = [0; MASK_WORDS];
            mask_u8(&self.scratch.groups.groups_8, group as u8, 0, &mut mask);
            for (a, b) in mask.iter_mut().zip(&rows.mask) {
                *a &= b;
            }
            self.add_masked(group, &mask, count_bits(&mask), rows)?;
        }
        Ok(())
    }

    /// Adds the `count` rows of `mask`, all of one group.
    fn add_masked(
        &mut self,
        group: usize,
        mask: &[u64; MASK_WORDS],
        count: u64,
        rows: &BlockRows<'_>,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.dense.rows[group] += count;
        let outputs = self.plan.program.outputs.iter().zip(&mut self.dense.accumulators);
        for (i, (output, accumulator)) in outputs.enumerate() {
            let (mut mask, mut count) = (*mask, count);
            if let Some(Some(nulls)) = rows.nulls.get(i) {
                for (a, b) in mask.iter_mut().zip(nulls) {
                    *a &= !b;
                }
                let counted = count_bits(&mask);
                accumulator.add_nulls(group, count - counted, self.plan.total);
                count = counted;
            }
            if count > 0 {
                let used = &mask[..rows.slots / 64];
                let block = MaskedRows {
                    vectors: &self.scratch.vectors,
                    plans: &self.plan.plans,
                    mask: used,
                    count,
                };
                block.add(&output.step, group, accumulator)?;
            }
        }
        Ok(())
    }

    /// Adds each row to its group.
    fn scatter(&mut self, block: usize, rows: &BlockRows<'_>) -> Result<()> {
        let scratch = &mut self.scratch;
        self.plan.groups.load_u32(block, rows.rows, self.plan.total, &mut scratch.groups)?;
        let groups = &*scratch.groups.groups_32;
        let positions = &mut scratch.positions;
        let mask = BlockMask { words: rows.mask };
        let count = mask.positions(&mut positions[..]);
        for position in &positions[..count] {
            self.dense.rows[groups[usize::from(*position)] as usize] += 1;
        }
        let outputs = self.plan.program.outputs.iter().zip(&mut self.dense.accumulators);
        for (i, (output, accumulator)) in outputs.enumerate() {
            let mut counted = mask;
            if let Some(Some(nulls)) = rows.nulls.get(i) {
                counted.drop_rows(nulls);
                let mut skipped = mask;
                skipped.keep(nulls);
                skipped.for_each(|row| {
                    accumulator.add_nulls(groups[row] as usize, 1, self.plan.total);
                });
            }
            let count = counted.positions(&mut positions[..]);
            let scattered = ScatteredRows {
                vectors: &scratch.vectors,
                slots: rows.slots,
                positions: &positions[..count],
                groups,
            };
            scattered.add(&output.step, self.sizes[i], accumulator)?;
        }
        Ok(())
    }
}

fn count_bits(mask: &[u64; MASK_WORDS]) -> u64 {
    BlockMask { words: *mask }.count() as u64
}
