//! Tables as they are declared: columns, the rules that rows keep, and both as SQL.
//!
//! Invariant: nothing here knows how values are stored, and nothing does I/O.

mod index;
mod key;
mod schema;

mod check;
pub mod like;

mod sql;

pub use check::{CHECKS_MAX, Check, CheckedColumn};
pub use index::{INDEX_NAME_BYTES_MAX, INDEXES_MAX, Index, IndexKind};
pub use key::{KEY_COLUMNS_MAX, Key, KeyKind};
pub use schema::{COLUMNS_MAX, Schema};
pub use sql::{
    column_sql, create_indexes_sql, create_table_sql, list_refused, literal_sql, parse_check,
    parse_columns, parse_create_table, quote_name,
};
