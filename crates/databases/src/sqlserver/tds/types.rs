//! Types as answers tell them, and the bytes of their values.

use coload_types::Result;

use super::wire::{Wire, wrong};
use crate::read::too_large;

/// Numbers of types.
#[allow(missing_docs)]
pub mod kind {
    pub const NULL: u8 = 0x1f;
    pub const IMAGE: u8 = 0x22;
    pub const TEXT: u8 = 0x23;
    pub const GUID: u8 = 0x24;
    pub const INTN: u8 = 0x26;
    pub const DATE: u8 = 0x28;
    pub const TIME: u8 = 0x29;
    pub const DATETIME2: u8 = 0x2a;
    pub const OFFSET: u8 = 0x2b;
    pub const INT1: u8 = 0x30;
    pub const BIT: u8 = 0x32;
    pub const INT2: u8 = 0x34;
    pub const INT4: u8 = 0x38;
    pub const SMALLDATETIME: u8 = 0x3a;
    pub const FLOAT4: u8 = 0x3b;
    pub const MONEY8: u8 = 0x3c;
    pub const DATETIME: u8 = 0x3d;
    pub const FLOAT8: u8 = 0x3e;
    pub const VARIANT: u8 = 0x62;
    pub const NTEXT: u8 = 0x63;
    pub const BITN: u8 = 0x68;
    pub const DECIMALN: u8 = 0x6a;
    pub const NUMERICN: u8 = 0x6c;
    pub const FLOATN: u8 = 0x6d;
    pub const MONEYN: u8 = 0x6e;
    pub const DATETIMEN: u8 = 0x6f;
    pub const MONEY4: u8 = 0x7a;
    pub const INT8: u8 = 0x7f;
    pub const VARBINARY: u8 = 0xa5;
    pub const VARCHAR: u8 = 0xa7;
    pub const BINARY: u8 = 0xad;
    pub const CHAR: u8 = 0xaf;
    pub const NVARCHAR: u8 = 0xe7;
    pub const NCHAR: u8 = 0xef;
    pub const UDT: u8 = 0xf0;
    pub const XML: u8 = 0xf1;
}

/// Length of a value, or of a type, that comes in parts.
pub const PARTS: u16 = 0xffff;
/// Length of a value in parts that is NULL.
pub const NULL_PARTS: u64 = u64::MAX;

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeInfo {
    /// Its number.
    pub kind: u8,
    /// Bytes of a value at most, where it tells them.
    pub size: u32,
    /// Digits of a number.
    pub precision: u8,
    /// Digits behind the point, or of a second.
    pub scale: u8,
    /// Where text is in a code page: language, flags, order.
    pub collation: [u8; 5],
}

/// How the length of a value is told.
enum Length {
    Fixed(usize),
    Byte,
    Short,
    Parts,
    Pointer,
    Long,
}

impl TypeInfo {
    /// Reads a type.
    ///
    /// # Errors
    /// `Corrupt` when it is none that there is.
    pub fn read(wire: &mut Wire) -> Result<Self> {
        let mut read =
            TypeInfo { kind: wire.u8()?, size: 0, precision: 0, scale: 0, collation: [0; 5] };
        match read.kind {
            kind::NULL => {}
            kind::INT1 | kind::BIT => read.size = 1,
            kind::INT2 => read.size = 2,
            kind::INT4 | kind::SMALLDATETIME | kind::FLOAT4 | kind::MONEY4 => read.size = 4,
            kind::MONEY8 | kind::DATETIME | kind::FLOAT8 | kind::INT8 => read.size = 8,
            kind::GUID
            | kind::INTN
            | kind::BITN
            | kind::FLOATN
            | kind::MONEYN
            | kind::DATETIMEN => read.size = u32::from(wire.u8()?),
            kind::DECIMALN | kind::NUMERICN => {
                read.size = u32::from(wire.u8()?);
                read.precision = wire.u8()?;
                read.scale = wire.u8()?;
            }
            kind::DATE => read.size = 3,
            kind::TIME | kind::DATETIME2 | kind::OFFSET => {
                read.scale = wire.u8()?;
                if read.scale > 7 {
                    return Err(wrong("a second of more than seven digits"));
                }
            }
            kind::VARBINARY | kind::BINARY => read.size = u32::from(wire.u16()?),
            kind::VARCHAR | kind::CHAR | kind::NVARCHAR | kind::NCHAR => {
                read.size = u32::from(wire.u16()?);
                read.collation = wire.array()?;
            }
            kind::TEXT | kind::NTEXT => {
                read.size = wire.u32()?;
                read.collation = wire.array()?;
            }
            kind::IMAGE | kind::VARIANT => read.size = wire.u32()?,
            kind::XML => {
                read.size = u32::from(PARTS);
                if wire.u8()? != 0 {
                    wire.short_text()?;
                    wire.short_text()?;
                    wire.long_text()?;
                }
            }
            kind::UDT => {
                wire.u16()?;
                read.size = u32::from(PARTS);
                for _ in 0..3 {
                    wire.short_text()?;
                }
                wire.long_text()?;
            }
            other => return Err(wrong(&format!("a type of number {other:#x}"))),
        }
        Ok(read)
    }

    fn length(&self) -> Length {
        match self.kind {
            kind::NULL => Length::Fixed(0),
            kind::INT1
            | kind::BIT
            | kind::INT2
            | kind::INT4
            | kind::SMALLDATETIME
            | kind::FLOAT4
            | kind::MONEY4
            | kind::MONEY8
            | kind::DATETIME
            | kind::FLOAT8
            | kind::INT8 => Length::Fixed(self.size as usize),
            kind::TEXT | kind::NTEXT | kind::IMAGE => Length::Pointer,
            kind::VARIANT => Length::Long,
            kind::XML | kind::UDT => Length::Parts,
            kind::VARBINARY
            | kind::BINARY
            | kind::VARCHAR
            | kind::CHAR
            | kind::NVARCHAR
            | kind::NCHAR => match self.size == u32::from(PARTS) {
                true => Length::Parts,
                false => Length::Short,
            },
            _ => Length::Byte,
        }
    }

    /// Reads a value; whether it is none that is NULL. A longer one than `most` is an error.
    ///
    /// # Errors
    /// `Limit` when it has more bytes, those of [`Wire::read`].
    pub fn read_value(&self, wire: &mut Wire, out: &mut Vec<u8>, most: u64) -> Result<bool> {
        out.clear();
        let check = |length: u64| match length > most {
            false => Ok(length as usize),
            true => Err(too_large("a value", length, most)),
        };
        let length = match self.length() {
            Length::Fixed(length) => {
                wire.read_into(length, out)?;
                return Ok(self.kind != kind::NULL);
            }
            Length::Byte => match wire.u8()? {
                0 => return Ok(false),
                length => usize::from(length),
            },
            Length::Short => match wire.u16()? {
                PARTS => return Ok(false),
                length => usize::from(length),
            },
            Length::Long => match wire.u32()? {
                0 => return Ok(false),
                length => check(u64::from(length))?,
            },
            Length::Pointer => {
                let pointer = usize::from(wire.u8()?);
                if pointer == 0 {
                    return Ok(false);
                }
                // The pointer, and when it was written.
                wire.skip(pointer + 8)?;
                check(u64::from(wire.u32()?))?
            }
            Length::Parts => {
                if wire.u64()? == NULL_PARTS {
                    return Ok(false);
                }
                loop {
                    let part = wire.u32()?;
                    if part == 0 {
                        return Ok(true);
                    }
                    check(out.len() as u64 + u64::from(part))?;
                    wire.read_into(part as usize, out)?;
                }
            }
        };
        wire.read_into(length, out)?;
        Ok(true)
    }
}
