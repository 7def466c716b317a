//! What values mean, as footers say it: by logical types, or by the words that there were before.

use coload_arrow::Unit;

use super::thrift::{Compact, Kind, Result as ThriftResult, Wrong, expect};

/// What values mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    None,
    String,
    Enum,
    Json,
    Bson,
    Decimal {
        precision: i32,
        scale: i32,
    },
    Date,
    Time {
        utc: bool,
        unit: Unit,
    },
    Timestamp {
        utc: bool,
        unit: Unit,
    },
    Integer {
        bits: i8,
        signed: bool,
    },
    Null,
    Uuid,
    Float16,
    Map,
    List,
    Geometry,
    /// A name for what is not read.
    Other(&'static str),
}

/// What the former words mean.
pub(super) fn converted_type(converted: i32, precision: i32, scale: i32) -> Logical {
    use Unit::{Micro, Milli};
    let integer = |bits, signed| Logical::Integer { bits, signed };
    match converted {
        0 => Logical::String,
        1 | 2 => Logical::Map,
        3 => Logical::List,
        4 => Logical::Enum,
        5 => Logical::Decimal { precision, scale },
        6 => Logical::Date,
        7 => Logical::Time { utc: true, unit: Milli },
        8 => Logical::Time { utc: true, unit: Micro },
        9 => Logical::Timestamp { utc: true, unit: Milli },
        10 => Logical::Timestamp { utc: true, unit: Micro },
        11 => integer(8, false),
        12 => integer(16, false),
        13 => integer(32, false),
        14 => integer(64, false),
        15 => integer(8, true),
        16 => integer(16, true),
        17 => integer(32, true),
        18 => integer(64, true),
        19 => Logical::Json,
        20 => Logical::Bson,
        21 => Logical::Other("INTERVAL"),
        _ => Logical::None,
    }
}

fn unit(from: &mut Compact<'_>, kind: Kind) -> ThriftResult<Unit> {
    let mut unit = None;
    expect(kind, Kind::Struct)?;
    from.structure(|_, field, _| {
        unit = match field {
            1 => Some(Unit::Milli),
            2 => Some(Unit::Micro),
            3 => Some(Unit::Nano),
            _ => return Err(Wrong::Bad("an unknown unit of time")),
        };
        Ok(false)
    })?;
    unit.ok_or(Wrong::Bad("a time without its unit"))
}

fn moment(from: &mut Compact<'_>) -> ThriftResult<(bool, Unit)> {
    let (mut utc, mut of) = (false, None);
    from.structure(|from, field, kind| {
        match field {
            1 => utc = from.truth(kind)?,
            2 => of = Some(unit(from, kind)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((utc, of.ok_or(Wrong::Bad("a time without its unit"))?))
}

/// Reads what values mean.
pub(super) fn logical_type(from: &mut Compact<'_>, kind: Kind) -> ThriftResult<Logical> {
    let mut found = Logical::Other("an unknown logical type");
    expect(kind, Kind::Struct)?;
    from.structure(|from, field, kind| {
        expect(kind, Kind::Struct)?;
        found = match field {
            1 => Logical::String,
            2 => Logical::Map,
            3 => Logical::List,
            4 => Logical::Enum,
            5 => {
                let (mut precision, mut scale) = (0, 0);
                from.structure(|from, field, kind| {
                    match field {
                        1 => scale = from.i32(kind)?,
                        2 => precision = from.i32(kind)?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                found = Logical::Decimal { precision, scale };
                return Ok(true);
            }
            6 => Logical::Date,
            7 => {
                let (utc, unit) = moment(from)?;
                found = Logical::Time { utc, unit };
                return Ok(true);
            }
            8 => {
                let (utc, unit) = moment(from)?;
                found = Logical::Timestamp { utc, unit };
                return Ok(true);
            }
            10 => {
                let (mut bits, mut signed) = (0, false);
                from.structure(|from, field, kind| {
                    match field {
                        1 => bits = from.i8(kind)?,
                        2 => signed = from.truth(kind)?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                found = Logical::Integer { bits, signed };
                return Ok(true);
            }
            11 => Logical::Null,
            12 => Logical::Json,
            13 => Logical::Bson,
            14 => Logical::Uuid,
            15 => Logical::Float16,
            16 => Logical::Other("VARIANT"),
            17 | 18 => Logical::Geometry,
            _ => Logical::Other("an unknown logical type"),
        };
        Ok(false)
    })?;
    Ok(found)
}

/// What values mean, in the words of Parquet; `None` where nothing is said.
pub(super) fn described(logical: Logical) -> Option<String> {
    let unit_name = |unit: Unit| match unit {
        Unit::Second => "SECONDS",
        Unit::Milli => "MILLIS",
        Unit::Micro => "MICROS",
        Unit::Nano => "NANOS",
    };
    let zone = |utc: bool| if utc { "UTC" } else { "local" };
    Some(match logical {
        Logical::None => return None,
        Logical::String => "STRING".to_owned(),
        Logical::Enum => "ENUM".to_owned(),
        Logical::Json => "JSON".to_owned(),
        Logical::Bson => "BSON".to_owned(),
        Logical::Decimal { precision, scale } => format!("DECIMAL({precision}, {scale})"),
        Logical::Date => "DATE".to_owned(),
        Logical::Time { utc, unit } => format!("TIME({}, {})", unit_name(unit), zone(utc)),
        Logical::Timestamp { utc, unit } => {
            format!("TIMESTAMP({}, {})", unit_name(unit), zone(utc))
        }
        Logical::Integer { bits, signed } => {
            format!("{}INT_{bits}", if signed { "" } else { "U" })
        }
        Logical::Null => "UNKNOWN".to_owned(),
        Logical::Uuid => "UUID".to_owned(),
        Logical::Float16 => "FLOAT16".to_owned(),
        Logical::Map => "MAP".to_owned(),
        Logical::List => "LIST".to_owned(),
        Logical::Geometry => "GEOMETRY".to_owned(),
        Logical::Other(name) => name.to_owned(),
    })
}
