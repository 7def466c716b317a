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

/// Has a load take memory in small pages. A virtual machine may have to get a huge page from its host
/// first, for blocks of that size are what hosts take back: on such a one a load of 1.2 CPU seconds spent
/// up to 1.1 s more on it. Where the host takes nothing, huge pages would save 0.1 s.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Only a hint: a kernel that knows no huge pages refuses.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
