//! How much of the cores the threads of loads take, and whether queries go before them.

use std::time::Duration;

use crate::options::{LoadPriority, QueryGauge, QueryLoad, ReceiveOptions};

/// Added to the nice value of the threads: the scheduler gives one at 10 about a tenth of what it gives
/// one at 0 when both want a core.
const NICE: i32 = 10;
/// Longest rest of a thread between two jobs.
const REST_MAX: Duration = Duration::from_millis(500);
/// Queries this many times slower than without loads make loads rest as long as they work.
const LATENCY_SUFFERS: u64 = 2;

/// The share of its time that a thread of loads works.
#[derive(Clone)]
pub struct Duty {
    /// Over 0 to 1.
    share: f64,
    priority: LoadPriority,
    queries: Option<QueryGauge>,
}

impl Duty {
    /// The duty of each of `options.load_threads()` threads.
    pub fn new(options: &ReceiveOptions) -> Self {
        Duty {
            share: (options.load_cpu / options.load_threads() as f64).clamp(0.01, 1.0),
            priority: options.priority,
            queries: options.queries.clone(),
        }
    }

    /// Puts this thread, and those that it starts, behind queries in the scheduler's order.
    ///
    /// On Linux a thread has a nice value of its own. Best effort: without it loads compete with queries.
    pub fn begin(&self) {
        if self.priority == LoadPriority::Low {
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        }
    }

    /// Rests after a job that took `spent_ns` of CPU time.
    pub fn rest(&self, spent_ns: u64) {
        let share = self.share();
        if share < 1.0 {
            let rest = Duration::from_nanos((spent_ns as f64 * (1.0 / share - 1.0)) as u64);
            std::thread::sleep(rest.min(REST_MAX));
        }
    }

    /// The share now: less when queries suffer.
    fn share(&self) -> f64 {
        match &self.queries {
            Some(queries) if self.priority == LoadPriority::Low && suffer(queries()) => {
                self.share.min(0.5)
            }
            _ => self.share,
        }
    }
}

fn suffer(load: QueryLoad) -> bool {
    let slow = load.latency_us > LATENCY_SUFFERS * load.latency_idle_us;
    load.running > 0 && load.latency_idle_us > 0 && slow
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn share(load_cpu: f64, priority: LoadPriority, latency_us: u64) -> f64 {
        let queries = QueryLoad { running: 3, latency_us, latency_idle_us: 1_000 };
        let queries: QueryGauge = Arc::new(move || queries);
        Duty::new(&ReceiveOptions {
            load_cpu,
            priority,
            queries: Some(queries),
            ..Default::default()
        })
        .share()
    }

    #[test]
    fn loads_work_half_the_time_when_queries_are_slow_unless_their_priority_is_normal() {
        assert_eq!(share(1.0, LoadPriority::Low, 2_000), 1.0);
        assert_eq!(share(1.0, LoadPriority::Low, 2_001), 0.5);
        assert_eq!(share(1.0, LoadPriority::Normal, 9_000), 1.0);
    }

    #[test]
    fn the_share_of_a_thread_is_what_loads_may_use_of_a_core_each() {
        assert_eq!(share(1.5, LoadPriority::Low, 0), 0.75);
        assert_eq!(share(0.25, LoadPriority::Normal, 0), 0.25);
        assert_eq!(share(0.25, LoadPriority::Low, 9_000), 0.25);
    }
}
