//! Loads of JSON are the loads of the text of the same values: the same rows, the same rejects.

use std::io::Write;

use coload_ddl::column_sql;
use coload_load::LoadReport;
use coload_source::{GivenDialect, InputFormat, SampleEnd, UnknownKeys, sniff_json};
use coload_store::Store;
use coload_types::{Error, Value};
use coload_wire::RejectLimit;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::model::Row;
use crate::support::{Options, inputs, load, options, rows, schema, scratch, segment_bytes, write};
use crate::text::{Random, TYPES};

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Lines,
    List,
    Pretty,
    Behind,
}

const SHAPES: [Shape; 4] = [Shape::Lines, Shape::List, Shape::Pretty, Shape::Behind];

impl Shape {
    fn text(self, records: &[String]) -> String {
        match self {
            Shape::Lines => records.iter().map(|record| format!("{record}\n")).collect(),
            Shape::List => format!("[{}]", records.join(",")),
            Shape::Pretty => {
                let inner: Vec<String> =
                    records.iter().map(|record| record.replace(",\"", ",\n  \"")).collect();
                format!("[\n {}\n]\n", inner.join(",\n "))
            }
            Shape::Behind => records.concat(),
        }
    }

    fn given(self) -> GivenDialect {
        let format = match self {
            Shape::Lines => InputFormat::JsonLines,
            _ => InputFormat::Json,
        };
        GivenDialect { format: Some(format), ..GivenDialect::default() }
    }
}

/// A string of JSON.
fn string(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            '\0'..='\x1f' => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// A load of files of JSON whose columns are declared.
fn declared(dir: &TempDir, texts: &[&str], columns: &str, given: &GivenDialect) -> Options {
    let schema = schema(columns);
    let samples: Vec<_> = texts.iter().map(|text| (text.as_bytes(), SampleEnd::Whole)).collect();
    let found = sniff_json("in.json", &samples, given, Some(&schema)).unwrap();
    let paths: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| write(dir, &format!("in{number}.json"), text.as_bytes()))
        .collect();
    options(&paths, columns, found.dialect)
}

/// A load of a file whose columns are found out from its first bytes.
fn inferred(dir: &TempDir, text: &str, sample: &str, given: &GivenDialect) -> Options {
    let found = sniff_json("in.json", &[(sample.as_bytes(), SampleEnd::Cut)], given, None).unwrap();
    let path = write(dir, "in.json", text.as_bytes());
    let mut options = Options::new(inputs(&[path]), "t", found.schema, found.dialect);
    options.inferred = Some(found.forms);
    options.max_rejects = RejectLimit::Count(u64::MAX);
    options.resources.chunk_bytes = 64;
    options
}

fn store(dir: &TempDir, name: &str) -> Store {
    Store::create_or_open(dir.path().join(name)).unwrap()
}

/// What is told of rejects: lines only where those of both inputs are the same.
fn rejects(report: &LoadReport, has_lines: bool) -> Vec<String> {
    let told = report.rejects.iter().map(|r| {
        let line = if has_lines { r.place.line } else { 0 };
        format!("{line}:{} {:?} {:?} {}", r.place.field, r.column, r.value(), r.reason)
    });
    told.collect()
}

/// Columns, rows and report of a load that infers.
fn load_inferred(text: &str, sample: &str, shape: Shape) -> (String, Vec<Row>, LoadReport) {
    let dir = scratch();
    let store = store(&dir, "store");
    let report = load(&store, &inferred(&dir, text, sample, &shape.given())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let columns = snapshot.table("t").unwrap().schema.columns().iter().map(column_sql);
    (columns.collect::<Vec<_>>().join(", "), rows(&store, "t"), report)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn json_is_loaded_as_its_text_is(seed: u64, shape in prop::sample::select(SHAPES.to_vec())) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let count = random.below(4) + 1;
        let kinds: Vec<_> = (0..count).map(|_| random.of(&TYPES)).collect();
        let names = ["id", "a.b", "a.c", "long name"];
        let columns: Vec<String> =
            kinds.iter().zip(names).map(|((sql, _), name)| format!("\"{name}\" {sql}")).collect();
        let columns = columns.join(", ");
        let (mut csv, mut records) = (String::new(), Vec::new());
        for _ in 0..random.below(150) + 1 {
            let (mut line, mut top, mut inner) = (Vec::new(), Vec::new(), Vec::new());
            for ((_, texts), name) in kinds.iter().zip(names) {
                let text = random.of(texts);
                let (in_csv, in_json) = match random.below(8) {
                    0 => (String::new(), None),
                    1 => (String::new(), Some("null".to_owned())),
                    _ => (format!("\"{}\"", text.replace('"', "\"\"")), Some(string(text))),
                };
                line.push(in_csv);
                if let Some(value) = in_json {
                    match name.strip_prefix("a.") {
                        Some(key) => inner.push(format!("\"{key}\":{value}")),
                        None => top.push(format!("\"{name}\":{value}")),
                    }
                }
            }
            if count == 1 && line == [""] {
                continue;
            }
            if !inner.is_empty() {
                top.insert(random.below(top.len() + 1), format!("\"a\":{{{}}}", inner.join(",")));
            }
            if random.one_in(4) {
                top.reverse();
            }
            csv.push_str(&line.join(","));
            csv.push('\n');
            records.push(format!("{{{}}}", top.join(",")));
        }
        let text = shape.text(&records);
        let mut of_json = declared(&dir, &[&text], &columns, &shape.given());
        let path = write(&dir, "in.csv", csv.as_bytes());
        let of_text = options(&[path], &columns, coload_source::Dialect::default());
        let (as_json, as_text) = (store(&dir, "json"), store(&dir, "text"));
        let expected = load(&as_text, &of_text).unwrap();
        of_json.resources.chunk_bytes = 64 + random.below(2000);
        let found = load(&as_json, &of_json).unwrap();
        prop_assert_eq!(rows(&as_json, "t"), rows(&as_text, "t"), "{}", text);
        // A line end within quotes is one of the text.
        let has_lines = shape == Shape::Lines && !csv.contains(['\r']) && csv.lines().count() == records.len();
        prop_assert_eq!(rejects(&found, has_lines), rejects(&expected, has_lines), "{}", text);
        // Rows do not depend on threads, nor do their bytes.
        let bytes = segment_bytes(&as_json, "t");
        for threads in [1, 3] {
            let again = store(&dir, &format!("json{threads}"));
            of_json.resources.threads = threads;
            load(&again, &of_json).unwrap();
            prop_assert_eq!(segment_bytes(&again, "t"), bytes.clone(), "{} threads", threads);
        }
    }

    #[test]
    fn any_bytes_are_rows_or_rejects(
        text in prop::collection::vec(prop::sample::select(b"{}[],:\"\\0a\n \xff".to_vec()), 0..60),
        shape in prop::sample::select(SHAPES.to_vec()),
        chunk in 16..80_usize,
    ) {
        let dir = scratch();
        let mut options = declared(&dir, &["{\"a\":0}"], "a VARCHAR", &shape.given());
        let path = write(&dir, "any.json", &text);
        options.inputs = inputs(&[path]);
        options.resources.chunk_bytes = chunk;
        let store = store(&dir, "store");
        match load(&store, &options) {
            Ok(report) => prop_assert_eq!(rows(&store, "t").len() as u64, report.rows()),
            Err(error) => prop_assert!(error.to_string().contains("within a list"), "{}", error),
        }
    }
}

#[test]
fn columns_become_as_wide_as_their_values() {
    for (first, then, expected) in [
        ("7", "2.5", "DECIMAL(18,3)"),
        ("7", "123456789012345678901234567890", "DECIMAL(30,0)"),
        ("7", "\"7\"", "VARCHAR"),
        ("7", "true", "VARCHAR"),
        ("7", "[1,2]", "VARCHAR"),
        ("true", "\"true\"", "VARCHAR"),
        ("\"2024-01-02\"", "\"2024-01-02 03:04:05\"", "TIMESTAMP"),
        ("\"2024-01-02\"", "\"soon\"", "VARCHAR"),
        ("\"2024-01-02\"", "20240102", "VARCHAR"),
        ("null", "7", "VARCHAR"),
    ] {
        let record = |value: &str, id: usize| format!("{{\"id\":{id},\"x\":{value}}}");
        let mut records: Vec<String> = (0..40).map(|id| record(first, id)).collect();
        let first_records = records.clone();
        records.push(record(then, 40));
        records.push(record(first, 41));
        for shape in SHAPES {
            let text = shape.text(&records);
            let (columns, found, report) = load_inferred(&text, &shape.text(&first_records), shape);
            let expected = expected.replace("DECIMAL(18,3)", "DECIMAL(18,1)");
            let given = columns.trim_start_matches("id BIGINT, x ");
            if expected.starts_with("DECIMAL") {
                assert!(given.starts_with("DECIMAL"), "{first} then {then}: {columns}");
            } else {
                assert_eq!(given, expected, "{first} then {then}: {columns}");
            }
            assert_eq!((report.reject_count(), found.len()), (0, 42), "{first} then {then}");
            let plain = then.trim_matches('"');
            if expected == "VARCHAR" {
                assert_eq!(found[40][1], Some(Value::Bytes(plain.as_bytes().into())));
            }
        }
    }
}

/// Lists of values of one kind are lists, as wide as their elements; all others stay as they are written.
#[test]
fn lists_become_as_wide_as_their_elements() {
    for (first, then, expected, read) in [
        ("[7]", "[8, null]", "BIGINT[]", "[8, null]"),
        ("[7]", "null", "BIGINT[]", "NULL"),
        ("[7]", "[]", "BIGINT[]", "[]"),
        ("[7]", "[ -2.5,1]", "DECIMAL(38,3)[]", "[-2.500, 1.000]"),
        (
            "[7]",
            "[123456789012345678901234567890]",
            "DECIMAL(38,0)[]",
            "[123456789012345678901234567890]",
        ),
        ("[7]", "[\"7\"]", "VARCHAR", "[\"7\"]"),
        ("[7]", "\"[7]\"", "VARCHAR", "\"[7]\""),
        ("[7]", "7", "VARCHAR", "7"),
        ("[7]", "[[7]]", "VARCHAR", "[[7]]"),
        ("[7]", "[{\"a\":7}]", "VARCHAR", "[{\"a\":7}]"),
        ("[7]", "{\"a\":7}", "VARCHAR", "{\"a\":7}"),
        ("[7]", "[7,true]", "VARCHAR", "[7,true]"),
        ("[0.5,1e300]", "[0.25]", "DOUBLE[]", "[0.25]"),
        ("[0.5,1e300]", "[0.1234567890123456789]", "VARCHAR", "[0.1234567890123456789]"),
        ("[0.5,1e300]", "[\"inf\"]", "VARCHAR", "[\"inf\"]"),
        ("[\"a\"]", "[\"a\",1.50]", "VARCHAR", "[\"a\",1.50]"),
        ("[true]", "[false]", "BOOLEAN[]", "[false]"),
        ("[\"a\"]", "[\"b\\n\", \"\"]", "VARCHAR[]", "[\"b\\n\", \"\"]"),
        (
            "[\"2024-01-02\"]",
            "[\"2024-01-02 03:04:05\"]",
            "TIMESTAMP[]",
            "[\"2024-01-02 03:04:05\"]",
        ),
        ("[\"2024-01-02\"]", "[\"soon\"]", "VARCHAR", "[\"soon\"]"),
        ("[]", "[7]", "VARCHAR", "[7]"),
        ("[7,\"a\"]", "[8]", "VARCHAR", "[8]"),
    ] {
        let record = |value: &str, id: usize| format!("{{\"id\":{id},\"x\":{value}}}");
        let mut records: Vec<String> = (0..40).map(|id| record(first, id)).collect();
        let first_records = records.clone();
        records.push(record(then, 40));
        records.push(record(first, 41));
        for shape in SHAPES {
            let text = shape.text(&records);
            let (columns, found, report) = load_inferred(&text, &shape.text(&first_records), shape);
            assert_eq!(columns, format!("id BIGINT, x {expected}"), "{first} then {then}");
            assert_eq!((report.reject_count(), found.len()), (0, 42), "{first} then {then}");
            let data_type = schema(&columns).columns()[1].data_type;
            let shown = |row: usize| match &found[row][1] {
                Some(value) => value.display(data_type),
                None => "NULL".to_owned(),
            };
            assert_eq!(shown(40), read, "{first} then {then}");
            assert_eq!(shown(0), shown(41));
        }
    }
}

/// A type that was given takes what it can read, and rejects the rest with the field's text.
#[test]
fn lists_of_a_type_that_was_given_are_read_or_rejected() {
    let texts =
        ["[1, 2]", "null", "[]", "[1, \"a\"]", "[1, 2.5]", "\"[1]\"", "3", "[[1]]", "[null]"];
    let records: Vec<String> = texts.iter().map(|x| format!("{{\"x\":{x}}}")).collect();
    for shape in SHAPES {
        let dir = scratch();
        let text = shape.text(&records);
        let mut options = declared(&dir, &[&text], "x INTEGER[]", &shape.given());
        options.max_rejects = RejectLimit::Count(9);
        let store = store(&dir, "store");
        let report = load(&store, &options).unwrap();
        let shown =
            |row: &Row| row[0].as_ref().map(|v| v.display(options.schema.columns()[0].data_type));
        let found: Vec<_> = rows(&store, "t").iter().map(shown).collect();
        let expected = [Some("[1, 2]"), None, Some("[]"), Some("[null]")];
        assert_eq!(found, expected.map(|text| text.map(str::to_owned)));
        assert_eq!(report.reject_count(), 5);
    }
}

#[test]
fn what_is_no_record_is_told_with_its_place() {
    let dir = scratch();
    let text = "{\"a\":1}\n\n{\"a\":01}\n{\"a\":{\"b\":1}}\n{\"b\":1}\n{\"a\":2} 3\r\n[]\n{\"a\":3";
    let options = declared(&dir, &[text], "a BIGINT", &Shape::Lines.given());
    let report = load(&store(&dir, "store"), &options).unwrap();
    let told: Vec<_> = report
        .rejects
        .iter()
        .map(|r| {
            let raw = String::from_utf8_lossy(&r.raw).into_owned();
            (r.place.line, r.place.byte, r.column.clone().unwrap_or_default(), raw)
        })
        .collect();
    let expected = [
        (3, 9, "a", "{\"a\":01}"),
        (4, 18, "a", "{\"a\":{\"b\":1}}"),
        (5, 32, "b", "{\"b\":1}"),
        (6, 40, "(record)", "{\"a\":2} 3"),
        (7, 51, "(record)", "[]"),
        (8, 54, "a", "{\"a\":3"),
    ];
    let expected: Vec<_> = expected
        .map(|(line, byte, column, raw)| (line, byte, column.to_owned(), raw.to_owned()))
        .to_vec();
    assert_eq!(told, expected);
    assert_eq!(report.rows(), 1);
    let mut strict = options.clone();
    strict.max_rejects = RejectLimit::Count(0);
    let error = load(&store(&dir, "strict"), &strict).unwrap_err();
    assert!(matches!(error, Error::Input { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("in0.json:3") && error.contains("--max-rejects"), "{error}");
}

#[test]
fn every_truncation_is_rows_and_at_most_one_reject() {
    let records: Vec<String> =
        (0..5).map(|n| format!("{{\"a\":{n},\"b\":{{\"c\":\"x\\u00e9]\\\"\"}}}}")).collect();
    for shape in SHAPES {
        let text = shape.text(&records);
        for cut in 0..text.len() {
            let dir = scratch();
            let given = shape.given();
            let mut options = declared(&dir, &[&text], "a BIGINT, \"b.c\" VARCHAR", &given);
            options.inputs = inputs(&[write(&dir, "cut.json", &text.as_bytes()[..cut])]);
            for chunk in [16, 1 << 20] {
                options.resources.chunk_bytes = chunk;
                let store = store(&dir, &format!("store{chunk}"));
                match load(&store, &options) {
                    Ok(report) => {
                        let whole = rows(&store, "t").len() as u64;
                        assert!(whole <= 5 && report.reject_count() <= 2, "{shape:?} {cut}");
                        let is_list = matches!(shape, Shape::List | Shape::Pretty);
                        let is_cut = cut + 1 < text.len()
                            || is_list && cut > 0 && cut < text.trim_end().len();
                        assert!(
                            !is_cut || whole < 5 || report.reject_count() > 0 || !is_list,
                            "{shape:?} {cut}"
                        );
                    }
                    Err(error) => assert!(error.to_string().contains("within a list"), "{error}"),
                }
            }
        }
    }
}

#[test]
fn compressed_and_several_inputs_are_those_of_the_files() {
    let records: Vec<String> = (0..3000)
        .map(|n| format!("{{\"a\":{n},\"b\":\"{}\"}}", ["x", "y\\n", "\\u00e9"][n % 3]))
        .collect();
    for shape in SHAPES {
        let dir = scratch();
        let text = shape.text(&records);
        let plain = declared(&dir, &[&text, &text], "a BIGINT, b VARCHAR", &shape.given());
        let expected = store(&dir, "plain");
        load(&expected, &plain).unwrap();
        assert_eq!(rows(&expected, "t").len(), 6000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let bytes = gzip.finish().unwrap();
        let paths = ["in0.json.gz", "in1.json.gz"].map(|name| write(&dir, name, &bytes));
        let mut packed = plain.clone();
        packed.inputs = inputs(&paths);
        packed.resources.chunk_bytes = 1000;
        let found = store(&dir, "packed");
        load(&found, &packed).unwrap();
        assert_eq!(rows(&found, "t"), rows(&expected, "t"));
    }
}

#[test]
fn keys_that_are_ignored_are_checked() {
    let dir = scratch();
    let given = GivenDialect { unknown_keys: UnknownKeys::Ignore, ..Shape::Lines.given() };
    let text = "{\"a\":1,\"z\":[{}]}\n{\"z\":1,\"a\":2,\"z\":1}\n{\"a\":3,\"z\":[1,]}\n";
    let options = declared(&dir, &[text], "a BIGINT", &given);
    let report = load(&store(&dir, "store"), &options).unwrap();
    assert_eq!((report.rows(), report.reject_count()), (1, 2));
}

/// A record of many items that are no rows: each was told with all of the record beside it, and found by going through it.
#[test]
fn items_of_a_long_record_are_told_in_part() {
    let dir = scratch();
    let beside = "x".repeat(100_000);
    let text = format!(
        "{{\"id\":1,\"x\":\"{beside}\",\"o\":{{\"items\":[{}{{\"n\":1}},{{\"n\":\"no\"}},{{\"n\":{{}}}}]}}}}\n",
        "0,".repeat(50_000)
    );
    let given = GivenDialect {
        unnest: Some(vec!["o".to_owned(), "items".to_owned()]),
        unknown_keys: UnknownKeys::Ignore,
        ..Shape::Lines.given()
    };
    let mut options = declared(&dir, &[&text], "id BIGINT, \"o.items.n\" BIGINT", &given);
    options.max_rejects = RejectLimit::Count(100_000);
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let report = load(&store, &options).unwrap();
    assert_eq!((report.rows(), report.reject_count()), (1, 50_002));
    let first = &report.rejects[0];
    assert_eq!(first.column.as_deref(), Some("o.items[0]"));
    // The record with all that stands beside the list, of which a report has the first 64 KiB.
    assert!(first.raw.starts_with(b"{\"id\":1,\"x\":\"xxx"));
    assert_eq!(first.raw.len(), 64 << 10);
}
