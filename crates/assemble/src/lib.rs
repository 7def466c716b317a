//! Fragments, finished pages and plain values into the columns of a partition: the only way there, for loads, for
//! servers that receive them, and for rows of SQL statements.
//!
//! Invariant: no I/O; what comes out depends on what came in, and not on the order in which it came.

mod column;

pub use column::{Assembly, ColumnBuilder, Parsed, Taken};
