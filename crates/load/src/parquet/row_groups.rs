//! Partitions become row groups: the target of a load.
//!
//! What came of a partition waits until all of it is there. Then its columns are made one by one, by any worker, and who
//! makes the last puts the row groups into the file whose turn it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use coload_ddl::Schema;
use coload_threads::{Step, StepClock, lock};
use coload_transform::PartitionColumn;
use coload_types::{DataType, Error, Result};
use coload_wire::Seal;

use super::columns::{ColumnParts, MadeColumn, make_column};
use super::files::{Files, Layout, RowGroup, Written};
use crate::target::{Ahead, AheadColumn, Target, Work, Works};

/// Makes row groups of partitions.
#[derive(Debug)]
pub struct RowGroups {
    layout: Arc<Layout>,
    files: Arc<Mutex<Files>>,
    filling: Mutex<Filling>,
}

#[derive(Debug, Default)]
struct Filling {
    /// Partitions of which all columns are not there yet.
    arriving: BTreeMap<usize, Arriving>,
    /// Partitions that were sealed.
    sealed: usize,
}

/// What came of a partition.
#[derive(Debug, Default)]
struct Arriving {
    /// Fragments of which columns went ahead, or none.
    fragments: usize,
    columns: Vec<ColumnParts>,
    /// Rows of its fragments, once it is sealed.
    page_rows: Option<Vec<u32>>,
}

impl RowGroups {
    /// Row groups of tables with these columns, in files of a folder, or nowhere.
    ///
    /// # Errors
    /// `Invalid` when the columns cannot be written as Parquet.
    pub fn new(schema: &Schema, into: Option<&Path>) -> Result<Self> {
        let layout = Arc::new(Layout::new(schema)?);
        let files = Files::new(Arc::clone(&layout), into);
        Ok(RowGroups { layout, files: Arc::new(Mutex::new(files)), filling: Mutex::default() })
    }

    /// The files, when all work is done.
    ///
    /// # Errors
    /// `Corrupt` when they do not hold all partitions.
    pub fn into_written(self) -> Result<Written> {
        lock(&self.files).take_written()
    }

    /// The work on a partition, if all of it is there.
    fn complete(&self, filling: &mut Filling, number: usize) -> Result<Works> {
        let is_whole = |a: &Arriving| a.page_rows.as_ref().is_some_and(|r| r.len() == a.fragments);
        if !filling.arriving.get(&number).is_some_and(is_whole) {
            return Ok(Works::new());
        }
        let arriving = filling.arriving.remove(&number).unwrap_or_default();
        let rows: u64 = arriving.page_rows.iter().flatten().map(|rows| u64::from(*rows)).sum();
        let width = self.layout.types.len();
        let making = Arc::new(Making {
            number,
            rows,
            columns: arriving.columns.into_iter().map(|parts| Mutex::new(Some(parts))).collect(),
            made: Mutex::new((0..width).map(|_| None).collect()),
            remaining: AtomicUsize::new(width),
            layout: Arc::clone(&self.layout),
            files: Arc::clone(&self.files),
        });
        let put = |column| -> Box<dyn Work> {
            Box::new(MakeColumn { making: Arc::clone(&making), column })
        };
        match rows {
            0 => Ok(vec![Box::new(PutNothing(making))]),
            _ => Ok((0..width).map(put).collect()),
        }
    }

    fn columns<'s>(&self, filling: &'s mut Filling, partition: usize) -> &'s mut Arriving {
        let arriving = filling.arriving.entry(partition).or_default();
        arriving.columns.resize_with(self.layout.types.len(), ColumnParts::default);
        arriving
    }
}

impl Target for RowGroups {
    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        let Ahead { partition, fragment, columns } = ahead;
        let mut filling = lock(&self.filling);
        let arriving = self.columns(&mut filling, partition);
        arriving.fragments += 1;
        for column in columns {
            let AheadColumn::Page(page) = column else {
                return Err(Error::Corrupt("values for a file, which transforms nothing".into()));
            };
            arriving.columns[page.column].ahead.push((fragment, page));
        }
        self.complete(&mut filling, partition)
    }

    fn take_column(
        &self,
        partition: usize,
        column: usize,
        fragments: &[u32],
        compressed: PartitionColumn,
    ) -> Result<()> {
        let mut filling = lock(&self.filling);
        let arriving = self.columns(&mut filling, partition);
        arriving.columns[column].compressed = Some((fragments.to_vec(), compressed));
        Ok(())
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        let mut filling = lock(&self.filling);
        let partition = seal.partition as usize;
        self.columns(&mut filling, partition).page_rows = Some(seal.page_rows);
        filling.sealed += 1;
        self.complete(&mut filling, partition)
    }

    fn end(&self) -> Result<Works> {
        let sealed = lock(&self.filling).sealed;
        Ok(vec![Box::new(EndFiles { files: Arc::clone(&self.files), row_groups: sealed })])
    }

    fn rows(&self) -> u64 {
        lock(&self.files).rows()
    }
}

/// A row group whose columns are being made.
#[derive(Debug)]
struct Making {
    number: usize,
    rows: u64,
    columns: Vec<Mutex<Option<ColumnParts>>>,
    made: Mutex<Vec<Option<MadeColumn>>>,
    remaining: AtomicUsize,
    layout: Arc<Layout>,
    files: Arc<Mutex<Files>>,
}

/// A column of a row group that is to be made.
#[derive(Debug)]
struct MakeColumn {
    making: Arc<Making>,
    column: usize,
}

impl Work for MakeColumn {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        let Making { number, rows, columns, made, remaining, layout, files } = &*self.making;
        let parts = lock(&columns[self.column]).take().unwrap_or_default();
        let data_type: DataType = layout.types[self.column];
        let descriptor = layout.descriptor.column(self.column);
        let column = clock.time(Step::Compress, || {
            make_column(parts, &descriptor, data_type, layout.compression)
        })?;
        if column.sums.rows != *rows {
            return Err(Error::Corrupt(format!(
                "column {} of partition {number} has {} rows of {rows}",
                descriptor.name(),
                column.sums.rows
            )));
        }
        lock(made)[self.column] = Some(column);
        if remaining.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(Works::new());
        }
        let columns = std::mem::take(&mut *lock(made)).into_iter().flatten().collect();
        let group = RowGroup { rows: *rows, columns };
        clock.time(Step::Write, || lock(files).put(*number, Some(group)))
    }
}

/// A partition without rows, which is no row group.
#[derive(Debug)]
struct PutNothing(Arc<Making>);

impl Work for PutNothing {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        clock.time(Step::Write, || lock(&self.0.files).put(self.0.number, None))
    }
}

/// The end of a load, which may come before the last row group is made.
#[derive(Debug)]
struct EndFiles {
    files: Arc<Mutex<Files>>,
    row_groups: usize,
}

impl Work for EndFiles {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        clock.time(Step::Write, || lock(&self.files).end(self.row_groups))
    }
}
