//! Rejects as rows of a table: file, line, byte, column, value, reason, raw; of files that have parts, part.
//!
//! A table that was made for the rejects of text takes those of files with parts without it, and the other way round, with NULL.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use coload_ddl::{Schema, parse_columns};
use coload_source::{
    Dialect, Header, InputFields, InputFile, InputSource, InvalidBytes, Policies, RejectColumns,
};
use coload_store::Store;
use coload_types::{Error, Result};
use coload_wire::FieldsByInput;

use crate::opened::OpenedStream;
use crate::request::LoadRequest;

/// Its columns. Value and raw record are text: what no text can hold is U+FFFD.
const COLUMNS: &str = "file VARCHAR NOT NULL, line BIGINT NOT NULL, byte BIGINT NOT NULL, \
     \"column\" VARCHAR, value VARCHAR, reason VARCHAR NOT NULL, raw VARCHAR";
/// The same, and the part of the file.
const COLUMNS_WITH_PART: &str = "file VARCHAR NOT NULL, line BIGINT NOT NULL, byte BIGINT NOT NULL, \
     \"column\" VARCHAR, value VARCHAR, reason VARCHAR NOT NULL, raw VARCHAR, part VARCHAR";

/// Refuses a table that has other columns than those of rejects.
///
/// # Errors
/// `Invalid` that names the table and the columns.
pub fn check_reject_table(store: &Store, table: &str) -> Result<()> {
    table_columns(store, table).map(drop)
}

/// The columns of a table of rejects; `None` when there is no table.
fn table_columns(store: &Store, table: &str) -> Result<Option<RejectColumns>> {
    let snapshot = store.snapshot()?;
    let Some(entry) = snapshot.table(table) else { return Ok(None) };
    for columns in [RejectColumns::Plain, RejectColumns::WithPart] {
        if entry.schema == schema(columns)? {
            return Ok(Some(columns));
        }
    }
    Err(Error::Invalid(format!(
        "--rejects table:{table}: the table has other columns than {COLUMNS_WITH_PART}, or the same without part"
    )))
}

/// The load of the rejects of a file, which has these columns, into a table, which is made with them if it is absent.
///
/// # Errors
/// `Unavailable` when the file cannot be opened, `Invalid` when the table has other columns.
pub fn request_of_rejects(
    (file, of_file): (&Path, RejectColumns),
    (store, table): (&Store, &str),
) -> Result<LoadRequest> {
    let schema = schema(table_columns(store, table)?.unwrap_or(of_file))?;
    let name = file.display().to_string();
    let reader = File::open(file).map_err(|e| Error::io("open", file, &e))?;
    let dialect = Dialect {
        header: Header::Present,
        policies: Policies { invalid_bytes: InvalidBytes::Replace, ..Policies::default() },
        ..Dialect::default()
    };
    let source = InputSource::Stream { path: file.to_owned() };
    let inputs = vec![InputFile { name: name.clone(), source }];
    let count = self::schema(of_file)?.len();
    // Those that only one of the two has are the last.
    let of_column = (0..schema.len()).map(|column| (column < count).then_some(column)).collect();
    let fields = FieldsByInput { ways: vec![InputFields { count, of_column }], of_input: vec![] };
    let mut request = LoadRequest::new(inputs, table, schema, dialect);
    request.fields_by_input = Some(Arc::new(fields));
    request.stream = Some(OpenedStream::new(name, Box::new(WithoutNul(reader))));
    Ok(request)
}

fn schema(columns: RejectColumns) -> Result<Schema> {
    parse_columns(match columns {
        RejectColumns::Plain => COLUMNS,
        RejectColumns::WithPart => COLUMNS_WITH_PART,
    })
}

/// NUL, which text cannot hold, becomes a byte that is not UTF-8, which is replaced.
struct WithoutNul(File);

impl Read for WithoutNul {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        buffer[..read].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 0xff);
        Ok(read)
    }
}
