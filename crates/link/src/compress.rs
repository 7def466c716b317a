//! Compression on the wire, chosen frame by frame from the queues at both ends.
//!
//! Source: seed 001 (more than four waiting buffers mean that the network is the bottleneck), and what
//! it leaves open: the receiver tells how much waits at its end, so that a slow receiver causes no
//! compression.

use coload_types::{Error, Result};

/// Waiting frames above which LZ4 is used (seed 001).
const LZ4_ABOVE: usize = 4;
/// Waiting frames above which Zstandard is.
const ZSTD_ABOVE: usize = 16;
/// Waiting frames above which Zstandard takes more time.
const ZSTD_HIGH_ABOVE: usize = 48;
/// A compressed frame is sent when it is at most this share of the frame, in percent: decompressing
/// costs the receiver something.
const WORTH_PERCENT: usize = 95;

/// How one frame is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The bytes of the frame are those of the message.
    None,
    /// LZ4, one block a frame.
    Lz4,
    /// Zstandard at a level.
    Zstd(i32),
}

impl Compression {
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd(_) => 2,
        }
    }

    /// What a header says; the level is not in it.
    pub(crate) fn from_byte(byte: u8) -> Result<Self> {
        match byte {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Lz4),
            2 => Ok(Compression::Zstd(0)),
            other => Err(Error::Corrupt(format!("frame compression {other}"))),
        }
    }
}

/// Which frames a client compresses: the value of `--wire-compression`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireCompression {
    /// Those that wait because the network is slow, the more the longer the queue is.
    #[default]
    Adaptive,
    /// No frame.
    None,
    /// Each frame with LZ4, where that is worth it.
    Lz4,
    /// Each frame with Zstandard, where that is worth it.
    Zstd,
}

/// Where the bytes wait that were sent and are not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverQueue {
    /// Mostly not at the receiver: the network is slower than it.
    Short,
    /// Mostly at the receiver: it is what waits.
    Long,
}

/// The compression of the next frame, `waiting` frames being behind it.
pub fn choose_compression(
    setting: WireCompression,
    waiting: usize,
    receiver: ReceiverQueue,
) -> Compression {
    match setting {
        WireCompression::None => Compression::None,
        WireCompression::Lz4 => Compression::Lz4,
        WireCompression::Zstd => Compression::Zstd(3),
        WireCompression::Adaptive => match (receiver, waiting) {
            (ReceiverQueue::Long, _) => Compression::None,
            (_, w) if w > ZSTD_HIGH_ABOVE => Compression::Zstd(3),
            (_, w) if w > ZSTD_ABOVE => Compression::Zstd(1),
            (_, w) if w > LZ4_ABOVE => Compression::Lz4,
            _ => Compression::None,
        },
    }
}

/// Compresses a frame; no bytes when that is not worth it.
pub(crate) fn compress(compression: Compression, raw: &[u8]) -> (Compression, Option<Vec<u8>>) {
    let packed = match compression {
        Compression::None => None,
        Compression::Lz4 => Some(lz4_flex::block::compress(raw)),
        Compression::Zstd(level) => {
            let mut packed = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
            zstd_safe::compress(&mut packed, raw, level).ok().map(|_| packed)
        }
    };
    match packed {
        Some(packed) if packed.len() * 100 < raw.len() * WORTH_PERCENT => {
            (compression, Some(packed))
        }
        _ => (Compression::None, None),
    }
}

/// Appends the `count` bytes of a frame to `out`.
pub(crate) fn decompress(
    compression: Compression,
    body: &[u8],
    count: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let written = match compression {
        Compression::None => {
            out.extend_from_slice(body);
            body.len()
        }
        Compression::Lz4 => {
            out.resize(start + count, 0);
            lz4_flex::block::decompress_into(body, &mut out[start..])
                .map_err(|e| Error::Corrupt(format!("a frame is no LZ4: {e}")))?
        }
        Compression::Zstd(_) => {
            out.resize(start + count, 0);
            zstd_safe::decompress(&mut out[start..], body).map_err(|e| {
                let why = zstd_safe::get_error_name(e);
                Error::Corrupt(format!("a frame is no Zstandard: {why}"))
            })?
        }
    };
    if written != count {
        return Err(Error::Corrupt(format!("a frame of {count} bytes has {written}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_queue_that_the_network_made_is_compressed() {
        use ReceiverQueue::{Long, Short};
        let choose =
            |waiting, receiver| choose_compression(WireCompression::Adaptive, waiting, receiver);
        assert_eq!(choose(0, Short), Compression::None);
        assert_eq!(choose(4, Short), Compression::None);
        assert_eq!(choose(5, Short), Compression::Lz4);
        assert_eq!(choose(17, Short), Compression::Zstd(1));
        assert_eq!(choose(100, Short), Compression::Zstd(3));
        assert_eq!(choose(100, Long), Compression::None);
        assert_eq!(choose_compression(WireCompression::Lz4, 0, Long), Compression::Lz4);
        assert_eq!(choose_compression(WireCompression::None, 99, Short), Compression::None);
    }
}
