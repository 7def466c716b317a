//! Files of Avro, and the text of the same values.

use std::io::Write;

use crate::text::Random;
use crate::typed_values::{
    NULL, Seeds, clock, date, days, micros, quoted, small, thousandths, uuid, word,
};

/// Kinds of columns: their types.
pub const KINDS: [&str; 20] = [
    r#""long""#,
    r#""int""#,
    r#""boolean""#,
    r#""double""#,
    r#""float""#,
    r#"{"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}"#,
    r#"{"type": "fixed", "name": "f#", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 3}"#,
    r#""string""#,
    "an enum",
    r#"{"type": "int", "logicalType": "date"}"#,
    r#"{"type": "long", "logicalType": "local-timestamp-micros"}"#,
    r#"{"type": "long", "logicalType": "local-timestamp-nanos"}"#,
    r#"{"type": "long", "logicalType": "local-timestamp-millis"}"#,
    r#"{"type": "string", "logicalType": "uuid"}"#,
    r#"{"type": "fixed", "name": "u#", "size": 16, "logicalType": "uuid"}"#,
    r#"{"type": "int", "logicalType": "time-millis"}"#,
    r#"{"type": "long", "logicalType": "time-micros"}"#,
    r#"{"type": "record", "name": "r#", "fields": [{"name": "v", "type": "long"}]}"#,
    r#"{"type": "array", "items": "long"}"#,
    // A union of its own.
    r#"["null", "long", "string"]"#,
];

/// The kinds that are an enum, and a union.
const ENUM: usize = 8;
const UNION: usize = 19;
/// Symbols of the enum.
const SYMBOLS: u32 = 50;

/// The marker of all files.
pub const MARKER: [u8; 16] = *b"\0marker of files";

fn items(seed: u32) -> Vec<i64> {
    (0..i64::from(seed % 4)).map(|n| small(seed) + n).collect()
}

/// The text of a value, as CSV has it.
pub fn text(kind: usize, seed: Option<u32>) -> String {
    let Some(seed) = seed else { return NULL.to_owned() };
    match kind {
        0 | 17 => small(seed).to_string(),
        1 => (small(seed) / 2).to_string(),
        2 => (seed % 2 == 0).to_string(),
        3 | 4 => format!("{:?}", small(seed) as f64 / 16.0),
        5 | 6 => thousandths(small(seed) * 10),
        7 => quoted(&word(seed)),
        ENUM => quoted(&word(seed % SYMBOLS)),
        9 => date(seed),
        10..=12 => format!("1970-01-01 {}", clock(seed)),
        13 | 14 => uuid(seed),
        15 | 16 => clock(seed),
        18 => quoted(&format!("{:?}", items(seed))),
        _ if seed % 2 == 0 => small(seed).to_string(),
        _ => quoted(&format!("\"{}\"", word(seed).replace('"', "\\\""))),
    }
}

/// Appends a number in the binary encoding.
pub fn long(value: i64, out: &mut Vec<u8>) {
    let mut word = (value << 1 ^ value >> 63) as u64;
    while word >= 0x80 {
        out.push(word as u8 | 0x80);
        word >>= 7;
    }
    out.push(word as u8);
}

/// Appends bytes behind their length.
pub fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

fn value(kind: usize, seed: u32, out: &mut Vec<u8>) {
    let big = |bytes: usize| i128::from(small(seed) * 10).to_be_bytes()[16 - bytes..].to_vec();
    match kind {
        0 | 17 => long(small(seed), out),
        1 => long(small(seed) / 2, out),
        2 => out.push(u8::from(seed.is_multiple_of(2))),
        3 => out.extend((small(seed) as f64 / 16.0).to_le_bytes()),
        4 => out.extend((small(seed) as f32 / 16.0).to_le_bytes()),
        5 => sized(&big(3 + seed as usize % 14), out),
        6 => out.extend(big(9)),
        7 => sized(word(seed).as_bytes(), out),
        ENUM => long((seed % SYMBOLS).into(), out),
        9 => long(days(seed).into(), out),
        10 | 16 => long(micros(seed), out),
        11 => long(micros(seed) * 1000, out),
        12 | 15 => long(micros(seed) / 1000, out),
        13 => sized(uuid(seed).as_bytes(), out),
        14 => out.extend(u128::from(seed).to_be_bytes()),
        18 => {
            let (items, mut written) = (items(seed), Vec::new());
            items.iter().for_each(|item| long(*item, &mut written));
            match items.len() as i64 {
                0 => {}
                // With the bytes of the items, and without.
                count if seed.is_multiple_of(3) => {
                    long(-count, out);
                    sized(&written, out);
                }
                count => {
                    long(count, out);
                    out.extend(written);
                }
            }
            out.push(0);
        }
        _ if seed.is_multiple_of(2) => {
            long(1, out);
            long(small(seed), out);
        }
        _ => {
            long(2, out);
            sized(word(seed).as_bytes(), out);
        }
    }
}

/// How blocks are compressed.
pub const CODECS: [&str; 3] = ["null", "deflate", "zstandard"];

fn compressed(codec: &str, raw: &[u8]) -> Vec<u8> {
    match codec {
        "deflate" => {
            let fast = flate2::Compression::fast();
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), fast);
            encoder.write_all(raw).unwrap();
            encoder.finish().unwrap()
        }
        "zstandard" => {
            let mut out = vec![0; zstd_safe::compress_bound(raw.len())];
            let bytes = zstd_safe::compress(&mut out[..], raw, 1).unwrap();
            out.truncate(bytes);
            out
        }
        _ => raw.to_vec(),
    }
}

/// The header of a file.
pub fn header(schema: &str, codec: &str) -> Vec<u8> {
    let mut out = b"Obj\x01".to_vec();
    long(2, &mut out);
    for (key, value) in [("avro.codec", codec), ("avro.schema", schema)] {
        sized(key.as_bytes(), &mut out);
        sized(value.as_bytes(), &mut out);
    }
    long(0, &mut out);
    out.extend(MARKER);
    out
}

/// Appends a block.
pub fn block(rows: usize, raw: &[u8], codec: &str, out: &mut Vec<u8>) {
    long(rows as i64, out);
    sized(&compressed(codec, raw), out);
    out.extend(MARKER);
}

/// Writes columns `c0`, `c1`, ... of these kinds, in blocks; and where the header and each block ends.
pub fn bytes(
    kinds: &[usize],
    blocks: &[Vec<Seeds>],
    codec: &str,
    random: &mut Random,
) -> (Vec<u8>, Vec<usize>) {
    // Where nothing is NULL there need not be a union.
    let nulls: Vec<Option<bool>> = (0..kinds.len())
        .map(|column| {
            let has_null = blocks.iter().any(|block| block[column].contains(&None));
            (has_null || random.one_in(2)).then(|| random.one_in(2))
        })
        .collect();
    let field = |(number, kind): (usize, &usize)| {
        let of = match *kind {
            ENUM => {
                let symbols: Vec<String> = (0..SYMBOLS).map(|n| format!("{:?}", word(n))).collect();
                let symbols = symbols.join(", ");
                format!(r#"{{"type": "enum", "name": "e{number}", "symbols": [{symbols}]}}"#)
            }
            kind => KINDS[kind].replace('#', &number.to_string()),
        };
        let of = match nulls[number] {
            _ if *kind == UNION => of,
            None => of,
            Some(true) => format!(r#"["null", {of}]"#),
            Some(false) => format!(r#"[{of}, "null"]"#),
        };
        format!(r#"{{"name": "c{number}", "type": {of}}}"#)
    };
    let fields: Vec<String> = kinds.iter().enumerate().map(field).collect();
    let fields = fields.join(", ");
    let schema = format!(r#"{{"type": "record", "name": "a.b.row", "fields": [{fields}]}}"#);
    let mut out = header(&schema, codec);
    let mut ends = vec![out.len()];
    for of in blocks {
        let rows = of.first().map_or(0, Vec::len);
        let mut raw = Vec::new();
        for row in 0..rows {
            for ((kind, seeds), null_first) in kinds.iter().zip(of).zip(&nulls) {
                match (seeds[row], *kind, null_first) {
                    (None, UNION, _) => long(0, &mut raw),
                    (None, _, first) => long(i64::from(*first == Some(false)), &mut raw),
                    (Some(seed), kind, first) => {
                        if let (Some(first), true) = (first, kind != UNION) {
                            long(i64::from(*first), &mut raw);
                        }
                        value(kind, seed, &mut raw);
                    }
                }
            }
        }
        block(rows, &raw, codec, &mut out);
        ends.push(out.len());
    }
    (out, ends)
}

/// A file that is compressed as a whole, and so a stream.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}
