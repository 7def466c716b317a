//! Files and streams of Arrow, and the text of the same values.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, LargeStringArray, RecordBatch, RunArray, StringArray, StringViewArray,
    Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampSecondArray, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};

use crate::text::Random;
use crate::typed_values::{
    NULL, clock, date, days, micros, quoted, seeds, small, thousandths, word,
};

/// How an input is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    File,
    Stream,
    /// A stream that is compressed as a whole.
    Gzip,
    /// A file that is compressed as a whole.
    GzipFile,
    /// A file whose schema has no prefix, as polars 2 writes it.
    Bare,
    /// The same, compressed as a whole.
    GzipBare,
}

impl Form {
    pub const ALL: [Form; 6] =
        [Form::File, Form::Stream, Form::Gzip, Form::GzipFile, Form::Bare, Form::GzipBare];
}

/// Kinds of columns.
pub const KINDS: usize = 15;

/// A column of a batch: an array, and its values as CSV has them.
pub fn column(kind: usize, rows: usize, random: &mut Random) -> (ArrayRef, Vec<String>) {
    fn of<T>(seeds: &[Option<u32>], value: impl Fn(u32) -> T) -> Vec<Option<T>> {
        seeds.iter().map(|seed| seed.map(&value)).collect()
    }
    let seeds = seeds(rows, random);
    let bare = |text: &dyn Fn(u32) -> String| -> Vec<String> {
        seeds.iter().map(|seed| seed.map_or_else(|| NULL.to_owned(), text)).collect()
    };
    let text_of = |seed: u32| quoted(&word(seed));
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
            (
                Arc::new(array.with_precision_and_scale(12, 3).unwrap()),
                bare(&|s| thousandths(small(s) * 10)),
            )
        }
        6 => (Arc::new(StringArray::from(of(&seeds, word))), bare(&text_of)),
        7 => (Arc::new(LargeStringArray::from(of(&seeds, word))), bare(&text_of)),
        8 => {
            let array: StringViewArray = of(&seeds, word).into_iter().collect();
            (Arc::new(array), bare(&text_of))
        }
        9 => {
            let values = of(&seeds, |s| word(s % 50));
            let array: DictionaryArray<Int32Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), bare(&|s| text_of(s % 50)))
        }
        10 => {
            let values = of(&seeds, |s| word(s % 3));
            let array: RunArray<Int32Type> = values.iter().map(Option::as_deref).collect();
            (Arc::new(array), bare(&|s| text_of(s % 3)))
        }
        11 => (Arc::new(Date32Array::from(of(&seeds, days))), bare(&date)),
        12 => {
            let array = TimestampMicrosecondArray::from(of(&seeds, micros));
            (Arc::new(array), bare(&|s| format!("1970-01-01 {}", clock(s))))
        }
        13 => (Arc::new(Time64MicrosecondArray::from(of(&seeds, micros))), bare(&clock)),
        _ => {
            let array = Time32MillisecondArray::from(of(&seeds, |s| (micros(s) / 1000) as i32));
            (Arc::new(array), bare(&clock))
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
        Form::File | Form::GzipFile | Form::Bare | Form::GzipBare => {
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
    if matches!(form, Form::Bare | Form::GzipBare) {
        make_bare(&mut out);
    }
    match form {
        Form::File | Form::Stream | Form::Bare => out,
        Form::Gzip | Form::GzipFile | Form::GzipBare => gzip_of(&out),
    }
}

/// Takes the prefix of the schema off; zeros behind it keep the places of all else.
fn make_bare(file: &mut [u8]) {
    let marks = file.windows(4).enumerate().filter(|(_, word)| *word == [0xff; 4]);
    let at = marks.map(|(at, _)| at).find(|at| at % 8 == 0).unwrap();
    let length = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
    file.copy_within(at + 8..at + 8 + length, at);
    file[at + length..at + length + 8].fill(0);
}

/// Bytes, compressed.
pub fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}
