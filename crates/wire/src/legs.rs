//! A load that goes on with wider types: what the server has so far, and what the columns are from now on.

use coload_ddl::column_sql;
use coload_ddl::{Schema, parse_columns};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result, Value};

use crate::read_text;

/// The least and the largest value of each column of the partitions of the last types, if they are numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// For each column of the table.
    pub columns: Vec<Option<(Value, Value)>>,
}

impl Ranges {
    /// For each column 0, or 1 and two i64, or 2 and two i128.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.columns.len() as u64);
        for column in &self.columns {
            match column {
                Some((Value::Int(least), Value::Int(largest))) => {
                    out.push(1);
                    [least, largest].iter().for_each(|value| out.extend(value.to_le_bytes()));
                }
                Some((Value::Wide(least), Value::Wide(largest))) => {
                    out.push(2);
                    [least, largest].iter().for_each(|value| out.extend(value.to_le_bytes()));
                }
                _ => out.push(0),
            }
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let count = reader.count(1)?;
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            columns.push(match reader.u8()? {
                0 => None,
                1 => {
                    let mut value = || reader.u64().map(|bits| Value::Int(bits as i64));
                    Some((value()?, value()?))
                }
                2 => {
                    let mut value = || reader.i128().map(Value::Wide);
                    Some((value()?, value()?))
                }
                other => return Err(Error::Corrupt(format!("a range of kind {other}"))),
            });
        }
        reader.finish()?;
        Ok(Ranges { columns })
    }
}

/// Other types for the partitions that are not durable yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Widen {
    /// Partitions before them: all are durable.
    pub partitions: u32,
    /// Columns of the table from there on.
    pub schema: Schema,
}

impl Widen {
    /// The number of partitions, and the columns as they stand in CREATE TABLE.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, u64::from(self.partitions));
        put_columns(&mut out, &self.schema);
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Invalid` when the columns are not possible.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (partitions, schema) = (reader.varint_u32()?, read_columns(&mut reader)?);
        reader.finish()?;
        Ok(Widen { partitions, schema })
    }
}

pub(crate) fn put_columns(out: &mut Vec<u8>, schema: &Schema) {
    let columns: Vec<String> = schema.columns().iter().map(column_sql).collect();
    put_bytes(out, columns.join(", ").as_bytes());
}

pub(crate) fn read_columns(reader: &mut ByteReader<'_>) -> Result<Schema> {
    parse_columns(&read_text(reader)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_and_types_come_back_and_cut_ones_are_refused() {
        let ranges = Ranges {
            columns: vec![
                Some((Value::Int(-3), Value::Int(i64::MAX))),
                None,
                Some((Value::Wide(i128::MIN), Value::Wide(0))),
            ],
        };
        let bytes = ranges.encode();
        assert_eq!(Ranges::decode(&bytes).unwrap(), ranges);
        assert!((0..bytes.len()).all(|cut| Ranges::decode(&bytes[..cut]).is_err()));
        let schema = parse_columns("a DECIMAL(9,2) NOT NULL, \"B c\" DOUBLE").unwrap();
        let widen = Widen { partitions: 7, schema };
        let bytes = widen.encode();
        assert_eq!(Widen::decode(&bytes).unwrap(), widen);
        assert!((0..bytes.len()).all(|cut| Widen::decode(&bytes[..cut]).is_err()));
    }
}
