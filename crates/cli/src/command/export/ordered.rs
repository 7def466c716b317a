//! Parts of a table on several threads, written in order.
//!
//! A thread takes the next stretch and hands its lines over, strip by strip. The first of the stretches that are not written is
//! written as it comes; the others go on until as many strips wait as there may be.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, SyncSender, sync_channel},
};
use std::thread;

use coload::{Error, Result};
use coload_load::default_memory;
use coload_scan::{SegmentLines, Stretch, Style};
use coload_threads::lock;

/// Bytes of a strip: large enough for one write, small enough for a cache.
const STRIP_BYTES: usize = 512 << 10;
/// Strips that wait for each thread at most: the lines of a stretch.
const STRIPS_OF_THREAD: usize = 24;
/// Share of the memory that strips may take: fields and texts of dictionaries have the rest.
const MEMORY_SHARE: usize = 4;

/// A stretch of a table that is to be written.
pub struct Work {
    pub segment: Arc<SegmentLines>,
    /// The pages or blocks of the segment that it is made of.
    pub stretch: Stretch,
}

/// How much there may be at once.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    threads: usize,
    /// Strips that wait for each thread.
    strips: usize,
}

impl Room {
    /// With so many threads and so much memory, if that was said.
    pub fn new(threads: Option<usize>, memory: Option<usize>) -> Self {
        let most = memory.unwrap_or_else(default_memory);
        let strips = (most / MEMORY_SHARE / STRIP_BYTES).max(1);
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(cores).min(strips);
        Room { threads, strips: (strips / threads).min(STRIPS_OF_THREAD) }
    }
}

/// What a thread is given: a stretch, and where its lines go.
type Job = (Work, SyncSender<Result<Vec<u8>>>);

/// Writes the lines of all stretches. The outer error is that of reading.
///
/// # Errors
/// The first of a stretch, in their order.
pub fn write_in_order(
    mut work: impl Iterator<Item = Work>,
    style: Style,
    room: Room,
    out: &mut impl Write,
) -> Result<io::Result<()>> {
    let (give, jobs) = sync_channel::<Job>(room.threads);
    let jobs = Mutex::new(jobs);
    thread::scope(|scope| {
        for _ in 0..room.threads {
            scope.spawn(|| {
                while let Some(job) = next(&jobs) {
                    run(job, style)
                }
            });
        }
        let mut waiting: VecDeque<Receiver<Result<Vec<u8>>>> = VecDeque::new();
        // Threads end when nothing is given any more, or nobody takes what they make.
        let give = give;
        loop {
            while waiting.len() < room.threads
                && let Some(work) = work.next()
            {
                // One more is in the hands of the thread.
                let (lines, taken) = sync_channel(room.strips - 1);
                if give.send((work, lines)).is_err() {
                    return Err(ended_early());
                }
                waiting.push_back(taken);
            }
            let Some(first) = waiting.pop_front() else { return Ok(Ok(())) };
            for lines in first {
                if let Err(error) = out.write_all(&lines?) {
                    return Ok(Err(error));
                }
            }
        }
    })
}

fn ended_early() -> Error {
    Error::Unavailable("a thread that wrote rows ended early".to_owned())
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    lock(jobs).recv().ok()
}

/// Makes the lines of a stretch, as long as somebody takes them.
fn run((Work { segment, stretch }, taken): Job, style: Style) {
    let mut strip = Vec::with_capacity(STRIP_BYTES);
    let made = segment.lines(&stretch, style, |lines| {
        strip.append(lines);
        if strip.len() < STRIP_BYTES {
            return true;
        }
        let full = std::mem::replace(&mut strip, Vec::with_capacity(STRIP_BYTES));
        taken.send(Ok(full)).is_ok()
    });
    // Nobody waits for it where the file could not be written.
    let _ = taken.send(made.map(|()| strip));
}
