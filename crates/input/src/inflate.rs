//! Deflate (RFC 1951) in steps: takes what there is of the input, and makes as much text as has room.
//!
//! Between two steps the decoder holds less than 8 bits and the last 32 KiB of text; so a step may be
//! given any input and any room. Most symbols are decoded by a loop that needs 32 bytes of input and
//! 320 bytes of room and looks neither up; near an end they are decoded one at a time.
//!
//! Costs about 0.7 ns a byte of text (a look-up for up to three literals and the length of a match, one for its
//! distance); 61 KiB of memory. With a literal a look-up it was 0.83 of ISA-L's speed on lineitem; tables of 12 bits and
//! copies of 32 bytes at once were tried and not kept.
//!
//! Source: the loop follows libdeflate (Eric Biggers), which decodes whole buffers only.

mod fast;
mod tables;

use tables::{
    DISTANCE_BITS, DISTANCE_SYMBOLS, END, EXCEPTIONAL, LENGTH_BITS, LENGTH_SYMBOLS, LITERAL,
    PRECODE_BITS, SUBTABLE, Tables, build_precode,
};

/// How far back a match may reach.
const HISTORY_BYTES: usize = 32 << 10;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflated {
    /// Bytes taken of the input.
    pub consumed: usize,
    /// Bytes put into the output.
    pub produced: usize,
    /// Whether the last block has ended.
    pub ended: bool,
}

/// A decoder of one deflate stream.
pub struct Inflate {
    /// Bits taken of the input and not used, the next one lowest.
    bits: u64,
    count: u32,
    place: Place,
    last: bool,
    tables: Box<Tables>,
    /// The text before the next, at its end.
    history: Box<[u8]>,
    history_bytes: usize,
}

/// Where the decoder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    BlockStart,
    Stored { left: usize },
    Symbols,
    Match { length: usize, distance: usize },
    End,
}

enum Stop {
    /// The input has ended.
    Input,
    /// The room is used.
    Room,
    /// The data are damaged.
    Wrong(&'static str),
}

impl From<&'static str> for Stop {
    fn from(text: &'static str) -> Self {
        Stop::Wrong(text)
    }
}

/// Input and output of a step, and the bits between them. Bits at `count` and above are those of the
/// input that follow, or 0.
struct Stream<'a> {
    input: &'a [u8],
    at: usize,
    bits: u64,
    count: u32,
    out: &'a mut [u8],
    made: usize,
}

impl Stream<'_> {
    /// Sees to it that there are `bits` bits, at most 56.
    fn need(&mut self, bits: u32) -> Result<(), Stop> {
        while self.count < bits {
            let byte = *self.input.get(self.at).ok_or(Stop::Input)?;
            self.bits |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
        Ok(())
    }

    /// As many bits as there are, up to 56.
    fn fill(&mut self) {
        // At the end of the input there are fewer.
        let _ = self.need(49);
    }

    fn take(&mut self, bits: u32) -> u32 {
        let value = self.bits & ((1 << bits) - 1);
        self.bits >>= bits;
        self.count -= bits;
        value as u32
    }

    fn read(&mut self, bits: u32) -> Result<u32, Stop> {
        self.need(bits)?;
        Ok(self.take(bits))
    }

    /// Gives whole bytes back to the input.
    fn give_back(&mut self) {
        self.at -= (self.count >> 3) as usize;
        self.count &= 7;
        self.bits &= (1 << self.count) - 1;
    }
}

impl Inflate {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Inflate {
            bits: 0,
            count: 0,
            place: Place::BlockStart,
            last: false,
            tables: Tables::new(),
            history: vec![0; HISTORY_BYTES].into_boxed_slice(),
            history_bytes: 0,
        }
    }

    /// Goes to the start of another stream.
    pub fn reset(&mut self) {
        (self.bits, self.count) = (0, 0);
        (self.place, self.last) = (Place::BlockStart, false);
        self.history_bytes = 0;
    }

    /// Decodes until the input or the room is used, or the stream ends. A step that takes nothing and
    /// makes nothing needs more input than it was given; 700 bytes are always enough.
    ///
    /// # Errors
    /// What is wrong with the data.
    pub fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Inflated, &'static str> {
        let (bits, count) = (self.bits, self.count);
        let mut stream = Stream { input, at: 0, bits, count, out, made: 0 };
        let stop = self.decode(&mut stream);
        if self.place == Place::End {
            stream.take(stream.count & 7);
        }
        stream.give_back();
        let Stream { at, bits, count, made, .. } = stream;
        (self.bits, self.count) = (bits, count);
        self.keep(&out[..made]);
        match stop {
            Err(Stop::Wrong(text)) => Err(text),
            _ => Ok(Inflated { consumed: at, produced: made, ended: self.place == Place::End }),
        }
    }

    fn decode(&mut self, stream: &mut Stream<'_>) -> Result<(), Stop> {
        loop {
            match self.place {
                Place::BlockStart => self.start_block(stream)?,
                Place::Stored { left } => self.copy_stored(stream, left)?,
                Place::Symbols => {
                    if self.decode_fast(stream)? {
                        self.end_block();
                    } else {
                        self.decode_symbol(stream)?;
                    }
                }
                Place::Match { length, distance } => self.copy_match(stream, length, distance)?,
                Place::End => return Ok(()),
            }
        }
    }

    /// Reads the header of a block, all of it or nothing.
    fn start_block(&mut self, stream: &mut Stream<'_>) -> Result<(), Stop> {
        let before = (stream.at, stream.bits, stream.count);
        let started = self.read_block_header(stream);
        if let Err(Stop::Input) = started {
            (stream.at, stream.bits, stream.count) = before;
        }
        started
    }

    fn read_block_header(&mut self, stream: &mut Stream<'_>) -> Result<(), Stop> {
        let last = stream.read(1)? == 1;
        self.place = match stream.read(2)? {
            0 => {
                stream.take(stream.count & 7);
                let (left, check) = (stream.read(16)?, stream.read(16)?);
                if left != !check & 0xffff {
                    return Err("the length of a stored block is wrong".into());
                }
                stream.give_back();
                Place::Stored { left: left as usize }
            }
            1 => {
                self.tables.build_fixed()?;
                Place::Symbols
            }
            2 => {
                self.read_codes(stream)?;
                Place::Symbols
            }
            _ => return Err("a block has no known type".into()),
        };
        self.last = last;
        Ok(())
    }

    fn read_codes(&mut self, stream: &mut Stream<'_>) -> Result<(), Stop> {
        const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let literals = stream.read(5)? as usize + 257;
        let distances = stream.read(5)? as usize + 1;
        let given = stream.read(4)? as usize + 4;
        let mut precode = [0; 19];
        for symbol in &ORDER[..given] {
            precode[usize::from(*symbol)] = stream.read(3)? as u8;
        }
        let table = build_precode(&precode)?;
        let mut lengths = [0u8; LENGTH_SYMBOLS + DISTANCE_SYMBOLS];
        let all = literals + distances;
        let mut at = 0;
        while at < all {
            stream.fill();
            let entry = table[stream.bits as usize & ((1 << PRECODE_BITS) - 1)];
            let symbol = (entry >> 16) & 0x1f;
            let (base, extra) = match symbol {
                16 | 17 => (3, 2 + (symbol & 1)),
                18 => (11, 7),
                _ => (1, 0),
            };
            if stream.count < (entry & 0xff) + extra {
                return Err(Stop::Input);
            }
            if entry & EXCEPTIONAL != 0 {
                return Err("a code length has no meaning".into());
            }
            stream.take(entry & 0xff);
            let count = base + stream.take(extra) as usize;
            let length = match symbol {
                16 if at == 0 => return Err("a code length repeats nothing".into()),
                16 => lengths[at - 1],
                17 | 18 => 0,
                length => length as u8,
            };
            let repeated = lengths[..all].get_mut(at..at + count);
            repeated.ok_or("there are too many code lengths")?.fill(length);
            at += count;
        }
        let (literals, distances) = lengths[..all].split_at(literals);
        Ok(self.tables.build(literals, distances)?)
    }

    fn end_block(&mut self) {
        self.place = if self.last { Place::End } else { Place::BlockStart };
    }

    fn copy_stored(&mut self, stream: &mut Stream<'_>, left: usize) -> Result<(), Stop> {
        let room = stream.out.len() - stream.made;
        let bytes = left.min(room).min(stream.input.len() - stream.at);
        stream.out[stream.made..stream.made + bytes]
            .copy_from_slice(&stream.input[stream.at..stream.at + bytes]);
        stream.made += bytes;
        stream.at += bytes;
        self.place = Place::Stored { left: left - bytes };
        if bytes == left {
            self.end_block();
            return Ok(());
        }
        Err(if bytes == room { Stop::Room } else { Stop::Input })
    }

    /// Decodes one symbol, all of it or nothing.
    fn decode_symbol(&mut self, stream: &mut Stream<'_>) -> Result<(), Stop> {
        if stream.made == stream.out.len() {
            return Err(Stop::Room);
        }
        stream.fill();
        let mut bits = stream.bits;
        let mut used = 0;
        let entry = look_up(&self.tables.lengths, LENGTH_BITS, &mut bits, &mut used);
        let lacking = |used| if used > stream.count { Err(Stop::Input) } else { Ok(()) };
        lacking(used)?;
        if entry & LITERAL != 0 {
            stream.out[stream.made] = (entry >> 16) as u8;
            stream.made += 1;
        } else if entry & EXCEPTIONAL != 0 {
            if entry & END == 0 {
                return Err("a code of literals has no meaning".into());
            }
            self.end_block();
        } else {
            let length = value(entry, stream.bits >> (used - (entry & 0xff)));
            let distance_bits = bits;
            let before = used;
            let entry = look_up(&self.tables.distances, DISTANCE_BITS, &mut bits, &mut used);
            lacking(used)?;
            if entry & EXCEPTIONAL != 0 {
                return Err("a code of distances has no meaning".into());
            }
            let distance = value(entry, distance_bits >> (used - before - (entry & 0xff)));
            if distance > stream.made + self.history_bytes {
                return Err("a match reaches before the start".into());
            }
            self.place = Place::Match { length, distance };
        }
        stream.bits = bits;
        stream.count -= used;
        Ok(())
    }

    /// Copies a match, as much as has room.
    fn copy_match(
        &mut self,
        stream: &mut Stream<'_>,
        length: usize,
        distance: usize,
    ) -> Result<(), Stop> {
        let room = stream.out.len() - stream.made;
        let bytes = length.min(room);
        for at in stream.made..stream.made + bytes {
            stream.out[at] = match at.checked_sub(distance) {
                Some(from) => stream.out[from],
                None => self.history[HISTORY_BYTES + at - distance],
            };
        }
        stream.made += bytes;
        if bytes == length {
            self.place = Place::Symbols;
            return Ok(());
        }
        self.place = Place::Match { length: length - bytes, distance };
        Err(Stop::Room)
    }

    /// Keeps the end of the text for matches of the next step.
    fn keep(&mut self, text: &[u8]) {
        let new = text.len().min(HISTORY_BYTES);
        self.history.copy_within(new.., 0);
        self.history[HISTORY_BYTES - new..].copy_from_slice(&text[text.len() - new..]);
        self.history_bytes = (self.history_bytes + new).min(HISTORY_BYTES);
    }
}

/// The entry that the next bits mean, in the table or its subtable; takes code and extra bits off.
fn look_up(table: &[u32], table_bits: usize, bits: &mut u64, used: &mut u32) -> u32 {
    let mut entry = table[*bits as usize & ((1 << table_bits) - 1)];
    if entry & SUBTABLE != 0 && entry & (EXCEPTIONAL | LITERAL) == EXCEPTIONAL {
        *bits >>= entry & 0xff;
        *used += entry & 0xff;
        let mask = (1 << ((entry >> 8) & 0xf)) - 1;
        entry = table[(entry >> 16) as usize + (*bits as usize & mask)];
    }
    *bits >>= entry & 0xff;
    *used += entry & 0xff;
    entry
}

/// Base and extra bits; `bits` begin with the code of the entry.
fn value(entry: u32, bits: u64) -> usize {
    let with_extra = bits & !(u64::MAX << (entry & 63));
    (entry >> 16) as usize + (with_extra >> ((entry >> 8) & 63)) as usize
}

#[cfg(test)]
mod tests;
