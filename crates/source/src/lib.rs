//! Delimited text to fragments and rejects.
//!
//! Invariant: parsers are handed slices; a bad record is data, not an error.

mod aligned;
mod careful;
mod chunk;
mod column;
mod column_rules;
mod dialect;
mod end_mark;
mod field;
mod fixed;
mod formats;
mod header;
mod infer;
mod json;
mod lexicon;
mod names;
mod plan;
mod reject;
mod repeats;
mod row_codes;
mod rows;
mod rules;
mod sample;
mod sniff;
mod tokenise;
mod type_order;
mod units;

pub use aligned::Aligned;
pub use careful::{
    CarefulField, CarefulRecord, Reading, count_line_ends, field_text, first_line, read_record,
};
pub use chunk::{
    BadRecord, ChunkParser, Consumed, InputFields, LastWindow, LeftOut, MENDED_TOLD_MAX, Mended,
    Mending, ParseTime, RejectedRecord, RejectedValue, Sample, Told, VALUE_BYTES_MAX, Window,
    told_bytes,
};
pub use coload_input::{
    Encoding, InputFile, InputSource, Inputs, PlaceOptions, STDIN, Said, TextEncoding,
    expand_inputs, expand_inputs_where, expand_inputs_with,
};
pub use coload_json::{Between, Holds, Item, Keys, Path, Splitter};
pub use column::{ColumnForm, ColumnParser, ColumnPlan, PlanKind};
pub use column_rules::{ColumnRules, TypeOrigin};
pub use dialect::{
    Dialect, Escapes, GivenDialect, GivenPolicies, Header, InvalidBytes, LineEnd, LongDelimiter,
    NullsAre, Policies, Quotes, Ragged, byte_from_flag, delimiter_from_flag, describe_byte,
    describe_delimiter, optional_byte_from_flag,
};
pub use end_mark::{END_MARKS_MAX, without_end_mark};
pub use field::{FieldError, FieldRules};
pub use fixed::FixedWidths;
pub use formats::{DateFormat, Formats, TimestampFormat};
pub use header::unique_texts;
pub use infer::ColumnForms;
pub use json::{InputFormat, JsonForm, JsonMapping, JsonRules, MappedColumn, UnknownKeys};
pub use lexicon::Lexicon;
pub use plan::{SAMPLE_BYTES, SAMPLE_BYTES_MOST, SAMPLE_ROWS, plan_column};
pub use reject::{FilePart, Reject, RejectColumns, RejectWriter, shorten};
pub use rows::Rows;
pub use rules::{Padding, RecordRules, Trailing};
pub use sample::SampleEnd;
pub use sniff::{
    JsonSample, JsonTells, Sniffed, bom_len, json_tells, of_input, read_names, sniff, sniff_json,
};
pub use tokenise::{Seen, Separators, TEXT_PADDING, tokenise, tokenise_slowly};
pub use type_order::{Candidate, TypeOrder};
