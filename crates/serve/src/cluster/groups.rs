//! Groups of a leaf's rows, as the node that asks wants them, and what it wants.
//!
//! ```text
//!   aggregates  grouping columns: count, numbers    aggregates: count; 0 rows | 1 count: columns | 2 sum, 3 least, 4 largest: expression
//!                                                                | 5 sum of floats: expression
//!   expression  0 column | 1 number 16 | 2 sum, 3 difference, 4 product: two expressions
//!               of floats: 0 column, width | 1 column, divisor 8 | 2 number 8 | 3, 4, 5 of two
//!   a group     key: 0 | 1 value, of each column    rows    nulls of each aggregate
//!               values: 0 count | 1 nothing | 2 exact 16 | 3 float 8, of each
//! ```
//!
//! A group without a byte says that the leaf has rows which are not grouped on codes; then the node takes rows instead.
//! Bytes of others are hostile: expressions have a limit of depth, and a group must be one of what was asked.

use coload_ddl::Schema;
use coload_scan::aggregate::{Aggregate, AggregateValue, Expr, FloatExpr, FloatWidth, GroupRow};
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{DataType, Error, Physical, Result, Value};

use super::question::{put_value, read_value, wrong};

/// Deepest expression: reading and running it call themselves.
const DEPTH_MAX: usize = 100;

/// Groups that are wanted in the place of rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aggregates {
    /// Grouping columns.
    pub groups: Vec<usize>,
    /// What is computed for each group.
    pub aggregates: Vec<Aggregate>,
}

impl Aggregates {
    pub fn put(&self, out: &mut Vec<u8>) {
        put_columns(out, &self.groups);
        put_varint(out, self.aggregates.len() as u64);
        for aggregate in &self.aggregates {
            match aggregate {
                Aggregate::CountRows => out.push(0),
                Aggregate::Count(columns) => {
                    out.push(1);
                    put_columns(out, columns);
                }
                Aggregate::Sum(expr) => put_with(out, 2, expr),
                Aggregate::Min(expr) => put_with(out, 3, expr),
                Aggregate::Max(expr) => put_with(out, 4, expr),
                Aggregate::SumFloat(expr) => {
                    out.push(5);
                    put_float(out, expr);
                }
            }
        }
    }

    pub fn read(reader: &mut ByteReader<'_>, schema: &Schema) -> Result<Self> {
        let groups = read_columns(reader, schema)?;
        let mut aggregates = Vec::new();
        for _ in 0..reader.count(1)? {
            aggregates.push(match reader.u8()? {
                0 => Aggregate::CountRows,
                1 => Aggregate::Count(read_columns(reader, schema)?),
                2 => Aggregate::Sum(read_expr(reader, schema, DEPTH_MAX)?),
                3 => Aggregate::Min(read_expr(reader, schema, DEPTH_MAX)?),
                4 => Aggregate::Max(read_expr(reader, schema, DEPTH_MAX)?),
                5 => Aggregate::SumFloat(read_float(reader, schema, DEPTH_MAX)?),
                other => return Err(wrong(&format!("aggregate {other}"))),
            });
        }
        Ok(Aggregates { groups, aggregates })
    }

    /// Whether a leaf takes them: it refuses what is nested deeper.
    pub fn can_be_sent(&self) -> bool {
        self.aggregates.iter().all(|aggregate| match aggregate {
            Aggregate::CountRows | Aggregate::Count(_) => true,
            Aggregate::Sum(e) | Aggregate::Min(e) | Aggregate::Max(e) => depth(e) < DEPTH_MAX,
            Aggregate::SumFloat(e) => float_depth(e) < DEPTH_MAX,
        })
    }
}

fn depth(expr: &Expr) -> usize {
    match expr {
        Expr::Column(_) | Expr::Literal(_) => 1,
        Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) => 1 + depth(a).max(depth(b)),
    }
}

fn float_depth(expr: &FloatExpr) -> usize {
    match expr {
        FloatExpr::Column(..) | FloatExpr::Integer(..) | FloatExpr::Literal(_) => 1,
        FloatExpr::Add(a, b) | FloatExpr::Sub(a, b) | FloatExpr::Mul(a, b) => {
            1 + float_depth(a).max(float_depth(b))
        }
    }
}

fn put_columns(out: &mut Vec<u8>, columns: &[usize]) {
    put_varint(out, columns.len() as u64);
    columns.iter().for_each(|column| put_varint(out, *column as u64));
}

fn read_columns(reader: &mut ByteReader<'_>, schema: &Schema) -> Result<Vec<usize>> {
    (0..reader.count(1)?).map(|_| read_column(reader, schema, |_| true)).collect()
}

/// A column whose type fits.
fn read_column(
    reader: &mut ByteReader<'_>,
    schema: &Schema,
    fits: impl FnOnce(DataType) -> bool,
) -> Result<usize> {
    let column = reader.varint_u32()? as usize;
    match schema.columns().get(column) {
        Some(of) if fits(of.data_type) => Ok(column),
        _ => Err(wrong(&format!("arithmetic on column {column}"))),
    }
}

fn is_number(data_type: DataType) -> bool {
    data_type.physical() != Physical::Bytes
}

fn put_with(out: &mut Vec<u8>, kind: u8, expr: &Expr) {
    out.push(kind);
    put_expr(out, expr);
}

fn put_expr(out: &mut Vec<u8>, expr: &Expr) {
    let (kind, a, b) = match expr {
        Expr::Column(column) => {
            out.push(0);
            return put_varint(out, *column as u64);
        }
        Expr::Literal(value) => {
            out.push(1);
            return out.extend(value.to_le_bytes());
        }
        Expr::Add(a, b) => (2, a, b),
        Expr::Sub(a, b) => (3, a, b),
        Expr::Mul(a, b) => (4, a, b),
    };
    out.push(kind);
    put_expr(out, a);
    put_expr(out, b);
}

fn read_expr(reader: &mut ByteReader<'_>, schema: &Schema, depth: usize) -> Result<Expr> {
    let Some(depth) = depth.checked_sub(1) else { return Err(wrong("a deep expression")) };
    let kind = reader.u8()?;
    let mut both = || -> Result<(Box<Expr>, Box<Expr>)> {
        let a = read_expr(reader, schema, depth)?;
        Ok((Box::new(a), Box::new(read_expr(reader, schema, depth)?)))
    };
    Ok(match kind {
        2 => both().map(|(a, b)| Expr::Add(a, b))?,
        3 => both().map(|(a, b)| Expr::Sub(a, b))?,
        4 => both().map(|(a, b)| Expr::Mul(a, b))?,
        0 => Expr::Column(read_column(reader, schema, is_number)?),
        1 => Expr::Literal(reader.i128()?),
        other => return Err(wrong(&format!("expression {other}"))),
    })
}

fn put_float(out: &mut Vec<u8>, expr: &FloatExpr) {
    let (kind, a, b) = match expr {
        FloatExpr::Column(column, width) => {
            out.push(0);
            put_varint(out, *column as u64);
            return out.push(u8::from(*width == FloatWidth::Double));
        }
        FloatExpr::Integer(column, divisor) => {
            out.push(1);
            put_varint(out, *column as u64);
            return out.extend(divisor.to_bits().to_le_bytes());
        }
        FloatExpr::Literal(value) => {
            out.push(2);
            return out.extend(value.to_bits().to_le_bytes());
        }
        FloatExpr::Add(a, b) => (3, a, b),
        FloatExpr::Sub(a, b) => (4, a, b),
        FloatExpr::Mul(a, b) => (5, a, b),
    };
    out.push(kind);
    put_float(out, a);
    put_float(out, b);
}

fn read_float(reader: &mut ByteReader<'_>, schema: &Schema, depth: usize) -> Result<FloatExpr> {
    let Some(depth) = depth.checked_sub(1) else { return Err(wrong("a deep expression")) };
    let kind = reader.u8()?;
    let mut both = || -> Result<(Box<FloatExpr>, Box<FloatExpr>)> {
        let a = read_float(reader, schema, depth)?;
        Ok((Box::new(a), Box::new(read_float(reader, schema, depth)?)))
    };
    Ok(match kind {
        3 => both().map(|(a, b)| FloatExpr::Add(a, b))?,
        4 => both().map(|(a, b)| FloatExpr::Sub(a, b))?,
        5 => both().map(|(a, b)| FloatExpr::Mul(a, b))?,
        0 => {
            let is_float = |of| matches!(of, DataType::Real | DataType::Double);
            let column = read_column(reader, schema, is_float)?;
            let width = if reader.u8()? == 0 { FloatWidth::Single } else { FloatWidth::Double };
            FloatExpr::Column(column, width)
        }
        1 => {
            let column = read_column(reader, schema, is_number)?;
            FloatExpr::Integer(column, f64::from_bits(reader.u64()?))
        }
        2 => FloatExpr::Literal(f64::from_bits(reader.u64()?)),
        other => return Err(wrong(&format!("expression {other}"))),
    })
}

/// A group as bytes.
pub(crate) fn encode_group(row: &GroupRow) -> Vec<u8> {
    let mut out = Vec::new();
    for value in &row.key {
        out.push(u8::from(value.is_some()));
        value.iter().for_each(|value| put_value(&mut out, value));
    }
    put_varint(&mut out, row.rows);
    row.nulls.iter().for_each(|nulls| put_varint(&mut out, *nulls));
    for value in &row.values {
        match value {
            AggregateValue::Count(count) => {
                out.push(0);
                put_varint(&mut out, *count);
            }
            AggregateValue::Exact(None) | AggregateValue::Float(None) => out.push(1),
            AggregateValue::Exact(Some(value)) => {
                out.push(2);
                out.extend(value.to_le_bytes());
            }
            AggregateValue::Float(Some(value)) => {
                out.push(3);
                out.extend(value.to_bits().to_le_bytes());
            }
        }
    }
    out
}

/// Reads what [`encode_group`] wrote, of what was asked.
pub(crate) fn decode_group(
    bytes: &[u8],
    groups: &[Physical],
    aggregates: &[Aggregate],
) -> Result<GroupRow> {
    let mut reader = ByteReader::new(bytes);
    let mut key: Vec<Option<Value>> = Vec::with_capacity(groups.len());
    for physical in groups {
        key.push(match reader.u8()? {
            0 => None,
            _ => Some(read_value(&mut reader, *physical)?),
        });
    }
    let rows = reader.varint()?;
    let nulls = aggregates.iter().map(|_| reader.varint()).collect::<Result<Vec<_>>>()?;
    if nulls.iter().any(|nulls| *nulls > rows) {
        return Err(Error::Corrupt("a group of a leaf with more NULLs than rows".into()));
    }
    let mut values = Vec::with_capacity(aggregates.len());
    for aggregate in aggregates {
        let kind = reader.u8()?;
        values.push(match (aggregate, kind) {
            (Aggregate::CountRows | Aggregate::Count(_), 0) => {
                AggregateValue::Count(reader.varint()?)
            }
            (Aggregate::SumFloat(_), 1) => AggregateValue::Float(None),
            (Aggregate::SumFloat(_), 3) => {
                AggregateValue::Float(Some(f64::from_bits(reader.u64()?)))
            }
            (Aggregate::Sum(_) | Aggregate::Min(_) | Aggregate::Max(_), 1) => {
                AggregateValue::Exact(None)
            }
            (Aggregate::Sum(_) | Aggregate::Min(_) | Aggregate::Max(_), 2) => {
                AggregateValue::Exact(Some(reader.i128()?))
            }
            _ => return Err(Error::Corrupt("a group of a leaf of another aggregate".into())),
        });
    }
    reader.finish()?;
    Ok(GroupRow { key, rows, values, nulls })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        parse_columns("a BIGINT, b VARCHAR, c DOUBLE").unwrap()
    }

    fn asked() -> Aggregates {
        let price = || Expr::Column(0).times(Expr::Literal(100).minus(Expr::Column(0)));
        let float = FloatExpr::Mul(
            Box::new(FloatExpr::Column(2, FloatWidth::Double)),
            Box::new(FloatExpr::Add(
                Box::new(FloatExpr::Integer(0, 100.0)),
                Box::new(FloatExpr::Literal(-1.5)),
            )),
        );
        let aggregates = vec![
            Aggregate::CountRows,
            Aggregate::Count(vec![1, 2]),
            Aggregate::Sum(price()),
            Aggregate::Min(Expr::Column(0)),
            Aggregate::Max(price().plus(Expr::Literal(-1))),
            Aggregate::SumFloat(float),
        ];
        Aggregates { groups: vec![1, 0], aggregates }
    }

    fn encoded() -> Vec<u8> {
        let mut out = Vec::new();
        asked().put(&mut out);
        out
    }

    #[test]
    fn what_is_asked_comes_back_and_what_does_not_fit_is_refused() {
        let bytes = encoded();
        let back = Aggregates::read(&mut ByteReader::new(&bytes), &schema()).unwrap();
        assert_eq!((back.groups, back.aggregates), (asked().groups, asked().aggregates));
        for cut in 0..bytes.len() {
            assert!(Aggregates::read(&mut ByteReader::new(&bytes[..cut]), &schema()).is_err());
        }
        // Of a text there is no sum.
        let wrong =
            Aggregates { groups: Vec::new(), aggregates: vec![Aggregate::Sum(Expr::Column(1))] };
        let mut bytes = Vec::new();
        wrong.put(&mut bytes);
        assert!(Aggregates::read(&mut ByteReader::new(&bytes), &schema()).is_err());
        let mut deep = Expr::Column(0);
        (0..DEPTH_MAX + 5).for_each(|_| {
            deep = std::mem::replace(&mut deep, Expr::Literal(0)).plus(Expr::Literal(1))
        });
        let deep = Aggregates { groups: Vec::new(), aggregates: vec![Aggregate::Sum(deep)] };
        let mut bytes = Vec::new();
        deep.put(&mut bytes);
        assert!(!deep.can_be_sent() && asked().can_be_sent());
        assert!(Aggregates::read(&mut ByteReader::new(&bytes), &schema()).is_err());
    }

    #[test]
    fn a_group_comes_back_and_one_of_another_question_is_refused() {
        use AggregateValue::{Count, Exact, Float};
        let asked = asked();
        let shapes = [Physical::Bytes, Physical::Int];
        let row = GroupRow {
            key: vec![None, Some(Value::Int(-7))],
            rows: 9,
            values: vec![
                Count(9),
                Count(7),
                Exact(Some(-(1 << 90))),
                Exact(None),
                Exact(Some(3)),
                Float(Some(0.5)),
            ],
            nulls: vec![0, 2, 0, 9, 1, 0],
        };
        let bytes = encode_group(&row);
        assert_eq!(decode_group(&bytes, &shapes, &asked.aggregates).unwrap(), row);
        assert!(
            (0..bytes.len())
                .all(|cut| decode_group(&bytes[..cut], &shapes, &asked.aggregates).is_err())
        );
        assert!(decode_group(&bytes, &shapes, &asked.aggregates[1..]).is_err());
        let lies = GroupRow { nulls: vec![10, 0, 0, 0, 0, 0], ..row };
        assert!(decode_group(&encode_group(&lies), &shapes, &asked.aggregates).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), at: usize, byte: u8) {
            let _ = decode_group(&bytes, &[Physical::Bytes, Physical::Wide], &asked().aggregates);
            let _ = Aggregates::read(&mut ByteReader::new(&bytes), &schema());
            bytes = encoded();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Aggregates::read(&mut ByteReader::new(&bytes), &schema());
        }
    }
}
