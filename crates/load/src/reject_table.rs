//! Rejects as rows of a table: file, line, byte, column, value, reason, raw.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use coload_ddl::{Schema, parse_columns};
use coload_source::{Dialect, Header, InputFile, InputSource, InvalidBytes, Policies};
use coload_store::Store;
use coload_types::{Error, Result};

use crate::opened::OpenedStream;
use crate::request::LoadRequest;

/// Its columns. Value and raw record are text: what no text can hold is U+FFFD.
const COLUMNS: &str = "file VARCHAR NOT NULL, line BIGINT NOT NULL, byte BIGINT NOT NULL, \
     \"column\" VARCHAR, value VARCHAR, reason VARCHAR NOT NULL, raw VARCHAR";

/// Refuses a table that has other columns than those of rejects.
///
/// # Errors
/// `Invalid` that names the table and the columns.
pub fn check_reject_table(store: &Store, table: &str) -> Result<()> {
    let wanted = schema()?;
    match store.snapshot()?.table(table) {
        Some(entry) if entry.schema != wanted => Err(Error::Invalid(format!(
            "--rejects table:{table}: the table has other columns than {COLUMNS}"
        ))),
        _ => Ok(()),
    }
}

/// The load of the rejects of a file into a table, which is made if it is absent.
///
/// # Errors
/// `Unavailable` when the file cannot be opened.
pub fn request_of_rejects(file: &Path, table: &str) -> Result<LoadRequest> {
    let name = file.display().to_string();
    let reader = File::open(file).map_err(|e| Error::io("open", file, &e))?;
    let dialect = Dialect {
        header: Header::Present,
        policies: Policies { invalid_bytes: InvalidBytes::Replace, ..Policies::default() },
        ..Dialect::default()
    };
    let source = InputSource::Stream { path: file.to_owned() };
    let inputs = vec![InputFile { name: name.clone(), source }];
    let mut request = LoadRequest::new(inputs, table, schema()?, dialect);
    request.stream = Some(OpenedStream::new(name, Box::new(WithoutNul(reader))));
    Ok(request)
}

fn schema() -> Result<Schema> {
    parse_columns(COLUMNS)
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
