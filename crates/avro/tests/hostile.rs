//! Small files that would take much time or memory.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use coload_arrow::Fault;
use coload_avro::{Layout, Schema, read_rows};

fn layout(schema: &str) -> Result<Layout, Fault> {
    Layout::new(Schema::parse(schema.as_bytes())?)
}

/// A record of these fields.
fn record(fields: &[String]) -> String {
    let mut all = String::new();
    for (number, of) in fields.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(all, r#"{comma}{{"name":"c{number}","type":{of}}}"#).unwrap();
    }
    format!(r#"{{"type":"record","name":"r","fields":[{all}]}}"#)
}

fn list_of(items: &str) -> String {
    format!(r#"{{"type":"array","items":{items}}}"#)
}

fn told(of: Result<Layout, Fault>) -> String {
    match of {
        Err(Fault::Unknown(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Records of two records each, sixty levels of them, the lowest of which are NULL: whoever passed over one that is not read went
/// to each of these.
#[test]
fn values_without_bytes_are_not_gone_through() {
    let lowest = r#"{"type":"record","name":"t0","fields":[{"name":"x","type":"null"}]}"#;
    let mut fields = vec![list_of(lowest)];
    for level in 1..60 {
        let below = level - 1;
        fields.push(list_of(&format!(
            r#"{{"type":"record","name":"t{level}","fields":[{{"name":"a","type":"t{below}"}},{{"name":"b","type":"t{below}"}}]}}"#
        )));
    }
    // An item with such values before and behind one that has bytes.
    fields.push(list_of(
        r#"{"type":"record","name":"mixed","fields":[{"name":"a","type":"t59"},{"name":"n","type":"int"},{"name":"b","type":"t59"}]}"#,
    ));
    let layout = layout(&record(&fields)).unwrap();
    // 59 lists without items, one of an item without bytes, one of two numbers.
    let mut raw = vec![0; 59];
    raw.extend([2, 0, 4, 10, 12, 0]);
    let read = read_rows(&layout, &[false; 61], (&raw, 1), 1 << 20).unwrap();
    assert!(read.iter().all(Option::is_none));
    let cut = read_rows(&layout, &[false; 61], (&raw[..64], 1), 1 << 20);
    assert!(matches!(cut, Err(Fault::Damaged(_))));
    // As text they would be long, which is told.
    let mut only = [false; 61];
    only[59] = true;
    assert!(matches!(read_rows(&layout, &only, (&raw, 1), 1 << 20), Err(Fault::TooLarge(_))));
}

/// A record that is named stands in many places, each with the names of those around it.
#[test]
fn names_of_columns_have_a_limit() {
    let wide: Vec<String> = (0..100).map(|_| "\"int\"".to_owned()).collect();
    let long = "n".repeat(1 << 20);
    let around = format!(
        r#"{{"type":"record","name":"around","fields":[{{"name":"{long}","type":{}}}]}}"#,
        record(&wide)
    );
    assert!(told(layout(&around)).contains("names and symbols"));
}

#[test]
fn symbols_of_columns_have_a_limit() {
    let symbols: Vec<String> = (0..100_000).map(|n| format!("\"s{n}\"")).collect();
    let symbols = symbols.join(",");
    let mut fields = vec![format!(r#"{{"type":"enum","name":"e","symbols":[{symbols}]}}"#)];
    fields.extend((0..60).map(|_| "\"e\"".to_owned()));
    assert!(told(layout(&record(&fields))).contains("names and symbols"));
}

/// What a union is of is told with each column of it.
#[test]
fn kinds_of_columns_have_a_limit() {
    let union = vec!["\"int\""; 100_000].join(",");
    let inner =
        format!(r#"{{"type":"record","name":"u","fields":[{{"name":"x","type":[{union}]}}]}}"#);
    let mut fields = vec![inner];
    fields.extend((0..150).map(|_| "\"u\"".to_owned()));
    assert!(told(layout(&record(&fields))).contains("names and symbols"));
}

/// A namespace is that of all types within.
#[test]
fn names_of_types_have_a_limit() {
    let enums = |count: usize| {
        let of = |n: usize| format!(r#"{{"type":"enum","name":"e{n}","symbols":["A"]}}"#);
        record(&(0..count).map(of).collect::<Vec<_>>())
    };
    let within = |space: &str, count: usize| {
        enums(count).replacen(r#""name":"r""#, &format!(r#""name":"r","namespace":"{space}""#), 1)
    };
    assert_eq!(layout(&within(&"s".repeat(4000), 100)).unwrap().fields.len(), 100);
    assert!(told(layout(&within(&"s".repeat(5000), 1))).contains("with its namespace"));
    assert!(told(layout(&within(&"s".repeat(4000), 17_000))).contains("names of its types"));
    // What is named and is not there may be long as well.
    let missing = format!("[\"{}\"]", "m".repeat(1 << 20));
    assert!(told(layout(&missing)).len() < 200);
}

/// Each level of a value has a name, and the text ends where it is too long.
#[test]
fn names_in_values_count() {
    let long = "n".repeat(1 << 16);
    let itself = list_of(&format!(
        r#"{{"type":"record","name":"i","fields":[{{"name":"{long}","type":["null","i"]}}]}}"#
    ));
    let layout = layout(&record(&[itself])).unwrap();
    let mut raw = vec![2];
    raw.extend([2; 40]);
    raw.extend([0, 0]);
    let is_read = [true];
    assert!(matches!(
        read_rows(&layout, &is_read, (&raw, 1), 1 << 20),
        Err(Fault::TooLarge(bytes)) if bytes < 2 << 20
    ));
    assert!(read_rows(&layout, &is_read, (&raw, 1), 16 << 20).is_ok());
}
