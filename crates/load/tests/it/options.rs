//! A load of a test: its request, and what else tests set, in one.

use std::ops::{Deref, DerefMut};

use coload_ddl::Schema;
use coload_load::{Hooks, LoadReport, LoadRequest, Merged, Resources};
use coload_source::{Dialect, Inputs};
use coload_store::{MergeReport, Store};
use coload_types::Result;

/// What a test asks for.
#[derive(Debug, Clone)]
pub struct Options {
    pub request: LoadRequest,
    pub resources: Resources,
    pub hooks: Hooks,
}

impl Options {
    pub fn new(inputs: impl Into<Inputs>, table: &str, schema: Schema, dialect: Dialect) -> Self {
        Options::of(LoadRequest::new(inputs, table, schema, dialect))
    }

    pub fn of(request: LoadRequest) -> Self {
        Options { request, resources: Resources::default(), hooks: Hooks::default() }
    }

    pub fn with_threads(mut self, threads: usize) -> Self {
        self.resources.threads = threads;
        self
    }
}

impl Deref for Options {
    type Target = LoadRequest;

    fn deref(&self) -> &LoadRequest {
        &self.request
    }
}

impl DerefMut for Options {
    fn deref_mut(&mut self) -> &mut LoadRequest {
        &mut self.request
    }
}

/// Loads into a store.
pub fn load(store: &Store, options: &Options) -> Result<LoadReport> {
    let Options { request, resources, hooks } = options;
    coload_load::load(request, resources, hooks, store)
}

/// What was merged after a load into a store.
pub fn merged(report: LoadReport) -> Result<MergeReport> {
    match report.published.unwrap().merge {
        Merged::Here(merged) => merged,
        Merged::AtServer(told) => panic!("a store tells {told}"),
    }
}
