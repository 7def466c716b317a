//! A filter and expressions over the columns that are read, run by whoever has an engine for them.
//!
//! ```text
//!   columns read -> rows that are kept -> columns made: those read, or new values
//! ```
//!
//! A program gives the same rows for the same rows, whoever runs it and when: now() is when the load began.

use std::fmt::Debug;
use std::sync::Arc;

use coload_ddl::{CheckedColumn, Schema};
use coload_scan::Predicate;
use coload_source::{LeftOut, Told};
use coload_transform::{Fragment, FragmentColumn, NULL_CODE, ProvisionalCodes};
use coload_types::{Error, Plain, Result, Values};
use coload_wire::RowSql;

use crate::format::{Parser, PieceSpan};
use crate::fragment_values::FragmentValues;
use crate::partition::PartitionPlan;

/// A filter and expressions over the columns that are read.
pub trait RowProgram: Debug + Send + Sync {
    /// What it was made of.
    fn sql(&self) -> &RowSql;

    /// The columns that it makes.
    fn schema(&self) -> &Schema;

    /// For each of these the column read that it is; `None` if its values are new.
    fn sources(&self) -> &[Option<usize>];

    /// The columns read that it looks at.
    fn uses(&self) -> &[usize];

    /// Tests of columns read that a row passes which is kept, whenever the load began; there may be none, as they need not say all that is
    /// asked of a row.
    fn tests(&self) -> &[Predicate] {
        &[]
    }

    /// The same program for columns of other types, in a load that began at `began_us` (microseconds since the
    /// epoch).
    ///
    /// # Errors
    /// `Invalid` when it does not fit them.
    fn for_load(&self, read: &Schema, began_us: i64) -> Result<Arc<dyn RowProgram>>;

    /// Runs it; `columns` has those of [`Self::uses`].
    ///
    /// # Errors
    /// What is wrong with the program, not with a row.
    fn run(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Result<RowsMade>;
}

/// What a program makes of rows.
#[derive(Debug, Default)]
pub struct RowsMade {
    /// The rows that are kept, in order; all if `None`.
    pub kept: Option<Vec<u32>>,
    /// The new values of each column, of the rows kept; `None` for a column that was read.
    pub columns: Vec<Option<Plain>>,
    /// Rows for which it failed, in order, and why. Where there are any, the rest is not complete.
    pub failed: Vec<(u32, String)>,
}

/// A fragment that a program made.
pub enum Made {
    /// Its columns are those of the program; the rows of the pieces are those kept.
    Rows(Fragment, Option<Vec<u32>>),
    /// These rows must be left out first.
    Failed(Vec<LeftOut>),
}

/// Runs a program on the rows of a chunk.
///
/// # Errors
/// Those of the program; `Corrupt` when a page of the fragment does not add up.
pub fn run_program<P: Parser>(
    program: &dyn RowProgram,
    read: Fragment,
    parser: &mut P,
    plan: &PartitionPlan,
    spans: &mut [PieceSpan],
) -> Result<Made> {
    let rows = read.rows as usize;
    let RowsMade { kept, columns, failed } = {
        let dictionary = |column| parser.dictionary(column);
        let encoder = |column: usize| plan.read_encoder(column);
        let values = FragmentValues::new(&read, program.uses(), dictionary, encoder)?;
        program.run(&values.views(), rows)?
    };
    if !failed.is_empty() {
        return Ok(Made::Failed(failed.into_iter().map(tell).collect()));
    }
    if columns.len() != program.sources().len() {
        return Err(Error::Corrupt(format!("a program made {} columns", columns.len())));
    }
    let mut made = Vec::with_capacity(columns.len());
    for (new, source) in columns.into_iter().zip(program.sources()) {
        made.push(match (new, source, &kept) {
            (Some(plain), ..) => FragmentColumn::Plain(plain),
            (None, Some(source), None) => read.columns[*source].clone(),
            (None, Some(source), Some(kept)) => {
                let distinct = parser.dictionary(*source).map_or(0, |known| known.values.len());
                keep(&read.columns[*source], kept, distinct, plan.read_encoder(*source))?
            }
            (None, None, _) => return Err(Error::Corrupt("a program made no values".into())),
        });
    }
    if let Some(kept) = &kept {
        // Some values may stand in no row that is kept.
        parser.mark_stale();
        leave_filtered(spans, kept);
    }
    let rows = kept.as_ref().map_or(rows, Vec::len) as u32;
    Ok(Made::Rows(Fragment { rows, columns: made }, kept))
}

fn tell((row, reason): (u32, String)) -> LeftOut {
    let advice = "another expression, or --max-rejects N to set such records aside".to_owned();
    let told = Told { column: None, value: Vec::new(), reason, advice };
    LeftOut { row: u64::from(row), told: Arc::new(told) }
}

/// Counts the rows of each piece that are not kept.
fn leave_filtered(spans: &mut [PieceSpan], kept: &[u32]) {
    let (mut start, mut at) = (0, 0);
    for span in spans {
        let end = start + span.rows;
        let here = kept[at..].partition_point(|row| u64::from(*row) < end);
        // Some were not even read.
        span.filtered += span.rows - here as u64;
        span.rows = here as u64;
        (start, at) = (end, at + here);
    }
}

/// The rows of a column that are kept.
fn keep(
    column: &FragmentColumn,
    kept: &[u32],
    distinct: usize,
    encoder: Option<&coload_page::SymbolEncoder>,
) -> Result<FragmentColumn> {
    Ok(match column {
        FragmentColumn::Codes { codes, dictionary, .. } => {
            let mut scratch = Vec::new();
            let codes = codes.of_rows(&mut scratch);
            let codes: Vec<u16> = kept.iter().map(|row| codes[*row as usize]).collect();
            let nulls = codes.contains(&NULL_CODE);
            let codes = ProvisionalCodes::new(&codes, distinct);
            FragmentColumn::Codes { codes, dictionary: *dictionary, nulls }
        }
        FragmentColumn::Plain(plain) => FragmentColumn::Plain(pick(plain, kept)),
        FragmentColumn::Page(page) => {
            let plain = coload_transform::page_values(page, encoder)?;
            FragmentColumn::Plain(pick(&plain, kept))
        }
    })
}

fn pick(plain: &Plain, rows: &[u32]) -> Plain {
    let mut out = Plain::empty(plain.values.physical());
    match (&mut out.values, &plain.values) {
        (Values::Int(to), Values::Int(from)) => to.extend(rows.iter().map(|r| from[*r as usize])),
        (Values::Wide(to), Values::Wide(from)) => to.extend(rows.iter().map(|r| from[*r as usize])),
        (Values::Bytes(to), Values::Bytes(from)) => {
            rows.iter().for_each(|row| to.push(from.get(*row as usize)));
        }
        _ => {}
    }
    if plain.nulls.is_some() {
        let mut nulls = coload_types::Bitmap::zeros(0);
        rows.iter().for_each(|row| nulls.push(plain.is_null(*row as usize)));
        out.nulls = (nulls.count_ones() > 0).then_some(nulls);
    }
    out
}
