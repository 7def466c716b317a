//! Columns that are not the fields in their order give the rows that the same text with the fields in
//! the order of the columns gives.

use coload_load::LoadReport;
use coload_source::{Dialect, Policies, Ragged};
use coload_store::Store;
use coload_wire::FieldMap;
use proptest::prelude::*;

use crate::model::Row;
use crate::support::{load, options, rows, scratch, write};

const TYPES: [&str; 4] = ["INTEGER", "VARCHAR", "DECIMAL(9,2)", "DATE"];

/// A field that fits its type, is NULL, or fits nothing.
fn field(kind: usize) -> impl Strategy<Value = String> {
    let good = match kind {
        0 => "-?[0-9]{1,6}",
        1 => "[a-z]{0,3}|\"[a-z,\n]{1,5}\"",
        2 => "[0-9]{1,4}\\.[0-9]{2}",
        _ => "20[0-9]{2}-0[1-9]-1[0-9]",
    };
    prop_oneof![12 => good, 2 => Just(String::new()), 1 => Just("x y".to_owned())]
}

fn record() -> impl Strategy<Value = [String; 4]> {
    [0, 1, 2, 3].map(field)
}

/// The text of records whose fields stand in an order.
fn text(records: &[[String; 4]], order: &[usize]) -> String {
    let line = |record: &[String; 4]| {
        let fields: Vec<&str> = order.iter().map(|field| record[*field].as_str()).collect();
        fields.join(",") + "\n"
    };
    records.iter().map(line).collect()
}

fn columns(kinds: &[usize]) -> String {
    let column = |kind: &usize| format!("c{kind} {}", TYPES[*kind]);
    kinds.iter().map(column).collect::<Vec<_>>().join(", ")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn mapped_columns_give_the_rows_of_reordered_fields(
        records in prop::collection::vec(record(), 0..400),
        order in Just(vec![0usize, 1, 2, 3]).prop_shuffle(),
        taken in 1usize..5, chunk_bytes in 40usize..4000, threads in 1usize..4, pad: bool,
    ) {
        let dir = scratch();
        let kinds = &order[..taken];
        let mapped = write(&dir, "mapped.csv", text(&records, &[0, 1, 2, 3]).as_bytes());
        let plain = write(&dir, "plain.csv", text(&records, kinds).as_bytes());
        let ragged = if pad { Ragged::Pad } else { Ragged::Reject };
        let policies = Policies { ragged, ..Policies::default() };
        let dialect = Dialect { policies, ..Dialect::default() };
        let run = |path, name: &str, fields| -> (Vec<Row>, LoadReport) {
            let mut options =
                options(&[path], &columns(kinds), dialect.clone()).with_threads(threads);
            options.fields = fields;
            options.resources.chunk_bytes = chunk_bytes;
            let store = Store::create_or_open(dir.path().join(name)).unwrap();
            let report = load(&store, &options).unwrap();
            (rows(&store, "t"), report)
        };
        let map = FieldMap { count: 4, of_column: kinds.to_vec() };
        let (found, report) = run(mapped, "mapped", Some(map));
        let (expected, model) = run(plain, "plain", None);
        // Fields that are not read may hold newlines, so lines differ.
        prop_assert_eq!(found, expected);
        prop_assert_eq!(report.reject_count(), model.reject_count());
        let told = |report: &LoadReport| -> Vec<_> {
            let tell = |r: &coload_source::Reject| (r.column.clone(), r.value().to_vec());
            report.rejects.iter().map(tell).collect()
        };
        prop_assert_eq!(told(&report), told(&model));
    }
}
