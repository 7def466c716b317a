//! Literals of SQL as physical values, exactly.
//!
//! A comparison with a literal can be tested on stored values only if the literal has a place in
//! their order. Most have an exact one. A number between two stored ones (2.5 among integers) lies
//! in a [`Place::Gap`]: it equals nothing, and `<` and `<=` mean the same. Out of range is a gap
//! at an end.

use std::cmp::Ordering;

use coload_types::{DataType, Value, ordinal_from_f32, ordinal_from_f64, parse_value};
use datafusion::scalar::ScalarValue;

/// Where a literal stands among the values that a column can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Equal to this value.
    At(Value),
    /// Above this value and below the next.
    Gap(Value),
    Below,
    Above,
}

/// The place of a literal among the values of a type; `None` when it cannot be told exactly.
pub(crate) fn place(literal: &ScalarValue, data_type: DataType) -> Option<Place> {
    if literal.is_null() {
        return None;
    }
    match data_type {
        DataType::SmallInt => number(literal, 0, i16::MIN.into(), i16::MAX.into()),
        DataType::Integer => number(literal, 0, i32::MIN.into(), i32::MAX.into()),
        DataType::BigInt => number(literal, 0, i64::MIN.into(), i64::MAX.into()),
        DataType::Decimal { precision, scale } => {
            let most = 10i128.pow(u32::from(precision)) - 1;
            let place = number(literal, scale, -most, most)?;
            Some(if data_type.physical() == coload_types::Physical::Wide {
                widen(place)
            } else {
                place
            })
        }
        DataType::Date => date(literal),
        DataType::Timestamp => instant(literal, Zoned::No),
        DataType::TimestampTz => instant(literal, Zoned::Yes),
        DataType::Real => real(literal),
        other => value(literal, other).map(Place::At),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Zoned {
    Yes,
    No,
}

/// A timestamp literal as a count, the nanoseconds of one, and whether it has a zone.
fn ticks(literal: &ScalarValue) -> Option<(i64, i128, Zoned)> {
    use ScalarValue as S;
    let (count, nanos, zone) = match literal {
        S::TimestampSecond(Some(v), zone) => (*v, 1_000_000_000, zone),
        S::TimestampMillisecond(Some(v), zone) => (*v, 1_000_000, zone),
        S::TimestampMicrosecond(Some(v), zone) => (*v, 1_000, zone),
        S::TimestampNanosecond(Some(v), zone) => (*v, 1, zone),
        _ => return None,
    };
    Some((count, nanos, if zone.is_some() { Zoned::Yes } else { Zoned::No }))
}

/// The place of an instant of so many nanoseconds among units of `unit` nanoseconds.
fn among(nanos: i128, unit: i128) -> Place {
    let Ok(value) = i64::try_from(nanos.div_euclid(unit)) else {
        return if nanos < 0 { Place::Below } else { Place::Above };
    };
    let value = Value::Int(value);
    if nanos.rem_euclid(unit) == 0 { Place::At(value) } else { Place::Gap(value) }
}

fn instant(literal: &ScalarValue, zoned: Zoned) -> Option<Place> {
    let (count, nanos, literal_zoned) = ticks(literal)?;
    (zoned == literal_zoned).then(|| among(i128::from(count) * nanos, 1_000))
}

/// A date compared with a timestamp stands for its midnight.
fn date(literal: &ScalarValue) -> Option<Place> {
    if let ScalarValue::Date32(Some(days)) = literal {
        return Some(Place::At(Value::Int((*days).into())));
    }
    let (count, nanos, zoned) = ticks(literal)?;
    const DAY_NANOS: i128 = 86_400_000_000_000;
    (zoned == Zoned::No).then(|| among(i128::from(count) * nanos, DAY_NANOS))
}

/// A 32-bit float compared with a 64-bit one is widened, which changes neither value nor order.
fn real(literal: &ScalarValue) -> Option<Place> {
    match literal {
        ScalarValue::Float32(Some(v)) => Some(Place::At(Value::Int(ordinal_from_f32(*v)))),
        ScalarValue::Float64(Some(v)) if v.is_finite() => {
            let near = *v as f32;
            let ordinal = ordinal_from_f32(near);
            Some(match f64::from(near).total_cmp(v) {
                Ordering::Equal => Place::At(Value::Int(ordinal)),
                Ordering::Less => Place::Gap(Value::Int(ordinal)),
                Ordering::Greater => Place::Gap(Value::Int(ordinal - 1)),
            })
        }
        _ => None,
    }
}

/// The value of a literal of the same type as the column's.
fn value(literal: &ScalarValue, data_type: DataType) -> Option<Value> {
    use ScalarValue as S;
    Some(match (data_type, literal) {
        (DataType::Boolean, S::Boolean(Some(v))) => Value::Int((*v).into()),
        (DataType::Double, S::Float64(Some(v))) => Value::Int(ordinal_from_f64(*v)),
        (DataType::Time, S::Time64Microsecond(Some(v))) => Value::Int(*v),
        (DataType::Char(_) | DataType::Varchar(_), _) => {
            Value::Bytes(literal.try_as_str()??.as_bytes().into())
        }
        (
            DataType::Binary(_),
            S::Binary(Some(v)) | S::BinaryView(Some(v)) | S::LargeBinary(Some(v)),
        ) => Value::Bytes(v.as_slice().into()),
        (DataType::Uuid, _) => {
            let text = literal.try_as_str()??;
            let value = parse_value(text.as_bytes(), DataType::Uuid).ok()?;
            // In SQL a UUID is its text, so only that text equals it.
            (value.display(DataType::Uuid) == text).then_some(value)?
        }
        _ => return None,
    })
}

/// An integer or decimal literal as unscaled digits, and its scale.
fn digits(literal: &ScalarValue) -> Option<(i128, u8)> {
    use ScalarValue as S;
    Some(match literal {
        S::Int8(Some(v)) => ((*v).into(), 0),
        S::Int16(Some(v)) => ((*v).into(), 0),
        S::Int32(Some(v)) => ((*v).into(), 0),
        S::Int64(Some(v)) => ((*v).into(), 0),
        S::UInt8(Some(v)) => ((*v).into(), 0),
        S::UInt16(Some(v)) => ((*v).into(), 0),
        S::UInt32(Some(v)) => ((*v).into(), 0),
        S::UInt64(Some(v)) => ((*v).into(), 0),
        S::Decimal32(Some(v), _, s) => ((*v).into(), u8::try_from(*s).ok()?),
        S::Decimal64(Some(v), _, s) => ((*v).into(), u8::try_from(*s).ok()?),
        S::Decimal128(Some(v), _, s) => (*v, u8::try_from(*s).ok()?),
        _ => return None,
    })
}

/// The place of a number among the unscaled values `min..=max` of a scale.
fn number(literal: &ScalarValue, scale: u8, min: i128, max: i128) -> Option<Place> {
    let (unscaled, literal_scale) = digits(literal)?;
    let (value, exact) = if literal_scale <= scale {
        let factor = 10i128.pow(u32::from(scale - literal_scale));
        match unscaled.checked_mul(factor) {
            Some(value) => (value, true),
            None if unscaled < 0 => return Some(Place::Below),
            None => return Some(Place::Above),
        }
    } else {
        let factor = 10i128.checked_pow(u32::from(literal_scale - scale))?;
        (unscaled.div_euclid(factor), unscaled.rem_euclid(factor) == 0)
    };
    Some(if value < min {
        Place::Below
    } else if value > max {
        Place::Above
    } else {
        // `max` fits an Int, or the caller widens.
        let value = match i64::try_from(value) {
            Ok(int) => Value::Int(int),
            Err(_) => Value::Wide(value),
        };
        if exact { Place::At(value) } else { Place::Gap(value) }
    })
}

fn widen(place: Place) -> Place {
    let wide = |value| match value {
        Value::Int(v) => Value::Wide(v.into()),
        other => other,
    };
    match place {
        Place::At(v) => Place::At(wide(v)),
        Place::Gap(v) => Place::Gap(wide(v)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rescaled_exactly_or_lie_in_a_gap() {
        let two = DataType::Decimal { precision: 5, scale: 2 };
        let at = |v, s| place(&ScalarValue::Decimal128(Some(v), 10, s), two);
        assert_eq!(at(5, 1), Some(Place::At(Value::Int(50))));
        assert_eq!(at(1234, 3), Some(Place::Gap(Value::Int(123))));
        assert_eq!(at(-1234, 3), Some(Place::Gap(Value::Int(-124))));
        assert_eq!(at(1_000_000, 2), Some(Place::Above));
        assert_eq!(at(-1_000_000, 2), Some(Place::Below));
        assert_eq!(place(&ScalarValue::Int64(Some(7)), two), Some(Place::At(Value::Int(700))));
        assert_eq!(place(&ScalarValue::Int64(None), two), None);
        assert_eq!(place(&ScalarValue::Float64(Some(1.0)), two), None);
    }

    #[test]
    fn integers_out_of_range_are_beyond_an_end() {
        let small = |v| place(&ScalarValue::Int64(Some(v)), DataType::SmallInt);
        assert_eq!(small(40_000), Some(Place::Above));
        assert_eq!(small(-40_000), Some(Place::Below));
        assert_eq!(small(-5), Some(Place::At(Value::Int(-5))));
    }

    #[test]
    fn finer_instants_and_floats_lie_in_gaps() {
        let noon = ScalarValue::TimestampNanosecond(Some(43_200_000_000_000), None);
        assert_eq!(place(&noon, DataType::Date), Some(Place::Gap(Value::Int(0))));
        assert_eq!(place(&noon, DataType::Timestamp), Some(Place::At(Value::Int(43_200_000_000))));
        assert_eq!(place(&noon, DataType::TimestampTz), None);
        let tenth = place(&ScalarValue::Float64(Some(0.1)), DataType::Real);
        assert_eq!(tenth, Some(Place::Gap(Value::Int(ordinal_from_f32(0.1) - 1))));
        let half = place(&ScalarValue::Float64(Some(0.5)), DataType::Real);
        assert_eq!(half, Some(Place::At(Value::Int(ordinal_from_f32(0.5)))));
    }

    #[test]
    fn a_uuid_is_only_its_own_text() {
        let text = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        let of = |t: &str| place(&ScalarValue::Utf8View(Some(t.into())), DataType::Uuid);
        assert!(matches!(of(text), Some(Place::At(Value::Wide(_)))));
        assert_eq!(of(&text.to_uppercase()), None);
    }
}
