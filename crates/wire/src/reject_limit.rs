//! How many records a load may leave out.

use coload_store::{ShareOf, SharesTotal};
use coload_types::{Error, Result};

/// How many records may be rejected before the load fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RejectLimit {
    /// At most this many.
    Count(u64),
    /// At most this share of the records, in percent; checked at the end.
    Percent(f64),
}

impl RejectLimit {
    /// Reads `N` or `P%`.
    ///
    /// # Errors
    /// `Invalid` when it is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Invalid(format!(
                "--max-rejects \"{text}\": expected a count or a share such as 0.1%"
            ))
        };
        match text.strip_suffix('%') {
            Some(share) => {
                let share: f64 = share.trim().parse().map_err(|_| wrong())?;
                (0.0..=100.0)
                    .contains(&share)
                    .then_some(RejectLimit::Percent(share))
                    .ok_or_else(wrong)
            }
            None => text.parse().map(RejectLimit::Count).map_err(|_| wrong()),
        }
    }

    /// Checks the rejects of all shares of a load, before they are published.
    ///
    /// # Errors
    /// `Invalid` when they are too many.
    pub fn check_shares(self, of: ShareOf, total: SharesTotal) -> Result<()> {
        let SharesTotal { rows, rejects } = total;
        if !self.is_over(rejects, rows.saturating_add(rejects)) {
            return Ok(());
        }
        let limit = match self {
            RejectLimit::Count(limit) => limit.to_string(),
            RejectLimit::Percent(share) => format!("{share}%"),
        };
        Err(Error::Invalid(format!(
            "the shares of load {} have {rejects} rejects together, over --max-rejects {limit}; nothing was loaded (drop \
             the load with coload loads --abort {0}, and begin it anew)",
            of.load
        )))
    }

    /// Whether so many rejects are too many.
    pub fn is_over(self, rejects: u64, records: u64) -> bool {
        match self {
            RejectLimit::Count(limit) => rejects > limit,
            RejectLimit::Percent(share) => rejects as f64 > records as f64 * share / 100.0,
        }
    }
}
