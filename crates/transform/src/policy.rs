//! Policies: who transforms which column, chosen from what is measured.
//!
//! A policy is a file in this folder and a line in [`POLICIES`]; nothing else knows them by name.

mod adaptive;
mod fixed;
mod size;

use std::fmt::Debug;

pub use adaptive::Adaptive;
pub use fixed::{OnClient, OnServer};
pub use size::BySize;

use crate::{Capacity, ColumnCost, Mix, Placement, TextCost};

/// All policies, the default first.
pub const POLICIES: [&dyn Policy; 4] = [&Adaptive, &BySize, &OnClient, &OnServer];

/// What is measured of a load, and what it has of each column.
#[derive(Debug, Clone, Copy)]
pub struct Estimates<'a> {
    /// What a row of each column costs, either way.
    pub columns: &'a [ColumnCost],
    /// What there is to work with; `None` before anything is known of the link and the server.
    pub capacity: Option<Capacity>,
    /// What a row costs that goes as text; `None` where none may.
    pub text: Option<TextCost>,
    /// Placements that stay: what the columns cost the server is not known yet, so that only the share of text is chosen.
    pub kept: Option<&'a [Placement]>,
}

/// Chooses where columns are transformed, and how much goes as text. The same estimates give the same choice.
pub trait Policy: Debug + Send + Sync {
    /// Its name in `--placement`.
    fn name(&self) -> &'static str;

    /// What it does, for the help of the command.
    fn about(&self) -> &'static str;

    /// The best choice; as many placements as columns.
    fn choose(&self, estimates: &Estimates<'_>) -> Mix;

    /// Whether the choice depends on more than the columns, so that it is revised while the load runs, and changed only
    /// where that is worth a new dictionary.
    fn is_measured(&self) -> bool {
        false
    }
}

impl PartialEq for dyn Policy {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Policy {}

/// A choice without text.
fn placed(placements: Vec<Placement>) -> Mix {
    Mix { placements, text_share: 0.0, times: Default::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn policies_have_names_of_their_own_and_place_each_column() {
        let names: BTreeSet<_> = POLICIES.iter().map(|policy| policy.name()).collect();
        assert_eq!(names.len(), POLICIES.len());
        for width in [0, 1, 7] {
            let columns = vec![ColumnCost::default(); width];
            let unknown = Estimates { columns: &columns, capacity: None, text: None, kept: None };
            for policy in POLICIES {
                assert_eq!(policy.choose(&unknown).placements.len(), width, "{policy:?}");
            }
        }
    }

    #[test]
    fn columns_are_smaller_by_size_and_all_or_none_where_that_is_the_policy() {
        let smaller = ColumnCost { placed_bytes: 1.0, plain_bytes: 8.0, ..ColumnCost::default() };
        let larger = ColumnCost { placed_bytes: 9.0, ..smaller };
        let columns = [smaller, larger];
        let of = Estimates { columns: &columns, capacity: None, text: None, kept: None };
        let choose = |policy: &dyn Policy| policy.choose(&of).placements;
        assert_eq!(choose(&BySize), [Placement::Client, Placement::Server]);
        assert_eq!(choose(&OnClient), [Placement::Client; 2]);
        assert_eq!(choose(&OnServer), [Placement::Server; 2]);
    }
}
