//! Chooses placements from what is measured: costs of columns, the link, the server's load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Instant;

use coload_link::LinkStats;
use coload_threads::{lock, thread_run_and_wait_ns};
use coload_transform::{
    Capacity, ColumnCost, Estimates, Mix, Placement, Policy, TextCost, Times, choose_share,
    times_of_mix,
};
use coload_types::Column;
use coload_wire::{Parsed, ServerLoad};

use super::texts_sent::TextsSent;
use crate::partition::PartitionPlan;
use crate::report::{Change, ColumnChoice, PlacementReport};
use crate::target::RowCosts;

/// Fragments after which a measured policy is asked first.
const FIRST_LOOK_FRAGMENTS: u64 = 1;
/// Fragments after which it is asked again.
const REVISE_FRAGMENTS: u64 = 4;
/// Nanoseconds a wire byte that a server takes for a placed column, until it has told: a checksum, the
/// checks of a page, a copy into the file.
const SERVER_BYTE_NS: f64 = 2.0;
/// Bytes that may be on their way when a text is sent to see what the link gives: a slow link has more.
const PROBE_UNDER_WAY_MAX: u64 = 1 << 20;
/// The server's work on a plain column, in units of the client's, until it has told.
const SERVER_PLAIN_SHARE: f64 = 1.5;
/// Nanoseconds of the client's CPU to send a byte, until it is measured: copies, gRPC, the kernel.
const SEND_BYTE_NS: f64 = 0.7;
/// Bytes after which what sending cost is taken for what it costs.
const SEND_BYTES_MEASURED: u64 = 4 << 20;
/// Nanoseconds of the client to read and count a byte of text that goes as it is, until it is measured.
const TEXT_BYTE_NS: f64 = 0.3;
/// TextsSent after which what they cost the server is taken for what they cost.
const SERVER_TEXTS_MEASURED: u64 = 4;
/// Bytes that a server is done with before columns are placed by what it tells.
const DONE_BYTES_MEASURED: u64 = 4 << 20;
/// Nanoseconds a row and column for finding the fields, until it is measured.
const BASE_NS: f64 = 1.5;
/// Nanoseconds of the server's CPU to receive a byte, besides what it tells of its own work.
const RECEIVE_BYTE_NS: f64 = 1.0;
/// Weight of the server's time when no query runs there: a core of it is worth more than one here,
/// since others share it.
const SERVER_WEIGHT: f64 = 1.2;
/// Nanoseconds that workers ran or waited, over which their share of a core is measured: quotas are used up and given
/// again over some milliseconds.
const SHARE_SPAN_NS: f64 = 40e6;
/// The same when queries run.
const SERVER_WEIGHT_QUERIES: f64 = 4.0;
/// A new choice must be better by this factor: each change costs a new dictionary or symbols, and what columns are
/// expected to cost is off by a tenth now and then.
const CHANGE_GAIN: f64 = 0.85;
/// Nanoseconds of a row and a column to put rows in the order of a key, until it is measured: it is gathered, and encoded once more.
const SORT_COLUMN_NS: f64 = 16.0;
/// Nanoseconds of a row to sort its key, until it is measured.
const SORT_KEY_NS: f64 = 60.0;
/// The server's work to put rows in order, in units of the client's: it reads them from its journal, and writes them once more.
const SERVER_SORT_SHARE: f64 = 1.2;
/// Nanoseconds of the server to see that a row stands in order.
const SERVER_SORTED_NS: f64 = 8.0;
/// Bytes of the number of a row that was sorted, where the server is told it.
const ROW_NUMBER_BYTES: f64 = 3.0;
/// A link that was never what was waited for is trusted to give so many times what it gave.
const LINK_TRUST: f64 = 2.0;

/// The same of what it gave a text, while others were parsed on the same cores.
const TEXT_TRUST: f64 = 1.5;

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
        if self.share.is_some() && run + wait < SHARE_SPAN_NS {
            return;
        }
        self.last = now;
        if run > 0.0 {
            let share = (run + link.min(wait)) / (run + wait);
            self.share = Some(self.share.map_or(share, |old| (old + share) / 2.0));
        }
    }
}

/// What a row costs that goes as text.
fn text_cost(measures: &Measures, link: &LinkStats) -> Option<TextCost> {
    let RowCosts { base_ns, text_ns, text_bytes } = measures.rows;
    let base_ns = base_ns?;
    // It is assumed to parse as we do; the first text, which plans the partition, takes it longer.
    let as_we_do =
        base_ns + measures.measured.iter().map(|cost| cost.client_placed_ns).sum::<f64>();
    let server_ns = match measures.texts.server_ns() {
        Some((ns, SERVER_TEXTS_MEASURED..)) => ns,
        Some((ns, _)) => ns.min(as_we_do),
        None => as_we_do,
    };
    Some(TextCost {
        client_ns: text_ns.unwrap_or(text_bytes * TEXT_BYTE_NS) + text_bytes * send_byte_ns(link),
        server_ns: server_ns + text_bytes * RECEIVE_BYTE_NS,
        bytes: text_bytes,
    })
}

/// Bytes a nanosecond that a link may give.
fn link_trust(measures: &Measures, link: &LinkStats, capacity: &Capacity) -> f64 {
    match (link.bytes_per_second, measures.texts.link_rate()) {
        (Some(_), _) => capacity.link_rate,
        (None, 0.0) => f64::INFINITY,
        // A text that had to wait for others came slower.
        (None, rate) => capacity.link_rate.max(rate / 1e9 * LINK_TRUST),
    }
}

/// Chooses placements and the share of text, and keeps what was measured for it.
#[derive(Debug)]
pub struct Chooser {
    policy: &'static dyn Policy,
    threads: usize,
    started: Instant,
    sorts: Sorts,
    measures: Mutex<Measures>,
}

/// Whether rows are to be put in order, by the client or the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorts {
    /// The table has no key, or it is not known here.
    No,
    /// They are.
    Rows,
    /// They are, and if the client sorts them the server is told which rows they were.
    NumberedRows,
}

#[derive(Debug, Default)]
struct Measures {
    fragments: u64,
    /// Fragments after which it is asked again.
    look_at: u64,
    partition: Option<usize>,
    /// What the sample of the partition tells, and what it comes to with sending and the server's part.
    measured: Vec<ColumnCost>,
    costs: Vec<ColumnCost>,
    rows: RowCosts,
    texts: TextsSent,
    cores: CoreShare,
    /// Of the columns, and of sorting behind them.
    placements: Arc<[Placement]>,
    placed: Vec<[u64; 2]>,
    /// Whether the rows of a partition under way are sorted here.
    sorted: HashMap<usize, Placement>,
    /// Rows that were sorted here, and nanoseconds that it took.
    sorting: (u64, u64),
    /// Partitions that were sorted here, and those that the server sorts.
    partitions: [u64; 2],
    changes: Vec<Change>,
    last: Option<(Capacity, Times)>,
}

impl Measures {
    /// What there is before anything is known of the link and the server.
    fn unknown(&self) -> Estimates<'_> {
        Estimates { columns: &self.costs, capacity: None, text: None, kept: None }
    }
}

impl Chooser {
    /// A chooser for a load on `threads` threads; with a share, so many fragments go as text, whatever is measured.
    pub fn new(
        policy: &'static dyn Policy,
        threads: usize,
        text_share: Option<f64>,
        sorts: Sorts,
    ) -> Self {
        let measures = Measures { texts: TextsSent::new(text_share), ..Measures::default() };
        let (started, measures) = (Instant::now(), Mutex::new(measures));
        Chooser { policy, threads, started, sorts, measures }
    }

    /// Whether the rows of a partition, of which a fragment was placed, are sorted here.
    pub fn is_sorted_here(&self, partition: usize) -> bool {
        lock(&self.measures).sorted.get(&partition) == Some(&Placement::Client)
    }

    /// Notes a partition that was sorted here, with its rows and what it took.
    pub fn sorted(&self, partition: usize, rows: u64, cpu_ns: u64) {
        let mut measures = lock(&self.measures);
        measures.sorted.remove(&partition);
        measures.sorting.0 += rows;
        measures.sorting.1 += cpu_ns;
    }

    /// CPU nanoseconds that sorting took here.
    pub fn sorting_ns(&self) -> u64 {
        lock(&self.measures).sorting.1
    }

    /// Says once for a partition who sorts its rows. Text that the server parses is sorted there.
    fn place_sorting(&self, measures: &mut Measures, partition: usize) -> Placement {
        if self.sorts == Sorts::No {
            return Placement::Server;
        }
        if let Some(known) = measures.sorted.get(&partition) {
            return *known;
        }
        let chosen = match measures.placements.last() {
            Some(chosen) if !measures.texts.is_wanted() => *chosen,
            _ => Placement::Server,
        };
        measures.sorted.insert(partition, chosen);
        measures.partitions[usize::from(chosen == Placement::Server)] += 1;
        chosen
    }

    /// What sorting a row costs, as if it were a column.
    fn sort_cost(&self, measures: &Measures, columns: usize) -> ColumnCost {
        let sort_ns = match measures.sorting {
            (rows @ 1.., ns) => ns as f64 / rows as f64,
            _ => SORT_KEY_NS + SORT_COLUMN_NS * columns as f64,
        };
        ColumnCost {
            client_placed_ns: sort_ns,
            server_placed_ns: SERVER_SORTED_NS,
            server_plain_ns: SERVER_SORTED_NS + sort_ns * SERVER_SORT_SHARE,
            ..ColumnCost::default()
        }
    }

    /// Placements of the next fragment of a partition.
    pub fn place(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        rows: &RowCosts,
        link: &LinkStats,
        load: &[u8],
    ) -> Arc<[Placement]> {
        let mut measures = lock(&self.measures);
        let measures = &mut *measures;
        let width = plan.columns.len();
        self.look(measures, partition, plan, rows, link, load);
        if !self.policy.is_measured() {
            measures.placements = self.policy.choose(&measures.unknown()).placements.into();
        }
        if (0..width).any(|column| plan.read_of(column).is_none()) {
            // A column that is not read is a code for each piece: there is nothing to transform.
            let placed = measures.placements.iter().enumerate();
            let placed = placed.map(|(c, p)| match c >= width || plan.read_of(c).is_some() {
                true => *p,
                false => Placement::Client,
            });
            measures.placements = placed.collect();
        }
        self.place_sorting(measures, partition);
        measures.fragments += 1;
        for (counts, placement) in measures.placed.iter_mut().zip(measures.placements.iter()) {
            counts[usize::from(*placement == Placement::Server)] += 1;
        }
        match measures.placements.len() {
            len if len == width => Arc::clone(&measures.placements),
            _ => measures.placements[..width].into(),
        }
    }

    /// The most bytes of text of the next fragment of a partition, if it is to go as text.
    pub fn leave_text(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        rows: &RowCosts,
        link: &LinkStats,
        load: &[u8],
    ) -> Option<usize> {
        let mut measures = lock(&self.measures);
        let measures = &mut *measures;
        if self.policy.is_measured() {
            self.look(measures, partition, plan, rows, link, load);
        } else if self.sorts != Sorts::No && measures.placements.is_empty() {
            self.look(measures, partition, plan, rows, link, load);
            measures.placements = self.policy.choose(&measures.unknown()).placements.into();
        }
        match self.place_sorting(measures, partition) {
            Placement::Server => measures.texts.next(),
            Placement::Client => None,
        }
    }

    /// Notes a text that is sent.
    pub fn sent_text(&self, key: (u32, u32), rows: u32, bytes: usize) {
        let mut measures = lock(&self.measures);
        measures.fragments += 1;
        measures.texts.sent(key, rows, bytes);
    }

    /// Notes what became of a text.
    pub fn answered(&self, parsed: &Parsed) {
        let mut measures = lock(&self.measures);
        let first = measures.texts.server_ns().is_none();
        measures.texts.answered(parsed);
        if first {
            // What it costs is known.
            measures.look_at = 0;
        }
    }

    /// Takes what is known now, and from time to time chooses again.
    fn look(
        &self,
        measures: &mut Measures,
        partition: usize,
        plan: &PartitionPlan,
        rows: &RowCosts,
        link: &LinkStats,
        load: &[u8],
    ) {
        let columns = plan.columns.len();
        let width = columns + usize::from(self.sorts != Sorts::No);
        if measures.partition != Some(partition) && !plan.costs.is_empty() {
            measures.partition = Some(partition);
            measures.measured.clone_from(&plan.costs);
        }
        measures.measured.resize(width, ColumnCost::default());
        measures.costs.resize(width, ColumnCost::default());
        let send_byte_ns = send_byte_ns(link);
        for (cost, measured) in measures.costs.iter_mut().zip(&measures.measured) {
            let ColumnCost { server_placed_ns, server_plain_ns, .. } = *cost;
            *cost = ColumnCost { server_placed_ns, server_plain_ns, ..*measured };
            cost.client_placed_ns += cost.placed_bytes * send_byte_ns;
            cost.client_plain_ns += cost.plain_bytes * send_byte_ns;
        }
        if self.sorts != Sorts::No {
            measures.costs[columns] = self.sort_cost(measures, columns);
        }
        measures.rows = *rows;
        measures.cores.note(thread_run_and_wait_ns());
        measures.placed.resize(width, [0; 2]);
        if !self.policy.is_measured() {
            return;
        }
        if measures.placements.len() != width {
            // Nothing is known of the link and the server yet.
            measures.placements = self.policy.choose(&measures.unknown()).placements.into();
            measures.look_at = FIRST_LOOK_FRAGMENTS;
            return;
        } else if measures.fragments >= measures.look_at {
            self.revise(measures, link, &ServerLoad::decode(load).unwrap_or_default());
        } else {
            return;
        }
        // In the beginning each fragment tells more.
        let often = measures.fragments < 2 * REVISE_FRAGMENTS;
        measures.look_at = measures.fragments + if often { 1 } else { REVISE_FRAGMENTS };
    }

    fn revise(&self, measures: &mut Measures, link: &LinkStats, server: &ServerLoad) {
        measures.cores.look(link.cpu_ns);
        // What the first bytes cost says little: files are made, caches are cold.
        let settled = link.done_bytes >= DONE_BYTES_MEASURED;
        let columns = measures.costs.len() - usize::from(self.sorts != Sorts::No);
        if self.sorts == Sorts::NumberedRows {
            let cost = &mut measures.costs[columns];
            cost.placed_bytes = ROW_NUMBER_BYTES;
            cost.client_placed_ns += ROW_NUMBER_BYTES * send_byte_ns(link);
            cost.server_placed_ns += ROW_NUMBER_BYTES * RECEIVE_BYTE_NS;
        }
        let measured = measures.measured.iter();
        let costs = measures.costs[..columns].iter_mut();
        for (column, (cost, measured)) in costs.zip(measured).enumerate() {
            let byte_ns = match server.placed_cost {
                told if settled && told > 0.0 => f64::from(told),
                _ => SERVER_BYTE_NS,
            };
            cost.server_placed_ns = cost.placed_bytes * (byte_ns + RECEIVE_BYTE_NS);
            let told = server.plain_costs.iter().find(|(c, _)| *c as usize == column);
            cost.server_plain_ns = match told {
                Some((_, ns)) if settled => f64::from(*ns),
                _ => {
                    // What it makes of plain values it has to store as well.
                    let more = measured.client_placed_ns - measured.client_plain_ns;
                    cost.placed_bytes * byte_ns
                        + more.max(2.0) * SERVER_PLAIN_SHARE
                        + cost.plain_bytes * 0.3
                }
            } + cost.plain_bytes * RECEIVE_BYTE_NS;
        }
        let capacity = self.capacity(measures, link, server);
        let text = text_cost(measures, link);
        measures.texts.told(server.text_bytes_max);
        let kept = (!settled).then_some(&*measures.placements);
        let possible = text.filter(|_| measures.texts.possible());
        let estimates =
            Estimates { columns: &measures.costs, capacity: Some(capacity), text: possible, kept };
        let best = self.policy.choose(&estimates);
        let swallowed = link.wire_bytes.saturating_sub(link.done_bytes) < PROBE_UNDER_WAY_MAX;
        // A busy server, which gives little of its core, may not yet have told so.
        let may_probe = best.text_share == 0.0 && swallowed && server.core_share > 0.0;
        if let Some(text) = text.filter(|_| may_probe) {
            // Of a link that was never waited for it is not known what it gives.
            let trusted = Capacity { link_rate: link_trust(measures, link, &capacity), ..capacity };
            let hoped = Estimates { capacity: Some(trusted), text: Some(text), ..estimates };
            if self.policy.choose(&hoped).text_share > 0.0 {
                measures.texts.probe();
            }
        }
        let now = |share| times_of_mix(&measures.costs, &measures.placements, share, &capacity);
        let share = (&text.unwrap_or_default(), measures.texts.share());
        let keep = measures.placements.len() == best.placements.len()
            && best.times.longest() > now(share).longest() * CHANGE_GAIN;
        measures.last = Some((capacity, best.times));
        if keep {
            // Another share costs nothing but what it saves.
            if let Some(text) = text.filter(|_| measures.texts.share() > 0.0) {
                let share = choose_share(&measures.costs, &measures.placements, &text, &capacity).0;
                measures.texts.set_share(share);
            }
            return;
        }
        let Mix { placements, text_share, times } = best;
        let of_columns = &placements[..columns];
        let on_client = of_columns.iter().filter(|p| **p == Placement::Client).count();
        let (fragment, seconds) = (measures.fragments, self.started.elapsed().as_secs_f64());
        measures.changes.push(Change { fragment, seconds, on_client, text_share, times, capacity });
        measures.placements = placements.into();
        measures.texts.set_share(text_share);
    }

    fn capacity(&self, measures: &Measures, link: &LinkStats, server: &ServerLoad) -> Capacity {
        let cores = f64::from(server.load_cpu).max(0.1);
        // What others use of the machine is not there for us. The loads' own work is part of what is
        // busy, so that half of it at least counts as free.
        let free = (1.0 - f64::from(server.cpu_busy)).max(0.5);
        let columns = (measures.costs.len() - usize::from(self.sorts != Sorts::No)) as f64;
        let given = link.done_bytes as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        Capacity {
            client_cores: self.threads as f64 * measures.cores.share.unwrap_or(1.0),
            client_base_ns: measures.rows.base_ns.unwrap_or(BASE_NS * columns),
            link_rate: match link.bytes_per_second {
                Some(rate) => rate / 1e9,
                None => (given * LINK_TRUST).max(measures.texts.link_rate() * TEXT_TRUST) / 1e9,
            },
            server_cores: cores
                * match (server.core_share, server.queries) {
                    (share, _) if share > 0.0 => f64::from(share),
                    (_, 0) => free,
                    _ => 0.5,
                },
            server_weight: match server.queries {
                0 => SERVER_WEIGHT,
                _ => SERVER_WEIGHT_QUERIES,
            },
        }
    }

    /// Estimates and choices of all columns, the changes, and what went as text.
    pub fn into_report(self, columns: &[Column]) -> PlacementReport {
        let measures = self.measures.into_inner().unwrap_or_else(|e| e.into_inner());
        let choices = measures.costs.iter().zip(measures.placements.iter()).zip(&measures.placed);
        let mut choices: Vec<ColumnChoice> = choices
            .map(|((cost, placement), fragments)| ColumnChoice {
                cost: *cost,
                placement: *placement,
                fragments: *fragments,
            })
            .collect();
        let sorting = match self.sorts {
            Sorts::No => None,
            Sorts::Rows | Sorts::NumberedRows => choices.pop(),
        };
        let fragments = measures.partitions;
        PlacementReport {
            sorting: sorting.map(|choice| ColumnChoice { fragments, ..choice }),
            columns: columns.to_vec(),
            choices,
            changes: measures.changes,
            text_fragments: measures.texts.report(measures.fragments),
        }
    }
}

#[cfg(test)]
mod tests {
    use coload_transform::Adaptive;

    use super::*;

    #[test]
    fn waiting_for_others_is_not_a_whole_core_and_waiting_for_the_link_is() {
        let mut cores = CoreShare::default();
        let ms = |run: u64, wait: u64| Some((run * 1_000_000, wait * 1_000_000));
        cores.note(ms(100, 0));
        cores.look(0);
        assert_eq!(cores.share, Some(1.0));
        cores.note(ms(200, 100));
        cores.look(0);
        assert_eq!(cores.share, Some(0.75), "half of what it was, and half of a half");
        cores.note(ms(300, 200));
        cores.look(100_000_000);
        assert_eq!(cores.share, Some(0.875));
        cores.note(ms(300, 220));
        cores.look(100_000_000);
        assert_eq!(cores.share, Some(0.875), "too short a time");
        // Where the system does not say, nothing is known.
        let mut silent = CoreShare::default();
        silent.note(None);
        silent.look(10);
        assert_eq!(silent.share, None);
    }

    #[test]
    fn rows_are_sorted_by_whom_the_load_is_shortest_with() {
        let chooser = Chooser::new(&Adaptive, 2, None, Sorts::Rows);
        let mut measures = Measures::default();
        let column = ColumnCost {
            client_placed_ns: 20.0,
            client_plain_ns: 5.0,
            server_placed_ns: 3.0,
            server_plain_ns: 30.0,
            placed_bytes: 4.0,
            plain_bytes: 8.0,
        };
        let place = |measures: &Measures, client_cores: f64, server_cores: f64| {
            let costs = [column, column, chooser.sort_cost(measures, 2)];
            let (client_base_ns, link_rate, server_weight) = (20.0, f64::INFINITY, SERVER_WEIGHT);
            let capacity =
                Capacity { client_cores, client_base_ns, link_rate, server_cores, server_weight };
            coload_transform::place_adaptively(&costs, &capacity)[2]
        };
        assert_eq!(place(&measures, 2.0, 0.2), Placement::Client);
        assert_eq!(place(&measures, 0.2, 2.0), Placement::Server);
        // The server shares what the client found to take long.
        measures.sorting = (1_000, 9_000_000);
        assert_eq!(place(&measures, 1.0, 4.0), Placement::Server);
        assert_eq!(place(&measures, 4.0, 1.0), Placement::Client);
    }

    #[test]
    fn a_partition_is_sorted_by_who_was_chosen_with_its_first_fragment() {
        let chooser = Chooser::new(&Adaptive, 2, None, Sorts::NumberedRows);
        let mut measures = Measures::default();
        let placed = |measures: &mut Measures, partition, placement: Placement| {
            measures.placements = [Placement::Client, placement].into();
            chooser.place_sorting(measures, partition)
        };
        assert_eq!(placed(&mut measures, 0, Placement::Client), Placement::Client);
        assert_eq!(placed(&mut measures, 0, Placement::Server), Placement::Client);
        assert_eq!(placed(&mut measures, 1, Placement::Server), Placement::Server);
        assert_eq!(placed(&mut measures, 1, Placement::Client), Placement::Server);
        // What goes as text is parsed there.
        measures.texts = TextsSent::new(Some(0.5));
        assert_eq!(placed(&mut measures, 2, Placement::Client), Placement::Server);
        assert_eq!(measures.partitions, [1, 2]);
    }

    #[test]
    fn sending_costs_what_it_cost_once_enough_was_sent() {
        let link = LinkStats { message_bytes: 1 << 20, cpu_ns: 1 << 30, ..LinkStats::default() };
        assert_eq!(send_byte_ns(&link), SEND_BYTE_NS);
        let link = LinkStats { message_bytes: 8 << 20, cpu_ns: 4 << 20, ..LinkStats::default() };
        assert_eq!(send_byte_ns(&link), 0.5);
    }
}
