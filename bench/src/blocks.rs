//! Fills a file in parallel, block by block, in block order.
//!
//! Each thread takes the next block number, makes the block in its own buffer, waits for its turn and writes.
//! The bytes of the file therefore depend on the blocks alone, never on the number of threads.
//!
//! Cost: one buffer of a block per thread; a thread waits only while an earlier block is unfinished.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Whose turn it is to write, and the first error of any thread.
struct Turn {
    block: u64,
    error: Option<io::Error>,
}

/// Writes blocks `0..count` to `path`; `fill` appends the bytes of one block to an empty buffer.
///
/// The file appears under its name only when complete.
///
/// # Errors
/// The first error of creating, writing or renaming the file, with its path.
pub fn write_file(
    path: &Path,
    count: u64,
    fill: impl Fn(u64, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let result =
        write_blocks(&partial, count, &fill).and_then(|()| std::fs::rename(&partial, path));
    result.map_err(|e| {
        // The error that matters is the one of the write; a partial file left behind is only untidy.
        let _ = std::fs::remove_file(&partial);
        io::Error::new(e.kind(), format!("writing {}: {e}", path.display()))
    })
}

fn write_blocks(
    path: &Path,
    count: u64,
    fill: &(impl Fn(u64, &mut Vec<u8>) + Sync),
) -> io::Result<()> {
    let file = File::create(path)?;
    let next = AtomicU64::new(0);
    let turn = Mutex::new(Turn { block: 0, error: None });
    let moved = Condvar::new();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= count {
                        return;
                    }
                    buffer.clear();
                    fill(block, &mut buffer);
                    if !write_in_turn(&file, &buffer, block, &turn, &moved) {
                        return;
                    }
                }
            });
        }
    });
    let turn = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    turn.error.map_or(Ok(()), Err)
}

/// Waits until `block` is next, writes it and passes the turn on; false when some thread has failed.
fn write_in_turn(
    mut file: &File,
    bytes: &[u8],
    block: u64,
    turn: &Mutex<Turn>,
    moved: &Condvar,
) -> bool {
    let mut turn = lock(turn);
    while turn.block != block && turn.error.is_none() {
        turn = moved.wait(turn).unwrap_or_else(PoisonError::into_inner);
    }
    if turn.error.is_none() {
        turn.error = file.write_all(bytes).err();
        turn.block += 1;
    }
    moved.notify_all();
    turn.error.is_none()
}

fn lock(turn: &Mutex<Turn>) -> MutexGuard<'_, Turn> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}
