//! Columns as pages of Parquet, and tables as its schemas.
//!
//! ```text
//!   codes and a sorted dictionary  \                  column chunk: the pages of a column of a row group,
//!   values                         /  ColumnPages ->  and what the file's footer has of them
//! ```
//!
//! A column chunk is bytes: it is made by any thread, and the library's writer puts it into a file. Loads and COPY make theirs
//! here. What files of others have is read by [`read`](crate::Footer), as rows that were checked.
//!
//! Invariant: no I/O, no threads; the bytes depend on the column only.
//!
//! Source: parquet.apache.org: file format, encodings, logical types, page index.

mod bounds;
mod column;
mod hybrid;
mod pages;
mod read;
mod schema;
mod values;

pub use column::{ColumnPages, ColumnSums};
pub use pages::{
    Bounds, ColumnChunk, DataPage, DictionaryOrder, PAGE_ROWS, Pages, make_column_chunk,
    push_codes, push_levels,
};
pub use read::{
    ColumnAt, ColumnHints, ColumnMap, ColumnWalk, Dictionary, Footer, LeafRead, Leaves, MAGIC,
    Nested, PageAt, PageHint, ParquetField, PlaceAt, RowGroup, Stored, TAIL_BYTES, ValueBounds,
    dictionary_bytes, footer_bytes, read_dictionary, read_lists, read_page, read_rows,
    rows_that_begin, walk_lists,
};
pub use schema::{COLUMNS_KEY, check_schema, file_schema, read_schema};
