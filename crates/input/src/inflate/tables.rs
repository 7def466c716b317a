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
//! Invariant: a table is filled whole, and what an entry points to is within it, whatever the lengths.
//!
//! Source: RFC 1951, 3.2; the form of tables and entries is that of libdeflate (Eric Biggers).

/// A literal.
pub const LITERAL: u32 = 1 << 31;
/// Neither a literal nor a length or distance.
pub const EXCEPTIONAL: u32 = 1 << 15;
/// The entry of a subtable.
pub const SUBTABLE: u32 = 1 << 14;
/// The end of the block.
pub const END: u32 = 1 << 13;

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
}

impl Tables {
    /// Tables that are not to be used yet.
    pub fn new() -> Box<Self> {
        Box::new(Tables { lengths: [0; LENGTH_ENTRIES], distances: [0; DISTANCE_ENTRIES] })
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
        Ok(())
    }

    /// The tables of blocks with fixed codes.
    pub fn build_fixed(&mut self) -> Result<(), &'static str> {
        let mut lengths = [8; LENGTH_SYMBOLS];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        self.build(&lengths, &[5; DISTANCE_SYMBOLS])
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
