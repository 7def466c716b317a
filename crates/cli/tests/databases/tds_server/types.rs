//! Types, and the bytes of values as the protocol has them.

/// The bytes of a value; `None` is NULL.
pub type Value = Option<Vec<u8>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// As the catalogue names it.
    pub name: String,
    pub kind: u8,
    /// Bytes of a value at most; 0xffff for `max`.
    pub size: u32,
    pub precision: u8,
    pub scale: u8,
    pub utf8: bool,
}

#[derive(Debug)]
pub struct SqlError {
    pub number: i32,
    pub text: String,
}

pub fn error<T>(number: i32, text: impl Into<String>) -> Result<T, SqlError> {
    Err(SqlError { number, text: text.into() })
}

impl Type {
    pub fn of(name: &str, kind: u8, size: u32) -> Self {
        Type { name: name.to_owned(), kind, size, precision: 0, scale: 0, utf8: false }
    }

    pub fn int() -> Self {
        Type::of("int", 0x26, 4)
    }

    pub fn bigint() -> Self {
        Type::of("bigint", 0x26, 8)
    }

    pub fn text() -> Self {
        Type::of("nvarchar", 0xe7, 8000)
    }

    /// A type as SQL has it: its name, and what stands in parentheses.
    pub fn declared(name: &str, numbers: &[u32], utf8: bool) -> Option<Self> {
        let first = numbers.first().copied();
        let second = numbers.get(1).copied().unwrap_or(0);
        let of = |kind, size| Type::of(name, kind, size);
        Some(match name {
            "bit" => of(0x68, 1),
            "tinyint" => of(0x26, 1),
            "smallint" => of(0x26, 2),
            "int" => of(0x26, 4),
            "bigint" => of(0x26, 8),
            "real" => of(0x6d, 4),
            "float" => of(0x6d, 8),
            "money" => of(0x6e, 8),
            "smallmoney" => of(0x6e, 4),
            "decimal" | "numeric" => {
                let precision = first.unwrap_or(18) as u8;
                let bytes = match precision {
                    0..=9 => 5,
                    10..=19 => 9,
                    20..=28 => 13,
                    _ => 17,
                };
                Type { precision, scale: second as u8, ..Type::of(name, 0x6a, bytes) }
            }
            "date" => of(0x28, 3),
            "time" => Type { scale: first.unwrap_or(7) as u8, ..of(0x29, 5) },
            "datetime2" => Type { scale: first.unwrap_or(7) as u8, ..of(0x2a, 8) },
            "datetimeoffset" => Type { scale: first.unwrap_or(7) as u8, ..of(0x2b, 10) },
            "datetime" => of(0x6f, 8),
            "smalldatetime" => of(0x6f, 4),
            "char" => Type { utf8, ..of(0xaf, first.unwrap_or(1)) },
            "varchar" => Type { utf8, ..of(0xa7, first.unwrap_or(1)) },
            "nchar" => of(0xef, first.unwrap_or(1) * 2),
            "nvarchar" | "sysname" => {
                of(0xe7, first.map_or(256, |n| if n >= 0xffff { n } else { n * 2 }))
            }
            "binary" => of(0xad, first.unwrap_or(1)),
            "varbinary" => of(0xa5, first.unwrap_or(1)),
            "uniqueidentifier" => of(0x24, 16),
            "xml" => Type::of(name, 0xe7, 0xffff),
            _ => return None,
        })
    }

    pub fn is_max(&self) -> bool {
        matches!(self.kind, 0xa5 | 0xa7 | 0xad | 0xaf | 0xe7 | 0xef) && self.size == 0xffff
    }

    pub fn is_wide_text(&self) -> bool {
        matches!(self.kind, 0xe7 | 0xef)
    }

    pub fn is_page_text(&self) -> bool {
        matches!(self.kind, 0xa7 | 0xaf)
    }

    fn collation(&self) -> [u8; 5] {
        match self.utf8 {
            true => [0x09, 0x04, 0x00, 0x04 | 0x20, 0],
            false => super::wire::COLLATION,
        }
    }

    /// Appends it as the protocol has it.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        match self.kind {
            0x28 => {}
            0x29..=0x2b => out.push(self.scale),
            0x6a | 0x6c => out.extend_from_slice(&[self.size as u8, self.precision, self.scale]),
            0xa5 | 0xad => out.extend_from_slice(&(self.size as u16).to_le_bytes()),
            0xa7 | 0xaf | 0xe7 | 0xef => {
                out.extend_from_slice(&(self.size as u16).to_le_bytes());
                out.extend_from_slice(&self.collation());
            }
            _ => out.push(self.size as u8),
        }
    }

    /// Reads one.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let kind = take(bytes, 1)?[0];
        let mut read = Type::of("", kind, 0);
        match kind {
            0x28 => read.size = 3,
            0x29..=0x2b => read.scale = take(bytes, 1)?[0],
            0x6a | 0x6c => {
                let told = take(bytes, 3)?;
                (read.size, read.precision, read.scale) = (u32::from(told[0]), told[1], told[2]);
            }
            0xa5 | 0xad => {
                read.size = u32::from(u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?))
            }
            0xa7 | 0xaf | 0xe7 | 0xef => {
                read.size = u32::from(u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?));
                take(bytes, 5)?;
            }
            0x24 | 0x26 | 0x68 | 0x6d | 0x6e | 0x6f => read.size = u32::from(take(bytes, 1)?[0]),
            // NTEXT, as some send statements.
            0x63 => {
                read.size = u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?);
                take(bytes, 5)?;
            }
            // Those of a fixed length.
            0x30 | 0x32 | 0x34 | 0x38 | 0x3b | 0x3d | 0x3e | 0x7f => {
                read.size = match kind {
                    0x30 | 0x32 => 1,
                    0x34 => 2,
                    0x38 | 0x3b => 4,
                    _ => 8,
                };
            }
            _ => return None,
        }
        read.name = match (kind, read.size) {
            (0x32 | 0x68, _) => "bit",
            (0x26 | 0x30 | 0x34 | 0x38 | 0x7f, 1) => "tinyint",
            (0x26 | 0x34, 2) => "smallint",
            (0x26 | 0x38, 4) => "int",
            (0x26 | 0x7f, _) => "bigint",
            (0x3b | 0x3e | 0x6d, _) => "float",
            (0x6a | 0x6c, _) => "decimal",
            (0x28, _) => "date",
            (0x29, _) => "time",
            (0x2a, _) => "datetime2",
            (0x2b, _) => "datetimeoffset",
            (0x3d | 0x6f, _) => "datetime",
            (0x6e, _) => "money",
            (0x24, _) => "uniqueidentifier",
            (0xa5, _) => "varbinary",
            (0xad, _) => "binary",
            (0xa7, _) => "varchar",
            (0xaf, _) => "char",
            (0xef, _) => "nchar",
            _ => "nvarchar",
        }
        .to_owned();
        Some(read)
    }

    /// Reads a value of it; the lengths must be those of the type.
    pub fn read_value(&self, bytes: &mut &[u8]) -> Option<Value> {
        match self.kind {
            0x30 | 0x32 | 0x34 | 0x38 | 0x3b | 0x3d | 0x3e | 0x7f => {
                Some(Some(take(bytes, self.size as usize)?.to_vec()))
            }
            0x63 => match i32::from_le_bytes(take(bytes, 4)?.try_into().ok()?) {
                ..0 => Some(None),
                length => Some(Some(take(bytes, length as usize)?.to_vec())),
            },
            _ if self.is_max() => {
                let told = u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?);
                if told == u64::MAX {
                    return Some(None);
                }
                let mut value = Vec::new();
                loop {
                    let part = u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?) as usize;
                    if part == 0 {
                        let fits = told == u64::MAX - 1 || told == value.len() as u64;
                        return fits.then_some(Some(value));
                    }
                    value.extend_from_slice(take(bytes, part)?);
                }
            }
            0xa5 | 0xa7 | 0xad | 0xaf | 0xe7 | 0xef => {
                match u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?) {
                    0xffff => Some(None),
                    length if u32::from(length) > self.size => None,
                    length if self.is_wide_text() && length % 2 != 0 => None,
                    length => Some(Some(take(bytes, usize::from(length))?.to_vec())),
                }
            }
            _ => match take(bytes, 1)?[0] {
                0 => Some(None),
                length => {
                    let is_one = match self.kind {
                        0x29 => u32::from(length) == time_bytes(self.scale),
                        0x2a => u32::from(length) == time_bytes(self.scale) + 3,
                        0x2b => u32::from(length) == time_bytes(self.scale) + 5,
                        0x6a | 0x6c => {
                            [5, 9, 13, 17].contains(&length) && u32::from(length) <= self.size
                        }
                        _ => u32::from(length) == self.size,
                    };
                    is_one.then_some(())?;
                    Some(Some(take(bytes, usize::from(length))?.to_vec()))
                }
            },
        }
    }
}

pub fn time_bytes(scale: u8) -> u32 {
    match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    }
}

pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (now, later) = bytes.split_at_checked(count)?;
    *bytes = later;
    Some(now)
}

/// Appends a value.
pub fn put_value(value: &Value, of: &Type, out: &mut Vec<u8>) {
    let is_long = matches!(of.kind, 0xa5 | 0xa7 | 0xad | 0xaf | 0xe7 | 0xef);
    match (value, of.is_max()) {
        (None, true) => out.extend_from_slice(&[0xff; 8]),
        (None, false) if is_long => out.extend_from_slice(&[0xff; 2]),
        (None, false) => out.push(0),
        (Some(bytes), true) => {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            for part in bytes.chunks(5000) {
                out.extend_from_slice(&(part.len() as u32).to_le_bytes());
                out.extend_from_slice(part);
            }
            out.extend_from_slice(&[0; 4]);
        }
        (Some(bytes), false) if is_long => {
            out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        (Some(bytes), false) => {
            out.push(bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
}

/// A value in an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Val {
    Null,
    Int(i64),
    /// An exact number, or a float, as it is written.
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
    /// A value of another type.
    Raw(Type, Vec<u8>),
}

pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

impl Val {
    /// The value of a column or a parameter.
    pub fn of(value: &Value, of: &Type) -> Val {
        let Some(bytes) = value else { return Val::Null };
        match of.kind {
            0x26 | 0x30 | 0x34 | 0x38 | 0x7f if bytes.len() == 1 => Val::Int(i64::from(bytes[0])),
            0x68 | 0x32 => Val::Int(i64::from(bytes[0])),
            0x26 | 0x34 | 0x38 | 0x7f => {
                let mut all = if bytes[bytes.len() - 1] & 0x80 != 0 { [0xff; 8] } else { [0; 8] };
                all[..bytes.len()].copy_from_slice(bytes);
                Val::Int(i64::from_le_bytes(all))
            }
            0xe7 | 0xef | 0x63 => Val::Text(super::wire::text(bytes)),
            0xa7 | 0xaf if of.utf8 => Val::Text(String::from_utf8_lossy(bytes).into_owned()),
            0xa7 | 0xaf => Val::Text(encoding_rs::WINDOWS_1252.decode(bytes).0.into_owned()),
            0x6a | 0x6c => Val::Number(decimal_text(bytes, of.scale)),
            _ => Val::Raw(of.clone(), bytes.clone()),
        }
    }

    pub fn int(&self) -> Result<Option<i64>, SqlError> {
        let parse = |text: &str| match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => error(
                245,
                format!(
                    "Conversion failed when converting the nvarchar value '{text}' to data type int."
                ),
            ),
        };
        match self {
            Val::Null => Ok(None),
            Val::Int(number) => Ok(Some(*number)),
            Val::Text(text) => parse(text),
            Val::Number(text) => parse(text.split('.').next().unwrap_or("")),
            other => error(206, format!("Operand type clash: {other:?}")),
        }
    }
}

fn decimal_text(bytes: &[u8], scale: u8) -> String {
    let mut all = [0; 16];
    all[..bytes.len() - 1].copy_from_slice(&bytes[1..]);
    let digits = format!("{:0>1$}", u128::from_le_bytes(all), usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if bytes[0] == 0 { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

pub use super::values::store;
