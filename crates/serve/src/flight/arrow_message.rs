//! What Arrow messages of a client may say.
//!
//! The decoder takes much for granted: a float of no known precision, a list without its child or a dictionary without
//! values ends in a panic. What it can read is listed here, and looked at before; all else is refused.

use coload_types::{Error, Result};
use datafusion::arrow::ipc::{
    DateUnit, Endianness, Field, Int, IntervalUnit, MessageHeader, Precision, TimeUnit, Type,
    UnionMode, root_as_message,
};

/// Types within types. The engine walks them by recursion.
const DEPTH_MAX: usize = 32;

/// Looks at the head of a message.
///
/// # Errors
/// `Invalid` when the decoder could not read it.
pub(super) fn check(head: &[u8]) -> Result<()> {
    let message = root_as_message(head)
        .map_err(|error| Error::Invalid(format!("the client sent no Arrow message: {error}")))?;
    match message.header_type() {
        MessageHeader::Schema => {
            let schema = message.header_as_schema().ok_or_else(|| not_arrow("no schema"))?;
            if schema.endianness() != Endianness::Little {
                return Err(not_arrow("numbers whose first byte is the highest"));
            }
            let fields = schema.fields().ok_or_else(|| not_arrow("a schema without columns"))?;
            fields.iter().try_for_each(|field| {
                check_field(field, 0).map_err(|what| {
                    let name = field.name().unwrap_or_default();
                    not_arrow(&format!("{what} as column \"{}\"", name.escape_debug()))
                })
            })
        }
        MessageHeader::DictionaryBatch => {
            let values = message.header_as_dictionary_batch().and_then(|batch| batch.data());
            values.map(drop).ok_or_else(|| not_arrow("a dictionary without values"))
        }
        _ => Ok(()),
    }
}

fn not_arrow(what: &str) -> Error {
    Error::Invalid(format!("the client sent {what}, which is not Arrow or not supported"))
}

/// Says what is wrong with a column, or with what it is made of.
fn check_field(field: Field<'_>, depth: usize) -> std::result::Result<(), &'static str> {
    if depth > DEPTH_MAX {
        return Err("types within types");
    }
    if let Some(dictionary) = field.dictionary()
        && !dictionary.indexType().is_some_and(is_integer)
    {
        return Err("a dictionary of unknown codes");
    }
    let known = match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8 => true,
        Type::Int => field.type_as_int().is_some_and(is_integer),
        Type::FixedSizeBinary => {
            field.type_as_fixed_size_binary().is_some_and(|binary| binary.byteWidth() >= 0)
        }
        Type::FloatingPoint => field.type_as_floating_point().is_some_and(|float| {
            [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&float.precision())
        }),
        Type::Date => field
            .type_as_date()
            .is_some_and(|date| [DateUnit::DAY, DateUnit::MILLISECOND].contains(&date.unit())),
        Type::Time => field.type_as_time().is_some_and(|time| {
            matches!(
                (time.bitWidth(), time.unit()),
                (32, TimeUnit::SECOND | TimeUnit::MILLISECOND)
                    | (64, TimeUnit::MICROSECOND | TimeUnit::NANOSECOND)
            )
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|time| is_unit(time.unit())),
        Type::Duration => field.type_as_duration().is_some_and(|time| is_unit(time.unit())),
        Type::Interval => field.type_as_interval().is_some_and(|interval| {
            use IntervalUnit as Unit;
            [Unit::YEAR_MONTH, Unit::DAY_TIME, Unit::MONTH_DAY_NANO].contains(&interval.unit())
        }),
        Type::Decimal => field.type_as_decimal().is_some_and(|decimal| {
            [32, 64, 128, 256].contains(&decimal.bitWidth())
                && u8::try_from(decimal.precision()).is_ok()
                && i8::try_from(decimal.scale()).is_ok()
        }),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => children(field) == 1,
        Type::FixedSizeList => {
            let size = field.type_as_fixed_size_list().map(|list| list.listSize());
            children(field) == 1 && size.is_some_and(|size| size >= 0)
        }
        Type::Map => children(field) == 1 && field.type_as_map().is_some(),
        Type::RunEndEncoded => children(field) == 2,
        Type::Struct_ => true,
        Type::Union => field.type_as_union().is_some_and(|union| {
            let ids: Option<Vec<i32>> = union.typeIds().map(|ids| ids.iter().collect());
            [UnionMode::Dense, UnionMode::Sparse].contains(&union.mode())
                && are_ids(ids.as_deref(), children(field))
        }),
        _ => false,
    };
    if !known {
        return Err("values of an unknown type");
    }
    let mut children = field.children().into_iter().flatten();
    children.try_for_each(|child| check_field(child, depth + 1))
}

fn children(field: Field<'_>) -> usize {
    field.children().map_or(0, |children| children.len())
}

fn is_integer(int: Int<'_>) -> bool {
    [8, 16, 32, 64].contains(&int.bitWidth())
}

fn is_unit(unit: TimeUnit) -> bool {
    use TimeUnit as Unit;
    [Unit::SECOND, Unit::MILLISECOND, Unit::MICROSECOND, Unit::NANOSECOND].contains(&unit)
}

/// Whether each kind of value of a union has an id of its own, from 0 to 127.
fn are_ids(ids: Option<&[i32]>, kinds: usize) -> bool {
    let Some(ids) = ids else { return kinds <= 128 };
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == kinds && ids.len() == kinds && ids.iter().all(|id| (0..128).contains(id))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Schema};
    use datafusion::arrow::ipc::convert::try_schema_from_flatbuffer_bytes;
    use datafusion::arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};

    use super::*;

    fn head(schema: &Schema) -> Vec<u8> {
        let mut tracker = DictionaryTracker::new(false);
        let options = IpcWriteOptions::default();
        IpcDataGenerator::default()
            .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
            .ipc_message
    }

    fn all_types() -> Schema {
        use datafusion::arrow::datatypes::{IntervalUnit as I, TimeUnit as T};
        let of = |t: ArrowType| std::sync::Arc::new(ArrowField::new("item", t, true));
        let types = [
            ArrowType::Null,
            ArrowType::Boolean,
            ArrowType::UInt64,
            ArrowType::Float16,
            ArrowType::Utf8View,
            ArrowType::FixedSizeBinary(7),
            ArrowType::Date64,
            ArrowType::Time32(T::Second),
            ArrowType::Time64(T::Nanosecond),
            ArrowType::Timestamp(T::Millisecond, Some("UTC".into())),
            ArrowType::Duration(T::Microsecond),
            ArrowType::Interval(I::MonthDayNano),
            ArrowType::Decimal128(38, -3),
            ArrowType::Decimal256(76, 3),
            ArrowType::List(of(ArrowType::Float64)),
            ArrowType::LargeList(of(ArrowType::Struct([of(ArrowType::Int8)].into()))),
            ArrowType::FixedSizeList(of(ArrowType::Int16), 3),
            ArrowType::Dictionary(Box::new(ArrowType::UInt8), Box::new(ArrowType::Utf8)),
        ];
        let fields = types.into_iter().enumerate();
        Schema::new(
            fields.map(|(i, t)| ArrowField::new(i.to_string(), t, true)).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn all_types_pass() {
        check(&head(&all_types())).expect("a schema");
    }

    /// What is let through is a schema or an error.
    #[test]
    fn what_is_let_through_does_not_panic() {
        let good = head(&all_types());
        let mut passed = 0;
        for at in 0..good.len() {
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                if check(&bytes).is_ok() {
                    passed += 1;
                    let _ = try_schema_from_flatbuffer_bytes(&bytes);
                }
            }
        }
        assert!(passed > good.len(), "{passed} of {}", good.len() * 9);
    }
}
