//! Where the first record of a part of an input starts, whatever its form.

use std::sync::Arc;

use coload_input::{Raw, RawFile, TextInput};
use coload_types::{Error, Result};

use crate::arrow_ipc::rows_before;
use crate::avro_input::{first_block_at, first_block_behind};
use crate::parquet_input::row_groups;
use crate::request::{InputForm, LoadRequest};
use crate::text;

/// A place in an input where a record starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordAt {
    /// Its first byte; of Avro that of its block.
    pub byte: u64,
    /// Lines before it; of Avro records.
    pub lines: u64,
}

/// Where the first record starts at `from` or later, as what stands there says: behind a newline, or the marker of a block.
///
/// # Errors
/// `Unavailable` when the input cannot be read.
pub fn first_record_behind(request: &LoadRequest, number: usize, from: u64) -> Result<u64> {
    match request.form {
        InputForm::Avro => first_block_behind(request, number, from),
        _ => text::first_record_behind(request, number, from),
    }
}

/// The first record that starts at `from` or later, as those before it say; `known` is one that starts before, if some is
/// known.
///
/// # Errors
/// `Unavailable` when the input cannot be read, `Limit` when a record is too long, `Input` when a block before is damaged.
pub fn first_record_at(
    request: &LoadRequest,
    number: usize,
    from: u64,
    known: Option<RecordAt>,
) -> Result<RecordAt> {
    match request.form {
        InputForm::Avro => first_block_at(request, number, from, known),
        _ => text::first_record_at(request, number, from, known),
    }
}

/// Records of a file before a row group or record batch of it.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
pub fn records_before(request: &LoadRequest, number: usize, group: usize) -> Result<u64> {
    let file = file_of(request, number)?;
    match request.form {
        InputForm::Arrow => rows_before(&file, group),
        _ => Ok(row_groups(&file)?.iter().take(group).map(|group| group.rows).sum()),
    }
}

/// The bytes of an input that is a file.
///
/// # Errors
/// `Invalid` when it is none.
pub fn file_of(request: &LoadRequest, number: usize) -> Result<Arc<RawFile>> {
    let input = request.inputs.at(number);
    match TextInput::open(&input)?.raw {
        Raw::File { file, .. } => Ok(file),
        Raw::Stream(_) => {
            Err(Error::Invalid(format!("{}: parts are read of files only", input.name)))
        }
    }
}
