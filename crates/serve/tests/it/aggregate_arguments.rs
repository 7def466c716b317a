//! Aggregates of values of every type: an answer, or an error that says what is wrong.
//!
//! Symptom that led here: `median('a')` was an internal error with the engine's wish to be told of it.

use coload_serve::arrow::array::AsArray;
use coload_types::Error;

use crate::support::Scratch;

const COLUMNS: [&str; 15] = [
    "b BOOLEAN",
    "s SMALLINT",
    "i INTEGER",
    "n BIGINT",
    "d DECIMAL(9,2)",
    "w DECIMAL(38,2)",
    "r REAL",
    "f DOUBLE",
    "day DATE",
    "clock TIME",
    "ts TIMESTAMP",
    "tz TIMESTAMP WITH TIME ZONE",
    "v VARCHAR",
    "bin BINARY",
    "u UUID",
];

const ROW: &str = "true, 1, 2, 3, 4.5, 5.5, 1.5, 2.5, '2024-01-01', '12:00:00', '2024-01-01 00:00:00', \
    '2024-01-01 00:00:00+00', 'a', x'00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'";

fn names(scratch: &Scratch) -> Vec<String> {
    let batches = scratch.database.query("SHOW FUNCTIONS").unwrap();
    let of = |batch: &coload_serve::arrow::array::RecordBatch| -> Vec<String> {
        let text = |column: usize| {
            let texts = batch.column(column);
            let texts = coload_serve::arrow::compute::cast(
                texts,
                &coload_serve::arrow::datatypes::DataType::Utf8,
            );
            texts
                .unwrap()
                .as_string::<i32>()
                .iter()
                .map(|t| t.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let pairs = text(0).into_iter().zip(text(1));
        pairs
            .filter(|(_, kind)| kind.as_deref() == Some("AGGREGATE"))
            .filter_map(|(n, _)| n)
            .collect()
    };
    batches.iter().flat_map(of).collect()
}

#[test]
fn aggregates_of_any_type_answer_or_say_what_they_take() {
    let scratch = Scratch::new();
    let lists = ["b", "n", "d", "f", "day", "v"].map(|of| {
        let declared = COLUMNS.iter().find(|column| column.starts_with(&format!("{of} "))).unwrap();
        format!("l{of} {}[]", declared.split_once(' ').unwrap().1)
    });
    let columns = [COLUMNS.map(str::to_owned).to_vec(), lists.to_vec()].concat();
    scratch.database.query(&format!("CREATE TABLE t ({})", columns.join(", "))).unwrap();
    let values = format!("{ROW}, [true], [1], [1.5], [2.5], [DATE '2024-01-01'], ['a']");
    scratch.database.query(&format!("INSERT INTO t VALUES ({values}), ({values})")).unwrap();
    let columns: Vec<&str> = columns.iter().filter_map(|column| column.split(' ').next()).collect();
    let functions = names(&scratch);
    assert!(functions.iter().any(|name| name == "median"), "{functions:?}");
    let mut wrong = Vec::new();
    for name in &functions {
        let arguments = columns.iter().flat_map(|one| [(*one).to_owned(), format!("{one}, {one}")]);
        let literals = ["'a'", "NULL", "NULL, NULL", "INTERVAL '1 day'", "*", ""];
        for arguments in arguments.chain(literals.map(str::to_owned)) {
            let sql = format!("SELECT {name}({arguments}) FROM t");
            let Err(error) = scratch.database.query(&sql) else { continue };
            let text = error.to_string();
            let is_ours = matches!(error, Error::Invalid(_) | Error::Limit(_));
            if !is_ours || text.contains("nternal error") || text.contains("panicked") {
                wrong.push(format!("{sql}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
