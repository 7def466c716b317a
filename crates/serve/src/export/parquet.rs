//! Row groups of Parquet, the columns of each made by tasks.
//!
//! ```text
//!   batches --ROW_GROUP_ROWS--> row group --a task for each column--> pages --in order--> file
//!                               next row group: gathered meanwhile
//! ```
//!
//! Columns of few values are written by [`coded`], others by the library.
//!
//! Memory: the rows of three row groups, and the pages of two.

mod coded;

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_parquet::ColumnChunk;
use coload_types::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::runtime::SpawnedTask;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::Compression;
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;

use self::coded::coded_chunk;
use super::ParquetOptions;
use crate::database::Database;
use crate::memory::sliced_bytes;

/// Rows of a row group: enough for dictionaries to pay, few enough for readers to have several to spread over threads.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// Share of the memory of statements that the rows of a row group may take.
const MEMORY_SHARE: usize = 16;
/// Rows of each batch that tell whether values of a column repeat; and one of how many may have the value of another where they
/// do not: with 2,048 rows in all, that is so where a column has 60,000 values or more.
const SAMPLED_ROWS: usize = 128;
const SAMPLED_REPEATS_SHARE: usize = 64;
/// Row groups that are made at once, beside the one that is gathered.
const ROW_GROUPS_MADE: usize = 2;

/// A Parquet file that is being written.
pub(super) struct ParquetFile {
    path: PathBuf,
    schema: SchemaRef,
    writer: SerializedFileWriter<File>,
    /// Makes columns that begin with a dictionary.
    coded: ArrowRowGroupWriterFactory,
    /// Makes columns without one.
    plain: ArrowRowGroupWriterFactory,
    gathered: Gathered,
    compression: Compression,
    bytes_max: usize,
    made: VecDeque<Vec<Column>>,
    row_groups: usize,
}

/// Rows of the next row group.
#[derive(Default)]
struct Gathered {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

/// The pages of a column of a row group.
type Column = SpawnedTask<ParquetResult<Chunks>>;

enum Chunks {
    /// Made by the library, one for each leaf.
    Leaves(Vec<ArrowColumnChunk>),
    Coded(Box<ColumnChunk>),
}

/// What makes a column of a row group.
struct ColumnMaker {
    field: FieldRef,
    /// Its leaf, if it is one.
    leaf: Option<ColumnDescPtr>,
    compression: Compression,
    arrays: Vec<ArrayRef>,
    /// The library's, with a dictionary and without.
    writers: [Vec<ArrowColumnWriter>; 2],
}

impl ParquetFile {
    pub fn create(
        options: &ParquetOptions,
        schema: SchemaRef,
        (path, file): (&Path, File),
        database: &Database,
    ) -> Result<Self> {
        let failed = |error| failed(path, error);
        let properties = |coded| {
            let properties = WriterProperties::builder().set_compression(options.compression);
            Some(properties.set_dictionary_enabled(coded).build())
        };
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), properties(true));
        let (writer, coded) =
            writer.and_then(ArrowWriter::into_serialized_writer).map_err(failed)?;
        // A file that is none: what is wanted is what makes its columns.
        let other = ArrowWriter::try_new(io::sink(), Arc::clone(&schema), properties(false));
        let (_, plain) = other.and_then(ArrowWriter::into_serialized_writer).map_err(failed)?;
        Ok(ParquetFile {
            path: path.to_owned(),
            schema,
            writer,
            coded,
            plain,
            gathered: Gathered::default(),
            compression: options.compression,
            bytes_max: database.options().memory / MEMORY_SHARE,
            made: VecDeque::new(),
            row_groups: 0,
        })
    }

    /// Writes the rows of a batch.
    pub async fn write(&mut self, mut batch: RecordBatch) -> Result<()> {
        while batch.num_rows() > 0 {
            let rows = batch.num_rows().min(ROW_GROUP_ROWS - self.gathered.rows);
            let part = batch.slice(0, rows);
            batch = batch.slice(rows, batch.num_rows() - rows);
            self.gathered.rows += rows;
            self.gathered.bytes += sliced_bytes(&part);
            self.gathered.batches.push(part);
            if self.gathered.rows == ROW_GROUP_ROWS || self.gathered.bytes >= self.bytes_max {
                self.end_row_group().await?;
            }
        }
        Ok(())
    }

    /// Writes the rows that wait and the footer, and gives the file back.
    pub async fn finish(mut self) -> Result<File> {
        if self.gathered.rows > 0 {
            self.end_row_group().await?;
        }
        while !self.made.is_empty() {
            self.put_row_group().await?;
        }
        self.writer.into_inner().map_err(|e| failed(&self.path, e))
    }

    /// Has tasks make a row group of what was gathered.
    async fn end_row_group(&mut self) -> Result<()> {
        while self.made.len() >= ROW_GROUPS_MADE {
            self.put_row_group().await?;
        }
        let failed = |error| failed(&self.path, error);
        let coded = self.coded.create_column_writers(self.row_groups).map_err(failed)?;
        let plain = self.plain.create_column_writers(self.row_groups).map_err(failed)?;
        let (mut coded, mut plain) = (coded.into_iter(), plain.into_iter());
        let batches = std::mem::take(&mut self.gathered).batches;
        let mut first_leaf = 0;
        let columns = self.schema.fields().iter().enumerate().map(|(index, field)| {
            // A list has a writer for each of its leaves.
            let leaves = leaves(field);
            let leaf = self.writer.schema_descr().column(first_leaf);
            first_leaf += leaves;
            let maker = ColumnMaker {
                field: Arc::clone(field),
                leaf: (!field.data_type().is_nested()).then_some(leaf),
                compression: self.compression,
                arrays: batches.iter().map(|batch| Arc::clone(batch.column(index))).collect(),
                writers: [
                    coded.by_ref().take(leaves).collect(),
                    plain.by_ref().take(leaves).collect(),
                ],
            };
            SpawnedTask::spawn(maker.chunks())
        });
        self.made.push_back(columns.collect());
        self.row_groups += 1;
        Ok(())
    }

    /// Writes the first of the row groups that are made.
    async fn put_row_group(&mut self) -> Result<()> {
        let failed = |error| failed(&self.path, error);
        let Some(columns) = self.made.pop_front() else { return Ok(()) };
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for column in columns {
            let chunks = column.join().await.map_err(|error| {
                Error::Refused(format!("internal error: a task that wrote a column: {error}"))
            })?;
            match chunks.map_err(failed)? {
                Chunks::Coded(chunk) => {
                    let ColumnChunk { bytes, close } = *chunk;
                    group.append_column(&bytes, close).map_err(failed)?;
                }
                Chunks::Leaves(chunks) => {
                    for chunk in chunks {
                        chunk.append_to_row_group(&mut group).map_err(failed)?;
                    }
                }
            }
        }
        group.close().map_err(failed)?;
        Ok(())
    }
}

/// How many columns of Parquet a column is.
fn leaves(field: &FieldRef) -> usize {
    use datafusion::arrow::datatypes::DataType as T;
    match field.data_type() {
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) | T::Map(item, _) => {
            leaves(item)
        }
        T::ListView(item) | T::LargeListView(item) => leaves(item),
        T::Struct(fields) => fields.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// Whether so few values of a column occur twice that a dictionary would be about as large as the values.
fn hardly_repeats(arrays: &[ArrayRef]) -> bool {
    let random = RandomState::with_seed(0);
    let (mut seen, mut values) = (HashSet::new(), 0);
    for array in arrays {
        let array = array.slice(0, array.len().min(SAMPLED_ROWS));
        let mut hashes = vec![0; array.len()];
        if array.data_type().is_nested() || create_hashes([&array], &random, &mut hashes).is_err() {
            return false;
        }
        let nulls = array.logical_nulls();
        let is_value = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        for row in (0..array.len()).filter(is_value) {
            seen.insert(hashes[row]);
            values += 1;
        }
    }
    values >= SAMPLED_ROWS && values - seen.len() <= values / SAMPLED_REPEATS_SHARE
}

impl ColumnMaker {
    async fn chunks(self) -> ParquetResult<Chunks> {
        let ColumnMaker { field, leaf, compression, arrays, writers: [coded, plain] } = self;
        let mut writers = plain;
        if !hardly_repeats(&arrays) {
            if let Some(leaf) = leaf
                && let Some(chunk) = coded_chunk(&arrays, &leaf, compression)?
            {
                return Ok(Chunks::Coded(Box::new(chunk)));
            }
            writers = coded;
        }
        for array in arrays {
            let leaves = compute_leaves(&field, &array)?;
            for (writer, leaf) in writers.iter_mut().zip(leaves) {
                writer.write(&leaf)?;
            }
            // Others have their turn.
            tokio::task::yield_now().await;
        }
        let chunks = writers.into_iter().map(ArrowColumnWriter::close);
        chunks.collect::<ParquetResult<_>>().map(Chunks::Leaves)
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
