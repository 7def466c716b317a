#![allow(clippy::unwrap_used)]
use bytes::Bytes;
use datafusion::arrow::array::{
    BinaryViewArray, Date32Array, Decimal128Array, Float64Array, Int16Array, Int32Array,
    Int64Array, StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::PageIndexPolicy;
use proptest::prelude::*;

use super::*;

/// A batch of all types that [`coded`] writes and one that it does not; values are few, `None` is NULL.
fn batch(seeds: &[Option<u8>], nullable: bool) -> RecordBatch {
    let seeds = || seeds.iter().map(|seed| if nullable { *seed } else { Some(seed.unwrap_or(0)) });
    let numbers = || seeds().map(|seed| seed.map(|seed| i64::from(seed) * 7 - 300));
    // The texts of a batch begin elsewhere in their buffer than those of others: their views differ.
    let text = |seed: u8| match seed % 7 {
        0 => String::new(),
        1 => "short".to_owned(),
        seed => format!("longer than what fits into a view, {seed}"),
    };
    let first = "y".repeat(seeds().len() % 50 + 13);
    let texts: Vec<Option<String>> = seeds().map(|seed| seed.map(text)).collect();
    let of_texts = |rows: &[Option<String>]| {
        let all = std::iter::once(Some(first.clone())).chain(rows.iter().cloned());
        all.collect::<StringViewArray>().slice(1, rows.len())
    };
    let binary: BinaryViewArray = texts.iter().map(|t| t.as_deref().map(str::as_bytes)).collect();
    let decimals = |precision, scale| {
        let values: Decimal128Array = numbers().map(|n| n.map(i128::from)).collect();
        Arc::new(values.with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(numbers().map(|n| n.map(|n| n as i16)).collect::<Int16Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Arc::new(numbers().collect::<Int64Array>()),
        Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Date32Array>()),
        Arc::new(
            numbers()
                .map(|n| n.map(|n| n.unsigned_abs() as i64))
                .collect::<Time64MicrosecondArray>(),
        ),
        Arc::new(numbers().collect::<TimestampMicrosecondArray>()),
        Arc::new(numbers().collect::<TimestampMicrosecondArray>().with_timezone("+00:00")),
        decimals(9, 2),
        decimals(18, 2),
        decimals(38, 20),
        Arc::new(of_texts(&texts)),
        Arc::new(binary),
        Arc::new(numbers().map(|n| n.map(|n| n as f64)).collect::<Float64Array>()),
    ];
    let named =
        columns.into_iter().enumerate().map(|(n, column)| (format!("c{n}"), column, nullable));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// The file of one row group, and how many of its columns are coded.
fn file_of(batches: &[RecordBatch], compression: Compression) -> (Bytes, usize) {
    let schema = batches[0].schema();
    let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), None).unwrap();
    let (mut writer, factory) = writer.into_serialized_writer().unwrap();
    let mut library = factory.create_column_writers(0).unwrap().into_iter();
    let descriptor = writer.schema_descr().clone();
    let mut group = writer.next_row_group().unwrap();
    let mut count = 0;
    for (index, field) in schema.fields().iter().enumerate() {
        let arrays: Vec<ArrayRef> = batches.iter().map(|b| Arc::clone(b.column(index))).collect();
        let mut other = library.next().unwrap();
        match coded_chunk(&arrays, &descriptor.column(index), compression).unwrap() {
            Some(ColumnChunk { bytes, close }) => {
                count += 1;
                group.append_column(&bytes, close).unwrap();
            }
            None => {
                for array in &arrays {
                    let leaves = compute_leaves(field, array).unwrap();
                    leaves.iter().for_each(|leaf| other.write(leaf).unwrap());
                }
                other.close().unwrap().append_to_row_group(&mut group).unwrap();
            }
        }
    }
    group.close().unwrap();
    (writer.into_inner().unwrap().into(), count)
}

proptest! {
    #[test]
    fn coded_columns_are_read_as_they_were(
        few in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.8, 0_u8..9), 1..60), 1..4),
        repeat in 1_usize..40,
        nullable in any::<bool>(),
        compression in prop::sample::select(&[Compression::SNAPPY, Compression::UNCOMPRESSED][..]),
    ) {
        let batches: Vec<RecordBatch> =
            few.iter().map(|seeds| batch(&seeds.repeat(repeat), nullable)).collect();
        let (file, coded) = file_of(&batches, compression);
        let is_all_null = few.iter().flatten().all(Option::is_none) && nullable;
        prop_assert_eq!(coded, if is_all_null { 0 } else { 11 });
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let expected = concat_batches(&batches[0].schema(), &batches).unwrap();
        let group = reader.metadata().row_group(0).clone();
        let found: Vec<RecordBatch> =
            reader.with_batch_size(1 << 20).build().unwrap().map(|batch| batch.unwrap()).collect();
        prop_assert_eq!(&found[0], &expected);
        for (column, array) in group.columns().iter().zip(expected.columns()) {
            let nulls = column.statistics().and_then(|s| s.null_count_opt());
            prop_assert_eq!(nulls, Some(array.null_count() as u64));
        }
    }
}

/// Rows of more than a page, with more values than a byte can count.
#[test]
fn many_values_and_pages_are_read_as_they_were() {
    let numbers: Int64Array = (0..70_000).map(|n| (n % 11 != 0).then_some(n * n % 5_003)).collect();
    let texts: StringViewArray = (0..70_000)
        .map(|n| (n % 13 != 0).then(|| format!("a text of some length {}", n % 999)))
        .collect();
    let columns = [("n", Arc::new(numbers) as ArrayRef, true), ("t", Arc::new(texts), true)];
    let all = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let batches: Vec<RecordBatch> = (0..7).map(|n| all.slice(n * 10_000, 10_000)).collect();
    let (file, coded) = file_of(&batches, Compression::SNAPPY);
    assert_eq!(coded, 2);
    let options = || ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader = || {
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options());
        reader.unwrap().with_batch_size(1 << 20)
    };
    let read = |reader: ParquetRecordBatchReaderBuilder<Bytes>| {
        reader.build().unwrap().map(|batch| batch.unwrap()).collect::<Vec<RecordBatch>>()
    };
    assert_eq!(read(reader()), std::slice::from_ref(&all));
    // By the index of pages: some rows of the third page.
    let some = RowSelection::from(vec![RowSelector::skip(45_000), RowSelector::select(10)]);
    assert_eq!(read(reader().with_row_selection(some)), [all.slice(45_000, 10)]);
}
