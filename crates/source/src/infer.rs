//! The type of a column from a sample of its fields.
//!
//! Each field has forms: it may be read as an integer, a date and so on. A column keeps the forms
//! that all its fields have, and the narrowest of them is its type. Text is what has no form. A
//! number with leading zeros or a plus sign is a code (a post code, a telephone number): text. So is
//! one such as `1E5`, unless another field of the column has a point or a sign: programs print
//! `1e+05` or `1.0E5`.
//!
//! Nothing is rounded: a column is DOUBLE only if each number is one that a DOUBLE is printed as
//! (`is_double_as_written`), else DECIMAL if 38 digits hold it, else text.

mod lists;

use std::borrow::Cow;

use coload_types::parse_value::is_double_as_written;
use coload_types::{
    DECIMAL_INT_PRECISION_MAX, DECIMAL_PRECISION_MAX, DataType, ElementType, Value, parse_int,
};

use crate::dialect::NullsAre;
use crate::field::FieldRules;
use crate::formats::Formats;
use crate::json::tells_date;
use crate::sample::{Field, SampleEnd};
use crate::type_order::{Candidate, TypeOrder};
use lists::{Item, list_items};

const BOOLEAN: u8 = 1;
const INTEGER: u8 = 2;
const DECIMAL: u8 = 4;
const DOUBLE: u8 = 8;
const DATE: u8 = 16;
const TIMESTAMP: u8 = 32;
const TIMESTAMP_TZ: u8 = 64;
const TIME: u8 = 128;

/// A field with more bytes is text.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// Digits after the point above which numbers of varying length are floats that were printed.
const VARYING_SCALE_MAX: i64 = 8;
/// Numbers of as many digits, 15, are not changed by a DOUBLE.
const DOUBLE_DIGITS_MAX: u128 = 999_999_999_999_999;
/// Integers up to this are the same as DOUBLE.
const DOUBLE_INTEGER_MAX: u128 = 1 << f64::MANTISSA_DIGITS;
/// Digits of a BIGINT.
const BIGINT_DIGITS: i64 = 19;
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
    /// Whether each number is one that a DOUBLE is printed as.
    fits_double: bool,
    /// Whether some number has an exponent, and one that may be part of a name, as in `1E5`.
    has_exponents: bool,
    has_bare_exponents: bool,
    /// Whether some number has a point or a sign, which names do not have.
    has_sure_numbers: bool,
    /// Types that may be taken.
    order: TypeOrder,
    /// Who chose the type, if it was not the sample.
    given: Option<DataType>,
    /// Of lists of JSON: what is seen are their elements.
    lists: Option<Elements>,
}

/// How the elements of lists are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Elements {
    /// Whether some are strings.
    are_strings: bool,
    /// Whether some are numbers or truths.
    are_bare: bool,
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
            has_exponents: false,
            has_bare_exponents: false,
            has_sure_numbers: false,
            order: TypeOrder::default(),
            given: None,
            lists: None,
        }
    }
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    /// Digits before the point, without leading zeros, once the exponent is applied.
    whole: i64,
    /// Digits after the point, once the exponent is applied.
    scale: i64,
    exponent: Exponent,
    /// Whether it has a point or a sign.
    is_sure: bool,
}

/// The exponent of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exponent {
    None,
    /// After digits only, and without a sign.
    Bare,
    Told,
}

impl ColumnForms {
    /// Nothing seen yet; types are tried in this order.
    pub fn trying(order: TypeOrder) -> Self {
        ColumnForms { order, ..ColumnForms::default() }
    }

    /// The same of a column of lists of JSON.
    pub fn of_lists(order: TypeOrder) -> Self {
        ColumnForms { lists: Some(Elements::default()), ..ColumnForms::trying(order) }
    }

    /// The column has this type, whatever its fields are.
    pub fn give(&mut self, data_type: DataType) {
        self.given = Some(data_type);
    }

    /// Whether the type was given, so that it never becomes another.
    pub fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Takes a field that is not NULL into account.
    pub fn add(&mut self, field: &[u8], formats: &Formats) {
        if self.lists.is_some() {
            return self.add_list(field, formats);
        }
        self.values += 1;
        if self.forms == 0 {
            return;
        }
        if field.len() > TYPED_BYTES_MAX {
            self.forms = 0;
            return;
        }
        let plain = formats.rewrite(field, DataType::Double).unwrap_or(Cow::Borrowed(b""));
        let forms = match written_number(&plain) {
            Some(number) => {
                self.numbers += 1;
                self.add_number(&plain, number)
            }
            None => word_forms(field, formats),
        };
        self.forms &= forms;
    }

    /// Takes the elements of a list into account. What is none, and lists of what is not all of one kind, make the column text,
    /// which keeps them as they are.
    fn add_list(&mut self, field: &[u8], formats: &Formats) {
        let Some(items) = list_items(field) else { return self.make_text() };
        for (written, text) in items {
            let Some(elements) = &mut self.lists else { return };
            elements.are_strings |= written == Item::String;
            elements.are_bare |= written != Item::String;
            if elements.are_strings && elements.are_bare {
                return self.make_text();
            }
            let lists = self.lists.take();
            match written {
                // A string is text, unless it is written as a date or a time.
                Item::String if !tells_date(&text, formats) => {
                    (self.forms, self.values) = (0, self.values + 1);
                }
                _ => self.add(&text, formats),
            }
            if written == Item::Number {
                self.note_number();
            }
            self.lists = lists;
        }
    }

    /// Takes the type that the elements of lists had so far into account: the bounds of lists do not tell how many digits
    /// their elements have.
    fn add_element_type(&mut self, element: DataType) {
        let digits = match element {
            DataType::BigInt => BIGINT_DIGITS,
            DataType::Decimal { precision, scale } => i64::from(precision - scale),
            _ => return,
        };
        self.whole_digits_max = self.whole_digits_max.max(digits);
        self.fits_double = false;
        self.has_sure_numbers = true;
    }

    /// Counts the digits; the forms.
    fn add_number(&mut self, field: &[u8], number: Written) -> u8 {
        let Written { whole, scale, exponent, is_sure } = number;
        self.whole_digits_max = self.whole_digits_max.max(whole);
        self.scale_min = self.scale_min.min(scale);
        self.scale_max = self.scale_max.max(scale);
        self.has_sure_numbers |= is_sure;
        self.has_exponents |= exponent != Exponent::None;
        self.has_bare_exponents |= exponent == Exponent::Bare;
        self.fits_double &= keeps_as_double(field);
        if scale > 0 || exponent != Exponent::None {
            return DECIMAL | DOUBLE;
        }
        self.fits_bigint &= parse_int(field, DataType::BigInt).is_ok();
        INTEGER | DECIMAL | DOUBLE
    }

    /// Takes the least or the largest value of the type that the column had so far into account: the sample may
    /// have had shorter numbers, and values between the two may have as many digits.
    pub fn add_stored(&mut self, value: &Value, data_type: DataType) {
        if let DataType::List(element) = data_type {
            return self.add_element_type(element.data_type());
        }
        let (unscaled, scale) = match (value, data_type) {
            (Value::Int(v), DataType::Decimal { scale, .. }) => (i128::from(*v), scale),
            (Value::Wide(v), DataType::Decimal { scale, .. }) => (*v, scale),
            (Value::Int(v), DataType::BigInt) => (i128::from(*v), 0),
            _ => return,
        };
        let whole = unscaled / 10_i128.pow(scale.into());
        let digits = whole.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1);
        self.whole_digits_max = self.whole_digits_max.max(digits);
        let exact_max = if scale > 0 { DOUBLE_DIGITS_MAX } else { DOUBLE_INTEGER_MAX };
        self.fits_double &= unscaled.unsigned_abs() <= exact_max;
        self.has_sure_numbers |= scale > 0 || unscaled < 0;
    }

    /// Takes the fields of another sample of the column into account.
    pub fn add_sample(&mut self, other: &ColumnForms) {
        match (&mut self.lists, other.lists) {
            (Some(elements), Some(more)) => {
                elements.are_strings |= more.are_strings;
                elements.are_bare |= more.are_bare;
                if elements.are_strings && elements.are_bare {
                    return self.make_text();
                }
            }
            (None, None) => {}
            _ => return self.make_text(),
        }
        self.forms &= other.forms;
        self.values += other.values;
        self.numbers += other.numbers;
        self.whole_digits_max = self.whole_digits_max.max(other.whole_digits_max);
        self.scale_min = self.scale_min.min(other.scale_min);
        self.scale_max = self.scale_max.max(other.scale_max);
        self.fits_bigint &= other.fits_bigint;
        self.fits_double &= other.fits_double;
        self.has_exponents |= other.has_exponents;
        self.has_bare_exponents |= other.has_bare_exponents;
        self.has_sure_numbers |= other.has_sure_numbers;
    }

    /// The field that was added last is a number, whatever it looks like.
    pub fn note_number(&mut self) {
        self.has_sure_numbers = true;
    }

    /// Makes the column text, whatever its fields are.
    pub fn make_text(&mut self) {
        (self.forms, self.values, self.lists) = (0, self.values.max(1), None);
    }

    /// Whether all fields so far are NULL.
    pub fn has_no_values(&self) -> bool {
        self.values == 0
    }

    /// The first type in order that holds the fields seen, with head room for those to come.
    pub fn data_type(&self, end: SampleEnd) -> DataType {
        if let Some(given) = self.given {
            return given;
        }
        let found = self.order.candidates().find_map(|candidate| self.as_candidate(candidate, end));
        let found = found.unwrap_or(DataType::Varchar(None));
        match self.lists {
            None => found,
            // What no list of a type holds, and lists without elements, stay JSON.
            Some(elements) if found.is_text() && !elements.are_strings => found,
            Some(_) => ElementType::of(found).map_or(found, DataType::List),
        }
    }

    /// The type of a kind, if it holds the fields.
    fn as_candidate(&self, candidate: Candidate, end: SampleEnd) -> Option<DataType> {
        let has = |form: u8| self.values > 0 && self.forms & form != 0;
        let of = |form: u8, data_type| has(form).then_some(data_type);
        match candidate {
            Candidate::Boolean => of(BOOLEAN, DataType::Boolean),
            Candidate::BigInt => of(INTEGER, DataType::BigInt).filter(|_| self.fits_bigint),
            Candidate::Decimal => has(DECIMAL).then(|| self.decimal_type(end)).flatten(),
            Candidate::Double => of(DOUBLE, DataType::Double).filter(|_| self.is_double()),
            Candidate::Date => of(DATE, DataType::Date),
            Candidate::Time => of(TIME, DataType::Time),
            Candidate::Timestamp => of(TIMESTAMP, DataType::Timestamp),
            Candidate::TimestampTz => of(TIMESTAMP_TZ, DataType::TimestampTz),
            Candidate::Varchar => Some(DataType::Varchar(None)),
        }
    }

    /// Whether the numbers may be DOUBLE: none is changed by it, and they are no names.
    fn is_double(&self) -> bool {
        self.numbers > 0 && self.fits_double && self.are_numbers()
    }

    /// Whether exponents, if there are any, are those of numbers.
    fn are_numbers(&self) -> bool {
        self.has_sure_numbers || !self.has_bare_exponents
    }

    /// DECIMAL; none for numbers that look like printed floats, or do not fit.
    fn decimal_type(&self, end: SampleEnd) -> Option<DataType> {
        if self.forms & INTEGER != 0 {
            // Longer ones than BIGINT are identifiers, which a DOUBLE would change.
            return decimal(self.whole_digits_max, 0);
        }
        let varying = self.scale_min != self.scale_max;
        let floats = varying && self.scale_max > VARYING_SCALE_MAX || self.has_exponents;
        if floats && self.is_double() && self.order.has(Candidate::Double) {
            return None;
        }
        if !self.are_numbers() || self.has_exponents && self.scale_max == 0 {
            return None;
        }
        // What follows the sample may have more digits, unless all numbers have as many.
        let spare = if varying && end == SampleEnd::Cut { HEAD_ROOM } else { 0 };
        decimal(self.whole_digits_max, self.scale_max + spare)
            .or_else(|| decimal(self.whole_digits_max, self.scale_max))
    }
}

/// Whether a number is one that a DOUBLE is printed as.
fn keeps_as_double(field: &[u8]) -> bool {
    parse_int(field, DataType::Double).is_ok_and(|ordinal| is_double_as_written(field, ordinal))
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

/// A plain number as it is written; `None` when the field is none.
fn written_number(field: &[u8]) -> Option<Written> {
    let field = field.trim_ascii();
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    let count = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = count(digits);
    let (mut rest, mut scale, mut has_point) = (&digits[whole..], 0, false);
    if let [b'.', tail @ ..] = rest {
        (scale, has_point) = (count(tail), true);
        rest = &tail[scale..];
    }
    let leading_zero = digits.first() == Some(&b'0');
    if whole + scale == 0 || (leading_zero && whole > 1) {
        return None;
    }
    let is_sure = has_point || digits.len() < field.len();
    let whole = if leading_zero { 0 } else { whole as i64 };
    let plain = Written { whole, scale: scale as i64, exponent: Exponent::None, is_sure };
    match rest {
        [] => Some(plain),
        [b'e' | b'E', tail @ ..] => with_exponent(plain, field, tail),
        _ => None,
    }
}

/// The number with an exponent, whose digits and sign are `tail`.
fn with_exponent(plain: Written, field: &[u8], tail: &[u8]) -> Option<Written> {
    let digits = tail.strip_prefix(b"-").or(tail.strip_prefix(b"+")).unwrap_or(tail);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Out of the range of DOUBLE, it is no number that could be loaded.
    parse_int(field, DataType::Double).ok()?;
    let size =
        std::str::from_utf8(digits).ok()?.parse::<i32>().map_or(i64::from(i32::MAX), i64::from);
    let power = if tail.starts_with(b"-") { -size } else { size };
    let is_sure = plain.is_sure || digits.len() < tail.len();
    Some(Written {
        whole: (plain.whole + power).max(0),
        scale: (plain.scale - power).max(0),
        exponent: if is_sure { Exponent::Told } else { Exponent::Bare },
        is_sure,
    })
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
    if !formats.has_dates() && !text.first().is_some_and(u8::is_ascii_digit) {
        return 0;
    }
    let is_of = |data_type: DataType| {
        let plain = formats.rewrite(field, data_type);
        plain.is_some_and(|plain| parse_int(&plain, data_type).is_ok())
    };
    if tells_time(text) && is_of(DataType::Time) {
        return TIME;
    }
    let mut forms = 0;
    for (form, data_type) in [(DATE, DataType::Date), (TIMESTAMP, DataType::Timestamp)] {
        forms |= if is_of(data_type) { form } else { 0 };
    }
    // Without a zone it would be a guess that UTC is meant.
    if forms == 0 && is_of(DataType::TimestampTz) {
        forms = TIMESTAMP_TZ;
    }
    forms
}

/// Whether a time has seconds, or says which half of the day it is of: `12:30` may be minutes and seconds, or a score.
pub fn tells_time(text: &[u8]) -> bool {
    let colons = text.iter().filter(|byte| **byte == b':').count();
    colons == 2 || colons == 1 && text.last().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Whether a field has any form but text.
pub fn has_form(field: &[u8]) -> bool {
    written_number(field).is_some() || word_forms(field, &Formats::default()) != 0
}

/// The same of a field whose numbers and dates are written as `formats` say, or as SQL writes them.
pub fn has_form_in(field: &[u8], formats: &Formats) -> bool {
    let plain = formats.rewrite(field, DataType::Double);
    plain.is_some_and(|plain| written_number(&plain).is_some())
        || word_forms(field, formats) != 0
        || has_form(field)
}

/// Numbers of the columns whose types were given.
pub fn given_columns(forms: &[ColumnForms]) -> Vec<u32> {
    let given = forms.iter().enumerate().filter(|(_, forms)| forms.is_given());
    given.map(|(column, _)| column as u32).collect()
}

/// The forms of each column; records with another number of fields than `columns`, or one more
/// for a delimiter at the end, are left out.
pub fn infer_columns(
    records: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
) -> Vec<ColumnForms> {
    let mut forms = vec![ColumnForms::trying(rules.types); columns];
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
    (!field.quoted || rules.nulls_are == NullsAre::AlsoQuoted)
        && rules.nulls.iter().any(|null| *null == *field.text)
        || rules.is_typed_null(&field.text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_types::parse_value;
    use proptest::prelude::*;

    use super::*;

    fn infer(fields: &[&str], end: SampleEnd) -> DataType {
        infer_by(TypeOrder::default(), fields, end)
    }

    fn infer_by(order: TypeOrder, fields: &[&str], end: SampleEnd) -> DataType {
        let mut forms = ColumnForms::trying(order);
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
            (&["1e+05", "2"], "DOUBLE"),
            (&["1e5", "-2"], "DOUBLE"),
            (&["1.0E5"], "DOUBLE"),
            // Names, as nothing says that they are numbers.
            (&["1E5", "2E5", "3E1"], "VARCHAR"),
            (&["1e5", "2"], "VARCHAR"),
            (&["1e5", "NaN"], "VARCHAR"),
            (&["1e999"], "VARCHAR"),
            (&["1e-400", "0.5"], "VARCHAR"),
            // A DOUBLE would change the integer.
            (&["9007199254740993", "1e+5"], "VARCHAR"),
            (&["9007199254740992", "1e+5"], "DOUBLE"),
            // More digits than a DOUBLE is printed with.
            (&["0.12345678901234567890", "1.5"], "DECIMAL(38,20)"),
            (&["12345678901234567.89", "1e3"], "DECIMAL(38,2)"),
            (&["12345678901234567.89", "1e300"], "VARCHAR"),
            (&["0.1234567890123456789012345678901234567890", "1.5"], "VARCHAR"),
            (&["0.12345678901234567890", "NaN"], "VARCHAR"),
            // As C prints them (%.17g), and the shortest ones.
            (&["0.10000000000000001", "0.5"], "DOUBLE"),
            (&["0.90000000000000001", "0.5"], "DECIMAL(38,17)"),
            (&["1.7976931348623157e+308", "5e-324"], "DOUBLE"),
            (&["12:30:00", "7:05:01.5"], "TIME"),
            (&["3:45 PM", "03:45:12 pm", "12:00 a.m."], "TIME"),
            (&["12:30", "07:05"], "VARCHAR"),
            (&["12:30:00", "24:00:00"], "VARCHAR"),
            (&["13:45 PM"], "VARCHAR"),
            (&["2024-01-02 3:45 PM", "2024-01-02 12:00:01 AM"], "TIMESTAMP"),
            (&["2024-01-02 03:45:00.1234567"], "VARCHAR"),
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

    #[test]
    fn types_are_tried_in_the_order_that_is_given() {
        for (order, fields, expected) in [
            ("DOUBLE", &["1", "2.5"][..], "DOUBLE"),
            ("DOUBLE,DECIMAL", &["1", "2.5"], "DOUBLE"),
            ("DOUBLE,DECIMAL", &["1", "12345678901234567.89"], "DECIMAL(38,2)"),
            ("BIGINT", &["1", "2.5"], "VARCHAR"),
            ("DECIMAL", &["1", "2"], "DECIMAL(18,0)"),
            ("TIMESTAMP,DATE", &["2024-01-02"], "TIMESTAMP"),
            ("DATE", &["true"], "VARCHAR"),
            ("VARCHAR", &["1"], "VARCHAR"),
        ] {
            let order = TypeOrder::parse(order).unwrap();
            assert_eq!(infer_by(order, fields, SampleEnd::Whole).to_string(), expected, "{order}");
        }
    }

    proptest! {
        // What is inferred is never another number than what was written.
        #[test]
        fn a_double_is_printed_as_it_was_written(
            field in prop_oneof![
                "-?[0-9]{1,3}\\.[0-9]{10,22}", "[0-9]{14,20}", "[0-9]\\.[0-9]{0,18}[eE][+-]?[0-9]{1,3}",
                any::<f64>().prop_map(|value| format!("{value:e}")),
                any::<f64>().prop_map(|value| format!("{value:.16e}")),
            ],
        ) {
            let field = field.replace("inf", "1").replace("NaN", "1");
            let Ok(ordinal) = parse_int(field.as_bytes(), DataType::Double) else { return Ok(()) };
            let value = coload_types::f64_from_ordinal(ordinal);
            let digits = |text: &str| {
                let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
                let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                let all = format!("{whole}{fraction}").replace('-', "");
                let zeros = all.len() - all.trim_end_matches('0').len();
                let power = exponent.parse::<i64>().unwrap() - fraction.len() as i64 + zeros as i64;
                let all = all.trim_start_matches('0').trim_end_matches('0').to_owned();
                let power = if all.is_empty() { 0 } else { power };
                (all, power)
            };
            let written = digits(&field);
            let printed = |after: usize| digits(&format!("{value:.after$e}")) == written;
            let expected = value != 0.0 && written.0.len() <= 17 && printed(written.0.len().max(1) - 1)
                || written.0.is_empty();
            prop_assert_eq!(is_double_as_written(field.as_bytes(), ordinal), expected, "{} {:?}", field, written);
        }

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
