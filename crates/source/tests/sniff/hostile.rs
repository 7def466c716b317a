//! Bytes that no program writes, and flags that do not fit them: a table or an error, never a panic.
//!
//! Lines are made of what the sniffer looks for, and come again, so that readings of a text differ in how many records they find.
//! `PROPTEST_CASES` is how many texts are tried.

use coload_ddl::parse_columns;
use coload_input::Encoding;
use coload_source::{
    Aligned, DateFormat, Escapes, FixedWidths, GivenDialect, GivenPolicies, Header, InputFormat,
    InvalidBytes, LineEnd, NullsAre, Quotes, Ragged, SampleEnd, TimestampFormat, Trailing,
    TypeOrder, UnknownKeys, read_names, sniff,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::read::read_given;

/// Texts that are tried if nothing else is asked for.
const TEXTS: u32 = 2000;
/// Most bytes of a text.
const BYTES_MAX: usize = 400;

/// What lines are made of: delimiters, quotes, drawings, comments, numbers, words, and bytes that are no text.
const PARTS: [&[u8]; 92] = [
    b",",
    b",",
    b";",
    b";",
    b"\t",
    b"\t",
    b"|",
    b"|",
    b" ",
    b" ",
    b"  ",
    b", ",
    b" | ",
    b"||",
    b"|~|",
    b"::",
    b"^",
    b"~",
    b"\x01",
    b"\x1f",
    b"%",
    b"@@",
    b"\"",
    b"\"",
    b"'",
    b"`",
    b"\"\"",
    b"\\",
    b"\\\"",
    b"\\,",
    b"\\N",
    b"\\t",
    b"-",
    b"--",
    b"---",
    b"-----",
    b"=",
    b"===",
    b"+",
    b"+---+",
    b"*",
    b"***",
    b"/",
    b"//",
    b"/*",
    b"*/",
    b":",
    b": ",
    b"#",
    b"# ",
    b"##",
    b"#Fields:",
    b"#Fields: a b",
    b"sep=;",
    b"SQL> ",
    b"(2 rows)",
    b"2 rows selected.",
    b"Source: x",
    b"(",
    b")",
    b"{",
    b"[",
    b"<",
    b"1",
    b"1",
    b"2",
    b"12",
    b"007",
    b"2019",
    b"2020",
    b"2021",
    b"1.5",
    b"1,5",
    b"1.234,5",
    b"-3",
    b"1e5",
    b"2024-01-02",
    b"31.12.2024",
    b"12:30:00",
    b"true",
    b"NA",
    b"a",
    b"b",
    b"id",
    b"name",
    b"Ann",
    b"\xc3\xa9",
    b"\xff",
    b"\0",
    b"\x1a",
    b"\xef\xbb\xbf",
    b"\r",
];

/// What lines end with.
const ENDS: [&[u8]; 8] = [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\r\r\n", b"\n\n", b""];

/// How a text is written.
#[derive(Debug, Clone, Copy)]
enum Units {
    Bytes,
    Utf16Le,
    Utf16LeMarked,
    Utf16BeMarked,
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let part = select(PARTS.to_vec());
    let line = (prop::collection::vec(part, 0..9), 1..6_usize, select(ENDS.to_vec()));
    let units = prop_oneof![
        12 => Just(Units::Bytes),
        1 => Just(Units::Utf16Le),
        1 => Just(Units::Utf16LeMarked),
        1 => Just(Units::Utf16BeMarked),
    ];
    (prop::collection::vec(line, 0..12), units).prop_map(|(lines, units)| {
        let mut text = Vec::new();
        for (parts, times, end) in lines {
            let line = [parts.concat(), end.to_vec()].concat();
            text.extend(line.repeat(times));
        }
        text.truncate(BYTES_MAX);
        let wide = text.iter().map(|byte| u16::from(*byte));
        let marked = std::iter::once(0xfeff).chain(wide.clone());
        match units {
            Units::Bytes => text,
            Units::Utf16Le => wide.flat_map(u16::to_le_bytes).collect(),
            Units::Utf16LeMarked => marked.flat_map(u16::to_le_bytes).collect(),
            Units::Utf16BeMarked => marked.flat_map(u16::to_be_bytes).collect(),
        }
    })
}

/// A flag that is seldom given.
fn seldom<T: std::fmt::Debug>(flag: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.1, flag)
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(all: &[T]) -> impl Strategy<Value = T> + use<T> {
    select(all.to_vec())
}

/// What a user may say of a text, rightly or wrongly.
fn any_given() -> impl Strategy<Value = GivenDialect> {
    let bytes = b",;\t| ^~\"'\\#-=.1a:\x01\xc3";
    let long: [&[u8]; 9] = [b",", b";", b"\t", b"||", b"|~|", b", ", b"::", b"\xc2\xa7", b""];
    let fixed = ["3,4", "1-2,5-6", "7-", "1", "2,2,2,2", "30-31,35-", "1-3,4-"]
        .map(|widths| FixedWidths::parse(widths).unwrap());
    let count = || prop_oneof![8 => 0..5_u64, 1 => Just(100), 1 => Just(u64::MAX)];
    let fields = (
        (
            seldom(one_of(&long.map(<[u8]>::to_vec))),
            seldom(one_of(&fixed)),
            seldom(one_of(&Aligned::ALL)),
            seldom(prop::option::of(one_of(bytes))),
            seldom(prop::option::of(one_of(bytes))),
            seldom(prop::option::of(one_of(bytes))),
        ),
        (
            seldom(one_of(&[Escapes::Quoted, Escapes::Anywhere, Escapes::Letters])),
            seldom(one_of(&[Header::Present, Header::Absent])),
            seldom(count()),
            seldom(count()),
            seldom(count()),
            seldom(one_of(&[LineEnd::Newline, LineEnd::Any, LineEnd::Returns])),
            seldom(one_of(&[Trailing::Delimiter, Trailing::Newline])),
        ),
        (
            seldom(one_of(&[Ragged::Reject, Ragged::Pad, Ragged::Truncate])),
            seldom(one_of(&[Quotes::Strict, Quotes::Lenient])),
            seldom(one_of(&[InvalidBytes::Reject, InvalidBytes::Replace])),
        ),
        (
            seldom(one_of(b",.")),
            seldom(one_of(b"., '")),
            seldom(one_of(&["%d.%m.%Y", "%Y"])),
            seldom(one_of(&["%d.%m.%Y %H:%M", "%s"])),
            seldom(one_of(&["DOUBLE", "DATE,BIGINT", "VARCHAR"])),
            seldom(one_of(&["a BIGINT", "c2 DATE"])),
        ),
        (
            seldom(one_of(&[vec![b"NA".to_vec()], vec![], vec![b"".to_vec(), b"-".to_vec()]])),
            seldom(one_of(&[vec![b"NA".to_vec()], vec![]])),
            any::<bool>(),
            prop::bool::weighted(0.1),
            seldom(one_of(&[
                Encoding::Utf8,
                Encoding::Standard(encoding_rs::SHIFT_JIS),
                Encoding::Utf16ByMark,
                Encoding::Utf32ByMark,
            ])),
        ),
    );
    fields.prop_map(|(split, lines, policies, forms, rest)| {
        let (delimiter, fixed, aligned, quote, escape, comment) = split;
        let (escapes, header, header_rows, skip, footer, line_end, trailing) = lines;
        let (ragged, quotes, invalid_bytes) = policies;
        let (decimal, thousands, date, timestamp, types, columns) = forms;
        let (nulls, typed_nulls, also_quoted, all_text, encoding) = rest;
        GivenDialect {
            delimiter,
            fixed,
            aligned,
            quote,
            escape,
            comment,
            escapes,
            header,
            header_rows,
            skip,
            footer,
            line_end,
            trailing,
            policies: GivenPolicies { ragged, quotes, invalid_bytes },
            columns_are_given: header_rows.is_some(),
            decimal,
            thousands,
            date: date.and_then(|form| DateFormat::parse(form).ok()),
            timestamp: timestamp.and_then(|form| TimestampFormat::parse(form).ok()),
            types: types.map(|order| TypeOrder::parse(order).unwrap()),
            columns: columns.map_or_else(Vec::new, |columns| {
                parse_columns(columns).unwrap().columns().to_vec()
            }),
            nulls,
            typed_nulls,
            nulls_are: if also_quoted { NullsAre::AlsoQuoted } else { NullsAre::Unquoted },
            all_text,
            encoding,
            format: (all_text && also_quoted).then_some(InputFormat::Json),
            unknown_keys: UnknownKeys::Reject,
            unnest: None,
            mapping: None,
        }
    })
}

fn texts() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { TEXTS };
    ProptestConfig { cases, ..asked }
}

proptest! {
    #![proptest_config(texts())]

    #[test]
    fn any_text_and_any_flags_give_a_table_or_an_error(
        text in any_text(),
        told in prop_oneof![Just(GivenDialect::default()), any_given()],
        cut in any::<bool>(),
    ) {
        let end = if cut { SampleEnd::Cut } else { SampleEnd::Whole };
        let _ = read_given(&text, &told);
        let schema = parse_columns("a BIGINT, b VARCHAR").unwrap();
        for schema in [None, Some(&schema)] {
            let Ok(found) = sniff("t", &text, end, &told, schema) else { continue };
            prop_assert!(found.dialect.check().is_ok(), "{:?}", found.dialect);
            prop_assert!(!found.schema.is_empty());
            prop_assert!(schema.is_none_or(|schema| *schema == found.schema));
            let names = read_names(&text, end, &found.dialect, found.schema.len());
            prop_assert!(names.len() as u64 <= found.dialect.header_records());
        }
    }
}
