//! Codes to strings.

use coload_types::{Error, Result};

use super::{ESCAPE, load_short};

/// Turns codes back into strings.
#[derive(Clone)]
pub struct SymbolDecoder {
    bytes: Box<[u64; 256]>,
    lengths: Box<[u8; 256]>,
    /// Lengths of symbols that are ASCII without NUL; [`NOT_PLAIN`] for others, 0 for an escape.
    plain_lengths: Box<[u32; 256]>,
}

/// Most codes that are summed at once, which bounds the memory for it.
const SUMMED_MAX: usize = 1 << 12;

/// More than the bytes that all of them may stand for.
pub(crate) const NOT_PLAIN: u32 = 1 << 16;

impl std::fmt::Debug for SymbolDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SymbolDecoder")
    }
}

impl SymbolDecoder {
    /// Reads a table that [`SymbolEncoder::table`] made.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are no table.
    pub fn open(table: &[u8]) -> Result<Self> {
        let wrong = || Error::Corrupt("symbol table".into());
        let (count, mut rest) = table.split_first().ok_or_else(wrong)?;
        let mut bytes = Box::new([0; 256]);
        let mut lengths = Box::new([0; 256]);
        let mut plain_lengths = Box::new([0; 256]);
        for code in 0..*count as usize {
            let (len, tail) = rest.split_first().ok_or_else(wrong)?;
            let len = *len as usize;
            if !(1..=8).contains(&len) || tail.len() < len {
                return Err(wrong());
            }
            bytes[code] = load_short(&tail[..len]);
            lengths[code] = len as u8;
            let plain = tail[..len].iter().all(|b| b.wrapping_sub(1) < 0x7f);
            plain_lengths[code] = if plain { len as u32 } else { NOT_PLAIN };
            rest = &tail[len..];
        }
        if rest.is_empty() {
            Ok(SymbolDecoder { bytes, lengths, plain_lengths })
        } else {
            Err(wrong())
        }
    }

    /// Sets `sums` to the bytes that the first 0, 1, ... of `codes` stand for, plus [`NOT_PLAIN`] for each symbol
    /// or escaped byte among them that is not ASCII without NUL.
    ///
    /// `false`, and nothing of `sums` means anything, for more than [`SUMMED_MAX`] codes.
    pub(crate) fn sum_lengths(&self, codes: &[u8], sums: &mut Vec<u32>) -> bool {
        if codes.len() > SUMMED_MAX {
            return false;
        }
        sums.resize(codes.len() + 1, 0);
        let mut sum = 0;
        let mut rest = codes.iter().zip(&mut sums[1..]);
        while let Some((code, after)) = rest.next() {
            sum += self.plain_lengths[*code as usize];
            *after = sum;
            if *code == ESCAPE
                && let Some((literal, after)) = rest.next()
            {
                sum += if literal.wrapping_sub(1) < 0x7f { 1 } else { NOT_PLAIN };
                *after = sum;
            }
        }
        true
    }

    /// Appends the string that `codes` stand for; unknown codes stand for nothing.
    pub fn decode(&self, codes: &[u8], out: &mut Vec<u8>) {
        out.reserve(codes.len() * 8);
        let mut length = out.len();
        let mut index = 0;
        while index < codes.len() {
            let code = codes[index];
            let (word, len) = if code == ESCAPE {
                index += 1;
                match codes.get(index) {
                    Some(literal) => (u64::from(*literal), 1),
                    None => break,
                }
            } else {
                (self.bytes[code as usize], self.lengths[code as usize] as usize)
            };
            index += 1;
            // SAFETY: 8 bytes were reserved for each code.
            unsafe { out.as_mut_ptr().add(length).cast::<u64>().write_unaligned(word.to_le()) };
            length += len;
        }
        // SAFETY: all bytes up to `length` were written.
        unsafe { out.set_len(length) };
    }
}
