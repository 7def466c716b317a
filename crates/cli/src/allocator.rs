//! Memory: mimalloc, which keeps pages that were freed.
//!
//! A page given back to the system costs a fault, and zeroing, when it is needed again. A load frees
//! and takes the same amounts all the time, so it keeps what it has; `--memory` bounds what that is.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` in `mimalloc.h`; the crate does not name it.
const PURGE_DELAY: mi_option_t = 15;
/// The value that means never.
const NEVER: std::ffi::c_long = -1;

/// Keeps pages that are freed from now on.
pub fn keep_freed_pages() {
    // SAFETY: sets a number in a table of the allocator; the index is one of its options.
    unsafe { mi_option_set(PURGE_DELAY, NEVER) }
}

/// Has a load take memory in small pages. A huge page is zeroed whole though little of it may be used,
/// and a virtual machine may have to get it from its host first: on such a one that took 0.1 to 0.5 s of
/// a load of 2 s, and fewer faults saved less than 0.1 s.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Only a hint: a kernel that knows no huge pages refuses.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
