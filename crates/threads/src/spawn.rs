//! Threads that may be left alone at any moment.
//!
//! Dropping the handle of a thread of the standard library detaches it, and `pthread_detach` of glibc 2.36 looks at the
//! thread's memory after it has let go of it: when the thread ends at that moment and its stack is too large to be kept
//! for the next, the process dies of a segmentation fault. So no handle is dropped here: each thread that ends leaves its
//! own to the next one that ends, which waits for it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, Result, ScopedJoinHandle};

use crate::lock;

/// The thread that ended last, or is about to.
static LAST: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// A thread. Dropping it leaves the thread alone.
#[derive(Debug)]
pub struct Thread<T> {
    /// Behind a lock so that threads can share it.
    result: Mutex<Receiver<Result<T>>>,
}

impl<T> Thread<T> {
    /// Waits for what the thread returns; for its panic, if it did.
    ///
    /// # Errors
    /// The panic of the thread, as it was thrown.
    pub fn join(self) -> Result<T> {
        // Nothing is sent only when the thread was ended from outside.
        lock(&self.result).recv().unwrap_or_else(|gone| Err(Box::new(gone)))
    }
}

/// Starts a thread, which goes on when what this gives is dropped.
///
/// # Errors
/// When the system has none.
pub fn spawn<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Thread<T>> {
    let (sender, result) = channel();
    let (give, own) = channel();
    let thread = builder.spawn(move || {
        // Whom it is for may have gone.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        let Ok(own) = own.recv() else { return };
        let before = lock(&LAST).replace(own);
        // Not under the lock, which the one before may have needed last.
        let _ = before.map(JoinHandle::join);
    })?;
    // The thread takes it before it ends.
    let _ = give.send(thread);
    Ok(Thread { result: Mutex::new(result) })
}

/// Drops a value whose `drop` waits, such as a runtime with its threads, on a thread of its own.
///
/// When there is no thread to be had, the value stays until the process ends.
pub fn drop_elsewhere<T: Send + 'static>(value: T) {
    // What the thread is to do is dropped here when there is none, and must not drop the value.
    let value = Arc::new(Mutex::new(Some(value)));
    let given = Arc::clone(&value);
    let builder = Builder::new().name("coload-drop".to_owned());
    if spawn(builder, move || drop(lock(&given).take())).is_err() {
        std::mem::forget(value);
    }
}

/// Waits for threads of a scope, which are never left alone either.
///
/// # Panics
/// With the panic of a thread.
pub fn join_all<'s>(threads: impl IntoIterator<Item = ScopedJoinHandle<'s, ()>>) {
    for thread in threads {
        thread.join().unwrap_or_else(|panic| resume_unwind(panic));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use super::*;

    /// Bytes of a stack that no cache keeps, and that nothing else of the process has.
    const STACK_BYTES: usize = 96 << 20;

    #[test]
    fn threads_give_what_they_return_and_their_panics() {
        let seven = spawn(Builder::new(), || 7).unwrap();
        assert_eq!(seven.join().unwrap(), 7);
        let panics = spawn(Builder::new(), || -> u8 { panic!("no") }).unwrap();
        assert_eq!(*panics.join().unwrap_err().downcast_ref::<&str>().unwrap(), "no");
    }

    /// Symptom: a command whose answer was right died of SIGSEGV; that is a matter of two instructions, and no test of
    /// it. This is of the cure: nobody keeps the stacks of threads that were left alone.
    #[test]
    fn stacks_of_threads_that_are_left_alone_are_given_back() {
        for _ in 0..1_000 {
            drop(spawn(Builder::new().stack_size(STACK_BYTES), || ()).unwrap());
        }
        // The last to end is still to be waited for. The others may be on their way.
        let started = Instant::now();
        while stacks() > 1 {
            assert!(started.elapsed() < Duration::from_secs(60), "{} stacks are left", stacks());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_value_is_dropped_on_another_thread() {
        struct Tells(std::sync::mpsc::Sender<std::thread::ThreadId>);
        impl Drop for Tells {
            fn drop(&mut self) {
                let _ = self.0.send(std::thread::current().id());
            }
        }
        let (sender, dropped) = channel();
        drop_elsewhere(Tells(sender));
        assert_ne!(dropped.recv().unwrap(), std::thread::current().id());
    }

    /// Stacks of [`STACK_BYTES`] that the process has.
    fn stacks() -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_stack = |line: &&str| {
            let mut words = line.split_whitespace();
            let (from, to) = words.next().unwrap().split_once('-').unwrap();
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            words.next() == Some("rw-p") && address(to) - address(from) >= STACK_BYTES
        };
        maps.lines().filter(is_stack).count()
    }
}
