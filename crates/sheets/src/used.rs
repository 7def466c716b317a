//! Which cells of a sheet have values.

use coload_types::Result;

use crate::area::Area;
use crate::book::{Parts, Sheet, needed};
use crate::cells::{Cell, Cells};

/// What a look at all of a sheet tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The smallest area with all cells that have values; `None` when there are none.
    pub area: Option<Area>,
    /// Areas of the sheet whose cells are one to users: the value is that of the first.
    pub merged: u64,
}

/// Finds the cells that have values within an area. What the part says of its own size is not believed.
///
/// # Errors
/// `Input` when the sheet is damaged, those of reading.
pub fn used_area(parts: &dyn Parts, sheet: &Sheet, name: &str, within: Area) -> Result<Used> {
    let mut cells = Cells::new(needed(parts, &sheet.part)?, name.to_owned());
    let mut cell = Cell::default();
    let mut used: Option<Area> = None;
    while cells.read(&mut cell)? {
        let (row, column) = (cell.row, cell.column);
        if !within.has(row, column) {
            continue;
        }
        let all = used.get_or_insert(Area { rows: (row, row), columns: (column, column) });
        all.rows.1 = row;
        all.columns = (all.columns.0.min(column), all.columns.1.max(column));
    }
    Ok(Used { area: used, merged: cells.merged })
}
