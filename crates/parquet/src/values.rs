//! How values stand in pages and statistics.

use coload_types::{
    Bitmap, DataType, Plain, Strings, Value, Values, display, f32_from_ordinal, f64_from_ordinal,
};
use parquet::basic::Type as Physical;

use crate::bounds::{Bound, Kind, lower_bound, upper_bound};
use crate::schema::decimal_bytes;

/// Characters of a UUID.
const UUID_TEXT_BYTES: u32 = 36;

/// What a column's values are, here and in Parquet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub physical: Physical,
    pub data_type: DataType,
}

impl Form {
    /// Appends the values of some rows, none of which is NULL.
    pub fn push_values(
        self,
        values: &Values,
        rows: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) {
        match (values, self.physical) {
            (Values::Int(numbers), Physical::BOOLEAN) => {
                let mut bits = 0;
                for (count, row) in rows.enumerate() {
                    if count % 8 == 0 {
                        out.push(0);
                        bits = out.len() - 1;
                    }
                    out[bits] |= u8::from(numbers[row] != 0) << (count % 8);
                }
            }
            (Values::Int(numbers), Physical::INT32) => {
                rows.for_each(|row| out.extend_from_slice(&(numbers[row] as i32).to_le_bytes()));
            }
            (Values::Int(numbers), Physical::FLOAT) => rows.for_each(|row| {
                out.extend_from_slice(&f32_from_ordinal(numbers[row]).to_le_bytes());
            }),
            (Values::Int(numbers), Physical::DOUBLE) => rows.for_each(|row| {
                out.extend_from_slice(&f64_from_ordinal(numbers[row]).to_le_bytes());
            }),
            (Values::Int(numbers), _) => {
                rows.for_each(|row| out.extend_from_slice(&numbers[row].to_le_bytes()));
            }
            (Values::Wide(numbers), _) => rows.for_each(|row| {
                if self.physical == Physical::BYTE_ARRAY {
                    out.extend_from_slice(&UUID_TEXT_BYTES.to_le_bytes());
                }
                self.push_wide(numbers[row], out);
            }),
            (Values::Bytes(strings), _) => rows.for_each(|row| {
                let text = strings.get(row);
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }),
        }
    }

    /// A decimal, or the text of a UUID.
    fn push_wide(self, wide: i128, out: &mut Vec<u8>) {
        match self.data_type {
            DataType::Decimal { precision, .. } => {
                let bytes = wide.to_be_bytes();
                out.extend_from_slice(&bytes[bytes.len() - decimal_bytes(precision)..]);
            }
            other => display::write_wide(wide, other, out),
        }
    }

    /// Whether a value is a float that is no number.
    pub fn is_nan(self, values: &Values, index: usize) -> bool {
        let Values::Int(numbers) = values else { return false };
        match self.physical {
            Physical::FLOAT => f32_from_ordinal(numbers[index]).is_nan(),
            Physical::DOUBLE => f64_from_ordinal(numbers[index]).is_nan(),
            _ => false,
        }
    }

    /// What is not above a value, as it stands in statistics.
    pub fn lower(self, value: &Value) -> Bound {
        match value {
            Value::Bytes(text) => lower_bound(text, self.kind()),
            // Zeros are equal, whatever their sign.
            _ => Bound { bytes: self.number(value, -0.0), exact: true },
        }
    }

    /// What is not below a value; `None` when only what is too long is.
    pub fn upper(self, value: &Value) -> Option<Bound> {
        match value {
            Value::Bytes(text) => upper_bound(text, self.kind()),
            _ => Some(Bound { bytes: self.number(value, 0.0), exact: true }),
        }
    }

    fn kind(self) -> Kind {
        match self.data_type {
            DataType::Binary(_) => Kind::Bytes,
            _ => Kind::Text,
        }
    }

    /// A number, with this zero for any.
    fn number(self, value: &Value, zero: f64) -> Vec<u8> {
        match (self.physical, value) {
            (Physical::BOOLEAN, Value::Int(bit)) => vec![*bit as u8],
            (Physical::INT32, Value::Int(number)) => (*number as i32).to_le_bytes().to_vec(),
            (Physical::FLOAT, Value::Int(ordinal)) => match f32_from_ordinal(*ordinal) {
                0.0 => (zero as f32).to_le_bytes().to_vec(),
                number => number.to_le_bytes().to_vec(),
            },
            (Physical::DOUBLE, Value::Int(ordinal)) => match f64_from_ordinal(*ordinal) {
                0.0 => zero.to_le_bytes().to_vec(),
                number => number.to_le_bytes().to_vec(),
            },
            (_, Value::Int(number)) => number.to_le_bytes().to_vec(),
            (_, Value::Wide(wide)) => {
                let mut out = Vec::new();
                self.push_wide(*wide, &mut out);
                out
            }
            (_, Value::Bytes(text)) => text.to_vec(),
        }
    }
}

/// The values that codes stand for; any code past the last is NULL. Text of all of them is below 4 GiB.
pub(crate) fn decode(dictionary: &Values, codes: &[u32]) -> Plain {
    fn gather<T: Copy + Default>(values: &[T], codes: &[u32]) -> Vec<T> {
        codes.iter().map(|code| values.get(*code as usize).copied().unwrap_or_default()).collect()
    }
    let values = match dictionary {
        Values::Int(numbers) => Values::Int(gather(numbers, codes)),
        Values::Wide(numbers) => Values::Wide(gather(numbers, codes)),
        Values::Bytes(strings) => {
            let mut out = Strings::default();
            for code in codes {
                let is_value = (*code as usize) < strings.len();
                out.push(if is_value { strings.get(*code as usize) } else { b"" });
            }
            Values::Bytes(out)
        }
    };
    let mut nulls = Bitmap::zeros(0);
    codes.iter().for_each(|code| nulls.push(*code as usize >= dictionary.len()));
    Plain { values, nulls: (nulls.count_ones() > 0).then_some(nulls) }
}

/// The rows with the least and the largest value.
pub(crate) fn ends_of(
    values: &Values,
    rows: impl Iterator<Item = usize>,
) -> Option<(usize, usize)> {
    fn ends<T: Ord>(
        rows: impl Iterator<Item = usize>,
        get: impl Fn(usize) -> T,
    ) -> Option<(usize, usize)> {
        let mut ends: Option<((usize, T), (usize, T))> = None;
        for row in rows {
            match &mut ends {
                None => ends = Some(((row, get(row)), (row, get(row)))),
                Some((least, largest)) => {
                    let value = get(row);
                    if value < least.1 {
                        *least = (row, value);
                    } else if value > largest.1 {
                        *largest = (row, value);
                    }
                }
            }
        }
        ends.map(|(least, largest)| (least.0, largest.0))
    }
    match values {
        Values::Int(numbers) => ends(rows, |row| numbers[row]),
        Values::Wide(numbers) => ends(rows, |row| numbers[row]),
        Values::Bytes(strings) => ends(rows, |row| strings.get(row)),
    }
}
