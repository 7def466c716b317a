//! Each row as lines of a name and a value, for rows of many columns: psql's expanded form.

use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;

use super::cells::{NULL, Rows, framed, width};
use super::{Begin, Output, OutputFormat, failed};

pub(super) static EXPANDED: OutputFormat = OutputFormat {
    name: "expanded",
    about: "Each row as lines of a name and a value",
    endings: &[],
    is_text: true,
    begin,
};

struct Expanded<'a> {
    names: Vec<String>,
    rows: u64,
    text: String,
    out: Box<dyn Write + Send + 'a>,
}

fn begin(Begin { schema, out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let names: Vec<String> =
        schema.fields().iter().map(|f| framed(f.name()).replace('\n', "\\n")).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let padded = |name: &String| format!("{name}{}", " ".repeat(widest - width(name)));
    let names = names.iter().map(padded).collect();
    Ok(Box::new(Expanded { names, rows: 0, text: String::new(), out }))
}

impl Output for Expanded<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows = Rows::of(batch)?;
        for row in 0..batch.num_rows() {
            self.rows += 1;
            self.text.clear();
            self.text.push_str(&format!("-[ row {} ]-\n", self.rows));
            for (column, name) in self.names.iter().enumerate() {
                let value = rows.text(row, column)?;
                let value = value.map_or(NULL.to_owned(), |text| framed(&text));
                for (index, line) in value.split('\n').enumerate() {
                    let blank = " ".repeat(width(name));
                    let shown = if index == 0 { name } else { &blank };
                    self.text.push_str(&format!("{shown} | {line}\n"));
                }
            }
            self.out.write_all(self.text.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let noun = if self.rows == 1 { "row" } else { "rows" };
        writeln!(self.out, "({} {noun})", self.rows).map_err(failed)?;
        self.flush()
    }
}
