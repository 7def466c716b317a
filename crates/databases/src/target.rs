//! The target of a load: rows to the queue of the connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_ddl::CheckedColumn;
use coload_load::{
    Ahead, AheadColumn, FragmentRows, MadeRows, RowBytes, TakesRows, Target, Work, Works,
};
use coload_source::LeftOut;
use coload_threads::{Step, StepClock};
use coload_transform::PartitionColumn;
use coload_types::{Error, Result};
use coload_wire::Seal;

use crate::crew::Crew;
use crate::engine::{Connection, RowForm};
use crate::sender::Sending;

/// Rows to a table of a database.
pub struct Rows {
    form: Arc<dyn RowForm>,
    crew: Arc<Crew>,
}

impl Rows {
    /// Rows in this form, sent by these.
    pub fn new(form: Arc<dyn RowForm>, crew: Arc<Crew>) -> Self {
        Rows { form, crew }
    }

    /// What was sent, and refused.
    pub fn sending(&self) -> &Sending {
        &self.crew.sending
    }

    /// Who sends.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// The connections, when all rows are sent.
    pub fn take_connections(&self) -> Vec<Box<dyn Connection>> {
        self.crew.take_idle()
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // Threads that wait for rows end; one that waits for the server is left alone.
        self.sending().queue.fail(Error::Unavailable("the load has ended".into()));
    }
}

impl TakesRows for Rows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>> {
        Ok(Box::new(self.form.make_rows(columns, rows)?))
    }

    fn left_out(&self, _: usize) -> Vec<LeftOut> {
        Vec::new()
    }
}

impl Target for Rows {
    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        for rows in rows_of(ahead)? {
            self.sending().queue.push(rows)?;
        }
        Ok(Works::new())
    }

    fn take_column(&self, _: usize, _: usize, _: &[u32], _: PartitionColumn) -> Result<()> {
        Err(columns_of_rows())
    }

    fn seal(&self, _: Seal) -> Result<Works> {
        Ok(Works::new())
    }

    fn end(&self) -> Result<Works> {
        self.sending().queue.end();
        Ok(vec![Box::new(Wait { crew: Arc::clone(&self.crew) })])
    }

    fn rows(&self) -> u64 {
        self.sending().counts.rows.load(Ordering::Relaxed)
    }
}

fn rows_of(ahead: Ahead) -> Result<impl Iterator<Item = FragmentRows<RowBytes>>> {
    let rows = ahead.columns.into_iter().map(|column| match column {
        AheadColumn::Rows(rows) => rows.into_form(),
        AheadColumn::Page(_) | AheadColumn::Values { .. } => Err(columns_of_rows()),
    });
    Ok(rows.collect::<Result<Vec<_>>>()?.into_iter())
}

fn columns_of_rows() -> Error {
    Error::Corrupt("columns for a database, which takes rows".into())
}

/// The end of a load: what is on the way arrives.
struct Wait {
    crew: Arc<Crew>,
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wait")
    }
}

impl Work for Wait {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        clock.time(Step::Write, || self.crew.wait());
        match self.crew.sending.queue.failure() {
            Some(error) => Err(error),
            None => Ok(Works::new()),
        }
    }
}

/// Leaves out the rows that were refused, when the inputs are read again, and keeps no other.
#[derive(Debug)]
pub struct Settled {
    refused: BTreeMap<usize, Vec<LeftOut>>,
    rows: AtomicU64,
}

impl Settled {
    /// These rows were refused, by their chunks.
    pub fn new(refused: BTreeMap<usize, Vec<LeftOut>>) -> Self {
        Settled { refused, rows: AtomicU64::new(0) }
    }
}

impl TakesRows for Settled {
    fn make_rows(&self, _: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>> {
        Ok(Box::new(RowBytes { bytes: Vec::new(), ends: vec![0; rows] }))
    }

    fn left_out(&self, chunk: usize) -> Vec<LeftOut> {
        self.refused.get(&chunk).cloned().unwrap_or_default()
    }
}

impl Target for Settled {
    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        for rows in rows_of(ahead)? {
            self.rows.fetch_add(rows.rows.len() as u64, Ordering::Relaxed);
        }
        Ok(Works::new())
    }

    fn take_column(&self, _: usize, _: usize, _: &[u32], _: PartitionColumn) -> Result<()> {
        Err(columns_of_rows())
    }

    fn seal(&self, _: Seal) -> Result<Works> {
        Ok(Works::new())
    }

    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}
