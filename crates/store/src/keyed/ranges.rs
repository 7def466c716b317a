//! Where runs are cut, so that each range of the key can be merged by itself.
//!
//! ```text
//!   marks of all runs, sorted      3 7 9 12 | 15 20 21 | ...      a cut behind so many rows
//!   a cut                          a row of each run: those before it have smaller keys
//! ```
//!
//! Of a key that comes once all rows are on one side of a cut, so that one range knows which of them stays. Other keys may be cut
//! through, in the order of runs and of rows: a value that a million rows have is not one range.
//!
//! Cost: a page of the key for each cut and run.

use coload_threads::in_order;
use coload_types::{Error, Plain, Result};

use super::run::{Mark, Run, key_bytes};

/// The rows at which runs are cut, one of each run.
pub(super) type Cut = Vec<u64>;

/// Cuts runs into so many parts of about the same rows; the first cut is before all rows, the last one after them. Parts
/// may have no rows.
///
/// # Errors
/// `Corrupt` when a run is not what was written.
pub(super) fn cut_runs(
    runs: &[Run],
    parts: usize,
    (is_unique, threads): (bool, usize),
) -> Result<Vec<Cut>> {
    let splitters = choose_splitters(runs, parts);
    let mut cuts: Vec<Cut> = vec![vec![0; runs.len()]; splitters.len() + 2];
    let cut_run = |number: usize| {
        let mut rows = Rows { run: &runs[number], page: None };
        let mut before = 0;
        let mut cut = Vec::with_capacity(splitters.len());
        for (mark, of) in &splitters {
            let row = match number.cmp(of) {
                _ if is_unique || !mark.is_whole => rows.bound(&mark.key, Side::Lower)?,
                std::cmp::Ordering::Less => rows.bound(&mark.key, Side::Upper)?,
                std::cmp::Ordering::Equal => mark.row,
                std::cmp::Ordering::Greater => rows.bound(&mark.key, Side::Lower)?,
            };
            before = row.max(before);
            cut.push(before);
        }
        cut.push(runs[number].rows());
        Ok(cut)
    };
    in_order(runs.len(), threads, cut_run, |number, of_run| {
        cuts[1..].iter_mut().zip(of_run).for_each(|(cut, row)| cut[number] = row);
        Ok::<(), Error>(())
    })?;
    Ok(cuts)
}

/// Marks of runs that have about so many parts of all rows between them, each with the number of its run.
fn choose_splitters(runs: &[Run], parts: usize) -> Vec<(&Mark, usize)> {
    let mut marks: Vec<(&Mark, usize, u64)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let ends = run.marks.iter().skip(1).map(|mark| mark.row).chain([run.rows()]);
        marks.extend(run.marks.iter().zip(ends).map(|(mark, end)| (mark, number, end - mark.row)));
    }
    marks.sort_by(|(a, run, _), (b, other, _)| {
        a.key.cmp(&b.key).then(run.cmp(other)).then(a.row.cmp(&b.row))
    });
    let all: u64 = marks.iter().map(|(.., rows)| rows).sum();
    let (mut splitters, mut before) = (Vec::with_capacity(parts), 0);
    for (mark, number, rows) in marks {
        let wanted = all * (splitters.len() as u64 + 1) / parts.max(1) as u64;
        if splitters.len() + 1 < parts && before >= wanted.max(1) {
            splitters.push((mark, number));
        }
        before += rows;
    }
    splitters
}

/// Which side of the rows that have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Before the first that is not below it.
    Lower,
    /// Before the first that is above it.
    Upper,
}

/// Rows of a run that are looked for by their keys.
struct Rows<'a> {
    run: &'a Run,
    /// The page that was decoded last.
    page: Option<(usize, Vec<Plain>)>,
}

impl Rows<'_> {
    /// How many rows come before a side of a key.
    fn bound(&mut self, key: &[u8], side: Side) -> Result<u64> {
        let marks = &self.run.marks;
        let below = marks.partition_point(|mark| is_below(mark, key));
        let mut low = below.checked_sub(1).map_or(0, |mark| marks[mark].row);
        let above = marks[below..].partition_point(|mark| !is_above(mark, key));
        let mut high = marks.get(below + above).map_or(self.run.rows(), |mark| mark.row);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.key_of(middle)?;
            let comes_before = match side {
                Side::Lower => found[..] < *key,
                Side::Upper => found[..] <= *key,
            };
            if comes_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    fn key_of(&mut self, row: u64) -> Result<Vec<u8>> {
        let number = self.run.page_of(row);
        let at = (row - self.run.start(number)) as usize;
        match &self.page {
            Some((known, page)) if *known == number => Ok(key_bytes(page, at)),
            _ => {
                let page = self.run.open_key(number..number + 1)?.decode(number..number + 1)?;
                let key = key_bytes(&page, at);
                self.page = Some((number, page));
                Ok(key)
            }
        }
    }
}

/// Whether the key of a mark is known to be below another.
fn is_below(mark: &Mark, key: &[u8]) -> bool {
    // The rest of a key that is not whole may be anything.
    if mark.is_whole { *mark.key < *key } else { *mark.key < *key && !key.starts_with(&mark.key) }
}

/// Whether the key of a mark is known to be above another.
fn is_above(mark: &Mark, key: &[u8]) -> bool {
    *mark.key > *key
}
