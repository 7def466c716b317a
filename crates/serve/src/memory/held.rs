//! What batches take: the whole of their buffers, or the rows alone.

use std::collections::HashSet;

use datafusion::arrow::array::{Array, ArrayData};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;

use super::narrow::text_bytes;

/// Bytes that are free when the batch is dropped. A buffer that several arrays share is counted once: all columns of
/// a message from the network stand in one.
pub(crate) fn held_bytes(batch: &RecordBatch) -> usize {
    let mut seen = HashSet::new();
    batch.columns().iter().map(|array| held(&array.to_data(), &mut seen)).sum()
}

fn held(data: &ArrayData, seen: &mut HashSet<usize>) -> usize {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    let buffers = data.buffers().iter().chain(nulls);
    let own: usize = buffers
        .map(|buffer| match seen.insert(buffer.data_ptr().as_ptr() as usize) {
            true => buffer.capacity(),
            false => 0,
        })
        .sum();
    own + data.child_data().iter().map(|child| held(child, seen)).sum::<usize>()
}

/// Bytes of the rows themselves, whoever holds their buffers: a batch may be a part of a much larger one, which is free
/// when the last of its parts is dropped.
pub(crate) fn sliced_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|array| sliced(array.as_ref())).sum()
}

fn sliced(array: &dyn Array) -> usize {
    let data = array.to_data();
    let values = data.get_slice_memory_size().unwrap_or(0);
    match array.data_type() {
        // The size of a slice has the views and not the texts that they point to.
        DataType::Utf8View | DataType::BinaryView => {
            let buffers: usize = data.buffers().iter().skip(1).map(|b| b.capacity()).sum();
            values + text_bytes(array).min(buffers)
        }
        _ => values,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn what_is_shared_is_counted_once_and_parts_as_parts() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let texts: ArrayRef =
            Arc::new(StringViewArray::from(vec!["x".repeat(100).as_str(); 1_000]));
        let columns = [("a", Arc::clone(&numbers)), ("b", numbers), ("t", texts)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let held = held_bytes(&batch);
        assert!((8_000 + 116_000..250_000).contains(&held), "{held}");
        let part = batch.slice(0, 10);
        assert_eq!(held_bytes(&part), held);
        let sliced = sliced_bytes(&part);
        assert!((2 * 80 + 10 * 116..2_000).contains(&sliced), "{sliced}");
    }
}
