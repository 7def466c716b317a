//! Which share of the fragments goes to the server as text, beside where the columns of the others are transformed.
//!
//! ```text
//!   a row costs    share * what it costs as text  +  (1 - share) * what its columns cost    for each of the three
//! ```
//!
//! The longest of the three times falls and then rises with the share.

use crate::placement::{Capacity, ColumnCost, Placement, Times, place_adaptively, times_of};

/// Shares that are tried: sixteenths.
const STEPS: u32 = 16;

/// What one row costs that goes as text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextCost {
    /// Nanoseconds of the client to read, count and send it.
    pub client_ns: f64,
    /// Nanoseconds of the server to receive, parse and transform it.
    pub server_ns: f64,
    /// Bytes on the wire.
    pub bytes: f64,
}

/// Placements of the columns, and the share of fragments that go as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// Of the fragments that are parsed by the client.
    pub placements: Vec<Placement>,
    /// From 0 to 1.
    pub text_share: f64,
    /// Time that these placements and this share take, a row.
    pub times: Times,
}

/// The times of placements with a share of text.
///
/// # Panics
/// When there are not as many placements as columns.
pub fn times_of_mix(
    columns: &[ColumnCost],
    placements: &[Placement],
    (text, share): (&TextCost, f64),
    capacity: &Capacity,
) -> Times {
    let parsed = times_of(columns, placements, capacity);
    let text = Times {
        client: text.client_ns / capacity.client_cores.max(0.01),
        link: text.bytes / capacity.link_rate.max(1e-6),
        server: text.server_ns * capacity.server_weight / capacity.server_cores.max(0.01),
    };
    let mix = |parsed: f64, text: f64| parsed * (1.0 - share) + text * share;
    Times {
        client: mix(parsed.client, text.client),
        link: mix(parsed.link, text.link),
        server: mix(parsed.server, text.server),
    }
}

/// The share of text that makes the longest time short, and what it takes.
pub fn choose_share(
    columns: &[ColumnCost],
    placements: &[Placement],
    text: &TextCost,
    capacity: &Capacity,
) -> (f64, Times) {
    let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    let timed =
        shares.map(|share| (share, times_of_mix(columns, placements, (text, share), capacity)));
    let best = timed.min_by(|(_, a), (_, b)| a.longest().total_cmp(&b.longest()));
    best.unwrap_or_default()
}

/// The placements and the share of text that make the longest time short.
pub fn mix_adaptively(columns: &[ColumnCost], text: &TextCost, capacity: &Capacity) -> Mix {
    // A server that parses has less time for columns, which the client then keeps.
    let tried = [place_adaptively(columns, capacity), vec![Placement::Client; columns.len()]];
    let mixes = tried.into_iter().map(|placements| {
        let (text_share, times) = choose_share(columns, &placements, text, capacity);
        Mix { placements, text_share, times }
    });
    let best = mixes.min_by(|a, b| a.times.longest().total_cmp(&b.times.longest()));
    best.unwrap_or_else(|| Mix { placements: Vec::new(), text_share: 0.0, times: Times::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMN: ColumnCost = ColumnCost {
        client_placed_ns: 200.0,
        client_plain_ns: 150.0,
        server_placed_ns: 10.0,
        server_plain_ns: 120.0,
        placed_bytes: 20.0,
        plain_bytes: 60.0,
    };
    const TEXT: TextCost = TextCost { client_ns: 60.0, server_ns: 250.0, bytes: 120.0 };

    fn capacity(client_cores: f64, link_rate: f64, server_weight: f64) -> Capacity {
        Capacity { client_cores, client_base_ns: 50.0, link_rate, server_cores: 1.0, server_weight }
    }

    #[test]
    fn half_a_core_before_an_idle_server_leaves_most_text_to_it() {
        let mix = mix_adaptively(&[COLUMN], &TEXT, &capacity(0.5, 1.25, 1.2));
        assert!(mix.text_share > 0.4 && mix.text_share < 1.0, "{mix:?}");
        let without = times_of(&[COLUMN], &mix.placements, &capacity(0.5, 1.25, 1.2));
        assert!(mix.times.longest() < 0.7 * without.longest(), "{mix:?}");
    }

    #[test]
    fn a_slow_link_and_a_busy_server_get_no_text() {
        for capacity in [capacity(1.0, 0.05, 1.2), capacity(8.0, 1.25, 4.0)] {
            let mix = mix_adaptively(&[COLUMN], &TEXT, &capacity);
            assert!(mix.text_share < 0.1, "{mix:?}");
        }
    }

    #[test]
    fn a_mix_is_between_its_parts() {
        let capacity = capacity(1.0, 1.0, 1.0);
        let times =
            |share| times_of_mix(&[COLUMN], &[Placement::Client], (&TEXT, share), &capacity);
        assert_eq!(times(0.0), times_of(&[COLUMN], &[Placement::Client], &capacity));
        assert_eq!(times(1.0), Times { client: 60.0, link: 120.0, server: 250.0 });
        assert_eq!(times(0.5), Times { client: 155.0, link: 70.0, server: 130.0 });
    }
}
