//! Values as columns have them.

use std::collections::VecDeque;

use super::types::{SqlError, Type, Val, Value, error, time_bytes, wide};

/// The bytes of a value in a column.
pub fn store(value: &Val, of: &Type, column: &str) -> Result<Value, SqlError> {
    let too_long = || {
        error(
            2628,
            format!(
                "String or binary data would be truncated in table 'd.dbo.t', column '{column}'. Truncated value: '...'."
            ),
        )
    };
    let text = match value {
        Val::Null => return Ok(None),
        Val::Raw(own, bytes)
            if own.kind == of.kind
                && (own.size == of.size || is_time(of))
                && own.scale == of.scale =>
        {
            return Ok(Some(bytes.clone()));
        }
        Val::Raw(own, bytes) if own.kind == of.kind && is_time(of) => {
            return Ok(Some(rescaled(own, bytes, of)));
        }
        // A number as it is written.
        Val::Raw(own, bytes) if matches!(own.kind, 0x3b | 0x3e | 0x6d) && of.kind == 0x6d => {
            let number = match <[u8; 8]>::try_from(bytes.as_slice()) {
                Ok(bytes) => f64::from_le_bytes(bytes),
                Err(_) => {
                    f64::from(f32::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default()))
                }
            };
            return Ok(Some(match of.size {
                4 => (number as f32).to_le_bytes().to_vec(),
                _ => number.to_le_bytes().to_vec(),
            }));
        }
        Val::Raw(own, _) => {
            return error(
                206,
                format!("Operand type clash: {} is incompatible with {}", own.name, of.name),
            );
        }
        Val::Int(number) => number.to_string(),
        Val::Number(text) | Val::Text(text) => text.clone(),
        Val::Bytes(bytes) => {
            if !matches!(of.kind, 0xa5 | 0xad) {
                return error(
                    206,
                    format!("Operand type clash: varbinary is incompatible with {}", of.name),
                );
            }
            let mut bytes = bytes.clone();
            if !of.is_max() && bytes.len() > of.size as usize {
                return too_long();
            }
            if of.kind == 0xad {
                bytes.resize(of.size as usize, 0);
            }
            return Ok(Some(bytes));
        }
    };
    let clash = || error(8114, format!("Error converting data type nvarchar to {}.", of.name));
    let bytes = match of.kind {
        0x26 | 0x68 => {
            let Some(number) = Val::Text(text).int()? else { return Ok(None) };
            let fits = match (of.kind, of.size) {
                (0x68, _) => true,
                (_, 1) => u8::try_from(number).is_ok(),
                (_, 2) => i16::try_from(number).is_ok(),
                (_, 4) => i32::try_from(number).is_ok(),
                _ => true,
            };
            if !fits {
                return error(
                    220,
                    format!(
                        "Arithmetic overflow error for data type {}, value = {number}.",
                        of.name
                    ),
                );
            }
            let number = if of.kind == 0x68 { i64::from(number != 0) } else { number };
            number.to_le_bytes()[..of.size as usize].to_vec()
        }
        0x6a => {
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (0, digits),
                None => (1, text.as_str()),
            };
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let fraction = format!("{fraction:0<width$}", width = usize::from(of.scale));
            let fraction = &fraction[..usize::from(of.scale)];
            let Ok(number) = format!("{whole}{fraction}").parse::<u128>() else { return clash() };
            if number >= 10_u128.pow(u32::from(of.precision)) {
                return error(
                    8115,
                    format!(
                        "Arithmetic overflow error converting numeric to data type {}.",
                        of.name
                    ),
                );
            }
            [&[sign], &number.to_le_bytes()[..of.size as usize - 1]].concat()
        }
        0x6d => {
            let Ok(number) = text.parse::<f64>() else { return clash() };
            if of.size == 4 {
                (number as f32).to_le_bytes().to_vec()
            } else {
                number.to_le_bytes().to_vec()
            }
        }
        0x6e => {
            let decimal = Type { precision: 19, scale: 4, ..Type::of("money", 0x6a, 17) };
            let Some(decimal) = store(&Val::Number(text), &decimal, column)? else {
                return Ok(None);
            };
            let mut all = [0; 16];
            all.copy_from_slice(&decimal[1..]);
            let number = i128::from_le_bytes(all) * if decimal[0] == 0 { -1 } else { 1 };
            if of.size == 4 {
                (number as i32).to_le_bytes().to_vec()
            } else {
                [((number >> 32) as i32).to_le_bytes(), (number as i32).to_le_bytes()].concat()
            }
        }
        0xe7 | 0xef => {
            let mut bytes = wide(&text);
            if !of.is_max() && bytes.len() > of.size as usize {
                return too_long();
            }
            while of.kind == 0xef && bytes.len() < of.size as usize {
                bytes.extend_from_slice(&[b' ', 0]);
            }
            bytes
        }
        0xa7 | 0xaf => {
            // What a code page lacks becomes a question mark, and nobody says so.
            let mut bytes = match of.utf8 {
                true => text.into_bytes(),
                false => {
                    let byte = |c: char| {
                        let mut buffer = [0; 4];
                        let (bytes, _, lacks) =
                            encoding_rs::WINDOWS_1252.encode(c.encode_utf8(&mut buffer));
                        if lacks { b'?' } else { bytes[0] }
                    };
                    text.chars().map(byte).collect()
                }
            };
            if !of.is_max() && bytes.len() > of.size as usize {
                return too_long();
            }
            while of.kind == 0xaf && bytes.len() < of.size as usize {
                bytes.push(b' ');
            }
            bytes
        }
        0x24 => {
            let digits: String = text.chars().filter(|c| *c != '-').collect();
            let Ok(number) = u128::from_str_radix(&digits, 16) else { return clash() };
            let mut bytes = number.to_be_bytes();
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
            bytes.to_vec()
        }
        0x28..=0x2b | 0x6f => match moment(&text, of) {
            Some(bytes) => bytes,
            None => {
                return error(
                    241,
                    "Conversion failed when converting date and/or time from character string.",
                );
            }
        },
        _ => return clash(),
    };
    Ok(Some(bytes))
}

fn is_time(of: &Type) -> bool {
    (0x28..=0x2b).contains(&of.kind)
}

/// A time with another number of digits of a second.
fn rescaled(own: &Type, bytes: &[u8], of: &Type) -> Vec<u8> {
    let length = time_bytes(own.scale) as usize;
    let mut all = [0; 8];
    all[..length].copy_from_slice(&bytes[..length]);
    let units = i64::from_le_bytes(all) * 10_i64.pow(7 - u32::from(own.scale));
    let units = units / 10_i64.pow(7 - u32::from(of.scale));
    [&units.to_le_bytes()[..time_bytes(of.scale) as usize], &bytes[length..]].concat()
}

/// The bytes of a day, a time or both, as they are written by the standard.
fn moment(text: &str, of: &Type) -> Option<Vec<u8>> {
    let mut words: VecDeque<&str> = text.split([' ', 'T']).collect();
    let days = match of.kind {
        0x29 => 0,
        _ => {
            let mut parts = words.pop_front()?.split('-').map(|part| part.parse::<i64>().ok());
            let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
            let before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
            let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
            let months = [
                0,
                31,
                59 + leap,
                90 + leap,
                120 + leap,
                151 + leap,
                181 + leap,
                212 + leap,
                243 + leap,
                273 + leap,
                304 + leap,
                334 + leap,
            ];
            before(year - 1) + months.get(month as usize - 1)? + day - 1
        }
    };
    let clock = words.pop_front().unwrap_or("00:00:00");
    let mut parts = clock.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (seconds, fraction) =
        parts.next().unwrap_or("0").split_once('.').unwrap_or((clock.rsplit(':').next()?, ""));
    let seconds: i64 = seconds.parse().ok()?;
    let fraction: i64 = format!("{fraction:0<7}").get(..7)?.parse().ok()?;
    let units = ((hours * 60 + minutes) * 60 + seconds) * 10_000_000 + fraction;
    if of.kind == 0x6f {
        let days = days - 693_595;
        return Some(match of.size {
            4 => {
                [(days as u16).to_le_bytes(), ((units / 600_000_000) as u16).to_le_bytes()].concat()
            }
            _ => [
                (days as i32).to_le_bytes(),
                ((units * 3 + 50_000) as i64 / 100_000).to_le_bytes()[..4].try_into().ok()?,
            ]
            .concat(),
        });
    }
    let units = units / 10_i64.pow(7 - u32::from(of.scale.min(7)));
    let mut bytes = Vec::new();
    if of.kind != 0x28 {
        bytes.extend_from_slice(&units.to_le_bytes()[..time_bytes(of.scale) as usize]);
    }
    if of.kind != 0x29 {
        bytes.extend_from_slice(&days.to_le_bytes()[..3]);
    }
    if of.kind == 0x2b {
        bytes.extend_from_slice(&[0, 0]);
    }
    Some(bytes)
}
