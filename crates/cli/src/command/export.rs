//! `coload export`: a table as delimited text, straight from its segments. Parquet is written by COPY.
//!
//! Memory: one page of each column.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use coload::{Coload, DataType, Error, Result, Snapshot};
use coload_format::Plain;
use coload_format::delimited::{names_in_quotes, push_quoted};
use coload_format::display::write_value;
use coload_load::WholeFile;
use coload_store::TableEntry;

use crate::args::{ExportArgs, ExportQuotes};
use crate::output::{Done, Failure, print_with};

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
    if !args.no_header {
        let in_quotes = names_in_quotes(columns.iter().map(|c| (&*c.name, c.data_type.is_text())));
        for (index, (column, in_quotes)) in columns.iter().zip(in_quotes).enumerate() {
            style.separate(&mut line, index);
            match in_quotes && args.quote == ExportQuotes::Texts {
                true => push_quoted(&mut line, column.name.as_bytes(), QUOTE),
                false => style.push_as_needed(&mut line, column.name.as_bytes()),
            }
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
            if let Err(error) = write_rows(&pages, &types, style, *rows as usize, &mut line, out) {
                return Ok(Err(error));
            }
        }
    }
    Ok(out.flush())
}

fn write_rows(
    pages: &[Plain],
    types: &[DataType],
    style: Style,
    rows: usize,
    line: &mut Vec<u8>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    for row in 0..rows {
        line.clear();
        for (index, (page, data_type)) in pages.iter().zip(types).enumerate() {
            style.separate(line, index);
            let Some(value) = page.get(row) else { continue };
            text.clear();
            write_value(&value, *data_type, &mut text);
            match data_type.is_text() && style.quotes == ExportQuotes::Texts {
                true => push_quoted(line, &text, QUOTE),
                false => style.push_as_needed(line, &text),
            }
        }
        line.push(b'\n');
        out.write_all(line)?;
    }
    Ok(())
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
