//! A text in another encoding gives the rows that it gives in UTF-8.

use coload_input::{Encoding, Said, TextEncoding};
use coload_source::Dialect;
use coload_store::Store;
use proptest::prelude::*;

use crate::support::{load, options, rows, scratch, write};

const COLUMNS: &str = "a INTEGER, b VARCHAR, c VARCHAR";

/// Characters of one to four bytes in UTF-8, quotes, delimiters and line ends.
fn text() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "ü",
        "Ж",
        "一",
        "\u{10348}",
        "x",
        "\"a,b\"",
        "\"ü\nЖ\"",
        "",
        "\"\"\"q\"\"\"",
    ]);
    prop::collection::vec((any::<u8>(), field.clone(), field), 0..60)
        .prop_map(|records| records.into_iter().map(|(a, b, c)| format!("{a},{b},{c}\n")).collect())
}

fn encode(label: &str, text: &str) -> Vec<u8> {
    match label {
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-32le" => text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect(),
        _ => encoding_rs::GB18030.encode(text).0.into_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_text_in_another_encoding_gives_its_rows(
        texts in prop::collection::vec(text(), 1..4), chunk_bytes in 16usize..400,
        threads in 1usize..4, marked: bool,
    ) {
        let dir = scratch();
        let load_as = |label: &str, mark: &str| {
            let files: Vec<_> = texts
                .iter()
                .enumerate()
                .map(|(i, t)| (format!("{label}{i}.csv"), format!("{mark}{t}")))
                .map(|(name, text)| match label {
                    "utf-8" => write(&dir, &name, text.as_bytes()),
                    _ => write(&dir, &name, &encode(label, &text)),
                })
                .collect();
            let mut options =
                options(&files, COLUMNS, Dialect::default()).with_threads(threads);
            options.resources.chunk_bytes = chunk_bytes;
            // A mark tells of itself.
            if label != "utf-8" && mark.is_empty() {
                let encoding = Encoding::from_label(label).unwrap();
                options.dialect.encoding = TextEncoding { encoding, said: Said::User };
            }
            let store = Store::create_or_open(dir.path().join(format!("{label}-store"))).unwrap();
            let report = load(&store, &options).unwrap();
            (rows(&store, "t"), report.files.iter().map(|f| f.records).collect::<Vec<_>>())
        };
        let expected = load_as("utf-8", "");
        for label in ["utf-16le", "utf-16be", "utf-32le", "gb18030"] {
            // Its mark is a character as any other.
            let mark = if marked && label != "gb18030" { "\u{feff}" } else { "" };
            prop_assert_eq!(&load_as(label, mark), &expected, "{}", label);
        }
    }
}

#[test]
fn what_is_malformed_is_set_aside() {
    let dir = scratch();
    let text = encode("utf-16le", "1,a,b\n2,?,c\n3,d,e\n");
    // An unpaired surrogate in place of the question mark.
    let mut text = text;
    let at = text.windows(2).position(|pair| pair == b"?\0").unwrap();
    text[at..at + 2].copy_from_slice(&[0, 0xd8]);
    let path = write(&dir, "in.csv", &text);
    let mut options = options(&[path], COLUMNS, Dialect::default());
    let encoding = Encoding::from_label("utf-16le").unwrap();
    options.dialect.encoding = TextEncoding { encoding, said: Said::Nobody };
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let report = load(&store, &options).unwrap();
    assert_eq!((report.rows(), report.reject_count()), (2, 1));
    assert_eq!(report.rejects[0].place.line, 2);
}
