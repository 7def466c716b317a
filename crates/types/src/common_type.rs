//! The type that holds what columns of two types hold.

use crate::{DECIMAL_PRECISION_MAX, DataType, ElementType};

/// Digits of which a DOUBLE keeps each: a number of so many is printed as it was written.
const DOUBLE_DIGITS: u8 = 15;

impl DataType {
    /// The least type that holds each value of both types as it is; `None` if there is none.
    ///
    /// Integers become larger integers and DECIMALs, DECIMALs get the digits of both, before and after the point. Numbers of up to
    /// 15 digits and floats become DOUBLE; a BIGINT or a longer DECIMAL would be rounded there. Days become TIMESTAMP, and texts
    /// the longer text. Nothing becomes text that is none.
    pub fn common(self, other: DataType) -> Option<DataType> {
        use DataType::{
            BigInt, Binary, Char, Date, Decimal, Double, Integer, List, Real, SmallInt, Timestamp,
            Varchar,
        };
        if self == other {
            return Some(self);
        }
        match (self, other) {
            (SmallInt, Integer) | (Integer, SmallInt) => Some(Integer),
            (SmallInt | Integer, BigInt) | (BigInt, SmallInt | Integer) => Some(BigInt),
            (SmallInt, Real) | (Real, SmallInt) => Some(Real),
            (Date, Timestamp) | (Timestamp, Date) => Some(Timestamp),
            (Real | Double, Real | Double) => Some(Double),
            (Real | Double, exact) | (exact, Real | Double) => {
                let (digits, scale) = exact.digits()?;
                (digits + scale <= DOUBLE_DIGITS).then_some(Double)
            }
            (SmallInt | Integer | BigInt | Decimal { .. }, _) => {
                let ((digits, scale), (others, other_scale)) = (self.digits()?, other.digits()?);
                let scale = scale.max(other_scale);
                let precision = digits.max(others) + scale;
                (precision <= DECIMAL_PRECISION_MAX).then_some(Decimal { precision, scale })
            }
            // Elements are read as text again, of which only exact numbers are the same in any type.
            (List(a), List(b)) => {
                let (a, b) = (a.data_type(), b.data_type());
                a.digits().and(b.digits())?;
                ElementType::of(a.common(b)?).map(List)
            }
            (Char(a), Char(b)) => Some(Char(a.max(b))),
            (Char(_) | Varchar(_), Char(_) | Varchar(_)) => {
                Some(Varchar(self.length_max().zip(other.length_max()).map(|(a, b)| a.max(b))))
            }
            (Binary(a), Binary(b)) => Some(Binary(a.zip(b).map(|(a, b)| a.max(b)))),
            _ => None,
        }
    }

    /// Most digits of an exact number before the point and after it.
    fn digits(self) -> Option<(u8, u8)> {
        match self {
            DataType::SmallInt => Some((5, 0)),
            DataType::Integer => Some((10, 0)),
            DataType::BigInt => Some((19, 0)),
            DataType::Decimal { precision, scale } => Some((precision - scale, scale)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(precision: u8, scale: u8) -> DataType {
        DataType::Decimal { precision, scale }
    }

    #[test]
    fn the_common_type_holds_both_and_does_not_depend_on_their_order() {
        use DataType::{
            BigInt, Binary, Boolean, Char, Date, Double, Integer, Real, SmallInt, Time, Timestamp,
            TimestampTz, Uuid, Varchar,
        };
        let pairs = [
            (SmallInt, BigInt, Some(BigInt)),
            (SmallInt, Integer, Some(Integer)),
            (Integer, decimal(9, 2), Some(decimal(12, 2))),
            (BigInt, decimal(20, 0), Some(decimal(20, 0))),
            (decimal(9, 2), decimal(10, 5), Some(decimal(12, 5))),
            (decimal(38, 0), decimal(9, 2), None),
            (Real, Double, Some(Double)),
            (SmallInt, Real, Some(Real)),
            (Integer, Real, Some(Double)),
            (Integer, Double, Some(Double)),
            (decimal(15, 4), Double, Some(Double)),
            // They would be rounded.
            (decimal(16, 4), Double, None),
            (BigInt, Double, None),
            (Date, Timestamp, Some(Timestamp)),
            (Timestamp, TimestampTz, None),
            (Date, Time, None),
            (
                DataType::List(ElementType::Integer),
                DataType::List(ElementType::BigInt),
                Some(DataType::List(ElementType::BigInt)),
            ),
            (DataType::List(ElementType::Real), DataType::List(ElementType::Double), None),
            (DataType::List(ElementType::BigInt), BigInt, None),
            (Varchar(Some(3)), Varchar(Some(7)), Some(Varchar(Some(7)))),
            (Varchar(Some(3)), Varchar(None), Some(Varchar(None))),
            (Char(2), Char(4), Some(Char(4))),
            (Char(9), Varchar(Some(3)), Some(Varchar(Some(9)))),
            (Binary(Some(3)), Binary(None), Some(Binary(None))),
            (Varchar(None), Binary(None), None),
            (BigInt, Varchar(None), None),
            (Boolean, SmallInt, None),
            (Uuid, Varchar(None), None),
        ];
        for (one, other, common) in pairs {
            assert_eq!(one.common(other), common, "{one} and {other}");
            assert_eq!(other.common(one), common, "{other} and {one}");
            assert_eq!(one.common(one), Some(one));
        }
    }
}
