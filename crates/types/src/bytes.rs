//! Little-endian numbers and varints to bytes and back; reading never panics.

use crate::{Error, Result};

/// Appends `value` in 1 to 10 bytes, 7 bits each, low bits first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number as a varint: sign in the lowest bit.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what the `put` functions wrote.
#[derive(Debug, Clone, Copy)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
}

fn short() -> Error {
    Error::Corrupt("bytes end early".into())
}

impl<'a> ByteReader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        ByteReader { rest: bytes }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or_else(short)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or_else(short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Takes four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Takes eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes, little-endian, signed.
    pub fn i128(&mut self) -> Result<i128> {
        Ok(i128::from_le_bytes(self.array()?))
    }

    /// Takes an unsigned number of 1 to 10 bytes, seven bits in each, the lowest first ([`put_varint`]).
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Corrupt("number over 64 bits".into()))
    }

    /// A varint that must fit 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| Error::Corrupt("number over 32 bits".into()))
    }

    /// Takes a signed number that [`put_signed`] wrote: small numbers of either sign take few bytes.
    pub fn signed(&mut self) -> Result<i64> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| short())?)
    }

    /// A count of items that take at least `item_bytes` each, so that a lying count cannot make the
    /// reader reserve more memory than there are bytes.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let count = usize::try_from(self.varint()?).map_err(|_| short())?;
        if count > self.rest.len() / item_bytes.max(1) {
            return Err(Error::Corrupt(format!("{count} items in {} bytes", self.rest.len())));
        }
        Ok(count)
    }

    /// Fails unless everything was read.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Error::Corrupt(format!("{} bytes too many", self.rest.len())))
        }
    }
}

/// Checksum of stored bytes: XXH3, 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// [`checksum`] of bytes that come one after the other.
pub struct Checksum(twox_hash::XxHash3_64);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(twox_hash::XxHash3_64::new())
    }
}

impl Checksum {
    /// Adds bytes to those that the checksum is of; how they are cut into calls does not matter.
    pub fn add(&mut self, bytes: &[u8]) {
        std::hash::Hasher::write(&mut self.0, bytes);
    }

    /// The checksum of what was added so far.
    pub fn value(&self) -> u64 {
        std::hash::Hasher::finish(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_checksum_is_the_same_however_its_bytes_come() {
        let bytes: Vec<u8> = (0..5000_u32).map(|n| ((n * n) >> 3) as u8).collect();
        for length in [0, 1, 16, 17, 240, 241, 1024, 5000] {
            for step in [1, 7, 256, 5000] {
                let mut sum = Checksum::default();
                bytes[..length].chunks(step).for_each(|part| sum.add(part));
                assert_eq!(sum.value(), checksum(&bytes[..length]), "{length} by {step}");
            }
        }
    }

    #[test]
    fn numbers_come_back() {
        let mut out = Vec::new();
        for v in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            put_varint(&mut out, v);
            put_signed(&mut out, v as i64);
        }
        let mut reader = ByteReader::new(&out);
        for v in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(reader.varint().unwrap(), v);
            assert_eq!(reader.signed().unwrap(), v as i64);
        }
        reader.finish().unwrap();
        assert!(ByteReader::new(&[0xff; 11]).varint().is_err());
        assert!(ByteReader::new(&[200, 1]).count(1).is_err());
    }
}
