//! Rows of records against the tree of each.

use std::sync::Arc;

use coload_json::{
    Holds, Json, Keys, LineBreaks, Path, Read, RowReader, Rows, Rule, UnknownKeys, parse_tree,
};
use proptest::prelude::*;

use super::{cases, json, padded};

fn path(keys: &str) -> Path {
    Path { keys: keys.split('.').map(str::to_owned).collect(), holds: Holds::Value }
}

fn keys(paths: &[&str]) -> Arc<Keys> {
    Arc::new(Keys::new(paths.iter().map(|keys| path(keys)).collect()).unwrap())
}

/// The fields of the row numbered `row`.
fn fields(rows: &Rows, row: usize, count: usize) -> Vec<String> {
    let of = |field: usize| {
        let ends = &rows.ends[row * count + field..];
        String::from_utf8(rows.text[ends[0] as usize + 1..ends[1] as usize].to_vec()).unwrap()
    };
    (0..count).map(of).collect()
}

fn read(reader: &mut RowReader, rows: &mut Rows, text: &str) -> Result<usize, Rule> {
    let read = reader.read(&padded(text.as_bytes()), 0, LineBreaks::AreSpace, rows);
    read.map_err(|fault| fault.rule)
}

#[test]
fn values_are_fields_in_the_order_of_their_paths() {
    let mut reader = RowReader::new(keys(&["id", "who.name", "who.age", "x"]), UnknownKeys::Reject);
    let mut rows = Rows::default();
    let records = [
        (r#"{"id":1,"who":{"name":"Ann","age":3},"x":true}"#, ["1", "Ann", "3", "true"]),
        (r#"{"x": 1.50, "who" : {"age":4, "name":"B"}, "id":2}"#, ["2", "B", "4", "1.50"]),
        (r#"{"who":null,"x":"\"q\""}"#, ["", "", "", "\"\"\"q\"\"\""]),
        (r#"{}"#, ["", "", "", ""]),
        (r#"{"who":{},"x":""}"#, ["", "", "", "\"\""]),
        (r#"{"x":"é\n\ud83d\ude00","id":null}"#, ["", "", "", "é\n\u{1f600}"]),
        (r#"{"x":[1, {"a":"b"}],"\u0069d":7}"#, ["7", "", "", "[1, {\"a\":\"b\"}]"]),
        (r#"{"x":"a\r"}"#, ["", "", "", "a\r\r"]),
        (r#"{"x":7,"id":"a\r"}"#, ["a\r", "", "", "7"]),
    ];
    for (number, (text, expected)) in records.iter().enumerate() {
        assert_eq!(read(&mut reader, &mut rows, text), Ok(text.len()), "{text}");
        assert_eq!(fields(&rows, number, 4), *expected, "{text}");
    }
    let (text, ends) = (rows.text.clone(), rows.ends.clone());
    for (record, rule) in [
        (r#"{"id":1,"id":2}"#, Rule::TwiceTheKey),
        (r#"{"x":1,"id":1,"id":2}"#, Rule::TwiceTheKey),
        (r#"{"who":{"age":1},"who":null}"#, Rule::TwiceTheKey),
        (r#"{"who":{"age":1,"age":1}}"#, Rule::TwiceTheKey),
        (r#"{"id":1,"y":2}"#, Rule::UnknownKey),
        (r#"{"who":{"age":1,"y":2}}"#, Rule::UnknownKey),
        (r#"{"who":5}"#, Rule::NoObjectHere),
        (r#"{"who":[1,]}"#, Rule::TrailingComma),
        (r#"{"id":1,}"#, Rule::TrailingComma),
        (r#"{"id":1 "x":2}"#, Rule::NoComma),
        (r#"{"id":nul}"#, Rule::NoValue),
        (r#"[1]"#, Rule::NoObject),
    ] {
        assert_eq!(read(&mut reader, &mut rows, record), Err(rule), "{record}");
        assert_eq!((&rows.text, &rows.ends), (&text, &ends), "{record}");
    }
}

#[test]
fn fields_are_written_as_their_columns_read_them() {
    let holds_json = Path { holds: Holds::Json, ..path("j") };
    let keys = Arc::new(Keys::new(vec![path("t"), path("n"), path("o"), holds_json]).unwrap());
    let mut reader = RowReader::new(keys, UnknownKeys::Ignore);
    reader.read_as(1, Read::Typed);
    reader.read_as(2, Read::Nothing);
    reader.read_as(3, Read::Typed);
    let mut rows = Rows::default();
    let text = r#"{"t":"12","n":"12","o":"12","j":"1\"2","z":[{}]}"#;
    assert_eq!(read(&mut reader, &mut rows, text), Ok(text.len()));
    assert_eq!(fields(&rows, 0, 4), ["12", "\"\"\"12\"\"\"", "", "\"\"\"1\\\"\"2\"\"\""]);
    for text in [r#"{"z":1,"z":2}"#, r#"{"z":1,"\u007a":2}"#, r#"{"o":"\ud800"}"#, r#"{"z":07}"#] {
        assert!(read(&mut reader, &mut rows, text).is_err(), "{text}");
    }
}

#[test]
fn paths_that_clash_are_refused() {
    let new = |paths: &[&str]| Keys::new(paths.iter().map(|keys| path(keys)).collect());
    assert!(
        new(&["a", "a"]).is_err() && new(&["a", "a.b"]).is_err() && new(&["a.b", "a"]).is_err()
    );
    assert!(Keys::new(vec![Path::default()]).is_err());
    assert!(new(&["a.b", "a.c", "b.a"]).is_ok());
}

/// What a field is, by the tree.
fn expected(tree: &Json<'_>, keys: &[String]) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut value = tree;
    for key in keys {
        let Json::Object(entries, _) = value else { return String::new() };
        match entries.iter().find(|(name, _)| **name == *key.as_bytes()) {
            Some((_, inner)) => value = inner,
            None => return String::new(),
        }
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match value {
        Json::Null => String::new(),
        Json::Bool(is) => is.to_string(),
        Json::Number(raw) | Json::List(raw) | Json::Object(_, raw) => text(raw),
        Json::Text(bytes) if bytes.is_empty() || bytes[0] == b'"' => quote(&text(bytes)),
        Json::Text(bytes) => text(bytes),
    }
}

fn reader_paths() -> Vec<Path> {
    ["a", "b.c", "b.d", "long_name_of_a_key_that_fits__"].iter().map(|keys| path(keys)).collect()
}

/// Values of every length, and what is none.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{0,75}".prop_map(|text| format!("\"{text}\"")),
        1 => "[a-z]{25,70}(\\\\n|\\\\\"|\u{1})[a-z]{0,40}".prop_map(|text| format!("\"{text}\"")),
        3 => "-?[0-9]{1,34}(\\.[0-9]{0,34})?([eE][+-]?[0-9]{0,3})?",
        2 => prop::sample::select(vec!["true", "false", "null", "nul", "truex", "\"\"", "\"a\\n\"", "\"\"\"", "[]", "{}", ""])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Records that are as usual but for one thing or another.
    #[test]
    fn usual_rows_are_those_of_the_tree(
        values in prop::collection::vec(prop::collection::vec(value(), 4), 1..5),
        space in prop::sample::select(vec!["", "", " ", "  ", "\n"]),
        comma in prop::sample::select(vec![",", ",", ", ", ",\n ", " ,", ",,"]),
        end in prop::sample::select(vec!["}", "}", " }", ",}", ", }", "]"]),
    ) {
        let mut reader = RowReader::new(keys(&["a", "b.c", "b.d", "long_name_of_a_key_that_fits__"]), UnknownKeys::Reject);
        let (mut rows, mut count) = (Rows::default(), 0);
        for values in values {
            let [a, c, d, e] = &values[..] else { continue };
            let text = format!(
                "{{\"a\":{space}{a}{comma}\"b\":{space}{{\"c\":{c}{comma}\"d\":{space}{d}}}{comma}\"long_name_of_a_key_that_fits__\":{e}{end}"
            );
            let padded = padded(text.as_bytes());
            let found = reader.read(&padded, 0, LineBreaks::AreSpace, &mut rows);
            match parse_tree(&padded, 0, LineBreaks::AreSpace) {
                Ok((tree, end)) => {
                    prop_assert_eq!(found, Ok(end), "{}", text);
                    let expected: Vec<String> =
                        reader_paths().iter().map(|path| expected(&tree, &path.keys)).collect();
                    prop_assert_eq!(fields(&rows, count, 4), expected, "{}", text);
                    count += 1;
                }
                Err(_) => prop_assert!(found.is_err(), "{}", text),
            }
            prop_assert_eq!(rows.ends.len(), count * 4 + 1);
        }
    }

    #[test]
    fn rows_are_those_of_the_tree(texts in prop::collection::vec(json(), 1..6), cut: u16) {
        let paths = ["k1.k2", "k0", "k1.k0", "k3", "k4.k4.k1"];
        let keys = keys(&paths);
        let mut reader = RowReader::new(Arc::clone(&keys), UnknownKeys::Ignore);
        let (mut rows, mut count) = (Rows::default(), 0);
        for text in texts {
            let padded = padded(text.as_bytes());
            let tree = parse_tree(&padded, 0, LineBreaks::AreSpace);
            let found = reader.read(&padded, 0, LineBreaks::AreSpace, &mut rows);
            match (tree, found) {
                (Ok((tree @ Json::Object(..), end)), Ok(found)) => {
                    prop_assert_eq!(end, found);
                    let expected: Vec<String> =
                        keys.paths().iter().map(|path| expected(&tree, &path.keys)).collect();
                    prop_assert_eq!(fields(&rows, count, paths.len()), expected, "{}", text);
                    count += 1;
                }
                (Ok((Json::Object(..), _)), Err(fault)) => prop_assert_eq!(fault.rule, Rule::NoObjectHere),
                (Ok(_), found) => prop_assert_eq!(found.map_err(|fault| fault.rule), Err(Rule::NoObject)),
                (Err(_), found) => prop_assert!(found.is_err(), "{}", text),
            }
            prop_assert_eq!(rows.ends.len(), count * paths.len() + 1);
            // What is cut is no record, and leaves nothing.
            let cut = usize::from(cut) % text.len();
            let short = [&text.as_bytes()[..cut], &[0; coload_json::PADDING]].concat();
            prop_assert!(reader.read(&short, 0, LineBreaks::AreSpace, &mut rows).is_err());
            prop_assert_eq!(rows.ends.len(), count * paths.len() + 1);
        }
    }
}
