//! `coload export`: a table as delimited text, straight from its segments. Parquet is written by COPY.
//!
//! Memory: one page of each column.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use coload::{Coload, DataType, Error, Result, Snapshot};
use coload_load::WholeFile;
use coload_store::TableEntry;
use coload_types::Plain;
use coload_types::delimited::{NamesLine, push_quoted};
use coload_types::display::write_value;

use crate::args::{ExportArgs, ExportQuotes};
use crate::output::{Done, Failure, print_with, say};

/// Around texts.
const QUOTE: u8 = b'"';

/// Writes a table to a file or to standard output.
///
/// # Errors
/// `Failed` when the store or the table is not there, is damaged, or the output cannot be written.
pub fn run(args: &ExportArgs) -> Done {
    let form = args.output.as_deref().map_or(Ok(Form::Delimited(b',')), form_of)?;
    let Form::Delimited(delimiter) = form else { return export_parquet(args) };
    let store = Coload::open(&args.store)?;
    let snapshot = store.snapshot()?;
    let table = snapshot.require_table(&args.table)?;
    let Some(path) = &args.output else {
        return print_with(|out| Ok(write_table(&snapshot, table, delimiter, args, out)?));
    };
    let (whole, file) = WholeFile::create(path)?;
    let mut out = BufWriter::new(file);
    write_table(&snapshot, table, delimiter, args, &mut out)?
        .map_err(|e| Error::io("write", path, &e))?;
    Ok(whole.finish(out.get_ref())?)
}

/// What a file is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text, with this byte between fields.
    Delimited(u8),
    Parquet,
}

/// The form that the ending of a file says.
fn form_of(path: &Path) -> Done<Form> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let help = match ending.as_deref() {
        None | Some("csv" | "txt") => return Ok(Form::Delimited(b',')),
        Some("tsv" | "tab") => return Ok(Form::Delimited(b'\t')),
        Some("parquet") => return Ok(Form::Parquet),
        Some("gz") => "write CSV to standard output: coload export ... | gzip > FILE.csv.gz",
        Some("zst") => "write CSV to standard output: coload export ... | zstd > FILE.csv.zst",
        Some(_) => {
            "there is .csv, .txt, .tsv, .tab and .parquet; without --output CSV goes to standard output"
        }
    };
    Err(Failure::Usage(Error::Invalid(format!(
        "--output {}: its ending is of no form that is written: {help}",
        path.display()
    ))))
}

/// Writes a table as Parquet, as COPY does.
#[cfg(feature = "sql")]
fn export_parquet(args: &ExportArgs) -> Done {
    let Some(path) = &args.output else { return Ok(()) };
    let Some(file) = path.to_str() else {
        return Err(Failure::Usage(Error::Invalid("--output is not UTF-8".to_owned())));
    };
    if args.no_header {
        return Err(Failure::Usage(Error::Invalid(
            "--no-header is for text: Parquet always names its columns".to_owned(),
        )));
    }
    let store = Coload::open(&args.store)?;
    store.snapshot()?.require_table(&args.table)?;
    let (table, file) = (args.table.replace('"', "\"\""), file.replace('\'', "''"));
    store.query(&format!("COPY \"{table}\" TO '{file}' (FORMAT parquet)"))?;
    Ok(())
}

#[cfg(not(feature = "sql"))]
fn export_parquet(_args: &ExportArgs) -> Done {
    Err(Failure::Usage(Error::Invalid(
        "--output: Parquet is written by the engine of SQL, which this program was built without"
            .to_owned(),
    )))
}

/// The rows in order, page after page. The outer error is that of reading.
fn write_table(
    snapshot: &Snapshot,
    table: &TableEntry,
    delimiter: u8,
    args: &ExportArgs,
    out: &mut impl Write,
) -> Result<io::Result<()>> {
    let columns = table.schema.columns();
    let types: Vec<DataType> = columns.iter().map(|c| c.data_type).collect();
    let mut line = Vec::new();
    let style = Style { delimiter, quotes: args.quote };
    let mut names = None;
    match args.quote {
        _ if args.no_header => {}
        ExportQuotes::Texts => {
            let named = columns.iter().map(|c| (c.name.clone(), c.data_type.is_text()));
            names = Some(NamesLine::new(named.collect(), delimiter));
        }
        ExportQuotes::Needed => {
            for (index, column) in columns.iter().enumerate() {
                style.separate(&mut line, index);
                style.push_as_needed(&mut line, column.name.as_bytes());
            }
            line.push(b'\n');
            if let Err(error) = out.write_all(&line) {
                return Ok(Err(error));
            }
        }
    }
    let mut rows_out = Rows { types: &types, style, names, line };
    for entry in &table.segments {
        let segment = snapshot.segment(table, entry)?;
        for (page, rows) in segment.page_rows().iter().enumerate() {
            let mut pages = Vec::with_capacity(types.len());
            for column in 0..types.len() {
                let mut values = Plain::empty(segment.physical(column));
                segment.decode_page(column, page, &mut values)?;
                pages.push(values);
            }
            if let Err(error) = rows_out.write(&pages, *rows as usize, out) {
                return Ok(Err(error));
            }
        }
    }
    Ok(rows_out.finish(out))
}

/// Rows on their way to a file.
struct Rows<'a> {
    types: &'a [DataType],
    style: Style,
    /// The line of names, until it is written.
    names: Option<NamesLine>,
    line: Vec<u8>,
}

impl Rows<'_> {
    /// Writes the rows of a page of each column.
    fn write(&mut self, pages: &[Plain], rows: usize, out: &mut impl Write) -> io::Result<()> {
        let Rows { types, style, names, line } = self;
        let mut text = Vec::new();
        for row in 0..rows {
            line.clear();
            for (index, (page, data_type)) in pages.iter().zip(*types).enumerate() {
                style.separate(line, index);
                let Some(value) = page.get(row) else { continue };
                text.clear();
                write_value(&value, *data_type, &mut text);
                if let Some(names) = names {
                    names.note_value(index, &text);
                }
                match data_type.is_text() && style.quotes == ExportQuotes::Texts {
                    true => push_quoted(line, &text, QUOTE),
                    false => style.push_as_needed(line, &text),
                }
            }
            line.push(b'\n');
            match names {
                None => out.write_all(line)?,
                Some(waiting) => {
                    if let Some(head) = waiting.push_row(line) {
                        say_how_told(waiting);
                        *names = None;
                        out.write_all(&head)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what waits.
    fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(mut names) = self.names.take() {
            say_how_told(&names);
            out.write_all(&names.take())?;
        }
        out.flush()
    }
}

/// Says that some programs refuse the file, where that is so.
fn say_how_told(names: &NamesLine) {
    if names.is_told_by_its_end() {
        say(
            "the line of names ends with CRLF and the others with LF, as quotes cannot tell names and texts of this table; a program that \
             refuses both takes what --quote needed writes (DuckDB: strict_mode=false)",
        );
    }
}

/// How fields are written.
#[derive(Debug, Clone, Copy)]
struct Style {
    delimiter: u8,
    quotes: ExportQuotes,
}

impl Style {
    fn separate(self, line: &mut Vec<u8>, index: usize) {
        if index > 0 {
            line.push(self.delimiter);
        }
    }

    /// Appends a field, in quotes where it would be read as something else; NULL is nothing, and the
    /// empty text a pair of quotes.
    fn push_as_needed(self, line: &mut Vec<u8>, text: &[u8]) {
        let special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        match text.is_empty() || text.iter().any(special) {
            true => push_quoted(line, text, QUOTE),
            false => line.extend_from_slice(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_would_be_read_as_something_else() {
        let style = Style { delimiter: b',', quotes: ExportQuotes::Needed };
        let mut line = Vec::new();
        for text in ["plain", "a,b", "say \"x\"", "", "two\nlines", "\r"] {
            style.push_as_needed(&mut line, text.as_bytes());
            line.push(b';');
        }
        assert_eq!(line, b"plain;\"a,b\";\"say \"\"x\"\"\";\"\";\"two\nlines\";\"\r\";");
    }

    #[test]
    fn the_ending_says_the_form() {
        let form = |path: &str| form_of(Path::new(path)).ok();
        assert_eq!(form("x.CSV"), Some(Form::Delimited(b',')));
        assert_eq!(form("x"), Some(Form::Delimited(b',')));
        assert_eq!(form("x.tsv"), Some(Form::Delimited(b'\t')));
        assert_eq!(form("x.parquet"), Some(Form::Parquet));
        assert_eq!((form("x.csv.gz"), form("x.xlsx")), (None, None));
    }
}
