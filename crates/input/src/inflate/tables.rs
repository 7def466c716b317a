//! Decode tables of a deflate block: a code's next bits give what it means and how long it is.
//!
//! ```text
//!   literal     1 | value (23..16)          | 0           | code length (7..0)
//!   length      0 | base (24..16)           | code length (11..8), code and extra bits (7..0)
//!   distance    0 | base (30..16)           | code length (11..8), code and extra bits (7..0)
//!   end         EXCEPTIONAL | END           | code length (7..0)
//!   no meaning  EXCEPTIONAL                 | code length (7..0)
//!   subtable    start (30..16) | EXCEPTIONAL | SUBTABLE | its bits (11..8) | bits of the table (7..0)
//! ```
//!
//! Most turns of the fast loop find several symbols in one look-up: up to three literals, the last of them
//! or one more a length, if their codes are no longer together than the bits looked up ([`Tables::packed`]).
//!
//! ```text
//!   packed      literals, first lowest (55..32) | EXCEPTIONAL_PACKED | HAS_LENGTH | base (24..16)
//!               | code bits (14..10) | literals (9..8) | code and extra bits (7..0)
//! ```
//!
//! Invariant: a table is filled whole, and what an entry points to is within it, whatever the lengths.
//!
//! Source: RFC 1951, 3.2; the form of tables and entries is that of libdeflate (Eric Biggers), several symbols
//! in an entry are an idea of ISA-L (Intel).

/// Mark of an entry that has a literal.
pub const LITERAL: u32 = 1 << 31;
/// Neither a literal nor a length or distance.
pub const EXCEPTIONAL: u32 = 1 << 15;
/// The entry of a subtable.
pub const SUBTABLE: u32 = 1 << 14;
/// The end of the block.
pub const END: u32 = 1 << 13;

/// A packed entry that ends with a length.
pub const HAS_LENGTH: u64 = 1 << 30;
/// A packed entry that the other table has to tell.
pub const EXCEPTIONAL_PACKED: u64 = 1 << 31;

/// Bits that look up a literal or length; longer codes need a second look-up.
pub const LENGTH_BITS: usize = 11;
/// Bits that look up a distance.
pub const DISTANCE_BITS: usize = 9;
/// Bits of the code that writes the lengths of the others.
pub const PRECODE_BITS: usize = 7;
/// Most entries of the tables with their subtables, for 288 and 32 symbols of at most 15 bits
/// (`enough` of zlib).
pub const LENGTH_ENTRIES: usize = 2342;
const DISTANCE_ENTRIES: usize = 594;

/// Symbols of literals and lengths, and of distances.
pub const LENGTH_SYMBOLS: usize = 288;
pub const DISTANCE_SYMBOLS: usize = 32;
const CODE_BITS_MAX: usize = 15;

/// The tables of a block.
pub struct Tables {
    pub lengths: [u32; LENGTH_ENTRIES],
    pub distances: [u32; DISTANCE_ENTRIES],
    /// What the next bits mean, several symbols together.
    pub packed: [u64; 1 << LENGTH_BITS],
}

impl Tables {
    /// Tables that are not to be used yet.
    pub fn new() -> Box<Self> {
        Box::new(Tables {
            lengths: [0; LENGTH_ENTRIES],
            distances: [0; DISTANCE_ENTRIES],
            packed: [0; 1 << LENGTH_BITS],
        })
    }

    /// Builds both from the lengths of the codes.
    ///
    /// # Errors
    /// What is wrong with the lengths.
    pub fn build(&mut self, lengths: &[u8], distances: &[u8]) -> Result<(), &'static str> {
        if lengths.get(256).is_none_or(|l| *l == 0) {
            return Err("a block has no end");
        }
        if !build(&mut self.lengths, lengths, &LENGTH_MEANINGS, LENGTH_BITS) {
            return Err("the codes of literals are wrong");
        }
        if !build(&mut self.distances, distances, &DISTANCE_MEANINGS, DISTANCE_BITS) {
            return Err("the codes of distances are wrong");
        }
        self.pack(lengths);
        Ok(())
    }

    /// Packs symbols whose codes follow each other into one entry.
    fn pack(&mut self, lengths: &[u8]) {
        for (packed, entry) in self.packed.iter_mut().zip(&self.lengths) {
            *packed = pack_one(*entry);
        }
        let codes = Codes::new(lengths, &self.packed);
        let literals = || codes.all().filter(|code| code.entry & HAS_LENGTH == 0);
        for first in literals() {
            let room = LENGTH_BITS - first.bits;
            for second in codes.all().take_while(|code| code.bits <= room) {
                let pair = first.then(second);
                self.put(&pair);
                if pair.entry & HAS_LENGTH > 0 {
                    continue;
                }
                let room = LENGTH_BITS - pair.bits;
                for third in codes.all().take_while(|code| code.bits <= room) {
                    self.put(&pair.then(third));
                }
            }
        }
    }

    /// Fills all entries that begin with these codes.
    fn put(&mut self, code: &Packed) {
        let entries = self.packed[code.code..].iter_mut().step_by(1 << code.bits);
        entries.for_each(|entry| *entry = code.entry);
    }

    /// The tables of blocks with fixed codes.
    pub fn build_fixed(&mut self) -> Result<(), &'static str> {
        let mut lengths = [8; LENGTH_SYMBOLS];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        self.build(&lengths, &[5; DISTANCE_SYMBOLS])
    }
}

/// Symbols that follow each other.
#[derive(Debug, Clone, Copy, Default)]
struct Packed {
    /// Their codes, the first lowest.
    code: usize,
    bits: usize,
    entry: u64,
}

impl Packed {
    /// Literals and what follows them.
    fn then(&self, next: &Packed) -> Packed {
        let literals = (self.entry >> 8) & 3;
        // Fields add up; no sum is too large for its field.
        let fields = (self.entry & 0xffff_ffff) + (next.entry & 0xffff_ffff);
        let bytes = self.entry >> 32 | (next.entry >> 32) << (8 * literals);
        Packed {
            code: self.code | next.code << self.bits,
            bits: self.bits + next.bits,
            entry: fields | bytes << 32,
        }
    }
}

/// The entry of one symbol.
fn pack_one(entry: u32) -> u64 {
    let bits = u64::from(entry & 0xff);
    if entry & LITERAL > 0 {
        return u64::from((entry >> 16) & 0xff) << 32 | bits << 10 | 1 << 8 | bits;
    }
    if entry & EXCEPTIONAL > 0 {
        return EXCEPTIONAL_PACKED;
    }
    let code_bits = u64::from((entry >> 8) & 0xf);
    HAS_LENGTH | u64::from(entry >> 16) << 16 | code_bits << 10 | bits
}

/// The codes that have room for another in a look-up, short ones first.
struct Codes {
    codes: [Packed; LENGTH_SYMBOLS],
    count: usize,
}

impl Codes {
    /// The codes of these lengths; `packed` has the entry of each alone.
    fn new(lengths: &[u8], packed: &[u64; 1 << LENGTH_BITS]) -> Self {
        let mut codes = Codes { codes: [Packed::default(); LENGTH_SYMBOLS], count: 0 };
        let shortest = lengths.iter().filter(|length| **length > 0).min();
        let longest =
            LENGTH_BITS - shortest.map_or(0, |length| usize::from(*length).min(LENGTH_BITS));
        let mut code = 0;
        for bits in 1..=longest {
            for _ in lengths.iter().filter(|length| usize::from(**length) == bits) {
                let entry = packed[code];
                if entry & EXCEPTIONAL_PACKED == 0 {
                    codes.codes[codes.count] = Packed { code, bits, entry };
                    codes.count += 1;
                }
                code = next_code(code, bits);
            }
        }
        codes
    }

    fn all(&self) -> impl Iterator<Item = &Packed> {
        self.codes[..self.count].iter()
    }
}

/// The table of the code that writes code lengths; an entry has the symbol in 23..16.
pub fn build_precode(lengths: &[u8; 19]) -> Result<[u32; 1 << PRECODE_BITS], &'static str> {
    let mut table = [0; 1 << PRECODE_BITS];
    let meanings: [u32; 19] = std::array::from_fn(|symbol| (symbol as u32) << 16);
    match build(&mut table, lengths, &meanings, PRECODE_BITS) {
        true => Ok(table),
        false => Err("the codes of code lengths are wrong"),
    }
}

const LENGTH_MEANINGS: [u32; LENGTH_SYMBOLS] = {
    let mut meanings = [0; LENGTH_SYMBOLS];
    let mut symbol = 0;
    while symbol < 256 {
        meanings[symbol] = LITERAL | (symbol as u32) << 16;
        symbol += 1;
    }
    meanings[256] = EXCEPTIONAL | END;
    let mut base = 3;
    while symbol < 284 {
        symbol += 1;
        let group = (symbol as u32 - 257) / 4;
        let extra = if group < 2 { 0 } else { group - 1 };
        meanings[symbol] = (base << 16) | extra;
        base += 1 << extra;
    }
    // The last has no extra bits, and the two after it have no meaning.
    meanings[285] = 258 << 16;
    meanings[286] = EXCEPTIONAL;
    meanings[287] = EXCEPTIONAL;
    meanings
};

const DISTANCE_MEANINGS: [u32; DISTANCE_SYMBOLS] = {
    let mut meanings = [0; DISTANCE_SYMBOLS];
    let mut base = 1;
    let mut symbol = 0;
    while symbol < 30 {
        let group = symbol as u32 / 2;
        let extra = if group < 2 { 0 } else { group - 1 };
        meanings[symbol] = (base << 16) | extra;
        base += 1 << extra;
        symbol += 1;
    }
    meanings[30] = EXCEPTIONAL;
    meanings[31] = EXCEPTIONAL;
    meanings
};

/// Fills a table of `bits` bits and its subtables; false when the lengths are no code.
fn build(table: &mut [u32], lengths: &[u8], meanings: &[u32], bits: usize) -> bool {
    let mut counts = [0u32; CODE_BITS_MAX + 1];
    for length in lengths {
        counts[usize::from(*length) & CODE_BITS_MAX] += 1;
    }
    let mut sorted = [0u16; LENGTH_SYMBOLS];
    let mut places = [0usize; CODE_BITS_MAX + 2];
    let mut used = 0;
    for length in 1..=CODE_BITS_MAX {
        places[length + 1] = places[length] + counts[length] as usize;
        used += counts[length] << (CODE_BITS_MAX - length);
    }
    for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
        let place = &mut places[usize::from(*length)];
        sorted[*place] = symbol as u16;
        *place += 1;
    }
    let whole = 1 << CODE_BITS_MAX;
    if used != whole {
        // No code, or a single one of one bit: allowed for distances that are not used.
        let single = used == whole / 2 && counts[1] == 1;
        if used != 0 && !single {
            return false;
        }
        table[..1 << bits].fill(entry(EXCEPTIONAL, 1));
        if single {
            let only = entry(meanings[usize::from(sorted[0])], 1);
            table[..1 << bits].iter_mut().step_by(2).for_each(|e| *e = only);
        }
        return true;
    }
    fill(table, &sorted, &counts, meanings, bits);
    true
}

fn entry(meaning: u32, length: u32) -> u32 {
    meaning + (length << 8) + length
}

/// Fills a table from a complete code. Codes are stored with their first bit lowest, so the next code
/// is found by adding one at the highest bit.
fn fill(
    table: &mut [u32],
    sorted: &[u16],
    counts: &[u32; CODE_BITS_MAX + 1],
    meanings: &[u32],
    bits: usize,
) {
    let mut symbols = sorted.iter();
    let mut code = 0usize;
    let mut end = 1;
    for (length, count) in counts.iter().enumerate().take(bits + 1).skip(1) {
        // Entries so far hold for either value of the next bit.
        table.copy_within(..end, end);
        end *= 2;
        for symbol in symbols.by_ref().take(*count as usize) {
            table[code] = entry(meanings[usize::from(*symbol)], length as u32);
            code = next_code(code, length);
        }
    }
    let mask = (1 << bits) - 1;
    let (mut prefix, mut start) = (usize::MAX, 0);
    for length in bits + 1..=CODE_BITS_MAX {
        let mut left = counts[length];
        while left > 0 {
            if code & mask != prefix {
                prefix = code & mask;
                start = end;
                let sub_bits = subtable_bits(counts, length, left, bits);
                end = start + (1 << sub_bits);
                table[prefix] = (start as u32) << 16
                    | EXCEPTIONAL
                    | SUBTABLE
                    | (sub_bits as u32) << 8
                    | bits as u32;
            }
            let Some(symbol) = symbols.next() else { return };
            let value = entry(meanings[usize::from(*symbol)], (length - bits) as u32);
            let from = start + (code >> bits);
            table[from..end].iter_mut().step_by(1 << (length - bits)).for_each(|e| *e = value);
            code = next_code(code, length);
            left -= 1;
        }
    }
}

/// The code after `code` of the same length; 0 after the last.
fn next_code(code: usize, length: usize) -> usize {
    let zeros = !code & ((1 << length) - 1);
    match zeros.checked_ilog2() {
        Some(high) => (code & ((1 << high) - 1)) | (1 << high),
        None => 0,
    }
}

/// Bits of a subtable whose first code has `length` bits, with `left` of that length to come.
fn subtable_bits(counts: &[u32; 16], length: usize, left: u32, bits: usize) -> usize {
    let mut sub_bits = length - bits;
    let mut used = left;
    while used < 1 << sub_bits && bits + sub_bits < CODE_BITS_MAX {
        sub_bits += 1;
        used = (used << 1) + counts[bits + sub_bits];
    }
    sub_bits
}
