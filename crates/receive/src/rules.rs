//! The rules of a table (CHECK), asked of each partition before it is acknowledged: the client asks them too, and tells
//! which record breaks one, but a server cannot know that it did.
//!
//! Cost: nothing where a table has no rules; else the columns that these look at are decoded once more.

use std::path::Path;

use coload_ddl::{Check, CheckedColumn};
use coload_store::{LoadTarget, SegmentFile};
use coload_types::{Error, Plain, Result};

/// The rules of the table that a load goes to.
#[derive(Debug)]
pub struct Rules {
    checks: Vec<Check>,
    /// Columns that some rule looks at.
    used: Vec<usize>,
    table: String,
}

impl Rules {
    /// The rules that a load says it keeps; without those of the table it is not begun.
    pub fn new(target: &LoadTarget) -> Self {
        let checks = target.schema.checks().to_vec();
        let used = |column: &usize| checks.iter().any(|check| check.columns().contains(column));
        let used = (0..target.schema.len()).filter(used).collect();
        Rules { checks, used, table: target.name.clone() }
    }

    /// Checks the rows of a segment.
    ///
    /// # Errors
    /// `Invalid` that names a rule which a row breaks, `Corrupt` when the segment is damaged.
    pub fn verify(&self, path: &Path) -> Result<()> {
        if self.checks.is_empty() {
            return Ok(());
        }
        let segment = SegmentFile::open(path)?;
        for (page, rows) in segment.page_rows().iter().enumerate() {
            let mut columns: Vec<Option<Plain>> = vec![None; segment.column_count()];
            for column in &self.used {
                let mut plain = Plain::empty(segment.physical(*column));
                segment.decode_page(*column, page, &mut plain)?;
                columns[*column] = Some(plain);
            }
            let views: Vec<Option<CheckedColumn<'_>>> =
                columns.iter().map(|plain| plain.as_ref().map(CheckedColumn::Plain)).collect();
            let breaks = |check: &&Check| !check.broken(&views, *rows as usize).is_empty();
            if let Some(check) = self.checks.iter().find(breaks) {
                return Err(Error::Invalid(format!(
                    "a row that was sent breaks {} of table {}, which its client should have set aside (update \
                     the client)",
                    check.sql(),
                    self.table
                )));
            }
        }
        Ok(())
    }
}
