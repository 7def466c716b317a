//! Compresses, and reads through the queue.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coload_input::{BLOCK_BYTES, Compression, RawFile, Taken, TextInput, TextQueue, Who};
use coload_types::Result;

pub const FORMATS: [Compression; 6] = [
    Compression::Gzip,
    Compression::Zstd,
    Compression::Bzip2,
    Compression::Xz,
    Compression::Lz4,
    Compression::Snappy,
];

/// One member of a format.
pub fn compress(format: Compression, text: &[u8]) -> Vec<u8> {
    match format {
        Compression::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        Compression::Zstd => {
            let mut context = zstd_safe::CCtx::create();
            context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
            let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
            context.compress2(&mut out, text).unwrap();
            out
        }
        Compression::Bzip2 => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        Compression::Xz => {
            let mut out = liblzma::write::XzEncoder::new(Vec::new(), 1);
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        Compression::Lz4 => {
            let frame = lz4_flex::frame::FrameInfo::new()
                .block_mode(lz4_flex::frame::BlockMode::Linked)
                .block_size(lz4_flex::frame::BlockSize::Max64KB)
                .block_checksums(true)
                .content_checksum(true);
            let mut out = lz4_flex::frame::FrameEncoder::with_frame_info(frame, Vec::new());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        Compression::Snappy => {
            let mut out = snap::write::FrameEncoder::new(Vec::new());
            out.write_all(text).unwrap();
            out.into_inner().unwrap()
        }
        Compression::Deflate => {
            let mut out =
                flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
    }
}

/// A member of BGZF.
pub fn bgzf_member(text: &[u8]) -> Vec<u8> {
    let deflated = compress(Compression::Deflate, text);
    let bytes = (deflated.len() + 26 - 1) as u16;
    let mut out = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0];
    out.extend(bytes.to_le_bytes());
    out.extend(deflated);
    let mut crc = flate2::Crc::new();
    crc.update(text);
    out.extend(crc.sum().to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out
}

/// Text that compresses to about half, the same for a seed.
pub fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(bytes + 32);
    while out.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        writeln!(out, "{},{:x},name {}", out.len(), state >> 20, state >> 60).unwrap();
    }
    out.truncate(bytes);
    out
}

/// The text of stored bytes, read by `threads` threads, and the most text that waited at once.
pub fn read_files(files: &[&[u8]], threads: usize, ahead: usize) -> Result<Vec<Vec<u8>>> {
    let folder = tempfile::tempdir().unwrap();
    let mut inputs = Vec::new();
    for (number, bytes) in files.iter().enumerate() {
        let path = folder.path().join(format!("{number}"));
        std::fs::write(&path, bytes).unwrap();
        inputs.push(TextInput::of_file(RawFile::open("data", &path)?)?);
    }
    read_inputs(inputs, threads, ahead)
}

pub fn read_inputs(inputs: Vec<TextInput>, threads: usize, ahead: usize) -> Result<Vec<Vec<u8>>> {
    let texts = vec![Vec::new(); inputs.len()];
    read_queue(TextQueue::new(inputs, ahead, threads), texts, threads, ahead)
}

/// The texts of the inputs of a queue; `texts` has an empty one for each.
pub fn read_queue(
    queue: TextQueue,
    mut texts: Vec<Vec<u8>>,
    threads: usize,
    ahead: usize,
) -> Result<Vec<Vec<u8>>> {
    let ended = AtomicBool::new(false);
    let help = || {
        while !ended.load(Ordering::Relaxed) {
            match queue.claim(Who::Worker) {
                Ok(Some(job)) => queue.run(job),
                _ => queue.wait(Duration::from_millis(1)),
            }
        }
    };
    let mut take = || -> Result<()> {
        loop {
            match queue.take()? {
                Taken::Block(block) => {
                    assert!(block.text.len() <= BLOCK_BYTES.max(ahead / 16));
                    texts[block.file].extend(block.text);
                }
                Taken::End => return Ok(()),
                Taken::Wait => match queue.claim(Who::Worker)? {
                    Some(job) => queue.run(job),
                    None => queue.wait(Duration::from_millis(1)),
                },
            }
        }
    };
    let result = std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(help)));
        let result = take();
        ended.store(true, Ordering::Relaxed);
        queue.wake();
        result
    });
    result.map(|()| texts)
}

/// The text of one file, which must not depend on the threads.
#[track_caller]
pub fn read(bytes: &[u8]) -> Result<Vec<u8>> {
    let read = |threads, ahead| read_files(&[bytes], threads, ahead).map(|t| t.concat());
    let alone = read(1, 16 << 20);
    for (threads, ahead) in [(2, 16 << 20), (3, 0)] {
        let together = read(threads, ahead);
        assert!(alone == together, "{threads} threads read something else");
    }
    // With much memory frames are decoded at once: the same text, and damage is found earlier or later.
    let at_once = read(2, 256 << 20);
    assert!(alone.is_err() == at_once.is_err() && alone.is_err() | (alone == at_once));
    alone
}
