//! What is found out about files, with nothing given: names and values as the program meant them that wrote the file.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

mod below;
mod exported;
mod few;
mod hostile;
mod judge;
mod made;
mod many;
mod random;
mod read;
mod strange;
mod unsplit;
mod wild;
