//! A condition on the values of many rows.

use std::cmp::Ordering;

use coload_types::{Plain, Value, Values, f32_from_ordinal, f64_from_ordinal, ordinal_from_f64};

use super::{Comparison, Condition, Form, Operand};

/// The values of a column, as they are at hand.
#[derive(Debug, Clone, Copy)]
pub enum CheckedColumn<'a> {
    /// A value for each row.
    Plain(&'a Plain),
    /// A code for each row; one that has no value is NULL.
    Coded {
        /// The code of each row.
        codes: &'a [u16],
        /// The value of each code.
        values: &'a Values,
    },
}

impl<'a> CheckedColumn<'a> {
    /// The value of a row.
    pub fn get(&self, row: usize) -> Option<Value> {
        self.scalar(row).map(Scalar::to_value)
    }

    fn scalar(&self, row: usize) -> Option<Scalar<'a>> {
        match *self {
            CheckedColumn::Plain(plain) => (!plain.is_null(row)).then(|| at(&plain.values, row)),
            CheckedColumn::Coded { codes, values } => {
                let code = usize::from(codes[row]);
                (code < values.len()).then(|| at(values, code))
            }
        }
    }
}

/// True, false, or neither: NULL. In this order AND is the least, OR the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    False,
    Unknown,
    True,
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Truth::False => Truth::True,
            Truth::Unknown => Truth::Unknown,
            Truth::True => Truth::False,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Truth::True } else { Truth::False }
    }
}

/// A value that is not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scalar<'a> {
    Number(i128),
    Narrow(i64),
    Bytes(&'a [u8]),
}

impl Scalar<'_> {
    fn to_value(self) -> Value {
        match self {
            Scalar::Number(value) => Value::Wide(value),
            Scalar::Narrow(value) => Value::Int(value),
            Scalar::Bytes(value) => Value::Bytes(value.into()),
        }
    }
}

fn at(values: &Values, index: usize) -> Scalar<'_> {
    match values {
        Values::Int(v) => Scalar::Narrow(v[index]),
        Values::Wide(v) => Scalar::Number(v[index]),
        Values::Bytes(v) => Scalar::Bytes(v.get(index)),
    }
}

fn of_value(value: &Value) -> Scalar<'_> {
    match value {
        Value::Int(v) => Scalar::Narrow(*v),
        Value::Wide(v) => Scalar::Number(*v),
        Value::Bytes(v) => Scalar::Bytes(v),
    }
}

impl Condition {
    /// The answer for each row.
    pub(super) fn evaluate(
        &self,
        columns: &[Option<CheckedColumn<'_>>],
        rows: usize,
    ) -> Vec<Truth> {
        let join = |parts: &[Condition], pick: fn(Truth, Truth) -> Truth| {
            let mut parts = parts.iter().map(|part| part.evaluate(columns, rows));
            let mut all = parts.next().unwrap_or_else(|| vec![Truth::True; rows]);
            for part in parts {
                all.iter_mut().zip(part).for_each(|(all, truth)| *all = pick(*all, truth));
            }
            all
        };
        match self {
            Condition::And(parts) => join(parts, Truth::min),
            Condition::Or(parts) => join(parts, Truth::max),
            Condition::Not(part) => {
                part.evaluate(columns, rows).into_iter().map(Truth::not).collect()
            }
            _ => self.evaluate_leaf(columns, rows),
        }
    }

    fn evaluate_leaf(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Vec<Truth> {
        let mut used = Vec::new();
        self.add_columns(&mut used);
        let column = |index: usize| columns.get(index).copied().flatten();
        if let [only] = used[..]
            && let Some(CheckedColumn::Coded { codes, values }) = column(only)
        {
            let of_code: Vec<Truth> =
                (0..values.len()).map(|code| self.test(|_| Some(at(values, code)))).collect();
            let null = self.test(|_| None);
            let truth = |code: &u16| of_code.get(usize::from(*code)).copied().unwrap_or(null);
            return codes[..rows].iter().map(truth).collect();
        }
        let value = |index: usize, row: usize| column(index).and_then(|column| column.scalar(row));
        (0..rows).map(|row| self.test(|index| value(index, row))).collect()
    }

    /// The answer for one row; `get` gives the values of columns.
    fn test<'a>(&'a self, get: impl Fn(usize) -> Option<Scalar<'a>>) -> Truth {
        let compare = |left: &'a Operand, right: &'a Operand| {
            let (left, right) = (left.scalar(&get)?, right.scalar(&get)?);
            Some(left.cmp(&right))
        };
        let holds = |ordering: Option<Ordering>, test: fn(Ordering) -> bool| {
            ordering.map_or(Truth::Unknown, |ordering| test(ordering).into())
        };
        match self {
            Condition::Compare { left, comparison, right } => {
                holds(compare(left, right), comparison.test())
            }
            Condition::Between { operand, low, high } => {
                holds(compare(operand, low), Ordering::is_ge)
                    .min(holds(compare(operand, high), Ordering::is_le))
            }
            Condition::In { operand, list } => {
                let equal = list.iter().map(|one| holds(compare(operand, one), Ordering::is_eq));
                equal.max().unwrap_or(Truth::False)
            }
            Condition::Like { column, like, .. } => match get(*column) {
                Some(Scalar::Bytes(text)) => like.matches(text).into(),
                _ => Truth::Unknown,
            },
            Condition::IsNull(column) => get(*column).is_none().into(),
            Condition::IsTrue(column) => match get(*column) {
                Some(value) => (value == Scalar::Narrow(1)).into(),
                None => Truth::Unknown,
            },
            Condition::And(_) | Condition::Or(_) | Condition::Not(_) => Truth::Unknown,
        }
    }
}

impl Comparison {
    fn test(self) -> fn(Ordering) -> bool {
        match self {
            Comparison::Equal => Ordering::is_eq,
            Comparison::NotEqual => Ordering::is_ne,
            Comparison::Less => Ordering::is_lt,
            Comparison::LessOrEqual => Ordering::is_le,
            Comparison::Greater => Ordering::is_gt,
            Comparison::GreaterOrEqual => Ordering::is_ge,
        }
    }
}

impl Operand {
    /// The value in the form in which both sides are compared.
    fn scalar<'a>(&'a self, get: &impl Fn(usize) -> Option<Scalar<'a>>) -> Option<Scalar<'a>> {
        match self {
            Operand::Column { column, form } => Some(form.shape(get(*column)?)),
            Operand::Literal { value, form, .. } => Some(form.shape(of_value(value))),
            Operand::Length { column, factor } => match get(*column)? {
                Scalar::Bytes(text) => Some(Scalar::Number(characters(text) as i128 * factor)),
                _ => None,
            },
        }
    }
}

impl Form {
    fn shape(self, scalar: Scalar<'_>) -> Scalar<'_> {
        match (self, scalar) {
            (Form::Exact(factor), Scalar::Narrow(value)) => {
                Scalar::Number(i128::from(value) * factor)
            }
            // Binding has made sure that there is room.
            (Form::Exact(factor), Scalar::Number(value)) => {
                Scalar::Number(value.saturating_mul(factor))
            }
            (Form::Real, Scalar::Narrow(value)) => float(f64::from(f32_from_ordinal(value))),
            (Form::Double, Scalar::Narrow(value)) => float(f64_from_ordinal(value)),
            (_, other) => other,
        }
    }
}

fn float(value: f64) -> Scalar<'static> {
    let value = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN.copysign(1.0)
    } else {
        value
    };
    Scalar::Narrow(ordinal_from_f64(value))
}

/// Counts characters: bytes of UTF-8 that do not continue one.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}
