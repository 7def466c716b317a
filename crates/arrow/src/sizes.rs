//! About how many bytes rows of lists and maps take as texts, so that batches are cut where these become long.

use crate::batch::FieldLayout;
use crate::buffers::Buffers;
use crate::fault::Result;
use crate::schema::{Encoding, Field};
use crate::types::{ArrowType, Composite};

/// Bytes of a comma, a space, and the quotes of a text.
const BETWEEN_BYTES: usize = 4;
/// Digits of a byte of a number, and what stands between those of dates, at most.
const DIGITS_OF_BYTE: usize = 3;

/// Bytes of a value in a text with what stands around it, but those of strings.
pub(crate) fn text_bytes_of_value(field: &Field) -> usize {
    match field.values {
        ArrowType::FixedBinary(width) => BETWEEN_BYTES + 2 * width,
        ref of => BETWEEN_BYTES + DIGITS_OF_BYTE * of.width().unwrap_or(1),
    }
}

/// Bytes of all rows of a field as texts, about; `of_key` tells those of a value of a dictionary.
///
/// # Errors
/// Those of reading the lengths of compressed buffers.
pub(crate) fn text_bytes(
    field: &Field,
    layout: &FieldLayout,
    buffers: &Buffers<'_>,
    of_key: &dyn Fn(i64) -> u64,
) -> Result<u64> {
    let (rows, _) = buffers.batch().nodes[layout.node];
    let each = text_bytes_of_value(field) as u64;
    let strings = |numbers: std::ops::Range<usize>| {
        sum_of(numbers.map(|number| buffers.bytes(layout.buffer + number)))
    };
    let (each, more) = match (field.encoding, &field.values) {
        (Encoding::Dictionary { id, .. }, _) => (each.saturating_add(of_key(id)), 0),
        (Encoding::Plain, ArrowType::Composite(of)) => {
            let names = |child: &Field| (child.name.len() + BETWEEN_BYTES) as u64;
            let names = match of {
                Composite::Struct => field.children.iter().map(names).sum(),
                _ => 0,
            };
            let children = field.children.iter().zip(&layout.children);
            let within = children.map(|(field, layout)| text_bytes(field, layout, buffers, of_key));
            (each + names, sum_of(within)?)
        }
        (Encoding::Plain, ArrowType::Text(_)) => (each, strings(2..3)?),
        // Two digits a byte.
        (Encoding::Plain, ArrowType::Binary(_)) => (each, strings(2..3)?.saturating_mul(2)),
        (Encoding::Plain, ArrowType::TextView | ArrowType::BinaryView) => {
            (each, strings(1..2 + layout.variadic)?.saturating_mul(2))
        }
        _ => (each, 0),
    };
    Ok(rows.saturating_mul(each).saturating_add(more))
}

fn sum_of(mut bytes: impl Iterator<Item = Result<u64>>) -> Result<u64> {
    bytes.try_fold(0, |sum: u64, bytes| Ok(sum.saturating_add(bytes?)))
}
