//! Rows of an answer on their way to the client, all at once or some at a time.

use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::RecordBatch;
use tokio::time::{Instant, sleep_until};

use super::copy::{CopyForm, CopyFormat};
use super::fault::{Fault, code};
use super::kinds::Column;
use super::values::Values;
use super::wire::{Ended, Wire};
use crate::flight::{Outgoing, Receiver};

/// Rows of which some may have been sent.
pub(super) struct Rows {
    from: Source,
    columns: Vec<Column>,
    /// The rows that come next, from which one on.
    batch: Option<(RecordBatch, usize)>,
    /// When the statement has run for too long.
    until: Option<Instant>,
}

enum Source {
    Statement(Receiver),
    /// Nothing beside the batch that is there.
    Nothing,
}

/// How rows are said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said<'a> {
    Rows,
    Copy(&'a CopyForm),
}

/// Whether there may be more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Maybe,
    No,
}

impl Rows {
    /// Of a statement that runs.
    pub fn of_statement(receiver: Receiver, columns: Vec<Column>, until: Option<Instant>) -> Self {
        Rows { from: Source::Statement(receiver), columns, batch: None, until }
    }

    /// Rows that are there.
    pub fn of_batch(batch: RecordBatch, columns: Vec<Column>) -> Self {
        Rows { from: Source::Nothing, columns, batch: Some((batch, 0)), until: None }
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Sends at most so many rows and tells how many.
    ///
    /// # Errors
    /// What ended the statement, or the connection.
    pub async fn send(
        &mut self,
        wire: &mut Wire,
        rows_max: Option<u64>,
        said: Said<'_>,
    ) -> Result<(u64, More), Ended> {
        let mut sent = 0;
        loop {
            if rows_max.is_some_and(|max| sent >= max) {
                return Ok((sent, More::Maybe));
            }
            let Some((batch, from)) = self.next(wire).await? else { return Ok((sent, More::No)) };
            let left = batch.num_rows() - from;
            let count = rows_max.map_or(left, |max| left.min((max - sent) as usize));
            self.put(wire, &batch, from..from + count, said).await?;
            sent += count as u64;
            if count < left {
                self.batch = Some((batch, from + count));
            }
        }
    }

    /// Goes over at most so many rows and tells how many.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn pass(&mut self, wire: &mut Wire, rows_max: Option<u64>) -> Result<u64, Ended> {
        let mut passed = 0;
        while rows_max.is_none_or(|max| passed < max) {
            let Some((batch, from)) = self.next(wire).await? else { break };
            let left = (batch.num_rows() - from) as u64;
            let count = rows_max.map_or(left, |max| left.min(max - passed));
            passed += count;
            if count < left {
                self.batch = Some((batch, from + count as usize));
            }
        }
        Ok(passed)
    }

    /// The rows that come next, and the first of them that was not sent.
    async fn next(&mut self, wire: &mut Wire) -> Result<Option<(RecordBatch, usize)>, Ended> {
        if let Some(batch) = self.batch.take() {
            return Ok(Some(batch));
        }
        let Source::Statement(receiver) = &mut self.from else { return Ok(None) };
        let next = tokio::select! {
            biased;
            next = receiver.next() => next,
            () = wire.gone() => return Err(Ended::Gone),
            () = passed(self.until) => return Err(too_long().into()),
        };
        match next {
            Some(Outgoing::Rows(batch)) => Ok(Some((batch, 0))),
            Some(Outgoing::End) => {
                self.from = Source::Nothing;
                Ok(None)
            }
            Some(Outgoing::Failed(status)) => Err(Fault::from(status).into()),
            None => {
                Err(Fault::error(code::INTERNAL, "internal error: the statement broke off").into())
            }
        }
    }

    async fn put(
        &self,
        wire: &mut Wire,
        batch: &RecordBatch,
        rows: std::ops::Range<usize>,
        said: Said<'_>,
    ) -> Result<(), Ended> {
        /// Rows after which it is looked whether it is worth to send.
        const STEP: usize = 256;
        for start in rows.clone().step_by(STEP) {
            let part = batch.slice(start, STEP.min(rows.end - start));
            put_rows(wire, &part, &self.columns, said)?;
            wire.send_some().await?;
        }
        Ok(())
    }
}

fn put_rows(
    wire: &mut Wire,
    batch: &RecordBatch,
    columns: &[Column],
    said: Said<'_>,
) -> Result<(), Fault> {
    let pairs = batch.columns().iter().zip(columns);
    let values = pairs.map(|(array, column)| Values::new(array, column.kind, column.format));
    let values = values.collect::<coload_types::Result<Vec<_>>>()?;
    let writers = values.iter().map(Values::writer);
    let mut writers = writers.collect::<coload_types::Result<Vec<_>>>()?;
    let mut field = BytesMut::new();
    for row in 0..batch.num_rows() {
        match said {
            Said::Rows => wire.replies.row(writers.len(), |out| {
                writers.iter_mut().try_for_each(|writer| writer.push(row, out))
            })?,
            Said::Copy(form) if form.format == CopyFormat::Binary => {
                wire.replies.copy_piece(|out| {
                    out.put_i16(writers.len() as i16);
                    writers.iter_mut().try_for_each(|writer| writer.push(row, out))
                })?
            }
            Said::Copy(form) => wire.replies.copy_row(|line| {
                for (index, writer) in writers.iter_mut().enumerate() {
                    field.clear();
                    let is_there = writer.put_if_any(row, &mut field)?;
                    form.put(index == 0, is_there.then_some(&field[..]), line);
                }
                coload_types::Result::Ok(())
            })?,
        }
    }
    Ok(())
}

/// Waits for an instant; for ever if there is none.
pub(super) async fn passed(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => futures::future::pending().await,
    }
}

/// The fault of a statement that ran for longer than its client wants.
pub(super) fn too_long() -> Fault {
    Fault::error(
        code::CANCELLED,
        "the statement ran for longer than its statement_timeout and was ended",
    )
}
