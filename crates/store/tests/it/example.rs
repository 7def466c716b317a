//! The stored examples of each format: a small segment with every encoding, and its rows.

use std::path::{Path, PathBuf};

use coload_page::runs::shrink_to_runs;
use coload_page::{
    CodecId, ColumnIndex, EncodedStrings, Page, SOURCE_PADDING, SegmentId, SymbolEncoder,
    encode_codes_u16, encode_plain, encode_text, shrink_page,
};
use coload_store::{FinishedColumn, SegmentFile, SegmentWriter, column_stats};
use coload_types::{
    Dictionary, Physical, Plain, Value, Values, ordinal_from_f32, ordinal_from_f64,
};

/// Rows of the pages: two blocks, some rows, one row.
const PAGE_ROWS: [u32; 3] = [1_030, 20, 1];

type Rows = Vec<Option<Value>>;

/// Fixed numbers that look random (Knuth's multiplier).
fn number(row: usize) -> u64 {
    let x = (row as u64 + 1).wrapping_mul(6_364_136_223_846_793_005);
    x ^ x >> 31
}

/// What a column of the example holds, and how it is written.
struct Example {
    physical: Physical,
    /// Whether each page holds codes.
    coded: [bool; 3],
    stored: Stored,
    /// Codec of the first page, where it is not the one that pages are made with.
    codec: Option<CodecId>,
    value: fn(usize) -> Option<Value>,
}

/// Those before are the examples of the formats before 3.
const EXAMPLES_BEFORE_3: usize = 18;

fn in_codec(codec: CodecId, of: Example) -> Example {
    Example { codec: Some(codec), ..of }
}

fn cents(row: usize) -> Value {
    let odd = [f64::NAN, -0.0, f64::INFINITY, 1e-300];
    Value::Int(ordinal_from_f64(match row % 200 {
        0 => odd[row / 200 % odd.len()],
        _ => (number(row) % 100_000) as f64 / 100.0,
    }))
}

fn tenths(row: usize) -> i64 {
    ordinal_from_f32((number(row) % 10_000) as f32 / 10.0)
}

fn fraction(row: usize) -> Value {
    Value::Int(ordinal_from_f64((number(row) >> 11) as f64 / (1u64 << 53) as f64 - 0.5))
}

/// How pages are stored.
#[derive(Clone, Copy, PartialEq)]
enum Stored {
    Rows,
    Runs,
}

fn text(text: String) -> Option<Value> {
    Some(Value::Bytes(text.into_bytes().into()))
}

fn null_if(null: bool, value: Value) -> Option<Value> {
    (!null).then_some(value)
}

/// Numbers of all widths, with and without NULL; text with and without symbols; codes; both.
fn examples() -> Vec<Example> {
    use Physical::{Bytes, Int, Wide};
    let stored = Stored::Rows;
    let plain =
        |physical, value| Example { physical, coded: [false; 3], stored, codec: None, value };
    let coded =
        |physical, value| Example { physical, coded: [true; 3], stored, codec: None, value };
    let runs = |e: Example| Example { stored: Stored::Runs, ..e };
    vec![
        plain(Int, |_| Some(Value::Int(-7))),
        plain(Int, |r| Some(Value::Int(r as i64 % 100 - 50))),
        plain(Int, |r| null_if(r % 11 == 3, Value::Int(1_000_000 + r as i64 * 31))),
        plain(Int, |r| Some(Value::Int(number(r) as i64))),
        plain(Int, |_| None),
        plain(Wide, |r| null_if(r % 5 == 0, Value::Wide(i128::from(r as i64 % 9) << 50))),
        plain(Wide, |r| Some(Value::Wide(i128::from(number(r) as i64) << 40))),
        plain(Bytes, |r| null_if(r % 3 == 1, Value::Bytes(vec![r as u8; r % 4].into()))),
        plain(Bytes, |r| text(format!("deposits sleep carefully {}", r % 17))),
        coded(Int, |r| Some(Value::Int(r as i64 % 3))),
        coded(Int, |r| null_if(r >= 1_040, Value::Int(r as i64 / 100 * 1_000))),
        coded(Wide, |r| null_if(r % 2 == 0, Value::Wide(-(i128::from(r as i64 % 5) << 100)))),
        coded(Bytes, |r| text(format!("{:04}", r % 300))),
        Example { coded: [true, false, true], ..plain(Int, |r| Some(Value::Int(r as i64 % 2))) },
        runs(plain(Int, |r| null_if(r / 7 % 4 == 1, Value::Int(number(r / 7) as i64 % 1_000)))),
        runs(plain(Wide, |r| Some(Value::Wide(i128::from(number(r / 90) as i64) << 20)))),
        runs(plain(Bytes, |r| text(format!("order {} of the day", r / 4)))),
        runs(coded(Bytes, |r| {
            null_if(r / 5 % 3 == 0, Value::Bytes([b'a' + (r / 5 % 20) as u8].into()))
        })),
        in_codec(
            CodecId::DELTAS,
            plain(Int, |r| Some(Value::Int(r as i64 * 1_009 + r as i64 % 4))),
        ),
        in_codec(CodecId::DECIMALS, plain(Int, |r| null_if(r % 50 == 1, cents(r)))),
        in_codec(CodecId::DECIMALS, plain(Int, |r| Some(Value::Int(tenths(r))))),
        in_codec(CodecId::HALVES, plain(Int, |r| null_if(r % 50 == 1, fraction(r)))),
        in_codec(
            CodecId::MULTIPLES,
            plain(Int, |r| null_if(r % 50 == 1, Value::Int(number(r) as i64 % 9_999 * 60_000))),
        ),
        in_codec(
            CodecId::MASKED,
            plain(Wide, |r| null_if(r % 50 == 1, Value::Wide(i128::from(number(r)) << 30 | 5))),
        ),
        in_codec(
            CodecId::TEMPLATES,
            plain(Bytes, |r| {
                if r % 70 == 9 {
                    text("n/a".into())
                } else {
                    text(format!("A-{:06}-{:016x}", r * 7, number(r)))
                }
            }),
        ),
        in_codec(
            CodecId::TEMPLATES,
            plain(Bytes, |r| {
                let hex = format!("{:016X}", number(r));
                null_if(r % 9 == 1, Value::Bytes(hex.into_bytes().into()))
            }),
        ),
        in_codec(CodecId::TEMPLATES, plain(Bytes, |r| text(format!("user{}@example.com", r * r)))),
        in_codec(
            CodecId::ZSTANDARD,
            plain(Bytes, |r| {
                let words = (0..12).map(|w| format!("word{}", number(r * 12 + w) % 99));
                null_if(
                    r % 9 == 1,
                    Value::Bytes(words.collect::<Vec<_>>().join(" ").into_bytes().into()),
                )
            }),
        ),
        in_codec(
            CodecId::TEMPLATES,
            runs(plain(Bytes, |r| {
                text((0..6).map(|w| format!("{:016x}", number(r / 9 * 6 + w))).collect())
            })),
        ),
    ]
}

fn rows_of(example: &Example) -> Vec<Rows> {
    let mut row = 0;
    PAGE_ROWS
        .iter()
        .map(|count| {
            let page = (row..row + *count as usize).map(example.value).collect();
            row += *count as usize;
            page
        })
        .collect()
}

fn plain(physical: Physical, rows: &Rows) -> Plain {
    let mut plain = Plain::empty(physical);
    rows.iter().for_each(|r| plain.push(r.as_ref()));
    plain
}

/// Writes the segment by the parts of the format, not by a load, whose choices may change.
pub fn write(path: &Path) {
    let writer = SegmentWriter::create(path).unwrap();
    let mut finished = Vec::new();
    for example in examples() {
        let (physical, pages) = (example.physical, rows_of(&example));
        let coded = || pages.iter().zip(example.coded).filter(|(_, c)| *c).map(|(p, _)| p);
        let mut values: Vec<Value> = coded().flatten().flatten().cloned().collect();
        values.sort();
        values.dedup();
        let mut distinct = Values::empty(physical);
        values.iter().for_each(|v| distinct.push(v));
        let dictionary = example.coded[0].then(|| Dictionary::new(distinct).unwrap());
        let mut symbols = Vec::new();
        let pages: Vec<Page> = pages
            .iter()
            .zip(example.coded)
            .map(|(rows, coded)| match &dictionary {
                Some(dictionary) if coded => {
                    let null = dictionary.len() as u16;
                    let code = |v: &Value| dictionary.find(v).unwrap().0 as u16;
                    let codes: Vec<u16> =
                        rows.iter().map(|v| v.as_ref().map_or(null, code)).collect();
                    encode_codes_u16(&codes, null)
                }
                _ if example.codec.is_some() => encode_plain(&plain(physical, rows)).unwrap(),
                _ => encode(&plain(physical, rows), &mut symbols),
            })
            .map(|page| match example.stored {
                Stored::Rows if example.codec.is_none() => page,
                Stored::Runs if example.codec.is_none() => shrink_to_runs(page).unwrap(),
                // Too small to be chosen for.
                Stored::Rows => in_codec_of(&example, page),
                Stored::Runs => shrink_page(page).unwrap(),
            })
            .collect();
        let meta = dictionary.as_ref().map(|d| writer.write_dictionary(d).unwrap());
        assert_eq!(pages[0].runs.is_some(), example.stored == Stored::Runs);
        assert!(
            example.codec.is_none_or(|codec| codec == pages[0].codec),
            "{:?}, not {:?}",
            pages[0].codec,
            example.codec
        );
        let pages = writer.write_pages(writer.reserve(&pages), &pages).unwrap();
        let stats = column_stats(&pages, dictionary.as_ref());
        let index = ColumnIndex { dictionary: meta, symbols, pages };
        finished.push(FinishedColumn { physical, index, stats });
    }
    writer.finish(finished, PAGE_ROWS.to_vec()).unwrap();
}

/// The page in the codec of an example; a page of one row stays as it is.
fn in_codec_of(example: &Example, page: Page) -> Page {
    let Some(codec) = example.codec.filter(|_| page.rows > 20) else { return page };
    let encoded = codec.codec().unwrap().encode(&page.view().unwrap()).unwrap();
    Page { codec, bytes: encoded.unwrap(), ..page }
}

/// Plain pages; text that is long enough gets symbols.
fn encode(plain: &Plain, symbols: &mut Vec<Vec<u8>>) -> Page {
    match &plain.values {
        Values::Bytes(strings) if plain.nulls.is_none() => {
            let encoder = SymbolEncoder::train_symbols(strings.len(), |i| strings.get(i));
            symbols.push(encoder.table());
            let mut source = strings.bytes.clone();
            source.extend([0; SOURCE_PADDING]);
            let lengths: Vec<u32> = strings.iter().map(|s| s.len() as u32).collect();
            let starts: Vec<u32> = strings.ends.iter().zip(&lengths).map(|(e, l)| e - l).collect();
            let mut encoded = EncodedStrings::default();
            encoder.encode(&source, &starts, &lengths, &mut encoded);
            let table = symbols.len() as u32;
            encode_text(&encoded.bytes, &encoded.lengths, None, table).unwrap()
        }
        _ => encode_plain(plain).unwrap(),
    }
}

/// All rows of a segment, page by page, column by column.
pub fn read(path: &Path) -> coload_types::Result<Vec<Vec<Rows>>> {
    let segment = SegmentFile::open(path)?;
    let column = |c: usize| {
        let page = |p: usize| {
            let mut plain = Plain::empty(segment.physical(c));
            segment.decode_page(c, p, &mut plain)?;
            Ok((0..plain.len()).map(|r| plain.get(r)).collect())
        };
        (0..segment.page_rows().len()).map(page).collect()
    };
    (0..segment.column_count()).map(column).collect()
}

/// The example of a format; format 2 says whose the segment is, and format 3 has more codecs.
pub fn path(format: u8) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/examples/segment-{format}.seg"))
}

/// The files of each format must be readable for ever. `COLOAD_BLESS=1` writes that of the newest anew, which only a
/// format that was never released allows.
#[test]
fn the_stored_segments_of_each_format_are_read() {
    if std::env::var_os("COLOAD_BLESS").is_some() {
        let dir = tempfile::tempdir().unwrap();
        let named = dir.path().join(format!("{:032x}-3.seg", 0x5eed));
        write(&named);
        std::fs::copy(&named, path(3)).unwrap();
    }
    let expected: Vec<Vec<Rows>> = examples().iter().map(rows_of).collect();
    let (before_3, _) = expected.split_at(EXAMPLES_BEFORE_3);
    for format in [1, 2] {
        assert!(read(&path(format)).unwrap() == before_3, "format {format}");
    }
    assert!(read(&path(3)).unwrap() == expected, "format 3");
    let id = |format| SegmentFile::open(&path(format)).unwrap().id();
    assert_eq!(id(1), None);
    assert_eq!(id(2), Some(SegmentId { load: 0x5eed, number: 3 }));
    assert_eq!(id(3), id(2));
}
