//! Rows of a column, as they are read.

use coload_arrow::{ArrowType, Bits, Result, Slice, SliceValues, Strings};

use crate::cursor::Cursor;
use crate::layout::AvroField;
use crate::leaf::{Decimal, Leaf, Meaning, Stored, read_decimal, write_duration};

/// Bytes of decimals, as a rule and where one has more digits.
const SHORT: usize = 16;
const LONG: usize = 32;

/// Bits that are added one by one.
#[derive(Debug, Default)]
struct BitRows {
    bytes: Vec<u8>,
    count: usize,
    has_zeros: bool,
}

impl BitRows {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.count % 8);
        }
        self.has_zeros |= !bit;
        self.count += 1;
    }
}

/// What rows hold.
#[derive(Debug)]
enum Out {
    Nothing,
    Bits(BitRows),
    Fixed(usize, Vec<u8>),
    Decimals {
        width: usize,
        bytes: Vec<u8>,
    },
    Texts {
        places: Vec<usize>,
        bytes: Vec<u8>,
    },
    /// Places among symbols.
    Keys(Vec<u32>),
}

/// Rows of a column.
#[derive(Debug)]
pub(crate) struct ColumnRows {
    /// Which are no NULL, where some may be.
    valid: Option<BitRows>,
    out: Out,
    count: usize,
}

impl ColumnRows {
    /// No rows yet, and room for so many. `leaf` is what the values are, if they are no JSON.
    pub fn new(field: &AvroField, leaf: Option<&Leaf>, rows: usize) -> Self {
        let texts = || {
            let mut places = Vec::with_capacity(rows + 1);
            places.push(0);
            Out::Texts { places, bytes: Vec::new() }
        };
        let out = match leaf {
            None => texts(),
            Some(leaf) => match leaf.values() {
                ArrowType::Null => Out::Nothing,
                ArrowType::Bool => Out::Bits(BitRows::default()),
                ArrowType::Decimal { .. } => {
                    Out::Decimals { width: SHORT, bytes: Vec::with_capacity(rows * SHORT) }
                }
                _ if field.symbols.is_some() => Out::Keys(Vec::with_capacity(rows)),
                values => match values.width() {
                    Some(width) => Out::Fixed(width, Vec::with_capacity(rows * width)),
                    None => texts(),
                },
            },
        };
        ColumnRows { valid: field.nullable.then(BitRows::default), out, count: 0 }
    }

    fn push_valid(&mut self, valid: bool) {
        self.count += 1;
        if let Some(rows) = &mut self.valid {
            rows.push(valid);
        }
    }

    /// Adds a NULL.
    pub fn push_null(&mut self) {
        self.push_valid(false);
        match &mut self.out {
            Out::Nothing => {}
            Out::Bits(rows) => rows.push(false),
            Out::Fixed(width, bytes) | Out::Decimals { width, bytes } => {
                bytes.resize(bytes.len() + *width, 0);
            }
            Out::Texts { places, bytes } => places.push(bytes.len()),
            Out::Keys(keys) => keys.push(0),
        }
    }

    /// Adds a value.
    pub fn read(&mut self, leaf: &Leaf, cursor: &mut Cursor<'_>) -> Result<()> {
        self.push_valid(true);
        match (&mut self.out, &leaf.stored) {
            (Out::Bits(rows), _) => rows.push(cursor.bool()?),
            (Out::Fixed(_, bytes), Stored::Int) => {
                bytes.extend_from_slice(&cursor.int()?.to_le_bytes());
            }
            (Out::Fixed(_, bytes), Stored::Long) => {
                bytes.extend_from_slice(&cursor.long()?.to_le_bytes());
            }
            (Out::Fixed(width, bytes), _) => bytes.extend_from_slice(cursor.take(*width)?),
            (Out::Keys(keys), Stored::Enum(symbols)) => {
                keys.push(cursor.choice(symbols.len(), "symbol")? as u32);
            }
            (Out::Decimals { width, bytes }, _) => {
                match read_decimal(leaf.raw(cursor)?)? {
                    Decimal::Short(digits) if *width == SHORT => {
                        bytes.extend_from_slice(&digits.to_le_bytes());
                    }
                    Decimal::Short(digits) => {
                        bytes.extend_from_slice(&digits.to_le_bytes());
                        bytes.extend_from_slice(&(digits >> 127).to_le_bytes());
                    }
                    Decimal::Long(digits) => {
                        if *width == SHORT {
                            *bytes = lengthened(bytes);
                            *width = LONG;
                        }
                        bytes.extend_from_slice(&digits);
                    }
                };
            }
            (Out::Texts { places, bytes }, _) => {
                match leaf.meaning {
                    Meaning::Duration => write_duration(&cursor.array()?, bytes),
                    _ => bytes.extend_from_slice(leaf.raw(cursor)?),
                }
                places.push(bytes.len());
            }
            (Out::Nothing | Out::Keys(_), _) => {}
        }
        Ok(())
    }

    /// Adds a text of JSON, which is NULL if it is that; its bytes.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<usize> {
        let Out::Texts { places, bytes } = &mut self.out else { return Ok(0) };
        let start = bytes.len();
        write(bytes)?;
        let written = bytes.len() - start;
        let is_null = bytes[start..] == *b"null";
        if is_null {
            bytes.truncate(start);
        }
        places.push(bytes.len());
        self.push_valid(!is_null);
        Ok(written)
    }

    /// The rows, and the type of their values, which are of this one as a rule.
    pub fn finish(self, values: ArrowType) -> (ArrowType, Slice<'static>) {
        let (rows, valid) = (self.count, self.valid);
        let valid = valid.filter(|rows| rows.has_zeros).map(|rows| Bits::new(rows.bytes));
        let (values, out) = match (self.out, values) {
            (Out::Nothing, values) => (values, SliceValues::Nothing),
            (Out::Bits(rows), values) => (values, SliceValues::Bits(Bits::new(rows.bytes))),
            (Out::Fixed(width, bytes), values) => (values, SliceValues::Fixed(width, bytes.into())),
            (Out::Decimals { width, bytes }, ArrowType::Decimal { precision, scale, .. }) => {
                let values = ArrowType::Decimal { width, precision, scale };
                (values, SliceValues::Fixed(width, bytes.into()))
            }
            (Out::Decimals { width, bytes }, values) => {
                (values, SliceValues::Fixed(width, bytes.into()))
            }
            (Out::Texts { places, bytes }, values) => {
                let strings = Strings::Ends { places, bytes: bytes.into() };
                (values, SliceValues::Strings(strings))
            }
            // Of the dictionary that the field has; there is one only.
            (Out::Keys(keys), values) => (values, SliceValues::Keys(keys, 0)),
        };
        (values, Slice::new(rows, valid, out))
    }
}

/// Decimals with room for more digits.
fn lengthened(short: &[u8]) -> Vec<u8> {
    let mut long = Vec::with_capacity(short.len() * 2 + LONG);
    for digits in short.as_chunks::<SHORT>().0 {
        long.extend_from_slice(digits);
        long.extend([if digits[SHORT - 1] >= 0x80 { 0xff } else { 0 }; LONG - SHORT]);
    }
    long
}
