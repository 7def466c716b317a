//! Pages that were freed, and whether the program keeps them: who knows what comes next tells its allocator.
//!
//! A page that is given back costs a fault and zeroing when it is needed again. Work that takes the same sizes all the time is told
//! here, and says where it takes little: what it left is given back there if the process has too much.

use std::sync::OnceLock;

/// What the allocator of the program does when it is told.
#[derive(Debug, Clone, Copy)]
pub struct FreedPages {
    /// Keeps what is freed from now on.
    pub keep: fn(),
    /// Gives back what was freed, if the process has more than it should.
    pub relieve: fn(),
    /// Gives back what was freed, for the process needs little until it ends.
    pub leave: fn(),
    /// Does with what is freed as before [`Self::keep`].
    pub as_before: fn(),
}

static FREED: OnceLock<FreedPages> = OnceLock::new();

/// Says what the allocator of the program does, once.
pub fn tell_freed_pages(freed: FreedPages) {
    // The first one stays: it is the program's.
    let _ = FREED.set(freed);
}

/// Does work that takes the same sizes all the time.
pub fn while_sizes_repeat<T>(work: impl FnOnce() -> T) -> T {
    /// Ends it however the work ends.
    struct Repeating;
    impl Drop for Repeating {
        fn drop(&mut self) {
            if let Some(freed) = FREED.get() {
                (freed.relieve)();
                (freed.as_before)();
            }
        }
    }
    if let Some(freed) = FREED.get() {
        (freed.keep)();
    }
    let _repeating = Repeating;
    work()
}

/// Says that the work takes little at this moment.
pub fn relieve() {
    if let Some(freed) = FREED.get() {
        (freed.relieve)();
    }
}

/// Says that the process needs little until it ends. What it has it has to give back then, page by page, and who waits for the
/// process waits for that: a thread does it beside what is left to do, which mostly waits for a disk.
pub fn leave_beside() {
    if let Some(freed) = FREED.get() {
        // Without it the end takes longer.
        let _ = std::thread::Builder::new().name("coload-leave".to_owned()).spawn(freed.leave);
    }
}
