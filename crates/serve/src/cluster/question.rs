//! What a node asks a leaf: columns of the rows of a table that pass tests, as of a version of the map.
//!
//! ```text
//!   form 2  version  table  name of the table  limit + 1 or 0  columns: count, numbers
//!   tests: count; column and one of
//!     0 range: two bounds, each 0 | 1 value | 2 value (excluded)     1 one of: count, values    2 none of: count, values
//!     3 prefix: bytes    4 NULL    5 not NULL
//!   groups: 0, or 1 and what `groups` says
//!   shards: 0, or 1, count and numbers
//! ```
//!
//! Values have the physical form of their column. Bytes of others are hostile: counts are checked against the bytes that
//! are there, columns against the table.

use std::ops::Bound;

use coload_ddl::Schema;
use coload_scan::{Predicate, Test};
use coload_types::bytes::{ByteReader, put_bytes, put_signed, put_varint};
use coload_types::{Error, Physical, Result, Value};

use super::groups::Aggregates;

/// Name of the type of a ticket that is a question.
pub const QUESTION_TYPE: &str = "type.coload/cluster.Question";
/// Number of the form.
const FORM: u8 = 2;
/// Most columns or tests.
const COUNT_MAX: usize = 1 << 16;

/// What a node asks a leaf.
#[derive(Debug, Clone)]
pub struct Question {
    /// Version of the map.
    pub version: u64,
    /// Id of the table in the map.
    pub table: u64,
    /// Its name, by which rights are given.
    pub name: String,
    /// Number of rows that are enough.
    pub limit: Option<u64>,
    /// Columns that are wanted, in this order; the number after the last one is of the places of rows.
    pub columns: Vec<usize>,
    /// Tests that each row passes.
    pub tests: Vec<Predicate>,
    /// Groups that are wanted in the place of rows.
    pub(crate) aggregates: Option<Aggregates>,
    /// The shards whose rows are wanted, if not those of all; then there are no tests and no groups.
    pub shards: Option<Vec<u32>>,
}

/// Whether tests can be sent: one that is a function cannot.
pub(super) fn can_be_sent(tests: &[Predicate]) -> bool {
    !tests.iter().any(|test| matches!(test.test, Test::Accepts(_)))
}

impl Question {
    /// The question as bytes.
    ///
    /// # Errors
    /// `Invalid` when a test cannot be sent.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![FORM];
        put_varint(&mut out, self.version);
        put_varint(&mut out, self.table);
        put_bytes(&mut out, self.name.as_bytes());
        put_varint(&mut out, self.limit.map_or(0, |limit| limit.saturating_add(1)));
        put_varint(&mut out, self.columns.len() as u64);
        self.columns.iter().for_each(|column| put_varint(&mut out, *column as u64));
        put_varint(&mut out, self.tests.len() as u64);
        for Predicate { column, test } in &self.tests {
            put_varint(&mut out, *column as u64);
            put_test(&mut out, test)?;
        }
        out.push(u8::from(self.aggregates.is_some()));
        self.aggregates.iter().for_each(|aggregates| aggregates.put(&mut out));
        out.push(u8::from(self.shards.is_some()));
        if let Some(shards) = &self.shards {
            put_varint(&mut out, shards.len() as u64);
            shards.iter().for_each(|shard| put_varint(&mut out, u64::from(*shard)));
        }
        Ok(out)
    }

    /// Reads what [`Self::encode`] wrote, in two steps: the rest needs the columns of the table, which `schema` gives by
    /// what is known of the question so far.
    ///
    /// # Errors
    /// Those of `schema`; `Corrupt` when it is none, or does not fit the table.
    pub fn decode(bytes: &[u8], schema: impl FnOnce(&Question) -> Result<Schema>) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        match reader.u8()? {
            FORM => {}
            other => {
                return Err(Error::Refused(format!(
                    "a node of the cluster asks in form {other}, and this one knows form {FORM} (update them)"
                )));
            }
        }
        let (version, table) = (reader.varint()?, reader.varint()?);
        let name = String::from_utf8(reader.bytes()?.to_vec());
        let name = name.map_err(|_| wrong("a name that is not UTF-8"))?;
        let limit = reader.varint()?.checked_sub(1);
        let mut question = Question {
            version,
            table,
            name,
            limit,
            columns: Vec::new(),
            tests: Vec::new(),
            aggregates: None,
            shards: None,
        };
        let schema = schema(&question)?;
        let column = |reader: &mut ByteReader<'_>| match reader.varint_u32()? as usize {
            column if column < schema.len() => Ok(column),
            other => Err(wrong(&format!("column {other} of {}", schema.len()))),
        };
        let count = reader.count(1)?.min(COUNT_MAX);
        // The one after all columns is the place of each row.
        let placed = |reader: &mut ByteReader<'_>| match reader.varint_u32()? as usize {
            column if column <= schema.len() => Ok(column),
            other => Err(wrong(&format!("column {other} of {}", schema.len()))),
        };
        question.columns = (0..count).map(|_| placed(&mut reader)).collect::<Result<_>>()?;
        let count = reader.count(2)?.min(COUNT_MAX);
        for _ in 0..count {
            let column = column(&mut reader)?;
            let physical = schema.columns()[column].data_type.physical();
            question.tests.push(Predicate { column, test: read_test(&mut reader, physical)? });
        }
        question.aggregates = match reader.u8()? {
            0 => None,
            1 => Some(Aggregates::read(&mut reader, &schema)?),
            other => return Err(wrong(&format!("groups {other}"))),
        };
        question.shards = match reader.u8()? {
            0 => None,
            1 => {
                let count = reader.count(1)?;
                Some((0..count).map(|_| reader.varint_u32()).collect::<Result<_>>()?)
            }
            other => return Err(wrong(&format!("shards {other}"))),
        };
        reader.finish()?;
        let is_whole = question.tests.is_empty() && question.aggregates.is_none();
        if question.shards.is_some() && (!is_whole || question.limit.is_some()) {
            return Err(wrong("some rows of some shards"));
        }
        let has_places = question.columns.contains(&schema.len());
        if has_places && (question.shards.is_some() || question.aggregates.is_some()) {
            return Err(wrong("places of rows that are no rows of the table"));
        }
        if question.columns.is_empty() {
            return Err(wrong("no columns"));
        }
        Ok(question)
    }
}

pub(super) fn wrong(what: &str) -> Error {
    Error::Corrupt(format!("a question to a leaf: {what}"))
}

pub(super) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(value) => put_signed(out, *value),
        Value::Wide(value) => out.extend(value.to_le_bytes()),
        Value::Bytes(bytes) => put_bytes(out, bytes),
    }
}

pub(super) fn read_value(reader: &mut ByteReader<'_>, physical: Physical) -> Result<Value> {
    Ok(match physical {
        Physical::Int => Value::Int(reader.signed()?),
        Physical::Wide => Value::Wide(reader.i128()?),
        Physical::Bytes => Value::Bytes(reader.bytes()?.into()),
    })
}

fn put_bound(out: &mut Vec<u8>, bound: &Bound<Value>) {
    match bound {
        Bound::Unbounded => out.push(0),
        Bound::Included(value) => {
            out.push(1);
            put_value(out, value);
        }
        Bound::Excluded(value) => {
            out.push(2);
            put_value(out, value);
        }
    }
}

fn read_bound(reader: &mut ByteReader<'_>, physical: Physical) -> Result<Bound<Value>> {
    match reader.u8()? {
        0 => Ok(Bound::Unbounded),
        1 => read_value(reader, physical).map(Bound::Included),
        2 => read_value(reader, physical).map(Bound::Excluded),
        other => Err(wrong(&format!("bound {other}"))),
    }
}

fn put_test(out: &mut Vec<u8>, test: &Test) -> Result<()> {
    let mut list = |kind: u8, values: &[Value]| {
        out.push(kind);
        put_varint(out, values.len() as u64);
        values.iter().for_each(|value| put_value(out, value));
    };
    match test {
        Test::In(values) => list(1, values),
        Test::NotIn(values) => list(2, values),
        Test::Range { low, high } => {
            out.push(0);
            put_bound(out, low);
            put_bound(out, high);
        }
        Test::Prefix(bytes) => {
            out.push(3);
            put_bytes(out, bytes);
        }
        Test::IsNull => out.push(4),
        Test::IsNotNull => out.push(5),
        Test::Accepts(_) => return Err(Error::Invalid("a test that is a function".into())),
    }
    Ok(())
}

fn read_test(reader: &mut ByteReader<'_>, physical: Physical) -> Result<Test> {
    let kind = reader.u8()?;
    Ok(match kind {
        0 => {
            Test::Range { low: read_bound(reader, physical)?, high: read_bound(reader, physical)? }
        }
        1 | 2 => {
            let count = reader.count(1)?;
            let mut values =
                (0..count).map(|_| read_value(reader, physical)).collect::<Result<Vec<_>>>()?;
            // They are searched.
            values.sort_unstable();
            values.dedup();
            if kind == 1 { Test::In(values) } else { Test::NotIn(values) }
        }
        3 if physical == Physical::Bytes => Test::Prefix(reader.bytes()?.into()),
        4 => Test::IsNull,
        5 => Test::IsNotNull,
        other => return Err(wrong(&format!("test {other}"))),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        parse_columns("a BIGINT, b VARCHAR, c DECIMAL(38,2)").unwrap()
    }

    fn question() -> Question {
        let int = Value::Int;
        let of = |column, test| Predicate { column, test };
        let tests = vec![
            of(0, Test::Range { low: Bound::Included(int(-4)), high: Bound::Unbounded }),
            of(0, Test::In(vec![int(1), int(5)])),
            of(1, Test::Prefix(b"x"[..].into())),
            of(1, Test::NotIn(vec![Value::Bytes(b"y"[..].into())])),
            of(
                2,
                Test::Range {
                    low: Bound::Excluded(Value::Wide(7)),
                    high: Bound::Included(Value::Wide(9)),
                },
            ),
            of(2, Test::IsNull),
            of(1, Test::IsNotNull),
        ];
        let name = "t".to_owned();
        Question {
            version: 9,
            table: 300,
            name,
            limit: Some(0),
            columns: vec![2, 0],
            tests,
            aggregates: Some(Aggregates::default()),
            shards: None,
        }
    }

    #[test]
    fn shards_come_back_and_stand_alone() {
        let (tests, aggregates, shards) = (Vec::new(), None, Some(vec![3, 900]));
        let whole = Question { limit: None, tests, aggregates, shards, ..question() };
        let back = Question::decode(&whole.encode().unwrap(), |_| Ok(schema())).unwrap();
        assert_eq!(back.shards, Some(vec![3, 900]));
        let some = Question { limit: Some(1), ..whole };
        assert!(Question::decode(&some.encode().unwrap(), |_| Ok(schema())).is_err());
    }

    #[test]
    fn a_question_comes_back_and_one_that_does_not_fit_is_refused() {
        let bytes = question().encode().unwrap();
        let back = Question::decode(&bytes, |begun| {
            assert_eq!((begun.version, begun.table, &*begun.name), (9, 300, "t"));
            Ok(schema())
        });
        assert_eq!(format!("{:?}", back.unwrap()), format!("{:?}", question()));
        let narrow = parse_columns("a BIGINT").unwrap();
        assert!(matches!(Question::decode(&bytes, |_| Ok(narrow)), Err(Error::Corrupt(_))));
        assert!(
            (0..bytes.len()).all(|cut| Question::decode(&bytes[..cut], |_| Ok(schema())).is_err())
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), at: usize, byte: u8) {
            let _ = Question::decode(&bytes, |_| Ok(schema()));
            bytes = question().encode().unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Question::decode(&bytes, |_| Ok(schema()));
        }
    }
}
