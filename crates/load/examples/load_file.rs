//! Loads one file: `load_file FILE SCHEMA.sql STORE THREADS`, and prints the report.
#![allow(clippy::print_stdout)]

use coload_ddl::parse_create_table;
use coload_load::{Hooks, LoadRequest, Resources, load};
use coload_source::{Dialect, Trailing, expand_inputs};
use coload_store::Store;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let (name, schema) = parse_create_table(&std::fs::read_to_string(&args[2])?)?;
    let dialect = Dialect { delimiter: b'|', trailing: Trailing::Delimiter, ..Dialect::default() };
    let request = LoadRequest::new(expand_inputs(&args[1..2])?, name, schema, dialect);
    let mut resources = Resources { threads: args[4].parse()?, ..Resources::default() };
    if let Some(memory) = args.get(5) {
        resources.memory = memory.parse()?;
    }
    let report = load(&request, &resources, &Hooks::default(), &Store::create_or_open(&args[3])?)?;
    println!(
        "{} rows, {:.3} s wall, {:.3} s cpu, {} MB stored, {} MiB peak, {} partitions, {} segments",
        report.rows(),
        report.wall.as_secs_f64(),
        report.cpu.as_secs_f64(),
        report.bytes_stored / 1_000_000,
        report.peak_memory >> 20,
        report.partitions,
        report.published.as_ref().map_or(0, |shown| shown.segments)
    );
    for (step, time) in &report.steps {
        println!("  {:10} {:.3}", step.name(), time.as_secs_f64());
    }
    if args.len() > 6 {
        for c in &report.columns {
            println!(
                "  {:24} {:20} {:?} {:.2} bits {} bytes",
                c.name, c.codec, c.distinct, c.bits_per_value, c.bytes
            );
        }
    }
    Ok(())
}
