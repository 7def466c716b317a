//! Filters of a query as tests on stored values.
//!
//! A filter is taken over by the scan only if every row that the tests let through is one for which
//! the filter is true, and no other: what cannot be said exactly stays with the engine.

use std::ops::Bound;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_ddl::like::{Like, Shape};
use coload_scan::{Predicate, Test};
use coload_types::{DataType, Value};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, Like as LikeExpr};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;

use crate::literal::{Place, place};
use crate::types::arrow_type;

/// The tests that together are the filter; `None` when it cannot be said exactly.
pub(crate) fn tests_of(filter: &Expr, schema: &Schema) -> Option<Vec<Predicate>> {
    let mut tests = Vec::new();
    collect(filter, schema, &mut tests)?;
    Some(tests)
}

fn collect(filter: &Expr, schema: &Schema, out: &mut Vec<Predicate>) -> Option<()> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            collect(left, schema, out)?;
            collect(right, schema, out)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            out.push(either(left, right, schema)?);
            Some(())
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (operand, op, literal) = match (left.as_ref(), right.as_ref()) {
                (operand, Expr::Literal(literal, _)) => (operand, *op, literal),
                (Expr::Literal(literal, _), operand) => (operand, op.swap()?, literal),
                _ => return None,
            };
            out.push(compare(column(operand, schema)?, op, literal, schema)?);
            Some(())
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let column = column(expr, schema)?;
            let (Expr::Literal(low, _), Expr::Literal(high, _)) = (low.as_ref(), high.as_ref())
            else {
                return None;
            };
            out.push(compare(column, Operator::GtEq, low, schema)?);
            out.push(compare(column, Operator::LtEq, high, schema)?);
            Some(())
        }
        _ => {
            out.push(single(filter, schema)?);
            Some(())
        }
    }
}

/// Lists of values of one column, of which one has to hold: `a = 1 OR a IN (2, 3)`. The engine writes short lists so.
fn either(left: &Expr, right: &Expr, schema: &Schema) -> Option<Predicate> {
    let values_of = |side| {
        let mut tests = tests_of(side, schema)?;
        match (tests.pop(), tests.is_empty()) {
            (Some(Predicate { column, test: Test::In(values) }), true) => Some((column, values)),
            _ => None,
        }
    };
    let ((column, mut values), (other, more)) = (values_of(left)?, values_of(right)?);
    if column != other {
        return None;
    }
    values.extend(more);
    values.sort_unstable();
    values.dedup();
    Some(Predicate { column, test: Test::In(values) })
}

/// Filters that are one test.
fn single(filter: &Expr, schema: &Schema) -> Option<Predicate> {
    let of = |column, test| Some(Predicate { column, test });
    match filter {
        Expr::InList(list) => in_list(list, schema),
        Expr::Like(like) => self::like(like, schema),
        Expr::IsNull(operand) => of(column(operand, schema)?, Test::IsNull),
        Expr::IsNotNull(operand) => of(column(operand, schema)?, Test::IsNotNull),
        Expr::Column(_) | Expr::IsTrue(_) => {
            let operand = if let Expr::IsTrue(inner) = filter { inner } else { filter };
            of(boolean(operand, schema)?, Test::equal(Value::Int(1)))
        }
        Expr::Not(operand) | Expr::IsFalse(operand) => {
            of(boolean(operand, schema)?, Test::equal(Value::Int(0)))
        }
        _ => None,
    }
}

/// The column that an operand stands for: itself, or itself in a type that holds each of its values.
fn column(operand: &Expr, schema: &Schema) -> Option<usize> {
    match operand {
        Expr::Column(column) => schema.position(&column.name),
        Expr::Cast(cast) => {
            let column = column(&cast.expr, schema)?;
            is_widening(schema.columns()[column].data_type, cast.field.data_type())
                .then_some(column)
        }
        _ => None,
    }
}

fn boolean(operand: &Expr, schema: &Schema) -> Option<usize> {
    let Expr::Column(_) = operand else { return None };
    let column = column(operand, schema)?;
    (schema.columns()[column].data_type == DataType::Boolean).then_some(column)
}

/// Whether a cast keeps each value and the order, so that a literal of the cast's type has the same
/// place among the column's own values.
pub(crate) fn is_widening(from: DataType, to: &ArrowType) -> bool {
    let from_arrow = arrow_type(from);
    if from_arrow == *to {
        return true;
    }
    match (from, to) {
        (DataType::SmallInt, ArrowType::Int32 | ArrowType::Int64) => true,
        (DataType::Integer, ArrowType::Int64) => true,
        (
            DataType::SmallInt | DataType::Integer | DataType::BigInt,
            ArrowType::Decimal128(p, s),
        ) => {
            let digits = match from {
                DataType::SmallInt => 5,
                DataType::Integer => 10,
                _ => 19,
            };
            *s >= 0 && i16::from(*p) - i16::from(*s) >= digits
        }
        (DataType::Decimal { precision, scale }, ArrowType::Decimal128(p, s)) => {
            i16::from(*s) >= i16::from(scale)
                && i16::from(*p) - i16::from(*s) >= i16::from(precision) - i16::from(scale)
        }
        (DataType::Real, ArrowType::Float64) => true,
        (DataType::Date, ArrowType::Timestamp(_, None)) => true,
        (DataType::Timestamp, ArrowType::Timestamp(_, None)) => is_finer(to),
        (DataType::TimestampTz, ArrowType::Timestamp(_, Some(_))) => is_finer(to),
        (DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid, to) => {
            matches!(to, ArrowType::Utf8 | ArrowType::LargeUtf8)
        }
        (DataType::Binary(_), to) => matches!(to, ArrowType::Binary | ArrowType::LargeBinary),
        _ => false,
    }
}

fn is_finer(to: &ArrowType) -> bool {
    use datafusion::arrow::datatypes::TimeUnit::{Microsecond, Nanosecond};
    matches!(to, ArrowType::Timestamp(Microsecond | Nanosecond, _))
}

/// The test `column op literal`.
pub(crate) fn compare(
    column: usize,
    op: Operator,
    literal: &ScalarValue,
    schema: &Schema,
) -> Option<Predicate> {
    use Bound::{Excluded, Included, Unbounded};
    let place = place(literal, schema.columns()[column].data_type)?;
    let range = |low, high| Test::Range { low, high };
    let test = match (op, place) {
        (Operator::Eq, Place::At(v)) => Test::equal(v),
        (Operator::Eq, _) => Test::In(Vec::new()),
        (Operator::NotEq, Place::At(v)) => Test::not_equal(v),
        (Operator::NotEq, _) => Test::IsNotNull,
        (Operator::Lt | Operator::LtEq, Place::Below)
        | (Operator::Gt | Operator::GtEq, Place::Above) => Test::In(Vec::new()),
        (Operator::Lt | Operator::LtEq, Place::Above)
        | (Operator::Gt | Operator::GtEq, Place::Below) => Test::IsNotNull,
        (Operator::Lt, Place::At(v)) => range(Unbounded, Excluded(v)),
        (Operator::LtEq, Place::At(v)) | (Operator::Lt | Operator::LtEq, Place::Gap(v)) => {
            range(Unbounded, Included(v))
        }
        (Operator::GtEq, Place::At(v)) => range(Included(v), Unbounded),
        (Operator::Gt, Place::At(v)) | (Operator::Gt | Operator::GtEq, Place::Gap(v)) => {
            range(Excluded(v), Unbounded)
        }
        _ => return None,
    };
    Some(Predicate { column, test })
}

fn in_list(list: &InList, schema: &Schema) -> Option<Predicate> {
    let column = column(&list.expr, schema)?;
    let data_type = schema.columns()[column].data_type;
    let mut values = Vec::with_capacity(list.list.len());
    for item in &list.list {
        let Expr::Literal(literal, _) = item else { return None };
        if literal.is_null() {
            // `x NOT IN (.., NULL)` is true for no x; `x IN (.., NULL)` only if x is another item.
            if list.negated {
                return Some(Predicate { column, test: Test::In(Vec::new()) });
            }
            continue;
        }
        if let Place::At(value) = place(literal, data_type)? {
            values.push(value);
        }
    }
    values.sort_unstable();
    values.dedup();
    let test = if list.negated { Test::NotIn(values) } else { Test::In(values) };
    Some(Predicate { column, test })
}

fn like(like: &LikeExpr, schema: &Schema) -> Option<Predicate> {
    let column = column(&like.expr, schema)?;
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else { return None };
    let escape_is_plain = like.escape_char.is_none_or(|c| c == '\\');
    if like.case_insensitive || !escape_is_plain || !schema.columns()[column].data_type.is_text() {
        return None;
    }
    let like_pattern = Like::new(pattern.try_as_str()??);
    let test = match (like_pattern.shape(), like.negated) {
        (Shape::Exactly(text), false) => Test::equal(Value::Bytes(text.into())),
        (Shape::Exactly(text), true) => Test::not_equal(Value::Bytes(text.into())),
        (Shape::Prefix(text), false) if text.is_empty() => Test::IsNotNull,
        (Shape::Prefix(text), false) => Test::Prefix(text.into()),
        (_, false) => Test::Accepts(Arc::new(move |text| like_pattern.matches(text))),
        (_, true) => Test::Accepts(Arc::new(move |text| !like_pattern.matches(text))),
    };
    Some(Predicate { column, test })
}

/// Joins tests of one column where two are one: a row is tested once instead of twice.
pub(crate) fn simplify(tests: Vec<Predicate>) -> Vec<Predicate> {
    let mut simple: Vec<Predicate> = Vec::with_capacity(tests.len());
    for next in tests {
        let merged = simple.iter_mut().filter(|known| known.column == next.column).any(|known| {
            match both(&known.test, &next.test) {
                Some(test) => {
                    known.test = test;
                    true
                }
                None => false,
            }
        });
        if !merged {
            simple.push(next);
        }
    }
    simple
}

/// The test that is both tests, where there is one.
fn both(a: &Test, b: &Test) -> Option<Test> {
    match (a, b) {
        (Test::Range { low: la, high: ha }, Test::Range { low: lb, high: hb }) => {
            Some(Test::Range { low: higher(la, lb), high: lower(ha, hb) })
        }
        (Test::IsNull, _) | (_, Test::IsNull) => None,
        (Test::IsNotNull, other) | (other, Test::IsNotNull) => Some(other.clone()),
        (Test::In(values), other) | (other, Test::In(values)) => {
            Some(Test::In(values.iter().filter(|v| other.matches(Some(v))).cloned().collect()))
        }
        _ => None,
    }
}

fn higher(a: &Bound<Value>, b: &Bound<Value>) -> Bound<Value> {
    tighter(a, b, |a, b| a > b)
}

fn lower(a: &Bound<Value>, b: &Bound<Value>) -> Bound<Value> {
    tighter(a, b, |a, b| a < b)
}

fn tighter(a: &Bound<Value>, b: &Bound<Value>, wins: fn(&Value, &Value) -> bool) -> Bound<Value> {
    match (a, b) {
        (Bound::Unbounded, other) | (other, Bound::Unbounded) => other.clone(),
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let a_wins = wins(x, y) || (x == y && matches!(a, Bound::Excluded(_)));
            if a_wins { a.clone() } else { b.clone() }
        }
    }
}

/// A test as EXPLAIN shows it.
pub(crate) fn describe(test: &Predicate, schema: &Schema) -> String {
    const VALUES_SHOWN: usize = 5;
    let column = &schema.columns()[test.column];
    let show = |v: &Value| {
        let text = v.display(column.data_type);
        if matches!(v, Value::Bytes(_)) { format!("'{text}'") } else { text }
    };
    let list = |values: &[Value]| {
        let mut shown: Vec<String> = values.iter().take(VALUES_SHOWN).map(show).collect();
        if values.len() > VALUES_SHOWN {
            shown.push(format!("... {} values", values.len()));
        }
        shown.join(", ")
    };
    let name = &column.name;
    match &test.test {
        Test::Range { low, high } => {
            let low = match low {
                Bound::Included(v) => Some(format!("{name} >= {}", show(v))),
                Bound::Excluded(v) => Some(format!("{name} > {}", show(v))),
                Bound::Unbounded => None,
            };
            let high = match high {
                Bound::Included(v) => Some(format!("{name} <= {}", show(v))),
                Bound::Excluded(v) => Some(format!("{name} < {}", show(v))),
                Bound::Unbounded => None,
            };
            low.into_iter().chain(high).collect::<Vec<_>>().join(" AND ")
        }
        Test::In(values) if values.is_empty() => "false".into(),
        Test::In(values) if values.len() == 1 => format!("{name} = {}", list(values)),
        Test::In(values) => format!("{name} IN ({})", list(values)),
        Test::NotIn(values) if values.len() == 1 => format!("{name} <> {}", list(values)),
        Test::NotIn(values) => format!("{name} NOT IN ({})", list(values)),
        Test::Prefix(text) => format!("{name} LIKE '{}%'", String::from_utf8_lossy(text)),
        Test::Accepts(_) => format!("{name} LIKE pattern"),
        Test::IsNull => format!("{name} IS NULL"),
        Test::IsNotNull => format!("{name} IS NOT NULL"),
    }
}
