//! What the first bytes of an input tell: whether it is Avro, its fields, and how large its records are.

use coload_arrow::Fault;
use coload_avro::{AvroField, BlockHead, Codec, Decompressor, Head, Header, MAGIC, decode_header};
use coload_source::SampleEnd;
use coload_types::{Error, Place, Result};

use crate::typed::{TypedField, TypedInput, TypedKind};

/// How much larger text is that is compressed, where nothing tells.
const COMPRESSED_FACTOR: usize = 3;
/// Most bytes of a block that is decompressed to see how large its records are.
const BLOCK_BYTES_MAX: u64 = 64 << 20;
/// The type of Avro whose only value is NULL.
const NULL_KIND: &str = "null";
/// Least bytes that a field takes in memory.
const FIELD_BYTES: usize = 8;

/// Looks at the first bytes of an input, decompressed; `None` when it is no Avro.
///
/// # Errors
/// `Input` when it is damaged, `Limit` when its schema is longer than what is looked at, `Invalid` when its schema or its
/// compression is not read.
pub fn look_at_avro(name: &str, head: &[u8], end: SampleEnd) -> Result<Option<TypedInput>> {
    if !head.starts_with(MAGIC) {
        return Ok(None);
    }
    let found = match (decode_header(head), end) {
        (Ok(Head::Needs(_)), SampleEnd::Whole) => {
            Err(Fault::Damaged("they end in the middle of the header".to_owned()))
        }
        (Ok(Head::Needs(bytes)), SampleEnd::Cut) => Err(Fault::TooLarge(bytes)),
        (Ok(Head::Whole(header)), _) => Ok(header),
        (Err(error), _) => Err(error),
    };
    match found {
        Ok(header) => Ok(Some(TypedInput {
            kind: TypedKind::Avro,
            record_bytes: record_bytes(&header, &head[header.bytes..]),
            fields: header.layout.fields.iter().map(field).collect(),
        })),
        Err(Fault::TooLarge(bytes)) => Err(Error::Limit(format!(
            "{name}: the header takes {bytes} bytes or more, and {} are looked at (try --sample {}MiB)",
            head.len(),
            bytes.saturating_mul(2).div_ceil(1 << 20)
        ))),
        Err(error @ Fault::Damaged(_)) => Err(Error::Input {
            place: Box::new(Place { file: name.to_owned(), line: 0, byte: 0, field: 0 }),
            text: format!("{error}; nothing was loaded"),
        }),
        Err(error) => Err(Error::Invalid(format!("{name}: {error}"))),
    }
}

fn field(field: &AvroField) -> TypedField {
    TypedField {
        name: field.name.clone(),
        nullable: field.nullable,
        kind: field.kind.clone(),
        data_type: field.data_type.clone(),
        is_readable: true,
        is_null: field.kind == NULL_KIND,
        is_null_list: field.is_null_list,
    }
}

/// Bytes of a record of the first block. What is damaged is told when it is read.
fn record_bytes(header: &Header, blocks: &[u8]) -> Option<usize> {
    let block = BlockHead::decode(blocks).ok()??;
    let start = block.head_bytes;
    let stored = usize::try_from(block.bytes).ok()?;
    let bytes = match (header.codec, blocks.get(start..start.checked_add(stored)?)) {
        (Codec::Null, _) => stored,
        (codec, Some(whole)) => {
            Decompressor::default().decompress(codec, whole, BLOCK_BYTES_MAX).ok()?.len()
        }
        (_, None) => stored.saturating_mul(COMPRESSED_FACTOR),
    };
    let each = bytes.checked_div(usize::try_from(block.rows).ok()?)?;
    // Numbers are shorter in a file than in memory.
    Some(each.max(header.layout.fields.len() * FIELD_BYTES))
}
