//! Whole rows of a segment by their numbers: few rows of all columns.
//!
//! Cost: for each page with rows a column is opened once, and a block unpacked or a row of it, as in scans.

use coload_page::bitpack::BLOCK;
use coload_store::{ExpandedPages, SegmentFile};
use coload_types::{Error, Physical, Result, Value};

use crate::column_page::{ColumnPage, NullBits};
use crate::mask::{BlockMask, Selection};

/// A row: the values of all columns; `None` is NULL.
pub type Row = Vec<Option<Value>>;

/// Reads rows of a segment, whose numbers ascend; deleted rows are read as any.
///
/// # Errors
/// `Corrupt` when the segment is not what was written, `Invalid` when it has no such row.
pub fn read_rows(segment: &SegmentFile, numbers: &[u64]) -> Result<Vec<Row>> {
    let width = segment.column_count();
    let mut rows: Vec<Row> = numbers.iter().map(|_| Vec::with_capacity(width)).collect();
    let (mut done, mut start) = (0, 0);
    for (page, page_rows) in segment.page_rows().iter().enumerate() {
        let end = start + u64::from(*page_rows);
        let count = numbers[done..].partition_point(|number| *number < end);
        if count > 0 {
            let of_page = done..done + count;
            let within: Vec<usize> =
                numbers[of_page.clone()].iter().map(|number| (number - start) as usize).collect();
            read_page(segment, (page, *page_rows as usize), &within, &mut rows[of_page])?;
            done += count;
        }
        if done == numbers.len() {
            break;
        }
        start = end;
    }
    segment.check()?;
    match done == numbers.len() {
        true => Ok(rows),
        false => Err(Error::Invalid(format!("{} has not so many rows", segment.path().display()))),
    }
}

/// Appends the values of all columns to rows of one page.
fn read_page(
    segment: &SegmentFile,
    (page, page_rows): (usize, usize),
    within: &[usize],
    rows: &mut [Row],
) -> Result<()> {
    let (Some(first), Some(last)) = (within.first(), within.last()) else { return Ok(()) };
    let blocks = first / BLOCK..last / BLOCK + 1;
    let mut selection = Selection::default();
    selection.reset(page_rows);
    let mut rest = within.iter().peekable();
    for block in 0..blocks.end {
        let mut mask = BlockMask::NONE;
        while let Some(row) = rest.next_if(|row| **row < (block + 1) * BLOCK) {
            mask.set(row % BLOCK);
        }
        selection.push(mask);
    }
    if selection.count() != within.len() {
        return Err(Error::Invalid("rows that are to be read come twice".into()));
    }
    let expanded = ExpandedPages::default();
    for column in 0..segment.column_count() {
        let open = ColumnPage::open(segment, column, page, &expanded)?;
        let (blocks, mut nulls) = (blocks.clone(), NullBits::default());
        let mut values: Vec<Option<Value>> = Vec::with_capacity(rows.len());
        match segment.physical(column) {
            Physical::Int => {
                let mut ints = Vec::with_capacity(rows.len());
                open.decode_ints(&selection, blocks, |value| value, &mut ints, &mut nulls)?;
                values.extend(ints.into_iter().map(|value| Some(Value::Int(value))));
            }
            Physical::Wide => {
                let mut wides = Vec::with_capacity(rows.len());
                open.decode_wides(&selection, blocks, |value| value, &mut wides, &mut nulls)?;
                values.extend(wides.into_iter().map(|value| Some(Value::Wide(value))));
            }
            Physical::Bytes => open.decode_strings(&selection, blocks, |text| {
                values.push(text.map(|text| Value::Bytes(text.into())));
                Ok(())
            })?,
        }
        if let Some(nulls) = nulls.bitmap() {
            (0..values.len()).filter(|row| nulls.get(*row)).for_each(|row| values[row] = None);
        }
        if values.len() != rows.len() {
            return Err(Error::corrupt(
                segment.path(),
                "a page has other rows than its neighbours",
            ));
        }
        rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
    }
    Ok(())
}
