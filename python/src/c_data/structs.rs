//! The structures of the interface.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// Whether NULL may stand in a field.
pub const NULLABLE: i64 = 2;

/// A type.
#[repr(C)]
#[derive(Debug)]
pub struct CSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut CSchema,
    pub dictionary: *mut CSchema,
    pub release: Option<unsafe extern "C" fn(*mut CSchema)>,
    pub private_data: *mut c_void,
}

/// An array.
#[repr(C)]
#[derive(Debug)]
pub struct CArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut CArray,
    pub dictionary: *mut CArray,
    pub release: Option<unsafe extern "C" fn(*mut CArray)>,
    pub private_data: *mut c_void,
}

/// A stream of arrays.
#[repr(C)]
#[derive(Debug)]
pub struct CStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut CStream, *mut CSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut CStream, *mut CArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut CStream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut CStream)>,
    pub private_data: *mut c_void,
}

// SAFETY: the interface says that they may be used and released by any thread, one at a time.
unsafe impl Send for CSchema {}
// SAFETY: as above; what an array leads to is only read.
unsafe impl Send for CArray {}
// SAFETY: as above.
unsafe impl Sync for CArray {}
// SAFETY: as above.
unsafe impl Send for CStream {}

impl CSchema {
    /// One that is released.
    pub fn empty() -> Self {
        CSchema {
            format: null_mut(),
            name: null_mut(),
            metadata: null_mut(),
            flags: 0,
            n_children: 0,
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

impl CArray {
    /// One that is released.
    pub fn empty() -> Self {
        CArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

impl Drop for CSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, or there would be nothing to call.
            unsafe { release(self) }
        }
    }
}

impl Drop for CArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, or there would be nothing to call.
            unsafe { release(self) }
        }
    }
}

impl Drop for CStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, or there would be nothing to call.
            unsafe { release(self) }
        }
    }
}
