//! Repeated fields read once give the rows that reading each gives.
#![allow(clippy::unwrap_used)]

use coload_page::{Page, PageDetail};
use coload_transform::{FragmentColumn, page_values};
use coload_types::{DataType, Plain};
use proptest::prelude::*;

use super::text::LONG_TEXTS_BYTES;
use super::*;
use crate::TEXT_PADDING;
use crate::column_rules::TypeOrigin;
use crate::field::FieldRules;
use crate::tokenise::{Separators, tokenise};

fn parser_of(data_type: DataType, plan: ColumnPlan) -> ColumnParser {
    let rules = ColumnRules {
        origin: TypeOrigin::Declared,
        field: Some(0),
        absent: None,
        data_type,
        nullable: true,
        empties_are_null: false,
        fields: FieldRules {
            quote: Some(b'"'),
            nulls: vec![b"".to_vec()],
            ..FieldRules::default()
        },
    };
    ColumnParser::new(rules, plan, Lexicon::new(data_type.physical()))
}

/// Records of one field each.
fn with_rows(fields: &[String], read: impl FnOnce(&Rows<'_>, &Seen)) {
    let mut text = vec![b'\n'];
    fields.iter().for_each(|f| text.extend_from_slice(format!("{f}|\n").as_bytes()));
    let end = text.len();
    text.extend([0; TEXT_PADDING]);
    let separators = Separators { delimiter: b'|', quote: Some(b'"'), escape: None };
    let mut ends = vec![0];
    let seen = tokenise(&text, 1, end, separators, &mut ends);
    read(&Rows { text: &text, ends: &ends, stride: 2, count: fields.len(), fields: 1 }, &seen);
}

/// Reads one column of a file, in blocks of `block` records: its page and the bad fields.
fn read(
    fields: &[String],
    plan: ColumnPlan,
    data_type: DataType,
    block: usize,
) -> (Page, Vec<BadField>) {
    let mut parser = parser_of(data_type, plan);
    let mut bad = Vec::new();
    for (number, part) in fields.chunks(block).enumerate() {
        let mut now = Vec::new();
        with_rows(part, |rows, seen| {
            // As after a bad record: the block is read, given up and read again.
            let mark = parser.mark();
            parser.parse(rows, 0, seen, &mut now).unwrap();
            parser.truncate(mark);
            now.clear();
            parser.parse(rows, 0, seen, &mut now).unwrap();
        });
        now.sort_by_key(|b| b.row);
        bad.extend(now.iter().map(|b| BadField { row: b.row + number * block, ..*b }));
    }
    let FragmentColumn::Page(page) = parser.finish(0).unwrap() else { panic!("not a page") };
    (page, bad)
}

/// Plans for fields like those of the sample.
fn plans(data_type: DataType, sample: &[String]) -> [ColumnPlan; 2] {
    [false, true].map(|repeats| match data_type.physical() {
        Physical::Bytes => {
            let encoder = SymbolEncoder::train(sample.len(), |i| sample[i].as_bytes());
            ColumnPlan::Text { encoder: Arc::new(encoder), repeats }
        }
        _ => ColumnPlan::Numbers { repeats },
    })
}

fn values(page: &Page, plan: &ColumnPlan) -> Plain {
    let encoder = match plan {
        ColumnPlan::Text { encoder, .. } => Some(&**encoder),
        _ => None,
    };
    page_values(page, encoder).unwrap()
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0u32..5000).prop_map(|n| format!("{}.{:02}", n * 7919 % 5000, n % 100)),
        1 => Just(String::new()),
        1 => Just("1.5".to_owned()),
        1 => Just("1.50".to_owned()),
        1 => Just("\"1.50\"".to_owned()),
        1 => Just("no number".to_owned()),
        1 => Just("a text that is longer than a key".to_owned()),
    ]
}

proptest! {
    #[test]
    fn repeated_fields_are_rows(
        runs in prop::collection::vec((field(), prop_oneof![1usize..3, 1usize..900]), 1..60),
        block in 1usize..512,
        data_type in prop_oneof![
            Just(DataType::Decimal { precision: 9, scale: 2 }),
            Just(DataType::Decimal { precision: 30, scale: 2 }),
            Just(DataType::Varchar(None)),
        ],
        is_like_the_sample in any::<bool>(),
    ) {
        let repeat = |(f, n): &(String, usize)| std::iter::repeat_n(f.clone(), *n);
        let fields: Vec<String> = runs.iter().flat_map(repeat).collect();
        let other = ["\u{e9}\u{fc}".to_owned()];
        let sample = if is_like_the_sample { &fields[..] } else { &other };
        let plans = plans(data_type, sample);
        let [each, once] = plans.clone().map(|plan| read(&fields, plan, data_type, block));
        prop_assert_eq!(values(&once.0, &plans[0]), values(&each.0, &plans[0]));
        prop_assert_eq!(once.1, each.1);
        if let PageDetail::Text { symbols } = each.0.detail {
            let is_empty = fields.iter().all(|f| ["", "no number"].contains(&f.as_str()));
            prop_assert!(is_like_the_sample || symbols == 0 || is_empty);
        }
    }
}

/// A field as an exporter writes it, or not quite.
fn quoted_field() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[ab\"|\n]{0,6}".prop_map(|text| format!("\"{}\"", text.replace('"', "\"\""))),
        2 => "[ab]{0,4}",
        1 => Just("\"\"".to_owned()),
        1 => "[a\u{e9}]{1,3}",
    ]
}

proptest! {
    /// A NULL text that no field is has fields read one by one.
    #[test]
    fn quoted_fields_of_a_window_are_those_read_one_by_one(
        fields in prop::collection::vec(quoted_field(), 1..60),
        limit in prop_oneof![Just(None), Just(Some(4))],
        nullable in any::<bool>(),
        empties_are_null in any::<bool>(),
    ) {
        let data_type = DataType::Varchar(limit);
        let [one_by_one, at_once] = [vec![Vec::new(), b"none".to_vec()], vec![Vec::new()]].map(|nulls| {
            let mut parser = parser_of(data_type, ColumnPlan::PlainText);
            parser.rules.nullable = nullable;
            parser.rules.empties_are_null = empties_are_null;
            parser.rules.fields.nulls = nulls;
            let mut bad = Vec::new();
            with_rows(&fields, |rows, seen| parser.parse(rows, 0, seen, &mut bad).unwrap());
            let FragmentColumn::Plain(plain) = parser.finish(0).unwrap() else { panic!("coded") };
            (plain, bad)
        });
        prop_assert_eq!(one_by_one, at_once);
    }
}

/// Texts that symbols do not suit are kept as they are from the window on that shows it, and the rows are the same.
#[test]
fn long_texts_leave_symbols() {
    let long = |letter: &str| letter.repeat(LONG_TEXTS_BYTES / 2);
    let mut fields: Vec<String> = (0..3000).map(|i| format!("{}-{}", i / 3, i % 2)).collect();
    fields.push(String::new());
    let sample = fields.clone();
    fields.extend([long("x"), String::new(), long("y"), "short".to_owned(), long("x")]);
    let mut texts = fields.clone();
    for part in ["a", "\"\"", ","] {
        fields.push(format!("\"{}\"", part.repeat(LONG_TEXTS_BYTES + 1)));
        texts.push(part.replace("\"\"", "\"").repeat(LONG_TEXTS_BYTES + 1));
    }
    fields.push("\"last\"".to_owned());
    texts.push("last".to_owned());
    let plans = plans(DataType::Varchar(None), &sample);
    for plan in plans {
        let mut parser = parser_of(DataType::Varchar(None), plan.clone());
        let mut bad = Vec::new();
        for block in [&fields[..3001], &fields[3001..]] {
            for part in block.chunks(500) {
                with_rows(part, |rows, seen| {
                    parser.weigh_symbols(rows);
                    parser.parse(rows, 0, seen, &mut bad).unwrap();
                });
            }
        }
        let FragmentColumn::Plain(plain) = parser.finish(0).unwrap() else { panic!("symbols") };
        let Values::Bytes(strings) = &plain.values else { panic!("not text") };
        assert!(strings.iter().eq(texts.iter().map(String::as_bytes)));
        let nulls: Vec<usize> = (0..plain.len()).filter(|row| plain.is_null(*row)).collect();
        assert_eq!(nulls, [3000, 3002]);
        // The next fragment has symbols again.
        with_rows(&sample[..500], |rows, seen| {
            parser.weigh_symbols(rows);
            parser.parse(rows, 0, seen, &mut bad).unwrap();
        });
        let FragmentColumn::Page(page) = parser.finish(0).unwrap() else { panic!("not a page") };
        let Values::Bytes(strings) = values(&page, &plan).values else { panic!("not text") };
        assert!(strings.iter().eq(sample[..500].iter().map(String::as_bytes)));
        assert_eq!(bad.len(), 0);
    }
}
