//! How the fields of a column become values: its type, its rules, and what an inferred type leaves out.

use std::borrow::Cow;

use coload_types::parse_value::{Rule, is_double_as_written, parse_value};
use coload_types::{
    DataType, Element, ElementType, Physical, Value, check_bytes, parse_checked_list,
};

use crate::field::{FieldError, FieldRules};
use crate::infer::tells_time;

/// Bytes of a number that has at most 15 digits, with which every DOUBLE has as many.
const SHORT_DOUBLE_BYTES: usize = 15;
/// No number of so few bytes is so small that a DOUBLE has fewer digits: `1e-400` has one more.
const SHORTEST_UNDERFLOW_BYTES: usize = 5;
/// The ordinal of 1e-290, below which a DOUBLE may have fewer digits.
const LEAST_EXACT: i64 = 1e-290_f64.to_bits() as i64;

/// Who chose a column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TypeOrigin {
    /// The user, or the table that was there.
    #[default]
    Declared,
    /// A sample: what inference would not have taken for the type does not fit, though it can be read.
    /// So a number with leading zeros, such as a post code, does not lose them.
    Inferred,
}

/// A column being read: its type, its rules and whether it may be NULL.
#[derive(Debug, Clone)]
pub struct ColumnRules {
    /// Type that a field's text is read as.
    pub data_type: DataType,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// Whether an empty field is NULL in a NOT NULL column of text too, because the input says so itself, as JSON does. Text that
    /// is delimited has no other way to say the empty string.
    pub empties_are_null: bool,
    /// How fields are read.
    pub fields: FieldRules,
    /// Who chose the type.
    pub origin: TypeOrigin,
    /// Which field of a record it is; `None` where the inputs lack it.
    pub field: Option<usize>,
    /// What stands in it where an input lacks it; NULL if `None`.
    pub absent: Option<Value>,
}

impl ColumnRules {
    /// The value of a field.
    pub fn value(&self, raw: &[u8]) -> Result<Option<Value>, FieldError> {
        if self.data_type.physical() == Physical::Bytes {
            return Ok(self.bytes(raw)?.map(|bytes| Value::Bytes(bytes.into())));
        }
        match self.fields.read(raw)? {
            None if self.nullable => Ok(None),
            None => Err(FieldError::Null),
            Some(bytes) if self.fields.formats.rewrites(self.data_type) => {
                let plain = self.fields.formats.rewrite(&bytes, self.data_type);
                let plain = plain.ok_or(FieldError::Rule(Rule::NotOfTheForm))?;
                self.plain_value(&plain)
            }
            Some(bytes) => self.plain_value(&bytes),
        }
    }

    /// The value of a field of a column of bytes, not copied where the field holds it as it is.
    ///
    /// # Panics
    /// When the type is of another shape: a bug of the caller.
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        let formats = &self.fields.formats;
        let bytes = match self.fields.read(raw)? {
            None if self.nullable => return Ok(None),
            // An empty field of a NOT NULL text column is the empty string.
            None if raw.is_empty() && !self.empties_are_null && self.list().is_none() => {
                return Ok(Some(Cow::Borrowed(raw)));
            }
            None => return Err(FieldError::Null),
            Some(bytes) if formats.rewrites(self.data_type) => {
                let plain = formats.rewrite(&bytes, self.data_type);
                Cow::Owned(plain.ok_or(FieldError::Rule(Rule::NotOfTheForm))?.into_owned())
            }
            Some(bytes) => bytes,
        };
        if let Some(element) = self.list().filter(|_| self.origin == TypeOrigin::Inferred) {
            return inferred_list(&bytes, element).map(Some).map_err(FieldError::Rule);
        }
        match bytes {
            Cow::Borrowed(bytes) => check_bytes(bytes, self.data_type).map(Some),
            Cow::Owned(bytes) => match check_bytes(&bytes, self.data_type) {
                Ok(Cow::Owned(read)) => Ok(Some(Cow::Owned(read))),
                Ok(Cow::Borrowed(_)) => Ok(Some(Cow::Owned(bytes))),
                Err(rule) => Err(rule),
            },
        }
        .map_err(FieldError::Rule)
    }

    /// The type of the elements of a column of lists.
    fn list(&self) -> Option<ElementType> {
        match self.data_type {
            DataType::List(element) => Some(element),
            _ => None,
        }
    }

    /// The value of a field that is written as SQL writes it.
    fn plain_value(&self, bytes: &[u8]) -> Result<Option<Value>, FieldError> {
        let value = parse_value(bytes, self.data_type).map_err(FieldError::Rule)?;
        let int = if let Value::Int(int) = value { int } else { 0 };
        match self.has_doubts() && is_doubtful(bytes, self.data_type, int) {
            true => Err(FieldError::Rule(Rule::NotAsInferred)),
            false => Ok(Some(value)),
        }
    }

    /// Whether an empty field is no value of the column.
    pub fn refuses_empty(&self) -> bool {
        !self.nullable && self.empties_are_null && self.fields.empty_is_null()
    }

    /// Whether a field that could be read as SQL writes it may be something else.
    pub fn reads_otherwise(&self) -> bool {
        self.fields.formats.rewrites(self.data_type) || self.fields.has_nulls_of(self.data_type)
    }

    /// Whether some fields that can be read do not fit, as [`is_doubtful`] tells.
    pub fn has_doubts(&self) -> bool {
        self.origin == TypeOrigin::Inferred && may_doubt(self.data_type)
    }
}

/// Whether [`is_doubtful`] tells something of a type.
fn may_doubt(data_type: DataType) -> bool {
    use DataType::{Boolean, Time, TimestampTz};
    matches!(data_type, Boolean | Time | TimestampTz) || data_type.is_number()
}

/// A list whose type was inferred, and that of its elements with it.
fn inferred_list(field: &[u8], element: ElementType) -> Result<Cow<'static, [u8]>, Rule> {
    let check = |text: &[u8], is_string: bool, value: &Element<'_>| {
        let (data_type, int) =
            (element.data_type(), if let Element::Int(int) = value { *int } else { 0 });
        // A string is no number, though a DOUBLE has a text such as inf, and a number is no string.
        let is_other = data_type.is_number() && is_string || data_type.is_text() && !is_string;
        match is_other || may_doubt(data_type) && is_doubtful(text, data_type, int) {
            true => Err(Rule::NotAsInferred),
            false => Ok(()),
        }
    };
    parse_checked_list(field, element, check).map(Cow::Owned)
}

/// Whether inference would not have taken a field for the type that it can be read as: a number with leading zeros or
/// a plus sign, one that a DOUBLE changes, an integer with an exponent, a truth value other than `true` and `false`, a
/// time without seconds, an instant without its zone. `value` is what was read, if the type has 64 bits.
#[inline]
pub fn is_doubtful(field: &[u8], data_type: DataType, value: i64) -> bool {
    match data_type {
        DataType::Boolean => {
            let word = field.trim_ascii();
            return !word.eq_ignore_ascii_case(b"true") && !word.eq_ignore_ascii_case(b"false");
        }
        DataType::Time => return !tells_time(field.trim_ascii()),
        DataType::TimestampTz => return !has_zone(field.trim_ascii()),
        DataType::Double if is_changed(field, value) => return true,
        DataType::Decimal { scale: 0, .. } if memchr::memchr2(b'e', b'E', field).is_some() => {
            return true;
        }
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {}
        DataType::Decimal { .. } | DataType::Real | DataType::Double => {}
        DataType::Date | DataType::Timestamp => {}
        DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_) | DataType::Uuid => {}
        DataType::List(_) => {}
    }
    // Most numbers start with another digit.
    !matches!(field.first(), Some(b'1'..=b'9')) && is_code(field)
}

/// Whether a number is not one that its DOUBLE is printed as. So many bytes hold at most 15 digits, which no DOUBLE changes
/// that is not near zero.
#[inline]
fn is_changed(field: &[u8], ordinal: i64) -> bool {
    let near_zero = (LEAST_EXACT.wrapping_neg()..LEAST_EXACT).contains(&ordinal);
    if field.len() <= SHORT_DOUBLE_BYTES && (!near_zero || field.len() <= SHORTEST_UNDERFLOW_BYTES)
    {
        return false;
    }
    !is_double_as_written(field, ordinal)
}

/// Whether an instant that can be read has a zone, behind its date.
fn has_zone(text: &[u8]) -> bool {
    let behind = text.get("2000-1-1".len()..).unwrap_or_default();
    matches!(behind.last(), Some(b'Z' | b'z' | b'C' | b'c'))
        || behind.iter().any(|byte| matches!(byte, b'+' | b'-'))
}

fn is_code(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    match field.strip_prefix(b"-").unwrap_or(field) {
        [b'+', ..] => true,
        [b'0', next, ..] => next.is_ascii_digit(),
        _ => false,
    }
}
