//! Who transformed what of a load into a server.

use coload_transform::{Capacity, ColumnCost, Placement, Times};
use coload_types::Column;

/// What was estimated and chosen while the load ran.
#[derive(Debug, Clone, Default)]
pub struct PlacementReport {
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// What was estimated and chosen for each; nothing where the server does it all.
    pub choices: Vec<ColumnChoice>,
    /// The same of putting rows in the order of the table's key, with partitions in place of fragments; nothing where the table has
    /// none.
    pub sorting: Option<ColumnChoice>,
    /// Changes of the placements while the load ran, in their order.
    pub changes: Vec<Change>,
    /// What went as text.
    pub text_fragments: TextFragmentReport,
}

/// One column's estimates and choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnChoice {
    /// What a row costs either way.
    pub cost: ColumnCost,
    /// Where the column was placed last.
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
    /// Columns on the client after it, of fragments that are parsed here.
    pub on_client: usize,
    /// Share of the fragments that go as text after it.
    pub text_share: f64,
    /// The times a row that were expected, nanoseconds.
    pub times: Times,
    /// What there was to work with.
    pub capacity: Capacity,
}

/// What went as text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TextFragmentReport {
    /// Fragments of the load, those that went as text among them.
    pub fragments: u64,
    /// Those of them that went as text.
    pub sent: u64,
    /// Those of these that the server handed back.
    pub handed_back: u64,
    /// The share that was chosen last.
    pub share: f64,
    /// Nanoseconds that a row took the server; 0 when there was none.
    pub server_ns: f64,
}
