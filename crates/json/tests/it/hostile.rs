//! Records that are deep, long, or not what they look like.

use std::sync::Arc;

use coload_json::{
    DEPTH_MAX, Holds, Item, Keys, LineBreaks, ListReader, Path, RowReader, Rows, Rule, Splitter,
    UnknownKeys, parse_tree,
};

use super::padded;

fn keys() -> Arc<Keys> {
    let path = |keys: &[&str]| Path {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        holds: Holds::Value,
    };
    Arc::new(Keys::new(vec![path(&["a"]), path(&["b", "c"])]).unwrap())
}

/// The row of a record, or what is wrong; the tree says the same.
fn read(record: &[u8]) -> Result<Rows, Rule> {
    let text = padded(record);
    let mut rows = Rows::default();
    let mut reader = RowReader::new(keys(), UnknownKeys::Ignore);
    let read = reader.read(&text, 0, LineBreaks::AreSpace, &mut rows);
    let tree = parse_tree(&text, 0, LineBreaks::AreSpace);
    match (read, tree) {
        (Ok(end), Ok((_, of))) => {
            assert_eq!((end, of), (record.len(), record.len()));
            Ok(rows)
        }
        (Err(fault), Err(_)) => Err(fault.rule),
        (read, tree) => panic!("{read:?}, and the tree {:?}", tree.map(|(_, end)| end)),
    }
}

/// The record counts, and so do the objects around a value that is read.
#[test]
fn depth_is_that_of_the_record() {
    for (before, around, behind) in [
        ("{\"a\":", 1, "}"),
        ("{\"x\":", 1, "}"),
        ("{\"b\":{\"c\":", 2, "}}"),
        ("{\"b\":{\"x\":", 2, "}}"),
    ] {
        for (open, close) in [("[", "]"), ("{\"k\":", "}")] {
            let of = |depth: usize| {
                let (open, close) = (open.repeat(depth), close.repeat(depth));
                format!("{before}{open}1{close}{behind}")
            };
            let most = DEPTH_MAX - around;
            assert!(read(of(most).as_bytes()).is_ok(), "{before}");
            assert_eq!(read(of(most + 1).as_bytes()).err(), Some(Rule::TooDeep), "{before}");
            assert_eq!(read(of(100_000).as_bytes()).err(), Some(Rule::TooDeep), "{before}");
        }
    }
    let list = format!("{{\"a\":1,\"list\":{}1{}}}", "[".repeat(511), "]".repeat(511));
    let mut reader = ListReader::new(&keys(), &["list".to_owned()], UnknownKeys::Ignore).unwrap();
    let mut read = |text: &str| {
        let mut rows = Rows::default();
        let read = reader.read(
            &padded(text.as_bytes()),
            0,
            LineBreaks::AreSpace,
            &mut rows,
            &mut Default::default(),
        );
        read.map_err(|fault| fault.rule)
    };
    assert_eq!(read(&list), Ok(list.len()));
    assert_eq!(read(&list.replace("[1]", "[[1]]")), Err(Rule::TooDeep));
}

#[test]
fn keys_are_the_same_however_they_are_written() {
    for record in [
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"a":2}"#,
        r#"{"b":{"c":1,"\u0063":2}}"#,
        r#"{"b":null,"\u0062":{}}"#,
        r#"{"x/":1,"x\/":2}"#,
        r#"{"\ud83d\ude00":1,"😀":2}"#,
        r#"{"x":{"\u00e9":1,"é":2}}"#,
    ] {
        assert_eq!(read(record.as_bytes()).err(), Some(Rule::TwiceTheKey), "{record}");
    }
    // Letters that only look the same are others.
    assert!(read("{\"é\":1,\"e\u{301}\":2}".as_bytes()).is_ok());
    assert!(read(r#"{"a":1,"A":2,"a\u0000":3,"":4}"#.as_bytes()).is_ok());
}

#[test]
fn long_values_are_read_or_refused_as_short_ones() {
    let long = "7".repeat(1 << 20);
    for number in [long.clone(), format!("-{long}.{long}e-{long}"), format!("0.{long}")] {
        let rows = read(format!("{{\"a\":{number},\"x\":{number}}}").as_bytes()).unwrap();
        assert!(rows.text == format!("\n{number}\n\n").as_bytes());
    }
    for number in
        [format!("0{long}"), format!("{long}."), format!("{long}e"), format!("-{long}.e1")]
    {
        for key in ["a", "x"] {
            let record = format!("{{\"{key}\":{number}}}");
            assert_eq!(read(record.as_bytes()).err(), Some(Rule::Number));
        }
    }
    let text = "é\\\"".repeat(1 << 20);
    let rows = read(format!("{{\"a\":\"{text}\"}}").as_bytes()).unwrap();
    assert!(rows.text == format!("\n{}\n\n", "é\"".repeat(1 << 20)).as_bytes());
    let cut = format!("{{\"a\":\"{text}\\ud800\"}}");
    assert_eq!(read(cut.as_bytes()).err(), Some(Rule::Surrogate));
    // A key that is as long.
    let twice = format!("{{\"{long}\":1,\"{long}\":2}}");
    assert_eq!(read(twice.as_bytes()).err(), Some(Rule::TwiceTheKey));
}

#[test]
fn characters_that_are_none_are_told() {
    for (text, rule) in [
        (r"\ud800", Rule::Surrogate),
        (r"\udfff", Rule::Surrogate),
        (r"\ud800\ud800", Rule::Surrogate),
        (r"\udc00\udc00", Rule::Surrogate),
        (r"\ud83d \ude00", Rule::Surrogate),
        (r"\ud83d\u", Rule::Surrogate),
        (r"\u+123", Rule::Escape),
        (r"\u 123", Rule::Escape),
        (r"\U0041", Rule::Escape),
        (r"\x41", Rule::Escape),
        ("\0", Rule::Control),
        ("\u{1f}", Rule::Control),
        ("\\\0", Rule::Escape),
        ("\n", Rule::Control),
    ] {
        // As a value that is read, one that is not, and as keys.
        for record in [
            format!("{{\"a\":\"{text}\"}}"),
            format!("{{\"x\":\"{text}\"}}"),
            format!("{{\"{text}\":1,\"y\":2}}"),
            format!("{{\"x\":{{\"{text}\":1}}}}"),
        ] {
            assert_eq!(read(record.as_bytes()).err(), Some(rule), "{record:?}");
        }
    }
    let rows = read(br#"{"a":"x\u0000"}"#).unwrap();
    assert!(rows.has_nul && rows.text == b"\nx\0\n\n");
}

/// A mark of the order of bytes is no white space, nor is any other that JSON has not.
#[test]
fn what_is_no_white_space_begins_no_record() {
    for space in ["\u{feff}", "\u{a0}", "\u{b}", "\u{c}", "\0", "\u{2028}"] {
        let text = format!("{space}{{\"a\":1}}");
        let bytes = text.as_bytes();
        let mut splitter = Splitter {
            text: bytes,
            end: bytes.len(),
            is_last: true,
            at: 0,
            between: Default::default(),
        };
        assert!(matches!(splitter.next_item(), Item::Bad { start: 0, .. }), "{space:?}");
        assert!(matches!(splitter.next_item(), Item::Record { .. }));
        for record in [format!("{{{space}\"a\":1}}"), format!("{{\"a\":{space}1}}")] {
            assert!(read(record.as_bytes()).is_err(), "{record:?}");
        }
    }
}
