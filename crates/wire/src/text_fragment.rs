//! The text of a fragment, which the server parses, and what it says of it.
//!
//! ```text
//!   TEXT_FRAGMENT      partition u32, fragment u32, rows u32, little-endian, then the text: whole records, each with its newline
//!   PARSED   partition varint, fragment varint, u8  1 it has those rows, 0 it is handed back,
//!            CPU nanoseconds varint, nanoseconds since it had arrived varint
//! ```
//!
//! A text is handed back when a record of it is no row as it stands: then the client parses it, and tells what is wrong.

use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};

use crate::{FRAGMENT_ROWS_MAX, FRAGMENTS_MAX};

/// Bytes before the text.
pub const TEXT_HEAD_BYTES: usize = 12;

/// The text of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFragment<'a> {
    /// Number of the partition in the load.
    pub partition: u32,
    /// Number of the fragment in its partition.
    pub fragment: u32,
    /// Rows that the client counted.
    pub rows: u32,
    /// Text of whole records, in UTF-8.
    pub text: &'a [u8],
}

/// Writes what stands before a text, which begins after [`TEXT_HEAD_BYTES`] of `message`.
pub fn put_text_head(message: &mut [u8], [partition, fragment, rows]: [u32; 3]) {
    for (target, number) in message.chunks_exact_mut(4).zip([partition, fragment, rows]) {
        target.copy_from_slice(&number.to_le_bytes());
    }
}

impl<'a> TextFragment<'a> {
    /// Reads a message that has a head and a text.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (partition, fragment, rows) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let text = reader.take(reader.remaining())?;
        if fragment as usize >= FRAGMENTS_MAX {
            return Err(Error::Corrupt(format!("fragment {fragment} of a partition")));
        }
        // A record has at least its newline.
        if rows == 0 || rows as usize > FRAGMENT_ROWS_MAX.min(text.len()) {
            return Err(Error::Corrupt(format!("{rows} rows in {} bytes of text", text.len())));
        }
        if text.last() != Some(&b'\n') {
            return Err(Error::Corrupt("a text whose last record does not end".into()));
        }
        Ok(TextFragment { partition, fragment, rows, text })
    }
}

/// What became of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextIs {
    /// The server has its rows.
    Taken,
    /// The server has none of it.
    HandedBack,
}

/// What the server says of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Number of the partition in the load.
    pub partition: u32,
    /// Number of the fragment in its partition.
    pub fragment: u32,
    /// What became of it.
    pub is: TextIs,
    /// CPU time that parsing it took at the server, nanoseconds.
    pub cpu_ns: u64,
    /// How long it was there.
    pub stay_ns: u64,
}

impl Parsed {
    /// The answer as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, u64::from(self.partition));
        put_varint(&mut out, u64::from(self.fragment));
        out.push(u8::from(self.is == TextIs::Taken));
        put_varint(&mut out, self.cpu_ns);
        put_varint(&mut out, self.stay_ns);
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (partition, fragment) = (reader.varint_u32()?, reader.varint_u32()?);
        let is = match reader.u8()? {
            0 => TextIs::HandedBack,
            1 => TextIs::Taken,
            other => return Err(Error::Corrupt(format!("answer {other} to a text"))),
        };
        let (cpu_ns, stay_ns) = (reader.varint()?, reader.varint()?);
        reader.finish()?;
        Ok(Parsed { partition, fragment, is, cpu_ns, stay_ns })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_and_answers_come_back_and_those_that_lie_are_refused() {
        let message = |rows: u32, text: &[u8]| {
            let mut message = vec![0; TEXT_HEAD_BYTES];
            put_text_head(&mut message, [7, 3, rows]);
            message.extend_from_slice(text);
            message
        };
        let bytes = message(2, b"a\nb\n");
        let sent = TextFragment { partition: 7, fragment: 3, rows: 2, text: b"a\nb\n" };
        assert_eq!(TextFragment::decode(&bytes).unwrap(), sent);
        assert!((0..bytes.len() - 2).all(|cut| TextFragment::decode(&bytes[..cut]).is_err()));
        for (rows, text) in [(0, &b"a\n"[..]), (3, b"a\n"), (1, b"a"), (u32::MAX, b"a\n")] {
            assert!(TextFragment::decode(&message(rows, text)).is_err(), "{rows} rows in {text:?}");
        }
        let mut far = message(1, b"a\n");
        put_text_head(&mut far, [0, FRAGMENTS_MAX as u32, 1]);
        assert!(TextFragment::decode(&far).is_err());
        for is in [TextIs::Taken, TextIs::HandedBack] {
            let parsed = Parsed { partition: 7, fragment: 300, is, cpu_ns: 1 << 40, stay_ns: 3 };
            let bytes = parsed.encode();
            assert_eq!(Parsed::decode(&bytes).unwrap(), parsed);
            assert!((0..bytes.len()).all(|cut| Parsed::decode(&bytes[..cut]).is_err()));
        }
    }
}
