//! What came of a partition so far, for targets that put all of its parts together, in whatever order they come.

use std::collections::BTreeMap;

use coload_transform::{FinalPage, PartitionColumn};
use coload_types::{Error, Result};
use coload_wire::PartitionAccount;

use super::AheadColumn;

/// What came of a partition.
#[derive(Debug, Default)]
pub struct Arriving {
    /// Final pages by the numbers of their fragments.
    pub ahead: BTreeMap<u32, Vec<FinalPage>>,
    /// Columns that waited for their partition; `None` for those that did not, or have not come.
    pub columns: Vec<Option<PartitionColumn>>,
    /// Rows of its fragments, once it is sealed.
    pub page_rows: Option<Vec<u32>>,
    /// What became of its records, if somebody wants to know.
    pub account: Option<PartitionAccount>,
}

impl Arriving {
    /// Takes a column, of so many.
    pub fn take_column(&mut self, column: usize, width: usize, compressed: PartitionColumn) {
        self.columns.resize_with(width, || None);
        self.columns[column] = Some(compressed);
    }
}

/// The columns of a fragment that went ahead, as pages.
///
/// # Errors
/// `Corrupt` when they are something else.
pub fn final_pages(columns: Vec<AheadColumn>) -> Result<Vec<FinalPage>> {
    let page = |column| match column {
        AheadColumn::Page(page) => Ok(page),
        AheadColumn::Values { .. } | AheadColumn::Rows(_) => {
            Err(Error::Corrupt("values for a segment, which transforms nothing".into()))
        }
    };
    columns.into_iter().map(page).collect()
}
