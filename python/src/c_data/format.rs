//! Types, as the texts of the interface and as SQL names them.

use std::sync::Arc;

use coload::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode,
};

/// The text of a type; what is within it is told by its children.
pub fn format_of(data_type: &DataType) -> Result<String, String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 's',
        TimeUnit::Millisecond => 'm',
        TimeUnit::Microsecond => 'u',
        TimeUnit::Nanosecond => 'n',
    };
    Ok(match data_type {
        DataType::Decimal128(precision, scale) => format!("d:{precision},{scale}"),
        DataType::Decimal32(precision, scale) => format!("d:{precision},{scale},32"),
        DataType::Decimal64(precision, scale) => format!("d:{precision},{scale},64"),
        DataType::Decimal256(precision, scale) => format!("d:{precision},{scale},256"),
        DataType::FixedSizeBinary(width) => format!("w:{width}"),
        DataType::Time32(of) | DataType::Time64(of) => format!("tt{}", unit(of)),
        DataType::Timestamp(of, zone) => {
            format!("ts{}:{}", unit(of), zone.as_deref().unwrap_or_default())
        }
        DataType::Duration(of) => format!("tD{}", unit(of)),
        DataType::FixedSizeList(_, size) => format!("+w:{size}"),
        DataType::Union(fields, mode) => {
            let ids: Vec<String> = fields.iter().map(|(id, _)| id.to_string()).collect();
            let mode = if *mode == UnionMode::Dense { 'd' } else { 's' };
            format!("+u{mode}:{}", ids.join(","))
        }
        // Its values are told apart.
        DataType::Dictionary(keys, _) => return format_of(keys),
        other => {
            let known = FIXED.iter().find(|(_, data_type)| data_type == other);
            match (known, NESTED.iter().find(|(_, is_of, _)| is_of(other))) {
                (Some((text, _)), _) => (*text).to_owned(),
                (None, Some((text, ..))) => (*text).to_owned(),
                (None, None) => return Err(format!("{other} has no form in the interface")),
            }
        }
    })
}

/// Types whose texts have no parameters.
const FIXED: [(&str, DataType); 29] = [
    ("n", DataType::Null),
    ("b", DataType::Boolean),
    ("c", DataType::Int8),
    ("C", DataType::UInt8),
    ("s", DataType::Int16),
    ("S", DataType::UInt16),
    ("i", DataType::Int32),
    ("I", DataType::UInt32),
    ("l", DataType::Int64),
    ("L", DataType::UInt64),
    ("e", DataType::Float16),
    ("f", DataType::Float32),
    ("g", DataType::Float64),
    ("z", DataType::Binary),
    ("Z", DataType::LargeBinary),
    ("vz", DataType::BinaryView),
    ("u", DataType::Utf8),
    ("U", DataType::LargeUtf8),
    ("vu", DataType::Utf8View),
    ("tdD", DataType::Date32),
    ("tdm", DataType::Date64),
    ("tts", DataType::Time32(TimeUnit::Second)),
    ("ttm", DataType::Time32(TimeUnit::Millisecond)),
    ("ttu", DataType::Time64(TimeUnit::Microsecond)),
    ("ttn", DataType::Time64(TimeUnit::Nanosecond)),
    ("tiM", DataType::Interval(IntervalUnit::YearMonth)),
    ("tiD", DataType::Interval(IntervalUnit::DayTime)),
    ("tin", DataType::Interval(IntervalUnit::MonthDayNano)),
    ("tDu", DataType::Duration(TimeUnit::Microsecond)),
];

/// Whether a type is of a kind.
type IsOf = fn(&DataType) -> bool;

/// The type of some children.
type Nest = fn(Vec<FieldRef>, i64) -> Option<DataType>;

/// Types that are made of others.
const NESTED: [(&str, IsOf, Nest); 7] = [
    ("+l", |t| matches!(t, DataType::List(_)), |mut c, _| c.pop().map(DataType::List)),
    ("+L", |t| matches!(t, DataType::LargeList(_)), |mut c, _| c.pop().map(DataType::LargeList)),
    ("+vl", |t| matches!(t, DataType::ListView(_)), |mut c, _| c.pop().map(DataType::ListView)),
    (
        "+vL",
        |t| matches!(t, DataType::LargeListView(_)),
        |mut c, _| c.pop().map(DataType::LargeListView),
    ),
    ("+s", |t| matches!(t, DataType::Struct(_)), |c, _| Some(DataType::Struct(Fields::from(c)))),
    (
        "+m",
        |t| matches!(t, DataType::Map(..)),
        |mut c, flags| c.pop().map(|entries| DataType::Map(entries, flags & KEYS_SORTED != 0)),
    ),
    (
        "+r",
        |t| matches!(t, DataType::RunEndEncoded(..)),
        |mut c, _| {
            let (values, ends) = (c.pop()?, c.pop()?);
            Some(DataType::RunEndEncoded(ends, values))
        },
    ),
];

/// Whether the keys of a map are in order.
const KEYS_SORTED: i64 = 4;

/// The type that a text and its children tell.
pub fn type_of(text: &str, children: Vec<FieldRef>, flags: i64) -> Result<DataType, String> {
    let unknown = || format!("\"{text}\" is no type of the interface that is known");
    let count = children.len();
    if let Some((_, data_type)) = FIXED.iter().find(|(known, _)| *known == text) {
        return Ok(data_type.clone());
    }
    if let Some((.., nest)) = NESTED.iter().find(|(known, ..)| *known == text) {
        let wanted = match text {
            "+s" => count,
            "+r" => 2,
            _ => 1,
        };
        return nest(children, flags).filter(|_| count == wanted).ok_or_else(unknown);
    }
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let unit = |text: &str| match text.chars().last() {
        Some('s') => Some(TimeUnit::Second),
        Some('m') => Some(TimeUnit::Millisecond),
        Some('u') => Some(TimeUnit::Microsecond),
        Some('n') => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    let size = || rest.parse::<i32>().ok().filter(|size| *size >= 0).ok_or_else(unknown);
    match kind {
        "d" => decimal(rest).ok_or_else(unknown),
        "w" => Ok(DataType::FixedSizeBinary(size()?)),
        "tss" | "tsm" | "tsu" | "tsn" => {
            let zone = (!rest.is_empty()).then(|| rest.into());
            Ok(DataType::Timestamp(unit(kind).ok_or_else(unknown)?, zone))
        }
        "tDs" | "tDm" | "tDu" | "tDn" => Ok(DataType::Duration(unit(kind).ok_or_else(unknown)?)),
        "+w" => {
            let [child] = <[FieldRef; 1]>::try_from(children).map_err(|_| unknown())?;
            Ok(DataType::FixedSizeList(child, size()?))
        }
        "+ud" | "+us" => {
            let ids = rest.split(',').filter(|id| !id.is_empty());
            let ids: Vec<i8> =
                ids.map(|id| id.parse().map_err(|_| unknown())).collect::<Result<_, _>>()?;
            let mode = if kind == "+ud" { UnionMode::Dense } else { UnionMode::Sparse };
            let fields = UnionFields::try_new(ids, children).map_err(|_| unknown())?;
            Ok(DataType::Union(fields, mode))
        }
        _ => Err(unknown()),
    }
}

fn decimal(text: &str) -> Option<DataType> {
    let mut numbers = text.split(',');
    let precision = numbers.next()?.parse().ok()?;
    let scale = numbers.next()?.parse().ok()?;
    Some(match numbers.next() {
        None | Some("128") => DataType::Decimal128(precision, scale),
        Some("32") => DataType::Decimal32(precision, scale),
        Some("64") => DataType::Decimal64(precision, scale),
        Some("256") => DataType::Decimal256(precision, scale),
        Some(_) => return None,
    })
}

/// A field of a dictionary whose keys have a type.
pub fn dictionary_type(keys: &DataType, values: &Field) -> DataType {
    DataType::Dictionary(Box::new(keys.clone()), Box::new(values.data_type().clone()))
}

/// What SQL calls a type; of one that it has no name for, what Arrow calls it.
pub fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".to_owned(),
        DataType::Interval(_) => "INTERVAL".to_owned(),
        DataType::Dictionary(_, values) => sql_name(values),
        other => match coload_serve::sql_type(other) {
            Some(sql) => sql.to_string(),
            None => other.to_string(),
        },
    }
}

/// The children of a type, as fields.
pub fn children_of(data_type: &DataType) -> Vec<FieldRef> {
    match data_type {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => vec![Arc::clone(child)],
        DataType::Struct(fields) => fields.iter().cloned().collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| Arc::clone(field)).collect(),
        DataType::RunEndEncoded(ends, values) => vec![Arc::clone(ends), Arc::clone(values)],
        _ => Vec::new(),
    }
}
