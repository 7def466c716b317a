//! Compressed inputs, made by the formats' libraries, as text.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod archives;
mod damage;
mod formats;
mod sheets;
mod support;
mod windows;
