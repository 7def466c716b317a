//! The footer of a file: its schema, and where its messages stand.

use arrow_ipc as ipc;

use crate::fault::{Fault, Result};
use crate::message::{Place, aligned};
use crate::schema::ArrowSchema;

/// What a file begins and ends with.
pub const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// Bytes behind the footer: its length, and the magic.
pub const TAIL_BYTES: usize = 4 + FILE_MAGIC.len();
/// Bytes of the head: the magic, padded.
const HEAD_BYTES: u64 = 8;

/// What the footer of a file says.
#[derive(Debug, Clone)]
pub struct Footer {
    /// The fields of all batches.
    pub schema: ArrowSchema,
    /// Where the dictionaries stand, in their order.
    pub dictionaries: Vec<Place>,
    /// Where the record batches stand, in their order.
    pub batches: Vec<Place>,
}

/// Bytes of the footer, by the last [`TAIL_BYTES`] of a file of so many bytes.
///
/// # Errors
/// `Damaged` when the file does not end as one does.
pub fn footer_bytes(tail: &[u8], file_bytes: u64) -> Result<usize> {
    let (length, magic) = tail.split_at_checked(4).unwrap_or_default();
    let cut = || Fault::damaged("the file does not end with its footer");
    if magic != FILE_MAGIC {
        return Err(cut());
    }
    let length = <[u8; 4]>::try_from(length).map_err(|_| cut())?;
    let length = usize::try_from(i32::from_le_bytes(length)).ok().filter(|length| {
        *length > 0 && *length as u64 + TAIL_BYTES as u64 + HEAD_BYTES <= file_bytes
    });
    length.ok_or_else(|| Fault::damaged("the length of the footer is none"))
}

impl Footer {
    /// Reads a footer, before which the file has so many bytes.
    ///
    /// # Errors
    /// `Damaged` when it contradicts itself, or a message is not where it says.
    pub fn decode(footer: &[u8], bytes_before: u64) -> Result<Self> {
        aligned(footer, |footer| {
            let footer = ipc::root_as_footer(footer);
            let footer = footer.map_err(|e| Fault::damaged(format!("footer: {e}")))?;
            let schema =
                footer.schema().ok_or_else(|| Fault::damaged("a footer without schema"))?;
            let dictionaries = footer.dictionaries().into_iter().flatten();
            let batches = footer.recordBatches().into_iter().flatten();
            let footer = Footer {
                schema: ArrowSchema::decode(schema)?,
                dictionaries: dictionaries
                    .map(|b| place(b, bytes_before))
                    .collect::<Result<_>>()?,
                batches: batches.map(|b| place(b, bytes_before)).collect::<Result<_>>()?,
            };
            // What a small file says once, it could else be read for a million times.
            let all = footer.dictionaries.iter().chain(&footer.batches);
            let taken = all.fold(0_u64, |sum, at| sum.saturating_add(at.end() - at.start));
            match taken <= bytes_before {
                true => Ok(footer),
                false => Err(Fault::damaged("messages that overlap")),
            }
        })
    }
}

fn place(block: &ipc::Block, bytes_before: u64) -> Result<Place> {
    let place = Place {
        start: u64::try_from(block.offset()).unwrap_or(u64::MAX),
        head_bytes: u32::try_from(block.metaDataLength()).unwrap_or(0),
        body_bytes: u64::try_from(block.bodyLength()).unwrap_or(u64::MAX),
    };
    let end = place.start.checked_add(u64::from(place.head_bytes));
    let end = end.and_then(|end| end.checked_add(place.body_bytes));
    let within = place.start >= HEAD_BYTES && end.is_some_and(|end| end <= bytes_before);
    match within && place.head_bytes > 8 {
        true => Ok(place),
        false => Err(Fault::damaged(format!("{block:?} is not within the file"))),
    }
}
