//! What became of each input. There may be a million of them, so their reports are made when they are asked for: what is
//! held is the list of the inputs, which the load has anyway, and some counts.
//!
//! Cost: 40 bytes an input.

use std::collections::BTreeMap;

use coload_input::Inputs;
use coload_source::{Mended, Mending};

/// What became of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Name of the input, as it was given.
    pub name: String,
    /// Bytes read, as they are stored.
    pub bytes: u64,
    /// Bytes of text up to the last record; other than `bytes` where the input is compressed.
    pub text_bytes: u64,
    /// Records read: loaded, rejected and left out by a filter.
    pub records: u64,
    /// Records of these that became rows of the table.
    pub rows: u64,
    /// Records of these that were set aside.
    pub rejects: u64,
    /// Records left out by a filter.
    pub filtered: u64,
    /// Rows that were mended, by kind; their lines are those of the input, the first being 1.
    pub mended: Mended,
}

impl FileReport {
    /// Whether a row was mended.
    pub fn has_mended(&self) -> bool {
        self.mended != Mended::default()
    }
}

/// What was counted of an input: what its report has beside its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Bytes that were read, as they are stored.
    pub bytes: u64,
    /// Bytes of text up to the last record.
    pub text_bytes: u64,
    /// Records that became rows of the table.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
    /// Records left out by a filter.
    pub filtered: u64,
}

impl FileCounts {
    /// Records that were read: rows, rejects, and those that a filter left out.
    pub fn records(&self) -> u64 {
        self.rows.saturating_add(self.rejects).saturating_add(self.filtered)
    }
}

/// The reports of inputs, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileReports {
    inputs: Inputs,
    counts: Vec<FileCounts>,
    /// What was mended, in inputs where something was.
    mended: BTreeMap<usize, Mended>,
}

impl FileReports {
    /// The reports of the first inputs, as many as were counted.
    pub(crate) fn new(
        inputs: Inputs,
        mut counts: Vec<FileCounts>,
        mended: BTreeMap<usize, Mended>,
    ) -> Self {
        counts.truncate(inputs.len());
        FileReports { inputs, counts, mended }
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The report of an input, if there is one of that number.
    pub fn get(&self, number: usize) -> Option<FileReport> {
        let counts = self.counts.get(number)?;
        Some(FileReport {
            name: self.inputs.name(number),
            bytes: counts.bytes,
            text_bytes: counts.text_bytes,
            records: counts.records(),
            rows: counts.rows,
            rejects: counts.rejects,
            filtered: counts.filtered,
            mended: self.mended.get(&number).cloned().unwrap_or_default(),
        })
    }

    /// The reports, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = FileReport> + '_ {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// What was counted of each.
    pub fn counts(&self) -> &[FileCounts] {
        &self.counts
    }

    /// Inputs with rows that were mended: their names, and what was mended.
    pub fn with_mended(&self) -> impl Iterator<Item = (String, &Mended)> + '_ {
        self.mended.iter().map(|(number, mended)| (self.inputs.name(*number), mended))
    }

    /// What was mended in each input, up to the last in which something was.
    pub fn mended_in_order(&self) -> Vec<Mended> {
        let count = self.mended.last_key_value().map_or(0, |(last, _)| last + 1);
        (0..count).map(|number| self.mended.get(&number).cloned().unwrap_or_default()).collect()
    }

    /// Bytes of all inputs that were read, as they are stored.
    pub fn bytes(&self) -> u64 {
        self.sum(|counts| counts.bytes)
    }

    /// Records of all inputs that were read.
    pub fn records(&self) -> u64 {
        self.sum(FileCounts::records)
    }

    /// Records of all inputs that became rows.
    pub fn rows(&self) -> u64 {
        self.sum(|counts| counts.rows)
    }

    /// Records of all inputs that were set aside.
    pub fn rejects(&self) -> u64 {
        self.sum(|counts| counts.rejects)
    }

    /// Records left out by a filter.
    pub fn filtered(&self) -> u64 {
        self.sum(|counts| counts.filtered)
    }

    /// Rows that were mended in one way.
    pub fn mended(&self, mending: Mending) -> u64 {
        self.mended.values().map(|mended| mended.count(mending)).sum()
    }

    fn sum(&self, of: impl Fn(&FileCounts) -> u64) -> u64 {
        self.counts.iter().map(of).sum()
    }
}
