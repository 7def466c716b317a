//! Where records end, whatever pieces the text comes in.

use coload_json::{Between, Item, Rule, Splitter};
use proptest::prelude::*;

use super::{cases, json};

/// What is found: a record, or what is wrong.
type Found = (String, Option<Rule>);

fn all(text: &str) -> Vec<Found> {
    in_pieces(text, text.len())
}

/// As a stream has it: more text comes when there is no whole record, and what was read is gone.
fn in_pieces(text: &str, piece: usize) -> Vec<Found> {
    let bytes = text.as_bytes();
    let (mut found, mut between, mut at) = (Vec::new(), Between::default(), 0);
    let mut end = 0;
    loop {
        end = (end + piece.max(1)).min(bytes.len());
        let is_last = end == bytes.len();
        let mut records =
            Splitter { text: &bytes[at..end], end: end - at, is_last, at: 0, between };
        loop {
            let text = |start: usize, end: usize| {
                String::from_utf8_lossy(&bytes[at + start..at + end]).into_owned()
            };
            match records.next_item() {
                Item::Record { start, end } => found.push((text(start, end), None)),
                Item::Bad { start, end, fault } => found.push((text(start, end), Some(fault.rule))),
                Item::End | Item::More => break,
            }
        }
        (at, between) = (at + records.at, records.between);
        if is_last {
            return found;
        }
    }
}

#[test]
fn records_are_documents_and_items_of_lists() {
    let record = |text: &str| (text.to_owned(), None);
    let bad = |text: &str, rule| (text.to_owned(), Some(rule));
    for (text, expected) in [
        ("", vec![]),
        (" \n", vec![]),
        ("{}", vec![record("{}")]),
        ("{\"a\":1}{\"b\":2} \n {}", vec![record("{\"a\":1}"), record("{\"b\":2}"), record("{}")]),
        ("[{\"a\":[{}]} , {}]", vec![record("{\"a\":[{}]}"), record("{}")]),
        ("[]\n[{}] {} []", vec![record("{}"), record("{}")]),
        ("{\"a\":\"}\\\"}\"}", vec![record("{\"a\":\"}\\\"}\"}")]),
        ("[{},]", vec![record("{}"), bad("]", Rule::TrailingComma)]),
        ("[{}{}]", vec![record("{}"), bad("", Rule::NoCommaBetween), record("{}")]),
        ("[,{}]", vec![bad(",", Rule::NoValue), record("{}")]),
        ("[{}", vec![record("{}"), bad("", Rule::OpenList)]),
        ("[{},", vec![record("{}"), bad("", Rule::OpenList)]),
        ("[", vec![bad("", Rule::OpenList)]),
        ("{} {\"a\":", vec![record("{}"), bad("{\"a\":", Rule::Open)]),
        (
            "[1, \"a,b\", {}, [2]]",
            vec![
                bad("1", Rule::NoObject),
                bad("\"a,b\"", Rule::NoObject),
                record("{}"),
                bad("[2]", Rule::NoObject),
            ],
        ),
        ("x {} y", vec![bad("x", Rule::NoValue), record("{}"), bad("y", Rule::NoValue)]),
        (
            "{}, {}]",
            vec![record("{}"), bad(",", Rule::NoValue), record("{}"), bad("]", Rule::NoValue)],
        ),
    ] {
        assert_eq!(all(text), expected, "{text}");
        for piece in 1..text.len() {
            assert_eq!(in_pieces(text, piece), expected, "{text} in pieces of {piece}");
        }
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn pieces_do_not_matter(texts in prop::collection::vec(json(), 0..5), change: (u16, u8), piece in 1..60_usize) {
        let mut text = texts.join(["\n", ",", ""][usize::from(change.1) % 3]);
        if change.1 % 2 == 0 {
            text = format!("[{text}]");
        }
        if let Some((at, _)) = text.char_indices().nth(usize::from(change.0) % (text.len() + 1)) {
            text.insert(at, ['{', '}', '[', ']', ',', '"', '\\', 'x'][usize::from(change.1) % 8]);
        }
        prop_assert_eq!(in_pieces(&text, piece), all(&text), "{}", text);
    }
}
