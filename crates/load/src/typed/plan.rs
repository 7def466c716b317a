//! How the columns of a partition of rows that have types are read.
//!
//! Numbers without codes are pages as soon as they are read, and so are texts: their symbols are those of the first partition where they
//! suit, else they are chosen for the first rows. So what is planned depends on the rows only, whoever reads them.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use coload_page::SymbolEncoder;
use coload_source::{ColumnPlan, SAMPLE_ROWS};
use coload_threads::lock;
use coload_transform::FragmentColumn;
use coload_types::{Physical, Plain, Result, Strings, Values};

use super::{TypedParser, parser_of};
use crate::format::{Leg, Parser};
use crate::grain::Grain;
use crate::partition::{KnownSymbols, PartitionPlan};

/// Bytes of the rows that symbols are chosen for.
const SAMPLE_BYTES: u64 = 2 << 20;

/// What is known of the partitions of a leg before they are read.
#[derive(Debug, Default)]
pub struct TypedPlans {
    /// The symbols of the first partition, which others have where they suit them.
    symbols: Mutex<Option<Arc<KnownSymbols>>>,
}

impl TypedPlans {
    /// Plans the partition that starts with a chunk by `plan`, which is told the chunk and what symbols are known. Whoever comes first
    /// plans the first partition, which starts with chunk 0, so that it does not depend on the threads what is known of others. Partitions
    /// of a stream are planned one after the other, whatever their chunks are called.
    ///
    /// # Errors
    /// Those of `plan`.
    pub fn plan(
        &self,
        chunk: usize,
        plan: impl Fn(usize, &KnownSymbols) -> Result<PartitionPlan>,
    ) -> Result<PartitionPlan> {
        let mut symbols = lock(&self.symbols);
        let known = match &*symbols {
            Some(known) => Arc::clone(known),
            None => {
                let first = plan(0, &[])?;
                let known = symbols.insert(first.symbols());
                if chunk == 0 {
                    return Ok(first);
                }
                Arc::clone(known)
            }
        };
        drop(symbols);
        plan(chunk, &known)
    }
}

/// The plan of a partition: columns of which `is_coded` is true have codes. `read_first` reads its first rows, as few as
/// [`first_rows`] says.
///
/// # Errors
/// Those of `read_first`.
pub fn plan_of(
    leg: &Leg<'_>,
    grain: &Grain,
    known: &KnownSymbols,
    is_coded: impl Fn(usize) -> bool,
    read_first: impl FnOnce(&mut TypedParser) -> Result<()>,
) -> Result<PartitionPlan> {
    let columns = leg.request.read_schema().columns().iter().enumerate();
    let plan =
        columns.map(|(number, column)| match (is_coded(number), column.data_type.physical()) {
            (true, _) => ColumnPlan::Codes,
            (false, Physical::Bytes) => ColumnPlan::PlainText,
            (false, _) => ColumnPlan::Numbers { repeats: false },
        });
    let plan = PartitionPlan::new(plan.collect(), Vec::new());
    if grain.encoders == 0 || !plan.read.iter().any(|plan| matches!(plan, ColumnPlan::PlainText)) {
        return Ok(plan);
    }
    let mut parser = parser_of(leg, grain, &plan);
    read_first(&mut parser)?;
    let first = parser.finish(0)?;
    let mut encoders = grain.encoders;
    let planned = plan.read.into_iter().zip(first.columns).enumerate();
    let planned = planned.map(|(number, (plan, column))| match (plan, column) {
        (
            ColumnPlan::PlainText,
            FragmentColumn::Plain(Plain { values: Values::Bytes(strings), .. }),
        ) if encoders > 0 && !strings.bytes.is_empty() => {
            encoders -= 1;
            let known = known.get(number).and_then(Option::as_ref);
            ColumnPlan::Text { encoder: symbols_for(&strings, known), repeats: false }
        }
        (plan, _) => plan,
    });
    Ok(PartitionPlan::new(planned.collect(), Vec::new()))
}

/// The symbols that are known, where they suit the strings, or others.
fn symbols_for(strings: &Strings, known: Option<&Arc<SymbolEncoder>>) -> Arc<SymbolEncoder> {
    match known.filter(|known| known.suits(strings.len(), |index| strings.get(index))) {
        Some(known) => Arc::clone(known),
        None => Arc::new(SymbolEncoder::train_strings(&[strings])),
    }
}

/// The rows at the start of some, which stand at `span` of their input, that tell how those behind them are read.
pub fn first_rows(rows: &Range<u64>, span: &Range<u64>) -> Range<u64> {
    let count = rows.end - rows.start;
    let wanted = count.saturating_mul(SAMPLE_BYTES) / (span.end - span.start).max(1);
    rows.start..rows.start + count.min(wanted.clamp(1, SAMPLE_ROWS as u64))
}
