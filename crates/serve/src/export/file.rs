//! A file of rows, which appears under its name when it is whole.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_load::ReplacedFile;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;

use super::lines::CsvLines;
use super::parquet::ParquetFile;
use super::strips::{Lines, Make, Room, Strip, Strips};
use super::{CsvOptions, Export};
use crate::database::Database;

/// The rows of a file.
pub(crate) enum Rows {
    /// Of a plan whose partitions are in order.
    Partitions(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    /// Rows in the order in which the plan brings them.
    Stream(SendableRecordBatchStream),
}

impl Rows {
    fn strips(self, make: Make, room: Room) -> Strips {
        match self {
            Rows::Partitions(plan, context) => Strips::of_partitions(plan, context, make, room),
            Rows::Stream(rows) => Strips::of_stream(rows, make, room),
        }
    }
}

impl Export {
    /// Writes rows into a file, with columns of these names; how many they were. One that exists is replaced at the end, and
    /// remains where something fails.
    ///
    /// # Errors
    /// What goes wrong with the rows; `Unavailable` when the file cannot be written.
    pub async fn write(
        self,
        database: &Database,
        path: &Path,
        schema: SchemaRef,
        rows: Rows,
    ) -> Result<u64> {
        let (whole, file) = ReplacedFile::create(path)?;
        let (file, written) = match self {
            Export::Csv(options) => {
                let strips = |make| rows.strips(make, Room::of(database));
                write_csv(options, &schema, strips, (path, file)).await?
            }
            Export::Parquet(options) => {
                let mut parquet = ParquetFile::create(&options, schema, (path, file), database)?;
                let mut strips = rows.strips(Make::Rows, Room::of(database));
                let mut written = 0;
                while let Some(strip) = strips.next().await? {
                    if let Strip::Rows(rows) = strip {
                        written += rows.num_rows() as u64;
                        parquet.write(rows).await?;
                    }
                }
                (parquet.finish().await?, written)
            }
        };
        whole.finish(&file)?;
        Ok(written)
    }
}

async fn write_csv(
    options: CsvOptions,
    schema: &SchemaRef,
    strips: impl FnOnce(Make) -> Strips,
    (path, mut file): (&Path, File),
) -> Result<(File, u64)> {
    let mut write = |text: &[u8]| file.write_all(text).map_err(|e| Error::io("write", path, &e));
    let mut lines = CsvLines::new(options, schema);
    lines.start(&mut write)?;
    let has_names = AtomicBool::new(!lines.waits_for_rows());
    let make = Arc::new(Lines { options: lines.options().clone(), has_names });
    let mut strips = strips(Make::Lines(Arc::clone(&make)));
    let mut written = 0;
    while let Some(strip) = strips.next().await? {
        match strip {
            Strip::Rows(rows) => {
                written += rows.num_rows() as u64;
                lines.rows(&rows, &mut write)?;
                make.has_names.store(!lines.waits_for_rows(), Ordering::Relaxed);
            }
            Strip::Lines { text, rows } => {
                written += rows as u64;
                write(&text)?;
            }
        }
    }
    lines.finish(&mut write)?;
    Ok((file, written))
}
