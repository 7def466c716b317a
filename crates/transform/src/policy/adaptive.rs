//! What makes the load shortest: the longest of the times of client, link and server.
//!
//! Source: what seed 000, section 4.3, leaves open; see [`crate::place_adaptively`].

use super::{Estimates, Policy, placed};
use crate::{
    Capacity, Mix, choose_share, mix_adaptively, place_adaptively, place_unknown, times_of,
};

/// Text must make the load shorter by this factor: what columns are expected to cost is off by a tenth now and then, and
/// text is parsed by a machine that others use.
const TEXT_GAIN: f64 = 0.85;

/// By what is measured while the load runs.
#[derive(Debug, Clone, Copy)]
pub struct Adaptive;

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn about(&self) -> &'static str {
        "Whoever makes the load shortest; revised while it runs"
    }

    fn choose(&self, estimates: &Estimates<'_>) -> Mix {
        match &estimates.capacity {
            Some(capacity) => choose(estimates, capacity),
            None => placed(place_unknown(estimates.columns)),
        }
    }

    fn is_measured(&self) -> bool {
        true
    }
}

/// The best placements, or those that are kept; with a share of text only if that is much better.
fn choose(estimates: &Estimates<'_>, capacity: &Capacity) -> Mix {
    let Estimates { columns, text, kept, .. } = *estimates;
    let placements = kept.map_or_else(|| place_adaptively(columns, capacity), <[_]>::to_vec);
    let times = times_of(columns, &placements, capacity);
    let without = Mix { placements, text_share: 0.0, times };
    let Some(text) = text else { return without };
    let mixed = match kept {
        None => mix_adaptively(columns, &text, capacity),
        Some(kept) => {
            let (text_share, times) = choose_share(columns, kept, &text, capacity);
            Mix { placements: kept.to_vec(), text_share, times }
        }
    };
    match mixed.times.longest() <= without.times.longest() * TEXT_GAIN {
        true => mixed,
        false => without,
    }
}
