//! Partitions whose rows the client sorts before it sends them, so that the server merges what is sorted.
//!
//! ```text
//!   fragments and columns   held until the partition is sealed
//!   sealed                  columns in the order of the key -> blocks, as of any partition
//!                           which rows they were            -> blocks of a column behind the others, where somebody may ask
//! ```
//!
//! A column that the server transforms goes as values, in the order of the key.
//!
//! Memory: the partition, and what [`coload_store::sort_partition`] says.

use std::collections::BTreeMap;

use coload_assemble::{Assembly, ColumnBuilder};
use coload_ddl::{Key, Schema};
use coload_page::{Page, encode_int};
use coload_store::{ColumnOf, SortedRows, encode_dictionary, sort_partition};
use coload_threads::StepClock;
use coload_transform::{DictionaryLimit, DictionaryPolicy, FinalPage, PartitionColumn, Symbols};
use coload_types::{Error, Plain, Result};
use coload_wire::BlockContent;

use crate::grain::Grain;
use crate::load::Load;
use crate::target::{Ahead, AheadColumn};

/// How partitions are sorted.
#[derive(Debug)]
pub struct SortRows {
    schema: Schema,
    key: Key,
    threads: usize,
    policy: DictionaryPolicy,
    limit: DictionaryLimit,
    /// Whether the server is told which rows of the partition its rows are.
    tells_rows: bool,
}

impl SortRows {
    /// For the table of a load, if it has a key.
    pub fn of(load: Load<'_>) -> Option<Self> {
        let Load { request, resources, .. } = load;
        let key = request.schema.key()?.clone();
        Some(SortRows {
            schema: request.schema.clone(),
            threads: resources.threads,
            policy: resources.dictionaries,
            limit: Grain::of(request, resources).dictionary_limit(),
            // By their numbers places of records are told, and text is joined to rows that became text; of values of UNIQUE, which only the
            // server knows, the first row stays.
            tells_rows: key.is_unique() && request.on_conflict.tells_rows()
                || request.on_conflict.ignores_unique()
                || request.inferred.is_some(),
            key,
        })
    }

    /// Whether the server is told which rows of a partition its rows are.
    pub fn tells_rows(&self) -> bool {
        self.tells_rows
    }

    /// Sorts a partition whose fragments have so many rows, and sends it by blocks, each with its column.
    ///
    /// # Errors
    /// `Limit` when a page or a dictionary is too large; those of `send`.
    pub fn sort(
        &self,
        held: Held,
        page_rows: &[u32],
        mut send: impl FnMut(usize, BlockContent) -> Result<()>,
    ) -> Result<SortedRows> {
        let fragments = page_rows.len();
        let mut columns = Vec::with_capacity(self.schema.len());
        let mut kept = held.columns;
        for (number, column) in self.schema.columns().iter().enumerate() {
            let physical = column.data_type.physical();
            let (policy, limit, symbols) = (self.policy, self.limit, Symbols::Train);
            let assembly = Assembly { physical, policy, limit, symbols };
            columns.push(kept.remove(&number).unwrap_or_default().join(fragments, assembly)?);
        }
        let of = (&self.schema, &self.key);
        let sorted = sort_partition(columns, of, page_rows, self.threads, |number, column| {
            blocks_of(column)?.into_iter().try_for_each(|content| send(number, content))
        })?;
        if let Some(rows) = sorted.rows.as_ref().filter(|_| self.tells_rows) {
            let mut start = 0;
            for (fragment, count) in (0..).zip(page_rows) {
                let end = start + *count as usize;
                let numbers: Vec<i64> =
                    rows[start..end].iter().map(|row| i64::from(*row)).collect();
                let page = encode_int(&numbers, None);
                send(self.schema.len(), pages_of(None, Vec::new(), vec![(fragment, page)]))?;
                start = end;
            }
        }
        Ok(sorted)
    }
}

/// What came of a partition that is to be sorted.
#[derive(Debug, Default)]
pub struct Held {
    columns: BTreeMap<usize, HeldColumn>,
}

impl Held {
    /// Takes columns of a fragment.
    ///
    /// # Errors
    /// `Corrupt` when they are rows.
    pub fn take_ahead(&mut self, ahead: Ahead) -> Result<()> {
        let Ahead { fragment, columns, .. } = ahead;
        for column in columns {
            match column {
                AheadColumn::Values { column, values } => {
                    self.columns.entry(column).or_default().values.push((fragment, values));
                }
                AheadColumn::Page(FinalPage { column, page, symbols }) => {
                    let table = symbols.map(|encoder| encoder.table());
                    self.columns.entry(column).or_default().pages.push((fragment, table, page));
                }
                AheadColumn::Rows(_) => {
                    return Err(Error::Corrupt("rows for a server of stores".into()));
                }
            }
        }
        Ok(())
    }

    /// Takes a column of fragments that waited for their partition.
    pub fn take_column(&mut self, column: usize, fragments: &[u32], compressed: PartitionColumn) {
        self.columns.entry(column).or_default().waited = Some((fragments.to_vec(), compressed));
    }
}

/// What came of a column.
#[derive(Debug, Default)]
struct HeldColumn {
    /// Values that the server is to transform.
    values: Vec<(u32, Plain)>,
    /// Pages that went ahead, with their symbols.
    pages: Vec<(u32, Option<Vec<u8>>, Page)>,
    /// What was made when the partition was whole.
    waited: Option<(Vec<u32>, PartitionColumn)>,
}

impl HeldColumn {
    /// All fragments as one column. Where only some are left to the server, none is.
    fn join(self, fragments: usize, assembly: Assembly) -> Result<ColumnOf> {
        let HeldColumn { mut values, pages, waited } = self;
        if values.len() == fragments {
            values.sort_unstable_by_key(|(fragment, _)| *fragment);
            return Ok(ColumnOf::Values(values.into_iter().map(|(_, values)| values).collect()));
        }
        let mut builder = ColumnBuilder::new(assembly);
        let mut done = Vec::with_capacity(fragments);
        for (fragment, values) in values {
            done.extend(builder.take_values(fragment, values)?.pages);
        }
        for (fragment, table, page) in pages {
            let symbols = table.into_iter().collect();
            done.extend(builder.take_pages(None, symbols, vec![(fragment, page)])?.pages);
        }
        if let Some((numbers, column)) = waited {
            let PartitionColumn { dictionary, symbols, pages } = column;
            let pages = numbers.into_iter().zip(pages).collect();
            done.extend(builder.take_pages(dictionary, symbols, pages)?.pages);
        }
        builder.finish_with(done, &StepClock::default()).map(ColumnOf::Pages)
    }
}

/// The blocks of a column: pages with codes go together, others each alone, as they do where they go ahead of their partition.
fn blocks_of(column: ColumnOf) -> Result<Vec<BlockContent>> {
    let column = match column {
        ColumnOf::Values(values) => {
            let block = |(fragment, values)| BlockContent::Plain { fragment, values };
            return Ok((0..).zip(values).map(block).collect());
        }
        ColumnOf::Pages(column) => column,
    };
    let PartitionColumn { dictionary, symbols, pages } = column;
    let (mut coded, mut blocks) = (Vec::new(), Vec::new());
    for (fragment, page) in (0..).zip(pages) {
        match page.detail.is_codes() {
            true => coded.push((fragment, page)),
            false => blocks.push(pages_of(None, symbols.clone(), vec![(fragment, page)])),
        }
    }
    if !coded.is_empty() {
        let dictionary = dictionary.map(|d| encode_dictionary(&d)).transpose()?;
        blocks.push(pages_of(dictionary, Vec::new(), coded));
    }
    Ok(blocks)
}

fn pages_of(
    dictionary: Option<Page>,
    symbols: Vec<Vec<u8>>,
    pages: Vec<(u32, Page)>,
) -> BlockContent {
    BlockContent::Pages { dictionary, symbols, pages }
}
