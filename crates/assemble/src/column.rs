//! One column of a partition while its fragments come, in whatever form each of them has.
//!
//! ```text
//!   finished pages      with codes: kept with their dictionary      others: final at once
//!   plain values        few: codes of a dictionary, kept            many: a page, final at once
//!   parsed fragments    codes and values, kept with the temporary dictionaries of who parsed them
//!   all are there       what was kept: one dictionary, and pages of it
//! ```
//!
//! A final page is handed out at once, so that whoever writes segments need not hold it.
//!
//! Cost: what `transform` says of each step; the kept parts are copied once if there are several kinds of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use coload_page::shrink_page;
use coload_page::{Page, PageDetail, SymbolEncoder};
use coload_threads::{Step, StepClock};
use coload_transform::{
    DictionaryLimit, DictionaryPolicy, DistinctSketch, FragmentColumn, PartitionColumn,
    PlainSorter, Symbols, TemporaryDictionary, compress_column, join_parts, restore_codes,
    sort_temporaries,
};
use coload_types::{Dictionary, Error, Physical, Plain, Result};

/// How the parts of a column become one.
#[derive(Debug, Clone, Copy)]
pub struct Assembly {
    /// Shape of the values.
    pub physical: Physical,
    /// Whether values may be plain.
    pub policy: DictionaryPolicy,
    /// What a dictionary may hold.
    pub limit: DictionaryLimit,
    /// Whether plain values that are text get symbols.
    pub symbols: Symbols,
}

/// What became of something that was taken.
#[derive(Debug, Default)]
pub struct Taken {
    /// Pages that are final, with the numbers of their fragments.
    pub pages: Vec<(u32, Page)>,
    /// Bytes that are kept until the column is finished.
    pub kept_bytes: u64,
}

/// Fragments as the parse step leaves them.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Fragments of the column, each with its number in the partition.
    pub fragments: Vec<(u32, FragmentColumn)>,
    /// The dictionaries that their codes name, one of each parser.
    pub temporaries: Vec<TemporaryDictionary>,
    /// Symbols of fragments that are plain text.
    pub encoder: Option<Arc<SymbolEncoder>>,
}

/// A column of a partition, being assembled.
#[derive(Debug)]
pub struct ColumnBuilder {
    assembly: Assembly,
    /// Numbers of the fragments that came.
    came: BTreeSet<u32>,
    /// Pages of codes of `dictionary`, made elsewhere.
    coded: Vec<(u32, Page)>,
    dictionary: Option<Dictionary>,
    /// Symbol tables of all pages of text.
    symbols: Vec<Vec<u8>>,
    /// Codes that were made of plain values, and what made them.
    sorted: Vec<(u32, FragmentColumn)>,
    sorter: Option<PlainSorter>,
    parsed: Parsed,
    /// Whole parts that were assembled elsewhere.
    parts: Vec<(Vec<u32>, PartitionColumn)>,
}

impl ColumnBuilder {
    /// A column without fragments.
    pub fn new(assembly: Assembly) -> Self {
        ColumnBuilder {
            assembly,
            came: BTreeSet::new(),
            coded: Vec::new(),
            dictionary: None,
            symbols: Vec::new(),
            sorted: Vec::new(),
            sorter: None,
            parsed: Parsed::default(),
            parts: Vec::new(),
        }
    }

    /// Notes that a fragment came, of which a part that is still made elsewhere has the values.
    ///
    /// # Errors
    /// `Corrupt` when it came before.
    pub fn expect(&mut self, fragment: u32) -> Result<()> {
        if self.came.insert(fragment) {
            return Ok(());
        }
        Err(Error::Corrupt(format!("a column of fragment {fragment} came twice")))
    }

    /// Takes the values of a fragment.
    ///
    /// # Errors
    /// `Corrupt` when the fragment came before, `Limit` when text is over 4 GiB.
    ///
    /// # Panics
    /// When the values have another shape: a bug of the caller.
    pub fn take_values(&mut self, fragment: u32, values: Plain) -> Result<Taken> {
        self.expect(fragment)?;
        let Assembly { physical, policy, limit, symbols } = self.assembly;
        let new = || PlainSorter::new(physical, policy).with_limit(limit).with_symbols(symbols);
        let sorter = self.sorter.get_or_insert_with(new);
        let sorted = sorter.push(values)?;
        let table = sorter.symbols();
        let FragmentColumn::Page(mut page) = sorted else {
            let kept_bytes = sorted.bytes() as u64;
            self.sorted.push((fragment, sorted));
            return Ok(Taken { pages: Vec::new(), kept_bytes });
        };
        if let (PageDetail::Text { symbols: number }, Some(table)) = (&mut page.detail, table)
            && *number > 0
        {
            *number = self.table_number(table);
        }
        Ok(Taken { pages: vec![(fragment, shrink_page(page)?)], kept_bytes: 0 })
    }

    /// Takes finished pages, whose codes and symbols are verified: `dictionary` and `symbols` are theirs.
    ///
    /// # Errors
    /// `Corrupt` when a fragment came before, or there was a dictionary already.
    pub fn take_pages(
        &mut self,
        dictionary: Option<Dictionary>,
        symbols: Vec<Vec<u8>>,
        pages: Vec<(u32, Page)>,
    ) -> Result<Taken> {
        if let Some(dictionary) = dictionary
            && self.dictionary.replace(dictionary).is_some()
        {
            return Err(Error::Corrupt("two dictionaries for a column of a partition".into()));
        }
        let numbers: Vec<u32> = symbols.into_iter().map(|s| self.table_number(s)).collect();
        let mut taken = Taken::default();
        for (fragment, mut page) in pages {
            self.expect(fragment)?;
            match &mut page.detail {
                PageDetail::Codes { .. } => {
                    taken.kept_bytes += page.bytes.len() as u64;
                    self.coded.push((fragment, page));
                    continue;
                }
                PageDetail::Text { symbols } if *symbols > 0 => {
                    *symbols = numbers[*symbols as usize - 1];
                }
                PageDetail::Text { .. } | PageDetail::Int { .. } | PageDetail::Wide { .. } => {}
            }
            taken.pages.push((fragment, page));
        }
        Ok(taken)
    }

    /// Bytes that are kept of the values that were taken, with what finds them.
    pub fn values_bytes(&self) -> usize {
        let kept = self.sorted.iter().map(|(_, column)| column.bytes()).sum::<usize>();
        kept + self.sorter.as_ref().map_or(0, PlainSorter::bytes)
    }

    /// Takes all fragments that were parsed, once.
    pub fn take_parsed(&mut self, parsed: Parsed) {
        self.came.extend(parsed.fragments.iter().map(|(number, _)| *number));
        self.parsed = parsed;
    }

    /// Takes fragments that were assembled elsewhere, which [`Self::expect`] knows.
    pub fn take_part(&mut self, numbers: Vec<u32>, part: PartitionColumn) {
        self.parts.push((numbers, part));
    }

    /// Turns what was kept into pages of one dictionary. Gives it, the symbol tables of all pages of the column, and
    /// these pages with the numbers of their fragments, in order; `distinct` counts the values of parsed fragments.
    ///
    /// # Errors
    /// `Limit` when a dictionary or a page is too large, `Corrupt` when a page does not fit its dictionary.
    pub fn finish(
        mut self,
        clock: &StepClock,
        distinct: Option<&DistinctSketch>,
    ) -> Result<(Vec<u32>, PartitionColumn)> {
        let physical = self.assembly.physical;
        let mut parts = Vec::new();
        if !self.coded.is_empty() {
            let (numbers, pages) = std::mem::take(&mut self.coded).into_iter().unzip();
            let dictionary = self.dictionary.take();
            parts.push((numbers, PartitionColumn { dictionary, symbols: Vec::new(), pages }));
        }
        if let Some(sorter) = self.sorter.take()
            && !self.sorted.is_empty()
        {
            let (numbers, columns) = std::mem::take(&mut self.sorted).into_iter().unzip();
            parts.push((numbers, clock.time(Step::Compress, || sorter.finish(columns))?));
        }
        parts.append(&mut self.parts);
        if !self.parsed.fragments.is_empty() {
            parts.push(self.compress_parsed(clock, distinct)?);
        }
        let (numbers, mut joined) = match parts.len() {
            0 => return Ok((Vec::new(), PartitionColumn { symbols: self.symbols, ..NOTHING })),
            1 => parts.swap_remove(0),
            _ => {
                let mut numbers: Vec<u32> = parts.iter().flat_map(|(n, _)| n).copied().collect();
                numbers.sort_unstable();
                (numbers, join_parts(parts, physical)?)
            }
        };
        let before = self.symbols.len() as u32;
        if before > 0 {
            joined.pages.iter_mut().for_each(|page| page.detail.shift_symbols(before));
            self.symbols.append(&mut joined.symbols);
            joined.symbols = self.symbols;
        }
        Ok((numbers, joined))
    }

    /// Finishes a column whose final pages were kept by the caller.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_with(
        self,
        mut pages: Vec<(u32, Page)>,
        clock: &StepClock,
    ) -> Result<PartitionColumn> {
        let (numbers, mut column) = self.finish(clock, None)?;
        pages.extend(numbers.into_iter().zip(std::mem::take(&mut column.pages)));
        pages.sort_by_key(|(number, _)| *number);
        column.pages = pages.into_iter().map(|(_, page)| page).collect();
        Ok(column)
    }

    fn compress_parsed(
        &mut self,
        clock: &StepClock,
        distinct: Option<&DistinctSketch>,
    ) -> Result<(Vec<u32>, PartitionColumn)> {
        let Assembly { physical, policy, limit, .. } = self.assembly;
        let Parsed { fragments, mut temporaries, encoder } = std::mem::take(&mut self.parsed);
        let (numbers, mut fragments): (Vec<u32>, Vec<FragmentColumn>) =
            fragments.into_iter().unzip();
        let sorted = clock.time(Step::Sort, || {
            restore_codes(&mut fragments, &mut temporaries, physical, limit)?;
            sort_temporaries(&fragments, &temporaries, physical, limit)
        })?;
        let compressed = clock.time(Step::Compress, || {
            match (distinct, &sorted) {
                (Some(distinct), Some(all)) => distinct.add_values(all.dictionary().values()),
                (Some(distinct), None) => distinct.add_coded(&fragments, &temporaries),
                (None, _) => {}
            }
            let encoder = encoder.as_deref();
            compress_column(fragments, &temporaries, sorted, encoder, physical, policy)
        })?;
        Ok((numbers, compressed))
    }

    /// The 1-based number of a symbol table, which is added if new.
    fn table_number(&mut self, table: Vec<u8>) -> u32 {
        match self.symbols.iter().position(|known| *known == table) {
            Some(at) => at as u32 + 1,
            None => {
                self.symbols.push(table);
                self.symbols.len() as u32
            }
        }
    }
}

const NOTHING: PartitionColumn =
    PartitionColumn { dictionary: None, symbols: Vec::new(), pages: Vec::new() };

#[cfg(test)]
mod tests;
