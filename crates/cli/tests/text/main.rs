//! The command `coload` on text of all kinds; needs no SQL.
#![allow(clippy::unwrap_used)]

#[path = "../it/support.rs"]
#[allow(dead_code)]
mod support;

#[path = "../it/drivers.rs"]
mod drivers;
#[path = "../it/exported_tables.rs"]
mod exported_tables;

mod arrow;
mod avro;
mod checks;
mod commands;
mod conflicts;
mod dos;
mod exported;
mod fixed_width;
mod json;
#[cfg(not(feature = "sql"))]
mod no_sql;
mod parquet_input;
mod places;
mod plan;
mod set_columns;
mod shares;
mod sheets;
mod union;
mod unnest;
