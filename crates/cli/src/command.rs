//! The commands, a module each: flags in, output out.

#[cfg(feature = "sql")]
pub mod demo;
pub mod inspect;
pub mod load;
#[cfg(feature = "sql")]
pub mod sql;
