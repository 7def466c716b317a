//! The rows of inputs for who reads them in place: all of them once, and stored nowhere.

use coload_types::Result;

use crate::legs::run_once;
use crate::load::Load;
use crate::pipeline::Stop;
use crate::target::Target;
use crate::widen::{Way, Widened};
use crate::wider_columns::WiderColumns;

/// How far the rows of inputs were read.
#[derive(Debug)]
pub enum RowsRead {
    /// To their end.
    All,
    /// To a field that the inferred type of its column does not hold.
    TooNarrow {
        /// Types that hold it.
        wider: WiderColumns,
        /// Columns that became wider.
        widened: Vec<Widened>,
    },
}

/// Gives the rows of a load to a target that takes rows; those before a field that does not fit, too.
///
/// # Errors
/// As [`load`](crate::load).
pub fn read_rows(load: Load<'_>, target: &dyn Target) -> Result<RowsRead> {
    load.check()?;
    match run_once(load, target, Way::GoOn) {
        Ok(_) => Ok(RowsRead::All),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Widen(widening)) => {
            let mut request = load.request.clone();
            let widened = widening.widen(&mut request, &[])?;
            let names = widened.iter().map(|column| column.column.as_str());
            Ok(RowsRead::TooNarrow { wider: WiderColumns::of(&request, names), widened })
        }
    }
}
