#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use bytes::Bytes;
use coload_ddl::Schema;
use coload_types::{
    Column, Element, Physical as Shape, f32_from_ordinal, f64_from_ordinal, ordinal_from_f32,
    ordinal_from_f64, put_element, uuid_from_wide, wide_from_uuid,
};
use parquet::basic::ZstdLevel;
use parquet::column::page::Page;
use parquet::column::reader::ColumnReader;

use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;

use super::*;
use crate::schema::file_schema;

/// Rows that came together: as codes of the column's dictionary, or as values.
#[derive(Debug, Clone)]
enum Part {
    Codes(Vec<Option<usize>>),
    Decoded(Vec<Option<usize>>),
    Values(Vec<Option<usize>>),
}

impl Part {
    fn rows(&self) -> &[Option<usize>] {
        let (Part::Codes(rows) | Part::Decoded(rows) | Part::Values(rows)) = self;
        rows
    }
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort();
    values.dedup();
    values
}

/// Sorted values of a type: those at its ends, and some between.
fn values_of(data_type: DataType) -> Vec<Value> {
    let ints = |list: &[i64]| list.iter().map(|n| Value::Int(*n)).collect();
    let texts = |list: &[&str]| list.iter().map(|t| Value::Bytes(t.as_bytes().into())).collect();
    let (least, largest) = data_type.facts().limits;
    sorted(match data_type {
        DataType::Boolean => ints(&[0, 1]),
        DataType::Real => [f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-40, 3.25, f32::NAN, -f32::NAN]
            .map(|v| Value::Int(ordinal_from_f32(v)))
            .to_vec(),
        DataType::Double => [f64::INFINITY, -1.5, -0.0, 0.0, 1e-310, 3.25, f64::NAN, -f64::NAN]
            .map(|v| Value::Int(ordinal_from_f64(v)))
            .to_vec(),
        DataType::Decimal { precision, .. } if data_type.physical() == Shape::Wide => {
            let most = 10_i128.pow(u32::from(precision)) - 1;
            [-most, -1, 0, 1, 255, most].map(Value::Wide).to_vec()
        }
        DataType::Uuid => [0, 1, u128::MAX, 1 << 127]
            .map(|n| Value::Wide(wide_from_uuid(n.to_be_bytes())))
            .to_vec(),
        DataType::Char(_) | DataType::Varchar(_) => texts(&[
            "",
            " ",
            "a\"b,\n",
            "naïve 数 🦀",
            &"é".repeat(40),
            &"x".repeat(5000),
            &"\u{10ffff}".repeat(30),
        ]),
        DataType::Binary(_) => [&[][..], &[0], &[255; 100], &[1, 255, 0]]
            .map(|bytes| Value::Bytes(bytes.into()))
            .to_vec(),
        _ => [least, largest, 0, 1, 1000]
            .into_iter()
            .filter(|n| (least..=largest).contains(n))
            .map(Value::Int)
            .collect(),
    })
}

fn types() -> Vec<DataType> {
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    vec![
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        decimal(1, 0),
        decimal(9, 2),
        decimal(18, 0),
        decimal(19, 4),
        decimal(38, 10),
        DataType::Real,
        DataType::Double,
        DataType::Date,
        DataType::Time,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::Varchar(None),
        DataType::Binary(None),
        DataType::Uuid,
    ]
}

fn dictionary_of(data_type: DataType) -> Dictionary {
    let mut values = Values::empty(data_type.physical());
    values_of(data_type).iter().for_each(|value| values.push(value));
    Dictionary::new(values).unwrap()
}

/// A file of one column.
fn file_of(column: &Column, parts: &[Part], compression: Compression) -> (Bytes, ColumnSums) {
    let schema = Schema::new(vec![column.clone()]).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let root = file_schema(&schema).unwrap();
    let mut writer = SerializedFileWriter::new(Vec::new(), root, properties).unwrap();
    let descriptor = writer.schema_descr().column(0);
    let dictionary = dictionary_of(column.data_type);
    let is_coded = parts.iter().any(|part| matches!(part, Part::Codes(_)));
    let (chunk, sums) = ColumnPages::make(&descriptor, column.data_type, compression, |pages| {
        let takes = pages.takes_dictionary(&dictionary);
        assert_eq!(takes, column.data_type != DataType::Boolean);
        if takes && is_coded {
            pages.put_dictionary(&dictionary)?;
        }
        for part in parts {
            let rows = part.rows();
            let codes: Vec<u32> =
                rows.iter().map(|row| row.unwrap_or(dictionary.len()) as u32).collect();
            match part {
                Part::Codes(_) if takes => pages.put_codes(&dictionary, &codes)?,
                Part::Codes(_) | Part::Decoded(_) => pages.put_decoded(&dictionary, &codes)?,
                Part::Values(_) => {
                    let mut plain = Plain::empty(column.data_type.physical());
                    rows.iter().for_each(|row| {
                        plain.push(
                            row.and_then(|row| dictionary.get(coload_types::Code(row as u32)))
                                .as_ref(),
                        );
                    });
                    pages.put_values(&plain)?;
                }
            }
        }
        Ok(())
    })
    .unwrap();
    let mut group = writer.next_row_group().unwrap();
    group.append_column(&chunk.bytes, chunk.close).unwrap();
    group.close().unwrap();
    (writer.into_inner().unwrap().into(), sums)
}

/// A value as statistics have it.
fn value_of(bytes: &[u8], data_type: DataType, physical: Physical) -> Value {
    let wide = |bytes: &[u8]| {
        let sign = if bytes[0] & 128 == 0 { 0 } else { 255 };
        let mut all = [sign; 16];
        all[16 - bytes.len()..].copy_from_slice(bytes);
        i128::from_be_bytes(all)
    };
    match physical {
        Physical::BOOLEAN => Value::Int(i64::from(bytes[0])),
        Physical::INT32 => Value::Int(i32::from_le_bytes(bytes.try_into().unwrap()).into()),
        Physical::INT64 => Value::Int(i64::from_le_bytes(bytes.try_into().unwrap())),
        Physical::FLOAT => {
            Value::Int(ordinal_from_f32(f32::from_le_bytes(bytes.try_into().unwrap())))
        }
        Physical::DOUBLE => {
            Value::Int(ordinal_from_f64(f64::from_le_bytes(bytes.try_into().unwrap())))
        }
        Physical::FIXED_LEN_BYTE_ARRAY => Value::Wide(wide(bytes)),
        _ if data_type == DataType::Uuid => {
            let digits: String = std::str::from_utf8(bytes).unwrap().replace('-', "");
            Value::Wide(wide_from_uuid(u128::from_str_radix(&digits, 16).unwrap().to_be_bytes()))
        }
        _ => Value::Bytes(bytes.into()),
    }
}

fn read(file: &Bytes, column: &Column) -> Vec<Option<Value>> {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let rows = group.metadata().num_rows() as usize;
    let (mut levels, data_type) = (Vec::new(), column.data_type);
    let to = |bytes: &[u8], physical| value_of(bytes, data_type, physical);
    macro_rules! values {
        ($reader:ident, $value:expr) => {{
            let mut values = Vec::new();
            let levels = column.nullable.then_some(&mut levels);
            let (records, ..) = $reader.read_records(rows, levels, None, &mut values).unwrap();
            assert_eq!(records, rows);
            values.into_iter().map($value).collect::<Vec<Value>>()
        }};
    }
    let values = match group.get_column_reader(0).unwrap() {
        ColumnReader::BoolColumnReader(mut r) => values!(r, |v| Value::Int(v.into())),
        ColumnReader::Int32ColumnReader(mut r) => values!(r, |v| Value::Int(v.into())),
        ColumnReader::Int64ColumnReader(mut r) => values!(r, Value::Int),
        ColumnReader::FloatColumnReader(mut r) => values!(r, |v| Value::Int(ordinal_from_f32(v))),
        ColumnReader::DoubleColumnReader(mut r) => values!(r, |v| Value::Int(ordinal_from_f64(v))),
        ColumnReader::ByteArrayColumnReader(mut r) => {
            values!(r, |v: ByteArray| to(v.data(), Physical::BYTE_ARRAY))
        }
        ColumnReader::FixedLenByteArrayColumnReader(mut r) => {
            values!(r, |v: FixedLenByteArray| to(v.data(), Physical::FIXED_LEN_BYTE_ARRAY))
        }
        ColumnReader::Int96ColumnReader(_) => panic!("INT96"),
    };
    let mut values = values.into_iter();
    match column.nullable {
        false => values.map(Some).collect(),
        true => levels.iter().map(|level| (*level == 1).then(|| values.next().unwrap())).collect(),
    }
}

/// Whether a value may be compared with bounds.
fn is_number(value: &Value, data_type: DataType) -> bool {
    match (value, data_type) {
        (Value::Int(n), DataType::Real) => !f32_from_ordinal(*n).is_nan(),
        (Value::Int(n), DataType::Double) => !f64_from_ordinal(*n).is_nan(),
        _ => true,
    }
}

fn check(column: &Column, parts: &[Part], compression: Compression) {
    let data_type = column.data_type;
    let values = values_of(data_type);
    let all = || parts.iter().flat_map(Part::rows);
    let expected: Vec<Option<Value>> =
        all().map(|row| row.map(|row| values[row].clone())).collect();
    let (file, sums) = file_of(column, parts, compression);
    assert_eq!(read(&file, column), expected, "{column:?}");
    let nulls = expected.iter().filter(|value| value.is_none()).count() as u64;
    assert_eq!((sums.rows, sums.nulls), (expected.len() as u64, nulls));

    let options = ReadOptionsBuilder::new().with_page_index().build();
    let reader = SerializedFileReader::new_with_options(file, options).unwrap();
    let chunk = reader.metadata().row_group(0).column(0).clone();
    let physical = chunk.column_type();
    let statistics = chunk.statistics().unwrap();
    assert_eq!(statistics.null_count_opt(), Some(nulls));
    let numbers = || expected.iter().flatten().filter(|value| is_number(value, data_type));
    if let Some(bytes) = statistics.min_bytes_opt() {
        let least = value_of(bytes, data_type, physical);
        assert!(numbers().all(|value| least <= *value), "{least:?} {column:?}");
        // Of all values only those that a dictionary has without a row may be lower.
        let is_used = |value: &Value| expected.iter().flatten().any(|v| v == value);
        let no_zero = !matches!(data_type, DataType::Real | DataType::Double);
        if statistics.min_is_exact() && no_zero && values.iter().all(is_used) {
            assert_eq!(numbers().min(), Some(&least));
        }
    } else {
        assert_eq!(numbers().next(), None, "{column:?}");
    }
    if let Some(bytes) = statistics.max_bytes_opt() {
        let largest = value_of(bytes, data_type, physical);
        assert!(numbers().all(|value| largest >= *value), "{largest:?} {column:?}");
    }
    // The index of pages: where each begins, and what it holds.
    let (bounds, offsets) = (reader.metadata().column_index(), reader.metadata().offset_index());
    let locations = offsets.unwrap()[0][0].page_locations();
    let pages = sums.coded_pages + sums.plain_pages;
    assert_eq!(locations.len() as u64, pages);
    let bounds = match bounds.map(|bounds| &bounds[0][0]) {
        None | Some(ColumnIndexMetaData::NONE) => {
            // Only of what nothing is above, or of a page of NaNs.
            let long = |value: &Value| matches!(value, Value::Bytes(text) if text.len() > 64);
            let is_odd = |value: &Value| long(value) || !is_number(value, data_type);
            assert!(expected.iter().flatten().any(is_odd), "{column:?}");
            return;
        }
        Some(bounds) => bounds,
    };
    for (page, location) in locations.iter().enumerate() {
        let first = location.first_row_index as usize;
        let end = locations.get(page + 1).map_or(expected.len(), |l| l.first_row_index as usize);
        let rows = &expected[first..end];
        let nulls = rows.iter().filter(|value| value.is_none()).count();
        assert_eq!(bounds.null_count(page), Some(nulls as i64), "{column:?}");
        assert_eq!(bounds.is_null_page(page), nulls == rows.len());
    }
}

fn parts(values: usize) -> impl Strategy<Value = Vec<Part>> {
    let rows = prop::collection::vec((prop::option::weighted(0.8, 0..values), 1_usize..30), 1..8);
    let part = (rows, 0..3).prop_map(|(runs, kind)| {
        let rows = runs.into_iter().flat_map(|(row, count)| vec![row; count]).collect();
        match kind {
            0 => Part::Codes(rows),
            1 => Part::Decoded(rows),
            _ => Part::Values(rows),
        }
    });
    prop::collection::vec(part, 1..4)
}

proptest! {
    #[test]
    fn what_is_written_of_any_type_is_read_as_it_was(
        (data_type, mut parts) in prop::sample::select(types())
            .prop_flat_map(|t| (Just(t), parts(values_of(t).len()))),
        nullable in any::<bool>(),
        compression in prop::sample::select(vec![
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(ZstdLevel::try_new(1).unwrap()),
        ]),
    ) {
        if !nullable {
            for part in &mut parts {
                let (Part::Codes(rows) | Part::Decoded(rows) | Part::Values(rows)) = part;
                rows.iter_mut().for_each(|row| *row = Some(row.unwrap_or(0)));
            }
        }
        let column = Column { nullable, ..Column::new("c", data_type) };
        check(&column, &parts, compression);
    }
}

/// More rows than a page has, and texts that fill pages before that.
#[test]
fn many_rows_become_several_pages() {
    let rows = |count: usize, values: usize| -> Vec<Option<usize>> {
        (0..count).map(|n| (n % 11 != 3).then_some(n * n % values)).collect()
    };
    let column = |data_type| Column::new("c", data_type);
    let parts = [
        Part::Codes(rows(45_000, 4)),
        Part::Values(rows(25_000, 4)),
        Part::Decoded(rows(21_000, 4)),
    ];
    for data_type in [DataType::BigInt, DataType::Boolean, DataType::Uuid, DataType::Varchar(None)]
    {
        let values = values_of(data_type).len();
        let fit = |part: &Part| {
            let rows = part.rows().iter().map(|row| row.map(|row| row % values)).collect();
            match part {
                Part::Codes(_) => Part::Codes(rows),
                Part::Decoded(_) => Part::Decoded(rows),
                Part::Values(_) => Part::Values(rows),
            }
        };
        check(&column(data_type), &parts.each_ref().map(fit), Compression::SNAPPY);
    }
    // 5,000 bytes each: 209 to a page.
    let long = values_of(DataType::Varchar(None))
        .iter()
        .position(|v| matches!(v, Value::Bytes(text) if text.len() == 5000));
    let parts = [Part::Values(vec![long; 1000])];
    let (_, sums) = file_of(&column(DataType::Varchar(None)), &parts, Compression::UNCOMPRESSED);
    assert_eq!(sums.plain_pages, 5);
}

#[test]
fn the_dictionary_of_a_file_says_that_it_is_sorted() {
    let flag = |data_type| {
        let rows = (0..values_of(data_type).len()).map(Some).collect();
        let column = Column::new("c", data_type);
        let (file, _) = file_of(&column, &[Part::Codes(rows)], Compression::UNCOMPRESSED);
        let reader = SerializedFileReader::new(file).unwrap();
        let group = reader.get_row_group(0).unwrap();
        let page = group.get_column_page_reader(0).unwrap().next().unwrap().unwrap();
        let Page::DictionaryPage { is_sorted, .. } = page else { panic!("{page:?}") };
        is_sorted
    };
    assert!(flag(DataType::BigInt) && flag(DataType::Varchar(None)) && flag(DataType::Uuid));
    assert!(!flag(DataType::Double), "a NaN has no place in an order");
}

#[test]
fn null_where_none_may_be_is_an_error() {
    let column = Column { nullable: false, ..Column::new("c", DataType::BigInt) };
    let schema = Schema::new(vec![column]).unwrap();
    let descriptor = parquet::schema::types::SchemaDescriptor::new(file_schema(&schema).unwrap());
    let dictionary = dictionary_of(DataType::BigInt);
    let made = ColumnPages::make(
        &descriptor.column(0),
        DataType::BigInt,
        Compression::UNCOMPRESSED,
        |pages| {
            pages.put_dictionary(&dictionary)?;
            pages.put_codes(&dictionary, &[0, dictionary.len() as u32])
        },
    );
    assert!(matches!(made, Err(Error::Corrupt(_))), "{made:?}");
}

#[test]
fn the_text_of_a_uuid_has_its_order() {
    let texts = values_of(DataType::Uuid).into_iter().map(|value| {
        let Value::Wide(wide) = value else { panic!("{value:?}") };
        uuid_from_wide(wide).map(|byte| format!("{byte:02x}")).concat()
    });
    assert!(texts.is_sorted());
}

/// The lists of a file, by the library's reader: rows of elements.
fn read_lists_of(file: &Bytes, nullable: bool) -> Vec<Option<Vec<Option<i64>>>> {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let group = reader.get_row_group(0).unwrap();
    let rows = group.metadata().num_rows() as usize;
    let ColumnReader::Int64ColumnReader(mut column) = group.get_column_reader(0).unwrap() else {
        panic!("INT64")
    };
    let (mut levels, mut of_lists, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (records, ..) =
        column.read_records(rows, Some(&mut levels), Some(&mut of_lists), &mut values).unwrap();
    assert_eq!(records, rows);
    let base = i16::from(nullable);
    let mut values = values.into_iter();
    let mut lists: Vec<Option<Vec<Option<i64>>>> = Vec::new();
    for (level, again) in levels.iter().zip(of_lists) {
        if again == 0 {
            lists.push((!nullable || *level > 0).then(Vec::new));
        }
        if *level > base {
            let list = lists.last_mut().unwrap().as_mut().unwrap();
            list.push((*level == base + 2).then(|| values.next().unwrap()));
        }
    }
    lists
}

proptest! {
    #[test]
    fn lists_are_read_as_they_were(
        lists in prop::collection::vec(prop::option::weighted(0.8,
            prop::collection::vec(prop::option::weighted(0.8, any::<i64>()), 0..5)), 1..200),
        nullable in any::<bool>(),
        first in any::<bool>(),
    ) {
        let lists: Vec<Option<Vec<Option<i64>>>> = lists
            .into_iter()
            .map(|list| if nullable { list } else { Some(list.unwrap_or_default()) })
            .collect();
        let mut plain = Plain::empty(Shape::Bytes);
        for list in &lists {
            let value = list.as_ref().map(|list| {
                let mut bytes = Vec::new();
                list.iter().for_each(|item| put_element(&mut bytes, item.map(Element::Int).as_ref()));
                Value::Bytes(bytes.into())
            });
            plain.push(value.as_ref());
        }
        let data_type = DataType::List(ElementType::BigInt);
        let column = Column { nullable, ..Column::new("c", data_type) };
        let schema = Schema::new(vec![column]).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let root = file_schema(&schema).unwrap();
        let mut writer = SerializedFileWriter::new(Vec::new(), root, properties).unwrap();
        let descriptor = writer.schema_descr().column(0);
        let (chunk, sums) =
            ColumnPages::make(&descriptor, data_type, Compression::SNAPPY, |pages| match first {
                true => pages.put_values(&plain),
                // Codes of a dictionary of lists become values.
                false => {
                    let mut sorted: Vec<Value> = (0..plain.len()).filter_map(|row| plain.get(row)).collect();
                    sorted.sort();
                    sorted.dedup();
                    let mut values = Values::empty(Shape::Bytes);
                    sorted.iter().for_each(|value| values.push(value));
                    let dictionary = Dictionary::new(values).unwrap();
                    assert!(!pages.takes_dictionary(&dictionary));
                    let code = |row| plain.get(row).map_or(sorted.len(), |v| sorted.binary_search(&v).unwrap());
                    let codes: Vec<u32> = (0..plain.len()).map(|row| code(row) as u32).collect();
                    pages.put_decoded(&dictionary, &codes)
                }
            })
            .unwrap();
        prop_assert_eq!(sums.rows, lists.len() as u64);
        let mut group = writer.next_row_group().unwrap();
        group.append_column(&chunk.bytes, chunk.close).unwrap();
        group.close().unwrap();
        let file: Bytes = writer.into_inner().unwrap().into();
        prop_assert_eq!(read_lists_of(&file, nullable), lists);
        let reader = SerializedFileReader::new(file).unwrap();
        let read = crate::read_schema(reader.metadata().file_metadata()).unwrap();
        prop_assert_eq!(read.columns()[0].data_type, data_type);
    }
}
