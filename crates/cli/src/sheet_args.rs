//! Flags of sheets of books.

use clap::Args;
use coload_input::{Area, SheetChoice};

/// Flags of inputs that are books (.xlsx).
#[derive(Debug, Args, Default)]
pub struct SheetArgs {
    /// Sheet of a book (.xlsx), by its name or its number from 1; book.xlsx!NAME names one too, and 'book.xlsx!*' all [default: the
    /// first]
    #[arg(long, value_name = "NAME|N", help_heading = "Sheets")]
    pub sheet: Option<String>,
    /// Cells of the sheet, such as A1:F200, A:F, or B3:F for all that is below [default: those that have values]
    #[arg(long, value_name = "CELLS", value_parser = Area::parse, help_heading = "Sheets")]
    pub range: Option<Area>,
}

impl SheetArgs {
    /// What they say.
    pub fn choice(&self) -> SheetChoice {
        SheetChoice { sheet: self.sheet.clone(), area: self.range }
    }

    /// The flags that say it.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let sheet = self.sheet.iter().map(|sheet| ("--sheet", sheet.clone()));
        sheet.chain(self.range.map(|range| ("--range", range.to_string()))).collect()
    }
}
