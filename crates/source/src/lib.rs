//! Delimited text to fragments and rejects.
//!
//! Invariant: parsers are handed slices; a bad record is data, not an error.

mod chunk;
mod column;
mod field;
mod lexicon;
mod plan;
mod rows;
mod tokenise;

pub use chunk::{
    BadRecord, ChunkParser, Consumed, LastWindow, ParseTime, RecordRules, RejectedRecord, Trailing,
    Window,
};
pub use column::{ColumnParser, ColumnPlan};
pub use field::{FieldError, FieldRules};
pub use lexicon::{ColumnRules, Lexicon};
pub use plan::{SAMPLE_ROWS, plan_column};
pub use rows::Rows;
pub use tokenise::{Seen, Separators, TEXT_PADDING, tokenise, tokenise_slowly};
