//! The eight TPC-H tables in `.tbl` format: `|` after every field, the last one included.
//!
//! The rows come from `tpchgen`, which gives the bytes of the reference `dbgen`.

use std::io::{self, Write};
use std::path::Path;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::blocks::write_file;

/// Part of the cache key; raise it when the bytes of any table change.
pub const VERSION: &str = "tpch 1, tpchgen 4.0.0";

/// Blocks per unit of scale factor: a block of lineitem is then about 8 MB of text.
const BLOCKS_PER_SCALE: f64 = 100.0;

/// Names of the tables, in the order in which `generate tpch` writes them.
pub const TABLES: [&str; 8] =
    ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The `CREATE TABLE` of one of [`TABLES`]; nothing for another name.
#[must_use]
pub fn schema(table: &str) -> Option<&'static str> {
    Some(match table {
        "region" => include_str!("../schemas/region.sql"),
        "nation" => include_str!("../schemas/nation.sql"),
        "supplier" => include_str!("../schemas/supplier.sql"),
        "customer" => include_str!("../schemas/customer.sql"),
        "part" => include_str!("../schemas/part.sql"),
        "partsupp" => include_str!("../schemas/partsupp.sql"),
        "orders" => include_str!("../schemas/orders.sql"),
        "lineitem" => include_str!("../schemas/lineitem.sql"),
        _ => return None,
    })
}

/// Writes one of [`TABLES`] at scale factor `scale` to `out`.
///
/// # Errors
/// `InvalidInput` for another table name; else those of [`write_file`].
pub fn generate(table: &str, scale: f64, out: &Path) -> io::Result<()> {
    let blocks = blocks_of(scale);
    macro_rules! rows_of {
        ($generator:ident, $blocks:expr) => {
            write_file(out, $blocks as u64, |block, buffer| {
                for row in $generator::new(scale, block as i32 + 1, $blocks).iter() {
                    // Writing to a Vec cannot fail.
                    let _ = writeln!(buffer, "{row}");
                }
            })
        };
    }
    match table {
        "region" => rows_of!(RegionGenerator, 1),
        "nation" => rows_of!(NationGenerator, 1),
        "supplier" => rows_of!(SupplierGenerator, 1),
        "customer" => rows_of!(CustomerGenerator, blocks),
        "part" => rows_of!(PartGenerator, blocks),
        "partsupp" => rows_of!(PartSuppGenerator, blocks),
        "orders" => rows_of!(OrderGenerator, blocks),
        "lineitem" => rows_of!(LineItemGenerator, blocks),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("\"{other}\" is not a TPC-H table; the tables are {}", TABLES.join(", ")),
        )),
    }
}

fn blocks_of(scale: f64) -> i32 {
    (scale * BLOCKS_PER_SCALE).ceil().clamp(1.0, 1e6) as i32
}
