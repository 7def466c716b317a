//! Strings to codes.

use coload_types::Strings;

use super::{ESCAPE, EncodedStrings, SOURCE_PADDING, SymbolEncoder, slot_of};

/// Bytes of strings that are encoded at once. Room is made for twice as many, and where they have to be copied, it is these.
const ENCODED_AT_ONCE: usize = 1 << 20;

/// Strings whose places are noted at once.
const STRINGS_AT_ONCE: usize = 1 << 14;

/// Room in the output beyond twice the strings: each of the four encoders may write some bytes past its own.
const ROOM_BEYOND: usize = 64;

impl SymbolEncoder {
    /// Encodes the strings `source[starts[i]..][..lengths[i]]` and appends them to `out`.
    ///
    /// # Panics
    /// When a string is not within `source`.
    pub fn encode(&self, source: &[u8], starts: &[u32], lengths: &[u32], out: &mut EncodedStrings) {
        let total: usize = lengths.iter().map(|l| *l as usize).sum();
        if self.keeps_strings {
            out.source_bytes += total;
            out.bytes.reserve(total);
            for (start, length) in starts.iter().zip(lengths) {
                out.bytes.extend_from_slice(&source[*start as usize..][..*length as usize]);
            }
            out.lengths.extend_from_slice(lengths);
            return;
        }
        // Room for the worst case, which is not touched if it does not come.
        out.bytes.reserve(2 * total + ROOM_BEYOND);
        out.source_bytes += total;
        self.encode_groups(source, starts, lengths, out, usize::MAX);
    }

    /// Encodes strings, and gives up where their codes take more than they do, or another codec makes more of them.
    pub fn encode_strings(&self, strings: &Strings) -> Option<EncodedStrings> {
        if self.keeps_strings {
            return None;
        }
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
