//! What the writer of the `arrow` crates writes is read as it was; what is damaged is told, and never panics.
#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Int16Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, LargeStringArray, ListArray,
    NullArray, RecordBatch, RunArray, StringArray, TimestampNanosecondArray, UInt32Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};
use coload_arrow::{
    ArrowType, BatchLayout, Buffers, FILE_MAGIC, Fault, Footer, Message, PREFIX_BYTES, Place,
    Prefix, Slice, SliceValues, TAIL_BYTES, footer_bytes, read_slice, write_scalar,
};
use proptest::prelude::*;

/// Most bytes that a test reads of a batch.
const BYTES_MAX: u64 = 1 << 20;

type Seeds = Vec<Option<u16>>;
type Texts = Vec<Option<String>>;

/// An array of a kind, and the texts of its values.
fn array(kind: usize, seeds: &Seeds) -> (ArrayRef, Texts) {
    fn each<T>(seeds: &Seeds, value: impl Fn(u16) -> T) -> Vec<Option<T>> {
        seeds.iter().map(|seed| seed.map(&value)).collect()
    }
    let texts = |text: &dyn Fn(u16) -> String| each(seeds, text);
    let word = |seed: u16| "é-".repeat(usize::from(seed % 9)) + &seed.to_string();
    match kind {
        0 => {
            let array = Int64Array::from(each(seeds, |s| i64::from(s) - 30_000));
            (Arc::new(array), texts(&|s| (i64::from(s) - 30_000).to_string()))
        }
        1 => {
            let array = Int8Array::from(each(seeds, |s| s as i8));
            (Arc::new(array), texts(&|s| (s as i8).to_string()))
        }
        2 => {
            let array = UInt32Array::from(each(seeds, |s| u32::MAX - u32::from(s)));
            (Arc::new(array), texts(&|s| (u32::MAX - u32::from(s)).to_string()))
        }
        3 => {
            let array = BooleanArray::from(each(seeds, |s| s % 3 == 0));
            (Arc::new(array), texts(&|s| (s % 3 == 0).to_string()))
        }
        4 => {
            let array = Float64Array::from(each(seeds, |s| f64::from(s) / 8.0));
            (Arc::new(array), texts(&|s| format!("{:?}", f64::from(s) / 8.0)))
        }
        5 => (Arc::new(StringArray::from(each(seeds, word))), texts(&word)),
        6 => (Arc::new(LargeStringArray::from(each(seeds, word))), texts(&word)),
        7 => {
            let mut views = StringViewBuilder::new().with_fixed_block_size(64);
            each(seeds, word).iter().for_each(|text| views.append_option(text.as_ref()));
            (Arc::new(views.finish()), texts(&word))
        }
        8 => {
            let bytes = each(seeds, |s| s.to_be_bytes().to_vec());
            let array = BinaryArray::from_iter(bytes);
            (Arc::new(array), texts(&|s| format!("\\x{s:04x}")))
        }
        9 => {
            let bytes = each(seeds, |s| [s.to_be_bytes(), [7; 2]].concat());
            let array =
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 4).unwrap();
            (Arc::new(array), texts(&|s| format!("\\x{s:04x}0707")))
        }
        10 => {
            let array = Decimal128Array::from(each(seeds, |s| i128::from(s) - 100));
            let array = array.with_precision_and_scale(9, 2).unwrap();
            let text = |s: u16| {
                let cents = i64::from(s) - 100;
                let sign = if cents < 0 { "-" } else { "" };
                format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
            };
            (Arc::new(array), texts(&text))
        }
        11 => {
            let array = Date32Array::from(each(seeds, |s| i32::from(s % 28)));
            (Arc::new(array), texts(&|s| format!("1970-01-{:02}", s % 28 + 1)))
        }
        12 => {
            let array = TimestampNanosecondArray::from(each(seeds, |s| i64::from(s % 60)));
            let text = |s: u16| match s % 60 {
                0 => "1970-01-01 00:00:00".to_owned(),
                nanos => format!("1970-01-01 00:00:00.{nanos:09}").trim_end_matches('0').to_owned(),
            };
            (Arc::new(array), texts(&text))
        }
        13 => {
            let values = each(seeds, |s| format!("key {}", s % 5));
            let array: DictionaryArray<Int16Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), texts(&|s| format!("key {}", s % 5)))
        }
        14 => {
            let values = each(seeds, |s| format!("run {}", s % 2));
            let array: RunArray<Int32Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), texts(&|s| format!("run {}", s % 2)))
        }
        15 => (Arc::new(NullArray::new(seeds.len())), vec![None; seeds.len()]),
        // Read in `nested.rs`; what comes behind it must be found.
        _ => {
            let lists = seeds.iter().map(|seed| seed.map(|s| vec![Some(i32::from(s)), None]));
            let array = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
            (Arc::new(array), Vec::new())
        }
    }
}

/// Kinds of [`array`].
const KINDS: usize = 17;

/// Columns of some batches, by their kinds.
fn batches() -> impl Strategy<Value = (Vec<usize>, Vec<Vec<Seeds>>)> {
    let kinds = prop::collection::vec(0..KINDS, 1..6);
    (kinds, prop::collection::vec(0_usize..40, 0..4)).prop_flat_map(|(kinds, rows)| {
        let column =
            |rows: usize| prop::collection::vec(prop::option::weighted(0.8, 0..500_u16), rows);
        let width = kinds.len();
        let batch = move |rows: usize| prop::collection::vec(column(rows), width);
        (Just(kinds), rows.into_iter().map(batch).collect::<Vec<_>>())
    })
}

#[derive(Debug, Clone, Copy)]
enum Form {
    File,
    Stream,
}

fn write(form: Form, schema: &Schema, batches: &[RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    match form {
        Form::File => {
            let mut writer = FileWriter::try_new(&mut out, schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Form::Stream => {
            let mut writer = StreamWriter::try_new(&mut out, schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
    out
}

/// Reads the messages of a file or stream: schema, dictionaries, and the texts of the rows of each batch in a range.
fn read(
    bytes: &[u8],
    range: impl Fn(u64) -> Range<u64>,
) -> Result<(Vec<ArrowType>, Vec<Vec<Texts>>), Fault> {
    let damaged = || Fault::Damaged("cut".to_owned());
    let mut at = 0;
    let mut end = bytes.len();
    if bytes.starts_with(FILE_MAGIC) {
        let tail = bytes.len().saturating_sub(TAIL_BYTES);
        let footer = footer_bytes(&bytes[tail..], bytes.len() as u64)?;
        let footer = Footer::decode(&bytes[tail - footer..tail], (tail - footer) as u64)?;
        for Place { start, head_bytes, body_bytes } in
            footer.dictionaries.iter().chain(&footer.batches)
        {
            assert!(start + u64::from(*head_bytes) + body_bytes <= bytes.len() as u64);
        }
        let zeros = bytes[8..].chunks_exact(8).take_while(|word| **word == [0; 8]).count();
        (at, end) = (8 + zeros * 8, tail);
    }
    let (mut schema, mut dictionaries, mut read) = (None, Vec::new(), Vec::new());
    while at < end {
        let prefix = Prefix::decode(&bytes[at..end.min(at + PREFIX_BYTES)])?;
        let Prefix::Metadata { prefix, bytes: length } = prefix else { break };
        let metadata = bytes.get(at + prefix..at + prefix + length).ok_or_else(damaged)?;
        let (message, body_bytes) = Message::decode(metadata)?;
        at += prefix + length;
        let body_end = usize::try_from(body_bytes).ok().and_then(|bytes| at.checked_add(bytes));
        let body = bytes.get(at..body_end.ok_or_else(damaged)?).ok_or_else(damaged)?.to_vec();
        at += body.len();
        match message {
            Message::Schema(found) => schema = Some(found),
            Message::Dictionary(dictionary) => {
                let schema = schema.as_ref().ok_or_else(damaged)?;
                let field = schema.field_of_dictionary(dictionary.id).ok_or_else(damaged)?;
                let layout = BatchLayout::new([&field], &dictionary.batch)?;
                let buffers = Buffers::new(&dictionary.batch, &body, BYTES_MAX);
                let rows = 0..dictionary.batch.rows;
                let values = read_slice(&field, &layout.fields[0], &buffers, rows)?.into_owned();
                dictionaries.push((dictionary.id, texts_of(&values, &field.values, &[])?));
            }
            Message::Batch(batch) => {
                let schema = schema.as_ref().ok_or_else(damaged)?;
                let layout = BatchLayout::new(&schema.fields, &batch)?;
                let buffers = Buffers::new(&batch, &body, BYTES_MAX);
                let mut columns = Vec::new();
                for (field, layout) in schema.fields.iter().zip(&layout.fields) {
                    if matches!(field.values, ArrowType::Composite(..)) {
                        columns.push(Vec::new());
                        continue;
                    }
                    let slice = read_slice(field, layout, &buffers, range(batch.rows))?;
                    columns.push(texts_of(&slice, &field.values, &dictionaries)?);
                }
                read.push(columns);
            }
        }
    }
    let schema = schema.ok_or_else(damaged)?;
    Ok((schema.fields.into_iter().map(|field| field.values).collect(), read))
}

fn texts_of(
    slice: &Slice<'_>,
    values: &ArrowType,
    dictionaries: &[(i64, Texts)],
) -> Result<Texts, Fault> {
    let missing = || Fault::Damaged("a key".to_owned());
    let text = |row: usize| {
        if let SliceValues::Keys(keys, id) = &slice.values {
            if slice.is_null(row) {
                return Ok(None);
            }
            let (_, texts) =
                dictionaries.iter().rev().find(|(known, _)| known == id).ok_or_else(missing)?;
            return texts.get(keys[row] as usize).cloned().ok_or_else(missing);
        }
        let mut text = Vec::new();
        let Some(value) = slice.get(values, row) else { return Ok(None) };
        write_scalar(value, &mut text);
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    };
    (0..slice.rows).map(text).collect()
}

fn made(kinds: &[usize], seeds: &[Vec<Seeds>]) -> (Schema, Vec<RecordBatch>, Vec<Vec<Texts>>) {
    let none = Vec::new();
    let fields: Vec<Field> = kinds
        .iter()
        .enumerate()
        .map(|(n, kind)| {
            Field::new(format!("f{n}"), array(*kind, &none).0.data_type().clone(), true)
        })
        .collect();
    let schema = Schema::new(fields);
    let (mut batches, mut expected) = (Vec::new(), Vec::new());
    for columns in seeds {
        let made: Vec<(ArrayRef, Texts)> =
            kinds.iter().zip(columns).map(|(kind, seeds)| array(*kind, seeds)).collect();
        let (arrays, texts): (Vec<ArrayRef>, Vec<Texts>) = made.into_iter().unzip();
        batches.push(RecordBatch::try_new(Arc::new(schema.clone()), arrays).unwrap());
        expected.push(texts);
    }
    (schema, batches, expected)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_was_written_is_read(
        (kinds, seeds) in batches(),
        form in prop::sample::select(&[Form::File, Form::Stream][..]),
        (from, to) in (0_u64..8, 0_u64..8),
    ) {
        let (schema, batches, expected) = made(&kinds, &seeds);
        // Of a file the last dictionary takes the place of others, which its writer refuses.
        let has_dictionaries = kinds.contains(&13) && batches.len() > 1;
        let form = if has_dictionaries { Form::Stream } else { form };
        let bytes = write(form, &schema, &batches);
        let range = |rows: u64| (rows * from.min(to) / 8)..(rows * from.max(to) / 8);
        let (_, found) = read(&bytes, range).unwrap();
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            for (found, expected) in found.iter().zip(expected) {
                let rows = range(expected.len() as u64);
                prop_assert_eq!(&found[..], &expected[rows.start as usize..rows.end as usize]);
            }
        }
    }

    /// Bytes that are changed or cut off give other values or an error.
    #[test]
    fn damage_is_an_error_or_another_value(
        (kinds, seeds) in batches(),
        form in prop::sample::select(&[Form::File, Form::Stream][..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let (schema, batches, _) = made(&kinds, &seeds);
        let form = if kinds.contains(&13) { Form::Stream } else { form };
        let mut bytes = write(form, &schema, &batches);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok((_, columns)) = read(&bytes, |rows| 0..rows) {
            prop_assert!(columns.iter().flatten().map(Vec::len).sum::<usize>() < 1 << 24);
        }
    }
}

#[test]
fn bytes_that_are_no_message_are_an_error() {
    for bytes in [
        &b"\xff\xff\xff\xff\x10\0\0\0abcdefghijklmnop"[..],
        b"\xff\xff\xff\xff\xf0\xff\xff\xff",
        b"\xff\xff\xff",
    ] {
        assert!(read(bytes, |rows| 0..rows).is_err(), "{bytes:?}");
    }
}
