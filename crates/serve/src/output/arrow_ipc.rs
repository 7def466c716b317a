//! Arrow IPC: a file, or a stream of messages. In the types of the server's answers, which every reader knows.

use std::io::Write;

use coload_types::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};

use super::{Begin, Output, OutputFormat, failed};
use crate::flight::{wire_parts, wire_schema};

pub(super) static ARROW: OutputFormat = OutputFormat {
    name: "arrow",
    about: "A file of Arrow IPC (Feather)",
    endings: &["arrow", "feather", "ipc"],
    is_text: false,
    begin: |Begin { schema, out, .. }| {
        let schema = wire_schema(&schema);
        let writer = FileWriter::try_new(out, &schema).map_err(invalid)?;
        Ok(Box::new(File { writer, schema }))
    },
};

pub(super) static ARROW_STREAM: OutputFormat = OutputFormat {
    name: "arrows",
    about: "A stream of Arrow IPC",
    endings: &["arrows"],
    is_text: false,
    begin: |Begin { schema, out, .. }| {
        let schema = wire_schema(&schema);
        let writer = StreamWriter::try_new(out, &schema).map_err(invalid)?;
        Ok(Box::new(Stream { writer, schema }))
    },
};

struct File<'a> {
    schema: SchemaRef,
    writer: FileWriter<Box<dyn Write + Send + 'a>>,
}

struct Stream<'a> {
    schema: SchemaRef,
    writer: StreamWriter<Box<dyn Write + Send + 'a>>,
}

fn invalid(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(error),
        other => Error::Invalid(format!("cannot write Arrow: {other}")),
    }
}

impl Output for File<'_> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        wire_parts(rows.clone(), &self.schema)
            .try_for_each(|part| self.writer.write(&part?).map_err(invalid))
    }

    /// Nothing: a file of Arrow is read from its end.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut out = self.writer.into_inner().map_err(invalid)?;
        out.flush().map_err(failed)
    }
}

impl Output for Stream<'_> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        wire_parts(rows.clone(), &self.schema)
            .try_for_each(|part| self.writer.write(&part?).map_err(invalid))
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(invalid)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut out = self.writer.into_inner().map_err(invalid)?;
        out.flush().map_err(failed)
    }
}
