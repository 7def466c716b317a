//! Values one after the other to a column.
//!
//! A value that the kind of a column does not express (NaN among exact numbers, `infinity` among days, 0000-00-00) makes the
//! column of its block one of texts, which says all values exactly. Nothing is replaced by another value.

use std::borrow::Cow;

use coload_arrow::{ArrowType, Bits, Slice, SliceValues, Strings, Unit, write_scalar};
use coload_load::TypedColumn;

/// What the values of a field are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// True or false.
    Bool,
    /// Whole numbers of so many bytes.
    Int(usize),
    /// The same without sign.
    Unsigned(usize),
    /// Floats of so many bytes.
    Float(usize),
    /// Exact numbers: digits in all, and behind the point.
    Decimal(u8, u8),
    /// Days.
    Date,
    /// Microseconds of a day.
    Time,
    /// Microseconds since 1970.
    Timestamp,
    /// The same in UTC.
    Instant,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// 16 bytes.
    Uuid,
}

impl ReadAs {
    fn arrow(self) -> ArrowType {
        match self {
            ReadAs::Bool => ArrowType::Bool,
            ReadAs::Int(width) => ArrowType::Int { width, signed: true },
            ReadAs::Unsigned(width) => ArrowType::Int { width, signed: false },
            ReadAs::Float(width) => ArrowType::Float(width),
            ReadAs::Decimal(precision, scale) => {
                ArrowType::Decimal { width: 16, precision, scale: scale as i8 }
            }
            ReadAs::Date => ArrowType::Date { width: 4 },
            ReadAs::Time => ArrowType::Time { width: 8, unit: Unit::Micro },
            ReadAs::Timestamp => ArrowType::Timestamp { unit: Unit::Micro, zone: None },
            ReadAs::Instant => {
                ArrowType::Timestamp { unit: Unit::Micro, zone: Some("UTC".to_owned()) }
            }
            ReadAs::Text => ArrowType::Text(8),
            ReadAs::Bytes => ArrowType::Binary(8),
            ReadAs::Uuid => ArrowType::Uuid,
        }
    }

    /// Bytes of a value of fixed width.
    fn width(self) -> usize {
        match self {
            ReadAs::Int(width) | ReadAs::Unsigned(width) | ReadAs::Float(width) => width,
            ReadAs::Decimal(..) | ReadAs::Uuid => 16,
            ReadAs::Date => 4,
            ReadAs::Time | ReadAs::Timestamp | ReadAs::Instant => 8,
            ReadAs::Bool | ReadAs::Text | ReadAs::Bytes => 0,
        }
    }
}

/// A column that is being read.
#[derive(Debug)]
pub struct ColumnBuilder {
    kind: ReadAs,
    rows: usize,
    /// A bit for each row that is no NULL, once there was one.
    valid: Option<Vec<u8>>,
    /// Values of fixed width, or bits.
    fixed: Vec<u8>,
    /// Where texts end, and their bytes.
    places: Vec<usize>,
    bytes: Vec<u8>,
    /// Values are told by texts: one was none of the kind.
    is_told: bool,
}

impl ColumnBuilder {
    /// No value yet.
    pub fn new(kind: ReadAs) -> Self {
        ColumnBuilder {
            kind,
            rows: 0,
            valid: None,
            fixed: Vec::new(),
            places: vec![0],
            bytes: Vec::new(),
            is_told: false,
        }
    }

    /// What its values are read as.
    pub fn kind(&self) -> ReadAs {
        self.kind
    }

    fn is_text(&self) -> bool {
        self.is_told || matches!(self.kind, ReadAs::Text | ReadAs::Bytes)
    }

    /// Adds a row; its value has been added, or there is none.
    fn end_row(&mut self, is_valid: bool) {
        let row = self.rows;
        self.rows += 1;
        if self.is_text() {
            self.places.push(self.bytes.len());
        }
        if !is_valid && self.valid.is_none() {
            let mut bits = vec![0xff; row / 8 + 1];
            // Bits behind the last row are set when it is added.
            bits[row / 8] = ((1_u16 << (row % 8)) - 1) as u8;
            self.valid = Some(bits);
            return;
        }
        if let Some(valid) = &mut self.valid {
            if valid.len() <= row / 8 {
                valid.push(0);
            }
            valid[row / 8] |= u8::from(is_valid) << (row % 8);
        }
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        if !self.is_text() {
            match self.kind {
                ReadAs::Bool => self.push_bit(false),
                kind => self.fixed.extend(std::iter::repeat_n(0, kind.width())),
            }
        }
        self.end_row(false);
    }

    fn push_bit(&mut self, bit: bool) {
        if self.rows.is_multiple_of(8) {
            self.fixed.push(0);
        }
        if let Some(last) = self.fixed.last_mut() {
            *last |= u8::from(bit) << (self.rows % 8);
        }
    }

    /// Adds true or false.
    pub fn push_bool(&mut self, value: bool) {
        match self.is_told {
            true => self.bytes.extend_from_slice(if value { b"true" } else { b"false" }),
            false => self.push_bit(value),
        }
        self.end_row(true);
    }

    /// Adds a value of fixed width, the lowest byte first.
    pub fn push_fixed<const N: usize>(&mut self, value: [u8; N]) {
        debug_assert_eq!(N, self.kind.width());
        match self.is_told {
            true => {
                let one = Slice::new(1, None, SliceValues::Fixed(N, Cow::Borrowed(&value)));
                if let Some(value) = one.get(&self.kind.arrow(), 0) {
                    write_scalar(value, &mut self.bytes);
                }
            }
            false => self.fixed.extend_from_slice(&value),
        }
        self.end_row(true);
    }

    /// Adds a text, or bytes.
    pub fn push_bytes(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end_row(true);
    }

    /// Adds a value that its kind does not express: from now on all values of the block are texts.
    pub fn push_told(&mut self, value: &str) {
        if !self.is_text() {
            self.tell_all();
        }
        self.push_bytes(value.as_bytes());
    }

    /// Makes texts of all values so far.
    fn tell_all(&mut self) {
        let values = std::mem::take(&mut self.fixed);
        let values = match self.kind {
            ReadAs::Bool => SliceValues::Bits(Bits::new(values)),
            kind => SliceValues::Fixed(kind.width(), Cow::Owned(values)),
        };
        let valid = self.valid.clone().map(Bits::new);
        let slice = Slice::new(self.rows, valid, values);
        let kind = self.kind.arrow();
        for row in 0..self.rows {
            if let Some(value) = slice.get(&kind, row) {
                write_scalar(value, &mut self.bytes);
            }
            self.places.push(self.bytes.len());
        }
        self.is_told = true;
    }

    /// The column.
    pub fn finish(self) -> TypedColumn<'static> {
        let values = match (self.is_told, self.kind) {
            (true, _) => ArrowType::Text(8),
            (false, kind) => kind.arrow(),
        };
        let rows = if self.is_text() {
            SliceValues::Strings(Strings::Ends {
                places: self.places,
                bytes: Cow::Owned(self.bytes),
            })
        } else if self.kind == ReadAs::Bool {
            SliceValues::Bits(Bits::new(self.fixed))
        } else {
            SliceValues::Fixed(self.kind.width(), Cow::Owned(self.fixed))
        };
        let slice = Slice::new(self.rows, self.valid.map(Bits::new), rows);
        TypedColumn { values, slice, dictionary: None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The values of a column as texts.
    fn texts(column: &TypedColumn<'_>) -> Vec<Option<String>> {
        let text = |row| {
            column.get(row).map(|value| {
                let mut text = Vec::new();
                write_scalar(value, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        (0..column.slice.rows).map(text).collect()
    }

    #[test]
    fn a_value_of_no_kind_changes_no_other() {
        let mut column = ColumnBuilder::new(ReadAs::Date);
        column.push_fixed(1_i32.to_le_bytes());
        column.push_null();
        column.push_told("infinity");
        column.push_fixed((-1_i32).to_le_bytes());
        column.push_null();
        let told: Vec<Option<String>> = texts(&column.finish());
        let some = |text: &str| Some(text.to_owned());
        let expected =
            [some("1970-01-02"), None, some("infinity"), some("1969-12-31"), None].to_vec();
        assert_eq!(told, expected);
    }

    proptest! {
        /// Each value is -2 to 2, `None` NULL, and 3 one that the kind does not express.
        #[test]
        fn what_is_pushed_is_what_is_read(values in proptest::collection::vec(proptest::option::of(-2_i64..=3), 0..40)) {
            let mut ints = ColumnBuilder::new(ReadAs::Int(8));
            let mut bools = ColumnBuilder::new(ReadAs::Bool);
            for value in &values {
                match value {
                    None => { ints.push_null(); bools.push_null(); }
                    Some(3) => { ints.push_told("three"); bools.push_told("maybe"); }
                    Some(value) => { ints.push_fixed(value.to_le_bytes()); bools.push_bool(*value > 0); }
                }
            }
            let of = |told: fn(i64) -> String| -> Vec<Option<String>> { values.iter().map(|value| value.map(told)).collect() };
            let number = |value: i64| if value == 3 { "three".to_owned() } else { value.to_string() };
            let truth = |value: i64| if value == 3 { "maybe".to_owned() } else { (value > 0).to_string() };
            prop_assert_eq!(texts(&ints.finish()), of(number));
            prop_assert_eq!(texts(&bools.finish()), of(truth));
        }
    }
}
