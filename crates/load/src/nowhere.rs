//! Dry runs: a load does all of its work, and writes nothing.

use std::path::Path;

use coload_store::Store;
use coload_threads::Started;
use coload_types::Result;
use coload_wire::{CHUNK_BYTES_MIN, RejectLimit};

use crate::into_store::{report_columns, target, with_rules_of_table, with_wider_types};
use crate::legs::run_legs;
use crate::load::{Destination, Load};
use crate::parquet::{self, ParquetFolder};
use crate::passes::Ran;
use crate::pipeline::Loaded;
use crate::report::{DryRun, LoadReport};
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Nowhere: what would become of a load is found out, rejects are counted, however many, and nothing is written.
#[derive(Debug, Clone, Copy)]
pub enum Nowhere<'a> {
    /// As into a store; `None` for one that is not there yet.
    LikeStore(Option<&'a Store>),
    /// As into Parquet files of a folder.
    LikeParquet(&'a Path),
}

impl Destination for Nowhere<'_> {
    fn sorts(&self) -> bool {
        matches!(self, Nowhere::LikeStore(_))
    }

    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let started = Started::now();
        let (request, resources) = dry(load.request, load.resources);
        let load = Load { request: &request, resources: &resources, ..load };
        let mut report = match self {
            Nowhere::LikeStore(store) => like_store(*store, load),
            Nowhere::LikeParquet(folder) => like_parquet(folder, load),
        }?;
        report.set_costs(&started);
        Ok(report)
    }
}

/// A load that is not to be: rejects are counted, and chunks are no longer than what is read.
fn dry(request: &LoadRequest, resources: &Resources) -> (LoadRequest, Resources) {
    let (mut request, mut resources) = (request.clone(), resources.clone());
    request.max_rejects = RejectLimit::Count(u64::MAX);
    request.rejects_file = None;
    if let Some(bytes) = request.sample_bytes {
        let least = CHUNK_BYTES_MIN.max(64 << 10);
        resources.chunk_bytes = resources.chunk_bytes.min((bytes as usize).max(least));
    }
    (request, resources)
}

fn like_store(store: Option<&Store>, load: Load<'_>) -> Result<LoadReport> {
    let mut request = load.request.clone();
    if let Some(store) = store {
        request = with_rules_of_table(store, &request)?.into_owned();
        store.check_target(&target(&request))?;
        let deletes = request.delete_where()?;
        store.check_on_conflict(&target(&request), request.on_conflict, deletes.as_ref())?;
    }
    let pass = |request: &LoadRequest, pass| {
        let whole = run_legs(load.with_request(request), None, None, pass)?;
        let columns = report_columns(&whole.request, &whole.segments, &whole.loaded.distinct);
        let bytes: u64 = whole.segments.iter().map(|s| s.summary.bytes).sum();
        Ok(((columns, bytes), whole.loaded, whole.clock, whole.widened))
    };
    let (((columns, bytes_stored), loaded, clock, mut last), mut widened) =
        with_wider_types(&request, pass)?;
    widened.append(&mut last);
    let mut report = report(request.table, loaded, "in the store");
    report.set_steps(&clock);
    Ok(LoadReport { columns, bytes_stored, widened, ..report })
}

fn like_parquet(folder: &Path, load: Load<'_>) -> Result<LoadReport> {
    let name = format!("coload-stream-{}-{}", std::process::id(), load.request.began_us);
    let folder = ParquetFolder::new(folder)?;
    let ran = folder.dry_run(load, &std::env::temp_dir().join(name))?;
    let parquet::RanIntoFiles { ran, written } = ran;
    let Ran { loaded, request, widened, clock, .. } = ran;
    let columns = written.columns(&request.schema, &loaded.distinct);
    let bytes_stored = written.files.iter().map(|file| file.bytes).sum();
    let mut report = report(folder.path().display().to_string(), loaded, "as Parquet");
    report.set_steps(&clock);
    Ok(LoadReport { columns, bytes_stored, widened, ..report })
}

/// What is the same wherever the rows would go.
fn report(table: String, loaded: Loaded, place: &'static str) -> LoadReport {
    let Loaded { account, share, partitions, .. } = loaded;
    let (files, rejects) = account.into_files();
    let dry_run = Some(DryRun { share, place });
    LoadReport { files, rejects, partitions, dry_run, ..LoadReport::new(table) }
}
