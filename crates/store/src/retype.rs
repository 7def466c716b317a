//! Segments whose columns got wider types after they were written.
//!
//! ```text
//!   segment, old types   a BIGINT   b DATE   c BIGINT       text read again   c VARCHAR
//!                          |          |                                         |
//!   segment, new types   a DECIMAL  b DATE                                    c VARCHAR
//!                        converted  copied                                    joined
//! ```
//!
//! Values become what a load with the new types would have read: exactly the same numbers and instants. Codes
//! stay where the order of the values does; only their dictionary is converted.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_page::bitpack::BLOCK;
use coload_page::shrink_page;
use coload_page::{Page, PageView, encode_codes_u32, verify_values_of};
use coload_transform::{DictionaryPolicy, FragmentColumn, PartitionColumn, compress_column};
use coload_types::display::write_value;
use coload_types::{
    Column, DataType, Dictionary, Element, ElementType, Error, Physical, Plain, Result, Strings,
    Value, Values, elements_onto, parse_int, put_element,
};

use crate::join::{PagePlace, Source, join_column, single_pages};
use crate::{FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter};

const DAY_US: i128 = 86_400_000_000;

/// What becomes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retype {
    /// The column has its type already, and its pages stay as they are.
    Keep,
    /// Each value is converted to the new type.
    Convert {
        /// The type that they have.
        from: DataType,
        /// The type that they get.
        to: DataType,
    },
    /// They become the text that stands in the input.
    Text {
        /// Number of the column among those read again.
        column: usize,
    },
}

impl Retype {
    /// How values of one type become those of another; `None` where only the text tells.
    fn between(from: DataType, to: DataType) -> Option<Self> {
        use DataType::{BigInt, Date, Decimal, Double, List, Timestamp};
        match (from, to) {
            _ if from == to => Some(Retype::Keep),
            // As its elements: a list has the same bytes where these have the same numbers.
            (List(of), List(wider)) => match Self::between(of.data_type(), wider.data_type())? {
                Retype::Keep => Some(Retype::Keep),
                _ => Some(Retype::Convert { from, to }),
            },
            (BigInt, Decimal { scale: 0, .. }) if to.physical() == from.physical() => {
                Some(Retype::Keep)
            }
            (BigInt | Decimal { .. }, Decimal { .. } | Double) | (Date, Timestamp) => {
                Some(Retype::Convert { from, to })
            }
            _ => None,
        }
    }
}

/// A page that was read again, and its rows.
pub type RereadPage = (PagePlace, u32);

/// The columns that were read again, over all segments that are rewritten.
#[derive(Debug, Default)]
pub struct Reread {
    segments: Vec<Source>,
    pages: Vec<RereadPage>,
}

impl Reread {
    /// All pages of these segments, in order.
    pub fn new(segments: Vec<Arc<SegmentFile>>) -> Self {
        let pages = segments.iter().enumerate().flat_map(|(source, segment)| {
            let rows = segment.page_rows().iter().enumerate();
            rows.map(move |(page, rows)| (PagePlace { source, page }, *rows))
        });
        let pages = pages.collect();
        Reread { pages, segments: segments.into_iter().map(Source::whole).collect() }
    }

    /// The pages of one segment that has the text of `columns` columns, and no others.
    ///
    /// # Errors
    /// `Corrupt` when it has other columns.
    pub fn of_segment(segment: SegmentFile, columns: usize) -> Result<Self> {
        match segment.column_count() == columns {
            true => Ok(Reread::new(vec![Arc::new(segment)])),
            false => Err(Error::corrupt(segment.path(), "other columns than were wanted")),
        }
    }

    /// Takes as many pages as `rows` has, which must be of the same rows.
    ///
    /// # Errors
    /// `Corrupt` when they are not.
    pub fn take(&mut self, rows: &[u32]) -> Result<Vec<RereadPage>> {
        let pages: Vec<_> = self.pages.drain(..rows.len().min(self.pages.len())).collect();
        if pages.iter().map(|(_, rows)| rows).eq(rows) {
            return Ok(pages);
        }
        Err(Error::Corrupt(
            "the text that was read again has other records; nothing was loaded".to_owned(),
        ))
    }

    /// A column of some pages.
    fn column(&self, pages: &[RereadPage], column: usize) -> Result<PartitionColumn> {
        let groups = single_pages(pages.iter().copied());
        drop_unused(join_column(&self.segments, &groups, column)?)
    }
}

/// How columns get wider types, those of the segments before too: the only way to it, for loads into a store and at a
/// server.
#[derive(Debug, Clone)]
pub struct TypeChange {
    columns: Vec<Retype>,
    /// Types of the columns that get another and do not become text.
    wider: Vec<Option<DataType>>,
}

impl TypeChange {
    /// From columns to others, which [`converts`] says can be. `reread` are the columns whose text is read again, by
    /// their numbers in the table.
    ///
    /// # Errors
    /// `Corrupt` when the columns cannot be converted, or the text of one lacks.
    pub fn new(from: &[Column], to: &[Column], reread: &[usize]) -> Result<Self> {
        let retype = |(column, (from, to)): (usize, (&Column, &Column))| {
            if !becomes_text(from.data_type, to.data_type) {
                return Retype::between(from.data_type, to.data_type);
            }
            let column = reread.iter().position(|reread| *reread == column)?;
            Some(Retype::Text { column })
        };
        let columns: Option<Vec<Retype>> = from.iter().zip(to).enumerate().map(retype).collect();
        let Some(columns) = columns.filter(|_| from.len() == to.len()) else {
            return Err(Error::Corrupt("columns that cannot be converted".to_owned()));
        };
        let wider = from.iter().zip(to).map(|(from, to)| {
            let (from, to) = (from.data_type, to.data_type);
            (from != to && !becomes_text(from, to)).then_some(to)
        });
        Ok(TypeChange { wider: wider.collect(), columns })
    }

    /// Whether all columns stay as they are.
    pub fn is_none(&self) -> bool {
        self.columns.iter().all(|retype| *retype == Retype::Keep)
    }

    /// Whether the text of columns is wanted.
    pub fn wants_text(&self) -> bool {
        self.columns.iter().any(|retype| matches!(retype, Retype::Text { .. }))
    }

    /// Writes a segment with the wider types. `pages` are those of its rows in the columns that were read again.
    ///
    /// # Errors
    /// `Corrupt` when a segment is not what was written, or the new types do not hold its values; `Unavailable` when the
    /// disk fails.
    pub fn write(
        &self,
        old: &SegmentFile,
        (reread, pages): (&Reread, &[RereadPage]),
        path: &Path,
    ) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
        if self.columns.len() != old.column_count() {
            return Err(Error::corrupt(old.path(), "columns that cannot be converted"));
        }
        let writer = SegmentWriter::create(path)?;
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, retype) in self.columns.iter().enumerate() {
            let (physical, new) = match *retype {
                Retype::Keep => (old.physical(column), copy_column(old, column)?),
                Retype::Convert { from, to } => {
                    (to.physical(), convert_column(old, column, from, to)?)
                }
                Retype::Text { column } => {
                    (DataType::Varchar(None).physical(), reread.column(pages, column)?)
                }
            };
            columns.push(writer.write_column(new, physical)?);
        }
        let summary = writer.finish(columns.clone(), old.page_rows().to_vec())?;
        for (column, data_type) in columns.iter().zip(&self.wider) {
            let Some(data_type) = data_type else { continue };
            let mut bounds = Values::empty(column.physical);
            let ends = [&column.stats.min, &column.stats.max];
            ends.into_iter().flatten().for_each(|value| bounds.push(value));
            verify_values_of(&bounds, *data_type)?;
        }
        Ok((summary, columns))
    }
}

/// Whether only the text of values tells what they become.
fn becomes_text(from: DataType, to: DataType) -> bool {
    to == DataType::Varchar(None) && !from.is_text()
}

/// The columns of which the text must be read again.
pub fn text_columns(from: &Schema, to: &Schema) -> Vec<usize> {
    let pairs = from.columns().iter().zip(to.columns()).enumerate();
    pairs.filter(|(_, (f, t))| becomes_text(f.data_type, t.data_type)).map(|(c, _)| c).collect()
}

/// Whether the values of one type can become those of another: they are converted, or their text is read again.
pub fn converts_type(from: DataType, to: DataType) -> bool {
    let scale = |of: DataType| match of {
        DataType::List(element) => element.data_type().scale(),
        of => of.scale(),
    };
    let is_double =
        |of: DataType| matches!(of, DataType::Double | DataType::List(ElementType::Double));
    let holds = is_double(to) || scale(from) <= scale(to);
    becomes_text(from, to) || holds && Retype::between(from, to).is_some()
}

/// Whether columns can become others: their values are converted, or their text is read again.
pub fn converts(from: &Schema, to: &Schema) -> bool {
    let pairs = from.columns().iter().zip(to.columns());
    let mut same = pairs.map(|(from, to)| {
        from.name == to.name
            && from.nullable == to.nullable
            && converts_type(from.data_type, to.data_type)
    });
    from.len() == to.len() && same.all(|same| same)
}

/// A column of a segment as it is.
pub(crate) fn copy_column(old: &SegmentFile, column: usize) -> Result<PartitionColumn> {
    let pages = (0..old.page_rows().len()).map(|page| old.stored_page(column, page));
    Ok(PartitionColumn {
        dictionary: old.dictionary(column)?.cloned(),
        symbols: old.column(column)?.index().symbols.clone(),
        pages: pages.collect::<Result<_>>()?,
    })
}

fn convert_column(
    old: &SegmentFile,
    column: usize,
    from: DataType,
    to: DataType,
) -> Result<PartitionColumn> {
    let dictionary = match old.dictionary(column)? {
        Some(dictionary) => {
            // Decimals of many digits may be the same as DOUBLE: then there are no codes.
            Dictionary::new(convert_values(dictionary.values(), from, to)?).ok()
        }
        None => None,
    };
    let mut pages = Vec::with_capacity(old.page_rows().len());
    for page in 0..old.page_rows().len() {
        let stored = old.stored_page(column, page)?;
        if dictionary.is_some() && stored.detail.is_codes() {
            pages.push(stored);
            continue;
        }
        let mut plain = Plain::empty(from.physical());
        old.decode_page(column, page, &mut plain)?;
        plain.values = convert_values(&plain.values, from, to)?;
        let fragment = vec![FragmentColumn::Plain(plain)];
        let policy = DictionaryPolicy::Auto;
        let new = compress_column(fragment, &[], None, None, to.physical(), policy)?;
        pages.extend(new.pages);
    }
    Ok(PartitionColumn { dictionary, symbols: Vec::new(), pages })
}

/// Values as another type has them.
fn convert_values(values: &Values, from: DataType, to: DataType) -> Result<Values> {
    if let (Values::Bytes(lists), DataType::List(from), DataType::List(to)) = (values, from, to) {
        return convert_lists(lists, from, to).map(Values::Bytes);
    }
    let factor = match (from, to) {
        (DataType::Date, _) => DAY_US,
        _ => 10_i128.pow(to.scale().saturating_sub(from.scale()).into()),
    };
    let mut text = Vec::new();
    let mut convert = |value: Value| -> Option<Value> {
        if to == DataType::Double {
            text.clear();
            write_value(&value, from, &mut text);
            return parse_int(&text, to).ok().map(Value::Int);
        }
        let wide = match value {
            Value::Int(v) => i128::from(v),
            Value::Wide(v) => v,
            Value::Bytes(_) => return None,
        };
        let wide = wide.checked_mul(factor)?;
        match to.physical() {
            Physical::Int => i64::try_from(wide).ok().map(Value::Int),
            _ => Some(Value::Wide(wide)),
        }
    };
    let mut converted = Values::empty(to.physical());
    for index in 0..values.len() {
        let value = convert(values.get(index)).ok_or_else(|| {
            Error::Corrupt(format!("a value of {from} that {to} does not hold; nothing was loaded"))
        })?;
        converted.push(&value);
    }
    Ok(converted)
}

/// Lists whose elements are as another type has them. Their order stays, as that of the elements does.
fn convert_lists(lists: &Strings, from: ElementType, to: ElementType) -> Result<Strings> {
    let (from, of) = (from.data_type(), from);
    let mut converted = Strings::default();
    let mut list = Vec::new();
    for old in lists.iter() {
        let mut items = Plain::empty(from.physical());
        elements_onto(old, of, &mut items)?;
        let values = convert_values(&items.values, from, to.data_type())?;
        list.clear();
        for item in 0..items.len() {
            let value = (!items.is_null(item)).then(|| match values.get(item) {
                Value::Int(value) => Element::Int(value),
                Value::Wide(value) => Element::Wide(value),
                Value::Bytes(value) => Element::Bytes(Cow::Owned(value.into())),
            });
            put_element(&mut list, value.as_ref());
        }
        if !converted.has_room(list.len() as u64) {
            return Err(Error::Limit("lists of one column are over 4 GiB".to_owned()));
        }
        converted.push(&list);
    }
    Ok(converted)
}

/// Leaves values out of the dictionary that no page has.
pub(crate) fn drop_unused(column: PartitionColumn) -> Result<PartitionColumn> {
    let PartitionColumn { dictionary, symbols, pages } = column;
    let Some(dictionary) = dictionary else {
        return Ok(PartitionColumn { dictionary, symbols, pages: shrink(pages)? });
    };
    let codes: Vec<Option<Vec<u32>>> = pages.iter().map(page_codes).collect::<Result<_>>()?;
    let mut used = vec![false; dictionary.len() + 1];
    codes.iter().flatten().flatten().for_each(|code| used[*code as usize] = true);
    // NULL keeps the code after the last.
    used[dictionary.len()] = false;
    let (mut values, mut new_codes) = (Values::empty(dictionary.values().physical()), Vec::new());
    for (code, used) in used.iter().enumerate() {
        new_codes.push(values.len() as u32);
        if *used {
            values.push(&dictionary.values().get(code));
        }
    }
    let null = values.len() as u32;
    let page = |(page, codes): (Page, Option<Vec<u32>>)| match codes {
        Some(mut codes) => {
            codes.iter_mut().for_each(|code| *code = new_codes[*code as usize]);
            encode_codes_u32(&codes, null)
        }
        None => page,
    };
    let pages = pages.into_iter().zip(codes).map(page).collect();
    Ok(PartitionColumn {
        dictionary: Some(Dictionary::new(values)?),
        symbols,
        pages: shrink(pages)?,
    })
}

/// The codes of a page; `None` for values.
fn page_codes(page: &Page) -> Result<Option<Vec<u32>>> {
    let PageView::Codes(view) = page.view()? else { return Ok(None) };
    let mut codes = Vec::with_capacity(view.rows);
    let mut block = [0; BLOCK];
    for b in 0..view.rows.div_ceil(BLOCK) {
        let count = view.unpack(b, &mut block);
        codes.extend_from_slice(&block[..count]);
    }
    Ok(Some(codes))
}

fn shrink(pages: Vec<Page>) -> Result<Vec<Page>> {
    pages.into_iter().map(shrink_page).collect()
}
