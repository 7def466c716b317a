//! What a column costs either way, measured on the sample that plans a partition.
//!
//! Each column of the sample is read twice: as planned, which is what the client does when it transforms
//! it, and plain, which is what it does when the server transforms it. So the costs are those of this data
//! on this machine. It takes some milliseconds, so few partitions are measured: see [`Measured`].

use std::sync::Mutex;

use coload_page::bitpack::width_of;
use coload_source::{
    ColumnForm, ColumnParser, ColumnPlan, ColumnRules, Lexicon, PlanKind, Rows, Seen,
};
use coload_threads::{lock, thread_cpu_ns};
use coload_transform::{ColumnCost, FragmentColumn, HyperLogLog};
use coload_types::{Physical, Plain, Values};

/// Records whose sizes are estimated.
const ROWS_MAX: usize = 4096;
/// Records whose reading is timed.
const ROWS_TIMED: usize = 2048;
/// Records that a coded column reads at once.
const BLOCK_ROWS: usize = 512;
/// Nanoseconds a row that the compress step takes for a coded column: a look-up and the packing. It is
/// not measured on the sample, whose dictionary is as large as the partition's while its rows are few.
const PACK_NS: f64 = 1.0;

/// What the columns of earlier partitions cost.
#[derive(Debug, Default)]
pub struct Measured(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    partitions: usize,
    columns: Vec<(PlanKind, ColumnCost)>,
}

impl Measured {
    /// The costs of a partition's columns. They are measured in the 1st, 2nd, 4th, 8th, ... partition; else
    /// those of columns that are planned like the last time are taken to be the same.
    pub fn costs(
        &self,
        rows: &Rows<'_>,
        columns: &[ColumnRules],
        plans: &[ColumnPlan],
        partition_rows: f64,
    ) -> Vec<ColumnCost> {
        let before = self.before();
        let known = |column: usize| {
            let (kind, cost) = before.get(column)?;
            (*kind == plans[column].kind()).then_some(*cost)
        };
        let costs = measure_columns(rows, columns, plans, partition_rows, known);
        lock(&self.0).columns =
            plans.iter().map(ColumnPlan::kind).zip(costs.iter().copied()).collect();
        costs
    }

    /// What is known for the next partition.
    fn before(&self) -> Vec<(PlanKind, ColumnCost)> {
        let mut last = lock(&self.0);
        last.partitions += 1;
        if last.partitions.is_power_of_two() { Vec::new() } else { last.columns.clone() }
    }
}

/// Measures the columns whose costs are not known; `partition_rows` is how many rows a partition is expected
/// to have.
fn measure_columns(
    rows: &Rows<'_>,
    columns: &[ColumnRules],
    plans: &[ColumnPlan],
    partition_rows: f64,
    known: impl Fn(usize) -> Option<ColumnCost>,
) -> Vec<ColumnCost> {
    let quote = columns.first().and_then(|rules| rules.fields.quote);
    let seen = look_at(rows.text, quote);
    let measure = |(column, (rules, plan)): (usize, (&ColumnRules, &ColumnPlan))| {
        known(column)
            .or_else(|| measure_column(rows, rules, plan, &seen, partition_rows))
            .unwrap_or_default()
    };
    columns.iter().zip(plans).enumerate().map(measure).collect()
}

/// What stands in a text; the quote is the same for all columns.
fn look_at(text: &[u8], quote: Option<u8>) -> Seen {
    let holds = |byte| memchr::memchr(byte, text).is_some();
    Seen {
        doubtful_utf8: std::str::from_utf8(text).is_err(),
        nul: holds(0),
        quote: quote.is_some_and(holds),
        ..Seen::default()
    }
}

fn measure_column(
    rows: &Rows<'_>,
    rules: &ColumnRules,
    plan: &ColumnPlan,
    seen: &Seen,
    partition_rows: f64,
) -> Option<ColumnCost> {
    let (count, timed) = (rows.count.min(ROWS_MAX), rows.count.min(ROWS_TIMED));
    let field = rules.field?;
    if count == 0 {
        return None;
    }
    let physical = rules.data_type.physical();
    let parser_as = |form: ColumnForm| {
        let mut parser = ColumnParser::new(rules.clone(), plan.clone(), Lexicon::new(physical));
        parser.read_as(form);
        parser
    };
    let read = |parser: &mut ColumnParser, count: usize| -> Option<FragmentColumn> {
        let mut bad = Vec::new();
        for first in (0..count).step_by(BLOCK_ROWS) {
            let part = rows.part(first, BLOCK_ROWS.min(count - first));
            if parser.parse(&part, field, seen, &mut bad).is_err() {
                parser.leave_codes();
                parser.parse(&part, field, seen, &mut bad).ok()?;
            }
        }
        parser.finish(0).ok()
    };
    // What was read once already: a partition meets its values once, and then for 50 fragments again.
    let time = |parser: &mut ColumnParser| -> Option<(f64, FragmentColumn)> {
        let started = thread_cpu_ns();
        let fragment = read(parser, timed)?;
        Some(((thread_cpu_ns() - started) as f64 / timed as f64, fragment))
    };
    let mut parser = parser_as(ColumnForm::Plain);
    let plain = read(&mut parser, count)?;
    let (plain_ns, _) = time(&mut parser)?;
    let mut parser = parser_as(ColumnForm::Planned);
    read(&mut parser, timed)?;
    let (mut placed_ns, placed) = time(&mut parser)?;
    let FragmentColumn::Plain(plain) = plain else { return None };
    let plain_bytes = plain_bytes(&plain) / count as f64;
    let placed_bytes = match &placed {
        FragmentColumn::Page(page) => page.bytes.len() as f64 / timed as f64,
        FragmentColumn::Plain(_) => plain_bytes,
        FragmentColumn::Codes { .. } => {
            placed_ns += PACK_NS;
            coded_bytes(&plain, partition_rows)
        }
    };
    Some(ColumnCost {
        client_placed_ns: placed_ns,
        client_plain_ns: plain_ns,
        server_placed_ns: 0.0,
        server_plain_ns: 0.0,
        placed_bytes,
        plain_bytes,
    })
}

/// Bytes of plain values on the wire.
fn plain_bytes(plain: &Plain) -> f64 {
    match &plain.values {
        Values::Int(v) => v.len() as f64 * 8.0,
        Values::Wide(v) => v.len() as f64 * 16.0,
        Values::Bytes(v) => v.bytes.len() as f64 + v.ends.len() as f64 * 4.0,
    }
}

/// Estimated bytes a row of codes and dictionary, in a partition of `rows` rows.
///
/// The sketch tells the distinct values after half the sample and after all of it. If they still grow,
/// they are taken to go on growing by this factor with each doubling (Heaps' law).
///
/// Source: seed 000, section 4.3.
fn coded_bytes(plain: &Plain, rows: f64) -> f64 {
    let count = plain.len();
    let mut sketch = HyperLogLog::default();
    let mut half = 1.0;
    let mut bytes = 0;
    for row in 0..count {
        if row == count / 2 {
            half = sketch.estimate().max(1.0);
        }
        sketch.insert(match &plain.values {
            Values::Int(v) => HyperLogLog::mix(v[row] as u64),
            Values::Wide(v) => HyperLogLog::mix(v[row] as u64 ^ (v[row] >> 64) as u64),
            Values::Bytes(v) => {
                bytes += v.get(row).len();
                v.get(row).chunks(8).fold(0, |hash, chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    HyperLogLog::mix(hash ^ u64::from_le_bytes(word))
                })
            }
        });
    }
    let distinct = sketch.estimate().max(1.0);
    let rows = rows.max(count as f64);
    let doublings = (rows / count as f64).log2();
    let growth = (distinct / half).clamp(1.0, 2.0);
    let distinct = (distinct * growth.powf(doublings)).min(rows);
    let value_bytes = match plain.values.physical() {
        Physical::Int => 4.0,
        Physical::Wide => 16.0,
        Physical::Bytes => bytes as f64 / count as f64,
    };
    f64::from(width_of(distinct as u64)) / 8.0 + distinct * value_bytes / rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_planned_as_before_are_measured_in_few_partitions() {
        let measured = Measured::default();
        let codes = ColumnPlan::Codes.kind();
        let known = |partition: usize| {
            let before = measured.before();
            lock(&measured.0).columns = vec![(codes, ColumnCost::default()); 3];
            (partition, before.len())
        };
        let found: Vec<_> = (1..=9).map(known).collect();
        let expected = [(1, 0), (2, 0), (3, 3), (4, 0), (5, 3), (6, 3), (7, 3), (8, 0), (9, 3)];
        assert_eq!(found, expected);
        assert_ne!(
            ColumnPlan::Numbers { repeats: true }.kind(),
            ColumnPlan::Numbers { repeats: false }.kind()
        );
        assert_ne!(ColumnPlan::PlainText.kind(), codes);
    }
}
