//! Arrow IPC: messages, schemas, and the columns of record batches as bytes that were checked; arrays in memory as such columns.
//!
//! ```text
//!   file      ARROW1 | schema | dictionaries, record batches ... | end | footer: where they stand | ARROW1
//!   stream             schema | dictionaries, record batches ... | end
//!   message   FFFFFFFF, length | metadata (flatbuffer) | body: the buffers of the columns
//! ```
//!
//! The metadata are decoded by `arrow_ipc`, whose verifier looks at all of it before anything is used. Bodies are read here:
//! the arrays of the `arrow` crates are checked as a whole, so that one text that is not UTF-8 would cost its whole
//! batch; and a part of a batch can be read without the rest.
//!
//! Invariants: bytes are hostile. Each length and place is checked before it is used, nothing is allocated by what a message
//! says before it is known to be there or allowed, and nothing panics. No I/O: bytes come from a [`Body`].
//!
//! Source: the columnar format of Arrow, "Serialization and Interprocess Communication".

mod arrays;
mod batch;
mod buffers;
mod column;
mod dictionary;
mod fault;
mod footer;
mod json;
mod message;
mod nested;
mod schema;
mod sizes;
mod slice;
mod strings;
mod types;
mod value;

pub use arrays::{
    ArrayDictionary, array_bytes, dictionaries_of, read_array, read_array_column, schema_of,
};
pub use batch::{Batch, BatchLayout, FieldLayout};
pub use buffers::{Body, Buffers};
pub use column::ArrowColumn;
pub use dictionary::{Column, DictionariesOf, Dictionary};
pub use fault::{Fault, Result};
pub use footer::{FILE_MAGIC, Footer, TAIL_BYTES, footer_bytes};
pub use json::{Brackets, JsonRows, JsonText, json_name, write_json};
pub use message::{
    BareSchema, DictionaryBatch, Message, PREFIX_BYTES, Place, Prefix, bare_schema, starts_stream,
};
pub use schema::{ArrowSchema, Encoding, Field, IntType};
pub use slice::{Bits, Slice, SliceValues, read_column, read_slice, read_values, written_bytes};
pub use strings::Strings;
pub use types::{ArrowType, Composite, Nesting, Unit};
pub use value::{Scalar, int96, write_scalar};
