//! How busy the cores of this machine are, with anything.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use coload_threads::lock;

/// Time over which it is measured.
const INTERVAL: Duration = Duration::from_millis(500);

/// Measures the share of busy cores.
#[derive(Debug, Default)]
pub struct CpuGauge {
    last: Mutex<Option<Sample>>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    busy: u64,
    total: u64,
    share: f32,
}

impl CpuGauge {
    /// The share of the cores that were busy of late, 0 to 1; 0 where the system does not say.
    pub fn busy(&self) -> f32 {
        let mut last = lock(&self.last);
        match &*last {
            Some(sample) if sample.at.elapsed() < INTERVAL => sample.share,
            before => {
                let Some((busy, total)) = read() else { return 0.0 };
                let share = before.map_or(0.0, |b| {
                    let total = total.saturating_sub(b.total).max(1);
                    busy.saturating_sub(b.busy) as f32 / total as f32
                });
                *last = Some(Sample { at: Instant::now(), busy, total, share });
                share
            }
        }
    }
}

/// Ticks that cores were busy, and all ticks, since the start.
fn read() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let numbers: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    let total = numbers.iter().take(8).sum::<u64>();
    let idle = numbers.get(3)? + numbers.get(4)?;
    Some((total - idle, total))
}
