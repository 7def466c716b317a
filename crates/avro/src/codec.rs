//! Blocks as they were before they were compressed.

use std::io::Read;

use coload_arrow::{Fault, Result};

use crate::cursor::damaged;

/// Bytes of the checksum behind a block that Snappy made.
const CHECKSUM_BYTES: usize = 4;
/// Least room that a block gets.
const ROOM_BYTES_MIN: usize = 64 << 10;
/// How much larger a block is, where nothing tells.
const FACTOR: usize = 4;
/// Memory that the decoder of xz gets at least: that of its presets up to the sixth.
const XZ_BYTES_MIN: u64 = 10 << 20;
/// Windows of Zstandard, as logarithms: those that any decoder takes, and no larger ones than its own limit.
const WINDOW_LOGS: (u32, u32) = (23, 27);

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    Null,
    /// As RFC 1951 has it, without head and checksum.
    Deflate,
    /// Snappy, and the CRC-32 of what it was made of.
    Snappy,
    /// Zstandard.
    Zstandard,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
}

impl Codec {
    /// By the name that a file has of it.
    ///
    /// # Errors
    /// `Unknown` for one that is not read.
    pub(crate) fn named(name: &[u8]) -> Result<Self> {
        Ok(match name {
            b"null" | b"" => Codec::Null,
            b"deflate" => Codec::Deflate,
            b"snappy" => Codec::Snappy,
            b"zstandard" => Codec::Zstandard,
            b"bzip2" => Codec::Bzip2,
            b"xz" => Codec::Xz,
            other => {
                return Err(Fault::Unknown(format!(
                    "blocks are compressed by {}, which is not read: write them with deflate, snappy, zstandard, bzip2, \
                     xz or null",
                    String::from_utf8_lossy(&other[..other.len().min(40)]).escape_default()
                )));
            }
        })
    }
}

/// Decompresses blocks, one after the other, in the same memory.
#[derive(Default)]
pub struct Decompressor {
    raw: Vec<u8>,
    inflater: Option<libdeflater::Decompressor>,
    snappy: snap::raw::Decoder,
    zstd: Option<zstd_safe::DCtx<'static>>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("bytes", &self.raw.len()).finish_non_exhaustive()
    }
}

impl Decompressor {
    /// A block as it was, of `bytes_max` bytes at most.
    ///
    /// # Errors
    /// `Damaged` when it was never one, `TooLarge` when it is larger.
    pub fn decompress<'a>(
        &'a mut self,
        codec: Codec,
        stored: &'a [u8],
        bytes_max: u64,
    ) -> Result<&'a [u8]> {
        let most = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let bytes = match codec {
            Codec::Null if stored.len() > most => return Err(Fault::TooLarge(stored.len() as u64)),
            Codec::Null => return Ok(stored),
            Codec::Deflate => self.deflate(stored, most)?,
            Codec::Snappy => self.snappy(stored, most)?,
            Codec::Zstandard => self.zstandard(stored, most)?,
            Codec::Bzip2 => self.read(bzip2::read::BzDecoder::new(stored), most, "bzip2")?,
            Codec::Xz => {
                let memory = bytes_max.max(XZ_BYTES_MIN);
                let stream = liblzma::stream::Stream::new_stream_decoder(memory, 0)
                    .map_err(|error| Fault::Damaged(format!("xz: {error}")))?;
                let reader = liblzma::read::XzDecoder::new_stream(stored, stream);
                self.read(reader, most, "xz")?
            }
        };
        Ok(&self.raw[..bytes])
    }

    /// Makes room for so many bytes.
    fn room(&mut self, bytes: usize) {
        if self.raw.len() < bytes {
            self.raw.resize(bytes, 0);
        }
    }

    fn deflate(&mut self, stored: &[u8], most: usize) -> Result<usize> {
        // Blocks of a file are mostly of one size.
        let guess = stored.len().saturating_mul(FACTOR).max(ROOM_BYTES_MIN);
        let mut room = self.raw.len().max(guess).min(most);
        loop {
            self.room(room);
            let inflater = self.inflater.get_or_insert_with(libdeflater::Decompressor::new);
            match inflater.deflate_decompress(stored, &mut self.raw[..room]) {
                Ok(bytes) => return Ok(bytes),
                Err(libdeflater::DecompressionError::InsufficientSpace) if room < most => {
                    room = room.saturating_mul(2).min(most);
                }
                Err(libdeflater::DecompressionError::InsufficientSpace) => {
                    return Err(Fault::TooLarge((most as u64).saturating_mul(2)));
                }
                Err(libdeflater::DecompressionError::BadData) => {
                    return damaged("a block that deflate does not decompress");
                }
            }
        }
    }

    fn snappy(&mut self, stored: &[u8], most: usize) -> Result<usize> {
        let Some((stored, checksum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else {
            return damaged("a block of Snappy without its checksum");
        };
        let wrong = || Fault::Damaged("a block that Snappy does not decompress".to_owned());
        let bytes = snap::raw::decompress_len(stored).map_err(|_| wrong())?;
        if bytes > most {
            return Err(Fault::TooLarge(bytes as u64));
        }
        self.room(bytes);
        let raw = &mut self.raw[..bytes];
        let done = self.snappy.decompress(stored, raw).map_err(|_| wrong())?;
        if done != bytes {
            return Err(wrong());
        }
        match libdeflater::crc32(raw) == u32::from_be_bytes(*checksum) {
            true => Ok(bytes),
            false => damaged("a block whose checksum is that of another"),
        }
    }

    fn zstandard(&mut self, stored: &[u8], most: usize) -> Result<usize> {
        let wrong =
            |code: usize| Fault::Damaged(format!("Zstandard: {}", zstd_safe::get_error_name(code)));
        let told = zstd_safe::get_frame_content_size(stored).ok().flatten();
        if let Some(bytes) = told.filter(|bytes| *bytes > most as u64) {
            return Err(Fault::TooLarge(bytes));
        }
        if let Some(bytes) = told {
            self.room(bytes as usize);
            let raw = &mut self.raw[..bytes as usize];
            let done = zstd_safe::decompress(raw, stored).map_err(wrong)?;
            return match done as u64 == bytes {
                true => Ok(done),
                false => damaged("a block of Zstandard of another length than it says"),
            };
        }
        let context = match &mut self.zstd {
            Some(context) => context,
            none => {
                let new = zstd_safe::DCtx::try_create().ok_or(Fault::TooLarge(bytes_of(most)))?;
                none.insert(new)
            }
        };
        context.reset(zstd_safe::ResetDirective::SessionOnly).map_err(wrong)?;
        let log = most.max(1).ilog2().clamp(WINDOW_LOGS.0, WINDOW_LOGS.1);
        context.set_parameter(zstd_safe::DParameter::WindowLogMax(log)).map_err(wrong)?;
        let mut from = zstd_safe::InBuffer::around(stored);
        let mut done = 0;
        loop {
            if done == self.raw.len() {
                if done >= most {
                    return Err(Fault::TooLarge(bytes_of(most)));
                }
                let room = (done * 2).max(ROOM_BYTES_MIN).min(most);
                self.raw.resize(room, 0);
            }
            let mut to = zstd_safe::OutBuffer::around(&mut self.raw[done..]);
            let left = context.decompress_stream(&mut to, &mut from).map_err(wrong)?;
            let made = to.pos();
            done += made;
            match left {
                0 if from.pos() == stored.len() => return Ok(done),
                _ if made == 0 && from.pos() == stored.len() => {
                    return damaged("a block of Zstandard that is cut off");
                }
                _ => {}
            }
        }
    }

    fn read(&mut self, reader: impl Read, most: usize, name: &str) -> Result<usize> {
        self.raw.clear();
        // One byte more than there may be tells that there are more.
        let mut reader = reader.take((most as u64).saturating_add(1));
        let read = reader.read_to_end(&mut self.raw);
        let bytes = read.map_err(|error| Fault::Damaged(format!("{name}: {error}")))?;
        match bytes <= most {
            true => Ok(bytes),
            false => Err(Fault::TooLarge(bytes_of(most))),
        }
    }
}

/// Bytes that are known to be needed where so many are too few.
fn bytes_of(most: usize) -> u64 {
    (most as u64).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    fn text() -> Vec<u8> {
        (0..99_999_u32).flat_map(|n| (n % 37 * n).to_le_bytes()).collect()
    }

    /// Zstandard with and without the length, which some writers leave out.
    fn compressed(codec: Codec, has_length: bool) -> Vec<u8> {
        let text = text();
        match codec {
            Codec::Null => text,
            Codec::Deflate => {
                let mut encoder =
                    libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
                let mut out = vec![0; encoder.deflate_compress_bound(text.len())];
                let bytes = encoder.deflate_compress(&text, &mut out).unwrap();
                out.truncate(bytes);
                out
            }
            Codec::Snappy => {
                let mut out = snap::raw::Encoder::new().compress_vec(&text).unwrap();
                out.extend(libdeflater::crc32(&text).to_be_bytes());
                out
            }
            Codec::Zstandard => {
                let mut context = zstd_safe::CCtx::create();
                let told = zstd_safe::CParameter::ContentSizeFlag(has_length);
                context.set_parameter(told).unwrap();
                let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
                context.compress2(&mut out, &text).unwrap();
                out
            }
            Codec::Bzip2 => {
                let mut encoder =
                    bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    #[test]
    fn each_compression_gives_all_bytes_or_an_error() {
        let text = text();
        let all =
            [Codec::Deflate, Codec::Snappy, Codec::Zstandard, Codec::Bzip2, Codec::Xz, Codec::Null];
        let mut same = Decompressor::default();
        for (codec, has_length) in all.into_iter().flat_map(|codec| [(codec, true), (codec, false)])
        {
            let stored = compressed(codec, has_length);
            let whole = text.len() as u64;
            assert!(same.decompress(codec, &stored, whole).unwrap() == text, "{codec:?}");
            assert!(same.decompress(codec, &stored, whole * 9).unwrap() == text, "{codec:?}");
            let mut fresh = Decompressor::default();
            for less in [whole - 1, whole / 2, 1, 0] {
                let small = fresh.decompress(codec, &stored, less);
                assert!(matches!(small, Err(Fault::TooLarge(_))), "{codec:?} {less}: {small:?}");
            }
            if codec == Codec::Null {
                continue;
            }
            for cut in [0, 1, 3, stored.len() / 2, stored.len() - 1] {
                let short = same.decompress(codec, &stored[..cut], whole * 9);
                assert!(matches!(short, Err(Fault::Damaged(_))), "{codec:?} {cut}: {short:?}");
            }
        }
        let mut damaged = compressed(Codec::Snappy, true);
        *damaged.last_mut().unwrap() ^= 1;
        let told = same.decompress(Codec::Snappy, &damaged, 1 << 20);
        assert!(matches!(told, Err(Fault::Damaged(what)) if what.contains("checksum")));
        assert!(matches!(Codec::named(b"lz4"), Err(Fault::Unknown(what)) if what.contains("lz4")));
    }
}
