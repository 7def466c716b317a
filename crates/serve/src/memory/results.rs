//! Functions whose results may be much larger than what they are given: their size is known, or bounded, before they
//! are made.
//!
//! ```text
//!   repeat(s, n)          length of s * n          exact
//!   lpad, rpad(s, n)      4 * n                    at most
//!   concat(..)            sum of the lengths       exact
//!   replace(s, a, b)      each byte a match        at most
//!   regexp_replace        each byte a match        at most
//!   a || b                sum of the lengths       exact
//!   upper, substr, ..     a few times the length   at most
//! ```
//!
//! Their texts are views: where a row stands in many, as those of one side of a join do, its text is not copied for each.
//!
//! Rows of which the sizes are at most so large together are made at once; of others, one after the other, until they
//! really are too large.

use std::sync::Arc;

use coload_types::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use datafusion::scalar::ScalarValue;

use super::concat::{Join, Joining};
use crate::error::to_datafusion;

/// Share of the memory that one result of a batch may take.
const RESULT_SHARE: usize = 16;
/// Functions that compare each character of their first argument with each of the second.
const PAIRING: [&str; 4] = ["levenshtein", "btrim", "ltrim", "rtrim"];
/// Pairs of characters that a call may compare, some seconds of work: nothing ends it meanwhile, whatever time a statement has.
const PAIRS_MAX: u64 = 4_000_000_000;
/// Functions whose results can be much larger than what they are given, or that may take long, and how their size is known.
const BOUNDED: [(&str, Grows); 25] = [
    ("repeat", Grows::Repeat),
    ("lpad", Grows::Pad),
    ("rpad", Grows::Pad),
    ("concat", Grows::Concat),
    ("concat_ws", Grows::Concat),
    ("replace", Grows::Replace),
    ("regexp_replace", Grows::Replace),
    ("translate", Grows::Times(4)),
    // A letter may become three, and of two bytes three.
    ("lower", Grows::Times(3)),
    ("upper", Grows::Times(3)),
    ("initcap", Grows::Times(3)),
    ("encode", Grows::Times(2)),
    ("decode", Grows::Times(1)),
    ("reverse", Grows::Times(1)),
    ("btrim", Grows::Times(1)),
    ("ltrim", Grows::Times(1)),
    ("rtrim", Grows::Times(1)),
    ("substr", Grows::Times(1)),
    ("left", Grows::Times(1)),
    ("right", Grows::Times(1)),
    ("split_part", Grows::Times(1)),
    ("substr_index", Grows::Times(1)),
    ("overlay", Grows::Concat),
    ("to_char", Grows::Format),
    ("levenshtein", Grows::Not),
];

/// How a result grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Grows {
    Repeat,
    Pad,
    Concat,
    Replace,
    /// At most so many times the first argument.
    Times(u64),
    /// By its second argument, in which a letter may stand for a word.
    Format,
    /// It is a number.
    Not,
}

/// Puts functions that know how large their results become in place of those that do not.
///
/// # Errors
/// When the session takes no functions.
pub(crate) fn bound_results(session: &mut SessionState, memory: usize) -> Result<()> {
    for (name, grows) in BOUNDED {
        let Ok(inner) = session.udf(name) else { continue };
        let bounded = Bounded { inner, grows, bytes_max: memory / RESULT_SHARE };
        session.register_udf(Arc::new(ScalarUDF::new_from_impl(bounded)))?;
    }
    let bounded = Bounded {
        inner: Arc::new(ScalarUDF::new_from_impl(Join::default())),
        grows: Grows::Concat,
        bytes_max: memory / RESULT_SHARE,
    };
    let function = Arc::new(ScalarUDF::new_from_impl(bounded));
    session.register_function_rewrite(Arc::new(Joining { function }))
}

/// A function whose results have so many bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    grows: Grows,
    bytes_max: usize,
}

/// Lengths or counts of an argument.
enum Numbers {
    Same(u64),
    Each(Vec<u64>),
}

impl Numbers {
    fn at(&self, row: usize) -> u64 {
        match self {
            Numbers::Same(number) => *number,
            Numbers::Each(numbers) => numbers.get(row).copied().unwrap_or(0),
        }
    }
}

/// Bytes of a text in each row; what is no text is short.
fn lengths(value: &ColumnarValue) -> Numbers {
    /// A number or time as text.
    const SHORT: u64 = 64;
    let array = match value {
        ColumnarValue::Scalar(scalar) => {
            let text = scalar.try_as_str();
            return Numbers::Same(text.map_or(SHORT, |t| t.map_or(0, |t| t.len() as u64)));
        }
        ColumnarValue::Array(array) => array,
    };
    let each = |lengths: Vec<u64>| Numbers::Each(lengths);
    match array.data_type() {
        DataType::Utf8 => {
            each(array.as_string::<i32>().offsets().lengths().map(|n| n as u64).collect())
        }
        DataType::LargeUtf8 => {
            each(array.as_string::<i64>().offsets().lengths().map(|n| n as u64).collect())
        }
        DataType::Utf8View => each(array.as_string_view().lengths().map(u64::from).collect()),
        _ => Numbers::Same(SHORT),
    }
}

/// The numbers of an argument; those below zero are zero.
fn counts(value: &ColumnarValue) -> Result<Numbers> {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let array: ArrayRef = match value {
        ColumnarValue::Scalar(ScalarValue::Int64(n)) => {
            return Ok(Numbers::Same(n.map_or(0, count)));
        }
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        ColumnarValue::Array(array) => Arc::clone(array),
    };
    let numbers = cast(&array, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>().iter().map(|n| n.map_or(0, count));
    let numbers: Vec<u64> = numbers.collect();
    Ok(match value {
        ColumnarValue::Scalar(_) => Numbers::Same(numbers.first().copied().unwrap_or(0)),
        ColumnarValue::Array(_) => Numbers::Each(numbers),
    })
}

impl Bounded {
    /// Bytes of the result of each row, at most.
    fn sizes(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        /// Bytes of a character.
        const CHARACTER: u64 = 4;
        /// What two letters of a format may become, for each of them.
        const WORD: u64 = 32;
        let first = args.first().map_or(Numbers::Same(0), lengths);
        let size: Box<dyn Fn(usize) -> u64> = match (self.grows, args) {
            (Grows::Repeat, [_, count, ..]) => {
                let counts = counts(count)?;
                Box::new(move |row| first.at(row).saturating_mul(counts.at(row)))
            }
            (Grows::Pad, [_, count, ..]) => {
                let counts = counts(count)?;
                Box::new(move |row| counts.at(row).saturating_mul(CHARACTER))
            }
            (Grows::Concat, args) => {
                let parts: Vec<Numbers> = args.iter().map(lengths).collect();
                // The first of concat_ws stands between all others.
                let between = args.len() as u64;
                let is_ws = self.inner.name() == "concat_ws";
                Box::new(move |row| {
                    let sum = parts.iter().fold(0, |sum: u64, p| sum.saturating_add(p.at(row)));
                    let more = if is_ws { first.at(row).saturating_mul(between) } else { 0 };
                    sum.saturating_add(more)
                })
            }
            (Grows::Replace, [_, _, by, ..]) => {
                let by = lengths(by);
                Box::new(move |row| {
                    (first.at(row) + 1).saturating_mul(by.at(row).saturating_add(1))
                })
            }
            (Grows::Times(times), _) => Box::new(move |row| first.at(row).saturating_mul(times)),
            (Grows::Format, [_, format, ..]) => {
                let format = lengths(format);
                Box::new(move |row| format.at(row).saturating_mul(WORD))
            }
            // Other numbers of arguments are refused by the function.
            _ => Box::new(|_| 0),
        };
        Ok((0..rows).map(size).collect())
    }

    fn too_large(&self, bytes: u64) -> datafusion::error::DataFusionError {
        to_datafusion(Error::Limit(format!(
            "{} would make {bytes} bytes at once, and {} are the most (raise --memory)",
            self.inner.name(),
            self.bytes_max
        )))
    }

    /// Refuses a call that would compare too many pairs of characters.
    fn check_pairs(&self, args: &[ColumnarValue], rows: usize) -> Result<()> {
        let name = self.inner.name();
        let (true, [first, second, ..]) = (PAIRING.contains(&name), args) else { return Ok(()) };
        let (first, second) = (lengths(first), lengths(second));
        let pairs = (0..rows).map(|row| first.at(row).saturating_mul(second.at(row)));
        let pairs = pairs.fold(0, u64::saturating_add);
        match pairs > PAIRS_MAX {
            false => Ok(()),
            true => Err(to_datafusion(Error::Limit(format!(
                "{name} would compare {pairs} pairs of characters at once, and {PAIRS_MAX} are the most (give it shorter texts)"
            )))),
        }
    }

    /// Calls the function, which expects the type that it tells itself.
    fn invoke(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types = args.arg_fields.iter().map(|f| f.data_type().clone()).collect::<Vec<_>>();
        let own = match args.return_field.data_type() {
            DataType::Utf8View => self.inner.return_type(&types).unwrap_or(DataType::Utf8View),
            other => other.clone(),
        };
        let field = args.return_field.as_ref().clone().with_data_type(own);
        self.inner.invoke_with_args(ScalarFunctionArgs { return_field: Arc::new(field), ..args })
    }

    /// Makes the rows in parts.
    fn in_parts(&self, args: &ScalarFunctionArgs, sizes: &[u64]) -> Result<ColumnarValue> {
        let bytes_max = self.bytes_max as u64;
        let (mut parts, mut made, mut start): (Vec<ArrayRef>, u64, usize) = (Vec::new(), 0, 0);
        while start < sizes.len() {
            let (mut end, mut bytes) = (start, 0_u64);
            while end < sizes.len() && (end == start || bytes + sizes[end] <= bytes_max) {
                bytes = bytes.saturating_add(sizes[end]);
                end += 1;
            }
            if bytes > bytes_max {
                return Err(self.too_large(bytes));
            }
            let part = self.invoke(slice(args, start, end - start))?;
            let part = part.into_array(end - start)?;
            made += part.get_array_memory_size() as u64;
            if made > bytes_max {
                return Err(self.too_large(made));
            }
            parts.push(part);
            start = end;
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

/// The type of the same texts or bytes as views; other types as they are.
fn view(data_type: DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other,
    }
}

/// Some rows of arguments.
fn slice(args: &ScalarFunctionArgs, start: usize, rows: usize) -> ScalarFunctionArgs {
    let part = |value: &ColumnarValue| match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, rows)),
        scalar => scalar.clone(),
    };
    ScalarFunctionArgs {
        args: args.args.iter().map(part).collect(),
        number_rows: rows,
        ..args.clone()
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types).map(view)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        let data_type = view(field.data_type().clone());
        Ok(Arc::new(Arc::unwrap_or_clone(field).with_data_type(data_type)))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    // What a function would simplify itself to is the one without a bound.

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_array = args.args.iter().any(|arg| matches!(arg, ColumnarValue::Array(_)));
        let rows = if is_array { args.number_rows } else { 1 };
        self.check_pairs(&args.args, rows)?;
        let sizes = self.sizes(&args.args, rows)?;
        let bytes = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        let made = if bytes <= self.bytes_max as u64 {
            self.invoke(args)?
        } else {
            match self.grows {
                Grows::Repeat | Grows::Concat => return Err(self.too_large(bytes)),
                _ if rows == 1 => return Err(self.too_large(bytes)),
                _ => self.in_parts(&args, &sizes)?,
            }
        };
        let data_type = view(made.data_type());
        if data_type == made.data_type() { Ok(made) } else { made.cast_to(&data_type, None) }
    }
}
