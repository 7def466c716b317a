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
        let lanes = Lanes {
            starts,
            lengths,
            encoded,
            next: std::array::from_fn(|q| bounds[q]),
            last: std::array::from_fn(|q| bounds[q + 1]),
            ends: [0; 4],
            outs: [std::ptr::null_mut(); 4],
        };
        // SAFETY: `reserve` made room for `at` bytes: twice the strings plus 8 for each stretch. At most two bytes are
        // written for each that is read, and only strings are read that were checked above to end before the padding.
        let ends = unsafe {
            let out = out.bytes.as_mut_ptr();
            let ends = self.encode_four(source, offsets.map(|offset| out.add(offset)), lanes);
            ends.map(|end| end.offset_from_unsigned(out))
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

    /// Encodes the strings of four lanes side by side; where the codes of each end.
    ///
    /// # Safety
    /// Each of `outs` has room for twice the bytes of its lane's strings and 8 more; strings are in `source` and end 8 bytes
    /// before its end, at a byte that no symbol holds.
    unsafe fn encode_four(
        &self,
        source: &[u8],
        outs: [*mut u8; 4],
        lanes: Lanes<'_>,
    ) -> [*mut u8; 4] {
        #[cfg(target_arch = "x86_64")]
        if coload_types::simd_level() >= coload_types::SimdLevel::Avx2 {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn with_bmi2(
                encoder: &SymbolEncoder,
                source: &[u8],
                outs: [*mut u8; 4],
                lanes: Lanes<'_>,
            ) -> [*mut u8; 4] {
                // SAFETY: as the caller says.
                unsafe { encoder.encode_lanes(source, outs, lanes) }
            }
            // SAFETY: the instructions are there; the rest as the caller says.
            return unsafe { with_bmi2(self, source, outs, lanes) };
        }
        // SAFETY: as the caller says.
        unsafe { self.encode_lanes(source, outs, lanes) }
    }

    /// # Safety
    /// See [`Self::encode_four`].
    #[inline(always)]
    unsafe fn encode_lanes(
        &self,
        source: &[u8],
        outs: [*mut u8; 4],
        mut lanes: Lanes<'_>,
    ) -> [*mut u8; 4] {
        let (slots, short) = (self.slots.as_ptr(), self.short.as_ptr());
        let [mut out_a, mut out_b, mut out_c, mut out_d] = outs;
        let firsts = [0, 1, 2, 3].map(|lane| lanes.begin(lane, outs[lane]));
        let [mut a, mut b, mut c, mut d] = firsts.map(Option::unwrap_or_default);
        let mut running = firsts.map(|first| first.is_some());
        // The code at a place, the next place, and where the next code goes; `None` at the end of the lane's strings.
        // What a lane needs is in two registers, so that those of four fit.
        macro_rules! step {
            ($at:ident, $out:ident, $lane:expr) => {{
                // SAFETY: the place is inside a string or at its end, which 8 bytes follow. `slot_of` is below SLOTS, and 16
                // bits index the 65,536 short ones. There is room for two bytes for each that is read, and 8 to spare.
                let (word, code_len) = unsafe {
                    let word = u64::from_le(source.as_ptr().add($at).cast::<u64>().read_unaligned());
                    let slot = &*slots.add(slot_of(word));
                    let short = *short.add((word & 0xffff) as usize);
                    // Which of the two it is cannot be predicted: no branch.
                    let hit = slot.matches(word);
                    (word, std::hint::select_unpredictable(hit, slot.code_len, u32::from(short)))
                };
                // SAFETY: as above.
                unsafe {
                    $out.write(code_len as u8);
                    $out = $out.add(1);
                }
                if code_len as u8 != ESCAPE {
                    $at += (code_len >> 8) as usize;
                } else if $at != lanes.ends[$lane] {
                    // SAFETY: as above.
                    unsafe {
                        $out.write(word as u8);
                        $out = $out.add(1);
                    }
                    $at += 1;
                } else {
                    // The byte at the end of a string is in no symbol; the code is taken back.
                    $out = $out.wrapping_sub(1);
                    lanes.finish($lane, $out);
                    match lanes.begin($lane, $out) {
                        Some(next) => $at = next,
                        None => {
                            running[$lane] = false;
                            break;
                        }
                    }
                }
            }};
        }
        if running == [true; 4] {
            loop {
                step!(a, out_a, 0);
                step!(b, out_b, 1);
                step!(c, out_c, 2);
                step!(d, out_d, 3);
            }
        }
        let (ats, mut outs) = ([a, b, c, d], [out_a, out_b, out_c, out_d]);
        for lane in 0..4 {
            let (mut at, mut out) = (ats[lane], outs[lane]);
            while running[lane] {
                step!(at, out, lane);
            }
            outs[lane] = out;
        }
        outs
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

/// The strings that four interleaved encoders encode.
struct Lanes<'a> {
    starts: &'a [u32],
    lengths: &'a [u32],
    /// Codes of each string, once it is encoded.
    encoded: &'a mut [u32],
    /// String after the current one of each lane.
    next: [usize; 4],
    last: [usize; 4],
    /// Where the current strings end.
    ends: [usize; 4],
    /// Where their codes begin.
    outs: [*mut u8; 4],
}

impl Lanes<'_> {
    /// Notes the length of the current string.
    #[inline(always)]
    fn finish(&mut self, lane: usize, out: *mut u8) {
        self.encoded[self.next[lane] - 1] = out.addr().wrapping_sub(self.outs[lane].addr()) as u32;
    }

    /// Goes to the next string that is not empty; where it starts.
    #[inline(always)]
    fn begin(&mut self, lane: usize, out: *mut u8) -> Option<usize> {
        self.outs[lane] = out;
        while self.next[lane] < self.last[lane] {
            let index = self.next[lane];
            self.next[lane] += 1;
            if self.lengths[index] > 0 {
                let start = self.starts[index] as usize;
                self.ends[lane] = start + self.lengths[index] as usize;
                return Some(start);
            }
            self.encoded[index] = 0;
        }
        None
    }
}
