//! The command `coload` as a user meets it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../examples/load_and_query.rs"]
mod load_and_query;

mod answers;
mod avro;
mod bad_input;
mod drivers;
mod exported;
mod exported_in_order;
mod exported_tables;
mod faults;
mod flags;
mod guides;
mod in_place;
mod inputs;
mod kill;
mod lists;
mod many_inputs;
mod memory;
mod memory_served;
mod parquet;
mod parquet_faults;
mod parquet_input;
mod random;
mod rejects_file;
mod reports;
mod resume;
mod row_sql;
mod row_sql_server;
mod serve;
mod shares;
mod shell;
mod sql;
mod support;
mod union_served;
mod union_typed;

#[test]
fn the_example_of_the_library_runs() {
    load_and_query::main().unwrap();
}
