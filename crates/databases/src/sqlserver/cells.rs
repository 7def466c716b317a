//! Values as SQL Server has them in rows and parameters, and those that a column does not hold.
//!
//! A cell is the same in a row of INSERT BULK and as a parameter of a call: its length, and its bytes. So all methods have one
//! form of rows.

use std::borrow::Cow;

use coload_types::calendar::{DATE_DAYS, DAY_MICROS, date_from_days};
use coload_types::display::{write_int, write_wide};
use coload_types::{
    DataType, Error, Result, Values, f32_from_ordinal, f64_from_ordinal, write_list,
};
use encoding_rs::Encoding;

use super::pages::{BIG5, UTF8, encoding_of};
use super::tds::{kind, put_plp, put_utf16};
use crate::engine::{Cell, TableColumn};
use crate::row_maker::CellForm;

/// Most UTF-16 units, and bytes, of a column that is declared with its length.
pub const UNITS_MAX: u32 = 4000;
/// Most bytes of one.
pub const BYTES_MAX: u32 = 8000;
/// Days from 0001-01-01, of which the server counts, to 1970-01-01.
pub const EPOCH_DAYS: i64 = 719_162;
/// The same from 1900-01-01, of which DATETIME counts.
pub const DATETIME_EPOCH: i64 = 25_567;
/// 1753-01-01, the first day of DATETIME.
pub const DATETIME_FIRST: i64 = -79_257;
/// 2079-06-06, the last day of SMALLDATETIME.
const SMALLDATETIME_LAST: i64 = 39_968;

/// How values of a column go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellKind {
    /// 1 or 0.
    Bit,
    /// Whole numbers of so many bytes; one has no sign.
    Int(u8),
    /// Floats of so many bytes.
    Float(u8),
    /// Exact numbers: digits in all, those behind the point, and how many the values lack.
    Decimal { precision: u8, scale: u8, missing: u32 },
    /// Money of so many bytes: four digits behind the point, and how many the values lack.
    Money { bytes: u8, missing: u32 },
    /// Days.
    Date,
    /// A time of day with so many digits of a second.
    Time(u8),
    /// A day and a time.
    DateTime2(u8),
    /// The same in UTC.
    Offset(u8),
    /// Three-hundredths of a second, from 1753 on.
    DateTime,
    /// Minutes, from 1900 to 2079.
    SmallDateTime,
    /// Text, of so many UTF-16 units at most; or of so many bytes of a code page.
    Text(TextLimit),
    /// Bytes, so many at most, or exactly so many.
    Bytes { most: Option<u32>, exactly: bool },
    /// An identifier.
    Guid,
}

/// What text a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextLimit {
    /// UTF-16 units, or bytes of the code page; `None` for no limit.
    most: Option<u32>,
    /// The code page of its characters; `None` for all of Unicode.
    page: Option<&'static Encoding>,
    /// Whether bytes are counted.
    counts_bytes: bool,
}

impl CellKind {
    /// How values go into a column.
    ///
    /// # Errors
    /// `Invalid` when nobody knows how without a loss.
    pub fn of(column: &TableColumn) -> Result<Self> {
        let unwritten = |why: &str| {
            Err(Error::Invalid(format!(
                "column {} is of type {}: {why}",
                column.name, column.type_name
            )))
        };
        if column.cell == Cell::Rounds {
            return unwritten("nothing is loaded into such columns");
        }
        let (base, numbers) = match column.type_name.split_once('(') {
            Some((base, numbers)) => (base, numbers.trim_end_matches(')')),
            None => (column.type_name.as_str(), ""),
        };
        let mut numbers = numbers.split(',').map(|number| number.parse::<u32>().ok());
        let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
        let digits = |number: Option<u32>| number.and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
        let missing = |scale: u8| match column.data_type {
            DataType::Decimal { scale: own, .. } => u32::from(scale.saturating_sub(own)),
            _ => 0,
        };
        Ok(match base {
            "bit" => CellKind::Bit,
            "tinyint" => CellKind::Int(1),
            "smallint" => CellKind::Int(2),
            "int" => CellKind::Int(4),
            "bigint" => CellKind::Int(8),
            "real" => CellKind::Float(4),
            "float" => CellKind::Float(8),
            "decimal" | "numeric" => {
                let (precision, scale) = (digits(first), digits(second));
                CellKind::Decimal { precision, scale, missing: missing(scale) }
            }
            "money" => CellKind::Money { bytes: 8, missing: missing(4) },
            "smallmoney" => CellKind::Money { bytes: 4, missing: missing(4) },
            "date" => CellKind::Date,
            "time" => CellKind::Time(digits(first)),
            "datetime2" => CellKind::DateTime2(digits(first)),
            "datetimeoffset" => CellKind::Offset(digits(first)),
            "datetime" => CellKind::DateTime,
            "smalldatetime" => CellKind::SmallDateTime,
            "nchar" | "nvarchar" | "ntext" | "xml" | "json" => {
                CellKind::Text(TextLimit { most: first, page: None, counts_bytes: false })
            }
            "char" | "varchar" | "text" => match column.type_number {
                0 => CellKind::Text(TextLimit { most: first, page: None, counts_bytes: false }),
                UTF8 => CellKind::Text(TextLimit { most: first, page: None, counts_bytes: true }),
                // The encodings of Big5 differ in what they have.
                page => match encoding_of(page).filter(|_| page != BIG5) {
                    Some(encoding) => CellKind::Text(TextLimit {
                        most: first,
                        page: Some(encoding),
                        counts_bytes: true,
                    }),
                    None => {
                        return unwritten(&format!(
                            "its code page {page} is not known, and characters that it lacks would be lost (nvarchar has \
                             all)"
                        ));
                    }
                },
            },
            "binary" => CellKind::Bytes { most: first, exactly: true },
            "varbinary" | "image" => CellKind::Bytes { most: first, exactly: false },
            "uniqueidentifier" => CellKind::Guid,
            _ => return unwritten("nothing is loaded into such columns"),
        })
    }

    /// UTF-16 units with which the type of a text is declared; `None` if it has no limit.
    fn units(limit: TextLimit) -> Option<u32> {
        limit.most.filter(|most| *most <= UNITS_MAX)
    }

    /// The type of a cell in SQL.
    pub fn declaration(self) -> String {
        match self {
            CellKind::Bit => "bit".to_owned(),
            CellKind::Int(1) => "tinyint".to_owned(),
            CellKind::Int(2) => "smallint".to_owned(),
            CellKind::Int(4) => "int".to_owned(),
            CellKind::Int(_) => "bigint".to_owned(),
            CellKind::Float(4) => "real".to_owned(),
            CellKind::Float(_) => "float".to_owned(),
            CellKind::Decimal { precision, scale, .. } => format!("decimal({precision},{scale})"),
            CellKind::Money { bytes: 4, .. } => "smallmoney".to_owned(),
            CellKind::Money { .. } => "money".to_owned(),
            CellKind::Date => "date".to_owned(),
            CellKind::Time(scale) => format!("time({scale})"),
            CellKind::DateTime2(scale) => format!("datetime2({scale})"),
            CellKind::Offset(scale) => format!("datetimeoffset({scale})"),
            CellKind::DateTime => "datetime".to_owned(),
            CellKind::SmallDateTime => "smalldatetime".to_owned(),
            CellKind::Text(limit) => match Self::units(limit) {
                Some(units) => format!("nvarchar({units})"),
                None => "nvarchar(max)".to_owned(),
            },
            CellKind::Bytes { most: Some(most), exactly: true } => format!("binary({most})"),
            CellKind::Bytes { most: Some(most), .. } => format!("varbinary({most})"),
            CellKind::Bytes { .. } => "varbinary(max)".to_owned(),
            CellKind::Guid => "uniqueidentifier".to_owned(),
        }
    }

    /// Appends the type of a cell as the protocol has it.
    pub fn put_type(self, collation: [u8; 5], out: &mut Vec<u8>) {
        match self {
            CellKind::Bit => out.extend_from_slice(&[kind::BITN, 1]),
            CellKind::Int(bytes) => out.extend_from_slice(&[kind::INTN, bytes]),
            CellKind::Float(bytes) => out.extend_from_slice(&[kind::FLOATN, bytes]),
            CellKind::Decimal { precision, scale, .. } => {
                let bytes = decimal_bytes(precision);
                out.extend_from_slice(&[kind::DECIMALN, bytes + 1, precision, scale]);
            }
            CellKind::Money { bytes, .. } => out.extend_from_slice(&[kind::MONEYN, bytes]),
            CellKind::Date => out.push(kind::DATE),
            CellKind::Time(scale) => out.extend_from_slice(&[kind::TIME, scale]),
            CellKind::DateTime2(scale) => out.extend_from_slice(&[kind::DATETIME2, scale]),
            CellKind::Offset(scale) => out.extend_from_slice(&[kind::OFFSET, scale]),
            CellKind::DateTime => out.extend_from_slice(&[kind::DATETIMEN, 8]),
            CellKind::SmallDateTime => out.extend_from_slice(&[kind::DATETIMEN, 4]),
            CellKind::Text(limit) => {
                out.push(kind::NVARCHAR);
                let bytes = Self::units(limit).map_or(u16::MAX, |units| (2 * units) as u16);
                out.extend_from_slice(&bytes.to_le_bytes());
                out.extend_from_slice(&collation);
            }
            CellKind::Bytes { most, exactly } => {
                out.push(if exactly && most.is_some() { kind::BINARY } else { kind::VARBINARY });
                let bytes = most.map_or(u16::MAX, |most| most as u16);
                out.extend_from_slice(&bytes.to_le_bytes());
            }
            CellKind::Guid => out.extend_from_slice(&[kind::GUID, 16]),
        }
    }

    /// How the length of a cell is told.
    fn framing(self) -> Framing {
        match self {
            CellKind::Text(limit) if Self::units(limit).is_some() => Framing::Short,
            CellKind::Bytes { most: Some(_), .. } => Framing::Short,
            CellKind::Text(_) | CellKind::Bytes { .. } => Framing::Parts,
            _ => Framing::Byte,
        }
    }

    /// Bytes of a cell with its length, at the beginning of these.
    pub fn cell_bytes(self, bytes: &[u8]) -> Option<usize> {
        match self.framing() {
            Framing::Byte => bytes.first().map(|length| 1 + usize::from(*length)),
            Framing::Short => match u16::from_le_bytes(*bytes.first_chunk()?) {
                u16::MAX => Some(2),
                length => Some(2 + usize::from(length)),
            },
            Framing::Parts => {
                if *bytes.first_chunk::<8>()? == [0xff; 8] {
                    return Some(8);
                }
                let mut at = 8;
                loop {
                    let part = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize;
                    at += 4 + part;
                    if part == 0 {
                        return Some(at);
                    }
                }
            }
        }
    }

    fn put_int(self, value: i64, out: &mut Vec<u8>) {
        match self {
            CellKind::Bit => out.extend_from_slice(&[1, u8::from(value != 0)]),
            CellKind::Int(1) => out.extend_from_slice(&[1, value as u8]),
            CellKind::Int(2) => put_fixed::<3>(&(value as i16).to_le_bytes(), out),
            CellKind::Int(4) => put_fixed::<5>(&(value as i32).to_le_bytes(), out),
            CellKind::Int(_) => put_fixed::<9>(&value.to_le_bytes(), out),
            CellKind::Float(4) => put_fixed::<5>(&f32_from_ordinal(value).to_le_bytes(), out),
            CellKind::Float(_) => put_fixed::<9>(&f64_from_ordinal(value).to_le_bytes(), out),
            CellKind::Decimal { .. } | CellKind::Money { .. } => {
                self.put_wide(i128::from(value), out);
            }
            CellKind::Date => {
                let days = ((value + EPOCH_DAYS) as u32).to_le_bytes();
                put_fixed::<4>(&days[..3], out);
            }
            CellKind::Time(scale) => {
                let bytes = time_bytes(scale);
                out.push(bytes as u8);
                put_time(value, scale, out);
            }
            CellKind::DateTime2(scale) | CellKind::Offset(scale) => {
                let offset: &[u8] = if matches!(self, CellKind::Offset(_)) { &[0, 0] } else { &[] };
                let (days, clock) = (value.div_euclid(DAY_MICROS), value.rem_euclid(DAY_MICROS));
                out.push((time_bytes(scale) + 3 + offset.len()) as u8);
                put_time(clock, scale, out);
                out.extend_from_slice(&((days + EPOCH_DAYS) as u32).to_le_bytes()[..3]);
                out.extend_from_slice(offset);
            }
            CellKind::DateTime => {
                let (days, clock) = (value.div_euclid(DAY_MICROS), value.rem_euclid(DAY_MICROS));
                out.push(8);
                out.extend_from_slice(&((days + DATETIME_EPOCH) as i32).to_le_bytes());
                out.extend_from_slice(&(ticks_of(clock) as u32).to_le_bytes());
            }
            CellKind::SmallDateTime => {
                let (days, clock) = (value.div_euclid(DAY_MICROS), value.rem_euclid(DAY_MICROS));
                out.push(4);
                out.extend_from_slice(&((days + DATETIME_EPOCH) as u16).to_le_bytes());
                out.extend_from_slice(&((clock / 60_000_000) as u16).to_le_bytes());
            }
            CellKind::Text(_) | CellKind::Bytes { .. } | CellKind::Guid => {
                out.extend_from_slice(self.null_cell());
            }
        }
    }

    fn put_wide(self, value: i128, out: &mut Vec<u8>) {
        match self {
            CellKind::Decimal { precision, missing, .. } => {
                let scaled = value.unsigned_abs().saturating_mul(10_u128.saturating_pow(missing));
                let bytes = usize::from(decimal_bytes(precision));
                out.extend_from_slice(&[bytes as u8 + 1, u8::from(value >= 0)]);
                out.extend_from_slice(&scaled.to_le_bytes()[..bytes]);
            }
            CellKind::Money { bytes, missing } => {
                let scaled = (value.saturating_mul(10_i128.saturating_pow(missing))) as i64;
                out.push(bytes);
                match bytes {
                    4 => out.extend_from_slice(&(scaled as i32).to_le_bytes()),
                    _ => {
                        out.extend_from_slice(&((scaled >> 32) as i32).to_le_bytes());
                        out.extend_from_slice(&(scaled as u32).to_le_bytes());
                    }
                }
            }
            CellKind::Guid => {
                // The top bit is flipped so that numbers are in the order of the identifiers.
                let bytes = (value as u128 ^ (1 << 127)).to_be_bytes();
                let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
                out.extend_from_slice(&[16, d, c, b, a, f, e, h, g]);
                out.extend_from_slice(&rest);
            }
            _ => out.extend_from_slice(self.null_cell()),
        }
    }

    fn put_bytes(self, value: &[u8], out: &mut Vec<u8>) {
        match (self, self.framing()) {
            (CellKind::Text(_), Framing::Short) => {
                let start = out.len();
                out.extend_from_slice(&[0, 0]);
                put_utf16(value, out);
                let length = ((out.len() - start - 2) as u16).to_le_bytes();
                out[start..start + 2].copy_from_slice(&length);
            }
            (CellKind::Text(_), _) => {
                let mut units = Vec::with_capacity(value.len() * 2);
                put_utf16(value, &mut units);
                put_plp(&units, out);
            }
            (CellKind::Bytes { .. }, Framing::Short) => {
                out.extend_from_slice(&(value.len() as u16).to_le_bytes());
                out.extend_from_slice(value);
            }
            (CellKind::Bytes { .. }, _) => put_plp(value, out),
            _ => out.extend_from_slice(self.null_cell()),
        }
    }

    fn null_cell(self) -> &'static [u8] {
        match self.framing() {
            Framing::Byte => &[0],
            Framing::Short => &[0xff; 2],
            Framing::Parts => &[0xff; 8],
        }
    }

    /// Whether there are values of a type that a column does not hold. Columns that hold them all are not asked for each.
    fn may_refuse(self, of: DataType) -> bool {
        match (self, of) {
            (CellKind::Bit | CellKind::Int(2..) | CellKind::Date | CellKind::Guid, _) => false,
            (CellKind::Time(6..) | CellKind::DateTime2(6..), _) => false,
            (
                CellKind::Decimal { precision, missing, .. },
                DataType::Decimal { precision: own, .. },
            ) => u32::from(own) + missing > u32::from(precision),
            (CellKind::Text(TextLimit { most: None, page: None, .. }), _) => false,
            (CellKind::Text(limit), DataType::Char(own) | DataType::Varchar(Some(own))) => {
                // A character has at most two units of UTF-16, and four bytes.
                let each = if limit.counts_bytes { 4 } else { 2 };
                limit.page.is_some()
                    || limit.most.is_some_and(|most| own.saturating_mul(each) > most)
            }
            (CellKind::Bytes { most: None, .. }, _) => false,
            (CellKind::Bytes { most: Some(most), exactly: false }, DataType::Binary(Some(own))) => {
                own > most
            }
            _ => true,
        }
    }

    /// Why a number, a day or a time is not held by the column.
    fn why_no_number(self, value: i128) -> Option<&'static str> {
        let day = || (value as i64).div_euclid(DAY_MICROS);
        let clock = || (value as i64).rem_euclid(DAY_MICROS);
        match self {
            CellKind::Int(1) if !(0..=255).contains(&value) => Some("tinyint holds 0 to 255"),
            CellKind::Float(4) if !f32_from_ordinal(value as i64).is_finite() => {
                Some("SQL Server has no NaN and no infinity")
            }
            CellKind::Float(8) if !f64_from_ordinal(value as i64).is_finite() => {
                Some("SQL Server has no NaN and no infinity")
            }
            CellKind::Decimal { precision, missing, .. } => {
                let scaled = value.unsigned_abs().checked_mul(10_u128.checked_pow(missing)?);
                let most = 10_u128.pow(u32::from(precision.min(38)));
                scaled.is_none_or(|scaled| scaled >= most).then_some("it has too many digits")
            }
            CellKind::Money { bytes, missing } => {
                let scaled = value.checked_mul(10_i128.checked_pow(missing)?);
                let fits = scaled.is_some_and(|scaled| match bytes {
                    4 => i32::try_from(scaled).is_ok(),
                    _ => i64::try_from(scaled).is_ok(),
                });
                (!fits).then_some("it has too many digits")
            }
            CellKind::DateTime2(_) | CellKind::Offset(_) if !DATE_DAYS.contains(&day()) => {
                Some("SQL Server has the years 0001 to 9999, in UTC")
            }
            CellKind::Time(scale) | CellKind::DateTime2(scale) | CellKind::Offset(scale) => {
                let step = 10_i64.pow(6_u32.saturating_sub(u32::from(scale)));
                (clock() % step != 0).then_some("it has more digits of a second than the column")
            }
            CellKind::DateTime if day() < DATETIME_FIRST => Some("datetime begins in 1753"),
            CellKind::DateTime if day() > *DATE_DAYS.end() => Some("datetime ends in 9999"),
            CellKind::DateTime => {
                let ticks = ticks_of(clock());
                let is_exact = ticks < DAY_TICKS && micros_of_ticks(ticks) == clock();
                (!is_exact).then_some("datetime has steps of 0, 3 and 7 milliseconds")
            }
            CellKind::SmallDateTime => {
                let in_range = (-DATETIME_EPOCH..=SMALLDATETIME_LAST).contains(&day());
                let is_exact = clock() % 60_000_000 == 0;
                (!in_range || !is_exact)
                    .then_some("smalldatetime has minutes of the years 1900 to 2079")
            }
            _ => None,
        }
    }

    fn why_no_bytes(self, value: &[u8]) -> Option<&'static str> {
        match self {
            CellKind::Text(TextLimit { most, .. }) if value.is_ascii() => most
                .filter(|most| value.len() > *most as usize)
                .map(|_| "it is longer than the column"),
            CellKind::Text(TextLimit { most, page, counts_bytes }) => {
                let Ok(text) = std::str::from_utf8(value) else { return Some("it is not UTF-8") };
                if let Some(page) = page {
                    let (bytes, _, lacks) = page.encode(text);
                    // Some characters share bytes with others, and would come back as those.
                    let back = page.decode_without_bom_handling_and_without_replacement(&bytes);
                    if lacks || back.is_none_or(|back| back != text) {
                        return Some(
                            "the code page of the column does not have all its characters",
                        );
                    }
                    return most
                        .filter(|most| bytes.len() > *most as usize)
                        .map(|_| "it is longer than the column");
                }
                let most = most? as usize;
                let length = match counts_bytes || text.len() <= most {
                    true => text.len(),
                    false => text.encode_utf16().count(),
                };
                (length > most).then_some("it is longer than the column")
            }
            CellKind::Bytes { most: Some(most), exactly } => {
                if value.len() > most as usize {
                    return Some("it is longer than the column");
                }
                (exactly && value.len() < most as usize)
                    .then_some("it is shorter than the column, which would be filled with zeros")
            }
            _ => None,
        }
    }
}

enum Framing {
    Byte,
    Short,
    Parts,
}

/// Three-hundredths of a second of a day.
const DAY_TICKS: i64 = 86_400 * 300;

/// The nearest three-hundredth of a second.
fn ticks_of(micros: i64) -> i64 {
    (micros * 3 + 5_000) / 10_000
}

/// What a three-hundredth stands for: the server tells milliseconds.
pub fn micros_of_ticks(ticks: i64) -> i64 {
    (ticks * 10 + 1) / 3 * 1000
}

/// Bytes of an exact number of so many digits, beside its sign.
fn decimal_bytes(precision: u8) -> u8 {
    match precision {
        0..=9 => 4,
        10..=19 => 8,
        20..=28 => 12,
        _ => 16,
    }
}

/// Bytes of a time with so many digits of a second.
pub fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    }
}

fn put_time(micros: i64, scale: u8, out: &mut Vec<u8>) {
    let units = match scale {
        7.. => micros * 10,
        _ => micros / 10_i64.pow(6 - u32::from(scale)),
    };
    out.extend_from_slice(&units.to_le_bytes()[..time_bytes(scale)]);
}

/// Appends a cell of `N - 1` bytes with its length, at once.
#[inline]
fn put_fixed<const N: usize>(bytes: &[u8], out: &mut Vec<u8>) {
    let mut cell = [0; N];
    cell[0] = (N - 1) as u8;
    cell[1..].copy_from_slice(bytes);
    out.extend_from_slice(&cell);
}

/// The cells of a column, and what they are of before.
#[derive(Debug, Clone)]
pub struct ColumnCells {
    /// How values go.
    pub kind: CellKind,
    /// The type of the values.
    pub data_type: DataType,
}

impl ColumnCells {
    /// A list goes as JSON.
    fn as_sent<'a>(&self, value: &'a [u8]) -> Cow<'a, [u8]> {
        let DataType::List(element) = self.data_type else { return Cow::Borrowed(value) };
        let mut text = Vec::new();
        write_list(value, element, &mut text);
        Cow::Owned(text)
    }
}

impl CellForm for ColumnCells {
    #[inline]
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>) {
        match values {
            Values::Int(values) => self.kind.put_int(values[row], out),
            Values::Wide(values) => self.kind.put_wide(values[row], out),
            Values::Bytes(values) => self.kind.put_bytes(&self.as_sent(values.get(row)), out),
        }
    }

    fn null(&self) -> Option<&'static [u8]> {
        Some(self.kind.null_cell())
    }

    fn may_refuse(&self) -> bool {
        self.kind.may_refuse(self.data_type)
    }

    fn why_not(&self, values: &Values, row: usize) -> Option<(&'static str, Vec<u8>)> {
        let mut value = Vec::new();
        let why = match values {
            Values::Int(values) => {
                let why = self.kind.why_no_number(i128::from(values[row]))?;
                write_int(values[row], self.data_type, &mut value);
                why
            }
            Values::Wide(values) => {
                let why = self.kind.why_no_number(values[row])?;
                write_wide(values[row], self.data_type, &mut value);
                why
            }
            Values::Bytes(values) => {
                let sent = self.as_sent(values.get(row));
                let why = self.kind.why_no_bytes(&sent)?;
                value.extend_from_slice(&sent);
                why
            }
        };
        Some((why, value))
    }
}

/// A day as text.
pub fn write_day(days: i64) -> String {
    let (year, month, day) = date_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests;
