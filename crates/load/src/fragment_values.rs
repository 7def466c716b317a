//! The values of some columns of a fragment, to be looked at row by row.

use coload_ddl::CheckedColumn;
use coload_page::SymbolEncoder;
use coload_transform::{Fragment, FragmentColumn, TemporaryDictionary, page_values};
use coload_types::{Plain, Result};

/// Columns of a fragment whose values can be asked for, row by row.
pub struct FragmentValues<'a> {
    columns: Vec<Option<Ready<'a>>>,
}

enum Ready<'a> {
    Coded(Vec<u16>, &'a TemporaryDictionary),
    Borrowed(&'a Plain),
    Decoded(Plain),
}

impl<'a> FragmentValues<'a> {
    /// Makes the columns ready that are `used`. `dictionary` gives the dictionary of a column's codes,
    /// `encoder` the symbols of its pages.
    ///
    /// # Errors
    /// `Corrupt` when a page does not add up.
    pub fn new(
        fragment: &'a Fragment,
        used: &[usize],
        dictionary: impl Fn(usize) -> Option<&'a TemporaryDictionary>,
        encoder: impl Fn(usize) -> Option<&'a SymbolEncoder>,
    ) -> Result<Self> {
        let mut columns: Vec<Option<Ready<'a>>> = fragment.columns.iter().map(|_| None).collect();
        for column in used {
            columns[*column] = match (&fragment.columns[*column], dictionary(*column)) {
                (FragmentColumn::Plain(plain), _) => Some(Ready::Borrowed(plain)),
                (FragmentColumn::Codes { codes, .. }, Some(dictionary)) => {
                    Some(Ready::Coded(codes.of_rows(&mut Vec::new()).to_vec(), dictionary))
                }
                (FragmentColumn::Codes { .. }, None) => None,
                (FragmentColumn::Page(page), _) => {
                    Some(Ready::Decoded(page_values(page, encoder(*column))?))
                }
            };
        }
        Ok(FragmentValues { columns })
    }

    /// The columns; `None` for those that are not used.
    pub fn views(&self) -> Vec<Option<CheckedColumn<'_>>> {
        self.columns.iter().map(|ready| ready.as_ref().map(Ready::view)).collect()
    }
}

impl Ready<'_> {
    fn view(&self) -> CheckedColumn<'_> {
        match self {
            Ready::Coded(codes, dictionary) => {
                CheckedColumn::Coded { codes, values: &dictionary.values }
            }
            Ready::Borrowed(plain) => CheckedColumn::Plain(plain),
            Ready::Decoded(plain) => CheckedColumn::Plain(plain),
        }
    }
}
