//! Finds where fields and records end, 64 bytes at a time.
//!
//! ```text
//!   text         7|RAIL|"a, b"|...\n8|...
//!   separators    ^    ^      ^   ^       positions of delimiters and newlines outside quotes
//! ```
//!
//! Three compilations of one plan: compare 64 bytes with the delimiter, the newline and the quote,
//! mask out what quotes enclose (a prefix XOR over the quote bits), and write the positions of the
//! bits that are left. AVX-512 writes 16 positions at a time, the others one by one.
//!
//! Quotes are speculated on: every quote must open at the start of a field and close at its end. A
//! window in which one does not is scanned again byte by byte ([`tokenise_slowly`]), which is also
//! the model that the fast code is tested against.
//!
//! Cost: 1 byte read, and 4 bytes written for each field; about 0.2 ns a byte.
//!
//! Source: Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 28, 2019.

/// Bytes after the text of a window that may be looked at; they are not text.
pub const TEXT_PADDING: usize = 64;

/// The bytes that have a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Separators {
    /// Byte between two fields.
    pub delimiter: u8,
    /// Around a field; doubled inside it.
    pub quote: Option<u8>,
    /// Before a quote inside a quoted field, if not doubled.
    pub escape: Option<u8>,
}

/// What a window holds besides separators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether the text may not be UTF-8: a byte is over 127, and nobody has looked at what it belongs to.
    pub doubtful_utf8: bool,
    /// Whether a byte is NUL.
    pub nul: bool,
    /// Whether a byte is the quote.
    pub quote: bool,
    /// Newlines that end records.
    pub newlines: usize,
    /// The window ended inside quotes.
    pub open_quote: bool,
    /// A quote may stand where none should; then the text was read byte by byte.
    pub strays: bool,
}

/// Appends the positions of all separators in `text[start..end]` to `out`. The window starts at the
/// start of a record.
///
/// # Panics
/// When `text` does not have [`TEXT_PADDING`] bytes after `end`, or is 4 GiB long.
pub fn tokenise(
    text: &[u8],
    start: usize,
    end: usize,
    separators: Separators,
    out: &mut Vec<u32>,
) -> Seen {
    assert!(start <= end && end + TEXT_PADDING <= text.len() && text.len() < u32::MAX as usize);
    let before = out.len();
    // Worst case: every byte is a separator; AVX-512 stores 16 positions whatever it keeps.
    make_room(out, end - start + 80);
    let mut seen = Seen::default();
    if separators.escape.is_none() {
        let strays = find(text, start, end, separators, out, &mut seen);
        if !strays {
            return seen;
        }
        out.truncate(before);
    }
    let seen = tokenise_slowly(text, start, end, separators, out);
    Seen { strays: true, ..seen }
}

/// Room for so many more. A vector that grows copies all that it had room for, and so touches it; what nothing touches is
/// not in memory.
fn make_room(out: &mut Vec<u32>, more: usize) {
    if out.capacity() - out.len() < more {
        let mut roomy = Vec::with_capacity(out.len() + more);
        roomy.extend_from_slice(out);
        *out = roomy;
    }
}

/// The masks of 64 bytes.
#[derive(Clone, Copy)]
struct Masks {
    delimiter: u64,
    newline: u64,
    quote: u64,
    return_: u64,
}

/// What passes from one 64 bytes to the next.
struct Carry {
    /// All ones inside quotes.
    inside: u64,
    /// 1 when the byte before could precede an opening quote.
    opens: u64,
    /// 1 when the byte before was a closing quote.
    closed: u64,
    strays: u64,
}

impl Carry {
    fn new() -> Self {
        Carry { inside: 0, opens: 1, closed: 0, strays: 0 }
    }

    /// The bytes that quotes enclose.
    #[inline(always)]
    fn enclose(&mut self, m: Masks, valid: u64) -> u64 {
        if m.quote | self.inside | self.closed == 0 {
            self.opens = (m.delimiter | m.newline) >> 63;
            return 0;
        }
        let inside = prefix_xor(m.quote) ^ self.inside;
        let separators = (m.delimiter | m.newline) & !inside;
        let before = (separators | m.quote) << 1 | self.opens;
        let opening = m.quote & inside;
        let closing = m.quote & !inside;
        let after_closing = (closing << 1 | self.closed) & valid;
        let follows = m.delimiter | m.newline | m.quote | m.return_;
        self.strays |= opening & !before | after_closing & !follows;
        self.opens = (separators | m.quote) >> 63;
        self.closed = closing >> 63;
        self.inside = ((inside as i64) >> 63) as u64;
        inside
    }
}

/// Bit i is the parity of bits 0..=i.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ bits << 32
}

fn valid_bits(bytes: usize) -> u64 {
    if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Carry, Masks, Seen, Separators, valid_bits};
    use std::arch::x86_64::*;

    /// # Safety
    /// AVX-512 F and BW; `out` has room for a position for each byte and 16 more.
    #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) unsafe fn find_avx512(
        text: &[u8],
        start: usize,
        end: usize,
        s: Separators,
        out: &mut Vec<u32>,
        seen: &mut Seen,
    ) -> bool {
        let delimiter = _mm512_set1_epi8(s.delimiter as i8);
        let newline = _mm512_set1_epi8(b'\n' as i8);
        let quote = _mm512_set1_epi8(s.quote.unwrap_or(b'\n') as i8);
        let return_ = _mm512_set1_epi8(b'\r' as i8);
        let iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let mut high = _mm512_setzero_si512();
        let mut nul = 0u64;
        let mut carry = Carry::new();
        let mut length = out.len();
        let mut at = start;
        while at < end {
            let valid = valid_bits(end - at);
            // SAFETY: 64 bytes of padding follow `end`.
            let bytes = unsafe { _mm512_loadu_si512(text.as_ptr().add(at).cast()) };
            let bytes = _mm512_maskz_mov_epi8(valid, bytes);
            high = _mm512_or_si512(high, bytes);
            nul |= _mm512_testn_epi8_mask(bytes, bytes) & valid;
            let newlines = _mm512_cmpeq_epi8_mask(bytes, newline);
            // What is not text is NUL in `bytes`, and would be found where that is looked for.
            let mut ends = _mm512_mask_cmpeq_epi8_mask(valid, bytes, delimiter);
            let quotes = match s.quote {
                Some(_) => _mm512_mask_cmpeq_epi8_mask(valid, bytes, quote),
                None => 0,
            };
            let mut ended = newlines;
            if quotes | carry.inside | carry.closed != 0 {
                let masks = Masks {
                    delimiter: ends,
                    newline: newlines,
                    quote: quotes,
                    return_: _mm512_cmpeq_epi8_mask(bytes, return_),
                };
                seen.quote = true;
                let inside = carry.enclose(masks, valid);
                ends &= !inside;
                ended &= !inside;
            } else {
                carry.opens = (ends | newlines) >> 63;
            }
            ends |= ended;
            seen.newlines += ended.count_ones() as usize;
            let mut base = _mm512_add_epi32(_mm512_set1_epi32(at as i32), iota);
            for quarter in 0..4 {
                let mask = (ends >> (16 * quarter)) as u16;
                let positions = _mm512_maskz_compress_epi32(mask, base);
                // SAFETY: there is room for 16 more positions than bytes read so far.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(length).cast(), positions) };
                length += mask.count_ones() as usize;
                base = _mm512_add_epi32(base, _mm512_set1_epi32(16));
            }
            at += 64;
        }
        // SAFETY: `length` positions are written.
        unsafe { out.set_len(length) };
        seen.doubtful_utf8 = _mm512_movepi8_mask(high) != 0;
        seen.nul = nul != 0;
        seen.open_quote = carry.inside != 0;
        carry.strays != 0
    }

    /// # Safety
    /// AVX2 and BMI; `out` has room for a position for each byte.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) unsafe fn find_avx2(
        text: &[u8],
        start: usize,
        end: usize,
        s: Separators,
        out: &mut Vec<u32>,
        seen: &mut Seen,
    ) -> bool {
        let equal = |a: __m256i, b: __m256i, byte: u8| {
            let v = _mm256_set1_epi8(byte as i8);
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, v)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(b, v)) as u32;
            u64::from(low) | u64::from(high) << 32
        };
        super::find_by_masks(text, start, end, s, out, seen, |at| {
            // SAFETY: 64 bytes of padding follow `end`, and `at` is below `end`.
            let (a, b) = unsafe {
                let p = text.as_ptr().add(at);
                (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast()))
            };
            let high = u64::from(_mm256_movemask_epi8(a) as u32)
                | u64::from(_mm256_movemask_epi8(b) as u32) << 32;
            let masks = Masks {
                delimiter: equal(a, b, s.delimiter),
                newline: equal(a, b, b'\n'),
                quote: s.quote.map_or(0, |q| equal(a, b, q)),
                return_: equal(a, b, b'\r'),
            };
            (masks, high, equal(a, b, 0))
        })
    }
}

/// The loop of the versions that write one position at a time; `load` gives the masks of 64 bytes,
/// those over 127 and those that are NUL.
#[inline(always)]
fn find_by_masks(
    _text: &[u8],
    start: usize,
    end: usize,
    s: Separators,
    out: &mut Vec<u32>,
    seen: &mut Seen,
    load: impl Fn(usize) -> (Masks, u64, u64),
) -> bool {
    /// Positions that are written at once, be there as many or not.
    const AT_ONCE: usize = 8;
    assert!(out.capacity() - out.len() >= end - start + AT_ONCE);
    let mut carry = Carry::new();
    let (mut high_bits, mut nul_bits) = (0, 0);
    let mut at = start;
    let mut length = out.len();
    while at < end {
        let valid = valid_bits(end - at);
        let (mut m, high, nul) = load(at);
        m.delimiter &= valid;
        m.newline &= valid;
        m.quote &= valid;
        high_bits |= high & valid;
        nul_bits |= nul & valid;
        seen.quote |= m.quote != 0;
        let inside = if s.quote.is_some() { carry.enclose(m, valid) } else { 0 };
        let newlines = m.newline & !inside;
        seen.newlines += newlines.count_ones() as usize;
        let mut ends = m.delimiter & !inside | newlines;
        let mut next = length;
        length += ends.count_ones() as usize;
        // How many there are cannot be predicted, but that they are few.
        while ends != 0 {
            for i in 0..AT_ONCE {
                // SAFETY: there is room for as many positions as bytes before the end, and for those that are written
                // for nothing.
                unsafe {
                    *out.as_mut_ptr().add(next + i) = at as u32 + ends.trailing_zeros();
                }
                ends &= ends.wrapping_sub(1);
            }
            next += AT_ONCE;
        }
        at += 64;
    }
    // SAFETY: so many positions are written.
    unsafe { out.set_len(length) };
    seen.doubtful_utf8 = high_bits != 0;
    seen.nul = nul_bits != 0;
    seen.open_quote = carry.inside != 0;
    carry.strays != 0
}

fn find(
    text: &[u8],
    start: usize,
    end: usize,
    s: Separators,
    out: &mut Vec<u32>,
    seen: &mut Seen,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use coload_types::SimdLevel;
        match coload_types::simd_level() {
            // SAFETY: the level says that the instructions are there; `tokenise` made the room.
            SimdLevel::Avx512 => {
                return unsafe { x86::find_avx512(text, start, end, s, out, seen) };
            }
            // SAFETY: as above.
            SimdLevel::Avx2 => return unsafe { x86::find_avx2(text, start, end, s, out, seen) },
            SimdLevel::Portable => {}
        }
    }
    find_portable(text, start, end, s, out, seen)
}

/// Eight bytes at a time in a plain register.
fn find_portable(
    text: &[u8],
    start: usize,
    end: usize,
    s: Separators,
    out: &mut Vec<u32>,
    seen: &mut Seen,
) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Gathers the high bit of each byte into the low 8 bits.
    let gather = |x: u64| ((x >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56;
    let zero_bytes = |x: u64| !(((x & !HIGH) + !HIGH) | x | !HIGH) & HIGH;
    find_by_masks(text, start, end, s, out, seen, |at| {
        let mut m = Masks { delimiter: 0, newline: 0, quote: 0, return_: 0 };
        let (mut high, mut nul) = (0, 0);
        for i in 0..8 {
            let mut raw = [0; 8];
            raw.copy_from_slice(&text[at + i * 8..at + i * 8 + 8]);
            let word = u64::from_le_bytes(raw);
            let equal = |byte: u8| gather(zero_bytes(word ^ (LOW * u64::from(byte)))) << (8 * i);
            m.delimiter |= equal(s.delimiter);
            m.newline |= equal(b'\n');
            m.quote |= s.quote.map_or(0, equal);
            m.return_ |= equal(b'\r');
            nul |= equal(0);
            high |= gather(word & HIGH) << (8 * i);
        }
        (m, high, nul)
    })
}

/// The plain state machine: a quote opens only at the start of a field, and closes where it is not
/// doubled or escaped. What stands between a closing quote and the next separator belongs to the
/// field (and is refused when the field is read).
pub fn tokenise_slowly(
    text: &[u8],
    start: usize,
    end: usize,
    s: Separators,
    out: &mut Vec<u32>,
) -> Seen {
    let mut seen = Seen::default();
    let mut quoted = false;
    let mut field_start = true;
    let mut at = start;
    while at < end {
        let byte = text[at];
        seen.doubtful_utf8 |= byte >= 0x80;
        seen.nul |= byte == 0;
        if quoted {
            if s.escape == Some(byte) && s.escape != s.quote && at + 1 < end {
                at += 1;
                seen.doubtful_utf8 |= text[at] >= 0x80;
                seen.nul |= text[at] == 0;
            } else if s.quote == Some(byte) {
                if at + 1 < end && s.quote == Some(text[at + 1]) {
                    at += 1;
                } else {
                    quoted = false;
                }
            }
        } else if field_start && s.quote == Some(byte) {
            quoted = true;
            seen.quote = true;
            field_start = false;
        } else if byte == s.delimiter || byte == b'\n' {
            out.push(at as u32);
            seen.newlines += usize::from(byte == b'\n');
            field_start = true;
        } else {
            field_start = false;
        }
        at += 1;
    }
    seen.open_quote = quoted;
    seen
}

#[cfg(test)]
mod tests;
