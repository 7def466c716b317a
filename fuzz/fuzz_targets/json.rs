//! JSON of any bytes: as one document, as documents in pieces, as records of rows, as lists of rows; against `serde_json`.
#![no_main]

use std::borrow::Cow;
use std::sync::Arc;

use coload_json::{
    Between, Holds, Item, Items, Json, Keys, LineBreaks, ListReader, PADDING, Path, Read,
    RowReader, Rows, Rule, Splitter, UnknownKeys, check_value, parse_tree, path_at,
};
use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Fields of records. Those behind `list` are those of its items, where it is unnested.
const PATHS: [(&[&str], Holds); 7] = [
    (&["a"], Holds::Value),
    (&["b", "c"], Holds::Value),
    (&["b", "d", "é\""], Holds::Value),
    (&["list"], Holds::Json),
    (&["long_name_of_a_key_that_fits__"], Holds::Value),
    (&[""], Holds::Json),
    (&["z"], Holds::Value),
];
const ITEM_PATHS: [&[&str]; 4] = [&["a"], &["list", "n"], &["list", "o", "m"], &["z"]];
const VALUE_PATHS: [&[&str]; 3] = [&["a"], &["list"], &["z"]];
const LIST: &str = "list";

fuzz_target!(|input: &[u8]| {
    let [options, piece, given @ ..] = input else { return };
    let options = Options::new(*options);
    let mut text = given.to_vec();
    if options.breaks == LineBreaks::EndRecords {
        // What reads lines has a line break behind the last.
        text.push(b'\n');
    }
    let end = text.len();
    text.extend([options.padding; PADDING]);
    check_document(&text[..end]);
    check_pieces(&text[..end], usize::from(*piece) + 1);
    let records = match options.breaks {
        LineBreaks::EndRecords => lines(&text[..end]),
        LineBreaks::AreSpace => documents(&text, end),
    };
    check_rows(&text, &records, &options);
    check_lists(&text, &records, &options);
    for byte in [0, usize::from(*piece), end] {
        path_at(&text[..end], byte);
    }
});

struct Options {
    breaks: LineBreaks,
    unknown: UnknownKeys,
    /// How the fields are read that hold values.
    read: Read,
    are_values: bool,
    /// What stands behind the text.
    padding: u8,
}

impl Options {
    fn new(byte: u8) -> Self {
        Options {
            breaks: if byte & 1 == 0 { LineBreaks::AreSpace } else { LineBreaks::EndRecords },
            unknown: if byte & 2 == 0 { UnknownKeys::Ignore } else { UnknownKeys::Reject },
            read: [Read::Text, Read::Text, Read::Typed, Read::Nothing][usize::from(byte >> 2 & 3)],
            are_values: byte & 16 != 0,
            padding: [0, b'"', b'}', b']'][usize::from(byte >> 5 & 3)],
        }
    }
}

/// What `serde_json` reads, but for keys that come twice.
#[derive(Debug, PartialEq)]
enum Model {
    Null,
    Bool(bool),
    Number,
    Text(String),
    List(Vec<Model>),
    Object(Vec<(String, Model)>),
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelVisitor)
    }
}

struct ModelVisitor;

impl<'de> Visitor<'de> for ModelVisitor {
    type Value = Model;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, is: bool) -> Result<Model, E> {
        Ok(Model::Bool(is))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Model, E> {
        Ok(Model::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Model, E> {
        Ok(Model::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Model, E> {
        Ok(Model::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Model, E> {
        Ok(Model::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Model, E> {
        Ok(Model::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Model, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Model::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Model, A::Error> {
        let mut entries: Vec<(String, Model)> = Vec::new();
        while let Some((key, value)) = map.next_entry()? {
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(A::Error::custom("a key twice"));
            }
            entries.push((key, value));
        }
        Ok(Model::Object(entries))
    }
}

/// What the model says of a text; unknown where a number is larger than its numbers, or values nest deeper than it reads.
fn model_of(text: &[u8]) -> Option<Result<Model, ()>> {
    match serde_json::from_slice(text) {
        Ok(model) => Some(Ok(model)),
        Err(error) => {
            let why = error.to_string();
            let is_known =
                !why.starts_with("number out of range") && !why.starts_with("recursion limit");
            is_known.then_some(Err(()))
        }
    }
}

fn skip_space(text: &[u8]) -> usize {
    text.iter().take_while(|byte| b" \t\r\n".contains(byte)).count()
}

fn padded(text: &[u8]) -> Vec<u8> {
    [text, &[0; PADDING]].concat()
}

/// One document, whatever it is.
fn check_document(text: &[u8]) {
    let start = skip_space(text);
    let padded = padded(text);
    let checked = check_value(&padded, start, LineBreaks::AreSpace);
    let tree = parse_tree(&padded, start, LineBreaks::AreSpace);
    assert_eq!(checked, tree.as_ref().map(|(_, end)| *end).map_err(|fault| *fault));
    // Of a document on one line the lines say the same.
    let on_a_line = check_value(&padded, start, LineBreaks::EndRecords);
    if let Ok(end) = on_a_line {
        assert!(checked == Ok(end) && !text[start..end].contains(&b'\n'));
    } else if let Ok(end) = checked {
        assert!(text[start..end].contains(&b'\n'));
    }
    if let Err(fault) = checked {
        assert!(fault.at <= text.len());
        path_at(text, fault.at);
    }
    let Some(model) = model_of(text) else { return };
    let is_whole = checked.is_ok_and(|end| end + skip_space(&text[end..]) == text.len());
    assert_eq!(is_whole && std::str::from_utf8(text).is_ok(), model.is_ok());
    if let (Ok((tree, _)), Ok(model)) = (&tree, &model) {
        assert!(is_same(tree, model));
    }
}

fn is_same(tree: &Json<'_>, model: &Model) -> bool {
    match (tree, model) {
        (Json::Null, Model::Null) | (Json::Number(_), Model::Number) => true,
        (Json::Bool(a), Model::Bool(b)) => a == b,
        (Json::Text(a), Model::Text(b)) => **a == *b.as_bytes(),
        (Json::List(raw), Model::List(_)) => {
            serde_json::from_slice::<Model>(raw).is_ok_and(|inner| inner == *model)
        }
        (Json::Object(entries, raw), Model::Object(others)) => {
            let same =
                |((name, value), (other, of)): (&(Cow<'_, [u8]>, Json<'_>), &(String, Model))| {
                    **name == *other.as_bytes() && is_same(value, of)
                };
            entries.len() == others.len()
                && entries.iter().zip(others).all(same)
                && serde_json::from_slice::<Model>(raw).is_ok_and(|inner| inner == *model)
        }
        _ => false,
    }
}

/// A record or what is none: where it stands, and what is wrong.
type Found = (usize, usize, Option<Rule>);

/// What a text is cut into; as a stream has it, which gets so many bytes at once.
fn cut(text: &[u8], piece: usize) -> Vec<Found> {
    let (mut found, mut between, mut at, mut end) = (Vec::new(), Between::default(), 0, 0);
    loop {
        end = (end + piece).min(text.len());
        let is_last = end == text.len();
        let mut splitter =
            Splitter { text: &text[at..end], end: end - at, is_last, at: 0, between };
        loop {
            match splitter.next_item() {
                Item::Record { start, end } => found.push((at + start, at + end, None)),
                Item::Bad { start, end, fault } => {
                    found.push((at + start, at + end, Some(fault.rule)));
                }
                Item::End | Item::More => break,
            }
        }
        (at, between) = (at + splitter.at, splitter.between);
        if is_last {
            assert_eq!(at, text.len());
            return found;
        }
    }
}

/// Records are the same whatever pieces they come in, and those of the documents that the model has.
fn check_pieces(text: &[u8], piece: usize) {
    let found = cut(text, text.len().max(1));
    assert_eq!(found, cut(text, piece));
    for pair in found.windows(2) {
        assert!(pair[0].1 <= pair[1].0);
    }
    let documents = serde_json::Deserializer::from_slice(text).into_iter::<Model>();
    let Ok(documents) = documents.collect::<Result<Vec<Model>, _>>() else { return };
    let mut expected = Vec::new();
    for document in documents {
        match document {
            Model::Object(_) => expected.push(document),
            Model::List(items) => expected.extend(items),
            _ => return,
        }
    }
    assert_eq!(found.len(), expected.len());
    for ((start, end, rule), model) in found.into_iter().zip(expected) {
        let padded = padded(&text[start..end]);
        let tree = parse_tree(&padded, 0, LineBreaks::AreSpace);
        match rule {
            None => {
                assert!(tree.is_ok_and(|(tree, of)| of == end - start && is_same(&tree, &model)))
            }
            Some(rule) => assert!(rule == Rule::NoObject && !matches!(model, Model::Object(_))),
        }
    }
}

/// Where records begin, and end if that is known.
type Record = (usize, Option<usize>);

fn documents(text: &[u8], end: usize) -> Vec<Record> {
    let between = Between::default();
    let mut splitter = Splitter { text, end, is_last: true, at: 0, between };
    let mut found = Vec::new();
    loop {
        match splitter.next_item() {
            Item::Record { start, end } => found.push((start, Some(end))),
            Item::Bad { start, fault, .. } => drop(path_at(&text[start..end], fault.at - start)),
            Item::End | Item::More => return found,
        }
    }
}

fn lines(text: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let blanks = line.iter().take_while(|byte| b" \t\r".contains(byte)).count();
        if line[blanks] != b'\n' {
            found.push((at + blanks, None));
        }
        at += line.len();
    }
    found
}

fn keys<'k>(paths: impl IntoIterator<Item = (&'k [&'k str], Holds)>) -> Keys {
    let path = |(keys, holds): (&[&str], Holds)| Path {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        holds,
    };
    Keys::new(paths.into_iter().map(path).collect()).unwrap()
}

/// A value: where it stands in the text.
type Place = (usize, usize);

fn places<'t>(text: &'t [u8], at: usize, breaks: LineBreaks) -> Vec<(Cow<'t, [u8]>, Place)> {
    let skip = |at: usize| at + skip_space(&text[at..]);
    let mut found = Vec::new();
    let is_object = text[at] == b'{';
    let mut next = skip(at + 1);
    while !matches!(text[next], b'}' | b']') {
        let mut key = Cow::Borrowed(&[][..]);
        if is_object {
            let (Json::Text(name), end) = parse_tree(text, next, breaks).unwrap() else { panic!() };
            (key, next) = (name, skip(skip(end) + 1));
        }
        let end = check_value(text, next, breaks).unwrap();
        found.push((key, (next, end)));
        next = skip(end);
        if text[next] == b',' {
            next = skip(next + 1);
        }
    }
    found
}

/// Records of a text, what is read of them, and how.
struct Given<'t> {
    text: &'t [u8],
    breaks: LineBreaks,
    unknown: UnknownKeys,
}

impl<'t> Given<'t> {
    fn entries(&self, at: usize) -> Vec<(Cow<'t, [u8]>, Place)> {
        places(self.text, at, self.breaks)
    }

    fn value_at(&self, at: usize, keys: &[&str]) -> Option<Place> {
        let Some((first, rest)) = keys.split_first() else {
            return Some((at, check_value(self.text, at, self.breaks).unwrap()));
        };
        if self.text[at] != b'{' {
            return None;
        }
        let entries = self.entries(at);
        let (_, (inner, _)) = entries.iter().find(|(name, _)| **name == *first.as_bytes())?;
        self.value_at(*inner, rest)
    }

    /// What is wrong with a record that is JSON.
    fn fault_of(&self, at: usize, paths: &[&[&str]]) -> Option<Rule> {
        if self.text[at] != b'{' {
            return Some(Rule::NoObject);
        }
        for (name, (value, _)) in self.entries(at) {
            let inner = paths.iter().filter(|path| path[0].as_bytes() == &*name);
            let inner: Vec<&[&str]> = inner.map(|path| &path[1..]).collect();
            if inner.is_empty() {
                if self.unknown == UnknownKeys::Reject {
                    return Some(Rule::UnknownKey);
                }
            } else if !inner[0].is_empty() && self.text[value] != b'n' {
                match self.fault_of(value, &inner) {
                    Some(Rule::NoObject) => return Some(Rule::NoObjectHere),
                    None => {}
                    fault => return fault,
                }
            }
        }
        None
    }

    /// Writes a field as the head of `row.rs` tells it.
    fn write_field(&self, value: Option<Place>, read: Read, out: &mut Vec<u8>) {
        let Some((at, end)) = value.filter(|_| read != Read::Nothing) else { return };
        let raw = &self.text[at..end];
        match parse_tree(self.text, at, self.breaks).unwrap().0 {
            Json::Null => {}
            Json::Text(text) if read == Read::Text => match text.first() {
                None | Some(b'"') => write_quoted(&text, out),
                Some(_) => out.extend_from_slice(&text),
            },
            Json::Text(_) => write_quoted(raw, out),
            Json::Bool(_) | Json::Number(_) | Json::List(_) | Json::Object(..) => {
                out.extend_from_slice(raw);
            }
        }
    }

    /// The keys and values of an object are those of the model, and so on within it.
    fn check_by_model(&self, (at, end): Place) {
        let Some(Ok(Model::Object(_))) = model_of(&self.text[at..end]) else { return };
        let Entries(expected) = serde_json::from_slice(&self.text[at..end]).unwrap();
        let entries = self.entries(at);
        assert_eq!(entries.len(), expected.len());
        for ((name, place), (key, raw)) in entries.into_iter().zip(expected) {
            let of = std::str::from_utf8(&self.text[place.0..place.1]).unwrap();
            assert!(*name == *key.as_bytes() && of == raw.get());
            match parse_tree(self.text, place.0, self.breaks).unwrap().0 {
                Json::Text(text) => {
                    assert_eq!(*text, *serde_json::from_str::<String>(of).unwrap().as_bytes());
                }
                Json::Object(..) => self.check_by_model(place),
                _ => {}
            }
        }
    }
}

fn write_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in bytes {
        out.extend(std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

/// Whoever reads the last field of a row takes a return away.
fn double_return(row: &mut Vec<u8>) {
    if row.ends_with(b"\r\n") {
        row.pop();
        row.extend_from_slice(b"\r\n");
    }
}

/// Keys of an object, and its values as they are written.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Rows of records, by a reader that has read those before and by one that has not.
fn check_rows(text: &[u8], records: &[Record], options: &Options) {
    let given = Given { text, breaks: options.breaks, unknown: options.unknown };
    let keys = Arc::new(keys(PATHS));
    let paths = PATHS.map(|(keys, _)| keys);
    let reads: Vec<Read> = PATHS
        .iter()
        .enumerate()
        .map(|(field, (_, holds))| match (holds, field) {
            (Holds::Json, _) => Read::Json,
            (Holds::Value, 0 | 2 | 6) => options.read,
            (Holds::Value, _) => Read::Text,
        })
        .collect();
    let reader = || {
        let mut reader = RowReader::new(Arc::clone(&keys), options.unknown);
        reads.iter().enumerate().for_each(|(field, read)| reader.read_as(field, *read));
        reader
    };
    let (mut same, mut rows, mut expected) = (reader(), Rows::default(), Rows::default().text);
    for (start, end) in records {
        let read = same.read(text, *start, options.breaks, &mut rows);
        let mut alone = Rows::default();
        assert_eq!(read, reader().read(text, *start, options.breaks, &mut alone));
        if let Err(fault) = read {
            assert!(fault.at >= *start);
            path_at(&text[*start..], fault.at - start);
        }
        match (read, check_value(text, *start, options.breaks)) {
            (Ok(found), Ok(of)) => {
                assert!(found == of && end.is_none_or(|end| end == of));
                assert_eq!(given.fault_of(*start, &paths), None);
                let row = expected.len();
                for (keys, read) in paths.iter().zip(&reads) {
                    given.write_field(given.value_at(*start, keys), *read, &mut expected);
                    expected.push(b'\n');
                }
                double_return(&mut expected);
                assert_eq!(expected[row..], alone.text[1..]);
                given.check_by_model((*start, of));
            }
            (Err(fault), Ok(_)) => {
                assert!(given.fault_of(*start, &paths).is_some());
                assert!(matches!(
                    fault.rule,
                    Rule::NoObject | Rule::NoObjectHere | Rule::UnknownKey
                ));
            }
            (read, Err(_)) => assert!(read.is_err()),
        }
    }
    check_ends(&rows, &expected, PATHS.len());
}

/// The fields stand where the rows say.
fn check_ends(rows: &Rows, expected: &[u8], fields: usize) {
    assert_eq!(rows.text, expected);
    assert_eq!((rows.ends[0], (rows.ends.len() - 1) % fields), (0, 0));
    for pair in rows.ends.windows(2) {
        let (start, end) = (pair[0] as usize + 1, pair[1] as usize);
        let field = &rows.text[start..end];
        assert_eq!(rows.text[end], b'\n');
        assert!(rows.has_quotes || field.first() != Some(&b'"'));
        assert!(rows.has_nul || !field.contains(&0));
    }
    assert_eq!(rows.ends.last().map(|end| *end as usize + 1), Some(rows.text.len()));
}

/// Rows of the items of a list.
fn check_lists(text: &[u8], records: &[Record], options: &Options) {
    let given = Given { text, breaks: options.breaks, unknown: options.unknown };
    let paths = if options.are_values { &VALUE_PATHS[..] } else { &ITEM_PATHS[..] };
    let keys = keys(paths.iter().map(|path| (*path, Holds::Value)));
    let mut reader = ListReader::new(&keys, &[LIST.to_owned()], options.unknown).unwrap();
    let (mut rows, mut items) = (Rows::default(), Items::default());
    let mut expected = rows.text.clone();
    let of_record: Vec<&[&str]> =
        paths.iter().map(|path| if path[0] == LIST { &path[..1] } else { path }).collect();
    let of_item: Vec<&[&str]> =
        paths.iter().filter(|path| path[0] == LIST).map(|path| &path[1..]).collect();
    for (start, end) in records {
        let read = reader.read(text, *start, options.breaks, &mut rows, &mut items);
        let checked = check_value(text, *start, options.breaks);
        let Ok(found) = read else {
            let list = checked.is_ok().then(|| given.value_at(*start, &[LIST])).flatten();
            let is_none = list.is_some_and(|(at, _)| !matches!(text[at], b'[' | b'n'));
            let fault = checked.is_err() || given.fault_of(*start, &of_record).is_some();
            assert!(fault || is_none);
            continue;
        };
        assert!(checked == Ok(found) && end.is_none_or(|end| end == found));
        assert_eq!(given.fault_of(*start, &of_record), None);
        let list = given.value_at(*start, &[LIST]).filter(|(at, _)| text[*at] == b'[');
        let all = list.map_or(Vec::new(), |(at, _)| given.entries(at));
        assert_eq!(items.items.len(), all.len());
        if let Some(list) = list {
            assert_eq!(items.list, list);
        }
        for (item, (_, place)) in items.items.iter().zip(all) {
            assert_eq!((item.start, item.end), place);
            let fault = match text[item.start] {
                _ if options.are_values => None,
                b'n' => None,
                _ => given.fault_of(item.start, &of_item),
            };
            assert_eq!(item.fault.is_some(), fault.is_some());
            if fault.is_some() {
                continue;
            }
            for path in paths {
                let value = match path.split_first() {
                    Some((&LIST, rest)) => given.value_at(item.start, rest),
                    _ => given.value_at(*start, path),
                };
                given.write_field(value, Read::Text, &mut expected);
                expected.push(b'\n');
            }
            double_return(&mut expected);
        }
    }
    check_ends(&rows, &expected, paths.len());
}
