//! What the first bytes of an input tell: whether it is Arrow, its fields, and how large its records are.

use coload_arrow::{
    ArrowColumn, ArrowType, BareSchema, Buffers, FILE_MAGIC, Fault, Message, PREFIX_BYTES, Prefix,
    bare_schema, starts_stream,
};
use coload_source::SampleEnd;
use coload_types::{Error, Place, Result};

use crate::typed::{TypedField, TypedInput, TypedKind};

/// Bytes of the magic of a file, padded.
const MAGIC_BYTES: usize = 8;
/// What files of the first version of Feather begin with, which are no Arrow.
const OLD_FEATHER: &[u8; 4] = b"FEA1";
/// Endings of names that say that an input is Arrow, where it is written as before version 0.15.
const ENDINGS: [&str; 4] = [".arrow", ".arrows", ".ipc", ".feather"];
/// How much larger text is that is compressed, where nothing tells.
const COMPRESSED_FACTOR: usize = 3;

/// Looks at the first bytes of an input, decompressed; `None` when it is no Arrow.
///
/// # Errors
/// `Input` when it is damaged, `Limit` when its schema is longer than what is looked at, `Invalid` when it is a kind of
/// Arrow that is not read.
pub fn look_at_arrow(name: &str, head: &[u8], end: SampleEnd) -> Result<Option<TypedInput>> {
    let kind =
        if head.starts_with(FILE_MAGIC) { TypedKind::ArrowFile } else { TypedKind::ArrowStream };
    let is_named = || {
        let name = name.to_ascii_lowercase();
        // What compressed it adds its own ending.
        let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
        ENDINGS.iter().any(|ending| name.ends_with(ending) || stem.ends_with(ending))
    };
    if head.starts_with(OLD_FEATHER) {
        return Err(Error::Invalid(format!(
            "{name} is of the first version of Feather, which is not read: write it as Arrow IPC (Feather V2)"
        )));
    }
    let is_certain = kind == TypedKind::ArrowFile || starts_stream(head);
    if !is_certain && !is_named() {
        return Ok(None);
    }
    let first = match kind == TypedKind::ArrowFile {
        true => {
            // Some writers put the first message at byte 64.
            let words = head[MAGIC_BYTES.min(head.len())..].chunks_exact(MAGIC_BYTES);
            MAGIC_BYTES + words.take_while(|word| **word == [0; MAGIC_BYTES]).count() * MAGIC_BYTES
        }
        false => 0,
    };
    let mut walk = Walk { head, at: first, is_first: true, end };
    let found = match walk.next() {
        Ok(Some((Message::Schema(schema), _))) => schema.columns(),
        Ok(Some(_)) => Err(Fault::Damaged("a message before the schema".to_owned())),
        Ok(None) => Err(Fault::Damaged("there is no schema".to_owned())),
        Err(error) => Err(error),
    };
    match found {
        Ok(columns) => {
            let record_bytes = walk.record_bytes();
            let fields = columns.iter().map(field_of_column).collect();
            Ok(Some(TypedInput { kind, fields, record_bytes }))
        }
        // It may be a text that somebody named so.
        Err(_) if !is_certain => Ok(None),
        Err(Fault::TooLarge(bytes)) => Err(Error::Limit(format!(
            "{name}: the schema takes {bytes} bytes, and {} are looked at (try --sample {}MiB)",
            head.len(),
            (bytes + MAGIC_BYTES as u64 + PREFIX_BYTES as u64).div_ceil(1 << 20)
        ))),
        Err(error @ Fault::Damaged(_)) => Err(Error::Input {
            place: Box::new(Place { file: name.to_owned(), line: 0, byte: first as u64, field: 0 }),
            text: format!("{error}; nothing was loaded"),
        }),
        Err(error) => Err(Error::Invalid(format!("{name}: {error}"))),
    }
}

/// A column of Arrow, for who looks at it.
pub fn field_of_column(column: &ArrowColumn) -> TypedField {
    TypedField {
        data_type: column.sql_type(),
        is_readable: column.is_readable(),
        is_null: column.values == ArrowType::Null,
        is_null_list: column.is_null_list,
        kind: column.kind.clone(),
        name: column.name.clone(),
        nullable: column.nullable,
    }
}

/// Goes through messages.
struct Walk<'a> {
    head: &'a [u8],
    at: usize,
    is_first: bool,
    end: SampleEnd,
}

impl<'a> Walk<'a> {
    /// The next message, and what of its body is there; `None` at the end. `TooLarge` when more must be looked at.
    fn next(&mut self) -> std::result::Result<Option<(Message, &'a [u8])>, Fault> {
        let rest = self.head.get(self.at..).unwrap_or_default();
        let cut = |bytes: usize| match self.end {
            SampleEnd::Cut => Fault::TooLarge(bytes as u64),
            SampleEnd::Whole => Fault::Damaged("they end in the middle of a message".to_owned()),
        };
        if rest.is_empty() && self.end == SampleEnd::Whole {
            return Ok(None);
        }
        if rest.len() < PREFIX_BYTES {
            return Err(cut(PREFIX_BYTES));
        }
        let is_bare = match self.is_first && self.head.starts_with(FILE_MAGIC) {
            true => bare_schema(rest)?,
            false => BareSchema::No,
        };
        self.is_first = false;
        let (prefix, bytes) = match is_bare {
            BareSchema::No => match Prefix::decode(&rest[..PREFIX_BYTES])? {
                Prefix::Metadata { prefix, bytes } => (prefix, bytes),
                Prefix::End(_) => return Ok(None),
            },
            BareSchema::Bytes(bytes) => (0, bytes),
            BareSchema::Longer => return Err(cut(rest.len().saturating_mul(2))),
        };
        let metadata = rest.get(prefix..prefix + bytes).ok_or_else(|| cut(prefix + bytes))?;
        let (message, body_bytes) = Message::decode(metadata)?;
        let body = &rest[prefix + bytes..];
        let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
        self.at = self.at.saturating_add(prefix + bytes).saturating_add(body_bytes);
        Ok(Some((message, &body[..body.len().min(body_bytes)])))
    }

    /// Bytes of a record of the first batch that has some. What is damaged is told when it is read.
    fn record_bytes(&mut self) -> Option<usize> {
        loop {
            let (message, body) = self.next().ok()??;
            let Message::Batch(batch) = message else { continue };
            if batch.rows == 0 {
                continue;
            }
            let stored = batch.body_bytes as usize;
            let bytes = match batch.codec {
                None => stored,
                Some(_) => {
                    let body = body.to_vec();
                    let known = Buffers::new(&batch, &body, u64::MAX).total_bytes();
                    known.map_or(stored.saturating_mul(COMPRESSED_FACTOR), |bytes| bytes as usize)
                }
            };
            return Some((bytes / batch.rows as usize).max(1));
        }
    }
}
