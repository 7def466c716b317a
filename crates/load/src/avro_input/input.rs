//! An input of Avro: which of its fields the columns are, and what is told when it is damaged.

use std::sync::Arc;

use coload_arrow::Fault;
use coload_avro::{BlockHead, Codec, Decompressor, Header, Layout, MARKER_BYTES};
use coload_types::{Error, Place, Result};

use crate::typed::{Asked, BATCH_SHARE, Dictionary, batch_bytes_max, fields_of_columns};

/// The fields of an input, and which of them are read.
#[derive(Debug)]
pub struct FieldsRead {
    /// All of them.
    pub layout: Arc<Layout>,
    /// For each column that is read its field; `None` where the input lacks it.
    pub of_column: Vec<Option<usize>>,
    /// Which fields are read.
    pub is_read: Vec<bool>,
    /// For each column that is read the values that its rows are places of, if it is an enum.
    pub dictionaries: Vec<Option<Arc<Dictionary>>>,
}

impl FieldsRead {
    /// Finds the fields of an input, by its number.
    ///
    /// # Errors
    /// As [`fields_of_columns`].
    fn new(layout: Arc<Layout>, number: usize, asked: Asked<'_>) -> Result<Self> {
        let fields = &layout.fields;
        let of_column = fields_of_columns(number, fields.len(), asked, |_| Ok(()))?;
        let mut is_read = vec![false; fields.len()];
        of_column.iter().flatten().for_each(|field| is_read[*field] = true);
        let dictionary = |field: &Option<usize>| {
            let (values, slice) = fields[(*field)?].dictionary()?;
            Some(Arc::new(Dictionary::new(values, slice)))
        };
        let dictionaries = of_column.iter().map(dictionary).collect();
        Ok(FieldsRead { of_column, is_read, dictionaries, layout })
    }
}

/// What the header of an input says.
#[derive(Debug, Clone)]
pub struct HeadRead {
    /// Its fields.
    pub fields: Arc<FieldsRead>,
    /// How its blocks are compressed.
    pub codec: Codec,
    /// The marker behind each of them.
    pub marker: [u8; MARKER_BYTES],
}

impl HeadRead {
    /// Of an input, by its number; `before` are the fields of the one before, which mostly are the same.
    ///
    /// # Errors
    /// As [`fields_of_columns`].
    pub fn new(
        header: Header,
        number: usize,
        asked: Asked<'_>,
        before: Option<&Arc<FieldsRead>>,
    ) -> Result<Self> {
        let Header { layout, codec, marker, .. } = header;
        let fields = match before.filter(|before| before.layout == layout) {
            // Places of fields may be others in another input, though its fields are the same.
            Some(before) => {
                let found = FieldsRead::new(Arc::clone(&before.layout), number, asked)?;
                match found.of_column == before.of_column {
                    true => Arc::clone(before),
                    false => Arc::new(found),
                }
            }
            None => Arc::new(FieldsRead::new(layout, number, asked)?),
        };
        Ok(HeadRead { fields, codec, marker })
    }

    /// How much larger blocks are when they are decompressed, as the first of them tells.
    pub fn expansion(&self, stored: &[u8], asked: Asked<'_>) -> f64 {
        let mut decompressor = Decompressor::default();
        match decompressor.decompress(self.codec, stored, batch_bytes_max(asked)) {
            Ok(raw) if !stored.is_empty() => (raw.len() as f64 / stored.len() as f64).max(1.0),
            // What is wrong with it is told when it is read.
            _ => 1.0,
        }
    }
}

/// Checks the head of a block before anything is allocated for it.
///
/// # Errors
/// `TooLarge` when it is longer than `bytes_max`.
pub fn check_head(head: &BlockHead, bytes_max: u64) -> std::result::Result<(), Fault> {
    match head.bytes > bytes_max {
        true => Err(Fault::TooLarge(head.bytes)),
        false => Ok(()),
    }
}

/// What is told of a block that ends elsewhere than it says.
pub fn wrong_marker() -> Fault {
    Fault::Damaged("the marker behind a block is not that of the file".to_owned())
}

/// What is told of an input that ends too early.
pub fn cut_off() -> Fault {
    Fault::Damaged("they end in the middle of a block".to_owned())
}

/// What is told of a part of an input, which starts at a byte; a block by its number in the input, if it is one.
pub fn fault(
    asked: Asked<'_>,
    (file, byte): (usize, u64),
    block: Option<u64>,
    fault: Fault,
) -> Error {
    let name = asked.request.inputs.name(file);
    let part = block.map_or_else(String::new, |block| format!("block {}: ", block + 1));
    match fault {
        Fault::Damaged(_) => Error::Input {
            place: Box::new(Place { file: name, line: 0, byte, field: 0 }),
            text: format!("{part}{fault}; nothing was loaded"),
        },
        Fault::Unknown(what) => Error::Invalid(format!("{name}: {part}{what}")),
        Fault::TooLarge(bytes) => Error::Limit(format!(
            "{name} (byte {byte}): {part}{bytes} bytes are needed at once, and {} of what --memory gives may be (try --memory \
             {}MiB, or write smaller blocks)",
            batch_bytes_max(asked),
            (bytes.saturating_mul(BATCH_SHARE as u64)).div_ceil(1 << 20)
        )),
        Fault::Read(error) => error,
    }
}
