//! `--rejects table:NAME`: rejects go to a file first, which is loaded before the rows are published.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use coload::{Error, Result, Store, check_reject_table};
use coload_types::same_name;

use crate::args::RejectsTo;

/// Where a load's rejects go.
pub struct Rejects<'a> {
    /// The table that gets them.
    pub table: Option<&'a str>,
    /// The file that the load writes.
    pub file: Option<PathBuf>,
}

impl<'a> Rejects<'a> {
    /// Checks the table, and makes the file that only this user can read.
    ///
    /// # Errors
    /// `Invalid` when the table has other columns or is the one that is loaded, `Unavailable` when the
    /// file cannot be made.
    pub fn prepare(to: Option<&'a RejectsTo>, store: &Store, loaded: &str) -> Result<Self> {
        let table = match to {
            None => return Ok(Rejects { table: None, file: None }),
            Some(RejectsTo::File(path)) => {
                return Ok(Rejects { table: None, file: Some(path.clone()) });
            }
            Some(RejectsTo::Table(table)) => table,
        };
        if same_name(table, loaded) {
            return Err(Error::Invalid(format!(
                "--rejects table:{table} is the table that is loaded"
            )));
        }
        check_reject_table(store, table)?;
        /// Number of the next file of this process.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("coload-rejects-{}-{number}.csv", std::process::id());
        let path = std::env::temp_dir().join(name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| Error::io("create", &path, &e))?;
        Ok(Rejects { table: Some(table), file: Some(path) })
    }
}

impl Drop for Rejects<'_> {
    fn drop(&mut self) {
        if let (Some(_), Some(file)) = (self.table, &self.file) {
            // It lies where the system clears by itself what is left.
            let _ = std::fs::remove_file(file);
        }
    }
}
