//! Records of a block as rows of columns.

use coload_arrow::{ArrowType, Fault, Result, Slice};

use crate::column::ColumnRows;
use crate::cursor::Cursor;
use crate::json::{Writer, skip};
use crate::layout::{Layout, Node};
use crate::leaf::Leaf;

/// Rows of a column.
#[derive(Debug, Clone)]
pub struct ReadColumn {
    /// The type of its values.
    pub values: ArrowType,
    /// Its rows; those of an enum are keys of the field's dictionary.
    pub slice: Slice<'static>,
}

/// Reads the records of a block, decompressed: a column for each field of which `is_read` is true. They take `bytes_max` in
/// memory at most.
///
/// # Errors
/// `Damaged` when they are none or others than the block says, `TooLarge` when they take more.
pub fn read_rows(
    layout: &Layout,
    is_read: &[bool],
    (raw, rows): (&[u8], u64),
    bytes_max: u64,
) -> Result<Vec<Option<ReadColumn>>> {
    if rows.saturating_mul(layout.record_bytes_min) > raw.len() as u64 {
        return Err(Fault::Damaged(format!("{rows} records in {} bytes", raw.len())));
    }
    let read = || layout.fields.iter().zip(is_read).filter(|(_, is_read)| **is_read);
    let row_bytes = read().fold(1_u64, |sum, (field, _)| sum.saturating_add(field.row_bytes + 1));
    // Texts of fields are no longer than what they were read from.
    let bytes = rows.saturating_mul(row_bytes).saturating_add(raw.len() as u64);
    let Some(json_max) = bytes_max.checked_sub(bytes) else { return Err(Fault::TooLarge(bytes)) };
    let mut columns: Vec<Option<ColumnRows>> = Vec::with_capacity(layout.fields.len());
    columns.resize_with(layout.fields.len(), || None);
    let mut values = vec![ArrowType::Text(8); layout.fields.len()];
    prepare(&layout.root, &mut |column, leaf| {
        if let Some(leaf) = leaf {
            values[column] = leaf.values();
        }
        if is_read.get(column) == Some(&true) {
            columns[column] = Some(ColumnRows::new(&layout.fields[column], leaf, rows as usize));
        }
    });
    let mut read = Read { layout, columns, json_left: json_max as usize };
    let mut cursor = Cursor::new(raw);
    for row in 0..rows {
        read.node(&layout.root, &mut cursor).map_err(|error| match error {
            Fault::Damaged(what) => {
                Fault::Damaged(format!("record {} of the block: {what}", row + 1))
            }
            Fault::TooLarge(more) => Fault::TooLarge(bytes.saturating_add(more)),
            other => other,
        })?;
    }
    if cursor.left() > 0 {
        return Err(Fault::Damaged(format!("{} bytes behind the last record", cursor.left())));
    }
    let finish = |(column, values): (Option<ColumnRows>, ArrowType)| {
        let (values, slice) = column?.finish(values);
        Some(ReadColumn { values, slice })
    };
    Ok(read.columns.into_iter().zip(values).map(finish).collect())
}

/// Tells the columns of a node, and what their values are if they are no JSON.
fn prepare(node: &Node, tell: &mut dyn FnMut(usize, Option<&Leaf>)) {
    match node {
        Node::Leaf { column, leaf, .. } => tell(*column, Some(leaf)),
        Node::Json { column, .. } => tell(*column, None),
        Node::Record { fields, .. } => fields.iter().for_each(|field| prepare(field, tell)),
    }
}

struct Read<'a> {
    layout: &'a Layout,
    columns: Vec<Option<ColumnRows>>,
    /// Bytes that texts of JSON may still take.
    json_left: usize,
}

impl Read<'_> {
    fn node(&mut self, node: &Node, cursor: &mut Cursor<'_>) -> Result<()> {
        match node {
            Node::Leaf { column, choice, leaf } => {
                let is_null = choice.is_null(cursor)?;
                match &mut self.columns[*column] {
                    Some(rows) if is_null => rows.push_null(),
                    Some(rows) => rows.read(leaf, cursor)?,
                    None if is_null => {}
                    None => leaf.skip(cursor)?,
                }
            }
            Node::Json { column, of } => {
                let schema = &self.layout.schema;
                let Some(rows) = &mut self.columns[*column] else {
                    return skip(schema, *of, cursor, 0);
                };
                let left = self.json_left;
                let written = rows.write(|out| {
                    let writer = Writer { schema, bytes_max: out.len() + left };
                    writer.write(*of, cursor, 0, out)
                })?;
                self.json_left -= written.min(left);
            }
            Node::Record { columns, choice, fields } => {
                if choice.is_null(cursor)? {
                    let inner = self.columns[columns.clone()].iter_mut().flatten();
                    inner.for_each(ColumnRows::push_null);
                    return Ok(());
                }
                for field in fields {
                    self.node(field, cursor)?;
                }
            }
        }
        Ok(())
    }
}
