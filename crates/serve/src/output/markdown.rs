//! A table of Markdown, as GitHub and others show it; NULL is an empty cell.

use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;

use super::cells::{Rows, is_number};
use super::{Begin, Output, OutputFormat, failed};

pub(super) static MARKDOWN: OutputFormat = OutputFormat {
    name: "markdown",
    about: "A table of Markdown; NULL is an empty cell",
    endings: &["md", "markdown"],
    is_text: true,
    begin,
};

struct Markdown<'a> {
    line: String,
    out: Box<dyn Write + Send + 'a>,
}

/// A text that stays in its cell: bars, line ends and what Markdown takes for its own are escaped.
fn push_cell(text: &str, line: &mut String) {
    line.push(' ');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\r' => line.push_str("<br>"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                line.push('\\');
                line.push(character);
            }
            '<' => line.push_str("&lt;"),
            '&' => line.push_str("&amp;"),
            other => line.push(other),
        }
    }
    line.push_str(" |");
}

fn begin(Begin { schema, mut out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let mut line = String::from("|");
    schema.fields().iter().for_each(|field| push_cell(field.name(), &mut line));
    line.push_str("\n|");
    for field in schema.fields() {
        line.push_str(if is_number(field.data_type()) { "---:|" } else { "---|" });
    }
    line.push('\n');
    out.write_all(line.as_bytes()).map_err(failed)?;
    Ok(Box::new(Markdown { line, out }))
}

impl Output for Markdown<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows = Rows::of(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            self.line.push('|');
            for column in 0..rows.width() {
                push_cell(&rows.text(row, column)?.unwrap_or_default(), &mut self.line);
            }
            self.line.push('\n');
            self.out.write_all(self.line.as_bytes()).map_err(failed)?;
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
