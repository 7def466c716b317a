//! Tests of whole loads, from text to the rows that a store gives back.
//!
//! `model` reads the same text the slow, obvious way; `text` makes it from a seed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod any_bytes;
mod arrow;
mod arrow_damage;
mod arrow_files;
mod arrow_nested;
mod avro_damage;
mod avro_files;
mod avro_input;
mod bad_input;
mod broken_files;
mod child;
mod conflicts;
mod crash;
mod dirty;
mod dirty_model;
mod drawn;
mod dry_run;
mod encodings;
mod json;
mod key_table;
mod keyed;
mod large_text;
mod mapping;
mod merge;
mod model;
mod options;
mod parquet;
mod parquet_damage;
mod parquet_files;
mod parquet_input;
mod parquet_pruning;
mod pipeline;
mod reject_parts;
mod spaces;
mod support;
mod text;
mod typed_loads;
mod typed_shares;
mod typed_values;
mod widen;
