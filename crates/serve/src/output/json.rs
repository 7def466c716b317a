//! JSON: an array of objects, or an object a line. All keys are there, NULL is `null`; a float that JSON has no number for is
//! the text `NaN`, `Infinity` or `-Infinity`.

use std::io::Write;
use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Field, FieldRef, Float32Type, Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder,
};

use super::{Output, OutputFormat, failed};

pub(super) static JSON: OutputFormat = OutputFormat {
    name: "json",
    about: "An array of objects; NULL is null",
    endings: &["json"],
    is_text: true,
    begin: |begin| Ok(Box::new(Json { out: begin.out, form: Form::Array, rows: 0 })),
};

pub(super) static JSON_LINES: OutputFormat = OutputFormat {
    name: "jsonl",
    about: "An object a line; NULL is null",
    endings: &["jsonl", "ndjson"],
    is_text: true,
    begin: |begin| Ok(Box::new(Json { out: begin.out, form: Form::Lines, rows: 0 })),
};

/// Bytes of rows that are written together.
const TOGETHER_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Array,
    Lines,
}

struct Json<'a> {
    out: Box<dyn Write + Send + 'a>,
    form: Form,
    rows: u64,
}

impl Output for Json<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let invalid = |e: ArrowError| Error::Invalid(e.to_string());
        let options = EncoderOptions::default()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(Floats));
        let rows = StructArray::from(batch.clone());
        let field: FieldRef = Arc::new(Field::new("", rows.data_type().clone(), false));
        let mut encoder = make_encoder(&field, &rows, &options).map_err(invalid)?;
        let mut text = Vec::new();
        for row in 0..batch.num_rows() {
            match (self.form, self.rows) {
                (Form::Lines, _) => {}
                (Form::Array, 0) => text.push(b'['),
                (Form::Array, _) => text.extend_from_slice(b",\n"),
            }
            encoder.encode(row, &mut text);
            if self.form == Form::Lines {
                text.push(b'\n');
            }
            self.rows += 1;
            if text.len() >= TOGETHER_BYTES {
                self.out.write_all(&text).map_err(failed)?;
                text.clear();
            }
        }
        self.out.write_all(&text).map_err(failed)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(failed)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let end: &[u8] = match (self.form, self.rows) {
            (Form::Lines, _) => b"",
            (Form::Array, 0) => b"[]\n",
            (Form::Array, _) => b"]\n",
        };
        self.out.write_all(end).map_err(failed)?;
        self.flush()
    }
}

/// Encodes floats; the encoder of the library writes `null` for those that are not finite.
#[derive(Debug)]
struct Floats;

impl EncoderFactory for Floats {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> std::result::Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            ArrowType::Float32 => Box::new(FloatEncoder(array.as_primitive::<Float32Type>())),
            ArrowType::Float64 => Box::new(FloatEncoder(array.as_primitive::<Float64Type>())),
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct FloatEncoder<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> Encoder for FloatEncoder<'_, T>
where
    T::Native: std::fmt::Debug + Into<f64> + Copy,
{
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let value = self.0.value(index);
        let wide: f64 = value.into();
        let written = match wide {
            // Debug writes the shortest digits that read back, with an exponent where they are many: a number of JSON.
            _ if wide.is_finite() => write!(out, "{value:?}"),
            _ if wide.is_nan() => write!(out, "\"NaN\""),
            _ if wide > 0.0 => write!(out, "\"Infinity\""),
            _ => write!(out, "\"-Infinity\""),
        };
        debug_assert!(written.is_ok(), "a vector takes all");
    }
}
