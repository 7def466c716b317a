//! `emulated:READ_NS,READ_GBS,WRITE_GBS`: DRAM that is charged the latency and the bandwidth of persistent memory, for experiments.
//!
//! ```text
//!   a part appended   bytes / WRITE_GBS
//!   a part read       READ_NS + bytes / READ_GBS
//!   lines touched     lines * READ_NS / 10 + lines * 64 bytes / READ_GBS
//! ```
//!
//! Bandwidth is the device's: threads that want it at once wait for each other. Latency is each thread's own. A core has about ten
//! misses under way at once, so that lines in no order cost a tenth each. A thread waits as a core does that waits for memory:
//! busily. What DRAM takes comes on top, so that an experiment says rather too much than too little.
//!
//! Optane's published figures: 305 ns for a line in no order (169 in order); 6.6 GB/s read and 2.3 GB/s written by a module, 39.4 and
//! 13.9 by the six of a socket. Source: Yang et al., USENIX FAST 2020.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use coload_types::{Error, Result};

use crate::dram::{Dram, Parts};
use crate::space::{Extent, ExtentWriter, Piece, Space};
use crate::spec::{Kind, Opening};

/// Bytes of a line of a cache.
const LINE_BYTES: u64 = 64;
/// Misses that a core has under way at once: its line fill buffers.
const MISSES_AT_ONCE: f64 = 10.0;

/// The kind of it.
#[derive(Debug)]
pub(crate) struct EmulatedKind;

impl Kind for EmulatedKind {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn form(&self) -> &'static str {
        "emulated:READ_NS,READ_GBS,WRITE_GBS"
    }

    fn check(&self, argument: Option<&str>) -> Result<()> {
        Figures::read(argument.unwrap_or_default()).map(|_| ())
    }

    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>> {
        let figures = Figures::read(given.argument)?;
        let device = Device { figures, began: Instant::now(), free_ns: AtomicU64::new(0) };
        Ok(Arc::new(Emulated {
            dram: Dram::new(given.name, given.size.unwrap_or(given.memory)),
            device: Arc::new(device),
        }))
    }
}

/// What a device takes.
#[derive(Debug, Clone, Copy)]
struct Figures {
    read_ns: f64,
    /// Bytes in a nanosecond.
    read: f64,
    write: f64,
}

impl Figures {
    fn read(text: &str) -> Result<Self> {
        let numbers: Vec<f64> = text.split(',').filter_map(|n| n.trim().parse().ok()).collect();
        match (text.split(',').count(), &numbers[..]) {
            (3, [read_ns, read, write])
                if (0.0..=1e6).contains(read_ns)
                    && [read, write].iter().all(|n| (1e-3..=1e6).contains(*n)) =>
            {
                Ok(Figures { read_ns: *read_ns, read: *read, write: *write })
            }
            _ => Err(Error::Invalid(
                "it needs nanoseconds of a read, and GB/s read and written, such as 305,39.4,13.9"
                    .into(),
            )),
        }
    }
}

/// The device, which all extents share.
#[derive(Debug)]
struct Device {
    figures: Figures,
    began: Instant,
    /// When it has done all that it was asked for, in nanoseconds since it began.
    free_ns: AtomicU64,
}

impl Device {
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Takes the device for a while and waits until that is over, and some time more.
    fn charge(&self, busy_ns: f64, latency_ns: f64) {
        let now = self.now_ns();
        let busy = busy_ns as u64;
        let end = |free: u64| Some(free.max(now) + busy);
        let free = self.free_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
        let until = free.unwrap_or(now).max(now) + busy + latency_ns as u64;
        while self.now_ns() < until {
            spin_loop();
        }
    }
}

#[derive(Debug)]
struct Emulated {
    dram: Dram,
    device: Arc<Device>,
}

impl Space for Emulated {
    fn name(&self) -> &str {
        self.dram.name()
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        Ok(Box::new(Charged { parts: self.dram.begin(), device: Arc::clone(&self.device) }))
    }

    fn touch(&self, lines: u64) {
        let Figures { read_ns, read, .. } = self.device.figures;
        let busy = (lines * LINE_BYTES) as f64 / read;
        let latency = lines as f64 * read_ns / MISSES_AT_ONCE;
        // While a thread waits for its lines the device sends them.
        self.device.charge(busy, (latency - busy).max(0.0));
    }
}

#[derive(Debug)]
struct Charged {
    parts: Parts,
    device: Arc<Device>,
}

impl ExtentWriter for Charged {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        let bytes = part.len() as f64;
        self.parts.append(part)?;
        self.device.charge(bytes / self.device.figures.write, 0.0);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>> {
        Ok(self)
    }
}

impl Extent for Charged {
    fn name(&self) -> String {
        self.parts.name()
    }

    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>> {
        let piece = self.parts.read(start, bytes)?;
        let Figures { read_ns, read, .. } = self.device.figures;
        self.device.charge(bytes as f64 / read, read_ns);
        Ok(piece)
    }
}
