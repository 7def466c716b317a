//! UTF-32, which the Encoding Standard has not.

use super::{ByteOrder, End, MALFORMED};

/// Decodes UTF-32 piece by piece.
pub struct Utf32Decoder {
    order: ByteOrder,
    /// Bytes of a character whose rest has not come.
    rest: Vec<u8>,
}

impl Utf32Decoder {
    /// A decoder at the start of a text.
    pub fn new(order: ByteOrder) -> Self {
        Utf32Decoder { order, rest: Vec::new() }
    }

    /// Appends the characters of the next bytes.
    pub fn decode(&mut self, mut bytes: &[u8], end: End, text: &mut Vec<u8>) {
        while !self.rest.is_empty() && self.rest.len() < 4 && !bytes.is_empty() {
            self.rest.push(bytes[0]);
            bytes = &bytes[1..];
        }
        if let [a, b, c, d] = self.rest[..] {
            self.push([a, b, c, d], text);
            self.rest.clear();
        }
        if self.rest.is_empty() {
            let (whole, rest) = bytes.as_chunks::<4>();
            for character in whole {
                self.push(*character, text);
            }
            self.rest.extend_from_slice(rest);
        }
        if end == End::Here && !self.rest.is_empty() {
            self.rest.clear();
            text.push(MALFORMED);
        }
    }

    fn push(&self, bytes: [u8; 4], text: &mut Vec<u8>) {
        let number = match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        };
        match char::from_u32(number) {
            Some(character) => {
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => text.push(MALFORMED),
        }
    }
}
