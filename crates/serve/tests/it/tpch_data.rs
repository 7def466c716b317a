//! The tables of TPC-H at scale factor 0.1, made by tpchgen and loaded as any file.

use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::path::Path;

use coload_load::{Hooks, LoadRequest, Resources, load as load_files};
use coload_source::{Dialect, Trailing, expand_inputs};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::support::Scratch;

const SCALE: f64 = 0.1;

/// Makes and loads all tables.
pub fn load(scratch: &Scratch) {
    let schema = include_str!("../tpch/schema.sql");
    let dir = scratch.dir.path();
    write(dir, "region", RegionGenerator::new(SCALE, 1, 1).iter());
    write(dir, "nation", NationGenerator::new(SCALE, 1, 1).iter());
    write(dir, "part", PartGenerator::new(SCALE, 1, 1).iter());
    write(dir, "supplier", SupplierGenerator::new(SCALE, 1, 1).iter());
    write(dir, "partsupp", PartSuppGenerator::new(SCALE, 1, 1).iter());
    write(dir, "customer", CustomerGenerator::new(SCALE, 1, 1).iter());
    write(dir, "orders", OrderGenerator::new(SCALE, 1, 1).iter());
    write(dir, "lineitem", LineItemGenerator::new(SCALE, 1, 1).iter());
    for statement in coload_serve::split_statements(schema).complete {
        let (table, schema) = coload_serve::parse_create_table(&statement).unwrap();
        let path = dir.join(format!("{table}.tbl")).display().to_string();
        let dialect = Dialect {
            delimiter: b'|',
            quote: None,
            trailing: Trailing::Delimiter,
            ..Dialect::default()
        };
        let inputs = expand_inputs(&[path]).unwrap();
        let request = LoadRequest::new(inputs, table, schema, dialect);
        // Small chunks, so that tables have several pages, some with codes and some without.
        let resources = Resources { chunk_bytes: 1 << 20, ..Resources::default() };
        load_files(&request, &resources, &Hooks::default(), scratch.database.store()).unwrap();
    }
}

fn write<T: Display>(dir: &Path, table: &str, rows: impl Iterator<Item = T>) {
    let file = std::fs::File::create(dir.join(format!("{table}.tbl"))).unwrap();
    let mut out = BufWriter::new(file);
    for row in rows {
        writeln!(out, "{row}").unwrap();
    }
    out.flush().unwrap();
}
