//! Which symbols suit a text.

use foldhash::HashMap;

use super::{EncodedStrings, SLOTS, SYMBOLS_MAX, Symbol, SymbolEncoder, slot_of};
use crate::codec::{CodecId, Sample, whole_estimate};
use coload_types::Strings;

/// How much of a sample is looked at: more costs time and gains under 1 %.
const SAMPLE_BYTES: usize = 16 << 10;

/// The sample is made of parts of so many bytes.
const PART_BYTES: usize = 512;

/// Symbols are used where they are expected to leave at most this share of the bytes: texts of random letters lose a twentieth, and to
/// encode them takes half of a load.
const GAIN_MIN: (usize, usize) = (15, 16);
/// Bytes of a sample that tell so.
const GAIN_BYTES_MIN: usize = 4 << 10;

/// Rounds of training, as in the paper.
const ROUNDS: usize = 5;

/// Share of the codes that may be more than those of the first strings.
const LOSS_SHARE: usize = 20;

/// What symbols make of strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gain {
    /// Bytes of their codes.
    codes: usize,
    /// Bytes of the strings.
    bytes: usize,
}

impl SymbolEncoder {
    /// Chooses the symbols for strings like string 0, 1, .. of `count`. Looks at parts all over them, for the first may be
    /// of another kind than the rest.
    ///
    /// No symbols are chosen where another codec is expected to take less for whole strings; those are then kept as they are.
    pub fn train<'a>(count: usize, string: impl Fn(usize) -> &'a [u8]) -> Self {
        let sample = Sample::of_strings(count, &string);
        let whole = whole_estimate(&sample);
        if matches!(whole, Some((_, CodecId::TEMPLATES))) {
            return SymbolEncoder::keeping_strings();
        }
        let encoder = SymbolEncoder::train_symbols(count, string);
        let Sample::Text { strings, .. } = sample else { return encoder };
        let encoded = encoder.encoded_bytes(&strings);
        let is_worth = encoded * GAIN_MIN.1 <= strings.bytes.len() * GAIN_MIN.0;
        match whole {
            Some((bytes, _)) if bytes < encoded => SymbolEncoder::keeping_strings(),
            _ if is_worth || strings.bytes.len() < GAIN_BYTES_MIN => encoder,
            _ => SymbolEncoder::keeping_strings(),
        }
    }

    /// Chooses symbols, whatever other codecs would make of the strings.
    pub fn train_symbols<'a>(count: usize, string: impl Fn(usize) -> &'a [u8]) -> Self {
        let text = parts(count, &string, PartsFrom::Starts);
        let mut encoder = SymbolEncoder::new(Vec::new());
        for _ in 0..ROUNDS {
            encoder = SymbolEncoder::new(encoder.next_symbols(&text));
        }
        // Of the strings that they were chosen for symbols make more than of any others.
        let gain = encoder.gain_of(&parts(count, string, PartsFrom::Middles));
        SymbolEncoder { gain: Some(gain).filter(|gain| gain.bytes >= GAIN_BYTES_MIN), ..encoder }
    }

    fn keeping_strings() -> Self {
        SymbolEncoder { keeps_strings: true, ..SymbolEncoder::new(Vec::new()) }
    }

    /// Bytes that strings take in symbols.
    fn encoded_bytes(&self, strings: &Strings) -> usize {
        self.encode_strings(strings).map_or(strings.bytes.len(), |encoded| encoded.bytes.len())
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
        if self.keeps_strings {
            return true;
        }
        let Gain { codes, bytes } = self.gain_of(&parts(count, string, PartsFrom::Starts));
        codes <= bytes
    }

    /// Whether the symbols make as much of parts of string 0, 1, .. of `count` as of strings beside those that they were chosen for, but
    /// for a twentieth: then no others need be chosen. Never where they were chosen for few, or strings are kept as they are.
    pub fn suits<'a>(&self, count: usize, string: impl Fn(usize) -> &'a [u8]) -> bool {
        let Some(first) = self.gain else { return false };
        let gain = self.gain_of(&parts(count, string, PartsFrom::Middles));
        let (codes, as_first) = (gain.codes * first.bytes, first.codes * gain.bytes);
        codes <= as_first + as_first / LOSS_SHARE
    }

    fn gain_of(&self, text: &[&[u8]]) -> Gain {
        let mut encoded = EncodedStrings::default();
        for part in text {
            self.encode(part, &[0], &[part.len() as u32], &mut encoded);
        }
        Gain { codes: encoded.bytes.len(), bytes: encoded.source_bytes }
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
        // Of symbols with one place in the table the one that saves most has it: the others would have codes and not be found.
        let mut taken = [false; SLOTS];
        let free = |s: &Symbol| s.len < 3 || !std::mem::replace(&mut taken[slot_of(s.bytes)], true);
        best.into_iter().map(|(_, s)| s).filter(free).take(SYMBOLS_MAX).collect()
    }
}

/// Where the parts of a sample begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartsFrom {
    Starts,
    /// Where those from the starts have ended, if there are many strings.
    Middles,
}

/// Parts all over string 0, 1, .. of `count`, [`SAMPLE_BYTES`] at most.
fn parts<'a>(count: usize, string: impl Fn(usize) -> &'a [u8], from: PartsFrom) -> Vec<&'a [u8]> {
    let mut text = Vec::new();
    let places = count.min(SAMPLE_BYTES / PART_BYTES);
    for place in 0..places {
        let (start, end) = (place * count / places, (place + 1) * count / places);
        let first = match from {
            PartsFrom::Starts => start,
            PartsFrom::Middles => start + (end - start) / 2,
        };
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

/// Single bytes are worth more than their count says: each spares an escape.
fn boost(symbol: Symbol) -> u64 {
    if symbol.len == 1 { 8 } else { 1 }
}
