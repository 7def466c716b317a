//! Lists: values of a LIST column, as bytes whose order is the order of the lists.
//!
//! ```text
//!   list      elements behind each other
//!   element   fe                                NULL, behind all others
//!             40 - n, n bytes                   a negative number, 41 + n, n bytes one that is not
//!             01, text, 00                      text, in which 00 is 00 ff
//! ```
//!
//! Numbers are physical values (`Int` and `Wide`), big-endian, in as few bytes as they need; of negative ones the complement
//! is. A list that another one begins with is before it. The empty list has no bytes.
//!
//! As text a list is JSON: `[1, null]`, `["a", "b"]`, days, moments and UUIDs as strings. [`parse_list`] takes PostgreSQL's
//! `{1,NULL}` as well.

use std::borrow::Cow;
use std::iter::FusedIterator;

use crate::parse_value::check_text;
use crate::{Bitmap, DataType, Error, Physical, Plain, Result, Values};

mod text;

pub use text::{
    parse_checked_list, parse_list, write_list, write_postgres_element, write_postgres_list,
};

/// The type of the elements of a list: any but another list and BINARY, and without a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// See [`DataType::Boolean`].
    Boolean,
    /// See [`DataType::SmallInt`].
    SmallInt,
    /// See [`DataType::Integer`].
    Integer,
    /// See [`DataType::BigInt`].
    BigInt,
    /// See [`DataType::Decimal`].
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// See [`DataType::Real`].
    Real,
    /// See [`DataType::Double`].
    Double,
    /// See [`DataType::Date`].
    Date,
    /// See [`DataType::Time`].
    Time,
    /// See [`DataType::Timestamp`].
    Timestamp,
    /// See [`DataType::TimestampTz`].
    TimestampTz,
    /// See [`DataType::Varchar`].
    Varchar,
    /// See [`DataType::Uuid`].
    Uuid,
}

impl ElementType {
    /// The type as a column has it.
    #[inline]
    pub const fn data_type(self) -> DataType {
        match self {
            ElementType::Boolean => DataType::Boolean,
            ElementType::SmallInt => DataType::SmallInt,
            ElementType::Integer => DataType::Integer,
            ElementType::BigInt => DataType::BigInt,
            ElementType::Decimal { precision, scale } => DataType::Decimal { precision, scale },
            ElementType::Real => DataType::Real,
            ElementType::Double => DataType::Double,
            ElementType::Date => DataType::Date,
            ElementType::Time => DataType::Time,
            ElementType::Timestamp => DataType::Timestamp,
            ElementType::TimestampTz => DataType::TimestampTz,
            ElementType::Varchar => DataType::Varchar(None),
            ElementType::Uuid => DataType::Uuid,
        }
    }

    /// The type of elements that are like values of a column; `None` when lists of such are not kept, as those of lists, of
    /// bytes and of text of some length.
    pub const fn of(data_type: DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => ElementType::Boolean,
            DataType::SmallInt => ElementType::SmallInt,
            DataType::Integer => ElementType::Integer,
            DataType::BigInt => ElementType::BigInt,
            DataType::Decimal { precision, scale } => ElementType::Decimal { precision, scale },
            DataType::Real => ElementType::Real,
            DataType::Double => ElementType::Double,
            DataType::Date => ElementType::Date,
            DataType::Time => ElementType::Time,
            DataType::Timestamp => ElementType::Timestamp,
            DataType::TimestampTz => ElementType::TimestampTz,
            DataType::Varchar(None) => ElementType::Varchar,
            DataType::Uuid => ElementType::Uuid,
            DataType::Char(_) | DataType::Varchar(Some(_)) | DataType::Binary(_) => return None,
            DataType::List(_) => return None,
        })
    }
}

/// An element of a list that is not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element<'a> {
    /// A physical value of [`Physical::Int`].
    Int(i64),
    /// A physical value of [`Physical::Wide`].
    Wide(i128),
    /// A physical value of [`Physical::Bytes`].
    Bytes(Cow<'a, [u8]>),
}

const NULL: u8 = 0xfe;
const TEXT: u8 = 0x01;
const END: u8 = 0x00;
/// Behind [`END`] within text.
const ESCAPED: u8 = 0xff;
const NEGATIVE: u8 = 0x40;
const POSITIVE: u8 = 0x41;
/// Bytes of the largest number.
const NUMBER_BYTES_MAX: u8 = 16;

/// Appends an element to a list; `None` is NULL.
pub fn put_element(list: &mut Vec<u8>, element: Option<&Element<'_>>) {
    match element {
        None => list.push(NULL),
        Some(Element::Int(value)) => put_number(list, i128::from(*value)),
        Some(Element::Wide(value)) => put_number(list, *value),
        Some(Element::Bytes(bytes)) => {
            list.push(TEXT);
            let mut rest = &bytes[..];
            while let Some(at) = memchr::memchr(END, rest) {
                list.extend_from_slice(&rest[..=at]);
                list.push(ESCAPED);
                rest = &rest[at + 1..];
            }
            list.extend_from_slice(rest);
            list.push(END);
        }
    }
}

fn put_number(list: &mut Vec<u8>, value: i128) {
    // What a negative number lacks to -1: its bytes are as few as those of what it mirrors.
    let magnitude = if value < 0 { !value } else { value };
    let zeros = magnitude.leading_zeros() / 8;
    let used = NUMBER_BYTES_MAX - zeros as u8;
    list.push(if value < 0 { NEGATIVE - used } else { POSITIVE + used });
    list.extend_from_slice(&value.to_be_bytes()[zeros as usize..]);
}

/// Whether bytes are a list of elements that are values of their type.
pub fn is_list(list: &[u8], element: ElementType) -> bool {
    let data_type = element.data_type();
    let (least, most) = data_type.facts().limits;
    let wide_most = match data_type {
        DataType::Decimal { precision, .. } => 10_i128.saturating_pow(u32::from(precision)) - 1,
        _ => i128::MAX,
    };
    elements(list, element).all(|element| match element {
        Ok(Some(Element::Int(value))) => (least..=most).contains(&value),
        Ok(Some(Element::Wide(value))) => {
            wide_most == i128::MAX || (-wide_most..=wide_most).contains(&value)
        }
        Ok(Some(Element::Bytes(text))) => check_text(&text, None).is_ok(),
        Ok(None) => true,
        Err(_) => false,
    })
}

/// The elements of a list, in their order.
///
/// An error ends them: the bytes are none of a list of such elements.
pub fn elements(list: &[u8], element: ElementType) -> Elements<'_> {
    Elements { rest: list, element }
}

/// See [`elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
    element: ElementType,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Option<Element<'a>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.rest.split_first()?;
        let element = if *head == NULL { Some((None, rest)) } else { self.value(*head, rest) };
        let Some((element, rest)) = element else {
            self.rest = &[];
            let what = format!("bytes that are no list of {}", self.element.data_type());
            return Some(Err(Error::Corrupt(what)));
        };
        self.rest = rest;
        Some(Ok(element))
    }
}

impl FusedIterator for Elements<'_> {}

impl<'a> Elements<'a> {
    /// The element behind its first byte, and what follows it; `None` when it is not as [`put_element`] writes it.
    fn value(&self, head: u8, rest: &'a [u8]) -> Option<(Option<Element<'a>>, &'a [u8])> {
        match self.element.data_type().physical() {
            Physical::Int => {
                let (value, rest) = number(head, rest)?;
                Some((Some(Element::Int(i64::try_from(value).ok()?)), rest))
            }
            Physical::Wide => {
                let (value, rest) = number(head, rest)?;
                Some((Some(Element::Wide(value)), rest))
            }
            Physical::Bytes => {
                let (text, rest) = text(head, rest)?;
                Some((Some(Element::Bytes(text)), rest))
            }
        }
    }
}

fn number(head: u8, rest: &[u8]) -> Option<(i128, &[u8])> {
    let is_negative = head <= NEGATIVE;
    let used = if is_negative { NEGATIVE - head } else { head - POSITIVE };
    if used > NUMBER_BYTES_MAX {
        return None;
    }
    let (bytes, rest) = rest.split_at_checked(used.into())?;
    let fill = if is_negative { 0xff } else { 0 };
    // One number has one form, so that equal lists have equal bytes.
    if bytes.first() == Some(&fill) {
        return None;
    }
    let mut all = [fill; NUMBER_BYTES_MAX as usize];
    all[(NUMBER_BYTES_MAX - used) as usize..].copy_from_slice(bytes);
    let value = i128::from_be_bytes(all);
    ((value < 0) == is_negative).then_some((value, rest))
}

fn text(head: u8, rest: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    if head != TEXT {
        return None;
    }
    let first = memchr::memchr(END, rest)?;
    if rest.get(first + 1) != Some(&ESCAPED) {
        return Some((Cow::Borrowed(&rest[..first]), &rest[first + 1..]));
    }
    let (mut text, mut at) = (rest[..=first].to_vec(), first + 2);
    loop {
        let next = at + memchr::memchr(END, &rest[at..])?;
        if rest.get(next + 1) != Some(&ESCAPED) {
            text.extend_from_slice(&rest[at..next]);
            return Some((Cow::Owned(text), &rest[next + 1..]));
        }
        text.extend_from_slice(&rest[at..=next]);
        at = next + 2;
    }
}

/// Appends the elements of a list to a column of such values, and says how many they are.
///
/// # Errors
/// `Corrupt` when the bytes are none of such a list, `Limit` when the texts become more than a column holds.
pub fn elements_onto(list: &[u8], element: ElementType, column: &mut Plain) -> Result<usize> {
    let before = column.len();
    for element in elements(list, element) {
        let element = element?;
        match (&mut column.values, &element) {
            (Values::Int(values), Some(Element::Int(value))) => values.push(*value),
            (Values::Wide(values), Some(Element::Wide(value))) => values.push(*value),
            (Values::Bytes(values), Some(Element::Bytes(value))) => {
                if !values.has_room(value.len() as u64) {
                    return Err(Error::Limit("elements of lists over 4 GiB".to_owned()));
                }
                values.push(value);
            }
            (values, _) => values.push_default(),
        }
        let len = column.values.len();
        match (&mut column.nulls, element.is_none()) {
            (Some(nulls), is_null) => nulls.push(is_null),
            (none, true) => none.insert(Bitmap::zeros(len - 1)).push(true),
            (None, false) => {}
        }
    }
    Ok(column.len() - before)
}

#[cfg(test)]
mod tests;
