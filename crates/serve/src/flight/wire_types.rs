//! Types as drivers know them: views of text and bytes become plain text and bytes.
//!
//! A view's buffers may be a whole dictionary, which would be sent with each batch; and few drivers
//! read views.

use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

/// Text of one batch above which it is sent in parts, one after the other: views of one value may stand in many rows,
/// and each becomes a copy of it.
const PART_BYTES_MAX: usize = 2 << 20;

/// The schema in which an answer is sent.
pub(crate) fn wire_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(wire_field).collect();
    Arc::new(Schema::new(fields))
}

/// The schema in which values of parameters are asked for.
///
/// Times are asked for in milliseconds: the JDBC driver of Arrow puts milliseconds into the values whatever unit it is told
/// (apache/arrow-java #838). A driver that binds values of its own types sends those, and every unit is taken.
pub(crate) fn parameter_schema(schema: &Schema) -> SchemaRef {
    let asked = |field: &FieldRef| {
        let data_type = match wire_type(field.data_type()) {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone),
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time32(TimeUnit::Millisecond),
            other => other,
        };
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    Arc::new(Schema::new(schema.fields().iter().map(asked).collect::<Vec<_>>()))
}

fn wire_field(field: &FieldRef) -> FieldRef {
    let data_type = wire_type(field.data_type());
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}

fn wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => wire_type(values),
        DataType::List(item) => DataType::List(wire_field(item)),
        DataType::LargeList(item) => DataType::LargeList(wire_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(wire_field).collect()),
        other => other.clone(),
    }
}

/// A batch in the schema in which it is sent, in parts of few bytes of text, each made when it is asked for.
pub(crate) struct WireParts<'a> {
    /// What is left, the next last.
    rest: Vec<RecordBatch>,
    schema: &'a SchemaRef,
}

/// Puts a batch into the schema in which it is sent.
///
/// An item is `Limit` when a single value is over 2 GiB.
pub(crate) fn wire_parts(batch: RecordBatch, schema: &SchemaRef) -> WireParts<'_> {
    WireParts { rest: vec![batch], schema }
}

impl Iterator for WireParts<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let mut batch = self.rest.pop()?;
        while batch.num_rows() > 1 && views_bytes(&batch) > PART_BYTES_MAX {
            let half = batch.num_rows() / 2;
            self.rest.push(batch.slice(half, batch.num_rows() - half));
            batch = batch.slice(0, half);
        }
        Some(wire_batch(&batch, self.schema))
    }
}

fn wire_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, field)| match array.data_type() == field.data_type() {
            true => Ok(Arc::clone(array)),
            false => cast(array, field.data_type()),
        })
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| Error::Limit(format!("a value is too large to be sent: {e}")))?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| Error::Refused(format!("internal error: {e}")))
}

/// Bytes of the values of views; those of other arrays are not counted, as they are not copied.
fn views_bytes(batch: &RecordBatch) -> usize {
    use datafusion::arrow::array::AsArray;
    let columns = batch.columns().iter();
    columns
        .map(|array| match array.data_type() {
            DataType::Utf8View => array.as_string_view().total_bytes_len(),
            DataType::BinaryView => array.as_binary_view().total_bytes_len(),
            _ => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::{ArrayRef, Int32Array, StringViewArray};
    use datafusion::arrow::util::pretty::pretty_format_batches;

    use super::*;

    #[test]
    fn views_become_text_with_the_same_values() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("a text longer than a view holds itself"),
            None,
            Some(""),
        ]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("t", text), ("n", numbers)]).unwrap();
        let schema = wire_schema(&batch.schema());
        assert_eq!(*schema.field(0).data_type(), DataType::Utf8);
        let sent: Vec<_> = wire_parts(batch.clone(), &schema).map(Result::unwrap).collect();
        let show = |batches: &[RecordBatch]| pretty_format_batches(batches).unwrap().to_string();
        assert_eq!(show(&sent), show(&[batch]));
    }

    #[test]
    fn times_of_parameters_are_asked_for_in_milliseconds() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            field("$1", DataType::Timestamp(TimeUnit::Microsecond, None)),
            field("$2", DataType::Time64(TimeUnit::Microsecond)),
            field("$3", DataType::Utf8View),
        ]);
        let asked = parameter_schema(&schema);
        let types: Vec<_> = asked.fields().iter().map(|f| f.data_type().clone()).collect();
        let expected = [
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Utf8,
        ];
        assert_eq!(types, expected);
    }

    #[test]
    fn rows_without_columns_keep_their_count() {
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let schema = Arc::new(Schema::empty());
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
        let sent = wire_parts(batch, &wire_schema(&schema)).next().unwrap().unwrap();
        assert_eq!(sent.num_rows(), 3);
    }

    #[test]
    fn a_long_value_in_many_rows_is_copied_part_by_part() {
        let long = "x".repeat(PART_BYTES_MAX / 2);
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![long.as_str(); 5]));
        let batch = RecordBatch::try_from_iter([("t", text)]).unwrap();
        let schema = wire_schema(&batch.schema());
        let rows: Vec<_> =
            wire_parts(batch, &schema).map(|part| part.unwrap().num_rows()).collect();
        assert_eq!(rows, [2, 1, 2]);
    }
}
