//! Publishes a load, and tells before that the records of rows that are left out for their keys.
//!
//! ```text
//!   ready -> rows whose keys are there -> none: published
//!                                      -> some: the inputs are read again, these records are rejects -> published
//!                                      -> others came meanwhile: once more
//! ```
//!
//! The rejects of a load are those of the version that it is published on, whoever else writes.

use coload_ddl::Key;
use coload_store::{ConflictingRow, ReadyLoad, Settled, Shown, Store};
use coload_threads::{Step, StepClock};
use coload_types::{Error, Result};

use crate::account::Account;
use crate::into_store::ready_rejects;
use crate::legs::ReadInputs;
use crate::load::Load;
use crate::target::Rejecting;

/// How often others may change the table while the records of a load are told.
pub const ATTEMPTS_MAX: usize = 20;

/// Publishes a load of the last types, with it those beside it and the rejects that go into a table; `account` is that of its
/// rows then.
///
/// # Errors
/// Those of [`ReadyLoad::publish_settled`]; `Input` with the place of the first record that is over the limit of rejects.
pub fn publish_settled(
    store: &Store,
    load: Load<'_>,
    (mut ready, mut beside): (ReadyLoad, Vec<ReadyLoad>),
    inputs: Option<&dyn ReadInputs>,
    (account, clock): (&mut Account, &StepClock),
) -> Result<Shown> {
    for attempt in 0..ATTEMPTS_MAX {
        let rows = clock.time(Step::Write, || ready.find_rejects())?;
        let mut again = match (inputs, ready.key()) {
            (Some(inputs), Some(key)) if !rows.is_empty() => {
                Some(tell(load, inputs, (&rows, key), account)?)
            }
            _ => None,
        };
        let told = again.as_mut().unwrap_or(account);
        let rejects = told.files().iter().map(|file| file.rejects).sum();
        ready.set_rejects(rejects);
        let rejected = match (&load.request.rejects_table, told.output_path()) {
            (Some(table), Some(path)) if rejects > 0 => {
                Some(ready_rejects(store, path, table, load)?)
            }
            _ => None,
        };
        if let Some(confirm) = load.hooks.confirm.as_ref().filter(|_| attempt == 0) {
            confirm()?;
        }
        let loads_beside = beside.len();
        let others = beside.into_iter().chain(rejected);
        match clock.time(Step::Write, || ready.publish_settled(others))? {
            Settled::Shown(shown) => {
                if let Some(again) = again {
                    *account = again;
                }
                return Ok(shown);
            }
            Settled::Moved(moved, mut others) => {
                // The rejects are others now.
                others.truncate(loads_beside);
                (ready, beside) = (*moved, others);
            }
        }
    }
    Err(changed_meanwhile(&load.request.table))
}

/// The error of a load whose rejects were others each time when they were told.
pub fn changed_meanwhile(table: &str) -> Error {
    Error::Unavailable(format!(
        "others changed table {table} {ATTEMPTS_MAX} times while the records were told whose keys are there; nothing was loaded"
    ))
}

/// The account of a load of which some rows are rejects.
fn tell(
    load: Load<'_>,
    inputs: &dyn ReadInputs,
    (rows, key): (&[ConflictingRow], &Key),
    before: &Account,
) -> Result<Account> {
    let schema = &load.request.schema;
    let target = Rejecting::new(rows, before.chunk_rows(), (schema, key));
    let told = inputs.read_again(load, &target)?.account;
    let rows_of = |account: &Account| account.files().iter().map(|file| file.rows).sum::<u64>();
    if rows_of(&told) + rows.len() as u64 != rows_of(before) {
        return Err(Error::Corrupt(
            "inputs have other records when they are read again; nothing was loaded".into(),
        ));
    }
    Ok(told)
}
