//! Chooses placements from what is measured: costs of columns, the link, the server's load.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use coload_link::LinkStats;
use coload_transform::{
    Capacity, ColumnCost, Placement, Times, place_adaptively, place_by_size, times_of,
};

use super::PlacementPolicy;
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
/// Nanoseconds of the client's CPU to send a byte: copies, gRPC, the kernel.
const SEND_BYTE_NS: f64 = 1.0;
/// Nanoseconds of the server's CPU to receive a byte, besides what it tells of its own work.
const RECEIVE_BYTE_NS: f64 = 1.0;
/// Weight of the server's time when no query runs there: a core of it is worth more than one here,
/// since others share it.
const SERVER_WEIGHT: f64 = 1.2;
/// The same when queries run.
const SERVER_WEIGHT_QUERIES: f64 = 4.0;
/// A new choice must be better by this factor: each change costs a new dictionary or symbols.
const CHANGE_GAIN: f64 = 0.95;

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
    costs: Vec<ColumnCost>,
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
        link: &LinkStats,
        load: &[u8],
    ) -> Arc<[Placement]> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let width = plan.columns.len();
        if state.partition != Some(partition) && !plan.costs.is_empty() {
            state.partition = Some(partition);
            state.costs.clone_from(&plan.costs);
            for cost in &mut state.costs {
                cost.client_placed_ns += cost.placed_bytes * SEND_BYTE_NS;
                cost.client_plain_ns += cost.plain_bytes * SEND_BYTE_NS;
            }
        }
        state.costs.resize(width, ColumnCost::default());
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
        for (column, cost) in state.costs.iter_mut().enumerate() {
            let told = server.plain_costs.iter().find(|(c, _)| *c as usize == column);
            cost.server_plain_ns = match told {
                Some((_, ns)) => f64::from(*ns),
                None => {
                    let sent = (cost.placed_bytes - cost.plain_bytes) * SEND_BYTE_NS;
                    let more = cost.client_placed_ns - cost.client_plain_ns - sent;
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
        Capacity {
            client_cores: self.threads as f64,
            // Finding the fields, which is about as long as reading one of few values.
            client_base_ns: 1.5 * columns,
            link_rate: link.bytes_per_second.map_or(f64::INFINITY, |rate| rate / 1e9),
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
