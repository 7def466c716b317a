//! Whether compressing a frame makes it arrive sooner, from what compressing cost and saved so far.
//!
//! The queue tells that something is slow (seed 001). On a client of few cores it may be the sender itself:
//! then compressing makes it slower. So a frame is compressed when
//!
//! ```text
//!   time to compress + compressed bytes / rate  <  bytes / rate
//! ```
//!
//! with the rate that the link was seen to give. The sum is careful: with cores to spare the two overlap.

use rustix::time::{ClockId, clock_gettime};

use crate::compress::Compression;

/// How much a new measurement counts.
const WEIGHT: f64 = 0.1;
/// A compression must be better than none by this factor.
const GAIN: f64 = 0.95;

/// What one compression costs and saves.
#[derive(Debug, Clone, Copy)]
struct Codec {
    /// Nanoseconds that compressing a byte takes.
    cost_ns: f64,
    /// Compressed bytes a byte.
    share: f64,
}

/// What the compressions cost and save on the frames of one link.
#[derive(Debug, Clone)]
pub struct Gains {
    lz4: Codec,
    zstd: Codec,
    zstd_high: Codec,
}

impl Default for Gains {
    /// What they do with text, until they are measured.
    fn default() -> Self {
        Gains {
            lz4: Codec { cost_ns: 2.0, share: 0.6 },
            zstd: Codec { cost_ns: 5.0, share: 0.4 },
            zstd_high: Codec { cost_ns: 8.0, share: 0.36 },
        }
    }
}

impl Gains {
    fn codec(&mut self, compression: Compression) -> Option<&mut Codec> {
        match compression {
            Compression::None => None,
            Compression::Lz4 => Some(&mut self.lz4),
            Compression::Zstd(..=1) => Some(&mut self.zstd),
            Compression::Zstd(_) => Some(&mut self.zstd_high),
        }
    }

    /// Notes what compressing a frame cost and saved.
    pub fn note(&mut self, compression: Compression, bytes: usize, packed: usize, spent_ns: u64) {
        if bytes == 0 {
            return;
        }
        if let Some(codec) = self.codec(compression) {
            let bytes = bytes as f64;
            codec.cost_ns += WEIGHT * (spent_ns as f64 / bytes - codec.cost_ns);
            codec.share += WEIGHT * (packed as f64 / bytes - codec.share);
        }
    }

    /// The best compression up to `most`, which the queue allows, on a link of `rate` bytes a second.
    pub fn best(&mut self, most: Compression, rate: f64) -> Compression {
        let byte_ns = 1e9 / rate.max(1.0);
        let mut best = (byte_ns * GAIN, Compression::None);
        for candidate in [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3)] {
            if let Some(codec) = self.codec(candidate) {
                let cost = codec.cost_ns + codec.share * byte_ns;
                if cost < best.0 {
                    best = (cost, candidate);
                }
            }
            if candidate == most {
                break;
            }
        }
        best.1
    }
}

/// CPU nanoseconds of this thread.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_link_is_not_compressed_and_a_slow_one_is_by_what_helps() {
        let mut gains = Gains::default();
        assert_eq!(gains.best(Compression::Zstd(3), 1.25e9), Compression::None);
        assert_eq!(gains.best(Compression::Lz4, 1.25e8), Compression::Lz4);
        assert_eq!(gains.best(Compression::Zstd(3), 1.25e7), Compression::Zstd(3));
        // Bytes that do not get smaller are soon left alone.
        for _ in 0..50 {
            for compression in [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3)] {
                gains.note(compression, 1000, 990, 3000);
            }
        }
        assert_eq!(gains.best(Compression::Zstd(3), 1.25e7), Compression::None);
    }
}
