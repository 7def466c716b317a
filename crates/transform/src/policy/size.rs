//! Each column where it takes fewer bytes on the wire.
//!
//! Source: seed 000, section 4.3 (SLs).

use super::{Estimates, Policy, placed};
use crate::{Mix, place_by_size};

/// By bytes on the wire.
#[derive(Debug, Clone, Copy)]
pub struct BySize;

impl Policy for BySize {
    fn name(&self) -> &'static str {
        "size"
    }

    fn about(&self) -> &'static str {
        "Each column where it takes fewer bytes on the wire"
    }

    fn choose(&self, estimates: &Estimates<'_>) -> Mix {
        placed(place_by_size(estimates.columns))
    }
}
