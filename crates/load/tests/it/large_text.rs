//! Records that are long beside the memory: text that comes in order is parsed where it stands, and gives what a file gives.

use std::io::Write;

use coload_load::LoadReport;
use coload_source::Dialect;
use coload_store::Store;

use crate::model::Row;
use crate::support::{load, options, rows, scratch, write};

/// The least that a load can do with: records of more than half a MiB are long.
const MEMORY: usize = 16 << 20;

fn loaded(name: &str, bytes: &[u8], threads: usize) -> (Vec<Row>, LoadReport) {
    let dir = scratch();
    let path = write(&dir, name, bytes);
    let mut options =
        options(std::slice::from_ref(&path), "a BIGINT, b VARCHAR, c VARCHAR", Dialect::default());
    (options.resources.memory, options.resources.threads) = (MEMORY, threads);
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let report = load(&store, &options).unwrap();
    (rows(&store, "t"), report)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

#[test]
fn long_records_of_text_in_order_are_those_of_a_file() {
    let long = |bytes: usize, with: &str| {
        format!("{}{with}{}", "ab ".repeat(bytes / 6), "cd ".repeat(bytes / 6))
    };
    let records = [
        "1,short,x".to_owned(),
        format!("2,\"{}\",x", long(700_000, "\n\"\",")),
        format!("3,{},x", long(1_500_000, "")),
        format!("not a number,{},x", long(2_000_000, "")),
        "4,short,x\n5,short,y".to_owned(),
        format!("6,{},x,too,many", long(600_000, ",")),
        format!("7,{},last", long(3_000_000, "")),
    ];
    for (end, first) in [("", 0), ("\n", 1), ("\r\n", 3)] {
        let line_end = if end == "\r\n" { "\r\n" } else { "\n" };
        let text = records[first..].join(line_end) + end;
        let (expected, of_file) = loaded("in.csv", text.as_bytes(), 1);
        assert_eq!(expected.len() as u64 + of_file.reject_count(), 8 - first as u64);
        for threads in [1, 3] {
            let (found, report) = loaded("in.csv.gz", &gzip(text.as_bytes()), threads);
            assert!(found == expected, "{end:?} {threads}");
            let places = |report: &LoadReport| -> Vec<(u64, u64)> {
                report.rejects.iter().map(|r| (r.place.line, r.place.byte)).collect()
            };
            assert_eq!(places(&report), places(&of_file), "{end:?} {threads}");
        }
    }
}
