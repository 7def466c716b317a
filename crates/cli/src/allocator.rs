//! Memory: mimalloc, which keeps pages that were freed where there is memory enough.
//!
//! A page given back to the system costs a fault, and zeroing, when it is needed again. A load frees
//! and takes the same amounts all the time, so it keeps what it has. What it keeps are the sizes of the past, which need not
//! be those of the next: where `--memory` is small, pages go back at once.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use coload_threads::FreedPages;
use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a thread may take or give back before it says so to the process.
const UNTOLD_BYTES_MAX: i64 = 1 << 20;

/// What all threads have told, bytes.
static PROCESS: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Bytes that this thread has taken, less those that it gave back; and of these, those it has not told yet.
    static THREAD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// mimalloc, which counts what it gives out: two additions to numbers of the thread for each call.
struct Counting;

fn count(bytes: i64) {
    // A thread that ends frees its last after its numbers are gone.
    let _ = THREAD.try_with(|thread| {
        let (taken, untold) = thread.get();
        let untold = untold + bytes;
        if untold.abs() < UNTOLD_BYTES_MAX {
            thread.set((taken + bytes, untold));
        } else {
            thread.set((taken + bytes, 0));
            PROCESS.fetch_add(untold, Ordering::Relaxed);
        }
    });
}

/// Bytes that were given out and not given back, to a MiB for each thread.
#[cfg(feature = "sql")]
pub fn process_bytes() -> usize {
    usize::try_from(PROCESS.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bytes that this thread has taken, less those that it gave back.
#[cfg(feature = "sql")]
pub fn thread_bytes() -> i64 {
    THREAD.try_with(|thread| thread.get().0).unwrap_or(0)
}

// SAFETY: all is done by mimalloc; what is counted beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller says.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller says.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller says.
        unsafe { MiMalloc.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as i64 - layout.size() as i64);
        // SAFETY: as the caller says.
        unsafe { MiMalloc.realloc(memory, layout, bytes) }
    }
}

/// `mi_option_purge_delay` in `mimalloc.h`; the crate does not name it.
const PURGE_DELAY: mi_option_t = 15;
/// The value that means never.
const NEVER: std::ffi::c_long = -1;
/// The value that means when they are freed.
const AT_ONCE: std::ffi::c_long = 0;
/// From this budget on pages are kept: with less, the sizes of the past take what is needed for those of the next.
const KEEP_FROM: usize = 1 << 30;

/// Milliseconds after which a load of some memory gives back what it freed: what it takes meanwhile are mostly the same sizes, and a
/// page that is taken anew costs a fault. With less than [`SOON_FROM`] that would be too much of it.
const SOON: std::ffi::c_long = 50;
const SOON_FROM: usize = 96 << 20;

/// Keeps pages that are freed from now on, or gives them back if the memory that may be used is small.
pub fn keep_freed_pages(memory: usize) {
    let delay = match memory {
        KEEP_FROM.. => UNTIL_TOLD,
        SOON_FROM.. => SOON,
        _ => AT_ONCE,
    };
    BUDGET.store(if delay == SOON { memory } else { 0 }, Ordering::Relaxed);
    // SAFETY: sets a number in a table of the allocator; the index is one of its options.
    unsafe { mi_option_set(PURGE_DELAY, delay) }
}

/// Memory of a load that gives back what it freed after [`SOON`]; 0 for others.
static BUDGET: AtomicUsize = AtomicUsize::new(0);
/// Share of the budget that is not to be taken by what was freed, while sizes repeat: what comes next may need as much.
const ROOM_SHARE: usize = 6;

/// What is done while rows are put in order: sizes repeat, but seldom within [`SOON`], and at some moments little is needed. So pages are
/// kept, and given back at these moments if there are too many.
pub const FREED_PAGES: FreedPages = FreedPages {
    keep: || set_delay_of_sorts(UNTIL_TOLD),
    relieve: || {
        let budget = BUDGET.load(Ordering::Relaxed);
        if budget > 0 && anonymous_bytes() > budget - budget / ROOM_SHARE {
            // SAFETY: looks at the heap of this thread and at pages that belong to none, which takes no lock that this
            // thread may hold.
            unsafe { mi_collect(true) }
        }
    },
    leave: || {
        // SAFETY: as above, and below. What is freed from now on the system takes with the process; the allocator would give it back
        // itself otherwise when it ends.
        unsafe {
            mi_collect(true);
            mi_option_set(PURGE_DELAY, NEVER);
        }
    },
    as_before: || set_delay_of_sorts(SOON),
};

fn set_delay_of_sorts(delay: std::ffi::c_long) {
    if BUDGET.load(Ordering::Relaxed) > 0 {
        // SAFETY: as above.
        unsafe { mi_option_set(PURGE_DELAY, delay) }
    }
}

/// Bytes that the process has from the system, those of mapped files left out; a cheaper question than [`resident_bytes`].
fn anonymous_bytes() -> usize {
    const PAGE_BYTES: usize = 4 << 10;
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = told.split(' ').skip(1).map_while(|pages| pages.parse::<usize>().ok());
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(of_files) * PAGE_BYTES
}

/// Longer than a process runs, milliseconds.
const UNTIL_TOLD: std::ffi::c_long = 1 << 40;

/// Keeps pages that are freed from now on until [`give_back_freed_pages`]; where there is little memory, they are given
/// back when they are freed.
#[cfg(feature = "sql")]
pub fn keep_freed_pages_until_told(memory: usize) {
    let delay = if memory < KEEP_FROM { AT_ONCE } else { UNTIL_TOLD };
    // SAFETY: as above.
    unsafe { mi_option_set(PURGE_DELAY, delay) }
}

/// Gives the pages that all threads have freed back to the system.
#[cfg(feature = "sql")]
pub fn give_back_freed_pages() {
    // SAFETY: looks at the heap of this thread and at pages that belong to none, which takes no lock that this thread
    // may hold.
    unsafe { mi_collect(true) }
}

/// Bytes that the process has from the system, those of mapped files left out.
#[cfg(feature = "sql")]
pub fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = kib.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

/// Has a load take memory in small pages. A virtual machine may have to get a huge page from its host
/// first, for blocks of that size are what hosts take back: on such a one a load of 1.2 CPU seconds spent
/// up to 1.1 s more on it. Where the host takes nothing, huge pages would save 0.1 s.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Only a hint: a kernel that knows no huge pages refuses.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
