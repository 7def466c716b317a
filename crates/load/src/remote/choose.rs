//! Chooses placements from what is measured: costs of columns, the link, the server's load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

use coload_link::LinkStats;
use coload_transform::{
    Capacity, ColumnCost, Placement, Times, place_adaptively, place_by_size, times_of,
};

use super::PlacementPolicy;
use crate::clock::thread_run_and_wait_ns;
use crate::partition::PartitionPlan;
use crate::segments::lock;
use crate::wire::ServerLoad;

/// Fragments after which `Adaptive` looks again.
const REVISE_FRAGMENTS: u64 = 4;
/// Nanoseconds a wire byte that a server takes for a placed column, until it has told: a checksum, the
/// checks of a page, a copy into the file.
const SERVER_BYTE_NS: f64 = 2.0;
/// The server's work on a plain column, in units of the client's, until it has told.
const SERVER_PLAIN_SHARE: f64 = 1.5;
/// Nanoseconds of the client's CPU to send a byte, until it is measured: copies, gRPC, the kernel.
const SEND_BYTE_NS: f64 = 0.7;
/// Bytes after which what sending cost is taken for what it costs.
const SEND_BYTES_MEASURED: u64 = 4 << 20;
/// Nanoseconds a row and column for finding the fields, until it is measured.
const BASE_NS: f64 = 1.5;
/// Nanoseconds of the server's CPU to receive a byte, besides what it tells of its own work.
const RECEIVE_BYTE_NS: f64 = 1.0;
/// Weight of the server's time when no query runs there: a core of it is worth more than one here,
/// since others share it.
const SERVER_WEIGHT: f64 = 1.2;
/// The same when queries run.
const SERVER_WEIGHT_QUERIES: f64 = 4.0;
/// A new choice must be better by this factor: each change costs a new dictionary or symbols, and what columns are
/// expected to cost is off by a tenth now and then.
const CHANGE_GAIN: f64 = 0.85;
/// A link that was never what was waited for is trusted to give so many times what it gave.
const LINK_TRUST: f64 = 2.0;

/// One column's estimates and choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnChoice {
    /// What a row costs either way.
    pub cost: ColumnCost,
    /// Where it goes.
    pub placement: Placement,
    /// Fragments placed on the client, and on the server.
    pub fragments: [u64; 2],
}

/// A change of the choice while the load ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Fragments placed before it.
    pub fragment: u64,
    /// Seconds since the load began.
    pub seconds: f64,
    /// Columns on the client after it.
    pub on_client: usize,
    /// The times a row that were expected, nanoseconds.
    pub times: Times,
    /// What there was to work with.
    pub capacity: Capacity,
}

/// What sending a byte costs the client, as measured so far.
fn send_byte_ns(link: &LinkStats) -> f64 {
    match link.message_bytes {
        bytes if bytes >= SEND_BYTES_MEASURED => link.cpu_ns as f64 / bytes as f64,
        _ => SEND_BYTE_NS,
    }
}

/// How much of a core each worker gets, when others use the machine or a quota is used up.
#[derive(Debug, Default)]
struct CoreShare {
    /// Nanoseconds that each worker has run and waited for a core.
    workers: HashMap<ThreadId, (u64, u64)>,
    /// The sums, and those of the link, when they were looked at last.
    last: (u64, u64, u64),
    share: Option<f64>,
}

impl CoreShare {
    /// Takes what this thread, a worker, has run and waited since it began.
    fn note(&mut self, run_and_wait_ns: Option<(u64, u64)>) {
        if let Some(now) = run_and_wait_ns {
            self.workers.insert(std::thread::current().id(), now);
        }
    }

    /// Looks at the time since the last look. What the link's own threads ran is not somebody else's: it is counted
    /// as the cost of sending.
    fn look(&mut self, link_ns: u64) {
        let sum = |of: fn(&(u64, u64)) -> u64| self.workers.values().map(of).sum::<u64>();
        let now = (sum(|w| w.0), sum(|w| w.1), link_ns);
        let run = now.0.saturating_sub(self.last.0) as f64;
        let wait = now.1.saturating_sub(self.last.1) as f64;
        let link = now.2.saturating_sub(self.last.2) as f64;
        self.last = now;
        if run > 0.0 {
            self.share = Some((run + link.min(wait)) / (run + wait));
        }
    }
}

/// Chooses.
#[derive(Debug)]
pub struct Chooser {
    policy: PlacementPolicy,
    threads: usize,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fragments: u64,
    partition: Option<usize>,
    /// What the sample of the partition tells, and what it comes to with sending and the server's part.
    measured: Vec<ColumnCost>,
    costs: Vec<ColumnCost>,
    base_ns: Option<f64>,
    cores: CoreShare,
    placements: Arc<[Placement]>,
    placed: Vec<[u64; 2]>,
    changes: Vec<Change>,
    last: Option<(Capacity, Times)>,
}

impl Chooser {
    /// A chooser for a load on `threads` threads.
    pub fn new(policy: PlacementPolicy, threads: usize) -> Self {
        Chooser { policy, threads, started: Instant::now(), state: Mutex::default() }
    }

    /// Placements of the next fragment of a partition.
    pub fn place(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        base_ns: Option<f64>,
        link: &LinkStats,
        load: &[u8],
    ) -> Arc<[Placement]> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let width = plan.columns.len();
        if state.partition != Some(partition) && !plan.costs.is_empty() {
            state.partition = Some(partition);
            state.measured.clone_from(&plan.costs);
        }
        state.measured.resize(width, ColumnCost::default());
        state.costs.clone_from(&state.measured);
        let send_byte_ns = send_byte_ns(link);
        for cost in &mut state.costs {
            cost.client_placed_ns += cost.placed_bytes * send_byte_ns;
            cost.client_plain_ns += cost.plain_bytes * send_byte_ns;
        }
        state.base_ns = base_ns;
        state.cores.note(thread_run_and_wait_ns());
        state.placed.resize(width, [0; 2]);
        let first = state.placements.len() != width;
        match self.policy {
            PlacementPolicy::Adaptive => {
                if first {
                    // Nothing is known of the link and the server yet.
                    state.placements = place_by_size(&state.costs).into();
                } else if state.fragments.is_multiple_of(REVISE_FRAGMENTS) {
                    self.revise(state, link, &ServerLoad::decode(load).unwrap_or_default());
                }
            }
            PlacementPolicy::Size => state.placements = place_by_size(&state.costs).into(),
            PlacementPolicy::None => state.placements = vec![Placement::Server; width].into(),
            _ => state.placements = vec![Placement::Client; width].into(),
        }
        if (0..width).any(|column| plan.read_of(column).is_none()) {
            // A column that is not read is a code for each piece: there is nothing to transform.
            let placed = state.placements.iter().enumerate().map(|(c, p)| match plan.read_of(c) {
                Some(_) => *p,
                None => Placement::Client,
            });
            state.placements = placed.collect();
        }
        state.fragments += 1;
        for (counts, placement) in state.placed.iter_mut().zip(state.placements.iter()) {
            counts[usize::from(*placement == Placement::Server)] += 1;
        }
        Arc::clone(&state.placements)
    }

    fn revise(&self, state: &mut State, link: &LinkStats, server: &ServerLoad) {
        state.cores.look(link.cpu_ns);
        let measured = state.measured.iter();
        for (column, (cost, measured)) in state.costs.iter_mut().zip(measured).enumerate() {
            let told = server.plain_costs.iter().find(|(c, _)| *c as usize == column);
            cost.server_plain_ns = match told {
                Some((_, ns)) => f64::from(*ns),
                None => {
                    let more = measured.client_placed_ns - measured.client_plain_ns;
                    more.max(2.0) * SERVER_PLAIN_SHARE + cost.plain_bytes * 0.3
                }
            } + cost.plain_bytes * RECEIVE_BYTE_NS;
            let byte_ns = match server.placed_cost {
                told if told > 0.0 => f64::from(told),
                _ => SERVER_BYTE_NS,
            };
            cost.server_placed_ns = cost.placed_bytes * (byte_ns + RECEIVE_BYTE_NS);
        }
        let capacity = self.capacity(state, link, server);
        let best: Arc<[Placement]> = place_adaptively(&state.costs, &capacity).into();
        let times = times_of(&state.costs, &best, &capacity);
        let keep = state.placements.len() == best.len() && {
            let now = times_of(&state.costs, &state.placements, &capacity);
            times.longest() > now.longest() * CHANGE_GAIN
        };
        state.last = Some((capacity, times));
        if keep {
            return;
        }
        let on_client = best.iter().filter(|p| **p == Placement::Client).count();
        let (fragment, seconds) = (state.fragments, self.started.elapsed().as_secs_f64());
        state.changes.push(Change { fragment, seconds, on_client, times, capacity });
        state.placements = best;
    }

    fn capacity(&self, state: &State, link: &LinkStats, server: &ServerLoad) -> Capacity {
        let cores = f64::from(server.load_cpu).max(0.1);
        // What others use of the machine is not there for us. The loads' own work is part of what is
        // busy, so that half of it at least counts as free.
        let free = (1.0 - f64::from(server.cpu_busy)).max(0.5);
        let columns = state.costs.len() as f64;
        let given = link.done_bytes as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        Capacity {
            client_cores: self.threads as f64 * state.cores.share.unwrap_or(1.0),
            client_base_ns: state.base_ns.unwrap_or(BASE_NS * columns),
            link_rate: link.bytes_per_second.unwrap_or(given * LINK_TRUST) / 1e9,
            server_cores: cores * if server.queries > 0 { 0.5 } else { free },
            server_weight: match server.queries {
                0 => SERVER_WEIGHT,
                _ => SERVER_WEIGHT_QUERIES,
            },
        }
    }

    /// Estimates and choices of all columns, and the changes.
    pub fn into_choices(self) -> (Vec<ColumnChoice>, Vec<Change>) {
        let state = self.state.into_inner().unwrap_or_else(|e| e.into_inner());
        let choices = state
            .costs
            .iter()
            .zip(state.placements.iter())
            .zip(&state.placed)
            .map(|((cost, placement), fragments)| ColumnChoice {
                cost: *cost,
                placement: *placement,
                fragments: *fragments,
            })
            .collect();
        (choices, state.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_others_is_not_a_whole_core_and_waiting_for_the_link_is() {
        let mut cores = CoreShare::default();
        cores.note(Some((1000, 0)));
        cores.look(0);
        assert_eq!(cores.share, Some(1.0));
        cores.note(Some((2000, 1000)));
        cores.look(0);
        assert_eq!(cores.share, Some(0.5));
        cores.note(Some((3000, 2000)));
        cores.look(600);
        assert_eq!(cores.share, Some(0.8));
        // Where the system does not say, nothing is known.
        let mut silent = CoreShare::default();
        silent.note(None);
        silent.look(10);
        assert_eq!(silent.share, None);
    }

    #[test]
    fn sending_costs_what_it_cost_once_enough_was_sent() {
        let link = LinkStats { message_bytes: 1 << 20, cpu_ns: 1 << 30, ..LinkStats::default() };
        assert_eq!(send_byte_ns(&link), SEND_BYTE_NS);
        let link = LinkStats { message_bytes: 8 << 20, cpu_ns: 4 << 20, ..LinkStats::default() };
        assert_eq!(send_byte_ns(&link), 0.5);
    }
}
