//! A batch: the nodes and buffers that its metadata tell, and which of them are those of a field.

use arrow_ipc as ipc;

use crate::fault::{Fault, Result};
use crate::schema::{Encoding, Field};
use crate::types::{ArrowType, Nesting};

/// Most rows of a batch, as the format has it for batches that all can read.
const ROWS_MAX: u64 = i32::MAX as u64;

/// How buffers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Frames of LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Rows, and where their buffers stand in the body.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Rows of each column.
    pub rows: u64,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// How the buffers are compressed, if they are.
    pub codec: Option<Codec>,
    /// Rows and NULLs of each field.
    pub(crate) nodes: Vec<(u64, u64)>,
    /// First byte and length of each buffer, in the body.
    pub(crate) buffers: Vec<(u64, u64)>,
    /// How many buffers of data each field by views has.
    variadic: Vec<u64>,
    /// Whether unions have validity.
    has_old_unions: bool,
}

impl Batch {
    /// A batch by hand: rows and NULLs of fields, places of buffers, and how many buffers fields by views have.
    #[cfg(test)]
    pub(crate) fn of(
        rows: u64,
        nodes: Vec<(u64, u64)>,
        buffers: Vec<(u64, u64)>,
        variadic: Vec<u64>,
    ) -> Self {
        let body_bytes = buffers.iter().map(|(start, bytes)| start + bytes).max().unwrap_or(0);
        let has_old_unions = false;
        Batch { rows, body_bytes, codec: None, nodes, buffers, variadic, has_old_unions }
    }

    pub(crate) fn decode(
        batch: ipc::RecordBatch<'_>,
        body_bytes: u64,
        version: ipc::MetadataVersion,
    ) -> Result<Self> {
        let number = |number: i64, what: &str| {
            u64::try_from(number).map_err(|_| Fault::damaged(format!("{what} is {number}")))
        };
        let rows = number(batch.length(), "the number of rows")?;
        if rows > ROWS_MAX {
            return Err(Fault::damaged(format!("a batch of {rows} rows, over {ROWS_MAX}")));
        }
        let nodes = batch.nodes().into_iter().flatten().map(|node| {
            Ok((
                number(node.length(), "the length of a field")?,
                number(node.null_count(), "NULLs")?,
            ))
        });
        let buffers = batch.buffers().into_iter().flatten().map(|buffer| {
            let (start, bytes) =
                (number(buffer.offset(), "a place")?, number(buffer.length(), "a length")?);
            match start.checked_add(bytes) {
                Some(end) if end <= body_bytes => Ok((start, bytes)),
                // Where there is nothing, it does not matter where it is.
                _ if bytes == 0 => Ok((0, 0)),
                _ => Err(Fault::damaged(format!(
                    "a buffer of {bytes} bytes at byte {start} of a body of {body_bytes}"
                ))),
            }
        });
        let codec = match batch.compression() {
            None => None,
            Some(compression) => Some(codec(compression)?),
        };
        let variadic = batch.variadicBufferCounts().into_iter().flatten();
        Ok(Batch {
            rows,
            body_bytes,
            codec,
            nodes: nodes.collect::<Result<_>>()?,
            buffers: buffers.collect::<Result<_>>()?,
            variadic: variadic.map(|count| number(count, "buffers")).collect::<Result<_>>()?,
            has_old_unions: version < ipc::MetadataVersion::V5,
        })
    }
}

fn codec(compression: ipc::BodyCompression<'_>) -> Result<Codec> {
    match (compression.method(), compression.codec()) {
        (ipc::BodyCompressionMethod::BUFFER, ipc::CompressionType::LZ4_FRAME) => Ok(Codec::Lz4),
        (ipc::BodyCompressionMethod::BUFFER, ipc::CompressionType::ZSTD) => Ok(Codec::Zstd),
        (method, codec) => Err(Fault::Unknown(format!(
            "the Arrow data are compressed by {codec:?} ({method:?}), which this version does not know"
        ))),
    }
}

/// Which nodes and buffers of a batch are those of its fields.
#[derive(Debug, Clone)]
pub struct BatchLayout {
    /// The fields in their order.
    pub fields: Vec<FieldLayout>,
}

/// Which nodes and buffers of a batch are those of a field.
#[derive(Debug, Clone)]
pub struct FieldLayout {
    pub(crate) node: usize,
    pub(crate) buffer: usize,
    /// Buffers of data behind the views.
    pub(crate) variadic: usize,
    pub(crate) children: Vec<FieldLayout>,
}

struct Walk<'a> {
    batch: &'a Batch,
    nodes: usize,
    buffers: usize,
    variadic: usize,
}

impl BatchLayout {
    /// The nodes and buffers of fields.
    ///
    /// # Errors
    /// `Damaged` when the batch has not those of these fields, or another number of rows.
    pub fn new<'a>(fields: impl IntoIterator<Item = &'a Field>, batch: &Batch) -> Result<Self> {
        let mut walk = Walk { batch, nodes: 0, buffers: 0, variadic: 0 };
        let fields =
            fields.into_iter().map(|field| walk.field(field)).collect::<Result<Vec<_>>>()?;
        if (walk.nodes, walk.buffers) != (batch.nodes.len(), batch.buffers.len()) {
            return Err(Fault::damaged(format!(
                "a batch of {} fields and {} buffers, and its schema has {} and {}",
                batch.nodes.len(),
                batch.buffers.len(),
                walk.nodes,
                walk.buffers
            )));
        }
        if let Some(field) = fields.iter().find(|field| batch.nodes[field.node].0 != batch.rows) {
            return Err(Fault::damaged(format!(
                "a column of {} rows in a batch of {}",
                batch.nodes[field.node].0, batch.rows
            )));
        }
        Ok(BatchLayout { fields })
    }
}

impl Walk<'_> {
    fn field(&mut self, field: &Field) -> Result<FieldLayout> {
        let (node, buffer) = (self.nodes, self.buffers);
        let mut variadic = 0;
        let own = match (field.encoding, &field.values) {
            (Encoding::Dictionary { .. }, _) => 2,
            (Encoding::Runs(_), _) | (Encoding::Plain, ArrowType::Null) => 0,
            (Encoding::Plain, ArrowType::Text(_) | ArrowType::Binary(_)) => 3,
            (Encoding::Plain, ArrowType::TextView | ArrowType::BinaryView) => {
                let counted = self.batch.variadic.get(self.variadic);
                let counted = counted.and_then(|count| usize::try_from(*count).ok());
                variadic = counted
                    .filter(|count| *count <= self.batch.buffers.len())
                    .ok_or_else(|| Fault::damaged("views without the number of their buffers"))?;
                self.variadic += 1;
                2 + variadic
            }
            (Encoding::Plain, ArrowType::Composite(of)) => of.buffers(),
            (Encoding::Plain, ArrowType::Other(_, Nesting::Buffers(count))) => *count,
            (Encoding::Plain, ArrowType::Other(_, Nesting::Union(count))) => {
                count + usize::from(self.batch.has_old_unions)
            }
            (Encoding::Plain, _) => 2,
        };
        self.nodes += 1;
        self.buffers += own;
        if self.nodes > self.batch.nodes.len() || self.buffers > self.batch.buffers.len() {
            return Err(Fault::damaged(format!(
                "a batch without the buffers of field {}",
                field.name
            )));
        }
        // What a dictionary's values have within them stands in the dictionary.
        let children = match field.encoding {
            Encoding::Dictionary { .. } => &[][..],
            Encoding::Plain | Encoding::Runs(_) => &field.children,
        };
        let children =
            children.iter().map(|child| self.field(child)).collect::<Result<Vec<_>>>()?;
        Ok(FieldLayout { node, buffer, variadic, children })
    }
}
