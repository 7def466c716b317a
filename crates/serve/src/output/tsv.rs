//! A header and lines of fields between tabs, as PostgreSQL's COPY and ClickHouse write them.
//!
//! NULL is `\N`; a tab, a line end and a backslash within a value are `\t`, `\n`, `\r` and `\\`. `coload load` reads it with
//! `--delimiter tab --null '\N' --escape '\' --escapes letters`.

use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;

use super::cells::Rows;
use super::{Begin, Output, OutputFormat, failed};

pub(super) static TSV: OutputFormat = OutputFormat {
    name: "tsv",
    about: "A header and lines of fields between tabs; NULL is \\N, a tab within a text is \\t",
    endings: &["tsv", "tab"],
    is_text: true,
    begin,
};

struct Tsv<'a> {
    line: Vec<u8>,
    out: Box<dyn Write + Send + 'a>,
}

fn push_escaped(text: &str, line: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            other => line.push(other),
        }
    }
}

fn begin(Begin { schema, mut out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let mut line = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            line.push(b'\t');
        }
        push_escaped(field.name(), &mut line);
    }
    line.push(b'\n');
    out.write_all(&line).map_err(failed)?;
    Ok(Box::new(Tsv { line, out }))
}

impl Output for Tsv<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows = Rows::of(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            for column in 0..rows.width() {
                if column > 0 {
                    self.line.push(b'\t');
                }
                match rows.text(row, column)? {
                    // Bytes are `\x0aff`, a backslash that stays one.
                    Some(text) => push_escaped(&text, &mut self.line),
                    None => self.line.extend_from_slice(b"\\N"),
                }
            }
            self.line.push(b'\n');
            self.out.write_all(&self.line).map_err(failed)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
