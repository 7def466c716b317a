//! What is counted while a load runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, atomic::AtomicU64};

use coload_wire::PartitionAccount;

use crate::account::Account;
use crate::hooks::Progress;

/// Who counts rows, rejects and bytes.
pub struct Books {
    /// Rows, rejects and bytes of each input, in their order.
    pub account: Mutex<Account>,
    /// For a target that wants accounts: what became of the records of those that are not sealed yet.
    pub receipts: Mutex<BTreeMap<usize, PartitionAccount>>,
    /// How far the load is.
    pub progress: Progress,
    /// Rows that a filter left out.
    pub filtered: AtomicU64,
    /// CPU nanoseconds of the program that filters and makes columns.
    pub program_ns: AtomicU64,
}

impl Books {
    /// Goes on with what the legs before counted.
    pub fn new(account: Account, progress: Progress) -> Self {
        Books {
            account: Mutex::new(account),
            receipts: Mutex::default(),
            progress,
            filtered: AtomicU64::new(0),
            program_ns: AtomicU64::new(0),
        }
    }

    /// What the next leg goes on with.
    pub fn into_parts(self) -> (Account, Progress) {
        (self.account.into_inner().unwrap_or_else(|e| e.into_inner()), self.progress)
    }
}
