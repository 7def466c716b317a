//! Files of Parquet, and the text of the same values.

use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;

use crate::text::Random;
use crate::typed_values::{
    NULL, Seeds, clock, date, days, micros, quoted, small, thousandths, uuid, word,
};

/// Kinds of columns: their types, what their values are, and the encodings that these may have.
pub const KINDS: [&str; 20] = [
    "int64 #",
    "int32 # (INTEGER(16,true))",
    "int64 # (INTEGER(64,false))",
    "boolean #",
    "double #",
    "int64 # (DECIMAL(12,3))",
    "int32 # (DECIMAL(9,3))",
    "fixed_len_byte_array(9) # (DECIMAL(20,3))",
    "binary # (DECIMAL(25,3))",
    "binary # (UTF8)",
    "binary # (UTF8)",
    "int32 # (DATE)",
    "int64 # (TIMESTAMP(MICROS,false))",
    "int64 # (TIMESTAMP(NANOS,false))",
    "int64 # (TIMESTAMP(MILLIS,false))",
    "int96 #",
    "fixed_len_byte_array(16) # (UUID)",
    "float #",
    "int32 # (INTEGER(32,false))",
    "int32 # (TIME(MILLIS,true))",
];

/// The text of a value, as CSV has it.
pub fn text(kind: usize, seed: Option<u32>) -> String {
    let Some(seed) = seed else { return NULL.to_owned() };
    match kind {
        0 => small(seed).to_string(),
        1 => (small(seed) / 2).to_string(),
        2 => (u64::MAX / (u64::from(seed) + 1)).to_string(),
        3 => (seed % 2 == 0).to_string(),
        4 | 17 => format!("{:?}", small(seed) as f64 / 16.0),
        5..=8 => thousandths(small(seed) * 10),
        9 => quoted(&word(seed)),
        10 => quoted(&word(seed % 50)),
        11 => date(seed),
        12..=15 => format!("1970-01-01 {}", clock(seed)),
        16 => uuid(seed),
        18 => (u32::MAX / (seed + 1)).to_string(),
        _ => clock(seed),
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Of the heads of pages: 1 or 2.
    pub version: usize,
    /// How pages are compressed.
    pub compression: Compression,
    /// Rows of a page.
    pub page_rows: usize,
    /// Bytes of a dictionary, after which values are plain.
    pub dictionary_bytes: usize,
}

impl Shape {
    pub fn draw(random: &mut Random) -> Self {
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        Shape {
            version: random.of(&[1, 2]),
            compression: random.of(&[Compression::UNCOMPRESSED, Compression::SNAPPY, zstd]),
            page_rows: random.of(&[3, 10, 1000]),
            dictionary_bytes: random.of(&[20, 200, 1 << 20]),
        }
    }
}

/// Encodings of the values of a kind, besides those by dictionaries.
fn encodings(kind: usize) -> &'static [Encoding] {
    use Encoding::{
        BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PLAIN,
    };
    match kind {
        3 => &[PLAIN, Encoding::RLE],
        4 | 17 => &[PLAIN, BYTE_STREAM_SPLIT],
        7 | 16 => &[PLAIN, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT],
        8..=10 => &[PLAIN, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY],
        15 => &[PLAIN],
        _ => &[PLAIN, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT],
    }
}

fn write_column(writer: &mut SerializedColumnWriter<'_>, kind: usize, seeds: &Seeds) {
    let levels: Vec<i16> = seeds.iter().map(|seed| i16::from(seed.is_some())).collect();
    let seeds: Vec<u32> = seeds.iter().flatten().copied().collect();
    fn of<T>(seeds: &[u32], value: impl Fn(u32) -> T) -> Vec<T> {
        seeds.iter().map(|seed| value(*seed)).collect()
    }
    macro_rules! write {
        ($type:ty, $value:expr) => {{
            let values = of(&seeds, $value);
            writer.typed::<$type>().write_batch(&values, Some(&levels), None).unwrap()
        }};
    }
    let big = |seed: u32, bytes: usize| {
        let value = i128::from(small(seed) * 10).to_be_bytes();
        ByteArray::from(value[16 - bytes..].to_vec())
    };
    match kind {
        0 => write!(Int64Type, small),
        1 => write!(Int32Type, |s| small(s) as i32 / 2),
        2 => write!(Int64Type, |s| (u64::MAX / (u64::from(s) + 1)) as i64),
        3 => write!(BoolType, |s| s % 2 == 0),
        4 => write!(DoubleType, |s| small(s) as f64 / 16.0),
        5 => write!(Int64Type, |s| small(s) * 10),
        6 => write!(Int32Type, |s| small(s) as i32 * 10),
        7 => write!(FixedLenByteArrayType, |s| FixedLenByteArray::from(big(s, 9))),
        8 => write!(ByteArrayType, |s| big(s, 3 + s as usize % 14)),
        9 => write!(ByteArrayType, |s| ByteArray::from(word(s).into_bytes())),
        10 => write!(ByteArrayType, |s| ByteArray::from(word(s % 50).into_bytes())),
        11 => write!(Int32Type, days),
        12 => write!(Int64Type, micros),
        13 => write!(Int64Type, |s| micros(s) * 1000),
        14 => write!(Int64Type, |s| micros(s) / 1000),
        15 => write!(Int96Type, |s| {
            let nanos = (micros(s) * 1000) as u64;
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, 2_440_588);
            value
        }),
        16 => write!(FixedLenByteArrayType, |s| {
            FixedLenByteArray::from(u128::from(s).to_be_bytes().to_vec())
        }),
        17 => write!(FloatType, |s| small(s) as f32 / 16.0),
        18 => write!(Int32Type, |s| (u32::MAX / (s + 1)) as i32),
        _ => write!(Int32Type, |s| (micros(s) / 1000) as i32),
    };
}

/// Writes columns `c0`, `c1`, ... of these kinds, in row groups.
pub fn bytes(kinds: &[usize], groups: &[Vec<Seeds>], shape: Shape, random: &mut Random) -> Vec<u8> {
    let field = |(number, kind): (usize, &usize)| {
        format!("optional {};", KINDS[*kind].replace('#', &format!("c{number}")))
    };
    let fields: Vec<String> = kinds.iter().enumerate().map(field).collect();
    let schema = parse_message_type(&format!("message m {{ {} }}", fields.join(" "))).unwrap();
    let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][shape.version - 1];
    let mut properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(shape.compression)
        .set_data_page_row_count_limit(shape.page_rows)
        .set_write_batch_size(shape.page_rows.min(7))
        .set_dictionary_page_size_limit(shape.dictionary_bytes);
    for (number, kind) in kinds.iter().enumerate() {
        let path = ColumnPath::from(format!("c{number}"));
        properties = properties
            .set_column_bloom_filter_enabled(path.clone(), random.one_in(2))
            .set_column_statistics_enabled(
                path.clone(),
                random.of(&[
                    EnabledStatistics::None,
                    EnabledStatistics::Chunk,
                    EnabledStatistics::Page,
                ]),
            )
            .set_column_encoding(path.clone(), random.of(encodings(*kind)))
            .set_column_dictionary_enabled(path, random.one_in(2));
    }
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties.build()))
            .unwrap();
    for group in groups {
        let mut row_group = writer.next_row_group().unwrap();
        for (kind, seeds) in kinds.iter().zip(group) {
            let mut column = row_group.next_column().unwrap().unwrap();
            write_column(&mut column, *kind, seeds);
            column.close().unwrap();
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    out
}
