//! The commands, a module each: flags in, output out.

pub mod demo;
pub mod inspect;
pub mod load;
pub mod sql;
