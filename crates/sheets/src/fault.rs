//! What is wrong with a book, with its place.

use coload_types::{Error, Place};

/// An error that names the book, or a part of it.
pub fn damaged(name: &str, text: impl std::fmt::Display) -> Error {
    let place = Place { file: name.to_owned(), line: 0, byte: 0, field: 0 };
    Error::Input { place: Box::new(place), text: format!("not a valid workbook: {text}") }
}

/// An error of the data at a place in a part of the book.
pub fn damaged_at(name: &str, byte: u64, text: impl std::fmt::Display) -> Error {
    let place = Place { file: name.to_owned(), line: 0, byte, field: 0 };
    Error::Input { place: Box::new(place), text: format!("not a valid workbook: {text}") }
}
