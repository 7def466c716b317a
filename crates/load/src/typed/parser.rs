//! Rows of batches to the columns of a fragment, and rejects.

use std::fmt;

use coload_arrow::Column;
use coload_source::{
    BadRecord, ColumnForm, FieldError, LeftOut, ParseTime, RejectedRecord, RejectedValue,
    told_bytes,
};
use coload_threads::thread_cpu_ns;
use coload_transform::{Fragment, TemporaryDictionary};
use coload_types::{Error, Result};

use super::column::{Added, ColumnRows, Made};
use super::input::BATCH_SHARE;
use crate::format::Parser;

/// Reads the chunks of a partition.
pub struct TypedParser {
    columns: Vec<ColumnRows>,
    /// Whether NULL may stand in each.
    nullable: Vec<bool>,
    /// Rows of the fragment.
    rows: usize,
    /// Rows of the chunk so far that are left out, and those that will be, the last one first.
    left_out: u64,
    leaving_out: Vec<LeftOut>,
    plain_now: Vec<usize>,
    time: ParseTime,
}

impl fmt::Debug for TypedParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedParser").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Rows that were read of a batch.
pub struct RowsRead<'a> {
    /// Columns of the table that are read.
    pub columns: Vec<Column<'a>>,
    /// How many rows there are.
    pub rows: usize,
    /// Where the batch stands in its input.
    pub offset: u64,
    /// Records of the piece before these.
    pub before: u64,
    /// Most bytes that the values may take.
    pub bytes_max: u64,
}

/// What became of them.
pub struct RowsDone {
    /// Rows that were kept.
    pub kept: usize,
    /// Records that were rejected, in order.
    pub rejects: Vec<RejectedRecord>,
}

impl TypedParser {
    /// A parser of columns.
    pub fn new(columns: Vec<ColumnRows>, nullable: Vec<bool>) -> Self {
        TypedParser {
            columns,
            nullable,
            rows: 0,
            left_out: 0,
            leaving_out: Vec::new(),
            plain_now: Vec::new(),
            time: ParseTime::default(),
        }
    }

    /// Whether the next rows of a column become codes.
    pub fn makes_codes(&self, column: usize) -> bool {
        self.columns[column].makes_codes()
    }

    /// Adds rows to the fragment.
    ///
    /// # Errors
    /// `Limit` when their values take more than they may.
    pub fn add(&mut self, read: &RowsRead<'_>) -> Result<RowsDone> {
        let started = thread_cpu_ns();
        let pairs = self.columns.iter_mut().zip(&read.columns);
        let made: Vec<Made> = pairs.map(|(rows, column)| rows.convert(column)).collect();
        let mut bad = self.bad_rows(&made, read.rows);
        let left_out = self.left_out_of(&bad, read.rows);
        let rejects = match bad.is_empty() && left_out.is_empty() {
            true => Vec::new(),
            false => tell(read, &bad, &left_out),
        };
        bad.extend(left_out.into_iter().map(|(row, _)| (row, Why::LeftOut)));
        bad.sort_unstable_by_key(|(row, _)| *row);
        let kept = (!bad.is_empty()).then(|| rows_but(&bad, read.rows));
        for (number, (column, made)) in self.columns.iter_mut().zip(made).enumerate() {
            // Keys stand for text that is long, maybe.
            match column.add(made, kept.as_deref(), read.bytes_max) {
                Ok(Added::AsPlanned) => {}
                Ok(Added::LeftCodes) => self.plain_now.push(number),
                Err(bytes) => return Err(too_large(read, bytes)),
            }
        }
        let count = kept.map_or(read.rows, |kept| kept.len());
        self.rows += count;
        self.time.convert += thread_cpu_ns() - started;
        Ok(RowsDone { kept: count, rejects })
    }

    /// Rows with a value that its column does not hold, in order: the first column of each.
    fn bad_rows(&self, made: &[Made], rows: usize) -> Vec<(u32, Why)> {
        let mut bad: Vec<(u32, Why)> = Vec::new();
        for (number, (column, nullable)) in made.iter().zip(&self.nullable).enumerate() {
            let nulls = !nullable && column.may_be_null();
            if !nulls && !column.has_errors() {
                continue;
            }
            for row in 0..rows {
                let error = match column.error(row) {
                    None if nulls && column.is_null(row) => Some(FieldError::Null),
                    error => error,
                };
                bad.extend(error.map(|error| (row as u32, Why::Value(number, error))));
            }
        }
        // Stable, so that the first column of a row comes first.
        bad.sort_by_key(|(row, _)| *row);
        bad.dedup_by_key(|(row, _)| *row);
        bad
    }

    /// Rows that are to be left out of those that are left.
    fn left_out_of(&mut self, bad: &[(u32, Why)], rows: usize) -> Vec<(u32, LeftOut)> {
        let mut found = Vec::new();
        let first = self.rows as u64 + self.left_out;
        let good = (rows - bad.len()) as u64;
        if self.leaving_out.last().is_none_or(|next| next.row >= first + good) {
            return found;
        }
        let kept = rows_but(bad, rows);
        while let Some(next) = self.leaving_out.pop_if(|next| next.row < first + good) {
            found.push((kept[(next.row - first) as usize], next));
        }
        self.left_out += found.len() as u64;
        found
    }
}

/// Keys that stand for more than there is room for.
fn too_large(read: &RowsRead<'_>, bytes: u64) -> Error {
    Error::Limit(format!(
        "{} rows of a dictionary or of runs have texts of {bytes} bytes, and those of a chunk may take {} of what \
         --memory gives (try a smaller --chunk-size, or --memory {}MiB)",
        read.rows,
        read.bytes_max,
        bytes.saturating_mul(BATCH_SHARE as u64).div_ceil(1 << 20)
    ))
}

/// Why a row is none.
#[derive(Debug, Clone, Copy)]
enum Why {
    /// A value of this column.
    Value(usize, FieldError),
    /// It is left out.
    LeftOut,
}

/// All rows but these.
fn rows_but(bad: &[(u32, Why)], rows: usize) -> Vec<u32> {
    let mut bad = bad.iter().map(|(row, _)| *row).peekable();
    (0..rows as u32).filter(|row| bad.next_if_eq(row).is_none()).collect()
}

/// Tells the records that are no rows.
fn tell(
    read: &RowsRead<'_>,
    bad: &[(u32, Why)],
    left_out: &[(u32, LeftOut)],
) -> Vec<RejectedRecord> {
    let value_of = |column: usize, row: u32| {
        let mut value = Vec::new();
        if let Some(found) = read.columns[column].get(row as usize) {
            coload_arrow::write_scalar(found, &mut value);
        }
        value
    };
    let record = |row: u32, reason: BadRecord, value: Vec<u8>| RejectedRecord {
        reason,
        line: read.before + u64::from(row),
        offset: read.offset,
        value: RejectedValue::Apart(told_bytes(&value).to_vec()),
        raw: record_text(&read.columns, row as usize),
    };
    let of_value = bad.iter().filter_map(|(row, why)| match why {
        Why::Value(column, error) => {
            let reason = BadRecord::Value { column: *column, error: *error };
            Some((*row, record(*row, reason, value_of(*column, *row))))
        }
        Why::LeftOut => None,
    });
    let of_left_out = left_out.iter().map(|(row, left)| {
        let told = BadRecord::Told(std::sync::Arc::clone(&left.told));
        (*row, record(*row, told, left.told.value.clone()))
    });
    let mut all: Vec<(u32, RejectedRecord)> = of_value.chain(of_left_out).collect();
    all.sort_by_key(|(row, _)| *row);
    all.into_iter().map(|(_, record)| record).collect()
}

/// A record as a line of CSV: its values in the order of the columns that are read. NULL is nothing, and an empty text is
/// in quotes.
fn record_text(columns: &[Column<'_>], row: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut field = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            text.push(b',');
        }
        let Some(value) = column.get(row) else { continue };
        field.clear();
        coload_arrow::write_scalar(value, &mut field);
        let is_plain = !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
        if is_plain && !field.is_empty() {
            text.extend_from_slice(&field);
            continue;
        }
        text.push(b'"');
        for byte in &field {
            text.extend(std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }));
        }
        text.push(b'"');
    }
    text
}

impl Parser for TypedParser {
    fn read_as(&mut self, column: usize, form: ColumnForm) {
        self.columns[column].read_as(form);
    }

    fn leave_codes(&mut self, column: usize) {
        self.columns[column].leave_codes();
    }

    fn take_plain_now(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.plain_now)
    }

    fn leave_out(&mut self, mut rows: Vec<LeftOut>) {
        rows.reverse();
        self.leaving_out = rows;
        self.left_out = 0;
        // The rows were there, and their values are in dictionaries.
        self.mark_stale();
    }

    fn finish(&mut self, number: u32) -> Result<Fragment> {
        let rows = std::mem::take(&mut self.rows) as u32;
        self.left_out = 0;
        self.leaving_out.clear();
        let columns = self.columns.iter_mut().map(|column| column.finish(number)).collect();
        Ok(Fragment { rows, columns })
    }

    fn take_time(&mut self) -> ParseTime {
        std::mem::take(&mut self.time)
    }

    fn dictionary(&self, column: usize) -> Option<&TemporaryDictionary> {
        self.columns[column].dictionary()
    }

    fn mark_stale(&mut self) {
        self.columns.iter_mut().for_each(ColumnRows::mark_stale);
    }

    fn into_dictionaries(self) -> Vec<TemporaryDictionary> {
        match self.columns.iter().any(|column| column.dictionary().is_some()) {
            true => self.columns.into_iter().map(ColumnRows::into_dictionary).collect(),
            false => Vec::new(),
        }
    }
}
