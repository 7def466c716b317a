//! Where a fragment's column is transformed: policies, without clocks or networks.
//!
//! ```text
//!   time of the load = the longest of    client: sum of what it does / its cores
//!                                        link:   sum of bytes / rate
//!                                        server: sum of what it does * weight / its cores
//! ```
//!
//! The three work at the same time, so the longest decides. Columns start where they cost the fewest
//! bytes, and are moved, the best one first, as long as that makes the load shorter.
//!
//! Source: seed 000, section 4.3 (size); what it leaves open (utilisation, compute capabilities,
//! bandwidth) is [`place_adaptively`].

/// Where a column of a fragment is transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// By the client: encoded, it travels as it will be stored.
    Client,
    /// By the server: it travels plain.
    Server,
}

/// What one row of a column costs, for either placement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ColumnCost {
    /// Nanoseconds of the client to parse and transform it.
    pub client_placed_ns: f64,
    /// Nanoseconds of the client to parse it only.
    pub client_plain_ns: f64,
    /// Nanoseconds of the server to take it transformed.
    pub server_placed_ns: f64,
    /// Nanoseconds of the server to transform it.
    pub server_plain_ns: f64,
    /// Bytes on the wire, transformed.
    pub placed_bytes: f64,
    /// Bytes on the wire, plain.
    pub plain_bytes: f64,
}

/// What is there to work with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Cores of the client that have nothing else to do.
    pub client_cores: f64,
    /// Nanoseconds a row of the client for what no placement changes.
    pub client_base_ns: f64,
    /// Bytes a nanosecond over the link; infinite when it was never what was waited for.
    pub link_rate: f64,
    /// Cores of the server that loads may use and that have nothing else to do.
    pub server_cores: f64,
    /// How much more a nanosecond of the server counts than one of the client: queries want it too.
    pub server_weight: f64,
}

/// The time of each part for one row, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Time of the client's cores.
    pub client: f64,
    /// Time of the link.
    pub link: f64,
    /// Time of the server's cores, times the weight of the server.
    pub server: f64,
}

impl Times {
    /// Time of the part that all others wait for.
    pub fn longest(&self) -> f64 {
        self.client.max(self.link).max(self.server)
    }

    /// What a load costs: the longest time, and to decide between equals a little of all of them.
    fn cost(&self) -> f64 {
        self.longest() + (self.client + self.link + self.server) * 1e-3
    }
}

/// What a choice adds up to for one row: the parts of its times.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    client_ns: f64,
    bytes: f64,
    server_ns: f64,
}

impl Sums {
    /// The sums with a column, `sign` 1, or without it, -1.
    fn with(self, cost: &ColumnCost, placement: Placement, sign: f64) -> Sums {
        let (client_ns, bytes, server_ns) = match placement {
            Placement::Client => (cost.client_placed_ns, cost.placed_bytes, cost.server_placed_ns),
            Placement::Server => (cost.client_plain_ns, cost.plain_bytes, cost.server_plain_ns),
        };
        Sums {
            client_ns: self.client_ns + sign * client_ns,
            bytes: self.bytes + sign * bytes,
            server_ns: self.server_ns + sign * server_ns,
        }
    }

    fn of(columns: &[ColumnCost], placements: &[Placement]) -> Sums {
        assert_eq!(columns.len(), placements.len());
        let each = columns.iter().zip(placements);
        each.fold(Sums::default(), |sums, (cost, placement)| sums.with(cost, *placement, 1.0))
    }

    fn times(self, capacity: &Capacity) -> Times {
        Times {
            client: (capacity.client_base_ns + self.client_ns) / capacity.client_cores.max(0.01),
            link: self.bytes / capacity.link_rate.max(1e-6),
            server: self.server_ns * capacity.server_weight / capacity.server_cores.max(0.01),
        }
    }
}

/// The times of a choice.
///
/// # Panics
/// When there are not as many placements as columns.
pub fn times_of(columns: &[ColumnCost], placements: &[Placement], capacity: &Capacity) -> Times {
    Sums::of(columns, placements).times(capacity)
}

/// Each column where it takes fewer bytes on the wire.
pub fn place_by_size(columns: &[ColumnCost]) -> Vec<Placement> {
    place_unless_smaller(columns, 1.0)
}

/// Each column on the client, unless it takes clearly fewer bytes plain: for a server of which nothing is known
/// yet, and which may be busy.
pub fn place_unknown(columns: &[ColumnCost]) -> Vec<Placement> {
    place_unless_smaller(columns, CLEARLY_FEWER)
}

/// Plain bytes of those placed below which a column is left to a server that is not known.
const CLEARLY_FEWER: f64 = 0.9;

fn place_unless_smaller(columns: &[ColumnCost], share: f64) -> Vec<Placement> {
    let place = |c: &ColumnCost| match c.placed_bytes * share <= c.plain_bytes {
        true => Placement::Client,
        false => Placement::Server,
    };
    columns.iter().map(place).collect()
}

/// The choice that makes the longest of the three times short.
///
/// Cost: columns times moves, which are at most twice as many; a tenth of a millisecond for 155 columns.
pub fn place_adaptively(columns: &[ColumnCost], capacity: &Capacity) -> Vec<Placement> {
    // Where every column is on one side is tried too: moves of single columns need not lead there.
    let starts = [
        place_by_size(columns),
        vec![Placement::Client; columns.len()],
        vec![Placement::Server; columns.len()],
    ];
    let improved = starts.into_iter().map(|start| improve(columns, capacity, start));
    let best = improved.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(Vec::new, |(_, placements)| placements)
}

/// Moves the best column as long as one makes the load shorter; gives the cost too.
fn improve(
    columns: &[ColumnCost],
    capacity: &Capacity,
    mut placements: Vec<Placement>,
) -> (f64, Vec<Placement>) {
    let mut sums = Sums::of(columns, &placements);
    let mut cost = sums.times(capacity).cost();
    for _ in 0..2 * columns.len() {
        let mut best: Option<(usize, f64, Sums)> = None;
        for (column, (of, placement)) in columns.iter().zip(&placements).enumerate() {
            let moved = sums.with(of, *placement, -1.0).with(of, other(*placement), 1.0);
            let moved_cost = moved.times(capacity).cost();
            if moved_cost < best.map_or(cost, |(_, b, _)| b) {
                best = Some((column, moved_cost, moved));
            }
        }
        // A move for less than a thousandth is not worth a change.
        match best {
            Some((column, moved_cost, moved)) if moved_cost < cost * 0.999 => {
                placements[column] = other(placements[column]);
                (sums, cost) = (moved, moved_cost);
            }
            _ => break,
        }
    }
    (cost, placements)
}

fn other(placement: Placement) -> Placement {
    match placement {
        Placement::Client => Placement::Server,
        Placement::Server => Placement::Client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(client: [f64; 2], server: [f64; 2], bytes: [f64; 2]) -> ColumnCost {
        ColumnCost {
            client_placed_ns: client[0],
            client_plain_ns: client[1],
            server_placed_ns: server[0],
            server_plain_ns: server[1],
            placed_bytes: bytes[0],
            plain_bytes: bytes[1],
        }
    }

    const IDLE: Capacity = Capacity {
        client_cores: 1.0,
        client_base_ns: 10.0,
        link_rate: f64::INFINITY,
        server_cores: 1.0,
        server_weight: 1.0,
    };

    #[test]
    fn a_slow_link_keeps_all_on_the_client_and_a_busy_server_too() {
        let columns = [
            cost([20.0, 5.0], [2.0, 20.0], [3.0, 12.0]),
            cost([6.0, 5.0], [1.0, 10.0], [1.0, 8.0]),
        ];
        let slow = Capacity { link_rate: 0.01, ..IDLE };
        assert_eq!(place_adaptively(&columns, &slow), [Placement::Client; 2]);
        let busy = Capacity { server_cores: 0.1, server_weight: 4.0, ..IDLE };
        assert_eq!(place_adaptively(&columns, &busy), [Placement::Client; 2]);
        // With a fast link and an idle server it takes what spares the client most.
        let fast = place_adaptively(&columns, &IDLE);
        assert_eq!(fast, [Placement::Server, Placement::Client]);
    }

    #[test]
    fn size_looks_at_bytes_only() {
        let columns =
            [cost([99.0, 1.0], [0.0; 2], [3.0, 4.0]), cost([1.0, 1.0], [0.0; 2], [9.0, 8.0])];
        assert_eq!(place_by_size(&columns), [Placement::Client, Placement::Server]);
    }

    #[test]
    fn a_server_that_is_not_known_gets_columns_that_are_clearly_smaller_plain() {
        let columns = [[9.0, 8.5], [9.0, 8.0], [3.0, 4.0]].map(|b| cost([9.0, 1.0], [0.0; 2], b));
        let placed = [Placement::Client, Placement::Server, Placement::Client];
        assert_eq!(place_unknown(&columns), placed);
    }

    proptest! {
        /// Beside every choice there is for few columns.
        #[test]
        fn the_choice_is_close_to_the_best_there_is(
            raw in proptest::collection::vec(proptest::array::uniform6(0.1f64..50.0), 1..7),
            rate in 0.05f64..20.0, cores in 0.2f64..4.0, weight in 0.5f64..4.0,
        ) {
            let columns: Vec<ColumnCost> = raw.iter()
                .map(|r| cost([r[0], r[1]], [r[2], r[3]], [r[4], r[5]])).collect();
            let capacity =
                Capacity { link_rate: rate, server_cores: cores, server_weight: weight, ..IDLE };
            let chosen = times_of(&columns, &place_adaptively(&columns, &capacity), &capacity);
            let best = (0..1u32 << columns.len()).map(|bits| {
                let placements: Vec<Placement> = (0..columns.len())
                    .map(|c| if bits >> c & 1 == 0 { Placement::Client } else { Placement::Server })
                    .collect();
                times_of(&columns, &placements, &capacity).longest()
            }).fold(f64::INFINITY, f64::min);
            prop_assert!(chosen.longest() <= best * 1.25, "{} {best}", chosen.longest());
            for fixed in [Placement::Client, Placement::Server] {
                let all = times_of(&columns, &vec![fixed; columns.len()], &capacity);
                prop_assert!(chosen.cost() <= all.cost() * 1.001);
            }
        }
    }
}
