//! Times decompression alone: of the queue that a load reads from, and of two libraries.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use coload_input::{RawFile, Taken, TextInput, TextQueue, Who};
use flate2::{Decompress, FlushDecompress, Status};
use rustix::time::{ClockId, clock_gettime};

/// Memory that a load of 1 GiB gives to text that waits.
const AHEAD_BYTES: usize = 128 << 20;
/// Bytes that zlib-rs is given, and room, at once.
const INPUT_BYTES: usize = 256 << 10;
const ROOM_BYTES: usize = 1 << 20;
/// Bytes of the headers that `compress` writes: no name, no extra field.
const HEADER_BYTES: usize = 10;

/// What decompresses a file: Coload, or a library that it is compared with.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Engine {
    /// The queue of `coload-input`, any format.
    Coload,
    /// libdeflate, one gzip member into memory that is there already.
    Libdeflate,
    /// zlib-rs with its checksum, one gzip member.
    ZlibRs,
}

/// One run: wall and CPU seconds, bytes of text.
pub struct Measured {
    pub wall: f64,
    pub cpu: f64,
    pub bytes: u64,
}

/// Decompresses a file once.
///
/// # Errors
/// What the decoder says.
pub fn run(file: &Path, engine: Engine, threads: usize) -> io::Result<Measured> {
    match engine {
        Engine::Coload => measure(|| coload(file, threads)),
        Engine::Libdeflate => {
            let stored = fs::read(file)?;
            let mut text = vec![1; text_bytes(&stored)];
            let mut decoder = libdeflater::Decompressor::new();
            measure(|| {
                let bytes = decoder.gzip_decompress(&stored, &mut text);
                bytes.map(|bytes| bytes as u64).map_err(io::Error::other)
            })
        }
        Engine::ZlibRs => {
            let stored = fs::read(file)?;
            measure(|| zlib_rs(&stored))
        }
    }
}

fn measure(work: impl FnOnce() -> io::Result<u64>) -> io::Result<Measured> {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let bytes = work()?;
    Ok(Measured { wall: wall.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu, bytes })
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Length of the text, from the end of the only member.
fn text_bytes(stored: &[u8]) -> usize {
    stored.last_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize)
}

fn coload(file: &Path, threads: usize) -> io::Result<u64> {
    let raw = RawFile::open("input", file).map_err(io::Error::other)?;
    let input = TextInput::of_file(raw).map_err(io::Error::other)?;
    let queue = TextQueue::new(vec![input], AHEAD_BYTES, threads);
    let work = || -> coload_types::Result<bool> {
        match queue.claim(Who::Worker)? {
            Some(job) => {
                queue.run(job);
                Ok(true)
            }
            None => Ok(false),
        }
    };
    let ended = AtomicBool::new(false);
    let help = || {
        while let Ok(worked) = work() {
            if ended.load(Ordering::Acquire) {
                break;
            }
            if !worked {
                queue.wait(Duration::from_millis(1));
            }
        }
    };
    let take = || -> coload_types::Result<u64> {
        let mut bytes = 0;
        loop {
            match queue.take()? {
                Taken::Block(block) => {
                    bytes += block.text.len() as u64;
                    queue.recycle(block);
                }
                Taken::End => return Ok(bytes),
                Taken::Wait if work()? => {}
                Taken::Wait => queue.wait(Duration::from_millis(1)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(help);
        }
        let bytes = take();
        ended.store(true, Ordering::Release);
        queue.wake();
        bytes.map_err(io::Error::other)
    })
}

fn zlib_rs(stored: &[u8]) -> io::Result<u64> {
    let mut decoder = Decompress::new(false);
    let mut crc = flate2::Crc::new();
    let mut room = vec![0; ROOM_BYTES];
    let mut at = HEADER_BYTES;
    loop {
        let end = (at + INPUT_BYTES).min(stored.len());
        let (read, written) = (decoder.total_in(), decoder.total_out());
        let status = decoder.decompress(&stored[at..end], &mut room, FlushDecompress::None)?;
        at += (decoder.total_in() - read) as usize;
        crc.update(&room[..(decoder.total_out() - written) as usize]);
        if status == Status::StreamEnd {
            return Ok(decoder.total_out());
        }
    }
}
