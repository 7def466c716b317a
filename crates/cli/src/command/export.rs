//! `coload export`: a table as CSV, straight from its segments.
//!
//! Memory: one page of each column.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use coload::{Coload, DataType, Error, Result, Snapshot};
use coload_format::Plain;
use coload_format::display::write_value;
use coload_store::TableEntry;

use crate::args::ExportArgs;
use crate::output::{Done, Failure};

/// Writes a table to a file or to standard output.
///
/// # Errors
/// `Failed` when the store or the table is not there, is damaged, or the output cannot be written.
pub fn run(args: &ExportArgs) -> Done {
    let store = Coload::open(&args.store)?;
    let snapshot = store.snapshot()?;
    let table = snapshot.require_table(&args.table)?;
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        return match write_table(&snapshot, table, args.no_header, &mut out)? {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
            Err(e) => {
                Err(Failure::Failed(Error::Unavailable(format!("cannot write the output: {e}"))))
            }
            Ok(()) => Ok(()),
        };
    };
    let unfinished = Unfinished::beside(path);
    let file = File::create(&unfinished.0).map_err(|e| Error::io("write", path, &e))?;
    let mut out = BufWriter::new(file);
    let written = write_table(&snapshot, table, args.no_header, &mut out)?;
    let named = written
        .and_then(|()| out.get_ref().sync_all())
        .and_then(|()| std::fs::rename(&unfinished.0, path));
    Ok(named.map_err(|e| Error::io("write", path, &e))?)
}

/// A file that has its name only when it is whole; dropped before, it leaves nothing.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        Unfinished(path.with_file_name(name))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the renaming the name is free, and there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The rows in order, page after page. The outer error is that of reading.
fn write_table(
    snapshot: &Snapshot,
    table: &TableEntry,
    no_header: bool,
    out: &mut impl Write,
) -> Result<io::Result<()>> {
    let columns = table.schema.columns();
    let types: Vec<DataType> = columns.iter().map(|c| c.data_type).collect();
    let mut line = Vec::new();
    if !no_header {
        for (index, column) in columns.iter().enumerate() {
            separate(&mut line, index);
            push_field(&mut line, column.name.as_bytes());
        }
        line.push(b'\n');
        if let Err(error) = out.write_all(&line) {
            return Ok(Err(error));
        }
    }
    for entry in &table.segments {
        let segment = snapshot.segment(table, entry)?;
        for (page, rows) in segment.page_rows().iter().enumerate() {
            let mut pages = Vec::with_capacity(types.len());
            for column in 0..types.len() {
                let mut values = Plain::empty(segment.physical(column));
                segment.decode_page(column, page, &mut values)?;
                pages.push(values);
            }
            if let Err(error) = write_rows(&pages, &types, *rows as usize, &mut line, out) {
                return Ok(Err(error));
            }
        }
    }
    Ok(out.flush())
}

fn write_rows(
    pages: &[Plain],
    types: &[DataType],
    rows: usize,
    line: &mut Vec<u8>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    for row in 0..rows {
        line.clear();
        for (index, (page, data_type)) in pages.iter().zip(types).enumerate() {
            separate(line, index);
            if let Some(value) = page.get(row) {
                text.clear();
                write_value(&value, *data_type, &mut text);
                push_field(line, &text);
            }
        }
        line.push(b'\n');
        out.write_all(line)?;
    }
    Ok(())
}

fn separate(line: &mut Vec<u8>, index: usize) {
    if index > 0 {
        line.push(b',');
    }
}

/// Appends a field, in quotes where it would be read as something else; NULL is nothing, and the
/// empty text a pair of quotes.
fn push_field(line: &mut Vec<u8>, text: &[u8]) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.iter().any(special) {
        line.extend_from_slice(text);
        return;
    }
    line.push(b'"');
    for byte in text {
        if *byte == b'"' {
            line.push(b'"');
        }
        line.push(*byte);
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_would_be_read_as_something_else() {
        let mut line = Vec::new();
        for text in ["plain", "a,b", "say \"x\"", "", "two\nlines", "\r"] {
            push_field(&mut line, text.as_bytes());
            line.push(b';');
        }
        assert_eq!(line, b"plain;\"a,b\";\"say \"\"x\"\"\";\"\";\"two\nlines\";\"\r\";");
    }
}
