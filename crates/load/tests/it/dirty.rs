//! Dirty and unusual text: the same rows, rejects and mendings for any chunks and threads, and those
//! that the careful reader gives when it has all of the text.

use std::path::PathBuf;

use coload_load::LoadReport;
use coload_source::{
    Dialect, Escapes, Header, InputFile, InputSource, InvalidBytes, LineEnd, LongDelimiter,
    Mending, Policies, Quotes, Ragged, Said, TextEncoding, Trailing,
};
use coload_store::Store;
use coload_types::Value;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::dirty_model::{Expected, Row};
use crate::support::{Options, load, options, rows, scratch, segment_bytes, write};
use crate::text::Random;

fn dialect(random: &mut Random) -> Dialect {
    let escape = random.of(&[None, None, None, Some(b'\\')]);
    let outside = random.of(&[Escapes::Quoted, Escapes::Anywhere, Escapes::Letters]);
    let long = [None, None, LongDelimiter::new(b", "), LongDelimiter::new(b"::")];
    let long_delimiter = random.of(&long);
    Dialect {
        // A field may begin with what looks like a mark of UTF-16.
        encoding: TextEncoding { said: Said::User, ..TextEncoding::default() },
        long_delimiter,
        quote: random.of(&[Some(b'"'), Some(b'"'), Some(b'"'), None]),
        escape,
        escapes: if escape.is_some() { outside } else { Escapes::Quoted },
        header: random.of(&[Header::Absent, Header::Present]),
        header_rows: 1 + random.below(2) as u64,
        nulls: Vec::new(),
        comment: random.of(&[None, None, Some(b'#')]),
        trailing: random.of(&[Trailing::Newline, Trailing::Newline, Trailing::Delimiter]),
        line_end: random.of(&[LineEnd::Newline, LineEnd::Any, LineEnd::Returns]),
        policies: Policies {
            ragged: random.of(&[Ragged::Reject, Ragged::Pad, Ragged::Truncate]),
            quotes: random.of(&[Quotes::Strict, Quotes::Lenient, Quotes::Lenient]),
            invalid_bytes: random.of(&[InvalidBytes::Reject, InvalidBytes::Replace]),
        },
        ..Dialect::default()
    }
}

/// Records of `columns` fields, some of them dirty.
fn text(random: &mut Random, dialect: &Dialect, columns: usize, count: usize) -> Vec<u8> {
    let delimiter = dialect.long_delimiter.map_or(vec![dialect.delimiter], |l| l.bytes().to_vec());
    let dirt = random.of(&[2, 5, 20, 1000]);
    let line_ends: &[&[u8]] =
        random.of::<&[&[u8]]>(&[&[b"\n"], &[b"\r\n"], &[b"\r\r\n"], &[b"\n", b"\r\n", b"\r"]]);
    let mut out = Vec::new();
    for _ in 0..count {
        let surplus = if random.one_in(dirt) { random.below(4) as i64 - 1 } else { 0 };
        let fields = (columns as i64 + surplus).max(1);
        for index in 0..fields {
            if index > 0 {
                out.extend_from_slice(&delimiter);
            }
            let clean: &[&[u8]] =
                &[b"a", b"bc", b"12", b"", b"\"x\"", b"\"a, b\"", b"\"two\nlines\""];
            let dirty: &[&[u8]] = &[
                b"\"",
                b"5\"",
                b"\"5\" x\"",
                b"\"a\"b",
                b"\xff",
                b"\"\r\n\"",
                b"a\rb",
                b"\"\"\"",
                b"\\\"",
                b"a\\",
                b"\\,",
                b"\\\nb",
                b"\\t\\\\",
                b"#",
                b"\"a\"\"b\"",
                b",",
                b":",
                b"\"open",
            ];
            let choices = if random.one_in(dirt) { dirty } else { clean };
            let field = random.of(choices);
            out.extend_from_slice(field);
        }
        if dialect.trailing == Trailing::Delimiter && !random.one_in(9) {
            out.extend_from_slice(&delimiter);
        }
        out.extend_from_slice(random.of(line_ends));
        if random.one_in(dirt) {
            out.extend_from_slice(random.of::<&[u8]>(&[b"\n", b"# \" note\n", b"\r\n", b"\"\n"]));
        }
    }
    if random.one_in(3) {
        out.pop();
    }
    out
}

fn show(row: &Row) -> Vec<String> {
    let text = |value: &Option<Value>| match value {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    };
    row.iter().map(text).collect()
}

fn check(dir: &TempDir, options: &Options, expected: &Expected, what: &str) -> Vec<Vec<u8>> {
    let store = Store::create_or_open(dir.path().join(what)).unwrap();
    let report: LoadReport = load(&store, options).unwrap();
    let found = rows(&store, "t");
    for (index, (found, expected)) in found.iter().zip(&expected.rows).enumerate() {
        assert_eq!(show(found), show(expected), "{what}: row {index}, {:?}", options.dialect);
    }
    let more = found.iter().skip(expected.rows.len()).chain(expected.rows.iter().skip(found.len()));
    let more: Vec<_> = more.map(show).collect();
    assert!(more.is_empty(), "{what}: {more:?}, {:?}", options.dialect);
    let rejects: Vec<(u64, u64)> =
        report.rejects.iter().map(|r| (r.place.line, r.place.byte)).collect();
    let told = expected.rejects.len().min(10);
    assert_eq!(rejects, expected.rejects[..told], "{what}");
    assert_eq!(report.reject_count(), expected.rejects.len() as u64, "{what}");
    for mending in Mending::ALL {
        let count = expected.mended[mending as usize];
        assert_eq!(report.mended(mending), count, "{what}: {mending:?}");
    }
    segment_bytes(&store, "t")
}

fn check_all(seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let dir = scratch();
    let (columns, mut dialect) = (random.of(&[1, 2, 3, 3, 5]), dialect(&mut random));
    let rules = dialect.record_rules(columns);
    if !rules.is_exotic() && !rules.is_forgiving() {
        // A quote in a comment takes records with it there: `pipeline` has that.
        dialect.comment = None;
    }
    let text = text(&mut random, &dialect, columns, count);
    let expected = Expected::read(&text, &dialect, columns);
    let path: PathBuf = write(&dir, "in.csv", &text);
    let names: Vec<String> = (0..columns).map(|c| format!("c{c} VARCHAR NOT NULL")).collect();
    let mut options = options(std::slice::from_ref(&path), &names.join(", "), dialect);
    // From the longest record to five bytes more, so that chunks end at every byte of a record.
    let longest = expected.record_bytes_max.max(16);
    for (index, chunk_bytes) in (longest..=longest + 5).enumerate() {
        let mut options = options.clone();
        options.resources.chunk_bytes = chunk_bytes;
        options.resources.fragments_per_partition = random.of(&[1, 3, 50]);
        options.resources.threads = 1;
        let one = check(&dir, &options, &expected, &format!("{index}-1"));
        options.resources.threads = 2 + random.below(7);
        let many =
            check(&dir, &options, &expected, &format!("{index}-{}", options.resources.threads));
        assert!(one == many, "other segments for {} threads", options.resources.threads);
    }
    let stream = InputSource::Stream { path };
    let stream = vec![InputFile { name: "-".into(), source: stream }];
    options.inputs = stream.into();
    options.resources.chunk_bytes = longest;
    check(&dir, &options, &expected, "stream");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn dirty_text_gives_the_same_rows_for_any_chunks_and_threads(seed: u64, count in 0usize..60) {
        check_all(seed, count);
    }
}
