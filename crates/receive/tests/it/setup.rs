//! A server on a loopback port, inputs, and the rows of a table.

use std::fmt::Write;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use coload_ddl::parse_columns;
use coload_input::expand_inputs;
use coload_load::{LoadReport, RemoteOptions, RemoteWork, TextFragmentReport};
use coload_receive::{Loads, Need, Permission, ReceiveOptions, listen, serve_loads};
use coload_source::{Dialect, Reject};
use coload_store::Store;
use coload_transform::{Adaptive, BySize, OnClient, OnServer};
use coload_types::{Error, Plain, Result, Value};

/// As the tests of loads into stores have them.
#[path = "../../../load/tests/it/options.rs"]
#[allow(dead_code)]
mod options;

pub use options::*;

/// All columns are the client's.
pub const ALL: RemoteWork = RemoteWork::Shared(&OnClient);
/// None is.
pub const NONE: RemoteWork = RemoteWork::Shared(&OnServer);
/// Those that are smaller when they are transformed.
pub const SIZE: RemoteWork = RemoteWork::Shared(&BySize);
/// By what is measured.
pub const ADAPTIVE: RemoteWork = RemoteWork::Shared(&Adaptive);

/// Columns of the test's table: each shape of value, few values and many, NULL and NOT NULL.
pub const COLUMNS: &str = "id BIGINT NOT NULL, city VARCHAR(20), price DECIMAL(9,2), day DATE, \
                           note VARCHAR, wide DECIMAL(30,3), ok BOOLEAN, u UUID";

/// A server that lives as long as this.
pub struct Server {
    pub store: Store,
    pub address: String,
    pub loads: Loads,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Starts a server on a store, where everybody may load.
    pub fn start(path: &Path, options: ReceiveOptions) -> Self {
        Server::start_with(path, options, Arc::new(|_, _| Ok(())))
    }

    /// Starts a server where nobody may load.
    pub fn refusing(path: &Path) -> Self {
        let refuse =
            |table: &str, _: Need| Err(Error::Refused(format!("ann may not load into {table}")));
        Server::start_with(path, ReceiveOptions::default(), Arc::new(refuse))
    }

    /// Starts a server where somebody says who may do what.
    pub fn start_with(path: &Path, options: ReceiveOptions, permission: Permission) -> Self {
        let store = Store::create_or_open(path).unwrap();
        let loads = Loads::open(store.clone(), options).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (listener, bound) = runtime.block_on(listen("127.0.0.1:0")).unwrap();
        runtime.spawn(serve_loads(listener, loads.clone(), permission));
        Server { store, address: bound.to_string(), loads, runtime: Some(runtime) }
    }

    /// How to reach it, giving up soon.
    pub fn remote(&self) -> RemoteOptions {
        let mut remote = RemoteOptions::new(self.address.clone());
        remote.patience = std::time::Duration::from_secs(3);
        remote
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            coload_threads::drop_elsewhere(runtime);
        }
    }
}

/// A small generator of numbers.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// Records for [`COLUMNS`], with quoted delimiters and newlines.
pub fn records(count: u64) -> String {
    let mut text = String::new();
    for i in 0..count {
        let r = mix(i);
        let city = ["Rom", "Köln", "Oslo", "\"a,b\"", "", "\"x\ny\""][(r % 6) as usize];
        let note =
            if r.is_multiple_of(11) { String::new() } else { format!("note {:x} {i}", r % 9999) };
        let _ = writeln!(
            text,
            "{i},{city},{}.{:02},20{:02}-0{}-11,{note},{}{:018}.125,{},{:08x}-0000-4000-8000-{:012x}",
            r % 100_000,
            r % 100,
            r % 30,
            r % 9 + 1,
            r % 1000,
            r >> 8,
            ["true", "false", ""][(r % 3) as usize],
            r as u32,
            r >> 20,
        );
    }
    text
}

/// Options that load a file in small chunks, so that a load has several partitions.
pub fn options(file: &Path, table: &str) -> Options {
    let inputs = expand_inputs(&[file.to_string_lossy().into_owned()]).unwrap();
    let schema = parse_columns(COLUMNS).unwrap();
    let mut options = Options::new(inputs, table, schema, Dialect::default());
    options.resources.chunk_bytes = 16 << 10;
    options.resources.fragments_per_partition = 4;
    options.resources.threads = 2;
    options
}

/// All rows of a table, by column.
pub fn rows(store: &Store, table: &str) -> Vec<Vec<Option<Value>>> {
    let snapshot = store.snapshot().unwrap();
    let Some(entry) = snapshot.table(table) else { return Vec::new() };
    let mut columns = vec![Vec::new(); entry.schema.len()];
    for segment in &entry.segments {
        let file = snapshot.segment(entry, segment).unwrap();
        for (c, rows) in columns.iter_mut().enumerate() {
            let mut plain = Plain::empty(file.physical(c));
            for page in 0..file.page_rows().len() {
                file.decode_page(c, page, &mut plain).unwrap();
            }
            rows.extend((0..plain.len()).map(|i| plain.get(i)));
        }
    }
    columns
}

/// Loads into a server.
pub fn load_remote(options: &Options, remote: &RemoteOptions) -> Result<RemoteReport> {
    let Options { request, resources, hooks } = options;
    coload_load::load(request, resources, hooks, remote).map(RemoteReport::new)
}

/// The report of a load into a server.
#[derive(Debug)]
pub struct RemoteReport {
    report: LoadReport,
    pub rows: u64,
    pub rejects: u64,
    pub first_rejects: Vec<Reject>,
    /// Set when nothing was loaded now; then what the table holds.
    pub already: bool,
    pub held: String,
    pub version: u64,
    pub segments: u64,
    /// Partitions, and how many of them an earlier attempt had sent.
    pub partitions: [usize; 2],
    pub attempts: usize,
    pub raw: TextFragmentReport,
}

impl RemoteReport {
    fn new(report: LoadReport) -> Self {
        let network = report.network.as_ref().unwrap();
        let published = report.published.as_ref().unwrap();
        RemoteReport {
            rows: report.rows(),
            rejects: report.reject_count(),
            first_rejects: report.rejects.clone(),
            already: report.earlier.is_some(),
            held: report.earlier.as_ref().map_or_else(String::new, |earlier| earlier.held.clone()),
            version: published.version,
            segments: published.segments,
            partitions: [report.partitions, network.partitions_known],
            attempts: network.attempts,
            raw: report.placement.as_ref().unwrap().text_fragments,
            report,
        }
    }
}

impl Deref for RemoteReport {
    type Target = LoadReport;

    fn deref(&self) -> &LoadReport {
        &self.report
    }
}
