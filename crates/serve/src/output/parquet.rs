//! A file of Parquet, in the types of the server's answers. Holds a row group: `ROW_GROUP_ROWS` rows at most, or `ROW_GROUP_BYTES` of pages.

use std::io::Write;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use coload_types::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::{Begin, Output, OutputFormat};
use crate::flight::{wire_parts, wire_schema};

pub(super) static PARQUET: OutputFormat = OutputFormat {
    name: "parquet",
    about: "A file of Parquet",
    endings: &["parquet", "pq"],
    is_text: false,
    begin,
};

/// Rows of a row group, as those of COPY.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// Bytes of a row group's pages at which it ends early, so that long texts do not take all memory.
const ROW_GROUP_BYTES: usize = 64 << 20;

struct Parquet<'a> {
    schema: SchemaRef,
    writer: ArrowWriter<Box<dyn Write + Send + 'a>>,
}

fn invalid(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => super::failed(*error),
            Err(inner) => Error::Invalid(format!("cannot write Parquet: {inner}")),
        },
        other => Error::Invalid(format!("cannot write Parquet: {other}")),
    }
}

fn begin(Begin { schema, out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .build();
    let schema = wire_schema(&schema);
    let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties));
    Ok(Box::new(Parquet { writer: writer.map_err(invalid)?, schema }))
}

impl Output for Parquet<'_> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        wire_parts(rows.clone(), &self.schema)
            .try_for_each(|part| self.writer.write(&part?).map_err(invalid))
    }

    /// Nothing: nobody reads a file of Parquet before it is whole.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut out = self.writer.into_inner().map_err(invalid)?;
        out.flush().map_err(super::failed)
    }
}
