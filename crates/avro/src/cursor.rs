//! Goes through bytes in the binary encoding.

use coload_arrow::{Fault, Result};

/// Most bytes of a number: 64 bits, 7 of them a byte.
const LONG_BYTES_MAX: usize = 10;

/// Bytes that are gone through.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes from the first on that would have been needed, where they ended too early.
    needed: Option<u64>,
}

pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Fault::Damaged(what.into()))
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0, needed: None }
    }

    /// Bytes before the next one.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// How many bytes there would have to be, if it ran out of them.
    pub fn needed(&self) -> Option<u64> {
        self.needed
    }

    #[cold]
    fn ends_early<T>(&mut self, more: u64) -> Result<T> {
        self.needed = Some((self.bytes.len() as u64).saturating_add(more));
        damaged("they end in the middle of a value")
    }

    /// So many bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].split_at_checked(count) {
            Some((taken, _)) => {
                self.at += count;
                Ok(taken)
            }
            None => self.ends_early((count - self.left()) as u64),
        }
    }

    /// So many bytes, as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => self.ends_early((N - self.left()) as u64),
        }
    }

    /// A number of 64 bits.
    pub fn long(&mut self) -> Result<i64> {
        let rest = &self.bytes[self.at..];
        // Mostly it is small.
        if let Some(byte) = rest.first().filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Ok(i64::from(byte >> 1) ^ -i64::from(byte & 1));
        }
        let mut word = 0_u64;
        for (number, byte) in rest.iter().take(LONG_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if number == LONG_BYTES_MAX - 1 && bits > 1 {
                return damaged("a number of more than 64 bits");
            }
            word |= bits << (7 * number);
            if *byte < 0x80 {
                self.at += number + 1;
                return Ok((word >> 1) as i64 ^ -((word & 1) as i64));
            }
        }
        match rest.len() < LONG_BYTES_MAX {
            true => self.ends_early(1),
            false => damaged("a number of more than 64 bits"),
        }
    }

    /// A number of 32 bits.
    pub fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        i32::try_from(value).or_else(|_| damaged(format!("{value} where an int is expected")))
    }

    /// A length, or a place.
    fn length(&mut self) -> Result<usize> {
        let value = self.long()?;
        match usize::try_from(value) {
            Ok(length) if length <= self.left() => Ok(length),
            Ok(length) => self.ends_early((length - self.left()) as u64),
            Err(_) => damaged(format!("a length of {value}")),
        }
    }

    /// Bytes behind their length.
    pub fn sized(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// One of so many: of the branches of a union, or the symbols of an enum.
    pub fn choice(&mut self, count: usize, of: &str) -> Result<usize> {
        let value = self.long()?;
        match usize::try_from(value) {
            Ok(choice) if choice < count => Ok(choice),
            _ => damaged(format!("{of} {value} of {count}")),
        }
    }

    /// True or false.
    pub fn bool(&mut self) -> Result<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => damaged(format!("a boolean of {other}")),
        }
    }

    /// The head of some items of an array or a map: how many, which are none at its end, and their bytes where they are told.
    pub fn items(&mut self) -> Result<(u64, Option<usize>)> {
        let count = self.long()?;
        match count < 0 {
            false => Ok((count as u64, None)),
            true => Ok((count.unsigned_abs(), Some(self.length()?))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(value: i64) -> Vec<u8> {
        let mut word = (value << 1 ^ value >> 63) as u64;
        let mut out = Vec::new();
        while word >= 0x80 {
            out.push(word as u8 | 0x80);
            word >>= 7;
        }
        out.push(word as u8);
        out
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let near = |at: i64| (-2..=2).map(move |by| at.saturating_add(by));
        let powers = (0..64).flat_map(|bit| near(1_i64.wrapping_shl(bit)));
        for value in powers.flat_map(|value| [value, value.wrapping_neg()]) {
            let bytes = written(value);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.long().unwrap(), value);
            assert_eq!(cursor.left(), 0);
            let mut cut = Cursor::new(&bytes[..bytes.len() - 1]);
            assert!(cut.long().is_err() && cut.needed() == Some(bytes.len() as u64), "{value}");
        }
        assert_eq!(Cursor::new(&written(i64::MIN)).long().unwrap(), i64::MIN);
    }

    #[test]
    fn what_is_no_number_or_length_is_told() {
        for bytes in [[0xff; 10], [0xff; 10].map(|byte| byte & 0xfe | 0x80)] {
            assert!(matches!(Cursor::new(&bytes).long(), Err(Fault::Damaged(_))));
        }
        let mut too_many = [0x80; 10];
        too_many[9] = 2;
        assert!(matches!(Cursor::new(&too_many).long(), Err(Fault::Damaged(_))));
        assert!(Cursor::new(&written(1 << 31)).int().is_err());
        assert!(Cursor::new(&written(-1)).sized().is_err());
        let mut long = Cursor::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
        assert!(long.sized().is_err());
        assert!(Cursor::new(&[2]).bool().is_err());
        assert!(Cursor::new(&written(3)).choice(3, "branch").is_err());
        assert!(Cursor::new(&written(i64::MIN)).items().is_err());
    }
}
