//! Tells the records of a load of several workers that are left out for their keys.
//!
//! Which they are is known when all shares are there, by the numbers of their rows, and who read them may be gone. Shares of such a load
//! have the inputs in their order ([`crate::splits`]), so that rows are numbered as those of one process that reads all. The worker
//! that publishes does that: it reads all inputs again, and has the account of the whole load then, with the rejects of all workers.
//!
//! Cost: two parses of all inputs, one to count the rows of chunks and one to tell; nothing is stored. Only for loads with such rows.

use std::path::{Path, PathBuf};

use coload_ddl::Key;
use coload_store::ConflictingRow;
use coload_types::{Error, Result};

use crate::account::Account;
use crate::legs::read_again;
use crate::load::Load;
use crate::report::LoadReport;
use crate::request::LoadRequest;
use crate::target::Rejecting;

/// What the name of the file of rejects of the whole load ends with, behind that of the worker.
const OF_LOAD: &str = ".load";

/// The file of the rejects of all of a load, by that of a worker.
pub fn file_of_load(own: &Path) -> PathBuf {
    if std::fs::metadata(own).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        // A pipe or a device.
        return own.to_owned();
    }
    let mut name = own.as_os_str().to_owned();
    name.push(OF_LOAD);
    PathBuf::from(name)
}

/// The account of all of the load of a share, of whose `all` rows these are rejects. Its file of rejects has its name when this returns.
///
/// # Errors
/// Those of a load; `Input` with the place of the first record that is over the limit of rejects; `Unavailable` when the inputs are others
/// now.
pub fn tell_of_load(
    load: Load<'_>,
    (rows, key): (&[ConflictingRow], &Key),
    all: u64,
) -> Result<Account> {
    let Some(whole) = &load.request.whole else {
        return Err(Error::Corrupt("a share that does not know the inputs of its load".into()));
    };
    // With the rules of the table, and at the time when the first share began.
    let schema = load.request.schema.clone();
    let mut request = LoadRequest { schema, ..LoadRequest::clone(whole) };
    request.begin_at(load.request.began_us)?;
    let of_table = (&request.schema, key);
    let counted = {
        let request = LoadRequest { rejects_file: None, ..request.clone() };
        let nothing = Rejecting::new(&[], &[], of_table);
        read_again(load.with_request(&request), &nothing)?.account
    };
    let rows_of = |account: &Account| account.files().iter().map(|file| file.rows).sum::<u64>();
    let target = Rejecting::new(rows, counted.chunk_rows(), of_table);
    let mut told = match rows_of(&counted) == all {
        true => read_again(load.with_request(&request), &target)?.account,
        false => counted,
    };
    if rows_of(&told) + rows.len() as u64 != all {
        return Err(Error::Unavailable(
            "inputs have other records when they are read again; nothing was loaded".into(),
        ));
    }
    // Before the load is published: who comes after a crash tells its records again.
    told.take_output().map_or(Ok(()), |output| output.commit())?;
    Ok(told)
}

/// Gives a report the first rejects of all of the load.
pub fn put_told(report: &mut LoadReport, mut told: Account) {
    report.reject_kinds = told.take_kinds();
    report.rejects = told.into_files().1;
}
