//! A header and lines of delimited text; NULL is an empty field, the empty text is quoted.

use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;

use super::{Begin, Output, OutputFormat, failed};
use crate::export::{CsvLines, CsvOptions, Texts};

pub(super) static CSV: OutputFormat = OutputFormat {
    name: "csv",
    about: "A header and lines; NULL is an empty field",
    endings: &["csv"],
    is_text: true,
    begin,
};

struct Csv<'a> {
    lines: CsvLines,
    out: Box<dyn Write + Send + 'a>,
}

fn begin(Begin { schema, mut out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let options = CsvOptions { texts: Texts::AsNeeded, ..CsvOptions::default() };
    let mut lines = CsvLines::new(options, &schema);
    lines.start(|line| out.write_all(line).map_err(failed))?;
    Ok(Box::new(Csv { lines, out }))
}

impl Output for Csv<'_> {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.lines.rows(rows, |line| self.out.write_all(line).map_err(failed))
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
