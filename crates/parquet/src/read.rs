//! Files of Parquet, read: what footers say, and rows of columns as bytes that were checked.
//!
//! ```text
//!   file           PAR1 | row group | row group | ... | footer | its length | PAR1
//!   row group      a column chunk for each column
//!   column chunk   page of the dictionary | data page | data page | ...
//!   data page      head | levels: which rows are NULL | values, or places in the dictionary
//! ```
//!
//! Rows become the [`Slice`](coload_arrow::Slice)s that rows of Arrow are, so that what makes columns of them is the same.
//! The readers of the `parquet` crate are not used: they give values where pages have places in a dictionary, and take
//! lengths in heads of pages for true.
//!
//! Invariants: bytes are hostile. Each length and place is checked before it is used, nothing is allocated by what a head
//! says before it is known to be allowed, and nothing panics. No I/O: bytes come from a [`Body`](coload_arrow::Body).
//!
//! Values in groups are columns `a.b`; lists and maps are assembled into texts of JSON ([`read_lists`]).
//!
//! Not here: encrypted files, columns in other files.
//!
//! Source: parquet.apache.org: file format, encodings, logical types, compression.

mod bytes;
mod codec;
mod delta;
mod footer;
mod head;
mod hints;
mod levels;
mod lists;
mod logical;
mod rows;
mod schema;
mod thrift;
mod tree;
mod values;
mod walk;

pub use footer::{ColumnAt, Footer, Leaves, MAGIC, RowGroup, TAIL_BYTES, footer_bytes};
pub use hints::{ColumnHints, PageHint, PlaceAt, ValueBounds};
pub use lists::{LeafRead, read_lists, rows_that_begin};
pub use rows::{Dictionary, read_dictionary, read_rows};
pub use schema::{ParquetField, Stored};
pub use tree::Nested;
pub use walk::{ColumnMap, ColumnWalk, PageAt, dictionary_bytes, read_page, walk_lists};
