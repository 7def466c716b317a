#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::dialect::{Dialect, LongDelimiter, Policies};
use crate::tokenise::{TEXT_PADDING, tokenise_slowly};

fn rules(fields: usize, quotes: Quotes) -> RecordRules {
    let policies = Policies { quotes, ..Policies::default() };
    Dialect { policies, ..Dialect::default() }.record_rules(fields)
}

/// All records of a text: their fields as meant, and their faults.
fn read_all(text: &str, rules: &RecordRules) -> Vec<(Vec<String>, Fault)> {
    let text = text.as_bytes();
    let mut record = CarefulRecord::default();
    let (mut at, mut all) = (0, Vec::new());
    while at < text.len() {
        assert_eq!(read_record(text, at, true, rules, &mut record), Reading::Whole);
        assert!(record.next > at, "no way forward at {at} of {text:?}");
        let meant =
            |f: &CarefulField| String::from_utf8_lossy(&field_text(text, *f, rules)).into_owned();
        all.push((record.fields.iter().map(meant).collect(), record.fault));
        at = record.next;
    }
    all
}

fn check(text: &str, rules: &RecordRules, expected: &[&[&str]]) {
    let found: Vec<Vec<String>> = read_all(text, rules).into_iter().map(|(f, _)| f).collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn regular_records_are_read_as_they_stand() {
    for quotes in [Quotes::Strict, Quotes::Lenient] {
        let rules = rules(3, quotes);
        check(
            "1,2,3\r\n4,\"a \"\"b\"\", c\",\n",
            &rules,
            &[&["1", "2", "3"], &["4", "a \"b\", c", ""]],
        );
        check("1,\"a\r\nb\",3", &rules, &[&["1", "a\r\nb", "3"]]);
        check("a\"b,5\",x\n", &rules, &[&["a\"b", "5\"", "x"]]);
    }
}

#[test]
fn strict_quotes_are_faults_where_they_stray() {
    let rules = rules(2, Quotes::Strict);
    assert_eq!(read_all("\"a\" b,c\n", &rules)[0].1, Fault::Stray);
    assert_eq!(read_all("a,\"b\nc,d\n", &rules)[0].1, Fault::Open);
    assert_eq!(read_all("a,\"b\"\r\n", &rules)[0].1, Fault::None);
}

#[test]
fn lenient_quotes_are_text_where_that_makes_the_fields_right() {
    let three = rules(3, Quotes::Lenient);
    check("7,\"a 5\" disk, new\",x\n", &three, &[&["7", "a 5\" disk, new", "x"]]);
    check("7,\"a 5\",x\n", &three, &[&["7", "a 5", "x"]]);
    check("7,\"5\",\"6\" x\",8\n", &rules(4, Quotes::Lenient), &[&["7", "5", "6\" x", "8"]]);
    check("7,\"a\"\" b,\"c\"\n", &three, &[&["7", "\"a\"\" b", "c"]]);
    // The table's next lines are not swallowed by a quote that is never closed.
    check(
        "1,\"2,3\n4,5,6\n7,8,9\n",
        &three,
        &[&["1", "\"2", "3"], &["4", "5", "6"], &["7", "8", "9"]],
    );
}

#[test]
fn a_line_that_is_a_record_by_itself_is_not_swallowed() {
    check(
        "a,\"b\"c\n1,2,\"x\"\n3,4,\"y\"\n",
        &rules(3, Quotes::Lenient),
        &[&["a", "\"b\"c"], &["1", "2", "x"], &["3", "4", "y"]],
    );
}

#[test]
fn a_record_that_no_reading_fits_ends_with_its_line() {
    let rules = rules(2, Quotes::Lenient);
    let found = read_all("\"a\" b\" c\n1,2\n", &rules);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].0, ["1", "2"]);
}

#[test]
fn lone_returns_and_long_delimiters_separate() {
    let dialect = Dialect {
        line_end: LineEnd::Any,
        long_delimiter: LongDelimiter::new(b", "),
        ..Dialect::default()
    };
    let rules = dialect.record_rules(2);
    check(
        "a,b, c\rd, \"e, \rf\"\r\ng, h\n",
        &rules,
        &[&["a,b", "c"], &["d", "e, \rf"], &["g", "h"]],
    );
    let mut record = CarefulRecord::default();
    let text = b"a, \"x\ry\r\nz\"\r\nb";
    assert_eq!(read_record(text, 0, true, &rules, &mut record), Reading::Whole);
    assert_eq!((record.lines, record.end, record.next), (3, 11, 13));
}

#[test]
fn escapes_hide_quotes() {
    let dialect = Dialect { escape: Some(b'\\'), ..Dialect::default() };
    for quotes in [Quotes::Strict, Quotes::Lenient] {
        let dialect =
            Dialect { policies: Policies { quotes, ..dialect.policies }, ..dialect.clone() };
        check("\"a\\\",\\\\\",b\n", &dialect.record_rules(2), &[&["a\",\\", "b"]]);
    }
}

#[test]
fn comments_are_passed_over_whatever_they_hold() {
    let dialect = Dialect { comment: Some(b'#'), ..Dialect::default() };
    let rules = dialect.record_rules(2);
    let mut record = CarefulRecord::default();
    let text = b"# \"\n1,2\n";
    assert_eq!(read_record(text, 0, true, &rules, &mut record), Reading::Whole);
    assert!(record.comment && record.next == 4 && record.lines == 1);
}

/// A quote that is never closed stops being one after [`LENIENT_BYTES_MAX`] bytes, however much text
/// is at hand.
#[test]
fn a_long_quote_is_read_alike_in_all_windows() {
    let rules = rules(2, Quotes::Lenient);
    for long in [LENIENT_BYTES_MAX - 4, LENIENT_BYTES_MAX + 100, 2 * LENIENT_BYTES_MAX] {
        let mut text = b"\"a".to_vec();
        text.resize(long, b'x');
        text.extend_from_slice(b"\",b\n1,2\n");
        let mut found = Vec::new();
        for end in [LENIENT_BYTES_MAX + 1, LENIENT_BYTES_MAX + 2000, text.len()] {
            let end = end.min(text.len());
            let mut record = CarefulRecord::default();
            let read = read_record(&text[..end], 0, end == text.len(), &rules, &mut record);
            if read == Reading::Whole {
                found.push((record.fields.clone(), record.next));
            }
        }
        found.dedup();
        assert_eq!(found.len(), 1, "{long}");
    }
}

#[test]
fn hostile_quotes_take_bounded_time() {
    let rules = rules(4, Quotes::Lenient);
    for pattern in ["\"", "\",", "\"\n", "\",\"", "\"\"x,"] {
        let text = pattern.repeat((1 << 19) / pattern.len());
        let mut record = CarefulRecord::default();
        read_record(text.as_bytes(), 0, true, &rules, &mut record);
        assert!(record.next > 0, "{pattern:?}");
    }
}

fn any_rules() -> impl Strategy<Value = RecordRules> {
    let quotes = prop_oneof![Just(Quotes::Strict), Just(Quotes::Lenient)];
    let line_end = prop_oneof![Just(LineEnd::Newline), Just(LineEnd::Any)];
    let long =
        prop_oneof![Just(None), Just(LongDelimiter::new(b",,")), Just(LongDelimiter::new(b", "))];
    let escape = prop_oneof![Just(None), Just(Some(b'\\'))];
    (1usize..4, quotes, line_end, long, escape, any::<bool>()).prop_map(
        |(fields, quotes, line_end, long_delimiter, escape, comment)| {
            Dialect {
                line_end,
                long_delimiter,
                escape,
                comment: comment.then_some(b'#'),
                policies: Policies { quotes, ..Policies::default() },
                ..Dialect::default()
            }
            .record_rules(fields)
        },
    )
}

fn any_text(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab,,\"\"\n\n\r \\#".to_vec()), 0..bytes_max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A window that ends earlier gives the same record, or asks for more.
    #[test]
    fn what_is_read_does_not_depend_on_where_the_window_ends(
        text in any_text(40), rules in any_rules(),
    ) {
        let mut whole = CarefulRecord::default();
        let mut cut = CarefulRecord::default();
        let mut at = 0;
        while at < text.len() {
            prop_assert_eq!(read_record(&text, at, true, &rules, &mut whole), Reading::Whole);
            prop_assert!(whole.next > at && whole.end <= whole.next && whole.next <= text.len());
            for end in at + 1..=text.len() {
                if read_record(&text[..end], at, false, &rules, &mut cut) == Reading::Whole {
                    prop_assert_eq!(&cut, &whole, "window ends at {}", end);
                }
            }
            at = whole.next;
        }
    }

    /// Fields are in order, apart by their delimiters, and cover the record.
    #[test]
    fn no_byte_of_a_record_is_lost(text in any_text(40), rules in any_rules()) {
        let mut record = CarefulRecord::default();
        let delimiter = rules.long_delimiter.map_or(1, |long| long.bytes().len());
        let mut at = 0;
        while at < text.len() {
            read_record(&text, at, true, &rules, &mut record);
            if !record.comment {
                let mut next = at;
                for field in &record.fields {
                    prop_assert!(field.start == next && field.end >= field.start);
                    next = field.end + delimiter;
                }
                prop_assert_eq!(next - delimiter, record.end);
            }
            at = record.next;
        }
    }

    /// Strictly, and where nothing is exotic, it finds what the tokeniser finds.
    #[test]
    fn strict_reading_is_that_of_the_tokeniser(text in any_text(60), escape in any::<bool>()) {
        let escape = escape.then_some(b'\\');
        let rules = Dialect { escape, ..Dialect::default() }.record_rules(2);
        let mut padded = text.clone();
        padded.extend([0; TEXT_PADDING]);
        let mut expected = Vec::new();
        tokenise_slowly(&padded, 0, text.len(), rules.separators, &mut expected);
        let mut found = Vec::new();
        let mut record = CarefulRecord::default();
        let mut at = 0;
        while at < text.len() {
            read_record(&text, at, true, &rules, &mut record);
            found.extend(record.fields.iter().skip(1).map(|f| f.start as u32 - 1));
            if text[record.next - 1] == b'\n' && record.next > record.end {
                found.push(record.next as u32 - 1);
            }
            at = record.next;
        }
        prop_assert_eq!(found, expected);
    }
}

/// Records as csv-core reads them.
fn read_with_csv_core(text: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv_core::Reader::new();
    let (mut records, mut record, mut rest) = (Vec::new(), Vec::new(), text);
    let (mut field, mut out) = (Vec::new(), [0; 64]);
    loop {
        let (result, read, written) = reader.read_field(rest, &mut out);
        rest = &rest[read..];
        field.extend_from_slice(&out[..written]);
        match result {
            csv_core::ReadFieldResult::Field { record_end } => {
                record.push(String::from_utf8(std::mem::take(&mut field)).unwrap());
                if record_end {
                    records.push(std::mem::take(&mut record));
                }
            }
            csv_core::ReadFieldResult::End => return records,
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// What is accepted is read as csv-core reads it; docs/dialects.md tells what is not accepted.
    #[test]
    fn accepted_records_are_those_of_csv_core(
        text in prop::collection::vec(prop::sample::select(b"ab,,\"\"\n\n\r ".to_vec()), 0..40),
    ) {
        let dialect = Dialect { line_end: LineEnd::Any, ..Dialect::default() };
        let rules = dialect.record_rules(2);
        let text = String::from_utf8(text).unwrap();
        let ours = read_all(&text, &rules);
        if ours.iter().any(|(_, fault)| *fault != Fault::None) {
            return Ok(());
        }
        let blank = |fields: &Vec<String>| matches!(&fields[..], [field] if field.is_empty());
        let ours: Vec<_> = ours.into_iter().map(|(f, _)| f).filter(|f| !blank(f)).collect();
        let theirs: Vec<_> =
            read_with_csv_core(text.as_bytes()).into_iter().filter(|f| !blank(f)).collect();
        prop_assert_eq!(ours, theirs);
    }
}
