//! `coload export`: a table as delimited text, straight from its segments. Parquet is written by COPY.
//!
//! ```text
//!   stretch 0   codes, texts of codes --> lines --\
//!   stretch 1   ...                                >-- in order --> file       (ordered; lines of `coload_scan`)
//!   ...                                        /
//!   the first rows --> line of names                                      (head)
//! ```
//!
//! Memory: for each thread the fields of a stretch of the table, and lines that the file has not taken.

mod head;
mod ordered;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use coload::{Coload, DataType, Error, Result, Snapshot};
use coload_load::ReplacedFile;
use coload_scan::{Filter, Quotes, SegmentLines, Selection, Stretch, Style, stretches};
use coload_store::{DeletedRows, SegmentFile, TableEntry};

use self::head::Head;
use self::ordered::{Room, Work, write_in_order};
use crate::args::{ExportArgs, ExportQuotes};
use crate::output::{Done, Failure, print_with};

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
    let (whole, mut file) = ReplacedFile::create(path)?;
    write_table(&snapshot, table, delimiter, args, &mut file)?
        .map_err(|e| Error::io("write", path, &e))?;
    Ok(whole.finish(&file)?)
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
    let mut options = coload_serve::DatabaseOptions::default();
    options.threads = args.threads.unwrap_or(options.threads);
    options.memory = args.memory.unwrap_or_else(coload_load::default_memory);
    let copy = format!("COPY \"{table}\" TO '{file}' (FORMAT parquet)");
    store.database(options)?.query(&copy)?;
    Ok(())
}

#[cfg(not(feature = "sql"))]
fn export_parquet(_args: &ExportArgs) -> Done {
    Err(Failure::Usage(Error::Invalid(
        "--output: Parquet is written by the engine of SQL, which this program was built without"
            .to_owned(),
    )))
}

/// The rows in order, stretch after stretch. The outer error is that of reading.
fn write_table(
    snapshot: &Snapshot,
    table: &TableEntry,
    delimiter: u8,
    args: &ExportArgs,
    out: &mut impl Write,
) -> Result<io::Result<()>> {
    let columns = table.schema.columns();
    let types: Arc<[DataType]> = columns.iter().map(|c| c.data_type).collect();
    let quotes = match args.quote {
        ExportQuotes::Texts => Quotes::Texts,
        ExportQuotes::Needed => Quotes::Needed,
    };
    let style = Style { delimiter, quotes };
    let open = |entry| Ok((snapshot.segment(table, entry)?, snapshot.deleted_rows(entry)?));
    let segments = table.segments.iter().map(open).collect::<Result<Vec<Opened>>>()?;
    let mut selection = Selection::default();
    let mut head = Head::new(columns, style, args.no_header);
    if let Err(error) = head.start(out) {
        return Ok(Err(error));
    }
    // The rows that the line of names waits for, block after block.
    let mut first = None;
    'head: for (index, (segment, deleted)) in segments.iter().enumerate() {
        let filter = Filter::new(segment, deleted.as_ref(), &[])?;
        for page in 0..segment.page_rows().len() {
            filter.select(segment, page, &mut selection)?;
            if let Err(error) = head.write_page(segment, (page, &selection), out)? {
                return Ok(Err(error));
            }
            if let Some(blocks) = head.done() {
                first = Some((index, page, blocks));
                break 'head;
            }
        }
    }
    let mut lines = Vec::new();
    if first.is_some() {
        for (segment, deleted) in &segments {
            let made =
                SegmentLines::new(Arc::clone(segment), deleted.as_ref(), Arc::clone(&types))?;
            lines.push(Arc::new(made));
        }
    }
    let work = first.into_iter().flat_map(|first| rest(&segments, &lines, types.len(), first));
    let room = Room::new(args.threads, args.memory);
    if let Err(error) = write_in_order(work, style, room, out)? {
        return Ok(Err(error));
    }
    Ok(head.finish(out))
}

/// A segment, and its rows that are deleted.
type Opened = (Arc<SegmentFile>, Option<Arc<DeletedRows>>);

/// What is left behind some blocks of a page of a segment.
fn rest<'a>(
    segments: &'a [Opened],
    lines: &'a [Arc<SegmentLines>],
    columns: usize,
    (first, page, blocks): (usize, usize, usize),
) -> impl Iterator<Item = Work> + 'a {
    let all = segments.iter().zip(lines).enumerate().skip(first);
    all.flat_map(move |(index, ((segment, _), lines))| {
        let cut = stretches(segment.page_rows().iter().copied(), columns);
        let left = move |stretch: Stretch| match index == first {
            true => stretch.behind(page, blocks),
            false => vec![stretch],
        };
        let work = move |stretch| Work { segment: Arc::clone(lines), stretch };
        cut.into_iter().flat_map(left).map(work)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
