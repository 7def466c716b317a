//! Types of casts and literals.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharLengthUnits, CharacterLength, DataType, ExactNumberInfo,
};

use super::refuse;

/// Largest precision of a FLOAT that a REAL holds, by the standard.
const REAL_BITS_MAX: u64 = 24;

/// Lets through the types whose every part the planner looks at, and makes the others so where they mean the same.
pub(super) fn check_type(data_type: &mut DataType) -> Result<()> {
    use DataType as D;
    let replaced = match data_type {
        D::Float(ExactNumberInfo::None) => D::DoublePrecision,
        D::Float(ExactNumberInfo::Precision(bits)) if *bits <= REAL_BITS_MAX => D::Real,
        D::Float(_) => D::DoublePrecision,
        D::Dec(info) => D::Decimal(*info),
        D::Character(length) => D::Char(*length),
        D::CharacterVarying(length) | D::CharVarying(length) | D::Nvarchar(length) => {
            D::Varchar(*length)
        }
        D::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => {
            check_type(element)?;
            D::Array(ArrayElemTypeDef::SquareBracket(element.clone(), None))
        }
        D::Float64 => D::DoublePrecision,
        D::Float32 => D::Real,
        D::Int16 => D::SmallInt(None),
        D::Int32 => D::Int(None),
        D::Int64 => D::BigInt(None),
        D::Date32 => D::Date,
        D::Datetime(precision) => {
            D::Timestamp(*precision, datafusion::sql::sqlparser::ast::TimezoneInfo::None)
        }
        _ => return check_plain(data_type),
    };
    *data_type = replaced;
    match data_type {
        // Its elements were looked at.
        D::Array(_) => Ok(()),
        other => check_plain(other),
    }
}

/// Takes the length out of a type of text, as the planner does not look at it.
///
/// # Errors
/// When the length is not in characters, or is none or zero where one is needed.
pub(super) fn take_length(data_type: &mut DataType) -> Result<Option<u64>> {
    use DataType as D;
    let length = match &*data_type {
        D::Varchar(None) => return Ok(None),
        D::Char(None) => 1,
        D::Varchar(Some(length)) | D::Char(Some(length)) => match length {
            CharacterLength::IntegerLength { length, unit } if *length > 0 => match unit {
                None | Some(CharLengthUnits::Characters) => *length,
                Some(_) => return refuse(&format!("the type {data_type}"), "write characters"),
            },
            _ => return refuse(&format!("the type {data_type}"), "write VARCHAR, or a length"),
        },
        _ => return Ok(None),
    };
    *data_type = D::Varchar(None);
    Ok(Some(length))
}

fn check_plain(data_type: &DataType) -> Result<()> {
    use DataType as D;
    match data_type {
        D::TinyInt(None)
        | D::SmallInt(None)
        | D::Int2(None)
        | D::Int(None)
        | D::Integer(None)
        | D::Int4(None)
        | D::BigInt(None)
        | D::Int8(None)
        | D::TinyIntUnsigned(None)
        | D::SmallIntUnsigned(None)
        | D::IntUnsigned(None)
        | D::IntegerUnsigned(None)
        | D::BigIntUnsigned(None)
        | D::Boolean
        | D::Bool
        | D::Real
        | D::Float4
        | D::Float8
        | D::DoublePrecision
        | D::Double(ExactNumberInfo::None)
        | D::Numeric(_)
        | D::Decimal(_)
        | D::Date
        | D::Time(..)
        | D::Timestamp(..)
        | D::Interval { .. }
        | D::Bytea
        | D::Text
        | D::String(None)
        | D::Varchar(_)
        | D::Char(_) => Ok(()),
        other => {
            refuse(&format!("the type {other} in an expression"), "docs/sql.md lists the types")
        }
    }
}
