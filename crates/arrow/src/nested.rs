//! Rows of fields that have others within them: of structs those of one field, of lists and maps texts of JSON.
//!
//! ```text
//!   struct   valid 1 0 1      a 7 ? 9         column s.a: 7, NULL, 9
//!   list     ends 0 2 2 3     items a b c     ["a", "b"]  []  ["c"]
//! ```
//!
//! The rows of a batch and those of arrays in memory are read by the same code, which asks them by [`FieldRows`]. Where lists
//! are texts one function says, [`write_lists`], as `values_of_list` says what type these have.
//!
//! Invariants: ends rise and are no more than there are items; places of list views are looked at for rows that are no NULL.
//! What stands in a row that is NULL is not asked. Memory: what is read of items counts as what is read of rows, and so does the text:
//! list views may have the same items in each row.
//!
//! Cost: 8 bytes a list, 16 a list view, beside its items and their text.

use std::borrow::Cow;
use std::ops::Range;

use crate::dictionary::{Column, DictionariesOf};
use crate::fault::{Fault, Result};
use crate::json::{Brackets, JsonRows, JsonText, json_name};
use crate::schema::{Field, IntType};
use crate::slice::{Bits, Slice, SliceValues, int_at};
use crate::types::{ArrowType, Composite};
use crate::value::Scalar;

/// Most items of all rows: more than there may be bytes.
const ITEMS_MAX: u64 = 1 << 48;

/// Rows of a field, wherever its buffers are.
pub(crate) trait FieldRows<'a>: Sized {
    /// The field.
    fn field(&self) -> &Field;

    /// The rows, as its children count them.
    fn rows(&self) -> Range<u64>;

    /// Which rows are no NULL by the bits of the field itself; all if `None`.
    fn valid(&self) -> Result<Option<Bits<'a>>>;

    /// Integers of so many bytes, those of the rows and `more`, of one of the buffers behind the bits.
    fn ints(&self, buffer: usize, width: usize, more: usize) -> Result<Cow<'a, [u8]>>;

    /// Rows of a child.
    fn child(&self, number: usize, rows: Range<u64>) -> Result<Self>;

    /// The rows of a field that has none within it; those are NULL that are so `above`.
    fn slice(&self, above: Option<Bits<'a>>) -> Result<Slice<'a>>;

    /// So many bytes are taken beside those of buffers.
    fn take(&self, bytes: u64) -> Result<()>;

    /// Bytes that may still be taken.
    fn bytes_left(&self) -> u64;

    /// How many rows there are.
    fn count(&self) -> usize {
        let rows = self.rows();
        (rows.end - rows.start) as usize
    }
}

/// The column at a path of fields within each other.
pub(crate) fn column_at<'a, R: FieldRows<'a>>(
    mut read: R,
    path: &[usize],
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    let mut above = None;
    for child in path {
        above = both(read.valid()?, above, read.count());
        let rows = read.rows();
        read = read.child(*child, rows)?;
    }
    match read.field().is_composite() {
        true => write_lists(&Tree::read(&read, above, dictionaries)?, &read),
        false => values(&read, above, dictionaries),
    }
}

/// Rows of a field that has none within it.
fn values<'a, R: FieldRows<'a>>(
    read: &R,
    above: Option<Bits<'a>>,
    dictionaries: DictionariesOf<'_>,
) -> Result<Column<'a>> {
    let slice = read.slice(above)?;
    let dictionary = match &slice.values {
        SliceValues::Keys(_, id) => Some(dictionaries(*id)?),
        _ => None,
    };
    let column = Column { values: read.field().values_read(), slice, dictionary };
    match column.has_all_keys() {
        true => Ok(column),
        false => Err(damaged(read.field(), "keys that its dictionary has not")),
    }
}

/// The rows of lists and maps as a column, of the type that `values_of_list` says: texts of JSON.
fn write_lists<'a, R: FieldRows<'a>>(tree: &Tree<'_>, read: &R) -> Result<Column<'a>> {
    let count = read.count();
    // A place and a bit for each row.
    read.take(count as u64 * 9)?;
    let mut rows = JsonRows::new(count, read.bytes_left());
    for row in 0..count {
        tree.write(row, &mut rows.text)?;
        rows.end_row()?;
    }
    let slice = rows.finish();
    read.take(slice.bytes() as u64 - count as u64 * 8)?;
    Ok(Column { values: read.field().values_read(), slice, dictionary: None })
}

fn damaged(field: &Field, what: &str) -> Fault {
    Fault::damaged(format!("field {}: {what}", field.name))
}

/// Rows that are no NULL by themselves nor above.
pub(crate) fn both<'a>(
    own: Option<Bits<'a>>,
    above: Option<Bits<'a>>,
    rows: usize,
) -> Option<Bits<'a>> {
    match (own, above) {
        (Some(own), Some(above)) => {
            let mut bytes = vec![0_u8; rows.div_ceil(8)];
            for row in (0..rows).filter(|row| own.get(*row) && above.get(*row)) {
                bytes[row / 8] |= 1 << (row % 8);
            }
            Some(Bits::new(bytes))
        }
        (own, above) => own.or(above),
    }
}

/// Rows of a field, and of those within it.
struct Tree<'a> {
    valid: Option<Bits<'a>>,
    part: Part<'a>,
}

enum Part<'a> {
    /// Values; whether they are texts of JSON, as dictionaries of lists have.
    Values {
        column: Column<'a>,
        is_json: bool,
    },
    /// Fields with their names as JSON.
    Fields(Vec<(String, Tree<'a>)>),
    Items {
        spans: Spans,
        items: Box<Tree<'a>>,
    },
    Entries {
        spans: Spans,
        entries: Box<Entries<'a>>,
    },
}

/// Keys and values of a map.
struct Entries<'a> {
    /// Name of the map's field.
    name: String,
    valid: Option<Bits<'a>>,
    keys: Tree<'a>,
    values: Tree<'a>,
}

/// Which items a row has.
pub(crate) enum Spans {
    /// Where those of each row start, and those of the last one end.
    Ends(Vec<usize>),
    /// Anywhere.
    Each(Vec<Range<usize>>),
    /// So many in each row.
    Width(usize),
}

impl Spans {
    fn get(&self, row: usize) -> Range<usize> {
        match self {
            Spans::Ends(ends) => ends[row]..ends[row + 1],
            Spans::Each(spans) => spans[row].clone(),
            Spans::Width(items) => row * items..(row + 1) * items,
        }
    }
}

impl<'a> Tree<'a> {
    fn read<R: FieldRows<'a>>(
        read: &R,
        above: Option<Bits<'a>>,
        dictionaries: DictionariesOf<'_>,
    ) -> Result<Self> {
        let field = read.field();
        let of = match field.values {
            ArrowType::Composite(of) if field.is_composite() => of,
            ref of => {
                let is_json = matches!(of, ArrowType::Composite(_));
                let column = values(read, above, dictionaries)?;
                return Ok(Tree { valid: None, part: Part::Values { column, is_json } });
            }
        };
        let valid = both(read.valid()?, above, read.count());
        if of == Composite::Struct {
            let of_child = |(number, child): (usize, &Field)| {
                let rows = read.child(number, read.rows())?;
                Ok((json_name(&child.name), Tree::read(&rows, valid.clone(), dictionaries)?))
            };
            let fields = field.children.iter().enumerate().map(of_child).collect::<Result<_>>()?;
            return Ok(Tree { valid, part: Part::Fields(fields) });
        }
        let (spans, items) = items_of(read, of, valid.as_ref())?;
        let items = read.child(0, items)?;
        let part = match of {
            Composite::Map => {
                let of_child = |number: usize| {
                    let rows = items.child(number, items.rows())?;
                    Tree::read(&rows, None, dictionaries)
                };
                let (valid, name) = (items.valid()?, field.name.clone());
                let entries = Entries { name, valid, keys: of_child(0)?, values: of_child(1)? };
                Part::Entries { spans, entries: Box::new(entries) }
            }
            _ => {
                let items = Tree::read(&items, None, dictionaries)?;
                Part::Items { spans, items: Box::new(items) }
            }
        };
        Ok(Tree { valid, part })
    }

    fn is_null(&self, row: usize) -> bool {
        match &self.part {
            Part::Values { column, .. } => column.get(row).is_none(),
            _ => self.valid.as_ref().is_some_and(|valid| !valid.get(row)),
        }
    }

    /// Writes a row.
    fn write(&self, row: usize, text: &mut JsonText) -> Result<()> {
        if self.is_null(row) {
            text.null();
            return Ok(());
        }
        match &self.part {
            Part::Values { column, is_json } => match column.get(row) {
                Some(Scalar::Text(json)) if *is_json => text.json(json),
                Some(value) => text.value(value),
                None => text.null(),
            },
            Part::Fields(fields) => {
                text.open(Brackets::Curly);
                for (number, (name, field)) in fields.iter().enumerate() {
                    text.next(number == 0)?;
                    text.name(name);
                    field.write(row, text)?;
                }
                text.close(Brackets::Curly);
            }
            Part::Items { spans, items } => {
                let span = spans.get(row);
                text.open(Brackets::Square);
                for item in span.clone() {
                    text.next(item == span.start)?;
                    items.write(item, text)?;
                }
                text.close(Brackets::Square);
            }
            Part::Entries { spans, entries } => {
                let span = spans.get(row);
                text.open(Brackets::Curly);
                for entry in span.clone() {
                    text.next(entry == span.start)?;
                    entries.write(entry, text)?;
                }
                text.close(Brackets::Curly);
            }
        }
        Ok(())
    }
}

impl Entries<'_> {
    fn write(&self, entry: usize, text: &mut JsonText) -> Result<()> {
        let is_there = self.valid.as_ref().is_none_or(|valid| valid.get(entry));
        if !is_there || self.keys.is_null(entry) {
            let name = &self.name;
            return Err(Fault::damaged(format!("field {name}: a map with a key that is NULL")));
        }
        let start = text.begin_key();
        self.keys.write(entry, text)?;
        text.end_key(start);
        self.values.write(entry, text)
    }
}

/// Which items the rows of a list or a map have, and which of the child they are.
pub(crate) fn items_of<'a, R: FieldRows<'a>>(
    read: &R,
    of: Composite,
    valid: Option<&Bits<'_>>,
) -> Result<(Spans, Range<u64>)> {
    match of {
        Composite::List(width) => ends(read, width),
        Composite::Map => ends(read, size_of::<u32>()),
        Composite::ListView(width) => views(read, width, valid),
        Composite::FixedList(items) => fixed(read, items),
        // Each row has one of each child.
        Composite::Struct => fixed(read, 1),
    }
}

/// Items that follow each other, and which of the child they are.
fn ends<'a, R: FieldRows<'a>>(read: &R, width: usize) -> Result<(Spans, Range<u64>)> {
    let count = read.count();
    if count == 0 {
        return Ok((Spans::Ends(vec![0]), 0..0));
    }
    let raw = read.ints(0, width, 1)?;
    read.take((count as u64 + 1) * size_of::<usize>() as u64)?;
    let mut ends = Vec::with_capacity(count + 1);
    let (mut first, mut before) = (None, 0);
    for row in 0..=count {
        let end = u64::try_from(int_at(&raw, row, IntType { width, signed: true }));
        let end = end.ok().filter(|end| (before..=ITEMS_MAX).contains(end));
        let end = end.ok_or_else(|| damaged(read.field(), "a list that ends before it starts"))?;
        ends.push((end - *first.get_or_insert(end)) as usize);
        before = end;
    }
    Ok((Spans::Ends(ends), first.unwrap_or(0)..before))
}

/// Items that stand anywhere, and those of the child from the first to the last of them.
fn views<'a, R: FieldRows<'a>>(
    read: &R,
    width: usize,
    valid: Option<&Bits<'_>>,
) -> Result<(Spans, Range<u64>)> {
    let count = read.count();
    let (starts, counts) = (read.ints(0, width, 0)?, read.ints(1, width, 0)?);
    read.take(count as u64 * size_of::<Range<usize>>() as u64)?;
    let mut spans: Vec<Range<u64>> = Vec::with_capacity(count);
    let mut used: Option<Range<u64>> = None;
    for row in 0..count {
        if valid.is_some_and(|valid| !valid.get(row)) {
            spans.push(0..0);
            continue;
        }
        let number = |raw: &[u8]| {
            let found = u64::try_from(int_at(raw, row, IntType { width, signed: true }));
            let found = found.ok().filter(|number| *number <= ITEMS_MAX);
            found.ok_or_else(|| damaged(read.field(), "a list before its first item"))
        };
        let (start, items) = (number(&starts)?, number(&counts)?);
        let span = start..start + items;
        if items > 0 {
            used = Some(match used {
                None => span.clone(),
                Some(used) => used.start.min(start)..used.end.max(span.end),
            });
        }
        spans.push(span);
    }
    let used = used.unwrap_or(0..0);
    // One without items may stand anywhere.
    let place = |at: u64| at.saturating_sub(used.start) as usize;
    let spans = spans.iter().map(|span| match span.is_empty() {
        true => 0..0,
        false => place(span.start)..place(span.end),
    });
    Ok((Spans::Each(spans.collect()), used))
}

/// As many items in each row.
fn fixed<'a, R: FieldRows<'a>>(read: &R, items: usize) -> Result<(Spans, Range<u64>)> {
    let rows = read.rows();
    let at = |row: u64| row.checked_mul(items as u64).filter(|item| *item <= ITEMS_MAX);
    let range = at(rows.start).zip(at(rows.end));
    let (start, end) =
        range.ok_or_else(|| damaged(read.field(), "more items than there can be"))?;
    Ok((Spans::Width(items), start..end))
}

/// Checks that a child has the rows that are asked of it, of which it has so many.
pub(crate) fn check_rows(child: &Field, rows: &Range<u64>, length: u64) -> Result<()> {
    match rows.start <= rows.end && rows.end <= length.min(ITEMS_MAX) {
        true => Ok(()),
        false => Err(damaged(child, &format!("items {rows:?} are needed, and there are {length}"))),
    }
}
