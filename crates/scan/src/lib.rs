//! Scans segments on codes: tests predicates on packed codes, decodes the selected rows only, and
//! aggregates without decoding at all.
//!
//! ```text
//!   Predicate --Filter::new, once a segment--> ranges of codes or values
//!   Filter    --open, once a page-->           PageFilter   (a page may turn out all or none)
//!   PageFilter --block-->                      BlockMask    (1,024 bits)
//!   BlockMask  --ColumnPage::decode_*-->       selected values
//!              --aggregate::Scan-->            groups and their sums
//!              --SegmentLines-->               delimited text
//! ```
//!
//! Invariant: no threads (but for [`run`]), no SQL, no Arrow; every step works on one page.
//! NULL never matches a test, except [`Test::IsNull`].

pub mod aggregate;
mod column_page;
mod compare;
mod filter;
mod index_rows;
mod key_range;
mod key_table;
mod lines;
mod mask;
mod page_test;
mod predicate;
#[cfg(test)]
#[allow(clippy::unwrap_used, missing_docs)]
mod random;
mod ranges;
mod read_rows;
mod run;
mod stretches;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod test_segment;
#[cfg(test)]
mod tests;
mod unpack;

pub use column_page::{ColumnPage, NullBits};
pub use filter::{Filter, PageFilter};
pub use index_rows::bound_by_index;
pub use key_range::{bound_columns, equal_columns};
pub use key_table::{KeyRange, KeyTable};
pub use lines::{Quotes, SegmentLines, Style};
pub use mask::{BlockMask, Selection};
pub use predicate::{Accept, Predicate, Test, may_match};
pub use read_rows::{Row, read_rows};
pub use run::{PageQueue, PageRef, run};
pub use stretches::{Stretch, stretches};
