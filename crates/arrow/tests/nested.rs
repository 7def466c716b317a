//! Structs, lists and maps within each other, drawn: what the writer of the `arrow` crates writes and what arrays in memory have is read as
//! a slow writer of JSON has it; what contradicts itself is told.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int16Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Int32Array, LargeListArray,
    ListArray, ListViewArray, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};
use coload_arrow::{
    ArrowSchema, BatchLayout, Buffers, Column, Dictionary, FILE_MAGIC, Fault, Message,
    PREFIX_BYTES, Prefix, array_bytes, dictionaries_of, read_array, read_array_column, read_column,
    read_values, schema_of, write_scalar, written_bytes,
};
use proptest::prelude::*;

const BYTES_MAX: u64 = 1 << 20;

/// Numbers that a seed gives.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn is(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

#[derive(Debug, Clone)]
enum Kind {
    Int,
    Text,
    Bool,
    Coded,
    List(Box<Kind>),
    Large(Box<Kind>),
    View(Box<Kind>),
    Fixed(usize, Box<Kind>),
    Struct(Vec<Kind>),
    Map(Box<Kind>),
}

fn draw_kind(depth: usize, random: &mut Random) -> Kind {
    let most = if depth == 0 { 4 } else { 10 };
    let inner = |random: &mut Random| Box::new(draw_kind(depth - 1, random));
    match random.below(most) {
        0 => Kind::Int,
        1 => Kind::Text,
        2 => Kind::Bool,
        3 => Kind::Coded,
        4 => Kind::List(inner(random)),
        5 => Kind::Large(inner(random)),
        6 => Kind::View(inner(random)),
        7 => Kind::Fixed(random.below(3), inner(random)),
        8 => Kind::Struct((0..1 + random.below(3)).map(|_| *inner(random)).collect()),
        _ => Kind::Map(inner(random)),
    }
}

/// Texts of rows.
type Texts = Vec<Option<String>>;

/// An array, and its rows as JSON and as columns have them.
struct Drawn {
    array: ArrayRef,
    json: Texts,
    plain: Texts,
    fields: Vec<(String, Drawn)>,
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn leaf(array: ArrayRef, plain: Texts, is_text: bool) -> Drawn {
    let json = |text: &Option<String>| {
        text.as_ref().map(|text| if is_text { quoted(text) } else { text.clone() })
    };
    Drawn { array, json: plain.iter().map(json).collect(), plain, fields: Vec::new() }
}

fn of_json(array: ArrayRef, json: Vec<Option<String>>) -> Drawn {
    Drawn { array, plain: json.clone(), json, fields: Vec::new() }
}

fn items(of: &Drawn, span: Range<usize>) -> String {
    let item = |row: usize| of.json[row].clone().unwrap_or_else(|| "null".to_owned());
    format!("[{}]", span.map(item).collect::<Vec<_>>().join(", "))
}

fn field(name: &str, of: &dyn Array, nullable: bool) -> Arc<Field> {
    Arc::new(Field::new(name, of.data_type().clone(), nullable))
}

fn words(rows: usize, random: &mut Random) -> Vec<String> {
    let words =
        ["", "a", "quo\"te", "new\nline", "back\\slash", "längeres Wort mit mehr als zwölf"];
    (0..rows).map(|_| words[random.below(words.len())].to_owned()).collect()
}

fn draw(kind: &Kind, rows: usize, random: &mut Random) -> Drawn {
    let has_nulls = !random.is(4);
    let valid: Vec<bool> = (0..rows).map(|_| !has_nulls || !random.is(4)).collect();
    let nulls = has_nulls.then(|| NullBuffer::from(valid.clone()));
    let only = |texts: Vec<String>| -> Texts {
        texts.into_iter().zip(&valid).map(|(text, valid)| valid.then_some(text)).collect()
    };
    // What stands in a row that is NULL is something, too.
    let counts: Vec<usize> = (0..rows).map(|_| random.below(4)).collect();
    let total: usize = counts.iter().sum();
    let spans: Vec<Range<usize>> = counts
        .iter()
        .scan(0, |end, count| {
            *end += count;
            Some(*end - count..*end)
        })
        .collect();
    match kind {
        Kind::Int => {
            let ints: Vec<i32> = (0..rows).map(|_| random.below(2000) as i32 - 1000).collect();
            let texts = only(ints.iter().map(ToString::to_string).collect());
            leaf(Arc::new(Int32Array::new(ints.into(), nulls)), texts, false)
        }
        Kind::Bool => {
            let bools: Vec<bool> = (0..rows).map(|_| random.is(2)).collect();
            let texts = only(bools.iter().map(ToString::to_string).collect());
            leaf(Arc::new(BooleanArray::new(bools.into(), nulls)), texts, false)
        }
        Kind::Text => {
            let texts = only(words(rows, random));
            leaf(Arc::new(StringArray::from(texts.clone())), texts, true)
        }
        Kind::Coded => {
            let texts = only(words(rows, random));
            let array: DictionaryArray<Int16Type> = texts.iter().map(Option::as_deref).collect();
            leaf(Arc::new(array), texts, true)
        }
        Kind::List(inner) => {
            let of = draw(inner, total, random);
            let json = only(spans.iter().map(|span| items(&of, span.clone())).collect());
            let ends = OffsetBuffer::from_lengths(counts);
            let item = field("item", &of.array, true);
            of_json(Arc::new(ListArray::new(item, ends, of.array, nulls)), json)
        }
        Kind::Large(inner) => {
            let of = draw(inner, total, random);
            let json = only(spans.iter().map(|span| items(&of, span.clone())).collect());
            let ends = OffsetBuffer::from_lengths(counts);
            let item = field("item", &of.array, true);
            of_json(Arc::new(LargeListArray::new(item, ends, of.array, nulls)), json)
        }
        Kind::View(inner) => {
            let of = draw(inner, 5, random);
            let spans: Vec<Range<usize>> = (0..rows)
                .map(|_| {
                    let start = random.below(6);
                    start..start + random.below(6 - start)
                })
                .collect();
            let json = only(spans.iter().map(|span| items(&of, span.clone())).collect());
            let starts: ScalarBuffer<i32> = spans.iter().map(|span| span.start as i32).collect();
            let sizes: ScalarBuffer<i32> = spans.iter().map(|span| span.len() as i32).collect();
            let item = field("item", &of.array, true);
            of_json(Arc::new(ListViewArray::new(item, starts, sizes, of.array, nulls)), json)
        }
        Kind::Fixed(width, inner) => {
            let of = draw(inner, rows * width, random);
            let json =
                only((0..rows).map(|row| items(&of, row * width..(row + 1) * width)).collect());
            let item = field("item", &of.array, true);
            let array =
                FixedSizeListArray::try_new_with_length(item, *width as i32, of.array, nulls, rows);
            of_json(Arc::new(array.unwrap()), json)
        }
        Kind::Struct(kinds) => {
            let fields: Vec<(String, Drawn)> = kinds
                .iter()
                .enumerate()
                .map(|(number, kind)| (format!("f\"{number}"), draw(kind, rows, random)))
                .collect();
            let text = |row: usize| {
                let field = |(name, of): &(String, Drawn)| {
                    let value = of.json[row].clone().unwrap_or_else(|| "null".to_owned());
                    format!("{}: {value}", quoted(name))
                };
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            };
            let json = only((0..rows).map(text).collect());
            let (named, arrays): (Vec<_>, Vec<_>) = fields
                .iter()
                .map(|(name, of)| (field(name, &of.array, true), Arc::clone(&of.array)))
                .unzip();
            let array = StructArray::new(named.into(), arrays, nulls);
            Drawn { array: Arc::new(array), plain: json.clone(), json, fields }
        }
        Kind::Map(inner) => {
            let keys = words(total, random);
            let of = draw(inner, total, random);
            let text = |span: &Range<usize>| {
                let entry = |row: usize| {
                    let value = of.json[row].clone().unwrap_or_else(|| "null".to_owned());
                    format!("{}: {value}", quoted(&keys[row]))
                };
                format!("{{{}}}", span.clone().map(entry).collect::<Vec<_>>().join(", "))
            };
            let json = only(spans.iter().map(text).collect());
            let keys: ArrayRef = Arc::new(StringArray::from(keys));
            let pairs = vec![field("key", &keys, false), field("value", &of.array, true)];
            let entries = StructArray::new(pairs.into(), vec![keys, of.array], None);
            let entries_field = field("entries", &entries, false);
            let ends = OffsetBuffer::from_lengths(counts);
            of_json(Arc::new(MapArray::new(entries_field, ends, entries, nulls, false)), json)
        }
    }
}

/// The columns that a field becomes, and their rows.
fn columns_of(name: &str, of: &Drawn, above: &[bool]) -> Vec<(String, Texts)> {
    if of.fields.is_empty() {
        let rows = of.plain.iter().zip(above);
        return vec![(
            name.to_owned(),
            rows.map(|(text, is_there)| text.clone().filter(|_| *is_there)).collect(),
        )];
    }
    let above: Vec<bool> =
        of.json.iter().zip(above).map(|(text, is_there)| text.is_some() && *is_there).collect();
    let fields = of.fields.iter();
    fields.flat_map(|(field, of)| columns_of(&format!("{name}.{field}"), of, &above)).collect()
}

fn texts(column: &Column<'_>) -> Texts {
    let text = |row: usize| {
        let mut text = Vec::new();
        write_scalar(column.get(row)?, &mut text);
        // What was damaged may be no UTF-8.
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    (0..column.slice.rows).map(text).collect()
}

type Known = HashMap<i64, Arc<Dictionary>>;

fn find(known: &Known, id: i64) -> Result<Arc<Dictionary>, Fault> {
    known.get(&id).cloned().ok_or_else(|| Fault::Damaged(format!("dictionary {id}")))
}

/// Reads the messages of a file or stream of one batch: for each column its name and rows.
fn read(bytes: &[u8], rows: Range<u64>) -> Result<Vec<(String, Texts)>, Fault> {
    let cut = || Fault::Damaged("cut".to_owned());
    let mut at = if bytes.starts_with(FILE_MAGIC) { 8 } else { 0 };
    while bytes[at..].starts_with(&[0; 8]) {
        at += 8;
    }
    let (mut schema, mut known) = (None::<ArrowSchema>, Known::new());
    loop {
        let head = bytes.get(at..).ok_or_else(cut)?;
        let prefix = Prefix::decode(&head[..head.len().min(PREFIX_BYTES)])?;
        let Prefix::Metadata { prefix, bytes: length } = prefix else { return Ok(Vec::new()) };
        let metadata = head.get(prefix..prefix + length).ok_or_else(cut)?;
        let (message, body_bytes) = Message::decode(metadata)?;
        at += prefix + length;
        let end = usize::try_from(body_bytes).ok().and_then(|bytes| at.checked_add(bytes));
        let body = bytes.get(at..end.ok_or_else(cut)?).ok_or_else(cut)?.to_vec();
        at += body.len();
        match (message, &schema) {
            (Message::Schema(found), _) => schema = Some(found),
            (Message::Dictionary(dictionary), Some(schema)) => {
                let field = schema.field_of_dictionary(dictionary.id).ok_or_else(cut)?;
                let batch = &dictionary.batch;
                let layout = BatchLayout::new([&field], batch)?;
                let buffers = Buffers::new(batch, &body, BYTES_MAX);
                let of = &layout.fields[0];
                let inner = |id| find(&known, id);
                let values = read_values(&field, of, &buffers, 0..batch.rows, &inner)?;
                let made = Dictionary::new(values.values, values.slice.into_owned());
                known.insert(dictionary.id, Arc::new(made));
            }
            (Message::Batch(batch), Some(schema)) => {
                let layout = BatchLayout::new(&schema.fields, &batch)?;
                let mut found = Vec::new();
                for column in schema.columns()? {
                    let buffers = Buffers::new(&batch, &body, BYTES_MAX);
                    let of = (schema, &column);
                    let rows = rows.start..rows.end.min(batch.rows);
                    let read = read_column(of, &layout, &buffers, rows, &|id| find(&known, id))?;
                    written_bytes(of, &layout, &buffers, &|_| 10)?;
                    found.push((column.name, texts(&read)));
                }
                return Ok(found);
            }
            _ => return Err(cut()),
        }
    }
}

fn write(is_file: bool, batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::new();
    match is_file {
        true => {
            let mut writer = FileWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
        false => {
            let mut writer = StreamWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
    }
    out
}

/// Reads rows of a column of an array.
fn read_memory(
    schema: &ArrowSchema,
    number: usize,
    array: &dyn Array,
    rows: Range<usize>,
) -> Result<Texts, Fault> {
    let data = array.to_data();
    let column = &schema.columns()?[number];
    let of = (schema, column);
    let mut known = Known::new();
    for found in dictionaries_of(of, &data) {
        let values = read_array(&found.field, found.data, BYTES_MAX, &|id| find(&known, id))?;
        let made = Dictionary::new(values.values, values.slice.into_owned());
        known.insert(found.id, Arc::new(made));
    }
    let bytes = array_bytes(of, &data);
    let read = read_array_column(of, &data, rows, BYTES_MAX, &|id| find(&known, id))?;
    let texts = texts(&read);
    // About as many as they are: what is cut by them must not be many times as long.
    if column.dictionaries.is_empty() {
        let all: usize = texts.iter().flatten().map(String::len).sum();
        assert!(all <= 3 * bytes + 64, "{all} bytes, and {bytes} were said");
    }
    Ok(texts)
}

/// A batch of a nested column, and one of numbers behind it.
fn batch_of(of: &Drawn) -> RecordBatch {
    let behind: ArrayRef = Arc::new(Int32Array::from_iter_values(0..of.json.len() as i32));
    let fields = vec![field("c", &of.array, true), field("n", &behind, false)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::clone(&of.array), behind])
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nested_rows_are_read_as_they_were_drawn(seed in 1_u64.., is_file: bool) {
        let mut random = Random(seed);
        let kind = draw_kind(3, &mut random);
        let rows = random.below(12);
        let of = draw(&kind, rows, &mut random);
        let expected = columns_of("c", &of, &vec![true; rows]);
        let whole = batch_of(&of);
        let (a, b) = (random.below(rows + 1), random.below(rows + 1));
        let (from, to) = (a.min(b), a.max(b));
        let wanted = |rows: &Range<usize>| -> Vec<(String, Texts)> {
            let of = |(name, texts): &(String, Texts)| {
                (name.clone(), texts[rows.clone()].to_vec())
            };
            expected.iter().map(of).collect()
        };
        // Some rows of all, all, and all of some.
        let sliced = whole.slice(from, to - from);
        for (batch, rows, expected) in [
            (&whole, from as u64..to as u64, wanted(&(from..to))),
            (&whole, 0..rows as u64, wanted(&(0..rows))),
            (&sliced, 0..(to - from) as u64, wanted(&(from..to))),
        ] {
            let found = read(&write(is_file, batch), rows.clone()).unwrap();
            let (behind, found) = found.split_last().unwrap();
            prop_assert_eq!(&behind.0, "n");
            prop_assert_eq!(found, &expected[..], "{:?}", &kind);
            let schema = schema_of(&batch.schema()).unwrap();
            for (number, (_, texts)) in expected.iter().enumerate() {
                let array = batch.column(0);
                let rows = rows.start as usize..rows.end as usize;
                let found = read_memory(&schema, number, array, rows).unwrap();
                prop_assert_eq!(&found, texts, "{:?}", &kind);
            }
        }
    }

    /// Bytes that are changed or cut off give other values or an error.
    #[test]
    fn damage_of_nested_rows_is_an_error_or_another_value(
        seed in 1_u64..,
        is_file: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut random = Random(seed);
        let kind = draw_kind(3, &mut random);
        let rows = random.below(12);
        let of = draw(&kind, rows, &mut random);
        let mut bytes = write(is_file, &batch_of(&of));
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(columns) = read(&bytes, 0..u64::from(u32::MAX)) {
            let rows = columns.iter().flat_map(|(_, rows)| rows).flatten();
            prop_assert!(rows.map(String::len).sum::<usize>() < 64 << 20);
        }
    }
}

#[test]
fn columns_are_named_by_the_structs_around_them() {
    let of = |fields: Vec<Arc<Field>>| arrow_schema::DataType::Struct(fields.into());
    let int =
        |name: &str, nullable| Arc::new(Field::new(name, arrow_schema::DataType::Int32, nullable));
    let list = arrow_schema::DataType::List(int("item", true));
    let inner =
        Field::new("b", of(vec![int("x", false), Arc::new(Field::new("l", list, false))]), true);
    let schema = Schema::new(vec![
        Field::new("a", of(vec![int("k", false), Arc::new(inner)]), false),
        Field::new("none", of(Vec::new()), true),
    ]);
    let columns = schema_of(&schema).unwrap().columns().unwrap();
    let told: Vec<(&str, bool, &str, bool)> = columns
        .iter()
        .map(|column| (&*column.name, column.nullable, &*column.kind, column.is_readable()))
        .collect();
    assert_eq!(
        told,
        [
            ("a.k", false, "int32", true),
            ("a.b.x", true, "int32", true),
            ("a.b.l", true, "list<int32>", true),
            ("none", true, "struct<>", false),
        ]
    );
}
