//! A table of HTML; NULL is an empty cell of the class `null`.

use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;

use super::cells::{Rows, is_number};
use super::{Begin, Output, OutputFormat, failed};

pub(super) static HTML: OutputFormat = OutputFormat {
    name: "html",
    about: "A table of HTML; NULL is an empty cell of the class null",
    endings: &["html", "htm"],
    is_text: true,
    begin,
};

struct Html<'a> {
    line: String,
    /// Whether values of the columns stand at the right.
    numbers: Vec<bool>,
    out: Box<dyn Write + Send + 'a>,
}

/// Text as HTML has it. Controls other than white space cannot be in HTML, as characters or as references: they are U+FFFD.
fn push_text(text: &str, line: &mut String) {
    for character in text.chars() {
        match character {
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            '&' => line.push_str("&amp;"),
            '"' => line.push_str("&quot;"),
            '\'' => line.push_str("&#39;"),
            '\n' | '\t' | '\r' => line.push(character),
            other if other.is_control() => line.push('\u{fffd}'),
            other => line.push(other),
        }
    }
}

fn begin(Begin { schema, mut out, .. }: Begin<'_>) -> Result<Box<dyn Output + '_>> {
    let mut line = String::from("<table>\n<thead>\n<tr>");
    for field in schema.fields() {
        line.push_str("<th>");
        push_text(field.name(), &mut line);
        line.push_str("</th>");
    }
    line.push_str("</tr>\n</thead>\n<tbody>\n");
    out.write_all(line.as_bytes()).map_err(failed)?;
    let numbers = schema.fields().iter().map(|field| is_number(field.data_type())).collect();
    Ok(Box::new(Html { line, numbers, out }))
}

impl Output for Html<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows = Rows::of(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            self.line.push_str("<tr>");
            for (column, is_number) in self.numbers.iter().enumerate() {
                let Some(text) = rows.text(row, column)? else {
                    self.line.push_str("<td class=\"null\"></td>");
                    continue;
                };
                self.line.push_str(match is_number {
                    true => "<td style=\"text-align:right\">",
                    false => "<td>",
                });
                push_text(&text, &mut self.line);
                self.line.push_str("</td>");
            }
            self.line.push_str("</tr>\n");
            self.out.write_all(self.line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.out.write_all(b"</tbody>\n</table>\n").map_err(failed)?;
        self.flush()
    }
}
