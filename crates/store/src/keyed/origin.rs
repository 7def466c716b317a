//! Which row of the input a row of a segment was, for messages about keys that come twice.
//!
//! A segment whose rows were put in order leaves their numbers in a file beside it, four or eight bytes a row, until the load is
//! published.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use coload_space::Mapped;
use coload_types::{Error, Result};

/// Extension of the file beside a segment that tells where its rows come from.
const ORDER_EXTENSION: &str = "order";

/// The file beside a segment that tells where its rows come from.
pub(crate) fn order_path(segment: &Path) -> PathBuf {
    segment.with_extension(ORDER_EXTENSION)
}

/// What the file beside a segment has of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowNumbers {
    /// The row of the segment that it was, in four bytes.
    OfSegment,
    /// The row of the load that it was, in eight bytes: rows of several segments were merged.
    OfLoad,
}

impl RowNumbers {
    fn bytes(self) -> usize {
        match self {
            RowNumbers::OfSegment => size_of::<u32>(),
            RowNumbers::OfLoad => size_of::<u64>(),
        }
    }
}

/// Where the rows of a segment come from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Rows of the load before those of the segment.
    pub before: u64,
    /// The file with the number that each row had before rows were put in order; `None` when they stayed.
    pub order: Option<(PathBuf, RowNumbers)>,
}

impl Origin {
    /// That of the segment of a file, after so many rows of the load. Rows that were put in order before the segment came have their
    /// numbers in a file beside it.
    pub fn of_file(before: u64, path: &Path) -> Self {
        let order = order_path(path);
        let order = order.exists().then_some((order, RowNumbers::OfSegment));
        Origin { before, order }
    }

    /// Which rows of the segment, as it was before its rows were put in order, so many rows of it are.
    ///
    /// # Errors
    /// `Unavailable` when the file with them cannot be read.
    pub fn numbers(&self, rows: u64) -> Result<Option<Vec<u32>>> {
        if self.order.is_none() {
            return Ok(None);
        }
        let mut numbers = Vec::with_capacity(rows as usize);
        self.for_each(rows, |_, number| numbers.push((number - self.before) as u32))?;
        Ok(Some(numbers))
    }

    /// The number of a row among all of the load, in the order of the input and from 1 on. `None` when it cannot be told.
    pub fn number(&self, row: u64) -> Option<u64> {
        let row = match &self.order {
            None => row,
            Some((path, numbers)) => {
                let mut bytes = [0; size_of::<u64>()];
                let width = numbers.bytes();
                let at = row.checked_mul(width as u64)?;
                File::open(path).ok()?.read_exact_at(&mut bytes[..width], at).ok()?;
                u64::from_le_bytes(bytes)
            }
        };
        Some(self.before + row + 1)
    }
}

impl Origin {
    /// The same, to be asked for many rows.
    ///
    /// # Errors
    /// `Unavailable` when the file with the numbers cannot be read.
    pub fn open(&self) -> Result<OpenOrigin> {
        let before = self.before;
        let Some((path, numbers)) = &self.order else {
            return Ok(OpenOrigin { before, order: None });
        };
        let file = File::open(path).map_err(|e| Error::io("open", path, &e))?;
        let map = Mapped::map(&file).map_err(|e| Error::io("map", path, &e))?;
        Ok(OpenOrigin { before, order: Some((map, *numbers, path.clone())) })
    }

    /// Tells the number of each of the first rows of the segment, from 0 on.
    ///
    /// # Errors
    /// `Unavailable` when the file with them cannot be read.
    pub fn for_each(&self, rows: u64, mut tell: impl FnMut(u64, u64)) -> Result<()> {
        let Some((path, numbers)) = &self.order else {
            (0..rows).for_each(|row| tell(row, self.before + row));
            return Ok(());
        };
        let mut read = || -> io::Result<()> {
            let mut file = BufReader::new(File::open(path)?);
            let mut bytes = [0; size_of::<u64>()];
            for row in 0..rows {
                file.read_exact(&mut bytes[..numbers.bytes()])?;
                tell(row, self.before + u64::from_le_bytes(bytes));
            }
            Ok(())
        };
        read().map_err(|e| Error::io("read", path, &e))
    }
}

/// An origin whose file is mapped.
#[derive(Debug)]
pub(crate) struct OpenOrigin {
    before: u64,
    order: Option<(Mapped, RowNumbers, PathBuf)>,
}

impl OpenOrigin {
    /// The number of a row among all of the load, in the order of the input and from 0 on.
    ///
    /// # Errors
    /// `Corrupt` when the file does not have it.
    pub fn number(&self, row: u32) -> Result<u64> {
        let Some((map, numbers, path)) = &self.order else {
            return Ok(self.before + u64::from(row));
        };
        let (width, mut bytes) = (numbers.bytes(), [0; size_of::<u64>()]);
        let at = row as usize * width;
        let given = map.get(at..at + width);
        given.into_iter().for_each(|given| bytes[..width].copy_from_slice(given));
        match given.is_some() && !map.is_damaged() {
            true => Ok(self.before + u64::from_le_bytes(bytes)),
            false => Err(Error::corrupt(path, format!("no number of row {row}"))),
        }
    }
}

/// Writes where the rows of the segment of a file come from: rows of it, before they were put in order.
///
/// # Errors
/// `Unavailable` when the disk fails.
pub(crate) fn put_row_numbers(segment: &Path, rows: &[u32]) -> Result<()> {
    write_order(&order_path(segment), rows)
}

/// Writes where rows come from: rows of their segment.
///
/// # Errors
/// `Unavailable` when the disk fails.
pub(crate) fn write_order(path: &Path, rows: &[u32]) -> Result<()> {
    write_numbers(path, rows, |row| row.to_le_bytes())
}

/// The rows of a load that rows of runs were, from 0 on: in four bytes each where these are enough.
#[derive(Debug)]
pub(super) enum LoadRows {
    Short(Vec<u32>),
    Long(Vec<u64>),
}

impl LoadRows {
    /// For so many rows.
    pub fn with_capacity(count: usize) -> Self {
        LoadRows::Short(Vec::with_capacity(count))
    }

    /// Appends a row.
    pub fn push(&mut self, row: u64) {
        match (&mut *self, u32::try_from(row)) {
            (LoadRows::Short(rows), Ok(row)) => rows.push(row),
            (LoadRows::Short(rows), Err(_)) => {
                let mut long = Vec::with_capacity(rows.capacity());
                long.extend(rows.drain(..).map(u64::from));
                long.push(row);
                *self = LoadRows::Long(long);
            }
            (LoadRows::Long(rows), _) => rows.push(row),
        }
    }

    /// The row of the load that a row was.
    pub fn get(&self, row: u32) -> u64 {
        match self {
            LoadRows::Short(rows) => u64::from(rows[row as usize]),
            LoadRows::Long(rows) => rows[row as usize],
        }
    }
}

/// Writes where rows come from: rows of the load, by which rows of runs they were.
///
/// # Errors
/// `Unavailable` when the disk fails.
pub(super) fn write_load_order(path: &Path, rows: &[u32], of: &LoadRows) -> Result<()> {
    match of {
        LoadRows::Short(of) => write_numbers(path, rows, |row| of[row as usize].to_le_bytes()),
        LoadRows::Long(of) => write_numbers(path, rows, |row| of[row as usize].to_le_bytes()),
    }
}

/// Numbers that are written by one call.
const WRITTEN_NUMBERS: usize = 1 << 15;

fn write_numbers<T: Copy, const N: usize>(
    path: &Path,
    numbers: &[T],
    bytes_of: impl Fn(T) -> [u8; N],
) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = File::create(path)?;
        let mut bytes = Vec::with_capacity(numbers.len().min(WRITTEN_NUMBERS) * N);
        for some in numbers.chunks(WRITTEN_NUMBERS) {
            bytes.resize(some.len() * N, 0);
            let (places, _) = bytes.as_chunks_mut();
            places.iter_mut().zip(some).for_each(|(place, number)| *place = bytes_of(*number));
            file.write_all(&bytes)?;
        }
        Ok(())
    };
    write().map_err(|e| Error::io("write", path, &e))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_of_a_load_are_told_whatever_bytes_they_need() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.segment");
        let far = u64::from(u32::MAX);
        for (given, numbers) in [
            (vec![7, 5, far], RowNumbers::OfSegment),
            (vec![7, far + 1, 5, far + 9], RowNumbers::OfLoad),
        ] {
            let mut of = LoadRows::with_capacity(given.len());
            given.iter().for_each(|row| of.push(*row));
            let rows: Vec<u32> = (0..given.len() as u32).rev().collect();
            write_load_order(&order_path(&path), &rows, &of).unwrap();
            let origin = Origin { before: 0, order: Some((order_path(&path), numbers)) };
            let open = origin.open().unwrap();
            let numbers = given.iter().rev().zip(0..);
            numbers.for_each(|(wanted, row)| assert_eq!(open.number(row).unwrap(), *wanted));
            assert!(open.number(given.len() as u32).is_err());
            let mut told = Vec::new();
            origin.for_each(rows.len() as u64, |_, row| told.push(row)).unwrap();
            assert_eq!(told, given.iter().rev().copied().collect::<Vec<_>>());
            assert!(rows.iter().all(|row| of.get(*row) == given[*row as usize]));
        }
    }
}
