//! Streams of other libraries.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use coload::arrow::array::{ArrayData, ArrayDataBuilder, StructArray};
use coload::arrow::buffer::Buffer;
use coload::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UnionMode};
use coload::arrow::record_batch::RecordBatch;
use coload::{Batches, Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::STREAM;
use super::format::{dictionary_type, type_of};
use super::structs::{CArray, CSchema, CStream, NULLABLE};
use crate::errors::named;

/// Deepest nesting of types that is read.
const DEPTH_MAX: usize = 64;
/// Most fields of a schema, with those within others.
const CHILDREN_MAX: i64 = 1 << 20;

/// A stream of another library.
pub struct Stream(CStream);

impl Stream {
    /// Takes the stream of an object that has `__arrow_c_stream__`.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast_into::<PyCapsule>().map_err(PyErr::from)?;
        let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<CStream>();
        // SAFETY: a capsule of this name has such a structure, which is moved out of it: it has nothing to release any more.
        let stream = unsafe {
            let stream = ptr::read(pointer.as_ptr());
            (*pointer.as_ptr()).release = None;
            stream
        };
        match stream.release {
            Some(_) => Ok(Stream(stream)),
            None => Err(named(py, "UsageError", "the stream of Arrow was taken already")),
        }
    }

    /// Its fields and its batches; `name` is for messages.
    ///
    /// # Errors
    /// `Invalid` with what the library says.
    pub fn batches(mut self, name: &str) -> Result<(SchemaRef, Batches)> {
        let mut schema = CSchema::empty();
        let Some(get_schema) = self.0.get_schema else { return Err(none(name)) };
        // SAFETY: the stream was not released, and the schema is one to be filled.
        let status = unsafe { get_schema(&mut self.0, &mut schema) };
        self.check(status, name)?;
        let field =
            field_of(&schema, 0).map_err(|text| Error::Invalid(format!("{name}: {text}")))?;
        let DataType::Struct(fields) = field.data_type() else {
            return Err(Error::Invalid(format!(
                "{name}: its stream has arrays of {}, and no columns (give a table)",
                field.data_type()
            )));
        };
        let schema = Arc::new(Schema::new(fields.clone()));
        let taken = Taken { stream: self, of: field.data_type().clone(), name: name.to_owned() };
        let taken = taken.into_batches(Arc::clone(&schema));
        Ok((schema, Box::new(taken)))
    }

    /// The error of a call, if it failed.
    fn check(&mut self, status: c_int, name: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = match self.0.get_last_error {
            None => None,
            // SAFETY: the stream was not released, and a call of it has just failed; the text is copied before the next.
            Some(get) => unsafe { text_of(get(&mut self.0)) },
        };
        let text = text.unwrap_or_else(|| format!("its stream failed with error {status}"));
        Err(Error::Invalid(format!("{name}: {text}")))
    }

    fn next(&mut self, name: &str) -> Result<Option<CArray>> {
        let mut array = CArray::empty();
        let Some(get_next) = self.0.get_next else { return Err(none(name)) };
        // SAFETY: the stream was not released, and the array is one to be filled.
        let status = unsafe { get_next(&mut self.0, &mut array) };
        self.check(status, name)?;
        Ok(array.release.is_some().then_some(array))
    }
}

fn none(name: &str) -> Error {
    Error::Invalid(format!("{name}: its stream of Arrow is none"))
}

/// The batches of a stream.
struct Taken {
    stream: Stream,
    of: DataType,
    name: String,
}

impl Taken {
    fn into_batches(
        mut self,
        schema: SchemaRef,
    ) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let mut has_failed = false;
        std::iter::from_fn(move || {
            if has_failed {
                return None;
            }
            let batch = self.next(&schema).transpose();
            has_failed = matches!(batch, Some(Err(_)));
            batch
        })
    }

    fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        let Some(array) = self.stream.next(&self.name)? else { return Ok(None) };
        let wrong = |text: String| Error::Invalid(format!("{}: {text}", self.name));
        let array = Arc::new(AssertUnwindSafe(array));
        let data = data_of(&self.of, &array, &array).map_err(wrong)?;
        if data.null_count() > 0 {
            return Err(wrong("a batch has rows that are NULL as a whole".to_owned()));
        }
        let rows = StructArray::from(data);
        RecordBatch::try_new(Arc::clone(schema), rows.columns().to_vec())
            .map(Some)
            .map_err(|error| wrong(error.to_string()))
    }
}

/// A text of the interface.
///
/// # Safety
/// The pointer is NULL or leads to a text that ends with a NUL.
unsafe fn text_of(text: *const c_char) -> Option<String> {
    // SAFETY: the caller says so.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A field, and those within it.
fn field_of(schema: &CSchema, depth: usize) -> std::result::Result<Field, String> {
    if depth > DEPTH_MAX || !(0..=CHILDREN_MAX).contains(&schema.n_children) {
        return Err("its types are nested too deeply, or are too many".to_owned());
    }
    // SAFETY: the texts of a schema that was not released are there.
    let (format, name) = unsafe { (text_of(schema.format), text_of(schema.name)) };
    let (format, name) = (format.unwrap_or_default(), name.unwrap_or_default());
    let mut children: Vec<FieldRef> = Vec::new();
    for number in 0..schema.n_children as usize {
        // SAFETY: so many children are there.
        let child = unsafe { schema.children.add(number).read().as_ref() };
        let child = child.ok_or("a type without its parts")?;
        children.push(Arc::new(field_of(child, depth + 1)?));
    }
    let mut data_type = type_of(&format, children, schema.flags)?;
    // SAFETY: it is NULL, or leads to a schema.
    if let Some(values) = unsafe { schema.dictionary.as_ref() } {
        data_type = dictionary_type(&data_type, &field_of(values, depth + 1)?);
    }
    // SAFETY: the metadata of a schema that was not released are there.
    let metadata = unsafe { metadata_of(schema.metadata) };
    let field = Field::new(name, data_type, schema.flags & NULLABLE != 0);
    Ok(field.with_metadata(metadata))
}

/// Pairs of texts: their number, and for each the length of its parts before these.
///
/// # Safety
/// The pointer is NULL or leads to such pairs.
unsafe fn metadata_of(bytes: *const c_char) -> HashMap<String, String> {
    let mut pairs = HashMap::new();
    if bytes.is_null() {
        return pairs;
    }
    let mut pairs_at = Pairs(bytes.cast());
    // SAFETY: the caller says that the pairs are there.
    unsafe {
        for _ in 0..pairs_at.number() {
            let key = pairs_at.text();
            pairs.insert(key, pairs_at.text());
        }
    }
    pairs
}

/// Where the next number or text of pairs stands.
struct Pairs(*const u8);

impl Pairs {
    /// # Safety
    /// A number stands there.
    unsafe fn number(&mut self) -> usize {
        // SAFETY: the caller says so; what follows is of the same object.
        unsafe {
            let number = self.0.cast::<i32>().read_unaligned();
            self.0 = self.0.add(4);
            usize::try_from(number).unwrap_or(0)
        }
    }

    /// # Safety
    /// A text stands there, behind its length.
    unsafe fn text(&mut self) -> String {
        // SAFETY: the caller says so; what follows is of the same object.
        unsafe {
            let bytes = self.number();
            let text = std::slice::from_raw_parts(self.0, bytes);
            self.0 = self.0.add(bytes);
            String::from_utf8_lossy(text).into_owned()
        }
    }
}

/// What keeps the bytes of arrays.
type Owner = Arc<AssertUnwindSafe<CArray>>;

/// An array of a type, whose bytes the owner keeps.
fn data_of(
    data_type: &DataType,
    array: &CArray,
    owner: &Owner,
) -> std::result::Result<ArrayData, String> {
    let number = |number: i64| usize::try_from(number).ok();
    let lengths = number(array.length).zip(number(array.offset));
    let lengths = lengths.filter(|(length, offset)| length.checked_add(*offset).is_some());
    let (length, offset) = lengths.ok_or("an array whose length is none")?;
    let read = Read { array, owner, end: length + offset };
    let (buffers, validity) = read.buffers(data_type)?;
    let children = read.children(data_type)?;
    let has_nulls = validity.is_some() && array.null_count != 0;
    let builder = ArrayDataBuilder::new(data_type.clone())
        .len(length)
        .offset(offset)
        .null_bit_buffer(validity.filter(|_| has_nulls))
        .buffers(buffers)
        .child_data(children)
        .align_buffers(true);
    // SAFETY: buffers are as long as the type and the length ask for. What stands in them, such as places of texts, is checked
    // by whoever reads it: `coload_arrow` reads bytes, and trusts none.
    Ok(unsafe { builder.build_unchecked() })
}

/// An array that is read.
struct Read<'a> {
    array: &'a CArray,
    owner: &'a Owner,
    /// Rows that its buffers have at least.
    end: usize,
}

impl Read<'_> {
    fn children(&self, data_type: &DataType) -> std::result::Result<Vec<ArrayData>, String> {
        if let DataType::Dictionary(_, values) = data_type {
            // SAFETY: it is NULL, or leads to an array.
            let array = unsafe { self.array.dictionary.as_ref() };
            return Ok(vec![data_of(
                values,
                array.ok_or("keys without a dictionary")?,
                self.owner,
            )?]);
        }
        let types = super::format::children_of(data_type);
        if usize::try_from(self.array.n_children) != Ok(types.len()) {
            return Err(format!("an array of {data_type} without its parts"));
        }
        let child = |(number, field): (usize, &FieldRef)| {
            // SAFETY: so many children are there.
            let child = unsafe { self.array.children.add(number).read().as_ref() };
            data_of(field.data_type(), child.ok_or("an array without its parts")?, self.owner)
        };
        types.iter().enumerate().map(child).collect()
    }

    /// The buffers with values, and that of what is NULL.
    fn buffers(
        &self,
        data_type: &DataType,
    ) -> std::result::Result<(Vec<Buffer>, Option<Buffer>), String> {
        let bits = self.end.div_ceil(8);
        let validity = match data_type {
            DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..) => None,
            _ => self.optional(0, bits)?,
        };
        let bytes = |width: usize| {
            let bytes = self.end.checked_mul(width);
            bytes.ok_or_else(|| "an array that is too long".to_owned())
        };
        let buffers = match data_type {
            DataType::Null
            | DataType::Struct(_)
            | DataType::FixedSizeList(..)
            | DataType::RunEndEncoded(..) => Vec::new(),
            DataType::Boolean => vec![self.buffer(1, bits)?],
            DataType::Utf8 | DataType::Binary => self.strings(4)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.strings(8)?,
            DataType::Utf8View | DataType::BinaryView => self.views(bytes(16)?)?,
            DataType::List(_) | DataType::Map(..) => vec![self.ends(4)?.0],
            DataType::LargeList(_) => vec![self.ends(8)?.0],
            DataType::ListView(_) => vec![self.buffer(1, bytes(4)?)?, self.buffer(2, bytes(4)?)?],
            DataType::LargeListView(_) => {
                vec![self.buffer(1, bytes(8)?)?, self.buffer(2, bytes(8)?)?]
            }
            DataType::Union(_, UnionMode::Sparse) => vec![self.buffer(0, self.end)?],
            DataType::Union(_, UnionMode::Dense) => {
                vec![self.buffer(0, self.end)?, self.buffer(1, bytes(4)?)?]
            }
            DataType::FixedSizeBinary(width) => {
                vec![self.buffer(1, bytes(usize::try_from(*width).unwrap_or(0))?)?]
            }
            DataType::Dictionary(keys, _) => {
                vec![self.buffer(1, bytes(keys.primitive_width().unwrap_or(0))?)?]
            }
            other => match other.primitive_width() {
                Some(width) => vec![self.buffer(1, bytes(width)?)?],
                None => return Err(format!("{other} is not read")),
            },
        };
        Ok((buffers, validity))
    }

    fn pointer(&self, number: usize) -> std::result::Result<*const c_void, String> {
        match usize::try_from(self.array.n_buffers) {
            // SAFETY: so many buffers are there.
            Ok(count) if number < count => Ok(unsafe { self.array.buffers.add(number).read() }),
            _ => Err("an array without its buffers".to_owned()),
        }
    }

    /// A buffer that may be left out.
    fn optional(&self, number: usize, bytes: usize) -> std::result::Result<Option<Buffer>, String> {
        let Some(pointer) = NonNull::new(self.pointer(number)?.cast_mut().cast::<u8>()) else {
            return Ok(None);
        };
        let owner: Owner = Arc::clone(self.owner);
        // SAFETY: the interface says that a buffer of this type and length has so many bytes; the owner keeps them.
        Ok(Some(unsafe { Buffer::from_custom_allocation(pointer, bytes, owner) }))
    }

    fn buffer(&self, number: usize, bytes: usize) -> std::result::Result<Buffer, String> {
        match self.optional(number, bytes)? {
            Some(buffer) => Ok(buffer),
            None if bytes == 0 => Ok(Buffer::from_vec(Vec::<u8>::new())),
            None => Err("an array without its values".to_owned()),
        }
    }

    /// Places of so many bytes, and the last of them.
    fn ends(&self, width: usize) -> std::result::Result<(Buffer, usize), String> {
        if self.end == 0 {
            // There need not be any.
            return Ok((Buffer::from_vec(vec![0_u8; width]), 0));
        }
        let bytes = (self.end + 1).checked_mul(width).ok_or("an array that is too long")?;
        let places = self.buffer(1, bytes)?;
        let last = &places.as_slice()[self.end * width..];
        let last = match width {
            4 => <[u8; 4]>::try_from(last).map(|last| i64::from(i32::from_le_bytes(last))),
            _ => <[u8; 8]>::try_from(last).map(i64::from_le_bytes),
        };
        let last = last.ok().and_then(|last| usize::try_from(last).ok());
        Ok((places, last.ok_or("texts that end before they start")?))
    }

    fn strings(&self, width: usize) -> std::result::Result<Vec<Buffer>, String> {
        let (ends, bytes) = self.ends(width)?;
        Ok(vec![ends, self.buffer(2, bytes)?])
    }

    fn views(&self, bytes: usize) -> std::result::Result<Vec<Buffer>, String> {
        let count = usize::try_from(self.array.n_buffers).ok().and_then(|n| n.checked_sub(3));
        let count = count.ok_or("views without the lengths of their buffers")?;
        let lengths = self.buffer(2 + count, count * 8)?;
        let mut buffers = vec![self.buffer(1, bytes)?];
        for (number, length) in lengths.as_slice().chunks_exact(8).enumerate() {
            let length = <[u8; 8]>::try_from(length).map(i64::from_le_bytes).unwrap_or(-1);
            let length = usize::try_from(length).map_err(|_| "a buffer whose length is none")?;
            buffers.push(self.buffer(2 + number, length)?);
        }
        Ok(buffers)
    }
}
