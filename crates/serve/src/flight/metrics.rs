//! What the server counts, as Prometheus reads it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coload_receive::QueryLoad;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// How a statement ends that does not fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    Done,
    /// Its client went away.
    Left,
    Cancelled,
}

/// Average times of queries: of late, and of late while no load ran. 0 is not known.
#[derive(Debug, Default)]
struct Latency {
    late_us: AtomicU64,
    idle_us: AtomicU64,
}

/// Moves an average an eighth of the way. Two at once may lose one, which does not matter.
fn average(of: &AtomicU64, us: u64) {
    let before = of.load(Ordering::Relaxed);
    let after = if before == 0 { us } else { before - before / 8 + us / 8 };
    of.store(after.max(1), Ordering::Relaxed);
}

/// Something that is counted as long as it is there.
#[derive(Debug)]
pub(crate) struct Counted {
    gauge: Gauge,
}

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Counted { gauge: gauge.clone() }
    }

    /// Keeps it in a closure that holds it.
    pub fn stay(&self) {}
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// Counters of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    statements: Family<Outcome, Counter>,
    statement_seconds: Histogram,
    rows_sent: Counter,
    rows_written: Counter,
    connections: Gauge,
    /// Connections closed because there were too many.
    pub(crate) connections_refused: Counter,
    statements_running: Gauge,
    loads: Gauge,
    latency: Latency,
    /// Calls without a known user.
    pub(crate) calls_refused: Counter,
    /// Prepared statements that are kept now.
    pub(crate) prepared: Gauge<i64>,
    /// Seconds since 1970 when the server started.
    pub(crate) started: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("coload"),
            statements: Family::default(),
            // 0.1 ms to 2.3 min.
            statement_seconds: Histogram::new(exponential_buckets(1e-4, 3.3, 13)),
            rows_sent: Counter::default(),
            rows_written: Counter::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            statements_running: Gauge::default(),
            loads: Gauge::default(),
            latency: Latency::default(),
            calls_refused: Counter::default(),
            prepared: Gauge::default(),
            started: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let Metrics { registry, .. } = self;
        registry.register("statements", "Statements by outcome", self.statements.clone());
        registry.register(
            "statement_seconds",
            "Time of a statement, with its answer sent",
            self.statement_seconds.clone(),
        );
        registry.register("rows_sent", "Rows of answers", self.rows_sent.clone());
        registry.register("rows_written", "Rows written by clients", self.rows_written.clone());
        registry.register("connections", "Connections open", self.connections.clone());
        registry.register(
            "connections_refused",
            "Connections closed because there were too many",
            self.connections_refused.clone(),
        );
        let running = self.statements_running.clone();
        registry.register("statements_running", "Statements that run", running);
        let loads = self.loads.clone();
        registry.register("load_connections", "Connections of loads of our own client", loads);
        registry.register(
            "calls_refused",
            "Calls without a known user",
            self.calls_refused.clone(),
        );
        registry.register("prepared_statements", "Prepared statements kept", self.prepared.clone());
        registry.register("start_time_seconds", "When the server started", self.started.clone());
    }

    /// Counts a statement that has ended, its time and its rows.
    pub(crate) fn statement_ended<E>(&self, ended: Result<Ended, E>, time: Duration, rows: u64) {
        let outcome = match ended {
            Ok(Ended::Done) => "done",
            Ok(Ended::Left) => "left",
            Ok(Ended::Cancelled) => "cancelled",
            Err(_) => "failed",
        };
        self.statements.get_or_create(&Outcome { outcome }).inc();
        self.statement_seconds.observe(time.as_secs_f64());
        self.rows_sent.inc_by(rows);
    }

    /// Counts a statement as running until what this gives is dropped.
    pub(crate) fn statement_started(&self) -> Counted {
        Counted::new(&self.statements_running)
    }

    /// Counts a connection as open until what this gives is dropped.
    pub(crate) fn connection_opened(&self) -> Counted {
        Counted::new(&self.connections)
    }

    /// Counts a connection of a load as open until what this gives is dropped.
    pub(crate) fn load_opened(&self) -> Counted {
        Counted::new(&self.loads)
    }

    /// Notes how long a query took, for loads that should not make them slow.
    pub(crate) fn query_took(&self, time: Duration) {
        let us = (time.as_micros() as u64).max(1);
        average(&self.latency.late_us, us);
        if self.loads.get() == 0 {
            average(&self.latency.idle_us, us);
        }
    }

    /// How queries do, as loads are told.
    pub(crate) fn query_load(&self) -> QueryLoad {
        QueryLoad {
            running: self.statements_running.get().try_into().unwrap_or(0),
            latency_us: self.latency.late_us.load(Ordering::Relaxed),
            latency_idle_us: self.latency.idle_us.load(Ordering::Relaxed),
        }
    }

    /// Counts rows of an INSERT or an ingest.
    pub(crate) fn rows_written(&self, rows: u64) {
        self.rows_written.inc_by(rows);
    }

    /// The page that Prometheus reads.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut page, &self.registry);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_was_counted() {
        let metrics = Metrics::default();
        metrics.statement_ended(Ok::<_, ()>(Ended::Done), Duration::from_millis(3), 7);
        metrics.statement_ended(Ok::<_, ()>(Ended::Left), Duration::from_millis(3), 0);
        metrics.rows_written(5);
        let page = metrics.page();
        for line in [
            "coload_statements_total{outcome=\"done\"} 1",
            "coload_statements_total{outcome=\"left\"} 1",
            "coload_rows_sent_total 7",
            "coload_rows_written_total 5",
            "coload_statement_seconds_count 2",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in {page}");
        }
    }
}
