//! A table in a frame for people, and the count of rows below.
//!
//! ```text
//!   all rows: the first MEASURED_ROWS tell the widths --> rows as they come
//!   max_rows: the first half --> [rows between are counted] --> the last half
//! ```
//!
//! On a terminal long values are cut and columns in the middle are left out so that lines fit, which the line below tells.
//! Where all rows are written, a value that is wider than its column moves the rest of its line.
//!
//! Memory: the rows that are measured, or those that are shown.

mod frame;

use std::collections::VecDeque;
use std::io::Write;

use coload_types::Result;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use self::frame::{Cells, Frame, cells_of};
use super::{Begin, Layout, Output, OutputFormat, failed};

pub(super) static TABLE: OutputFormat = OutputFormat {
    name: "table",
    about: "A table with a frame, and the count of rows",
    endings: &["txt"],
    is_text: true,
    begin: |Begin { schema, layout, out }| {
        let form = match layout.max_rows {
            Some(rows) => Form::Ends(Ends { rows_max: rows.max(1), ..Ends::default() }),
            None => Form::Measuring(Vec::new(), 0),
        };
        Ok(Box::new(Table { schema, layout, out, form, rows: 0 }))
    },
};

/// Rows that tell how wide columns are where all rows are written.
const MEASURED_ROWS: usize = 1_000;
/// Bytes of texts that are measured at most.
const MEASURED_BYTES: usize = 4 << 20;

struct Table<'a> {
    schema: SchemaRef,
    layout: Layout,
    out: Box<dyn Write + Send + 'a>,
    form: Form,
    rows: u64,
}

enum Form {
    /// Rows that wait until it is known how wide columns are, and the bytes of their texts.
    Measuring(Vec<Cells>, usize),
    /// Rows are written as they come.
    Writing(Frame),
    /// The first and the last rows.
    Ends(Ends),
}

/// The first and the last rows of an answer.
#[derive(Default)]
struct Ends {
    /// Rows that are shown together.
    rows_max: usize,
    /// The first rows, until there are `rows_max`.
    first: Vec<RecordBatch>,
    first_rows: usize,
    /// Batches behind these that have the last half.
    last: VecDeque<RecordBatch>,
    last_rows: usize,
}

impl Ends {
    fn push(&mut self, batch: &RecordBatch) {
        let room = (self.rows_max - self.first_rows).min(batch.num_rows());
        if room > 0 {
            self.first.push(batch.slice(0, room));
            self.first_rows += room;
        }
        let rest = batch.num_rows() - room;
        if rest == 0 {
            return;
        }
        let kept = rest.min(self.rows_max / 2);
        self.last.push_back(batch.slice(batch.num_rows() - kept, kept));
        self.last_rows += kept;
        while let Some(oldest) = self.last.front().map(RecordBatch::num_rows)
            && self.last_rows - oldest >= self.rows_max / 2
        {
            self.last.pop_front();
            self.last_rows -= oldest;
        }
    }

    /// The cells of the first rows and of the last, those before a gap and those behind it.
    fn cells(&self, rows: u64) -> Result<(Vec<Cells>, Vec<Cells>)> {
        let mut first = Vec::new();
        self.first.iter().try_for_each(|batch| cells_of(batch, &mut first))?;
        if rows <= self.rows_max as u64 {
            return Ok((first, Vec::new()));
        }
        let half = self.rows_max / 2;
        let mut last = first[self.rows_max - half..].to_vec();
        self.last.iter().try_for_each(|batch| cells_of(batch, &mut last))?;
        first.truncate(self.rows_max - half);
        Ok((first, last.split_off(last.len() - half)))
    }
}

impl Table<'_> {
    fn print(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(failed)
    }

    /// Begins to write: the widths are those of these rows.
    fn begin_rows(&mut self, cells: &[Cells]) -> Result<Frame> {
        let frame = Frame::new(&self.schema, cells, self.layout.width);
        let mut text = frame.head();
        cells.iter().for_each(|row| frame.push_row(row, &mut text));
        self.print(&text)?;
        Ok(frame)
    }

    /// The line below the table.
    fn count_line(&self, shown: u64, frame: &Frame) -> String {
        let noun = if self.rows == 1 { "row" } else { "rows" };
        let mut line = format!("({} {noun}", self.rows);
        if shown < self.rows {
            line.push_str(&format!(", {shown} shown"));
        }
        let (columns, all) = (frame.shown_columns(), self.schema.fields().len());
        if columns < all {
            line.push_str(&format!("; {all} columns, {columns} shown"));
        }
        line + ")\n"
    }
}

impl Output for Table<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        match &mut self.form {
            Form::Ends(ends) => ends.push(batch),
            Form::Writing(frame) => {
                let mut cells = Vec::new();
                cells_of(batch, &mut cells)?;
                let mut text = String::new();
                cells.iter().for_each(|row| frame.push_row(row, &mut text));
                self.print(&text)?;
            }
            Form::Measuring(waiting, bytes) => {
                let from = waiting.len();
                cells_of(batch, waiting)?;
                *bytes += waiting[from..].iter().flatten().map(String::len).sum::<usize>();
                if waiting.len() >= MEASURED_ROWS || *bytes >= MEASURED_BYTES {
                    let cells = std::mem::take(waiting);
                    self.form = Form::Writing(self.begin_rows(&cells)?);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let form = std::mem::replace(&mut self.form, Form::Measuring(Vec::new(), 0));
        let (frame, shown) = match form {
            Form::Writing(frame) => (frame, self.rows),
            Form::Measuring(cells, _) => (self.begin_rows(&cells)?, self.rows),
            Form::Ends(ends) => {
                let (first, last) = ends.cells(self.rows)?;
                let shown = (first.len() + last.len()) as u64;
                let all = [&first[..], &last].concat();
                let frame = Frame::new(&self.schema, &all, self.layout.width);
                let mut text = frame.head();
                first.iter().for_each(|row| frame.push_row(row, &mut text));
                if shown < self.rows {
                    text.push_str(&frame.gap());
                }
                last.iter().for_each(|row| frame.push_row(row, &mut text));
                self.print(&text)?;
                (frame, shown)
            }
        };
        let mut end = frame.rule();
        end.push_str(&self.count_line(shown, &frame));
        self.print(&end)?;
        self.flush()
    }
}
