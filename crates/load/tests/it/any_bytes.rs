//! Any bytes, read by any dialect that flags can give: loaded or refused, never a panic.
//!
//! Symptom: `--delimiter '\x00'`, and files with NULs of which the encoding was found out, ended in a panic of the reader.
//! Cause: the widest tokeniser set the bytes behind a text to zero and then took them for delimiters; its own test is in
//! `coload_source`'s `tokenise/tests.rs`. NUL is no delimiter any more either.

use coload_source::{
    Dialect, Escapes, FixedWidths, GivenDialect, GivenPolicies, Header, InvalidBytes, LineEnd,
    NullsAre, Quotes, Ragged, SampleEnd, sniff,
};
use coload_store::Store;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{inputs, load, may_be_compressed, options, scratch, write};

/// Bytes with a meaning to some dialect, and those of encodings.
const BYTES: &[u8] = b"\0\x01\x1a\t\n\r \"#',-.0179;\\|aNe\x80\x89\xc3\xa9\xfe\xff";

fn byte() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![3 => Just(None), 2 => prop::sample::select(BYTES).prop_map(Some)]
}

prop_compose! {
    fn given_dialect()(
        delimiter in prop_oneof![
            2 => Just(None),
            2 => prop::sample::select(BYTES).prop_map(|byte| Some(vec![byte])),
            1 => prop::collection::vec(prop::sample::select(BYTES), 2..4).prop_map(Some),
        ],
        (quote, escape, comment) in (byte(), byte(), byte()),
        decimal in byte(),
        thousands in byte(),
        numbers in (any::<u16>(), 0..3_u64, 0..3_u64, 0..3_u64),
    ) -> GivenDialect {
        let (bits, skip, footer, header_rows) = numbers;
        let one_of = |shift: u32, count: u16| (bits >> shift) % (count + 1);
        GivenDialect {
            fixed: FixedWidths::parse("2,3").ok().filter(|_| delimiter.is_none() && one_of(0, 7) == 1),
            delimiter,
            quote: quote.map(Some),
            escape: escape.map(Some),
            comment: comment.map(Some),
            escapes: [None, Some(Escapes::Anywhere), Some(Escapes::Letters)][usize::from(one_of(1, 2))],
            line_end: [None, Some(LineEnd::Newline), Some(LineEnd::Any), Some(LineEnd::Returns)]
                [usize::from(one_of(3, 3))],
            header: [None, Some(Header::Present), Some(Header::Absent)][usize::from(one_of(5, 2))],
            nulls: (one_of(7, 3) == 0).then(|| vec![b"N".to_vec(), b"\\N".to_vec()]),
            nulls_are: if one_of(8, 1) == 0 { NullsAre::Unquoted } else { NullsAre::AlsoQuoted },
            policies: GivenPolicies {
                ragged: [None, Some(Ragged::Pad), Some(Ragged::Truncate)][usize::from(one_of(9, 2))],
                quotes: [None, Some(Quotes::Strict), Some(Quotes::Lenient)][usize::from(one_of(11, 2))],
                invalid_bytes: (one_of(12, 1) == 0).then_some(InvalidBytes::Replace),
            },
            all_text: one_of(13, 3) == 0,
            skip: (skip > 0).then_some(skip),
            footer: (footer > 0).then_some(footer),
            header_rows: (header_rows > 0).then_some(header_rows),
            decimal,
            thousands,
            ..GivenDialect::default()
        }
    }
}

/// Loads bytes as `coload load` does; what is wrong, if they are refused.
fn load_bytes(
    dir: &TempDir,
    store: &Store,
    bytes: &[u8],
    given: &GivenDialect,
) -> Result<(), String> {
    let path = write(dir, "in.csv", bytes);
    let sniffed =
        sniff("in.csv", bytes, SampleEnd::Whole, given, None).map_err(|e| e.to_string())?;
    let mut options = options(&[path], "c VARCHAR", Dialect::default());
    options.inferred = (!sniffed.forms.is_empty()).then_some(sniffed.forms);
    (options.schema, options.dialect) = (sniffed.schema, sniffed.dialect);
    options.mode = coload_store::LoadMode::Replace;
    options.resources.chunk_bytes = 16 + bytes.len() % 7;
    assert_eq!(inputs(&[dir.path().join("in.csv")]).len(), 1);
    load(store, &options).map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn a_nul_is_no_delimiter_and_bytes_that_look_like_it_are_read() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let nul = GivenDialect { delimiter: Some(vec![0]), ..GivenDialect::default() };
    let told = load_bytes(&dir, &store, b"a\0b\n1\x002\n", &nul).unwrap_err();
    assert!(told.contains("--delimiter cannot be NUL"), "{told}");
    // The bytes of the report: loaded or refused, and not a panic.
    let _ = load_bytes(&dir, &store, b"\x80\x89\0\0\xff\x89", &GivenDialect::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_and_no_flags_end_in_a_panic(
        tries in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(BYTES), 0..48), given_dialect()),
            1..4,
        ),
    ) {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("store")).unwrap();
        for (bytes, given) in tries.iter().filter(|(bytes, _)| !may_be_compressed(bytes)) {
            let _ = load_bytes(&dir, &store, bytes, given);
        }
    }
}
