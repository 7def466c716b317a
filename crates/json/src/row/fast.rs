//! Fields that are as they were in the records before: the same key behind the same key, and a short value without escapes.
//!
//! ```text
//!   "l_orderkey":170223,"l_partkey": ...
//!   ^ 32 bytes are compared with the key that is guessed
//!                ^ 32 bytes tell where the value ends, of a string 64, and are written as they are
//! ```
//!
//! What is otherwise in any way is left to who reads all. About 90 instructions a field.

use super::{Read, Rows};
use crate::keys::{Entry, Target};
use crate::masks::{STEP, equal, no_digits, special_in_string};

/// Bytes of a key, a value and what stands around them.
const FIELD_BYTES: usize = 3 * STEP;

/// Most bytes of a string that are looked at.
const STRING_BYTES: usize = 2 * STEP;

/// A key, and what it was like in the records before.
#[derive(Debug)]
pub struct Usual {
    /// The key in quotes, with its colon.
    quoted: [u8; STEP],
    /// A bit for each byte of it; none where it is not compared.
    bits: u32,
    /// The record in which it was met last.
    pub met: u32,
    /// The entry that came behind it, the last time.
    pub next: u32,
    /// The field that its value is; none for an object.
    pub field: u32,
    /// How its value is written.
    pub read: Read,
}

impl Usual {
    /// Nothing was met yet.
    pub fn new(entry: &Entry) -> Self {
        let length = entry.length as usize;
        let fits = (1..STEP).contains(&length);
        let mut quoted = entry.quoted;
        if fits {
            quoted[length] = b':';
        }
        let field = match entry.target {
            Target::Field(field) => field,
            Target::Object(_) => u32::MAX,
        };
        Usual {
            quoted,
            bits: if fits { (2_u64 << length).wrapping_sub(1) as u32 } else { 0 },
            met: 0,
            next: entry.next,
            field,
            read: Read::Nothing,
        }
    }
}

/// How far a record was read.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// Where the next key stands; or the bracket that closes the object, if it is not open.
    pub at: usize,
    /// The entry that comes next, most likely.
    pub guess: u32,
    /// The entry before.
    pub before: u32,
    /// Fields up to this one are written.
    pub written: u32,
    /// Whether a key follows.
    pub is_open: bool,
}

/// Reads fields as long as they are as usual.
#[inline(always)]
pub fn read_fields(
    text: &[u8],
    usual: &mut [Usual],
    record: u32,
    mut begun: Begun,
    rows: &mut Rows,
) -> Begun {
    let fields = usual.len();
    // No field is written twice, and there are no more than entries.
    rows.text.reserve(fields * (STRING_BYTES + 1) + STRING_BYTES);
    rows.ends.reserve(fields);
    let (mut length, mut count) = (rows.text.len(), rows.ends.len());
    let (out, ends) = (rows.text.as_mut_ptr(), rows.ends.as_mut_ptr());
    for _ in 0..fields {
        let Some(key) = usual.get_mut(begun.guess as usize) else { break };
        let Some(bytes) = text.get(begun.at..).and_then(<[u8]>::first_chunk) else { break };
        let Some((value, end)) = find_value(bytes, key) else { break };
        if key.met == record || key.field != begun.written {
            break;
        }
        let Some([next, behind]) = bytes.get(end..).and_then(<[u8]>::first_chunk) else { break };
        let (next, behind) = (*next, *behind);
        if next != b',' && next != b'}' {
            break;
        }
        let Some(from) = bytes.get(value.start..value.start + STEP) else { break };
        let more = bytes.get(value.start + STEP..value.start + STRING_BYTES);
        // SAFETY: there is room for 65 bytes and a number for each of so many fields, and 64 bytes behind.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), out.add(length), STEP);
            if value.length > STEP {
                let Some(more) = more else { break };
                std::ptr::copy_nonoverlapping(more.as_ptr(), out.add(length + STEP), STEP);
            }
            length += value.length;
            out.add(length).write(b'\n');
            ends.add(count).write(length as u32);
        }
        length += 1;
        count += 1;
        key.met = record;
        begun.before = begun.guess;
        begun.guess = key.next;
        begun.written += 1;
        if next == b'}' {
            begun.at += end;
            begun.is_open = false;
            break;
        }
        begun.at += end + 1 + usize::from(behind == b' ');
    }
    // SAFETY: so many were written.
    unsafe {
        rows.text.set_len(length);
        rows.ends.set_len(count);
    }
    begun
}

/// Bytes of a value that are written.
struct Value {
    start: usize,
    length: usize,
}

/// The value behind a key, and where it ends; `None` where the key is another, or the value is not told at a look.
#[inline(always)]
fn find_value(bytes: &[u8; FIELD_BYTES], key: &Usual) -> Option<(Value, usize)> {
    let first: &[u8; STEP] = bytes.first_chunk()?;
    if equal(first, &key.quoted) & key.bits != key.bits || key.bits == 0 {
        return None;
    }
    let colon = key.bits.count_ones() as usize;
    let start = colon + usize::from(bytes[colon] == b' ');
    let value: &[u8; STEP] = bytes.get(start..)?.first_chunk()?;
    match (value[0], key.read) {
        (b'"', Read::Text) => {
            let inner: &[u8; STEP] = bytes.get(start + 1..)?.first_chunk()?;
            let mut length = special_in_string(inner).trailing_zeros() as usize;
            if length == STEP {
                let more: &[u8; STEP] = bytes.get(start + 1 + STEP..)?.first_chunk()?;
                length += special_in_string(more).trailing_zeros() as usize;
            }
            // An empty string is written in quotes.
            if length == 0 || bytes.get(start + 1 + length) != Some(&b'"') {
                return None;
            }
            Some((Value { start: start + 1, length }, start + length + 2))
        }
        (b'-' | b'0'..=b'9', Read::Text | Read::Typed) => {
            let length = number_length(value)?;
            Some((Value { start, length }, start + length))
        }
        (b'n', _) if value.starts_with(b"null") => Some((Value { start, length: 0 }, start + 4)),
        (b't', Read::Text | Read::Typed) if value.starts_with(b"true") => {
            Some((Value { start, length: 4 }, start + 4))
        }
        (b'f', Read::Text | Read::Typed) if value.starts_with(b"false") => {
            Some((Value { start, length: 5 }, start + 5))
        }
        _ => None,
    }
}

/// Bytes of a number without an exponent.
#[inline(always)]
fn number_length(bytes: &[u8; STEP]) -> Option<usize> {
    let others = u64::from(no_digits(bytes)) | 1 << STEP;
    let sign = u64::from(bytes[0] == b'-');
    let whole = (others >> sign).trailing_zeros() as u64;
    let end = sign + whole;
    let first = bytes[sign as usize];
    if whole == 0 || first == b'0' && whole > 1 || end >= 31 {
        return None;
    }
    let last = bytes[end as usize];
    if last != b'.' {
        return (last | 0x20 != b'e').then_some(end as usize);
    }
    let digits = (others >> (end + 1)).trailing_zeros() as u64;
    let end = end + 1 + digits;
    let is_one = digits > 0 && end < 32 && bytes[end as usize] | 0x20 != b'e';
    is_one.then_some(end as usize)
}
