//! Sheets of books (`.xlsx`) as lines of text.
//!
//! ```text
//!        A     B            C
//!   1   id   name     since          "id","name","since"
//!   2    7   Ann   2026-01-31   ->   7,"Ann",2026-01-31
//!   3    8         2026-02-01        8,,2026-02-01
//! ```
//!
//! A row of the sheet is a line of the text, and the other way round: line ends within cells are written as `\n`. Texts stand in
//! quotes, all else is bare: numbers with the digits that the book has, dates and times by the format of their cell, `true` and
//! `false`, errors such as `#N/A`. A cell without a value is nothing.
//!
//! Invariant: nothing here opens a file or knows what a zip is; parts come by [`Parts`]. No bytes panic. What is held is the
//! table of texts that cells share, the formats of cells, one row, and one element of XML, each with a limit.
//!
//! Source: ECMA-376-1:2016, parts 18.2 (workbook), 18.3 (worksheets), 18.4 (shared strings), 18.8 (styles).

mod area;
mod book;
mod cells;
mod entities;
mod fault;
mod kind;
mod lines;
mod serial;
mod texts;
mod used;
mod xml;

pub use area::{Area, cell_name};
pub use book::{Book, Parts, Sheet, WORKBOOK};
pub use lines::{ERRORS, SheetLines};
pub use used::{Used, used_area};
