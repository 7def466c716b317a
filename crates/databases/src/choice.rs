//! What a load is sent by, and why: estimates of all ways, of which the cheapest that is allowed is taken.

use std::sync::Arc;

use coload_input::InputSource;
use coload_load::{InputForm, Load};
use coload_types::{Error, Result};

use crate::costs::{Allowed, CostModel, Costs, Estimate, Policy, Unit, Way, Work, cheapest};
use crate::engine::{Connection, Engine, RowForm, TableColumn};
use crate::names::TableName;
use crate::options::{DatabaseOptions, Method};
use crate::probe::{WORTH_IT_US, probe};

/// Rows that a load is taken to have that does not say how many.
const ROWS_UNKNOWN: u64 = 1_000_000;
/// Bytes of text that a field is taken to have, with its separator, where no sample tells.
const FIELD_BYTES: f64 = 8.0;
/// Numbers of connections that are estimated.
const CONNECTIONS: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// Rows of a statement that are estimated.
const BATCHES: [usize; 3] = [10, 100, 1000];
/// Chunks into which a text is cut at least, as long as they are not too small: connections have work from the beginning
/// on, and all end at the same time.
const CHUNKS: u64 = 16;
/// Smallest chunk that this leads to.
const CHUNK_BYTES_MIN: u64 = 256 << 10;
/// Text of which a compressed byte is, about.
const TEXT_OF_COMPRESSED: u64 = 4;
/// Endings of names of compressed files.
const COMPRESSED: [&str; 8] = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".br", ".zip", ".tgz"];
/// Chunks that a connection holds at once, as text, as rows and on their way: no more connections than memory has room for.
const CHUNKS_OF_CONNECTION: usize = 4;

/// What is known of the rows before they are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Text, or what stands for it.
    bytes: Option<u64>,
    /// Bytes of a row of it.
    row_bytes: Option<f64>,
    /// Rows, where somebody counted them.
    rows: Option<u64>,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Most memory of the load.
    memory: u64,
}

impl Known {
    /// Whether there is more than one chunk, as far as anybody knows.
    pub fn has_chunks(&self) -> bool {
        self.bytes.is_none_or(|bytes| bytes > self.chunk_bytes)
    }

    /// What a load tells.
    pub fn of(load: Load<'_>) -> Self {
        let request = load.request;
        let bytes = |input: coload_input::InputFile| {
            let bytes = match input.source {
                InputSource::File { identity, .. } => identity.bytes,
                InputSource::Object(object) => object.bytes(),
                _ => return None,
            };
            let is_compressed = COMPRESSED.iter().any(|ending| input.name.ends_with(ending))
                || matches!(request.form, InputForm::Parquet | InputForm::Avro);
            Some(if is_compressed { bytes.saturating_mul(TEXT_OF_COMPRESSED) } else { bytes })
        };
        let bytes = match &request.stream {
            // A short pipe was read to its end to look at it.
            Some(stream) => stream.whole_bytes(),
            None => request.inputs.iter().map(bytes).sum::<Option<u64>>(),
        };
        let given = load.resources.chunk_bytes as u64;
        let chunk_bytes = match bytes.filter(|_| request.form == InputForm::Text) {
            Some(bytes) => given.min((bytes / CHUNKS).max(CHUNK_BYTES_MIN)),
            None => given,
        };
        let source = request.source.as_ref();
        let counted = source.and_then(|source| source.row_bytes()).map(|bytes| bytes as f64);
        let sampled = request.record.map(|record| record.text_bytes() as f64);
        let rows = source.and_then(|source| source.rows());
        let memory = load.resources.memory as u64;
        Known { bytes, row_bytes: counted.or(sampled), rows, chunk_bytes, memory }
    }

    /// The work of sending rows of so many columns.
    fn work(&self, columns: usize, unit: Unit) -> Work {
        let row_bytes = self.row_bytes.unwrap_or(columns as f64 * FIELD_BYTES).max(1.0);
        let told = self.bytes.map(|bytes| (bytes as f64 / row_bytes).ceil() as u64);
        let rows = self.rows.or(told).unwrap_or(ROWS_UNKNOWN);
        let text = self.bytes.unwrap_or((rows as f64 * row_bytes) as u64);
        let chunks = text.div_ceil(self.chunk_bytes).max(1);
        Work { rows, columns, row_bytes, chunks, unit, commits_wait: true }
    }

    /// Connections that memory has room for.
    fn room(&self) -> usize {
        let each = self.chunk_bytes.saturating_mul(CHUNKS_OF_CONNECTION as u64).max(1);
        usize::try_from(self.memory / each).unwrap_or(usize::MAX).max(1)
    }
}

/// What was chosen.
pub struct Choice {
    /// How rows are sent.
    pub way: Way,
    /// The form of rows.
    pub form: Arc<dyn RowForm>,
    /// What was estimated.
    pub estimates: Vec<Estimate>,
    /// Most connections that there may be while the load runs.
    pub connections_most: usize,
    /// Why, a line each.
    pub because: Vec<String>,
}

/// What decides.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The engine.
    pub engine: &'a dyn Engine,
    /// What was asked for.
    pub options: &'a DatabaseOptions,
    /// The table, beside which a probe makes its own.
    pub table: &'a TableName,
    /// Columns of it that are loaded.
    pub columns: &'a [TableColumn],
    /// What is known of the rows.
    pub known: Known,
    /// What is one transaction.
    pub unit: Unit,
    /// Whether a load that was killed goes on by comparing its chunks: the form of rows must be the same each time.
    pub goes_on: bool,
    /// Whether each commit waits until it is durable, and not only the last.
    pub commits_wait: bool,
}

/// Chooses; `on` may be asked for a probe, if the load is long enough.
///
/// # Errors
/// `Invalid` when the method that was asked for does not take the columns, or none does.
pub fn choose(question: Question<'_>, on: &mut dyn Connection, connect_us: f64) -> Result<Choice> {
    let Question { engine, options, known, unit, columns, .. } = question;
    let mut because = Vec::new();
    let methods = methods(question, on, &mut because)?;
    let work = Work { commits_wait: question.commits_wait, ..known.work(columns.len(), unit) };
    let most = match (unit, options.connections) {
        (Unit::Load, _) => 1,
        (Unit::Chunk, Some(count)) => count.max(1),
        (Unit::Chunk, None) => {
            let chunks = usize::try_from(work.chunks).unwrap_or(usize::MAX);
            CONNECTIONS[CONNECTIONS.len() - 1].min(chunks).min(known.room())
        }
    };
    let given = unit == Unit::Load || options.connections.is_some();
    let connections: Vec<usize> = match given {
        true => vec![most],
        false => CONNECTIONS.into_iter().filter(|count| *count <= most).collect(),
    };
    let batches = options.batch_rows.map_or(BATCHES.to_vec(), |rows| vec![rows]);
    let allowed = Allowed { methods, connections, batches };
    let (mut costs, origin) = match &options.tuning {
        Some(tuning) => (tuning.costs.clone(), format!("tuning of {}", tuning.server)),
        None => {
            let mut costs = engine.priors();
            costs.round_trip_us = on.round_trip().as_secs_f64() * 1e6;
            costs.connect_us = connect_us;
            (costs, "figures of another server with the round trip of this one".to_owned())
        }
    };
    because.push(format!(
        "estimated with {origin}: {:.0} us a round trip, {:.0} us to connect, {:.0} us a commit",
        costs.round_trip_us, costs.connect_us, costs.commit_us
    ));
    let mut estimates = estimate(&costs, &work, &allowed);
    let best = chosen(options, &allowed, &estimates)?;
    let is_open = options.method.is_none() || !given;
    if best.time_us > WORTH_IT_US && options.tuning.is_none() && is_open {
        match probe(engine, on, question.table, (&allowed.methods, &work), &mut costs) {
            Ok(told) => because.push(told),
            Err(error) => because.push(format!("no probe: {error}")),
        }
        estimates = estimate(&costs, &work, &allowed);
    }
    let best = chosen(options, &allowed, &estimates)?;
    because.push(told(question, &work, best, most));
    let form = engine.form(best.way.method, columns)?.into();
    Ok(Choice { way: best.way, form, estimates, connections_most: most, because })
}

fn estimate(costs: &Costs, work: &Work, allowed: &Allowed) -> Vec<Estimate> {
    CostModel { costs: costs.clone() }.estimates(work, allowed)
}

/// The cheapest of the estimates that may be taken without being asked for, or of the method that was.
fn chosen(
    options: &DatabaseOptions,
    allowed: &Allowed,
    estimates: &[Estimate],
) -> Result<Estimate> {
    let may = |method: Method| match options.method {
        Some(given) => method == given,
        // Rows of it are there one by one.
        None => method != Method::InsertAutocommit,
    };
    let open: Vec<Estimate> = estimates.iter().filter(|e| may(e.way.method)).copied().collect();
    if let Some(best) = cheapest(&open) {
        return Ok(best);
    }
    // What was not measured, as a tuning may lack it, is taken in the engine's order.
    let method = allowed.methods.iter().copied().find(|method| may(*method));
    let method = method.ok_or_else(|| Error::Invalid("no method takes these columns".into()))?;
    let batch = allowed.batches.last().copied().unwrap_or(1);
    let way = Way {
        method,
        connections: allowed.connections.first().copied().unwrap_or(1),
        batch_rows: if method.has_batches() { batch } else { 0 },
    };
    Ok(Estimate { way, time_us: 0.0 })
}

/// The methods that server and columns allow; why others do not is told.
fn methods(
    question: Question<'_>,
    on: &dyn Connection,
    because: &mut Vec<String>,
) -> Result<Vec<Method>> {
    let Question { engine, options, columns, .. } = question;
    if let Some(method) = options.method {
        if !engine.methods().contains(&method) {
            let names: Vec<&str> = engine.methods().iter().map(|method| method.name()).collect();
            return Err(Error::Invalid(format!(
                "--method {}: this engine has {}",
                method.name(),
                names.join(", ")
            )));
        }
        engine.form(method, columns)?;
    }
    let lacks = on.lacks();
    let (mut methods, mut last) = (Vec::new(), None);
    for method in engine.methods() {
        match (&lacks, engine.form(*method, columns)) {
            (Some((lacking, why)), _) if lacking == method && options.method != Some(*method) => {
                because.push(format!("not {}: {why}", method.name()));
            }
            (_, Ok(_)) => methods.push(*method),
            (_, Err(Error::Invalid(why))) => {
                because.push(format!("not {}: {why}", method.name()));
                last = Some(why);
            }
            (_, Err(error)) => return Err(error),
        }
    }
    if let Some(first) = methods.first().copied()
        && question.goes_on
        && options.method.is_none()
    {
        methods.retain(|method| engine.is_same_form(*method, first));
    }
    match (methods.is_empty(), last) {
        (true, Some(why)) => Err(Error::Invalid(why)),
        _ => Ok(methods),
    }
}

fn told(question: Question<'_>, work: &Work, best: Estimate, most: usize) -> String {
    let Question { options, known, unit, .. } = question;
    let Way { method, connections, .. } = best.way;
    let rows = match known.bytes.or(known.rows) {
        Some(_) => format!("for some {} rows of {:.0} bytes", work.rows, work.row_bytes),
        None => "as for a million rows, for nobody knows how many come".to_owned(),
    };
    let by = if options.method.is_some() { "as given" } else { "estimated to be the cheapest" };
    let connections = match (unit, options.connections) {
        (Unit::Load, _) => "1 connection: all rows are one transaction".to_owned(),
        (_, Some(_)) => "connections as given".to_owned(),
        (..) if most == 1 => "1 connection: there is one chunk".to_owned(),
        (..) => format!("{connections} connections at first, {most} at most"),
    };
    format!("{}: {by}, {:.1} ms {rows}; {connections}", method.name(), best.time_us / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(bytes: Option<u64>, row_bytes: Option<f64>) -> Known {
        Known { bytes, row_bytes, rows: None, chunk_bytes: 1 << 20, memory: 64 << 20 }
    }

    #[test]
    fn rows_are_those_that_the_bytes_say() {
        let work = known(Some(10_000), Some(100.0)).work(3, Unit::Chunk);
        assert_eq!((work.rows, work.chunks, work.columns), (100, 1, 3));
        // Without a sample fields are short.
        assert_eq!(known(Some(10_000), None).work(2, Unit::Chunk).rows, 625);
        assert_eq!(known(Some(0), None).work(2, Unit::Chunk).rows, 0);
        let large = known(Some(64 << 20), Some(64.0)).work(1, Unit::Load);
        assert_eq!((large.rows, large.chunks), (1 << 20, 64));
        assert_eq!(known(None, Some(1000.0)).work(1, Unit::Chunk).rows, ROWS_UNKNOWN);
        let counted = Known { rows: Some(7), ..known(None, Some(1e6)) };
        assert_eq!(
            (counted.work(1, Unit::Chunk).rows, counted.work(1, Unit::Chunk).chunks),
            (7, 7)
        );
    }

    #[test]
    fn memory_bounds_connections() {
        assert_eq!(known(None, None).room(), 16);
        assert_eq!(Known { memory: 1, ..known(None, None) }.room(), 1);
        assert_eq!(Known { chunk_bytes: u64::MAX, ..known(None, None) }.room(), 1);
    }
}
