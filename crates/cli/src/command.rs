//! The commands, a module each: flags in, output out.

pub mod cluster;
#[cfg(feature = "sql")]
pub mod demo;
pub mod export;
pub mod inspect;
pub mod load;
pub mod load_database;
pub mod load_parquet;
pub mod load_remote;
pub mod loads;
pub mod manual;
pub mod plan;
#[cfg(feature = "sql")]
pub mod serve;
pub mod share;
pub mod sniff;
#[cfg(feature = "sql")]
pub mod sql;
pub mod tune;
pub mod verify;
