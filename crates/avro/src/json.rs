//! Values that have others in them, as texts of JSON, and passing over them.
//!
//! What is written is as lists of Parquet are: numbers with all of their digits, bytes in hexadecimal ones, floats that are no
//! numbers as strings. A value of a union is that of its branch.

use coload_arrow::{Fault, Result, write_json};
use coload_types::write_json_string;

use crate::cursor::Cursor;
use crate::layout::deeper;
use crate::leaf::{Leaf, Meaning, write_duration};
use crate::schema::{Schema, Type, TypeId};

/// Values that are being written.
pub(crate) struct Writer<'a> {
    pub schema: &'a Schema,
    /// Most bytes that the text may have.
    pub bytes_max: usize,
}

impl Writer<'_> {
    /// Writes a value.
    ///
    /// # Errors
    /// `Damaged` when it is none, `TooLarge` when its text is too long.
    pub fn write(
        &self,
        id: TypeId,
        cursor: &mut Cursor<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self.schema.get(id) {
            Type::Leaf(leaf) => write_leaf(leaf, cursor, out)?,
            Type::Union(branches) => {
                let branch = cursor.choice(branches.len(), "branch")?;
                return self.write(branches[branch], cursor, deeper(depth)?, out);
            }
            Type::Record(fields) => {
                let depth = deeper(depth)?;
                out.push(b'{');
                for (number, (name, of)) in fields.iter().enumerate() {
                    if number > 0 {
                        out.extend_from_slice(b", ");
                    }
                    write_json_string(name.as_bytes(), out);
                    out.extend_from_slice(b": ");
                    // Names may be long, and there is one for each level.
                    self.check(out)?;
                    self.write(*of, cursor, depth, out)?;
                }
                out.push(b'}');
            }
            Type::Array(items) => {
                let depth = deeper(depth)?;
                self.items(cursor, b"[]", out, |cursor, out| {
                    self.write(*items, cursor, depth, out)
                })?;
            }
            Type::Map(values) => {
                let depth = deeper(depth)?;
                self.items(cursor, b"{}", out, |cursor, out| {
                    write_json_string(cursor.sized()?, out);
                    out.extend_from_slice(b": ");
                    self.write(*values, cursor, depth, out)
                })?;
            }
        }
        self.check(out)
    }

    fn check(&self, out: &[u8]) -> Result<()> {
        match out.len() <= self.bytes_max {
            true => Ok(()),
            false => Err(Fault::TooLarge(out.len() as u64)),
        }
    }

    fn items<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        brackets: &[u8; 2],
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Cursor<'a>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        out.push(brackets[0]);
        let mut is_first = true;
        loop {
            let (count, _) = cursor.items()?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(b", ");
                }
                write(cursor, out)?;
                // Items may have no bytes: the text ends them.
                self.check(out)?;
            }
        }
        out.push(brackets[1]);
        Ok(())
    }
}

fn write_leaf(leaf: &Leaf, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<()> {
    if leaf.meaning == Meaning::Duration {
        out.push(b'"');
        write_duration(&cursor.array()?, out);
        out.push(b'"');
        return Ok(());
    }
    match leaf.read(cursor)? {
        Some(value) => write_json(value, out),
        None => out.extend_from_slice(b"null"),
    }
    Ok(())
}

/// Passes over a value. Each step takes a byte at least: a schema of a few records within each other may have more values
/// without bytes than anybody has time for.
///
/// # Errors
/// `Damaged` when it is none.
pub(crate) fn skip(
    schema: &Schema,
    id: TypeId,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<()> {
    if schema.has_no_bytes(id) {
        return Ok(());
    }
    match schema.get(id) {
        Type::Leaf(leaf) => leaf.skip(cursor),
        Type::Union(branches) => {
            let branch = cursor.choice(branches.len(), "branch")?;
            skip(schema, branches[branch], cursor, deeper(depth)?)
        }
        Type::Record(_) => {
            let depth = deeper(depth)?;
            let mut fields = schema.fields_with_bytes(id).iter();
            fields.try_for_each(|of| skip(schema, *of, cursor, depth))
        }
        Type::Array(items) => {
            let depth = deeper(depth)?;
            skip_items(cursor, |cursor| skip(schema, *items, cursor, depth))
        }
        Type::Map(values) => {
            let depth = deeper(depth)?;
            skip_items(cursor, |cursor| {
                cursor.sized()?;
                skip(schema, *values, cursor, depth)
            })
        }
    }
}

fn skip_items<'a>(
    cursor: &mut Cursor<'a>,
    mut skip: impl FnMut(&mut Cursor<'a>) -> Result<()>,
) -> Result<()> {
    loop {
        let (count, bytes) = cursor.items()?;
        if count == 0 {
            return Ok(());
        }
        if let Some(bytes) = bytes {
            cursor.take(bytes)?;
            continue;
        }
        for _ in 0..count {
            let before = cursor.at();
            skip(cursor)?;
            // One without bytes is as all of them are, however many there are.
            if cursor.at() == before {
                break;
            }
        }
    }
}
