//! Thrift's compact protocol, as footers and heads of pages are written in it.
//!
//! ```text
//!   structure   (field: number and kind, value) ... 0
//!   list        count and kind, values
//! ```
//!
//! Invariants: bytes are hostile. Nothing is allocated by what a length says, nesting is limited, and nothing panics: each
//! value takes a byte at least, so that a list is no longer than its bytes.
//!
//! Source: thrift, doc/specs/thrift-compact-protocol.md.

use coload_arrow::Fault;

/// Deepest nesting of what is skipped.
const DEPTH_MAX: usize = 32;
/// Most bytes of a number.
const VARINT_BYTES_MAX: usize = 10;

/// Why something cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The bytes end before it does.
    Short,
    /// It is none.
    Bad(&'static str),
    /// What is kept of it takes so many bytes, which is more than may be.
    TooLarge(u64),
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Short => Fault::Damaged("metadata that end too early".to_owned()),
            Wrong::Bad(what) => Fault::Damaged(format!("metadata with {what}")),
            Wrong::TooLarge(bytes) => Fault::TooLarge(bytes),
        }
    }
}

/// Results of this file.
pub(super) type Result<T> = std::result::Result<T, Wrong>;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Byte,
    /// Of 16, 32 or 64 bits, which are written alike.
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn decode(byte: u8) -> Result<Self> {
        Ok(match byte {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::Byte,
            4..=6 => Kind::Int,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return Err(Wrong::Bad("a value of an unknown kind")),
        })
    }
}

/// Reads values one after the other.
#[derive(Debug)]
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Compact { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn read_bytes(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Wrong::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(bytes).ok_or(Wrong::Short)?;
        let found = self.bytes.get(self.at..end).ok_or(Wrong::Short)?;
        self.at = end;
        Ok(found)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for number in 0..VARINT_BYTES_MAX {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * number);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Wrong::Bad("a number that is too long"))
    }

    fn int(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a structure: `field` is called with each field's number and kind, and tells whether it read its value.
    pub(super) fn structure(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, Kind) -> Result<bool>,
    ) -> Result<()> {
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.int()?,
                delta => number.checked_add(delta.into()).ok_or(Wrong::Bad("too many fields"))?,
            };
            let kind = Kind::decode(head & 0xf)?;
            if !field(self, number, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    /// Reads a list of values of a kind.
    pub(super) fn list(
        &mut self,
        kind: Kind,
        of: Kind,
        mut value: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        expect(kind, Kind::List)?;
        let (count, found) = self.list_head()?;
        if count > 0 {
            expect(found, of)?;
        }
        (0..count).try_for_each(|_| value(self))
    }

    /// Reads a list of truths, each of which has a byte of its own.
    pub(super) fn truths(&mut self, kind: Kind, out: &mut Vec<bool>) -> Result<()> {
        expect(kind, Kind::List)?;
        let (count, found) = self.list_head()?;
        if count > 0 && !matches!(found, Kind::True | Kind::False) {
            return Err(Wrong::Bad("a value of another kind than its field"));
        }
        for _ in 0..count {
            out.push(self.byte()? == 1);
        }
        Ok(())
    }

    fn list_head(&mut self) -> Result<(u64, Kind)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        if count == 0 {
            return Ok((0, Kind::Byte));
        }
        Ok((count, Kind::decode(head & 0xf)?))
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Wrong::Bad("structures within structures, too deep"));
        }
        match kind {
            Kind::True | Kind::False => {}
            Kind::Byte => drop(self.byte()?),
            Kind::Int => drop(self.varint()?),
            Kind::Double => drop(self.take(8)?),
            Kind::Uuid => drop(self.take(16)?),
            Kind::Binary => drop(self.binary(kind)?),
            Kind::List => {
                let (count, of) = self.list_head()?;
                for _ in 0..count {
                    self.skip_element(of, depth + 1)?;
                }
            }
            Kind::Map => {
                let count = self.varint()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    let (key, value) = (Kind::decode(kinds >> 4)?, Kind::decode(kinds & 0xf)?);
                    for _ in 0..count {
                        self.skip_element(key, depth + 1)?;
                        self.skip_element(value, depth + 1)?;
                    }
                }
            }
            Kind::Struct => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Ok(());
                }
                if head >> 4 == 0 {
                    self.int()?;
                }
                self.skip(Kind::decode(head & 0xf)?, depth + 1)?;
            },
        }
        Ok(())
    }

    /// Truths have a byte of their own where they stand in a list.
    fn skip_element(&mut self, kind: Kind, depth: usize) -> Result<()> {
        match kind {
            Kind::True | Kind::False => self.byte().map(drop),
            _ => self.skip(kind, depth),
        }
    }

    /// A number of 64 bits.
    pub(super) fn i64(&mut self, kind: Kind) -> Result<i64> {
        expect(kind, Kind::Int)?;
        self.int()
    }

    /// A number of 32 bits.
    pub(super) fn i32(&mut self, kind: Kind) -> Result<i32> {
        let value = self.i64(kind)?;
        i32::try_from(value).map_err(|_| Wrong::Bad("a number that is too large"))
    }

    /// A number of 64 bits that is not below 0: of bytes, rows or values.
    pub(super) fn u64(&mut self, kind: Kind) -> Result<u64> {
        u64::try_from(self.i64(kind)?).map_err(|_| Wrong::Bad("a count below 0"))
    }

    /// A number of 32 bits that is not below 0.
    pub(super) fn u32(&mut self, kind: Kind) -> Result<u32> {
        u32::try_from(self.i32(kind)?).map_err(|_| Wrong::Bad("a count below 0"))
    }

    /// A number of 8 bits.
    pub(super) fn i8(&mut self, kind: Kind) -> Result<i8> {
        expect(kind, Kind::Byte)?;
        Ok(self.byte()? as i8)
    }

    /// Bytes or text.
    pub(super) fn binary(&mut self, kind: Kind) -> Result<&'a [u8]> {
        expect(kind, Kind::Binary)?;
        let bytes = self.varint()?;
        self.take(usize::try_from(bytes).map_err(|_| Wrong::Short)?)
    }

    /// A truth.
    pub(super) fn truth(&mut self, kind: Kind) -> Result<bool> {
        match kind {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(Wrong::Bad("a value of another kind than its field")),
        }
    }
}

/// Checks the kind of a value.
pub(super) fn expect(kind: Kind, expected: Kind) -> Result<()> {
    match kind == expected {
        true => Ok(()),
        false => Err(Wrong::Bad("a value of another kind than its field")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_read_and_others_skipped() {
        // 1: -3; 3: list of two truths; 4: "ab"; 20: true
        let bytes = [0x15, 5, 0x29, 0x21, 1, 2, 0x18, 2, b'a', b'b', 0x01, 40, 0x00, 99];
        let (mut number, mut text, mut truth) = (0, Vec::new(), false);
        let mut compact = Compact::new(&bytes);
        let read = compact.structure(|compact, field, kind| {
            match field {
                1 => number = compact.i32(kind)?,
                4 => text = compact.binary(kind)?.to_vec(),
                20 => truth = compact.truth(kind)?,
                _ => return Ok(false),
            }
            Ok(true)
        });
        assert_eq!((read, number, &text[..], truth), (Ok(()), -3, &b"ab"[..], true));
        assert_eq!(compact.read_bytes(), 13);
    }

    #[test]
    fn what_is_too_deep_or_too_long_is_an_error() {
        let read = |bytes: &[u8]| Compact::new(bytes).structure(|_, _, _| Ok(false));
        assert!(matches!(read(&[0x1c; 100]), Err(Wrong::Bad(_))));
        assert!(matches!(
            read(&[0x15, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            Err(Wrong::Bad(_))
        ));
        assert_eq!(read(&[0x18, 255, 255, 255, 15]), Err(Wrong::Short));
        assert_eq!(read(&[0x19, 0xf5, 255, 255, 255, 255, 15, 0]), Err(Wrong::Short));
        assert!(matches!(read(&[0x1f]), Err(Wrong::Bad(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let _ = Compact::new(&bytes).structure(|_, _, _| Ok(false));
        }
    }
}
