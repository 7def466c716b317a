//! Rows of a partition in the order of the key, before it is a segment: who sends partitions to a server may sort them, so that the server merges
//! what is sorted.
//!
//! ```text
//!   columns of the key -> a permutation -> each column by it, with as many rows a page as before
//! ```
//!
//! Rows of equal keys keep their order, and none is left out: which of them gives way is decided where all partitions are.
//!
//! Memory: the keys and the permutation; of the other columns as many as there are threads, whole.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use coload_ddl::{Key, Schema};
use coload_page::{Page, SymbolDecoder};
use coload_space::Dram;
use coload_threads::{in_order, lock, thread_cpu_ns};
use coload_transform::{PartitionColumn, compare_keys, sort_keys};
use coload_types::{Bitmap, Dictionary, Error, Physical, Plain, Result, Values};

use super::byte_order::{ColumnKeys, order_by_bytes};
use super::fields::for_each_codes;
use super::gather::{Form, Gather, gather_columns};
use super::given::plain_page;
use super::keys::float;
use super::new_pages::NewPages;
use super::order::reorder;
use super::run::{canonical, open_symbols};
use super::sorting::SortWith;
use super::tree::parts_are_of;
use crate::segment_writer::ColumnParts;
use crate::{SegmentFile, SegmentWriter, append_page};

/// A column of a partition, of all its fragments in their order.
#[derive(Debug)]
pub enum ColumnOf {
    /// Values of each fragment, which somebody else transforms.
    Values(Vec<Plain>),
    /// Pages as they are stored, one of each fragment.
    Pages(PartitionColumn),
}

/// A partition whose rows are in order.
#[derive(Debug)]
pub struct SortedRows {
    /// Which rows of the partition they were; `None` where they stood in order, and the columns are as they came.
    pub rows: Option<Vec<u32>>,
    /// CPU nanoseconds that it took, of all threads.
    pub cpu_ns: u64,
}

/// Puts the rows of a partition in the order of a key, and gives each column to `take`, in their order.
///
/// # Errors
/// `Corrupt` when a page is none or there are too few columns, `Limit` when there are too many rows; those of `take`.
pub fn sort_partition(
    columns: Vec<ColumnOf>,
    (schema, key): (&Schema, &Key),
    page_rows: &[u32],
    threads: usize,
    mut take: impl FnMut(usize, ColumnOf) -> Result<()>,
) -> Result<SortedRows> {
    let started = thread_cpu_ns();
    if columns.len() != schema.len() {
        return Err(Error::Corrupt(format!("{} columns of {}", columns.len(), schema.len())));
    }
    let physical = |column: usize| schema.columns()[column].data_type.physical();
    let keys = key.columns().iter().map(|column| {
        let float = float(schema, *column);
        let mut plain = key_column(&columns[*column], physical(*column), float.is_some())?;
        canonical(&mut plain, float);
        Ok(plain)
    });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let order = match keys.iter().any(|column| column.values.physical() == Physical::Bytes) {
        // The partition is in memory, and its keys are a part of it.
        true => {
            let with = SortWith { threads, memory: u64::MAX };
            order_by_bytes(&ColumnKeys::compared(keys), with)?
        }
        false => sort_keys(&keys)?,
    };
    let Some(rows) = order.rows else {
        let cpu_ns = thread_cpu_ns() - started;
        columns.into_iter().enumerate().try_for_each(|(number, column)| take(number, column))?;
        return Ok(SortedRows { rows: None, cpu_ns });
    };
    let spent = AtomicU64::new(thread_cpu_ns() - started);
    let space = Dram::new("dram", u64::MAX);
    let (form, places) = (Form::Segment, &OnceLock::new());
    let pages = &NewPages::of_rows(page_rows);
    let gather = Gather {
        rows: &rows,
        pages,
        form,
        space: &space,
        places,
        // Columns are made at once.
        threads: 1,
    };
    let given: Vec<Mutex<Option<ColumnOf>>> =
        columns.into_iter().map(|column| Mutex::new(Some(column))).collect();
    let make = |column: usize| {
        let (taken, started) = (lock(&given[column]).take(), thread_cpu_ns());
        let made = match taken {
            Some(ColumnOf::Values(values)) => {
                reorder_values(values, physical(column), gather).map(ColumnOf::Values)
            }
            Some(ColumnOf::Pages(pages)) => {
                reorder_pages(&pages, physical(column), gather).map(ColumnOf::Pages)
            }
            None => Err(Error::Corrupt("a column of a partition that is sorted twice".into())),
        };
        spent.fetch_add(thread_cpu_ns() - started, Ordering::Relaxed);
        made
    };
    in_order(given.len(), threads, make, take)?;
    Ok(SortedRows { rows: Some(rows), cpu_ns: spent.into_inner() })
}

/// A column of the key, as it is sorted: codes of a sorted dictionary are as good as its values.
fn key_column(column: &ColumnOf, physical: Physical, is_float: bool) -> Result<Plain> {
    let PartitionColumn { dictionary, symbols, pages } = match column {
        ColumnOf::Values(values) => return join_values(values, physical),
        ColumnOf::Pages(pages) => pages,
    };
    let is_coded = pages.iter().all(|page| page.detail.is_codes() && page.nulls == 0);
    if is_coded && !is_float && dictionary.is_some() {
        let mut codes = Vec::with_capacity(pages.iter().map(|page| page.rows as usize).sum());
        for page in pages {
            let rows = 0..page.rows as usize;
            for_each_codes(&plain_page(page)?.view()?, rows, u64::from, &mut |some| {
                codes.extend(some.iter().map(|code| *code as i64));
                Ok(())
            })?;
        }
        return Ok(Plain { values: Values::Int(codes), nulls: None });
    }
    let mut plain = Plain::empty(physical);
    let decoders = open_symbols(symbols)?;
    pages.iter().try_for_each(|page| decode(page, (dictionary.as_ref(), &decoders), &mut plain))?;
    Ok(plain)
}

fn decode(
    page: &Page,
    (dictionary, decoders): (Option<&Dictionary>, &[SymbolDecoder]),
    out: &mut Plain,
) -> Result<()> {
    append_page(&plain_page(page)?.view()?, dictionary, decoders, out)
}

/// The values of all fragments.
fn join_values(fragments: &[Plain], physical: Physical) -> Result<Plain> {
    let starts = starts_of(fragments.iter().map(Plain::len));
    let rows: Vec<u32> = (0..starts.last().copied().unwrap_or(0)).collect();
    pick(fragments, &starts, &rows, physical)
}

/// The first row of each fragment, and the end of the last.
fn starts_of(rows: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut end = 0;
    let ends = rows.map(|rows| {
        end += rows as u32;
        end
    });
    [0].into_iter().chain(ends).collect()
}

/// Values of fragments in another order, cut as the pages are.
fn reorder_values(
    fragments: Vec<Plain>,
    physical: Physical,
    gather: Gather<'_>,
) -> Result<Vec<Plain>> {
    let starts = starts_of(fragments.iter().map(Plain::len));
    gather.cut().map(|rows| pick(&fragments, &starts, rows, physical)).collect()
}

/// Pages of a column in another order.
fn reorder_pages(
    column: &PartitionColumn,
    physical: Physical,
    gather: Gather<'_>,
) -> Result<PartitionColumn> {
    let mut whole: Option<PartitionColumn> = None;
    reorder(column, physical, gather, &mut |mut part| {
        match &mut whole {
            Some(whole) => whole.pages.append(&mut part.pages),
            none => *none = Some(part),
        }
        Ok(())
    })?;
    whole.ok_or_else(|| Error::Corrupt("a column that became none".into()))
}

/// The values of some rows, which are counted through all fragments.
fn pick(fragments: &[Plain], starts: &[u32], rows: &[u32], physical: Physical) -> Result<Plain> {
    let place = |row: u32| {
        let fragment = starts.partition_point(|start| *start <= row).saturating_sub(1);
        (fragment, (row - starts[fragment]) as usize)
    };
    let mut values = Values::empty(physical);
    for row in rows {
        let (fragment, row) = place(*row);
        match (&mut values, &fragments[fragment].values) {
            (Values::Int(values), Values::Int(from)) => values.push(from[row]),
            (Values::Wide(values), Values::Wide(from)) => values.push(from[row]),
            (Values::Bytes(strings), Values::Bytes(from)) => {
                let text = from.get(row);
                if !strings.has_room(text.len() as u64) {
                    return Err(Error::Limit(
                        "texts of a partition over 4 GiB are to be sorted; lower --memory".into(),
                    ));
                }
                strings.push(text);
            }
            _ => return Err(Error::Corrupt("values of two shapes in a column".into())),
        }
    }
    let mut nulls = None;
    if fragments.iter().any(|fragment| fragment.nulls.is_some()) {
        let mut bits = Bitmap::zeros(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let (fragment, row) = place(*row);
            if fragments[fragment].is_null(row) {
                bits.set(at);
            }
        }
        nulls = Some(bits).filter(|bits| bits.count_ones() > 0);
    }
    Ok(Plain { values, nulls })
}

/// Whether the rows of a segment are in the order of a key. One that has a tree of it is known to be.
///
/// # Errors
/// `Corrupt` when the segment is not what was written.
pub fn is_in_order(segment: &SegmentFile, schema: &Schema, key: &Key) -> Result<bool> {
    if parts_are_of(segment, key) {
        return Ok(true);
    }
    let mut before: Option<Vec<Plain>> = None;
    for page in 0..segment.page_rows().len() {
        let column = |column: &usize| {
            let mut plain = Plain::empty(segment.physical(*column));
            segment.decode_page(*column, page, &mut plain)?;
            canonical(&mut plain, float(schema, *column));
            Ok(plain)
        };
        let keys: Vec<Plain> = key.columns().iter().map(column).collect::<Result<_>>()?;
        segment.check()?;
        let rows = keys.first().map_or(0, Plain::len);
        let last = |keys: &[Plain]| keys.first().map_or(0, Plain::len).checked_sub(1);
        if let Some(before) = before.as_deref().filter(|_| rows > 0)
            && let Some(row) = last(before)
            && compare_keys(before, row, &keys, 0).is_gt()
        {
            return Ok(false);
        }
        if (1..rows).any(|row| compare_keys(&keys, row - 1, &keys, row).is_gt()) {
            return Ok(false);
        }
        if rows > 0 {
            before = Some(keys);
        }
    }
    Ok(true)
}

/// Writes a segment with its rows in another order, in pages of as many rows.
///
/// # Errors
/// `Corrupt` when the rows are not those of the segment, `Unavailable` when the disk fails.
pub fn write_reordered(segment: &SegmentFile, rows: &[u32], writer: &SegmentWriter) -> Result<()> {
    if rows.len() as u64 != segment.rows()
        || rows.iter().any(|row| u64::from(*row) >= segment.rows())
    {
        return Err(Error::corrupt(segment.path(), "other rows than were sorted"));
    }
    let space = Dram::new("dram", u64::MAX);
    let page_rows = segment.page_rows();
    let (form, places, pages) = (Form::Segment, &OnceLock::new(), &NewPages::of_rows(page_rows));
    let gather = Gather { rows, pages, form, space: &space, places, threads: 1 };
    let mut columns = ColumnParts::new(writer);
    gather_columns(segment, gather, |column, part| {
        columns.put(column, part, segment.physical(column))
    })?;
    segment.check()?;
    writer.finish(columns.finish(), page_rows.to_vec()).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::{KeyKind, parse_columns};
    use coload_page::encode_codes_u32;
    use coload_transform::encode_column;
    use coload_types::Value;

    use super::*;

    const PAGE_ROWS: [u32; 3] = [3, 2, 4];

    fn schema(columns: &str, kind: KeyKind, key: &[usize]) -> (Schema, Key) {
        let schema = parse_columns(columns).unwrap();
        (schema, Key::new(kind, key.to_vec()).unwrap())
    }

    /// Fragments of values, some of which are NULL.
    fn fragments(values: &[Option<i64>]) -> Vec<Plain> {
        let mut rows = values.iter();
        let fragment = |count: &u32| {
            let mut plain = Plain::empty(Physical::Int);
            rows.by_ref().take(*count as usize).for_each(|value| {
                plain.push(value.map(Value::Int).as_ref());
            });
            plain
        };
        PAGE_ROWS.iter().map(fragment).collect()
    }

    fn pages(values: &[Option<i64>]) -> PartitionColumn {
        let pages = fragments(values).into_iter().map(|plain| encode_column(&plain, None).unwrap());
        PartitionColumn { dictionary: None, symbols: Vec::new(), pages: pages.collect() }
    }

    /// Codes of a dictionary of 0, 10, 20 and so on.
    fn codes(values: &[Option<i64>]) -> PartitionColumn {
        let dictionary = Dictionary::new(Values::Int((0..9).map(|v| v * 10).collect())).unwrap();
        let code = |value: Option<Value>| match value {
            Some(Value::Int(value)) => value as u32 / 10,
            _ => 9,
        };
        let page = |plain: &Plain| {
            let codes: Vec<u32> = (0..plain.len()).map(|row| code(plain.get(row))).collect();
            encode_codes_u32(&codes, 9)
        };
        let pages = fragments(values).iter().map(page).collect();
        PartitionColumn { dictionary: Some(dictionary), symbols: Vec::new(), pages }
    }

    /// The values of a column, and the rows of its parts.
    fn values_of(column: &ColumnOf) -> (Vec<Option<Value>>, Vec<u32>) {
        let mut all = Plain::empty(Physical::Int);
        let rows = match column {
            ColumnOf::Values(fragments) => {
                all = join_values(fragments, Physical::Int).unwrap();
                fragments.iter().map(|plain| plain.len() as u32).collect()
            }
            ColumnOf::Pages(column) => {
                for page in &column.pages {
                    decode(page, (column.dictionary.as_ref(), &[]), &mut all).unwrap();
                }
                column.pages.iter().map(|page| page.rows).collect()
            }
        };
        ((0..all.len()).map(|row| all.get(row)).collect(), rows)
    }

    #[test]
    fn columns_of_all_forms_follow_the_key_and_equal_keys_keep_their_order() {
        let of = |v: i64| Some(v * 10);
        let key = [of(3), of(1), None, of(3), of(0), of(8), of(1), None, of(3)];
        let other = [Some(1), None, Some(3), Some(4), Some(5), None, Some(7), Some(8), Some(9)];
        let mut wanted: Vec<usize> = (0..9).collect();
        wanted.sort_by_key(|row| (key[*row].is_none(), key[*row]));
        for (form, threads) in [(0, 1), (1, 2), (2, 3)] {
            let (schema, cluster) = schema("k BIGINT, a BIGINT, b BIGINT", KeyKind::Cluster, &[0]);
            let column = |values: &[Option<i64>], form: usize| match form % 3 {
                0 => ColumnOf::Values(fragments(values)),
                1 => ColumnOf::Pages(pages(values)),
                _ => ColumnOf::Pages(codes(values)),
            };
            let columns =
                vec![column(&key, form), column(&other, form % 2), column(&key, form + 1)];
            let mut came = Vec::new();
            let sorted =
                sort_partition(columns, (&schema, &cluster), &PAGE_ROWS, threads, |n, c| {
                    assert_eq!(n, came.len());
                    came.push(values_of(&c));
                    Ok(())
                });
            let rows: Vec<usize> =
                sorted.unwrap().rows.unwrap().into_iter().map(|row| row as usize).collect();
            assert_eq!(rows, wanted);
            let by = |values: &[Option<i64>]| {
                let values = wanted.iter().map(|row| values[*row].map(Value::Int)).collect();
                (values, PAGE_ROWS.to_vec())
            };
            assert_eq!(came, [by(&key), by(&other), by(&key)]);
        }
    }

    #[test]
    fn keys_of_text_are_sorted_by_any_number_of_threads() {
        const ROWS: usize = 40_000;
        let text = |row: usize| match row * 7919 % 10_007 {
            5 => None,
            drawn => Some(Value::Bytes(format!("text {}", drawn / 2).into_bytes().into())),
        };
        let number = |row: usize| Some(Value::Int((row * 31 % 3) as i64));
        let plain = |physical, value: &dyn Fn(usize) -> Option<Value>| {
            let mut plain = Plain::empty(physical);
            (0..ROWS).for_each(|row| plain.push(value(row).as_ref()));
            plain
        };
        let (schema, key) = schema("k VARCHAR, n BIGINT", KeyKind::Cluster, &[0, 1]);
        let mut wanted: Vec<u32> = (0..ROWS as u32).collect();
        let key_of =
            |row: u32| (text(row as usize).is_none(), text(row as usize), number(row as usize));
        wanted.sort_by_cached_key(|row| key_of(*row));
        for threads in [1, 3] {
            let columns = vec![
                ColumnOf::Values(vec![plain(Physical::Bytes, &text)]),
                ColumnOf::Values(vec![plain(Physical::Int, &number)]),
            ];
            let page_rows = [ROWS as u32];
            let sorted =
                sort_partition(columns, (&schema, &key), &page_rows, threads, |_, _| Ok(()));
            assert!(sorted.unwrap().rows.as_ref() == Some(&wanted), "{threads} threads");
        }
    }

    #[test]
    fn an_order_is_seen_within_pages_and_from_one_to_the_next() {
        let rows = |values: [i64; 9]| values.map(Some);
        let segment = |values: &[Option<i64>], unlike: &[Option<i64>]| {
            let columns = vec![(Physical::Int, pages(values)), (Physical::Int, pages(unlike))];
            SegmentFile::in_memory(PAGE_ROWS.to_vec(), columns).unwrap()
        };
        let (schema, key) = schema("k BIGINT, a BIGINT", KeyKind::Cluster, &[0, 1]);
        let zeros = rows([0; 9]);
        let is = |values: &[Option<i64>], unlike: &[Option<i64>]| {
            is_in_order(&segment(values, unlike), &schema, &key).unwrap()
        };
        assert!(is(&zeros, &zeros) && is(&rows([1, 1, 2, 2, 3, 3, 4, 4, 5]), &zeros));
        assert!(!is(&rows([1, 1, 2, 1, 3, 3, 4, 4, 5]), &zeros), "from a page to the next");
        assert!(!is(&rows([1, 1, 2, 2, 3, 3, 4, 3, 5]), &zeros), "within a page");
        assert!(!is(&zeros, &rows([0, 0, 0, 0, 0, 0, 0, 1, 0])), "by the second column");
        let mut last = rows([1, 1, 2, 2, 3, 3, 4, 4, 5]);
        last[8] = None;
        assert!(is(&last, &zeros), "NULL is last");
        last.swap(8, 0);
        assert!(!is(&last, &zeros));
    }
}
