//! Aggregates on codes: groups, counts and sums without making rows.
//!
//! ```text
//!   Query --Program--> terms over roots, shared parts once      (once a query)
//!         --SegmentScan--> group space, value tables, filter    (once a segment)
//!         --bounds--> how wide each root is                     (once a page)
//!         --vectors--> 1,024 raw values, masks of groups, sums  (once a block)
//! ```
//!
//! Numbers are exact integers: a DECIMAL is its unscaled value, and the caller knows the scales. The
//! smallest and largest value of a page prove how wide arithmetic must be: 32 bits, 64 bits, or 128
//! bits checked row by row. A sum that does not fit 128 bits is an error, never a wrap.
//!
//! Groups are dense: the product of the dictionaries of the grouping columns, at most [`GROUPS_MAX`].
//! Each segment has its own dictionaries; groups are joined by their values in [`State::finish`].
//!
//! Cost: TPC-H Q1 (4 groups, 5 sums, 6 columns) takes about 2 ns a row.

mod add_rows;
mod bounds;
mod expr;
mod groups;
mod kernels;
mod program;
mod segment_scan;
mod state;
mod value_tables;
mod vectors;

#[cfg(test)]
mod tests;

pub use expr::{Aggregate, Expr, FloatExpr, FloatWidth, Query};
pub use program::Program;
pub use segment_scan::{PageWork, SegmentScan, supports};
pub use state::{AggregateValue, GroupRow, Grouped, Groups, State};

/// Most groups of one segment.
pub const GROUPS_MAX: usize = 65_536;
/// Up to this many groups each has its own mask and its sums are made by SIMD; over it, each row is
/// added to its group one by one.
const MASKED_GROUPS_MAX: usize = 16;
/// Blocks with at most this many selected rows are made dense by unpacking these rows alone.
const FEW_ROWS: usize = 48;
