//! Files and streams of Arrow, and the text of the same values.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, LargeStringArray, RecordBatch, RunArray, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};

use crate::text::Random;

/// How an input is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    File,
    Stream,
    /// A stream that is compressed as a whole.
    Gzip,
    /// A file that is compressed as a whole.
    GzipFile,
}

impl Form {
    pub const ALL: [Form; 4] = [Form::File, Form::Stream, Form::Gzip, Form::GzipFile];
}

/// Kinds of columns.
pub const KINDS: usize = 13;

/// NULL in that text.
pub const NULL: &str = "\\N";

/// A column of a batch: an array, and its values as CSV has them.
pub fn column(kind: usize, rows: usize, random: &mut Random) -> (ArrayRef, Vec<String>) {
    fn of<T>(seeds: &[Option<u32>], value: impl Fn(u32) -> T) -> Vec<Option<T>> {
        seeds.iter().map(|seed| seed.map(&value)).collect()
    }
    let mut draw = |_| (random.below(5) > 0).then(|| random.below(1 << 20) as u32);
    let seeds: Vec<Option<u32>> = (0..rows).map(&mut draw).collect();
    let bare = |text: &dyn Fn(u32) -> String| -> Vec<String> {
        seeds.iter().map(|seed| seed.map_or_else(|| NULL.to_owned(), text)).collect()
    };
    let small = |seed: u32| i64::from(seed % 70_000) - 35_000;
    let word = |seed: u32| match seed % 7 {
        0 => String::new(),
        1 => (seed % 100).to_string(),
        2 => format!("{}.50", seed % 1000),
        3 => "2024-02-29".to_owned(),
        4 => format!("say \"é\", {seed}"),
        5 => "true".to_owned(),
        _ => "x".repeat((seed % 40) as usize),
    };
    let quoted = |seed: u32| format!("\"{}\"", word(seed).replace('"', "\"\""));
    match kind {
        0 => (Arc::new(Int64Array::from(of(&seeds, small))), bare(&|s| small(s).to_string())),
        1 => {
            let array = Int32Array::from(of(&seeds, |s| small(s) as i32 / 200));
            (Arc::new(array), bare(&|s| (small(s) as i32 / 200).to_string()))
        }
        2 => {
            let value = |seed: u32| u64::MAX / (u64::from(seed) + 1);
            (Arc::new(UInt64Array::from(of(&seeds, value))), bare(&|s| value(s).to_string()))
        }
        3 => {
            let array = BooleanArray::from(of(&seeds, |s| s % 2 == 0));
            (Arc::new(array), bare(&|s| (s % 2 == 0).to_string()))
        }
        4 => {
            let value = |seed: u32| small(seed) as f64 / 16.0;
            (Arc::new(Float64Array::from(of(&seeds, value))), bare(&|s| format!("{:?}", value(s))))
        }
        5 => {
            let array = Decimal128Array::from(of(&seeds, |s| i128::from(small(s)) * 10));
            let text = |seed: u32| {
                let cents = small(seed) * 10;
                let sign = if cents < 0 { "-" } else { "" };
                format!("{sign}{}.{:03}", cents.abs() / 1000, cents.abs() % 1000)
            };
            (Arc::new(array.with_precision_and_scale(12, 3).unwrap()), bare(&text))
        }
        6 => (Arc::new(StringArray::from(of(&seeds, word))), bare(&quoted)),
        7 => (Arc::new(LargeStringArray::from(of(&seeds, word))), bare(&quoted)),
        8 => {
            let array: StringViewArray = of(&seeds, word).into_iter().collect();
            (Arc::new(array), bare(&quoted))
        }
        9 => {
            let values = of(&seeds, |s| word(s % 50));
            let array: DictionaryArray<Int32Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), bare(&|s| quoted(s % 50)))
        }
        10 => {
            let values = of(&seeds, |s| word(s % 3));
            let array: RunArray<Int32Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), bare(&|s| quoted(s % 3)))
        }
        11 => {
            let array = Date32Array::from(of(&seeds, |s| (s % 28) as i32));
            (Arc::new(array), bare(&|s| format!("1970-01-{:02}", s % 28 + 1)))
        }
        _ => {
            let micros = |seed: u32| i64::from(seed % 86_400) * 1_000_000 + i64::from(seed % 2);
            let text = |seed: u32| {
                let day = seed % 86_400;
                let fraction = if seed % 2 == 1 { ".000001" } else { "" };
                format!(
                    "1970-01-01 {:02}:{:02}:{:02}{fraction}",
                    day / 3600,
                    day / 60 % 60,
                    day % 60
                )
            };
            (Arc::new(TimestampMicrosecondArray::from(of(&seeds, micros))), bare(&text))
        }
    }
}

/// Seconds of days, as an array.
pub fn seconds(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(TimestampSecondArray::from(values))
}

/// Batches of columns `c0`, `c1`, ....
pub fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let field = |(number, array): (usize, &ArrayRef)| {
        Field::new(format!("c{number}"), array.data_type().clone(), true)
    };
    let schema = Schema::new(arrays.iter().enumerate().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

/// Writes batches, of which there is one at least.
pub fn bytes(form: Form, batches: &[RecordBatch]) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut out = Vec::new();
    match form {
        Form::File | Form::GzipFile => {
            let mut writer = FileWriter::try_new(&mut out, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Form::Stream | Form::Gzip => {
            let mut writer = StreamWriter::try_new(&mut out, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
    match form {
        Form::File | Form::Stream => out,
        Form::Gzip | Form::GzipFile => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&out).unwrap();
            gzip.finish().unwrap()
        }
    }
}
