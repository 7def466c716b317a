//! The type of a column from a sample of its fields.
//!
//! Each field has forms: it may be read as an integer, a date and so on. A column keeps the forms
//! that all its fields have, and the narrowest of them is its type. Text is what has no form. A
//! number with leading zeros or a plus sign is a code (a post code, a telephone number): text.

use std::borrow::Cow;

use coload_format::{
    DECIMAL_INT_PRECISION_MAX, DECIMAL_PRECISION_MAX, DataType, Value, parse_int, parse_wide,
};

use crate::field::FieldRules;
use crate::formats::Formats;
use crate::sample::{Field, SampleEnd};

const BOOLEAN: u8 = 1;
const INTEGER: u8 = 2;
const DECIMAL: u8 = 4;
const DOUBLE: u8 = 8;
const DATE: u8 = 16;
const TIMESTAMP: u8 = 32;
const TIMESTAMP_TZ: u8 = 64;

/// Digits after the point above which numbers of varying length are floats that were printed.
const VARYING_SCALE_MAX: i64 = 8;
/// An integer of so many digits is the same as DOUBLE.
const DOUBLE_DIGITS: usize = 15;
/// The longest integers that are numbers.
const WIDE_INTEGER: DataType = DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale: 0 };
/// Digits before the point that a DECIMAL has over those seen.
const HEAD_ROOM: i64 = 2;

/// What the fields of one column have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnForms {
    forms: u8,
    /// Fields that are not NULL.
    values: usize,
    /// Of which finite numbers.
    numbers: usize,
    /// Most digits before the point, without leading zeros.
    whole_digits_max: i64,
    /// Fewest and most digits after the point.
    scale_min: i64,
    scale_max: i64,
    /// Whether each integer fits BIGINT.
    fits_bigint: bool,
    /// Whether each integer is the same as DOUBLE.
    fits_double: bool,
}

impl Default for ColumnForms {
    fn default() -> Self {
        ColumnForms {
            forms: u8::MAX,
            values: 0,
            numbers: 0,
            whole_digits_max: 0,
            scale_min: i64::MAX,
            scale_max: 0,
            fits_bigint: true,
            fits_double: true,
        }
    }
}

impl ColumnForms {
    /// Takes a field that is not NULL into account.
    pub fn add(&mut self, field: &[u8], formats: &Formats) {
        self.values += 1;
        if self.forms == 0 {
            return;
        }
        let plain = formats.rewrite(field, DataType::Double).unwrap_or(Cow::Borrowed(b""));
        let forms = match number_digits(&plain) {
            Some((whole, scale, exponent)) => {
                self.numbers += 1;
                self.add_number(&plain, whole, scale, exponent)
            }
            None => word_forms(field, formats),
        };
        self.forms &= forms;
    }

    /// Counts the digits; the forms.
    fn add_number(&mut self, field: &[u8], whole: i64, scale: i64, exponent: bool) -> u8 {
        if exponent {
            return DOUBLE;
        }
        self.whole_digits_max = self.whole_digits_max.max(whole);
        self.scale_min = self.scale_min.min(scale);
        self.scale_max = self.scale_max.max(scale);
        if scale > 0 {
            return DECIMAL | DOUBLE;
        }
        self.fits_bigint &= parse_int(field, DataType::BigInt).is_ok();
        self.fits_double &= whole <= DOUBLE_DIGITS as i64 || keeps_as_double(field);
        INTEGER | DECIMAL | DOUBLE
    }

    /// Takes a value of the type that the column had so far into account: the sample may have had
    /// shorter numbers.
    pub fn add_stored(&mut self, value: &Value, data_type: DataType) {
        let (unscaled, scale) = match (value, data_type) {
            (Value::Int(v), DataType::Decimal { scale, .. }) => (i128::from(*v), scale),
            (Value::Wide(v), DataType::Decimal { scale, .. }) => (*v, scale),
            (Value::Int(v), DataType::BigInt) => (i128::from(*v), 0),
            _ => return,
        };
        let whole = unscaled / 10_i128.pow(scale.into());
        let digits = whole.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1);
        self.whole_digits_max = self.whole_digits_max.max(digits);
        self.fits_double &= scale > 0 || is_exact_double(whole);
    }

    /// Makes the column text, whatever its fields are.
    pub fn make_text(&mut self) {
        (self.forms, self.values) = (0, self.values.max(1));
    }

    /// Whether all fields so far are NULL.
    pub fn has_no_values(&self) -> bool {
        self.values == 0
    }

    /// The narrowest type that holds the fields seen, with head room for those to come.
    pub fn data_type(&self, end: SampleEnd) -> DataType {
        let has = |form: u8| self.values > 0 && self.forms & form != 0;
        if has(BOOLEAN) {
            DataType::Boolean
        } else if has(INTEGER) && self.fits_bigint {
            DataType::BigInt
        } else if has(INTEGER) {
            // Longer ones are identifiers, which a DOUBLE would change.
            decimal(self.whole_digits_max, 0).unwrap_or(DataType::Varchar(None))
        } else if has(DECIMAL) {
            self.decimal_type(end)
        } else if has(DOUBLE) && self.numbers > 0 && self.fits_double {
            DataType::Double
        } else if has(DATE) {
            DataType::Date
        } else if has(TIMESTAMP) {
            DataType::Timestamp
        } else if has(TIMESTAMP_TZ) {
            DataType::TimestampTz
        } else {
            DataType::Varchar(None)
        }
    }

    /// DECIMAL, or DOUBLE for numbers that look like printed floats or do not fit.
    fn decimal_type(&self, end: SampleEnd) -> DataType {
        let varying = self.scale_min != self.scale_max;
        if varying && self.scale_max > VARYING_SCALE_MAX && self.fits_double {
            return DataType::Double;
        }
        // What follows the sample may have more digits, unless all numbers have as many.
        let spare = if varying && end == SampleEnd::Cut { HEAD_ROOM } else { 0 };
        decimal(self.whole_digits_max, self.scale_max + spare).unwrap_or(match self.fits_double {
            true => DataType::Double,
            false => DataType::Varchar(None),
        })
    }
}

/// Whether a number as DOUBLE is not another integer than the one written.
#[inline]
pub fn keeps_as_double(field: &[u8]) -> bool {
    if field.len() <= DOUBLE_DIGITS {
        return true;
    }
    let field = field.trim_ascii();
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    !digits.iter().all(u8::is_ascii_digit)
        || parse_wide(field, WIDE_INTEGER).is_ok_and(is_exact_double)
}

/// Whether a DOUBLE is exactly this integer.
fn is_exact_double(value: i128) -> bool {
    value as f64 as i128 == value
}

/// DECIMAL of 18 digits if that leaves head room, else of 38 if the numbers fit.
fn decimal(whole_digits: i64, scale: i64) -> Option<DataType> {
    let narrow = i64::from(DECIMAL_INT_PRECISION_MAX);
    let precision = if whole_digits + scale + HEAD_ROOM <= narrow {
        DECIMAL_INT_PRECISION_MAX
    } else {
        DECIMAL_PRECISION_MAX
    };
    if whole_digits + scale > i64::from(precision) {
        return None;
    }
    DataType::decimal(precision, u8::try_from(scale).ok()?).ok()
}

/// Digits before the point (without leading zeros) and after it, and whether there is an exponent;
/// `None` when the field is no plain number.
fn number_digits(field: &[u8]) -> Option<(i64, i64, bool)> {
    let field = field.trim_ascii();
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    let count = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = count(digits);
    let (mut rest, mut scale) = (&digits[whole..], 0);
    if let [b'.', tail @ ..] = rest {
        scale = count(tail);
        rest = &tail[scale..];
    }
    let leading_zero = digits.first() == Some(&b'0');
    if whole + scale == 0 || (leading_zero && whole > 1) {
        return None;
    }
    let exponent = match rest {
        [] => false,
        [b'e' | b'E', tail @ ..] => {
            let tail = tail.strip_prefix(b"-").or(tail.strip_prefix(b"+")).unwrap_or(tail);
            if tail.is_empty() || count(tail) < tail.len() {
                return None;
            }
            // Out of the range of DOUBLE, it is no number that could be loaded.
            parse_int(field, DataType::Double).ok()?;
            true
        }
        _ => return None,
    };
    let whole = if leading_zero { 0 } else { whole };
    Some((whole as i64, scale as i64, exponent))
}

/// The forms of a field that is no number.
fn word_forms(field: &[u8], formats: &Formats) -> u8 {
    let text = field.trim_ascii();
    let is = |word: &[u8]| text.eq_ignore_ascii_case(word);
    if is(b"true") || is(b"false") {
        return BOOLEAN;
    }
    let finite = text.strip_prefix(b"-").unwrap_or(text);
    if is(b"nan") || finite.eq_ignore_ascii_case(b"inf") || finite == b"Infinity" {
        return DOUBLE;
    }
    // Whatever is no date is told by its first byte, nearly always.
    if formats.date.is_none() && !text.first().is_some_and(u8::is_ascii_digit) {
        return 0;
    }
    let field = &*formats.rewrite(field, DataType::Date).unwrap_or(Cow::Borrowed(b""));
    let mut forms = 0;
    for (form, data_type) in [(DATE, DataType::Date), (TIMESTAMP, DataType::Timestamp)] {
        forms |= if parse_int(field, data_type).is_ok() { form } else { 0 };
    }
    // Without a zone it would be a guess that UTC is meant.
    if forms == 0 && parse_int(field, DataType::TimestampTz).is_ok() {
        forms = TIMESTAMP_TZ;
    }
    forms
}

/// Whether a field has any form but text.
pub fn has_form(field: &[u8]) -> bool {
    number_digits(field).is_some() || word_forms(field, &Formats::default()) != 0
}

/// The forms of each column; records with another number of fields than `columns`, or one more
/// for a delimiter at the end, are left out.
pub fn infer_columns(
    records: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
) -> Vec<ColumnForms> {
    let mut forms = vec![ColumnForms::default(); columns];
    for record in records {
        if record.len() != columns && record.len() != columns + 1 {
            continue;
        }
        for (column, field) in forms.iter_mut().zip(record) {
            if !is_null(field, rules) {
                column.add(&field.text, &rules.formats);
            }
        }
    }
    forms
}

/// Whether the field stands for NULL in columns that are not text.
pub fn is_null(field: &Field<'_>, rules: &FieldRules) -> bool {
    !field.quoted && rules.nulls.iter().any(|null| *null == *field.text)
        || rules.is_typed_null(&field.text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_format::parse_value;
    use proptest::prelude::*;

    use super::*;

    fn infer(fields: &[&str], end: SampleEnd) -> DataType {
        let mut forms = ColumnForms::default();
        fields.iter().for_each(|field| forms.add(field.as_bytes(), &Formats::default()));
        forms.data_type(end)
    }

    #[test]
    fn the_narrowest_type_is_taken() {
        for (fields, expected) in [
            (&["true", "FALSE"][..], "BOOLEAN"),
            (&["1", "0"], "BIGINT"),
            (&["t", "f"], "VARCHAR"),
            (&["1", "-9223372036854775808"], "BIGINT"),
            (&["9223372036854775808"], "DECIMAL(38,0)"),
            (&["123456789012345678901234567890123456789"], "VARCHAR"),
            (&["00123", "10115"], "VARCHAR"),
            (&["+49301234"], "VARCHAR"),
            (&["0", "0.5", " -.25 "], "DECIMAL(18,2)"),
            (&["1.50", "12.25"], "DECIMAL(18,2)"),
            (&["12345678901234567.25"], "DECIMAL(38,2)"),
            (&["0.30000000000000004", "0.5"], "DOUBLE"),
            (&["1.123456789012", "2.123456789012"], "DECIMAL(18,12)"),
            (&["1e5", "2"], "DOUBLE"),
            (&["1e999"], "VARCHAR"),
            // A DOUBLE would change the integer.
            (&["9007199254740993", "1e5"], "VARCHAR"),
            (&["9007199254740992", "1e5"], "DOUBLE"),
            (&["1.5", "NaN", "-inf"], "DOUBLE"),
            (&["NaN"], "VARCHAR"),
            (&["1996-03-13", "1996/03/14"], "DATE"),
            (&["1996-02-30"], "VARCHAR"),
            (&["1996-03-13", "1996-03-13 12:00"], "TIMESTAMP"),
            (&["1996-03-13T12:00:00Z", "1996-03-13 12:00:00+02"], "TIMESTAMP WITH TIME ZONE"),
            (&["1996-03-13T12:00:00Z", "1996-03-13 12:00:00"], "VARCHAR"),
            (&["1", "1996-03-13"], "VARCHAR"),
            (&["1", "true"], "VARCHAR"),
            (&["1", ""], "VARCHAR"),
            (&["1-2"], "VARCHAR"),
            (&["."], "VARCHAR"),
            (&["1e"], "VARCHAR"),
            (&[], "VARCHAR"),
        ] {
            assert_eq!(infer(fields, SampleEnd::Whole).to_string(), expected, "{fields:?}");
        }
        // The input goes on, and its numbers vary in length.
        assert_eq!(infer(&["0.5", "1.25"], SampleEnd::Cut).to_string(), "DECIMAL(18,4)");
        assert_eq!(infer(&["0.50", "1.25"], SampleEnd::Cut).to_string(), "DECIMAL(18,2)");
    }

    proptest! {
        #[test]
        fn what_was_seen_can_be_loaded(
            fields in prop::collection::vec(
                prop_oneof![
                    "-?[0-9]{1,20}", "-?[0-9]{0,3}\\.[0-9]{0,12}", "[0-9.eE+-]{1,6}",
                    "199[0-9]-0[0-9]-[0-3][0-9]( 1[0-9]:[0-9]{2})?(Z|\\+02)?",
                    Just("true".to_owned()), Just("nan".to_owned()),
                ],
                1..4,
            ),
            cut in any::<bool>(),
        ) {
            let texts: Vec<&str> = fields.iter().map(String::as_str).collect();
            let data_type = infer(&texts, if cut { SampleEnd::Cut } else { SampleEnd::Whole });
            for text in texts {
                let value = parse_value(text.as_bytes(), data_type);
                prop_assert!(value.is_ok(), "{} as {}", text, data_type);
            }
        }
    }
}
