//! Arrow IPC of any bytes, as a stream of messages and as a file between its magic: all columns of all batches, as a whole
//! and in two parts.
#![no_main]

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{
    ArrowColumn, ArrowSchema, Batch, BatchLayout, Body, Buffers, Column, Dictionary,
    DictionaryBatch, FILE_MAGIC, Fault, Footer, Message, PREFIX_BYTES, Place, Prefix, Result,
    TAIL_BYTES, footer_bytes, read_column, read_values, starts_stream, write_json, write_scalar,
    written_bytes,
};
use coload_types::Error;
use libfuzzer_sys::fuzz_target;

/// Bytes that anything may take.
const BYTES_MAX: u64 = 16 << 20;
/// How much longer rows are in memory than what they are read from: a place of 4 bytes for a key of 1.
const FACTOR: u64 = 5;
/// Rows whose values are looked at, from the first and to the last.
const ROWS_LOOKED_AT: usize = 40;

fuzz_target!(|input: &[u8]| {
    starts_stream(input);
    let _ = read_stream(input);
    let mut file = FILE_MAGIC.to_vec();
    file.extend_from_slice(&[0; 2]);
    file.extend_from_slice(input);
    file.extend_from_slice(FILE_MAGIC);
    let _ = read_file(&file);
});

/// Dictionaries by their numbers.
type Known = HashMap<i64, Arc<Dictionary>>;

fn find(known: &Known, id: i64) -> Result<Arc<Dictionary>> {
    known.get(&id).cloned().ok_or_else(|| Fault::Damaged(format!("dictionary {id} is not there")))
}

fn cut<T>() -> Result<T> {
    Err(Fault::Damaged("they end too early".to_owned()))
}

fn read_stream(mut rest: &[u8]) -> Result<()> {
    let (mut schema, mut known) = (None, Known::new());
    loop {
        let prefix = Prefix::decode(&rest[..rest.len().min(PREFIX_BYTES)])?;
        let Prefix::Metadata { prefix, bytes } = prefix else { return Ok(()) };
        let Some(metadata) = rest.get(prefix..prefix + bytes) else { return cut() };
        let (message, body_bytes) = Message::decode(metadata)?;
        let body = usize::try_from(body_bytes).ok();
        let parts = body.and_then(|body| rest[prefix + bytes..].split_at_checked(body));
        let Some((body, behind)) = parts else { return cut() };
        rest = behind;
        match (message, &schema) {
            (Message::Schema(found), None) => schema = Some(found),
            (Message::Dictionary(dictionary), Some(schema)) => {
                // What is wrong with one message is no matter of the next.
                let _ = add_dictionary(schema, &dictionary, &Part(body), &mut known);
            }
            (Message::Batch(batch), Some(schema)) => {
                let _ = read_batch(schema, &batch, &Part(body), &known);
            }
            _ => return cut(),
        }
    }
}

fn read_file(file: &[u8]) -> Result<()> {
    let tail = file.len() - TAIL_BYTES;
    let length = footer_bytes(&file[tail..], file.len() as u64)?;
    let footer = Footer::decode(&file[tail - length..tail], (tail - length) as u64)?;
    let mut known = Known::new();
    for place in &footer.dictionaries {
        if let Ok((Message::Dictionary(dictionary), body)) = message_at(file, place) {
            let _ = add_dictionary(&footer.schema, &dictionary, &Part(body), &mut known);
        }
    }
    for place in &footer.batches {
        if let Ok((Message::Batch(batch), body)) = message_at(file, place) {
            let _ = read_batch(&footer.schema, &batch, &Part(body), &known);
        }
    }
    Ok(())
}

/// The message at a place, and its body. All places are within the file.
fn message_at<'f>(file: &'f [u8], place: &Place) -> Result<(Message, &'f [u8])> {
    let head = &file[place.start as usize..place.body() as usize];
    let body = &file[place.body() as usize..place.end() as usize];
    let Prefix::Metadata { prefix, bytes } = Prefix::decode(head)? else { return cut() };
    let Some(metadata) = head.get(prefix..prefix + bytes) else { return cut() };
    match Message::decode(metadata)? {
        (message, body_bytes) if body_bytes == place.body_bytes => Ok((message, body)),
        _ => cut(),
    }
}

/// The body of a message.
struct Part<'a>(&'a [u8]);

impl Body for Part<'_> {
    fn read(&self, from: u64, bytes: usize) -> std::result::Result<Cow<'_, [u8]>, Error> {
        // What is read was compared with the length that the message has for its body.
        let start = usize::try_from(from).unwrap();
        Ok(Cow::Borrowed(&self.0[start..start + bytes]))
    }
}

fn add_dictionary(
    schema: &ArrowSchema,
    dictionary: &DictionaryBatch,
    body: &Part<'_>,
    known: &mut Known,
) -> Result<()> {
    let id = dictionary.id;
    let Some(field) = schema.field_of_dictionary(id) else { return cut() };
    let batch = &dictionary.batch;
    let layout = BatchLayout::new([&field], batch)?;
    let held: usize = known.values().map(|known| known.bytes()).sum();
    let buffers = Buffers::new(batch, body, BYTES_MAX.saturating_sub(held as u64));
    let inner = |id| find(known, id);
    let column = read_values(&field, &layout.fields[0], &buffers, 0..batch.rows, &inner)?;
    check_size(&column, batch.rows);
    look(&column);
    // One whose values are keys of another one is none.
    if column.dictionary.is_some() {
        return Ok(());
    }
    let part = column.slice.into_owned();
    let made = match known.get(&id).filter(|_| dictionary.is_delta) {
        Some(before) => before.with(part),
        None => Dictionary::new(field.values_read(), part),
    };
    known.insert(id, Arc::new(made));
    Ok(())
}

fn read_batch(schema: &ArrowSchema, batch: &Batch, body: &Part<'_>, known: &Known) -> Result<()> {
    let _ = Buffers::new(batch, body, BYTES_MAX).total_bytes();
    let layout = BatchLayout::new(&schema.fields, batch)?;
    for column in schema.columns()? {
        let _ = column.values.sql_type();
        let of = (schema, &column);
        let _ = written_bytes(of, &layout, &Buffers::new(batch, body, BYTES_MAX), &|_| u64::MAX);
        // What is wrong with one column is no matter of the next.
        let _ = read_field(of, &layout, (batch, body), known);
    }
    Ok(())
}

fn read_field(
    of: (&ArrowSchema, &ArrowColumn),
    layout: &BatchLayout,
    (batch, body): (&Batch, &Part<'_>),
    known: &Known,
) -> Result<()> {
    let half = batch.rows / 2;
    let read = |rows: Range<u64>| -> Result<Column<'_>> {
        let buffers = Buffers::new(batch, body, BYTES_MAX);
        let column = read_column(of, layout, &buffers, rows.clone(), &|id| find(known, id))?;
        check_size(&column, rows.end - rows.start);
        Ok(column)
    };
    let (first, second) = (read(0..half), read(half..batch.rows));
    let whole = read(0..batch.rows)?;
    // What is in order as a whole is so in parts.
    let (first, second) = (first.unwrap(), second.unwrap());
    for (row, text) in look(&whole) {
        let (column, row) = if row < first.slice.rows {
            (&first, row)
        } else {
            (&second, row - first.slice.rows)
        };
        assert_eq!(text, text_of(column, row));
    }
    let before = look(&second);
    let Column { values, slice, dictionary } = second;
    assert_eq!(look(&Column { values, slice: slice.into_owned(), dictionary }), before);
    Ok(())
}

fn check_size(column: &Column<'_>, rows: u64) {
    assert_eq!(column.slice.rows as u64, rows);
    assert!(column.slice.bytes() as u64 <= FACTOR * BYTES_MAX);
}

/// Values of the first rows and the last ones.
fn look(column: &Column<'_>) -> Vec<(usize, Option<Vec<u8>>)> {
    let rows = column.slice.rows;
    let looked_at = (0..rows.min(ROWS_LOOKED_AT)).chain(rows.saturating_sub(ROWS_LOOKED_AT)..rows);
    looked_at.map(|row| (row, text_of(column, row))).collect()
}

fn text_of(column: &Column<'_>, row: usize) -> Option<Vec<u8>> {
    let value = column.get(row)?;
    let mut text = Vec::new();
    write_scalar(value, &mut text);
    write_json(value, &mut text);
    Some(text)
}
