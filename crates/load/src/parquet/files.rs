//! Row groups into files, in the order of the input, whoever made them.
//!
//! A file ends when it is long enough, which depends on what is in it only. It is written under a name that readers do not
//! look for; who renames it is [`super::folder`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_ddl::{Schema, column_sql};
use coload_parquet::{COLUMNS_KEY, ColumnChunk, file_schema};
use coload_threads::{Step, StepClock};
use coload_types::{DataType, Error, Result};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::columns::MadeColumn;
use crate::report::{ColumnReport, Distinct, WrittenFile};
use crate::target::{Work, Works};

/// Bytes from which on a file ends: large enough for object stores, small enough to be written again.
const FILE_BYTES: usize = 512 << 20;
/// Row groups after which a file ends: its footer describes each column of each.
const ROW_GROUPS_MAX: usize = 1_000;
/// Zstandard's level: those above cost more than they save.
const ZSTD_LEVEL: i32 = 1;
/// What names the program in the footer of its files.
pub const CREATED_BY: &str = concat!("coload version ", env!("CARGO_PKG_VERSION"));
/// What such names begin with, of any version.
pub const CREATED_BY_ANY: &str = "coload version ";

/// What all files of a load have in common.
#[derive(Debug)]
pub struct Layout {
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// The columns in Parquet.
    pub descriptor: SchemaDescriptor,
    /// Compression of pages.
    pub compression: Compression,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
}

impl Layout {
    /// The layout of files with these columns.
    ///
    /// # Errors
    /// `Invalid` when they cannot be written as Parquet.
    pub fn new(schema: &Schema) -> Result<Self> {
        let list: Vec<String> = schema.columns().iter().map(column_sql).collect();
        let columns = KeyValue::new(COLUMNS_KEY.to_owned(), list.join(", "));
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(Some(vec![columns]));
        let level = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
        let group = file_schema(schema)?;
        Ok(Layout {
            types: schema.columns().iter().map(|column| column.data_type).collect(),
            descriptor: SchemaDescriptor::new(Arc::clone(&group)),
            compression: Compression::ZSTD(level),
            schema: group,
            properties: Arc::new(properties.build()),
        })
    }
}

/// A row group whose columns are made.
#[derive(Debug)]
pub struct RowGroup {
    /// Its rows.
    pub rows: u64,
    /// Its columns, in the table's order.
    pub columns: Vec<MadeColumn>,
}

/// What names of unfinished files end with.
pub const UNFINISHED_SUFFIX: &str = ".unfinished";

/// The name of an unfinished file.
pub fn unfinished_name(number: usize) -> String {
    format!("{number:06}{UNFINISHED_SUFFIX}")
}

/// The files of a load.
#[derive(Debug)]
pub struct Files {
    layout: Arc<Layout>,
    /// Where they go; nowhere if there is none.
    into: Option<PathBuf>,
    /// The partition whose turn it is.
    next: usize,
    /// Partitions in all, once that is known.
    count: Option<usize>,
    /// Row groups that wait for their turn; `None` for a partition without rows.
    ready: BTreeMap<usize, Option<RowGroup>>,
    open: Option<OpenFile>,
    written: Written,
}

/// The file whose turn it is.
struct OpenFile {
    path: Option<PathBuf>,
    writer: SerializedFileWriter<Output>,
    rows: u64,
    row_groups: usize,
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Whole files.
#[derive(Debug, Default)]
pub struct Written {
    /// In order.
    pub files: Vec<FileSums>,
    columns: Vec<Sums>,
}

/// A whole file.
#[derive(Debug, Clone, Copy)]
pub struct FileSums {
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// Row groups.
    pub row_groups: usize,
}

/// A column of all row groups.
#[derive(Debug, Clone, Default)]
struct Sums {
    nulls: u64,
    bytes: u64,
    coded_pages: u64,
    plain_pages: u64,
    row_groups: usize,
    /// Values of the largest dictionary.
    distinct: Option<u64>,
}

impl Files {
    /// No file yet.
    pub fn new(layout: Arc<Layout>, into: Option<&Path>) -> Self {
        let columns = vec![Sums::default(); layout.types.len()];
        Files {
            layout,
            into: into.map(Path::to_owned),
            next: 0,
            count: None,
            ready: BTreeMap::new(),
            open: None,
            written: Written { files: Vec::new(), columns },
        }
    }

    /// Takes the row group of a partition, and writes those whose turn it is.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn put(&mut self, partition: usize, group: Option<RowGroup>) -> Result<Works> {
        self.ready.insert(partition, group);
        let mut works = Works::new();
        while let Some(group) = self.ready.remove(&self.next) {
            self.next += 1;
            let Some(group) = group else { continue };
            self.write(group)?;
            let is_long = |open: &OpenFile| {
                open.writer.bytes_written() >= FILE_BYTES || open.row_groups >= ROW_GROUPS_MAX
            };
            if self.open.as_ref().is_some_and(is_long) {
                works.extend(self.close()?);
            }
        }
        works.extend(self.close_last()?);
        Ok(works)
    }

    /// Takes the number of partitions, when all are on their way.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn end(&mut self, partitions: usize) -> Result<Works> {
        self.count = Some(partitions);
        self.close_last()
    }

    /// Rows of all row groups that are written.
    pub fn rows(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |open| open.rows);
        open + self.written.files.iter().map(|file| file.rows).sum::<u64>()
    }

    /// The files, when all are whole.
    ///
    /// # Errors
    /// `Corrupt` when they are not.
    pub fn take_written(&mut self) -> Result<Written> {
        match self.open.is_none() && self.count == Some(self.next) && self.ready.is_empty() {
            true => Ok(std::mem::take(&mut self.written)),
            false => Err(Error::Corrupt(format!(
                "{} of {:?} partitions are in the files",
                self.next, self.count
            ))),
        }
    }

    /// Ends the last file when all is in it. Without rows there is a file too: it has the columns.
    fn close_last(&mut self) -> Result<Works> {
        if self.count != Some(self.next) {
            return Ok(Works::new());
        }
        if self.open.is_none() && self.written.files.is_empty() {
            self.open = Some(self.create()?);
        }
        self.close()
    }

    fn create(&self) -> Result<OpenFile> {
        let number = self.written.files.len();
        let path = self.into.as_ref().map(|folder| folder.join(unfinished_name(number)));
        let file = path.as_deref().map(create_file).transpose()?;
        let output = Output { file, bytes: 0 };
        let (schema, properties) =
            (Arc::clone(&self.layout.schema), Arc::clone(&self.layout.properties));
        let writer = SerializedFileWriter::new(output, schema, properties);
        let writer = writer.map_err(|e| failed(path.as_deref(), e))?;
        Ok(OpenFile { path, writer, rows: 0, row_groups: 0 })
    }

    fn write(&mut self, group: RowGroup) -> Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create()?,
        };
        open.rows += group.rows;
        open.row_groups += 1;
        let path = open.path.clone();
        let failed = |error| failed(path.as_deref(), error);
        let mut out = open.writer.next_row_group().map_err(failed)?;
        for (made, sums) in group.columns.into_iter().zip(&mut self.written.columns) {
            let ColumnChunk { bytes, close } = made.chunk;
            sums.nulls += made.sums.nulls;
            sums.bytes += bytes.len() as u64;
            sums.coded_pages += made.sums.coded_pages;
            sums.plain_pages += made.sums.plain_pages;
            sums.row_groups += 1;
            sums.distinct = sums.distinct.max(made.distinct);
            out.append_column(&bytes, close).map_err(failed)?;
        }
        out.close().map_err(failed)?;
        self.open = Some(open);
        Ok(())
    }

    /// Ends the open file; what is left is to make it durable.
    fn close(&mut self) -> Result<Works> {
        let Some(OpenFile { path, writer, rows, row_groups }) = self.open.take() else {
            return Ok(Works::new());
        };
        let Output { file, bytes } =
            writer.into_inner().map_err(|error| failed(path.as_deref(), error))?;
        self.written.files.push(FileSums { rows, bytes, row_groups });
        Ok(match file.zip(path) {
            Some((file, path)) => vec![Box::new(SyncFile { file, path })],
            None => Works::new(),
        })
    }
}

/// Makes an unfinished file. One of a pass before has no use any more.
fn create_file(path: &Path) -> Result<File> {
    File::create(path).map_err(|e| Error::io("create", path, &e))
}

fn failed(path: Option<&Path>, error: ParquetError) -> Error {
    let Some(path) = path else {
        return Error::Corrupt(format!("the library of Parquet does not take it: {error}"));
    };
    if let ParquetError::External(source) = &error
        && let Some(error) = source.downcast_ref::<io::Error>()
    {
        return Error::io("write", path, error);
    }
    Error::Unavailable(format!("cannot write {}: {error}", path.display()))
}

/// Where the bytes of a file go, counted.
struct Output {
    file: Option<File>,
    bytes: u64,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.file {
            Some(file) => file.write(bytes)?,
            None => bytes.len(),
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A whole file that is to be made durable.
#[derive(Debug)]
struct SyncFile {
    file: File,
    path: PathBuf,
}

impl Work for SyncFile {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        let synced = clock.time(Step::Write, || self.file.sync_all());
        synced.map_err(|e| Error::io("sync", &self.path, &e))?;
        Ok(Works::new())
    }
}

impl Written {
    /// The files under the names that they got.
    pub fn files(&self, names: &[String]) -> Vec<WrittenFile> {
        let file = |(name, sums): (&String, &FileSums)| WrittenFile {
            name: name.clone(),
            rows: sums.rows,
            bytes: sums.bytes,
            row_groups: sums.row_groups,
        };
        names.iter().zip(&self.files).map(file).collect()
    }

    /// What became of the columns.
    pub fn columns(&self, schema: &Schema, distinct: &[Option<f64>]) -> Vec<ColumnReport> {
        let rows: u64 = self.files.iter().map(|file| file.rows).sum();
        let columns = schema.columns().iter().zip(&self.columns).enumerate();
        let report = columns.map(|(number, (column, sums))| {
            ColumnReport {
                name: column.name.clone(),
                data_type: column.data_type,
                codec: sums.codec(),
                distinct: sums.distinct(),
                nulls: sums.nulls,
                bytes: sums.bytes,
                bits_per_value: if rows == 0 { 0.0 } else { sums.bytes as f64 * 8.0 / rows as f64 },
            }
            .with_estimate(rows, distinct.get(number).copied().flatten())
        });
        report.collect()
    }
}

impl Sums {
    fn codec(&self) -> String {
        match (self.coded_pages, self.plain_pages) {
            (0, 0) => "empty".to_owned(),
            (0, _) => "plain".to_owned(),
            (_, 0) => "dictionary".to_owned(),
            (coded, plain) => format!("dictionary {} %, plain", coded * 100 / (coded + plain)),
        }
    }

    fn distinct(&self) -> Distinct {
        match self.distinct {
            None => Distinct::Unknown,
            Some(count) if self.row_groups == 1 => Distinct::Exact(count),
            Some(count) => Distinct::AtLeast(count),
        }
    }
}
