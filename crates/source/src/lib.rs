//! Delimited text to fragments and rejects.
//!
//! Invariant: parsers are handed slices; a bad record is data, not an error.

mod chunk;
mod column;
mod dialect;
mod field;
mod header;
mod infer;
mod lexicon;
mod plan;
mod reject;
mod rows;
mod sample;
mod sniff;
mod tokenise;

pub use chunk::{
    BadRecord, ChunkParser, Consumed, LastWindow, ParseTime, RecordRules, RejectedRecord, Sample,
    Trailing, Window,
};
pub use coload_input::{InputFile, InputSource, STDIN, expand_inputs};
pub use column::{ColumnParser, ColumnPlan};
pub use dialect::{
    Dialect, GivenDialect, Header, byte_from_flag, describe_byte, optional_byte_from_flag,
};
pub use field::{FieldError, FieldRules};
pub use lexicon::{ColumnRules, Lexicon};
pub use plan::{SAMPLE_ROWS, plan_column};
pub use reject::{Reject, RejectWriter, shorten};
pub use rows::Rows;
pub use sample::SampleEnd;
pub use sniff::{Sniffed, bom_len, sniff};
pub use tokenise::{Seen, Separators, TEXT_PADDING, tokenise, tokenise_slowly};
