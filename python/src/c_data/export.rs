//! Streams for other libraries.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use coload::arrow::array::{Array, ArrayData, BooleanBufferBuilder, StructArray};
use coload::arrow::buffer::Buffer;
use coload::arrow::datatypes::{DataType, Field, SchemaRef};
use coload::arrow::record_batch::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::STREAM;
use super::format::{children_of, format_of};
use super::structs::{CArray, CSchema, CStream, NULLABLE};

/// What `errno` calls a failed input.
const FAILED: c_int = 5;

/// Batches that another library takes.
pub trait Source: Send + Sync {
    /// Their fields.
    fn schema(&self) -> Result<SchemaRef, String>;

    /// The next batch; `None` at the end.
    fn next(&self) -> Result<Option<RecordBatch>, String>;
}

/// A stream for another library.
pub struct Exported {
    source: Arc<dyn Source>,
    last_error: CString,
}

impl Exported {
    /// A capsule with the stream.
    pub fn capsule<'py>(
        py: Python<'py>,
        source: Arc<dyn Source>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let own = Box::new(Exported { source, last_error: CString::default() });
        let stream = CStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(own).cast(),
        };
        // Dropped, the stream releases itself if nobody has taken it.
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    /// Calls what may fail, or panic, which must not reach another library.
    fn call(&mut self, work: impl FnOnce(&dyn Source) -> Result<(), String>) -> c_int {
        let source = &*self.source;
        let done = catch_unwind(AssertUnwindSafe(|| work(source)));
        match done.unwrap_or_else(|_| Err("internal error: a panic".to_owned())) {
            Ok(()) => 0,
            Err(text) => {
                self.last_error = text_of(&text);
                FAILED
            }
        }
    }
}

/// The text without NULs, which would end it.
fn text_of(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

unsafe extern "C" fn get_schema(stream: *mut CStream, out: *mut CSchema) -> c_int {
    // SAFETY: whoever calls it has a stream that was not released, made by `capsule`, and room for a schema.
    let own = unsafe { &mut *(*stream).private_data.cast::<Exported>() };
    own.call(|source| {
        let schema = source.schema()?;
        let of = DataType::Struct(schema.fields().clone());
        let made = schema_of(&Field::new("", of, false))?;
        // SAFETY: as above; what was there is nothing that is to be dropped.
        unsafe { out.write(made) };
        Ok(())
    })
}

unsafe extern "C" fn get_next(stream: *mut CStream, out: *mut CArray) -> c_int {
    // SAFETY: whoever calls it has a stream that was not released, made by `capsule`, and room for an array.
    let own = unsafe { &mut *(*stream).private_data.cast::<Exported>() };
    own.call(|source| {
        let made = match source.next()? {
            None => CArray::empty(),
            Some(batch) => array_of(StructArray::from(batch).to_data()),
        };
        // SAFETY: as above; what was there is nothing that is to be dropped.
        unsafe { out.write(made) };
        Ok(())
    })
}

unsafe extern "C" fn get_last_error(stream: *mut CStream) -> *const c_char {
    // SAFETY: whoever calls it has a stream that was not released, made by `capsule`.
    let own = unsafe { &*(*stream).private_data.cast::<Exported>() };
    own.last_error.as_ptr()
}

unsafe extern "C" fn release_stream(stream: *mut CStream) {
    // SAFETY: it is called once, for a stream made by `capsule`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Exported>()));
        (*stream).release = None;
    }
}

/// What a schema of ours leads to.
struct OwnSchema {
    _texts: Vec<CString>,
    _metadata: Vec<u8>,
    children: Vec<*mut CSchema>,
    dictionary: *mut CSchema,
}

fn schema_of(field: &Field) -> Result<CSchema, String> {
    let data_type = field.data_type();
    let texts = vec![text_of(&format_of(data_type)?), text_of(field.name())];
    let mut own = OwnSchema {
        _texts: texts,
        _metadata: metadata_of(field),
        children: Vec::new(),
        dictionary: null_mut(),
    };
    for child in children_of(data_type) {
        own.children.push(Box::into_raw(Box::new(schema_of(&child)?)));
    }
    if let DataType::Dictionary(_, values) = data_type {
        let values = schema_of(&Field::new("", (**values).clone(), true))?;
        own.dictionary = Box::into_raw(Box::new(values));
    }
    let mut own = Box::new(own);
    Ok(CSchema {
        format: own._texts[0].as_ptr(),
        name: own._texts[1].as_ptr(),
        metadata: if own._metadata.is_empty() { null() } else { own._metadata.as_ptr().cast() },
        flags: if field.is_nullable() { NULLABLE } else { 0 },
        n_children: own.children.len() as i64,
        children: own.children.as_mut_ptr(),
        dictionary: own.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(own).cast(),
    })
}

/// The pairs of a field, as the interface has them; nothing if there are none.
fn metadata_of(field: &Field) -> Vec<u8> {
    let mut bytes = Vec::new();
    if field.metadata().is_empty() {
        return bytes;
    }
    let number = |bytes: &mut Vec<u8>, number: usize| {
        bytes.extend_from_slice(&(number as i32).to_ne_bytes());
    };
    number(&mut bytes, field.metadata().len());
    for (key, value) in field.metadata() {
        for text in [key, value] {
            number(&mut bytes, text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

unsafe extern "C" fn release_schema(schema: *mut CSchema) {
    // SAFETY: it is called once, for a schema made by `schema_of`; its children were made by it too, and release themselves.
    unsafe {
        let own = Box::from_raw((*schema).private_data.cast::<OwnSchema>());
        for child in own.children.iter().chain([&own.dictionary]).filter(|of| !of.is_null()) {
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
    }
}

/// What an array of ours leads to.
struct OwnArray {
    _data: ArrayData,
    _validity: Option<Buffer>,
    _lengths: Vec<i64>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut CArray>,
    dictionary: *mut CArray,
}

fn array_of(data: ArrayData) -> CArray {
    let validity = validity_of(&data);
    let mut pointers: Vec<*const c_void> = Vec::new();
    if !matches!(
        data.data_type(),
        DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..)
    ) {
        pointers.push(validity.as_ref().map_or(null(), |bits| bits.as_ptr().cast()));
    }
    pointers.extend(data.buffers().iter().map(|buffer| buffer.as_ptr().cast::<c_void>()));
    let mut lengths: Vec<i64> = Vec::new();
    if matches!(data.data_type(), DataType::Utf8View | DataType::BinaryView) {
        lengths.extend(data.buffers().iter().skip(1).map(|buffer| buffer.len() as i64));
        pointers.push(lengths.as_ptr().cast());
    }
    let mut children: Vec<*mut CArray> = Vec::new();
    let mut dictionary = null_mut();
    for child in data.child_data() {
        let child = Box::into_raw(Box::new(array_of(child.clone())));
        match data.data_type() {
            DataType::Dictionary(..) => dictionary = child,
            _ => children.push(child),
        }
    }
    let (length, offset) = (data.len() as i64, data.offset() as i64);
    let null_count = match data.data_type() {
        DataType::Null => length,
        _ => data.null_count() as i64,
    };
    let mut own = Box::new(OwnArray {
        _data: data,
        _validity: validity,
        _lengths: lengths,
        pointers,
        children,
        dictionary,
    });
    CArray {
        length,
        null_count,
        offset,
        n_buffers: own.pointers.len() as i64,
        n_children: own.children.len() as i64,
        buffers: own.pointers.as_mut_ptr(),
        children: own.children.as_mut_ptr(),
        dictionary: own.dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(own).cast(),
    }
}

/// The bits of what is no NULL, from where the values of the array start.
fn validity_of(data: &ArrayData) -> Option<Buffer> {
    let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0)?;
    if nulls.offset() == data.offset() {
        return Some(nulls.buffer().clone());
    }
    let mut bits = BooleanBufferBuilder::new(data.offset() + data.len());
    bits.append_n(data.offset(), false);
    bits.append_buffer(nulls.inner());
    Some(bits.finish().into_inner())
}

unsafe extern "C" fn release_array(array: *mut CArray) {
    // SAFETY: it is called once, for an array made by `array_of`; its children were made by it too. One that was moved away by
    // who got it has nothing to release any more.
    unsafe {
        let own = Box::from_raw((*array).private_data.cast::<OwnArray>());
        for child in own.children.iter().chain([&own.dictionary]).filter(|of| !of.is_null()) {
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
    }
}
