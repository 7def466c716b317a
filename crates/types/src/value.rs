//! Values and columns of values, not yet encoded.

use crate::{Physical, display};

/// One physical value; NULL is `Option::None` around it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Value of a type whose physical form is [`Physical::Int`].
    Int(i64),
    /// Value of a type whose physical form is [`Physical::Wide`].
    Wide(i128),
    /// Value of a type whose physical form is [`Physical::Bytes`].
    Bytes(Box<[u8]>),
}

/// A set of row numbers, a bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` bits, all clear.
    pub fn zeros(len: usize) -> Self {
        Bitmap { words: vec![0; len.div_ceil(64)], len }
    }

    /// Number of bits, set and clear.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether bit `index`, counted from 0, is set.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets bit `index`, which must be below [`Self::len`].
    #[inline]
    pub fn set(&mut self, index: usize) {
        assert!(index < self.len);
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Appends one bit, set or clear.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if bit {
            self.set(self.len - 1);
        }
    }

    /// Appends `count` clear bits.
    pub fn extend_zeros(&mut self, count: usize) {
        self.len += count;
        self.words.resize(self.len.div_ceil(64), 0);
    }

    /// Appends the bits, low bit first, `ceil(len / 8)` bytes.
    pub fn put_bytes(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.words.iter().flat_map(|w| w.to_le_bytes()));
        out.truncate(start + self.len.div_ceil(8));
    }

    /// Appends `count` bits of what [`Self::put_bytes`] wrote.
    ///
    /// # Panics
    /// When `bytes` are too few.
    pub fn extend_from_bytes(&mut self, bytes: &[u8], count: usize) {
        for i in 0..count {
            self.push(bytes[i / 8] >> (i % 8) & 1 == 1);
        }
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }
}

/// Byte strings one after the other.
///
/// Shape: string `i` is `bytes[ends[i - 1]..ends[i]]`, with `ends[-1] = 0`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    /// Bytes of all strings, without separators.
    pub bytes: Vec<u8>,
    /// Where each string ends.
    pub ends: Vec<u32>,
}

impl Strings {
    /// Number of strings, empty ones among them.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of string `index`, counted from 0.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Whether `more` bytes can still be appended: ends are of 32 bits.
    #[inline]
    pub fn has_room(&self, more: u64) -> bool {
        self.bytes.len() as u64 + more <= u64::from(u32::MAX)
    }

    /// Appends a string. The caller sees to it that there is room ([`Self::has_room`]).
    #[inline]
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        assert!(self.bytes.len() <= u32::MAX as usize, "strings of one column over 4 GiB");
        self.ends.push(self.bytes.len() as u32);
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }
}

/// Values of one physical shape, in row order. A NULL row holds 0 or the empty string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Values of a type whose physical form is [`Physical::Int`].
    Int(Vec<i64>),
    /// Values of a type whose physical form is [`Physical::Wide`].
    Wide(Vec<i128>),
    /// Values of a type whose physical form is [`Physical::Bytes`].
    Bytes(Strings),
}

impl Values {
    /// No values of a shape.
    pub fn empty(physical: Physical) -> Self {
        match physical {
            Physical::Int => Values::Int(Vec::new()),
            Physical::Wide => Values::Wide(Vec::new()),
            Physical::Bytes => Values::Bytes(Strings::default()),
        }
    }

    /// Physical form of the values.
    #[inline]
    pub fn physical(&self) -> Physical {
        match self {
            Values::Int(_) => Physical::Int,
            Values::Wide(_) => Physical::Wide,
            Values::Bytes(_) => Physical::Bytes,
        }
    }

    /// Number of values, whatever NULL rows hold among them.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Values::Int(v) => v.len(),
            Values::Wide(v) => v.len(),
            Values::Bytes(v) => v.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the values, without room for more.
    pub fn bytes(&self) -> usize {
        match self {
            Values::Int(v) => size_of_val(&v[..]),
            Values::Wide(v) => size_of_val(&v[..]),
            Values::Bytes(v) => v.bytes.len() + size_of_val(&v.ends[..]),
        }
    }

    /// A copy of value `index`, counted from 0.
    pub fn get(&self, index: usize) -> Value {
        match self {
            Values::Int(v) => Value::Int(v[index]),
            Values::Wide(v) => Value::Wide(v[index]),
            Values::Bytes(v) => Value::Bytes(v.get(index).into()),
        }
    }

    /// Appends a value of the same shape.
    ///
    /// # Panics
    /// When the shape differs: a bug of the caller.
    pub fn push(&mut self, value: &Value) {
        match (self, value) {
            (Values::Int(v), Value::Int(x)) => v.push(*x),
            (Values::Wide(v), Value::Wide(x)) => v.push(*x),
            (Values::Bytes(v), Value::Bytes(x)) => v.push(x),
            _ => panic!("value of another shape"),
        }
    }

    /// Appends what a NULL row holds.
    pub fn push_default(&mut self) {
        match self {
            Values::Int(v) => v.push(0),
            Values::Wide(v) => v.push(0),
            Values::Bytes(v) => v.push(b""),
        }
    }
}

/// A column in row order, not encoded: what the parse step makes when it makes no codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// A value for each row.
    pub values: Values,
    /// Which rows are NULL; `None` when none is.
    pub nulls: Option<Bitmap>,
}

impl Plain {
    /// A column of no rows, whose values have this physical form.
    pub fn empty(physical: Physical) -> Self {
        Plain { values: Values::empty(physical), nulls: None }
    }

    /// Number of rows, NULLs among them.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `index`; `None` is NULL.
    pub fn get(&self, index: usize) -> Option<Value> {
        if self.is_null(index) { None } else { Some(self.values.get(index)) }
    }

    /// Whether row `index` is NULL.
    #[inline]
    pub fn is_null(&self, index: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.get(index))
    }

    /// Appends a row; `None` is NULL.
    pub fn push(&mut self, value: Option<&Value>) {
        match value {
            Some(v) => {
                self.values.push(v);
                if let Some(nulls) = &mut self.nulls {
                    nulls.push(false);
                }
            }
            None => {
                let len = self.len();
                self.values.push_default();
                self.nulls.get_or_insert_with(|| Bitmap::zeros(len)).push(true);
            }
        }
    }

    /// Number of NULL rows.
    pub fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, Bitmap::count_ones)
    }
}

impl Value {
    /// Physical form of the value.
    #[inline]
    pub fn physical(&self) -> Physical {
        match self {
            Value::Int(_) => Physical::Int,
            Value::Wide(_) => Physical::Wide,
            Value::Bytes(_) => Physical::Bytes,
        }
    }

    /// The value as SQL would print it, without quotes.
    pub fn display(&self, data_type: crate::DataType) -> String {
        display::display_value(self, data_type)
    }
}
