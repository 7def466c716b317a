//! Light compression of short strings: frequent pieces of up to 8 bytes become one byte.
//!
//! Each string is compressed alone, so that any one can be read without the others.
//!
//! ```text
//!   symbol table   count u8, then for each symbol its length u8 (1..8) and its bytes
//!   string         codes; code < count is a symbol, 255 says that the next byte stands for itself
//! ```
//!
//! The byte after a string is one that no symbol holds (a NUL never is in one, and a delimiter only if
//! the sample had it inside a string), so a match cannot run past the end and needs no check.
//! Strings that are followed by another byte are copied first.
//!
//! Cost: about 20 cycles a code, all latency; four strings are therefore encoded at a time.
//!
//! Source: Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression", PVLDB 13(12),
//! 2020.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod train;

use std::borrow::Cow;

use coload_types::{Error, Result};

pub(crate) use decode::NOT_PLAIN;
pub use decode::SymbolDecoder;

/// The code that says that a literal byte follows.
pub(crate) const ESCAPE: u8 = 255;
/// Most symbols in a table.
const SYMBOLS_MAX: usize = 255;
/// Slots of the table of symbols of three bytes and more.
const SLOTS: usize = 1024;
/// Bytes after the end of a source that the encoder may look at.
pub const SOURCE_PADDING: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Symbol {
    /// Bytes in little-endian order; those past `len` are 0.
    bytes: u64,
    len: u8,
}

impl Symbol {
    fn join(self, next: Symbol) -> Option<Symbol> {
        let len = (self.len + next.len).min(8);
        if self.len == 8 {
            return None;
        }
        let bytes = (self.bytes | next.bytes << (8 * self.len)) & mask(len as usize);
        Some(Symbol { bytes, len })
    }
}

fn mask(len: usize) -> u64 {
    if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 }
}

/// 16 bytes: the table fits the first-level cache.
#[derive(Clone, Copy)]
struct Slot {
    bytes: u64,
    /// Code in the low byte, length above. A slot that is empty has bytes of another slot, which no word here matches.
    code_len: u32,
    /// High bits of a word that are not the symbol's.
    drop: u32,
}

impl Slot {
    #[inline(always)]
    fn matches(self, word: u64) -> bool {
        (word ^ self.bytes).wrapping_shl(self.drop) == 0
    }
}

/// Turns strings into codes.
pub struct SymbolEncoder {
    symbols: Vec<Symbol>,
    slots: Box<[Slot]>,
    /// By the next two bytes: code, length of one or two.
    short: Box<[u16]>,
    /// Bytes that stand in no symbol.
    stops: Box<[bool; 256]>,
    /// Set where another codec makes more of whole strings: they are kept as they are, and [`crate::shrink_page`] has the page.
    keeps_strings: bool,
    /// What the symbols make of strings like those that they were chosen for.
    gain: Option<train::Gain>,
}

impl std::fmt::Debug for SymbolEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SymbolEncoder({} symbols)", self.symbols.len())
    }
}

fn slot_of(word: u64) -> usize {
    ((word & 0xff_ffff).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.trailing_zeros()))
        as usize
}

/// Compressed strings, one after the other.
#[derive(Debug, Default, Clone)]
pub struct EncodedStrings {
    /// Codes of all strings, one string after the other.
    pub bytes: Vec<u8>,
    /// Codes of each string, in bytes.
    pub lengths: Vec<u32>,
    /// Bytes of the strings themselves.
    pub source_bytes: usize,
}

impl EncodedStrings {
    /// The strings as a page has them, and the number of their symbol table: the codes and 1, or the strings as they are
    /// and 0 where the symbols, which were chosen from a sample, made them longer.
    ///
    /// # Errors
    /// `Corrupt` if the encoder is not the one that encoded them.
    pub fn settle(&self, encoder: &SymbolEncoder) -> Result<(Cow<'_, EncodedStrings>, u32)> {
        if encoder.keeps_strings {
            return Ok((Cow::Borrowed(self), 0));
        }
        if self.bytes.len() <= self.source_bytes {
            return Ok((Cow::Borrowed(self), 1));
        }
        let mut plain = EncodedStrings { source_bytes: self.source_bytes, ..Default::default() };
        plain.bytes.reserve_exact(self.source_bytes);
        let mut codes = self.bytes.as_slice();
        for length in &self.lengths {
            let (string, rest) = codes.split_at(*length as usize);
            let before = plain.bytes.len();
            encoder.decode(string, &mut plain.bytes)?;
            plain.lengths.push((plain.bytes.len() - before) as u32);
            codes = rest;
        }
        Ok((Cow::Owned(plain), 0))
    }
}

impl SymbolEncoder {
    fn longest(&self, text: &[u8]) -> Symbol {
        let word = load_short(text);
        let slot = &self.slots[slot_of(word)];
        let code_len = if slot.matches(word) {
            slot.code_len
        } else {
            u32::from(self.short[(word & 0xffff) as usize])
        };
        let len = (code_len >> 8) as u8;
        Symbol { bytes: word & mask(len as usize), len }
    }

    fn new(mut symbols: Vec<Symbol>) -> Self {
        // Later symbols win a contended slot: put the long ones last, in a fixed order.
        symbols.sort_unstable_by_key(|s| (s.len, s.bytes));
        let mut slots = vec![Slot { bytes: 0, code_len: 0, drop: 0 }; SLOTS].into_boxed_slice();
        slots[slot_of(0)].bytes = 1;
        let mut short = vec![u16::from(ESCAPE) | 1 << 8; 1 << 16].into_boxed_slice();
        for (code, s) in symbols.iter().enumerate() {
            let code_len = code as u32 | u32::from(s.len) << 8;
            match s.len {
                1 => {
                    for second in 0..256 {
                        short[s.bytes as usize | second << 8] = code_len as u16;
                    }
                }
                2 => short[s.bytes as usize] = code_len as u16,
                _ => {
                    slots[slot_of(s.bytes)] =
                        Slot { bytes: s.bytes, code_len, drop: 64 - 8 * u32::from(s.len) };
                }
            }
        }
        let mut stops = Box::new([true; 256]);
        for s in &symbols {
            for byte in &s.bytes.to_le_bytes()[..s.len as usize] {
                stops[*byte as usize] = false;
            }
        }
        SymbolEncoder { symbols, slots, short, stops, keeps_strings: false, gain: None }
    }

    /// Appends the string that `codes` stand for, a code at a time.
    fn decode(&self, codes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let wrong = || Error::Corrupt("codes of other symbols".into());
        let mut codes = codes.iter();
        while let Some(code) = codes.next() {
            if *code == ESCAPE {
                out.push(*codes.next().ok_or_else(wrong)?);
            } else {
                let symbol = self.symbols.get(usize::from(*code)).ok_or_else(wrong)?;
                out.extend_from_slice(&symbol.bytes.to_le_bytes()[..usize::from(symbol.len)]);
            }
        }
        Ok(())
    }

    /// The encoder whose table ([`Self::table`]) has these bytes: strings are the same codes again.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn open(table: &[u8]) -> Result<Self> {
        let wrong = || Error::Corrupt("symbol table".into());
        let (count, mut rest) = table.split_first().ok_or_else(wrong)?;
        let mut symbols = Vec::with_capacity(usize::from(*count));
        for _ in 0..*count {
            let (len, tail) = rest.split_first().ok_or_else(wrong)?;
            let (symbol, tail) = tail.split_at_checked(usize::from(*len)).ok_or_else(wrong)?;
            if !(1..=8).contains(len) {
                return Err(wrong());
            }
            symbols.push(Symbol { bytes: load_short(symbol), len: *len });
            rest = tail;
        }
        let encoder = SymbolEncoder::new(symbols);
        // Codes are places in the order that an encoder has.
        if encoder.table() == table { Ok(encoder) } else { Err(wrong()) }
    }

    /// The table as bytes, for [`SymbolDecoder::open`].
    pub fn table(&self) -> Vec<u8> {
        let mut out = vec![self.symbols.len() as u8];
        for s in &self.symbols {
            out.push(s.len);
            out.extend_from_slice(&s.bytes.to_le_bytes()[..s.len as usize]);
        }
        out
    }
}

fn load_short(text: &[u8]) -> u64 {
    let mut raw = [0; 8];
    let n = text.len().min(8);
    raw[..n].copy_from_slice(&text[..n]);
    u64::from_le_bytes(raw)
}
