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

use std::borrow::Cow;

use foldhash::HashMap;

use crate::{Error, Result, Strings};

/// The code that says that a literal byte follows.
pub(crate) const ESCAPE: u8 = 255;
/// Most symbols in a table.
const SYMBOLS_MAX: usize = 255;
/// Slots of the table of symbols of three bytes and more.
const SLOTS: usize = 1024;
/// Bytes after the end of a source that the encoder may look at.
pub const SOURCE_PADDING: usize = 8;
/// How much of a sample is looked at: more costs time and gains under 1 %.
const SAMPLE_BYTES: usize = 16 << 10;
/// The sample is made of parts of so many bytes.
const PART_BYTES: usize = 512;
/// Bytes of strings that are encoded at once. Room is made for twice as many, and where they have to be copied, it is these.
const ENCODED_AT_ONCE: usize = 1 << 20;
/// Strings whose places are noted at once.
const STRINGS_AT_ONCE: usize = 1 << 14;
/// Room in the output beyond twice the strings: each of the four encoders may write some bytes past its own.
const ROOM_BEYOND: usize = 64;
/// Rounds of training, as in the paper.
const ROUNDS: usize = 5;

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

/// Parts all over string 0, 1, .. of `count`, [`SAMPLE_BYTES`] at most.
fn parts<'a>(count: usize, string: impl Fn(usize) -> &'a [u8]) -> Vec<&'a [u8]> {
    let mut text = Vec::new();
    let places = count.min(SAMPLE_BYTES / PART_BYTES);
    for place in 0..places {
        let (first, end) = (place * count / places, (place + 1) * count / places);
        let mut left = SAMPLE_BYTES / places;
        for s in (first..end).map(&string) {
            left -= take_parts(s, left, &mut text);
            if left == 0 {
                break;
            }
        }
    }
    text
}

/// Appends parts of a string with at most so many bytes together; how many.
fn take_parts<'a>(string: &'a [u8], most: usize, to: &mut Vec<&'a [u8]>) -> usize {
    if string.len() <= most {
        to.push(string);
        return string.len();
    }
    let parts = (most / PART_BYTES).max(1);
    let length = most / parts;
    to.extend((0..parts).map(|part| &string[part * string.len() / parts..][..length]));
    parts * length
}

fn mask(len: usize) -> u64 {
    if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 }
}

/// 16 bytes: the table fits the first-level cache.
#[derive(Clone, Copy)]
struct Slot {
    bytes: u64,
    /// Code in the low byte, length above; 0 when empty (and then `bytes` cannot match).
    code_len: u32,
    /// High bits of a word that are not the symbol's.
    drop: u32,
}

impl Slot {
    #[inline(always)]
    fn matches(self, word: u64) -> bool {
        word & (u64::MAX >> self.drop) == self.bytes
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
    /// All codes.
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
    /// Chooses the symbols for strings like string 0, 1, .. of `count`. Looks at parts all over them, for the first may be
    /// of another kind than the rest.
    pub fn train<'a>(count: usize, string: impl Fn(usize) -> &'a [u8]) -> Self {
        let text = parts(count, string);
        let mut encoder = SymbolEncoder::new(Vec::new());
        for _ in 0..ROUNDS {
            encoder = SymbolEncoder::new(encoder.next_symbols(&text));
        }
        encoder
    }

    /// Chooses the symbols for strings like these.
    pub fn train_strings(texts: &[&Strings]) -> Self {
        let mut ends = Vec::with_capacity(texts.len());
        let mut count = 0;
        for strings in texts {
            count += strings.len();
            ends.push(count);
        }
        SymbolEncoder::train(count, |index| {
            let of = ends.partition_point(|end| *end <= index);
            texts[of].get(index - (ends[of] - texts[of].len()))
        })
    }

    /// Whether parts of string 0, 1, .. of `count` become shorter.
    pub fn shortens<'a>(&self, count: usize, string: impl Fn(usize) -> &'a [u8]) -> bool {
        let mut encoded = EncodedStrings::default();
        for part in parts(count, string) {
            self.encode_copy(part, &[0], &[part.len() as u32], &mut encoded);
            encoded.source_bytes += part.len();
        }
        encoded.bytes.len() <= encoded.source_bytes
    }

    /// One round: the symbols, pairs of neighbours and single bytes that would save most.
    fn next_symbols(&self, text: &[&[u8]]) -> Vec<Symbol> {
        let mut gains: HashMap<Symbol, u64> = HashMap::default();
        for s in text {
            let mut rest = *s;
            let mut previous: Option<Symbol> = None;
            while !rest.is_empty() {
                let symbol = self.longest(rest);
                let single = Symbol { bytes: u64::from(rest[0]), len: 1 };
                if rest[0] != 0 {
                    *gains.entry(symbol).or_default() += u64::from(symbol.len) * boost(symbol);
                    if symbol.len > 1 {
                        *gains.entry(single).or_default() += boost(single);
                    }
                    for next in [symbol, single] {
                        if let Some(joined) = previous.and_then(|p| p.join(next)) {
                            *gains.entry(joined).or_default() += u64::from(joined.len);
                        }
                        if next == single {
                            break;
                        }
                    }
                }
                previous = (rest[0] != 0).then_some(symbol);
                rest = &rest[symbol.len as usize..];
            }
        }
        let mut best: Vec<(u64, Symbol)> = gains.into_iter().map(|(s, g)| (g, s)).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        best.truncate(SYMBOLS_MAX);
        best.into_iter().map(|(_, s)| s).collect()
    }

    fn longest(&self, text: &[u8]) -> Symbol {
        let word = load_short(text);
        let slot = &self.slots[slot_of(word)];
        let code_len = if slot.code_len != 0 && slot.matches(word) {
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
        let mut slots =
            vec![Slot { bytes: u64::MAX, code_len: 0, drop: 1 }; SLOTS].into_boxed_slice();
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
        SymbolEncoder { symbols, slots, short, stops }
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

    /// The table as bytes, for [`SymbolDecoder::open`].
    pub fn table(&self) -> Vec<u8> {
        let mut out = vec![self.symbols.len() as u8];
        for s in &self.symbols {
            out.push(s.len);
            out.extend_from_slice(&s.bytes.to_le_bytes()[..s.len as usize]);
        }
        out
    }

    /// Encodes the strings `source[starts[i]..][..lengths[i]]` and appends them to `out`.
    ///
    /// # Panics
    /// When a string is not within `source`.
    pub fn encode(&self, source: &[u8], starts: &[u32], lengths: &[u32], out: &mut EncodedStrings) {
        let total: usize = lengths.iter().map(|l| *l as usize).sum();
        // Room for the worst case, which is not touched if it does not come.
        out.bytes.reserve(2 * total + ROOM_BEYOND);
        out.source_bytes += total;
        self.encode_groups(source, starts, lengths, out, usize::MAX);
    }

    /// Encodes strings, and gives up where their codes take more than they do.
    pub fn encode_strings(&self, strings: &Strings) -> Option<EncodedStrings> {
        let most = strings.bytes.len();
        let mut out = EncodedStrings { source_bytes: most, ..Default::default() };
        // Room that is not touched if the codes are as few as they should be.
        out.bytes.reserve_exact(most + 2 * ENCODED_AT_ONCE + ROOM_BEYOND);
        let (mut starts, mut lengths, mut start) = (Vec::new(), Vec::new(), 0);
        for ends in strings.ends.chunks(STRINGS_AT_ONCE) {
            starts.clear();
            lengths.clear();
            for end in ends {
                starts.push(start);
                lengths.push(end - start);
                start = *end;
            }
            if !self.encode_groups(&strings.bytes, &starts, &lengths, &mut out, most) {
                return None;
            }
        }
        Some(out)
    }

    /// Encodes strings until there are more than `most` bytes of codes; whether there are not.
    fn encode_groups(
        &self,
        source: &[u8],
        starts: &[u32],
        lengths: &[u32],
        out: &mut EncodedStrings,
        most: usize,
    ) -> bool {
        assert_eq!(starts.len(), lengths.len());
        let mut first = 0;
        while first < starts.len() {
            let mut bytes = lengths[first] as usize;
            let mut end = first + 1;
            while end < starts.len() && bytes + lengths[end] as usize <= ENCODED_AT_ONCE {
                bytes += lengths[end] as usize;
                end += 1;
            }
            let (group, of) = (&starts[first..end], &lengths[first..end]);
            match group {
                [start] if bytes > ENCODED_AT_ONCE => {
                    self.encode_long(&source[*start as usize..][..bytes], out, most);
                }
                _ if self.stands_alone(source, group, of) => {
                    self.encode_in_place(source, group, of, out);
                }
                _ => self.encode_copy(source, group, of, out),
            }
            if out.bytes.len() > most {
                return false;
            }
            first = end;
        }
        true
    }

    /// Encodes a string in parts, until there are more than `most` bytes of codes.
    fn encode_long(&self, string: &[u8], out: &mut EncodedStrings, most: usize) {
        let before = out.lengths.len();
        for part in string.chunks(ENCODED_AT_ONCE) {
            self.encode_copy(part, &[0], &[part.len() as u32], out);
            if out.bytes.len() > most {
                break;
            }
        }
        let length = out.lengths.drain(before..).sum();
        out.lengths.push(length);
    }

    /// Whether a byte that no symbol holds follows each string, and enough may be read behind it.
    fn stands_alone(&self, source: &[u8], starts: &[u32], lengths: &[u32]) -> bool {
        starts.iter().zip(lengths).all(|(start, length)| {
            let end = *start as usize + *length as usize;
            end + SOURCE_PADDING <= source.len() && self.stops[source[end] as usize]
        })
    }

    /// Encodes a copy of the strings in which a NUL follows each.
    fn encode_copy(
        &self,
        source: &[u8],
        starts: &[u32],
        lengths: &[u32],
        out: &mut EncodedStrings,
    ) {
        let mut copy = Vec::new();
        let mut copy_starts = Vec::with_capacity(starts.len());
        for (s, l) in starts.iter().zip(lengths) {
            copy_starts.push(copy.len() as u32);
            copy.extend_from_slice(&source[*s as usize..][..*l as usize]);
            copy.push(0);
        }
        copy.extend([0; SOURCE_PADDING]);
        self.encode_in_place(&copy, &copy_starts, lengths, out);
    }

    /// # Panics
    /// When a string does not end [`SOURCE_PADDING`] bytes before the end of `source`.
    fn encode_in_place(
        &self,
        source: &[u8],
        starts: &[u32],
        lengths: &[u32],
        out: &mut EncodedStrings,
    ) {
        let (mut end, mut total) = (0, 0);
        for (s, l) in starts.iter().zip(lengths) {
            end = end.max(*s as usize + *l as usize);
            total += *l as usize;
        }
        assert!(end + SOURCE_PADDING <= source.len());
        let count = starts.len();
        let first_length = out.lengths.len();
        out.lengths.resize(first_length + count, 0);
        let encoded = &mut out.lengths[first_length..];
        // Four stretches of strings of about as many bytes, so that they end together, each with room
        // for the worst case; then closed up.
        let bounds = quarters(lengths, total);
        let room: [usize; 4] = std::array::from_fn(|q| {
            lengths[bounds[q]..bounds[q + 1]].iter().map(|l| *l as usize * 2).sum::<usize>() + 8
        });
        let base = out.bytes.len();
        out.bytes.reserve(2 * total + ROOM_BEYOND);
        let mut at = base;
        let offsets: [usize; 4] = std::array::from_fn(|q| {
            let start = at;
            at += room[q];
            start
        });
        let cursors = std::array::from_fn(|q| Cursor {
            next: bounds[q],
            last: bounds[q + 1],
            position: 0,
            end: 0,
            out: offsets[q],
            string_start: offsets[q],
        });
        // SAFETY: `reserve` made room for `at` bytes: twice the strings plus 8 for each stretch.
        // `encode_four` writes at most two bytes for each byte it reads, and reads only strings
        // that were checked above to end before the padding.
        let ends = unsafe {
            self.encode_four(source, starts, lengths, out.bytes.as_mut_ptr(), encoded, cursors)
        };
        let mut length = base;
        for q in 0..4 {
            let size = ends[q] - offsets[q];
            // SAFETY: both ranges lie in the reserved room; `encode_four` wrote the source range.
            unsafe {
                let p = out.bytes.as_mut_ptr();
                std::ptr::copy(p.add(offsets[q]), p.add(length), size);
            }
            length += size;
        }
        // SAFETY: the first `length` bytes are written.
        unsafe { out.bytes.set_len(length) };
    }

    /// # Safety
    /// `out` has room at each cursor for twice the bytes of its strings and 8 more; strings end 8
    /// bytes before the end of `source`.
    unsafe fn encode_four(
        &self,
        source: &[u8],
        starts: &[u32],
        lengths: &[u32],
        out: *mut u8,
        encoded: &mut [u32],
        mut cursors: [Cursor; 4],
    ) -> [usize; 4] {
        let mut running = 0;
        for c in &mut cursors {
            running += usize::from(c.advance(starts, lengths, encoded));
        }
        if running == 4 {
            let [mut a, mut b, mut c, mut d] = cursors;
            loop {
                // SAFETY: each cursor stands in a string.
                unsafe {
                    self.step(source, out, &mut a);
                    self.step(source, out, &mut b);
                    self.step(source, out, &mut c);
                    self.step(source, out, &mut d);
                }
                if (a.position >= a.end && !a.finish(starts, lengths, encoded))
                    | (b.position >= b.end && !b.finish(starts, lengths, encoded))
                    | (c.position >= c.end && !c.finish(starts, lengths, encoded))
                    | (d.position >= d.end && !d.finish(starts, lengths, encoded))
                {
                    break;
                }
            }
            cursors = [a, b, c, d];
        }
        for c in &mut cursors {
            while c.position < c.end {
                // SAFETY: as above.
                unsafe { self.step(source, out, c) };
                if c.position >= c.end {
                    c.finish(starts, lengths, encoded);
                }
            }
        }
        cursors.map(|c| c.out)
    }

    /// # Safety
    /// See [`Self::encode_four`]; `c.position < c.end`.
    #[inline(always)]
    unsafe fn step(&self, source: &[u8], out: *mut u8, c: &mut Cursor) {
        // SAFETY: the position is inside a string, and 8 bytes follow every string.
        let word = unsafe { source.as_ptr().add(c.position).cast::<u64>().read_unaligned() };
        let word = u64::from_le(word);
        // SAFETY: `slot_of` is below SLOTS, and 16 bits index the 65,536 short ones.
        let (slot, short) = unsafe {
            (
                self.slots.get_unchecked(slot_of(word)),
                *self.short.get_unchecked((word & 0xffff) as usize),
            )
        };
        let hit = slot.matches(word);
        // Which of the two it is cannot be predicted: no branch.
        let code_len = std::hint::select_unpredictable(hit, slot.code_len, u32::from(short));
        let code = code_len as u8;
        // SAFETY: at most two bytes for one byte read, and the stretch has 8 to spare.
        unsafe {
            out.add(c.out).write(code);
            out.add(c.out + 1).write(word as u8);
        }
        c.out += 1 + usize::from(code == ESCAPE);
        c.position += (code_len >> 8) as usize;
    }
}

/// Where four stretches of about a quarter of the bytes start and end.
fn quarters(lengths: &[u32], total: usize) -> [usize; 5] {
    let mut bounds = [0, 0, 0, 0, lengths.len()];
    let (mut string, mut bytes) = (0, 0);
    for (quarter, bound) in bounds[1..4].iter_mut().enumerate() {
        while bytes * 4 < total * (quarter + 1) {
            bytes += lengths[string] as usize;
            string += 1;
        }
        *bound = string;
    }
    bounds
}

/// Single bytes are worth more than their count says: each spares an escape.
fn boost(symbol: Symbol) -> u64 {
    if symbol.len == 1 { 8 } else { 1 }
}

fn load_short(text: &[u8]) -> u64 {
    let mut raw = [0; 8];
    let n = text.len().min(8);
    raw[..n].copy_from_slice(&text[..n]);
    u64::from_le_bytes(raw)
}

/// Where one of the four interleaved encoders stands.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    /// String after the current one.
    next: usize,
    last: usize,
    position: usize,
    end: usize,
    out: usize,
    string_start: usize,
}

impl Cursor {
    /// Notes the length of the current string and goes to the next; whether there is one.
    #[inline(always)]
    fn finish(&mut self, starts: &[u32], lengths: &[u32], encoded: &mut [u32]) -> bool {
        encoded[self.next - 1] = (self.out - self.string_start) as u32;
        self.advance(starts, lengths, encoded)
    }

    /// Goes to the next string that is not empty; whether there is one.
    #[inline(always)]
    fn advance(&mut self, starts: &[u32], lengths: &[u32], encoded: &mut [u32]) -> bool {
        self.string_start = self.out;
        while self.next < self.last {
            let index = self.next;
            self.next += 1;
            if lengths[index] > 0 {
                self.position = starts[index] as usize;
                self.end = self.position + lengths[index] as usize;
                return true;
            }
            encoded[index] = 0;
        }
        (self.position, self.end) = (0, 0);
        false
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(strings: &[Vec<u8>]) -> (usize, usize) {
        let encoder = SymbolEncoder::train(strings.len(), |i| &strings[i]);
        let mut source = Vec::new();
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        for s in strings {
            starts.push(source.len() as u32);
            lengths.push(s.len() as u32);
            source.extend_from_slice(s);
        }
        let plain = source.len();
        source.extend([b'x'; SOURCE_PADDING]);
        let mut out = EncodedStrings::default();
        encoder.encode(&source, &starts, &lengths, &mut out);
        let decoder = SymbolDecoder::open(&encoder.table()).expect("own table");
        let mut at = 0;
        for (s, l) in strings.iter().zip(&out.lengths) {
            let mut back = Vec::new();
            decoder.decode(&out.bytes[at..at + *l as usize], &mut back);
            assert_eq!(&back, s);
            at += *l as usize;
        }
        assert_eq!(at, out.bytes.len());
        (plain, at)
    }

    #[test]
    fn words_shrink_and_come_back() {
        let words = ["furiously ", "carefully ", "deposits ", "sleep ", "quickly", "", ". ironic"];
        let strings: Vec<Vec<u8>> = (0..997)
            .map(|i| (0..i % 7).flat_map(|j| words[(i * j + i) % 7].bytes()).collect())
            .collect();
        let (plain, encoded) = round_trip(&strings);
        assert!(encoded * 3 < plain, "{encoded} of {plain}");
    }

    #[test]
    fn any_bytes_come_back() {
        let mut state = 1u64;
        for count in [0, 1, 2, 3, 5, 300] {
            let strings: Vec<Vec<u8>> = (0..count)
                .map(|i| {
                    (0..i % 19)
                        .map(|_| {
                            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                            (state >> 60) as u8 * if state >> 40 & 1 == 1 { 17 } else { 0 }
                        })
                        .collect()
                })
                .collect();
            round_trip(&strings);
        }
    }

    /// Letters and digits in an order that does not repeat.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"abcdefghijklmnopqrstuvwxyz0123456789"[(state >> 59) as usize]
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn texts_unlike_the_sample_are_kept_as_they_are() {
        let encoder = SymbolEncoder::train(1, |_| b"0123456789 0123456789".as_slice());
        let mut texts = Strings::default();
        for (seed, length) in [(1, 0), (2, 9), (3, 3 << 20), (4, 70_000)] {
            texts.push(&noise(seed, length).to_ascii_uppercase());
        }
        assert!(encoder.encode_strings(&texts).is_none());
        let lengths: Vec<u32> = texts.iter().map(|s| s.len() as u32).collect();
        let starts: Vec<u32> = texts.ends.iter().zip(&lengths).map(|(e, l)| e - l).collect();
        let mut encoded = EncodedStrings::default();
        encoder.encode(&texts.bytes, &starts, &lengths, &mut encoded);
        assert!(encoded.bytes.len() > texts.bytes.len());
        let (settled, symbols) = encoded.settle(&encoder).expect("own codes");
        assert_eq!((symbols, &settled.bytes, &settled.lengths), (0, &texts.bytes, &lengths));
    }

    #[test]
    fn the_sample_is_of_all_strings() {
        let mut short = Strings::default();
        short.push(b"0x12");
        let mut long = Strings::default();
        (1..3).for_each(|seed| long.push(&noise(seed, 3 << 20)));
        let encoder = SymbolEncoder::train_strings(&[&short, &long]);
        let encoded = encoder.encode_strings(&long).expect("shorter");
        assert!(encoded.bytes.len() < long.bytes.len(), "{} bytes", encoded.bytes.len());
        let decoder = SymbolDecoder::open(&encoder.table()).expect("own table");
        let (mut at, mut back) = (0, Strings::default());
        for length in encoded.lengths {
            let mut string = Vec::new();
            decoder.decode(&encoded.bytes[at..at + length as usize], &mut string);
            back.push(&string);
            at += length as usize;
        }
        assert_eq!(back, long);
    }

    #[test]
    fn hostile_tables_are_refused() {
        for table in [&[][..], &[1], &[1, 9, 0], &[1, 2, 7], &[0, 0], &[1, 0]] {
            assert!(SymbolDecoder::open(table).is_err());
        }
    }
}
