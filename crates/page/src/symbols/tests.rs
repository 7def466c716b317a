use coload_types::Strings;

use super::*;

fn round_trip(strings: &[Vec<u8>]) -> (usize, usize) {
    let encoder = SymbolEncoder::train_symbols(strings.len(), |i| &strings[i]);
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
    let encoder = SymbolEncoder::train_symbols(1, |_| b"0123456789 0123456789".as_slice());
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
    let string = |i: usize| if i == 0 { short.get(0) } else { long.get(i - 1) };
    let encoder = SymbolEncoder::train_symbols(3, string);
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

/// Symbols that begin alike share a slot of the table: but one was found, and the codes of the others were lost. Texts of
/// words of a list took a third more.
#[test]
fn every_symbol_of_a_table_is_found() {
    let words = [
        "order",
        "ordinary",
        "orders",
        "confirmed",
        "confidence",
        "conformed",
        "delivery",
        "delivered",
    ];
    let texts: Vec<String> = (0..2_000)
        .map(|i: usize| {
            (0..9).map(|w| words[(i * 7 + w * i + w) % 8]).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let encoder = SymbolEncoder::train_symbols(texts.len(), |i| texts[i].as_bytes());
    for symbol in &encoder.symbols {
        let bytes = &symbol.bytes.to_le_bytes()[..usize::from(symbol.len)];
        // A longer one may begin with it, and then needs bytes that are not here.
        assert_eq!(encoder.longest(bytes).len, symbol.len, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn an_empty_slot_matches_no_word() {
    assert_ne!(slot_of(0), slot_of(1));
    let encoder = SymbolEncoder::new(Vec::new());
    for word in [0, 1, u64::MAX, u64::MAX >> 1, slot_of(0) as u64] {
        assert!(!encoder.slots[slot_of(word)].matches(word), "{word:x}");
    }
}

#[test]
fn symbols_suit_strings_like_those_that_they_were_chosen_for() {
    let words =
        ["furiously ", "carefully ", "deposits ", "sleep ", "quickly", " ironic ", "above "];
    let sentence = |seed: usize| {
        let word = |at: usize| words[noise((seed * 8 + at) as u64, 1)[0] as usize % 7].bytes();
        (0..4 + seed % 5).flat_map(word).collect::<Vec<u8>>()
    };
    let first: Vec<Vec<u8>> = (0..4000).map(sentence).collect();
    let others: Vec<Vec<u8>> = (50_000..54_000).map(sentence).collect();
    let encoder = SymbolEncoder::train_symbols(first.len(), |i| &first[i]);
    assert!(encoder.suits(others.len(), |i| &others[i]));
    let numbers: Vec<Vec<u8>> =
        (0..4000).map(|i| format!("{:09}", i * 7919).into_bytes()).collect();
    assert!(!encoder.suits(numbers.len(), |i| &numbers[i]));
    let opened = SymbolEncoder::open(&encoder.table()).expect("own table");
    let strings = Strings { bytes: first.concat(), ends: Vec::new() };
    let ends = first.iter().scan(0, |end, s| {
        *end += s.len() as u32;
        Some(*end)
    });
    let strings = Strings { ends: ends.collect(), ..strings };
    let codes = |encoder: &SymbolEncoder| encoder.encode_strings(&strings).map(|codes| codes.bytes);
    assert_eq!(codes(&opened), codes(&encoder));
    assert!(!opened.suits(first.len(), |i| &first[i]), "it was not chosen here");
    for table in [&[][..], &[1], &[1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[2, 1, b'b', 1, b'a']] {
        assert!(SymbolEncoder::open(table).is_err(), "{table:?}");
    }
}
