//! Decompresses pages.

use coload_arrow::{Fault, Result};

/// Bytes of the two lengths before a block in the frames of Hadoop.
const HADOOP_HEAD_BYTES: usize = 8;

/// Fills `out` with what `stored` is when it is decompressed: all of it, and no less.
///
/// # Errors
/// `Damaged` when it is of another length or no such bytes, `Unknown` for compressions that are not read.
pub(super) fn decompress(codec: i32, stored: &[u8], out: &mut [u8]) -> Result<()> {
    let damaged =
        |name: &str| Err(Fault::Damaged(format!("a page that {name} does not decompress")));
    let is_done = match codec {
        0 => {
            if stored.len() != out.len() {
                return Err(Fault::Damaged("a page of two lengths".to_owned()));
            }
            out.copy_from_slice(stored);
            return Ok(());
        }
        1 => match snap::raw::decompress_len(stored) {
            Ok(bytes) if bytes == out.len() => {
                let done = snap::raw::Decoder::new().decompress(stored, out);
                (matches!(done, Ok(bytes) if bytes == out.len()), "Snappy")
            }
            _ => (false, "Snappy"),
        },
        2 => {
            let done = libdeflater::Decompressor::new().gzip_decompress(stored, out);
            (matches!(done, Ok(bytes) if bytes == out.len()), "gzip")
        }
        5 => (hadoop_lz4(stored, out) || lz4(stored, out), "LZ4"),
        6 => {
            let bytes = out.len();
            let done = zstd_safe::decompress(out, stored);
            (matches!(done, Ok(done) if done == bytes), "Zstandard")
        }
        7 => (lz4(stored, out), "LZ4"),
        3 | 4 => {
            let name = if codec == 3 { "LZO" } else { "Brotli" };
            return Err(Fault::Unknown(format!(
                "pages are compressed by {name}, which is not read: write them with zstd, snappy, gzip or lz4"
            )));
        }
        other => {
            return Err(Fault::Unknown(format!(
                "pages are compressed by codec {other}, which is not known"
            )));
        }
    };
    match is_done {
        (true, _) => Ok(()),
        (false, name) => damaged(name),
    }
}

fn lz4(stored: &[u8], out: &mut [u8]) -> bool {
    matches!(lz4_flex::block::decompress_into(stored, out), Ok(bytes) if bytes == out.len())
}

/// Blocks of LZ4 with their lengths, as Hadoop frames them.
fn hadoop_lz4(stored: &[u8], out: &mut [u8]) -> bool {
    let (mut stored, mut done) = (stored, 0);
    while let Some((head, rest)) = stored.split_at_checked(HADOOP_HEAD_BYTES) {
        let word = |at: usize| {
            let word = <[u8; 4]>::try_from(&head[at..at + 4]).unwrap_or_default();
            u32::from_be_bytes(word) as usize
        };
        let (Some((block, rest)), Some(to)) = (
            rest.split_at_checked(word(4)),
            out.get_mut(done..).and_then(|out| out.get_mut(..word(0))),
        ) else {
            return false;
        };
        if !lz4(block, to) {
            return false;
        }
        done += to.len();
        stored = rest;
    }
    stored.is_empty() && done == out.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn texts() -> Vec<u8> {
        (0..999_u32).flat_map(|n| (n % 37).to_le_bytes()).collect()
    }

    fn compressed(codec: i32) -> Vec<u8> {
        let text = texts();
        match codec {
            0 => text,
            1 => snap::raw::Encoder::new().compress_vec(&text).unwrap(),
            2 => {
                let mut encoder =
                    libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
                let mut out = vec![0; encoder.gzip_compress_bound(text.len())];
                let bytes = encoder.gzip_compress(&text, &mut out).unwrap();
                out.truncate(bytes);
                out
            }
            6 => {
                let mut out = vec![0; zstd_safe::compress_bound(text.len())];
                let bytes = zstd_safe::compress(&mut out[..], &text, 1).unwrap();
                out.truncate(bytes);
                out
            }
            5 => {
                let block = lz4_flex::block::compress(&text);
                let lengths = [text.len() as u32, block.len() as u32].map(u32::to_be_bytes);
                [&lengths.concat()[..], &block].concat()
            }
            _ => lz4_flex::block::compress(&text),
        }
    }

    #[test]
    fn each_compression_gives_all_bytes_or_an_error() {
        let text = texts();
        for codec in [0, 1, 2, 5, 6, 7] {
            let stored = compressed(codec);
            let mut out = vec![0; text.len()];
            decompress(codec, &stored, &mut out).unwrap();
            assert!(out == text, "{codec}");
            for bytes in [0, 1, text.len() - 1, text.len() + 1] {
                let wrong = decompress(codec, &stored, &mut vec![0; bytes]);
                assert!(matches!(wrong, Err(Fault::Damaged(_))), "{codec} {bytes}");
            }
            let short = decompress(codec, &stored[..stored.len() / 2], &mut out);
            assert!(matches!(short, Err(Fault::Damaged(_))), "{codec}");
        }
        for codec in [3, 4, -1, 99] {
            assert!(matches!(decompress(codec, b"x", &mut [0]), Err(Fault::Unknown(_))));
        }
    }
}
