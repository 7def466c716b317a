//! Rows that somebody else reads, such as those of a table of a database or of a data frame: no bytes of them are known
//! beforehand.
//!
//! ```text
//!   parts that can be read in any order   part = chunk -> blocks of rows, read by the worker whose chunk it is
//!   one part only                         blocks of rows are taken in order; as many as are a chunk of bytes are one
//! ```
//!
//! Whoever has rows implements [`TypedSource`]. What is here knows parts, blocks and columns.

mod reading;
mod stream;

use std::fmt::Debug;
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::account::Account;
use crate::format::{Format, InputBounds, Leg, Position};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::typed::{
    Asked, Column, TypedField, TypedInput, TypedKind, batch_bytes_max, cutting, fields_of_columns,
};
use reading::SourceReading;
use stream::SourceStream;

/// Rows with types, which somebody else reads. The same part gives the same rows each time, if its input says so.
pub trait TypedSource: Debug + Send + Sync {
    /// Name of what has the rows, for who asks.
    fn engine(&self) -> &'static str;

    /// The fields of a row.
    fn fields(&self) -> &[TypedField];

    /// Whether the values of a field are places in dictionaries, so that its column is one of few values.
    fn has_dictionary(&self, _field: usize) -> bool {
        false
    }

    /// Bytes of a row in memory on average, if they are known.
    fn row_bytes(&self) -> Option<usize>;

    /// How many rows there are, if that is known before they are read.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// What is to be said of the rows before they are read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Cuts the rows into parts, each of about a chunk.
    ///
    /// # Errors
    /// `Unavailable` when nobody answers.
    fn cut(&self, part: PartBytes) -> Result<SourceParts>;

    /// Begins to read a part; the only one has the number 0.
    ///
    /// # Errors
    /// `Unavailable` when nobody answers, `Refused` with what the server says.
    fn read(self: Arc<Self>, part: usize, wanted: &Wanted) -> Result<Box<dyn TypedReader>>;
}

/// How large a part should be.
#[derive(Debug, Clone, Copy)]
pub struct PartBytes {
    /// Bytes of it.
    pub bytes: u64,
    /// Bytes that a row counts as at least.
    pub row_bytes: u64,
}

/// Parts of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceParts {
    /// One after the other, in one part.
    Whole,
    /// So many bytes each, as they are stored.
    Parts(Vec<u64>),
}

/// What is read of rows.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The fields, in the order of the columns of blocks. One may come twice.
    pub fields: Vec<usize>,
    /// Bytes that a block may take.
    pub bytes_max: u64,
}

/// Reads the rows of a part.
pub trait TypedReader: Send {
    /// The next rows; `None` when there are none any more. A block has some hundred KiB, or one row.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost, `Refused` with what the server says, `Limit` when a row takes more than
    /// it may.
    fn next(&mut self) -> Result<Option<Box<dyn TypedBlock>>>;
}

/// Rows that were read.
pub trait TypedBlock: Debug + Send + Sync {
    /// Bytes that they take.
    fn bytes(&self) -> usize;

    /// Its first rows, at least so many as are wanted or all that there are: their number, and their columns. Values that the type of a field does not express are told by a column of texts.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are none that the engine sends.
    fn columns(&self, wanted: usize) -> Result<(usize, Vec<Column<'_>>)>;
}

/// The rows of a source, as they are cut.
pub struct SourceRows {
    source: Arc<dyn TypedSource>,
    name: String,
    wanted: Wanted,
    how: Cut,
}

/// How rows are cut.
enum Cut {
    /// Where each part begins in the account, and the last one ends.
    Parts(Vec<u64>),
    /// They come in order.
    Stream(SourceStream),
}

impl dyn TypedSource {
    /// What is known of the rows before they are loaded.
    pub fn input(&self) -> TypedInput {
        TypedInput {
            kind: TypedKind::Rows(self.engine()),
            fields: self.fields().to_vec(),
            record_bytes: self.row_bytes(),
        }
    }
}

impl SourceRows {
    /// Begins to read a part.
    fn open_part(&self, part: usize) -> Result<Box<dyn TypedReader>> {
        Arc::clone(&self.source).read(part, &self.wanted)
    }
}

impl Format for SourceRows {
    type Reading<'a> = SourceReading<'a>;

    fn open(
        request: &LoadRequest,
        resources: &Resources,
        _spool: Option<&Arc<Spool>>,
    ) -> Result<Self> {
        let asked = Asked { request, resources };
        let name = request.inputs.name(0);
        let Some(source) = request.source.clone().filter(|_| request.inputs.len() == 1) else {
            return Err(Error::Invalid(format!(
                "{name}: such rows are loaded alone, not together with other inputs"
            )));
        };
        let all = source.fields();
        let fields = fields_of_columns(0, all.len(), asked, |index| match &all[index] {
            field if field.is_readable => Ok(()),
            field => Err(format!("field {} is {}, which no column holds", field.name, field.kind)),
        })?;
        let Some(fields) = fields.into_iter().collect::<Option<Vec<usize>>>() else {
            return Err(Error::Invalid(format!("{name}: rows that lack a column")));
        };
        let cutting = cutting(asked);
        let part = PartBytes { bytes: cutting.chunk_bytes, row_bytes: cutting.row_bytes };
        let how = match source.cut(part)? {
            SourceParts::Whole => Cut::Stream(SourceStream::new(cutting, asked)),
            SourceParts::Parts(parts) => {
                let mut starts = vec![0_u64];
                for bytes in parts {
                    let before = starts.last().copied().unwrap_or(0);
                    if before >= cutting.sample_bytes {
                        break;
                    }
                    starts.push(before + bytes);
                }
                Cut::Parts(starts)
            }
        };
        let wanted = Wanted { fields, bytes_max: batch_bytes_max(asked) };
        Ok(SourceRows { source, name, wanted, how })
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> SourceReading<'a> {
        SourceReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        match &self.how {
            Cut::Parts(starts) => Some(starts.len() - 1),
            Cut::Stream(_) => None,
        }
    }

    fn bounds(&self) -> Vec<InputBounds> {
        let end = match &self.how {
            Cut::Parts(_) => Some(self.stored_bytes()),
            Cut::Stream(_) => None,
        };
        vec![InputBounds { start: 0, lines: 0, end, part: None }]
    }

    fn stored_bytes(&self) -> u64 {
        match &self.how {
            Cut::Parts(starts) => starts.last().copied().unwrap_or(0),
            Cut::Stream(_) => 0,
        }
    }

    fn head_bytes(&self) -> u64 {
        0
    }

    fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match &self.how {
            Cut::Parts(starts) => starts.get(place.chunks).copied().unwrap_or(records),
            Cut::Stream(_) => records,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        // The source answers for that.
        Ok(())
    }

    fn check_same(&self, _before: &Self) -> Result<()> {
        Ok(())
    }

    fn share(&self, account: &Account) -> f64 {
        match self.stored_bytes() {
            0 => 1.0,
            all => (account.text_bytes() as f64 / all as f64).min(1.0),
        }
    }
}
