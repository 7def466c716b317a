#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

const COMMA: Separators = Separators { delimiter: b',', quote: Some(b'"'), escape: None };

type Find = fn(&[u8], usize, usize, Separators, &mut Vec<u32>, &mut Seen) -> bool;

fn versions() -> Vec<(&'static str, Find)> {
    let mut all: Vec<(&'static str, Find)> = vec![("portable", find_portable)];
    #[cfg(target_arch = "x86_64")]
    {
        use coload_types::{SimdLevel, simd_level};
        if simd_level() >= SimdLevel::Avx2 {
            all.push(("avx2", |t, a, b, s, o, e| unsafe { x86::find_avx2(t, a, b, s, o, e) }));
        }
        if simd_level() >= SimdLevel::Avx512 {
            all.push(("avx512", |t, a, b, s, o, e| unsafe { x86::find_avx512(t, a, b, s, o, e) }));
        }
    }
    all
}

fn compare(record: &[u8], separators: Separators) {
    let mut text = b"#".to_vec();
    text.extend_from_slice(record);
    let end = text.len();
    let padding = if separators.quote == Some(0) { 0 } else { separators.delimiter };
    text.extend([padding; TEXT_PADDING]);
    let mut slow = Vec::new();
    let expected = tokenise_slowly(&text, 1, end, separators, &mut slow);
    for (name, find) in versions() {
        let mut fast = Vec::with_capacity(text.len() + 80);
        let mut seen = Seen::default();
        let strays = find(&text, 1, end, separators, &mut fast, &mut seen);
        if !strays {
            assert_eq!(fast, slow, "{name} on {:?}", String::from_utf8_lossy(record));
            assert_eq!(seen, expected, "{name} on {:?}", String::from_utf8_lossy(record));
        }
    }
}

#[test]
fn quoted_newlines_do_not_end_records() {
    let record = b"a,\"b\nc\",d\n";
    compare(record, COMMA);
    let mut text = record.to_vec();
    text.extend([0; TEXT_PADDING]);
    let mut out = Vec::new();
    let seen = tokenise(&text, 0, record.len(), COMMA, &mut out);
    assert_eq!(out, [1, 7, 9]);
    assert_eq!(seen.newlines, 1);
}

/// Bytes behind the text were taken for NUL, and so for delimiters: the text of six bytes ended in a panic.
#[test]
fn nothing_is_found_behind_the_text() {
    for delimiter in 0..=u8::MAX {
        if delimiter == b'\n' {
            continue;
        }
        for quote in [None, Some(0), Some(b'"'), Some(b'\r'), Some(0xff)] {
            if quote == Some(delimiter) {
                continue;
            }
            let separators = Separators { delimiter, quote, escape: None };
            for record in
                [&b"\x80\x89\0\0\xff\x89\n"[..], b"a\n", b"\n", b"", &[b'a'; 64], &[0; 65]]
            {
                compare(record, separators);
            }
        }
    }
}

#[test]
fn a_stray_quote_is_scanned_slowly() {
    let record = b"a\"b,c\nd,e\n";
    let mut text = record.to_vec();
    text.extend([0; TEXT_PADDING]);
    let mut out = Vec::new();
    tokenise(&text, 0, record.len(), COMMA, &mut out);
    assert_eq!(out, [3, 5, 7, 9]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn fast_and_slow_agree(parts in prop::collection::vec(
        prop_oneof![Just(","), Just("\n"), Just("\""), Just("\"\""), Just("a"), Just("\r\n"),
                    Just("é"), Just(",\"x,\ny\","), Just("\0"), Just("0123456789abcdef")], 0..120)) {
        compare(parts.concat().as_bytes(), COMMA);
        compare(parts.concat().as_bytes(), Separators { quote: None, ..COMMA });
        compare(parts.concat().as_bytes(), Separators { delimiter: 0, ..COMMA });
        compare(parts.concat().as_bytes(), Separators { quote: Some(0), ..COMMA });
    }

    #[test]
    fn csv_core_finds_the_same_records(parts in prop::collection::vec(
        prop_oneof![Just(","), Just("\n"), Just("a"), Just("\"q,\n\"\"\""), Just("bc")], 0..60)) {
        let mut text = b"x,".to_vec();
        text.extend(parts.concat().bytes());
        text.push(b'\n');
        let end = text.len();
        let mut padded = text.clone();
        padded.extend([0; TEXT_PADDING]);
        let mut positions = Vec::new();
        tokenise(&padded, 0, end, COMMA, &mut positions);
        // csv-core skips empty lines; so does the record cutter that follows the tokeniser.
        let mut ours = Vec::new();
        let (mut fields, mut start) = (0, 0);
        for p in positions {
            fields += 1;
            if padded[p as usize] == b'\n' {
                if fields > 1 || p as usize > start {
                    ours.push(fields);
                }
                fields = 0;
                start = p as usize + 1;
            }
        }
        let mut reader = csv_core::Reader::new();
        let (mut input, mut theirs, mut n) = (&text[..], Vec::new(), 0);
        let (mut buffer, mut ends) = ([0; 4096], [0; 256]);
        loop {
            let (result, read, _, wrote) = reader.read_record(input, &mut buffer, &mut ends);
            input = &input[read..];
            n += wrote;
            match result {
                csv_core::ReadRecordResult::Record => { theirs.push(n); n = 0; }
                csv_core::ReadRecordResult::End => break,
                _ => {}
            }
        }
        // A quote after text (a"q) is literal in both; a quote after a closed field too.
        let odd = text.windows(2).any(|w| w[1] == b'"' && !matches!(w[0], b',' | b'\n' | b'"' | b'q'))
            || text.windows(2).any(|w| w[0] == b'"' && !matches!(w[1], b',' | b'\n' | b'"' | b'q'));
        if !odd {
            prop_assert_eq!(ours, theirs);
        }
    }
}
