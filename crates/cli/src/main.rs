//! The command `coload`.

mod allocator;

use std::process::ExitCode;

use coload::command_line::{Allocator, run};

fn main() -> ExitCode {
    allocator::keep_freed_pages(usize::MAX);
    coload_threads::tell_freed_pages(allocator::FREED_PAGES);
    #[cfg(feature = "sql")]
    coload_serve::measure_memory(coload_serve::MemoryGauge {
        process: allocator::process_bytes,
        thread: allocator::thread_bytes,
        resident: allocator::resident_bytes,
        trim: allocator::give_back_freed_pages,
    });
    run(
        std::env::args_os(),
        &Allocator {
            use_small_pages: allocator::use_small_pages,
            keep_freed_pages: allocator::keep_freed_pages,
            #[cfg(feature = "sql")]
            keep_freed_pages_until_told: allocator::keep_freed_pages_until_told,
        },
    )
}
