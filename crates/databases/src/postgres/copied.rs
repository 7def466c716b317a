//! What COPY TO in binary sends, to columns.
//!
//! ```text
//!   PGCOPY\n\xff\r\n\0 | flags | length of more | row: count of fields (2 bytes), each its length (4 bytes; -1 is NULL) and bytes | -1
//! ```
//!
//! Bytes of a server are not trusted: what does not fit is `Corrupt`.

use std::sync::Arc;

use coload_load::{TypedBlock, TypedColumn};
use coload_types::calendar::{DATE_DAYS, DAY_MICROS, date_from_days};
use coload_types::{Error, Result};

use crate::read::{ColumnBuilder, ReadAs};
use coload_types::postgres_numeric::{Number, read_numeric};

/// What the answer begins with.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
/// The same in microseconds.
const EPOCH_MICROS: i64 = EPOCH_DAYS * 86_400_000_000;

/// Rows as they came.
#[derive(Debug)]
pub struct CopiedRows {
    bytes: Vec<u8>,
    kinds: Arc<[ReadAs]>,
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("PostgreSQL: COPY in binary that {what}"))
}

impl CopiedRows {
    /// Rows of an answer; the first block begins with its head, the last one ends with its end.
    ///
    /// # Errors
    /// `Corrupt` when the head or the end is none.
    pub fn new(
        mut bytes: Vec<u8>,
        is_first: bool,
        is_last: bool,
        kinds: Arc<[ReadAs]>,
    ) -> Result<Self> {
        if is_first {
            let head = head_bytes(&bytes).ok_or_else(|| corrupt("has another head"))?;
            bytes.drain(..head);
        }
        if is_last {
            let end = bytes.len().checked_sub(2).filter(|at| bytes[*at..] == [0xff, 0xff]);
            bytes.truncate(end.ok_or_else(|| corrupt("has no end"))?);
        }
        Ok(CopiedRows { bytes, kinds })
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Bytes of the head.
fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(SIGNATURE)?;
    let (flags, rest) = rest.split_first_chunk::<4>()?;
    let (more, rest) = rest.split_first_chunk::<4>()?;
    let more = usize::try_from(u32::from_be_bytes(*more)).ok()?;
    (*flags == [0; 4] && more <= rest.len()).then_some(SIGNATURE.len() + 8 + more)
}

/// Takes the first bytes.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (first, behind) =
        rest.split_at_checked(count).ok_or_else(|| corrupt("ends within a row"))?;
    *rest = behind;
    Ok(first)
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (first, behind) =
        rest.split_first_chunk::<N>().ok_or_else(|| corrupt("ends within a row"))?;
    *rest = behind;
    Ok(*first)
}

impl TypedBlock for CopiedRows {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn columns(&self, wanted: usize) -> Result<(usize, Vec<TypedColumn<'_>>)> {
        let mut columns: Vec<ColumnBuilder> =
            self.kinds.iter().map(|kind| ColumnBuilder::new(*kind)).collect();
        let (mut rest, mut rows) = (&self.bytes[..], 0);
        while !rest.is_empty() && rows < wanted {
            let count = i16::from_be_bytes(take_array(&mut rest)?);
            if usize::try_from(count) != Ok(columns.len()) {
                return Err(corrupt("has rows of another length"));
            }
            for column in &mut columns {
                match u32::from_be_bytes(take_array(&mut rest)?) {
                    u32::MAX => column.push_null(),
                    length => push(column, take(&mut rest, length as usize)?)?,
                }
            }
            rows += 1;
        }
        Ok((rows, columns.into_iter().map(ColumnBuilder::finish).collect()))
    }
}

/// Adds a value.
fn push(column: &mut ColumnBuilder, bytes: &[u8]) -> Result<()> {
    let kind = column.kind();
    let wrong = || corrupt(&format!("has {} bytes for a {kind:?}", bytes.len()));
    let four = || <[u8; 4]>::try_from(bytes).map_err(|_| wrong());
    let eight = || <[u8; 8]>::try_from(bytes).map_err(|_| wrong());
    match kind {
        ReadAs::Bool => match bytes {
            [value] => column.push_bool(*value != 0),
            _ => return Err(wrong()),
        },
        ReadAs::Int(2) | ReadAs::Unsigned(2) => {
            let mut value = <[u8; 2]>::try_from(bytes).map_err(|_| wrong())?;
            value.reverse();
            column.push_fixed(value);
        }
        ReadAs::Int(4) | ReadAs::Unsigned(4) | ReadAs::Float(4) => {
            let mut value = four()?;
            value.reverse();
            column.push_fixed(value);
        }
        ReadAs::Int(_) | ReadAs::Unsigned(_) | ReadAs::Float(_) => {
            let mut value = eight()?;
            value.reverse();
            column.push_fixed(value);
        }
        ReadAs::Date => match i32::from_be_bytes(four()?) {
            i32::MAX => column.push_told("infinity"),
            i32::MIN => column.push_told("-infinity"),
            days => match i64::from(days) + EPOCH_DAYS {
                days if DATE_DAYS.contains(&days) => column.push_fixed((days as i32).to_le_bytes()),
                days => column.push_told(&told_day(days, "")),
            },
        },
        ReadAs::Time => column.push_fixed(i64::from_be_bytes(eight()?).to_le_bytes()),
        ReadAs::Timestamp | ReadAs::Instant => match i64::from_be_bytes(eight()?) {
            i64::MAX => column.push_told("infinity"),
            i64::MIN => column.push_told("-infinity"),
            micros => {
                let micros = i128::from(micros) + i128::from(EPOCH_MICROS);
                let day = micros.div_euclid(i128::from(DAY_MICROS)) as i64;
                match DATE_DAYS.contains(&day) {
                    true => column.push_fixed((micros as i64).to_le_bytes()),
                    false => {
                        let clock = micros.rem_euclid(i128::from(DAY_MICROS)) as i64;
                        column.push_told(&told_day(day, &told_clock(clock, kind)));
                    }
                }
            }
        },
        ReadAs::Decimal(_, scale) => match read_numeric(bytes, scale) {
            Some(Number::Exact(value)) => column.push_fixed(value.to_le_bytes()),
            Some(Number::Told(text)) => column.push_told(&text),
            None => return Err(corrupt("has a numeric that is none")),
        },
        ReadAs::Uuid => column.push_fixed(<[u8; 16]>::try_from(bytes).map_err(|_| wrong())?),
        ReadAs::Text | ReadAs::Bytes => column.push_bytes(bytes),
    }
    Ok(())
}

/// A day that no column holds, as PostgreSQL writes it, and what follows it.
fn told_day(days: i64, clock: &str) -> String {
    let (year, month, day) = date_from_days(days);
    match year {
        1.. => format!("{year:04}-{month:02}-{day:02}{clock}"),
        _ => format!("{:04}-{month:02}-{day:02}{clock} BC", 1 - year),
    }
}

/// The clock of such a day.
fn told_clock(micros: i64, kind: ReadAs) -> String {
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{rest:06}").trim_end_matches('0').to_owned(),
    };
    let zone = if kind == ReadAs::Instant { "+00" } else { "" };
    format!(" {hours:02}:{minutes:02}:{seconds:02}{fraction}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Arc<[ReadAs]> {
        [ReadAs::Int(4), ReadAs::Text, ReadAs::Date, ReadAs::Decimal(10, 2)].into()
    }

    fn answer() -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0; 8]);
        bytes.extend([0, 4, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff]);
        // 12.5: one group before the point, one behind it.
        bytes.extend([0, 0, 0, 12, 0, 2, 0, 0, 0, 0, 0, 2, 0, 12, 0x13, 0x88]);
        bytes.extend([0xff, 0xff]);
        bytes
    }

    #[test]
    fn rows_are_read_whole() {
        let rows = CopiedRows::new(answer(), true, true, kinds()).expect("rows");
        let (count, columns) = rows.columns(usize::MAX).expect("columns");
        assert_eq!((count, columns.len()), (1, 4));
        assert_eq!(columns[0].get(0), Some(coload_arrow::Scalar::Number(7, 0)));
        assert_eq!(columns[2].get(0), None);
        assert_eq!(columns[3].get(0), Some(coload_arrow::Scalar::Number(1250, 2)));
    }

    #[test]
    fn days_of_no_column_are_told_as_the_server_writes_them() {
        let day = |year: i64| {
            365 * (year - 1970) + (year - 1969).div_euclid(4) - (year - 1901).div_euclid(100)
                + (year - 1601).div_euclid(400)
        };
        assert_eq!(told_day(day(10_000), ""), "10000-01-01");
        assert_eq!(
            told_day(day(0), &told_clock(3_600_000_001, ReadAs::Instant)),
            "0001-01-01 01:00:00.000001+00 BC"
        );
        assert_eq!(told_day(day(-43), &told_clock(0, ReadAs::Timestamp)), "0044-01-01 00:00:00 BC");
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let whole = answer();
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // Whatever comes of it.
                if let Ok(rows) = CopiedRows::new(bytes, true, true, kinds()) {
                    let _ = rows.columns(usize::MAX).map(|(rows, columns)| (rows, columns.len()));
                }
                let cut = whole[..at].to_vec();
                if let Ok(rows) = CopiedRows::new(cut, true, false, kinds()) {
                    let is_whole = rows.columns(usize::MAX).is_ok();
                    assert!(
                        !is_whole || at == SIGNATURE.len() + 8 || at >= whole.len() - 2,
                        "{at}"
                    );
                }
            }
        }
    }
}
