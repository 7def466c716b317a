//! Records of JSON as fields of text.
//!
//! ```text
//!   {"id": 7, "who": {"name": "Ann"}}   ->   7 | Ann        one field for each path: id, who.name
//! ```
//!
//! A record is an object. [`Splitter`] finds where records end in documents of any shape, [`RowReader`] reads the values of
//! known paths in one pass over a record, and writes them as fields, which are then read column by column like those of any text.
//! All of RFC 8259 is checked, and that no key of an object comes twice; what is wrong is a [`Fault`].
//!
//! Invariant: parsers are handed slices with [`PADDING`] bytes behind them. Nothing here does I/O, and no bytes panic.
//!
//! Source: RFC 8259; Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 28, 2019, of which the looks at
//! many bytes at once are kept, and a first pass over all structure is not: most keys come where they came before.

mod close;
mod fault;
mod keys;
mod masks;
mod number;
mod path;
mod row;
mod space;
mod split;
mod string;
mod tree;
mod unnest;
mod value;

pub use fault::{Fault, Rule};
pub use keys::{Holds, Keys, Path};
pub use masks::PADDING;
pub use path::path_at;
pub use row::{Read, RowReader, Rows, UnknownKeys};
pub use space::LineBreaks;
pub use split::{Between, Item, Splitter};
pub use tree::{Json, parse_tree};
pub use unnest::{Item as ListItem, Items, ListReader};
pub use value::{DEPTH_MAX, check_value};
