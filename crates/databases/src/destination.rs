//! A load into a database: what is there is looked at, rows go, what was refused is settled, all is published.

mod fits;
mod identity;
mod publish;
mod rows_go;

use std::sync::Arc;

use coload_ddl::Schema;
use coload_input::InputSource;
use coload_load::{Destination, Load, LoadReport, LoadRequest};
use coload_store::LoadId;
use coload_threads::Started;
use coload_types::{Column, Error, Result};

use crate::engine::{Connection, Engine, RowForm, TableColumn};
use crate::journal::Journal;
use crate::mysql::Mysql;
use crate::names::TableName;
use crate::options::{DatabaseOptions, Guarantee, Method};
use crate::postgres::Postgres;
use crate::staging::{Facts, Route, drop_table, remove_dead};

/// A table of a database, into which rows are loaded.
#[derive(Debug)]
pub struct Database {
    engine: Arc<dyn Engine>,
    table: TableName,
    options: DatabaseOptions,
}

/// The table of a load as it is, or will be.
struct Into {
    columns: Vec<TableColumn>,
    exists: bool,
}

/// The engine at a URL.
///
/// # Errors
/// `Invalid` when the URL is none.
pub fn engine_of_url(url: &str) -> Result<Arc<dyn Engine>> {
    match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(Postgres::new(url)?)),
        Some(("mysql" | "mariadb", _)) => Ok(Arc::new(Mysql::new(url)?)),
        _ => Err(Error::Invalid("not the URL of a database".into())),
    }
}

impl Database {
    /// A table at a URL.
    ///
    /// # Errors
    /// `Invalid` when the URL or the name is none.
    pub fn new(url: &str, table: &str, options: DatabaseOptions) -> Result<Self> {
        Ok(Database { engine: engine_of_url(url)?, table: TableName::parse(table)?, options })
    }

    /// The columns of the table that are loaded, if it is there.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` with what it says.
    pub fn schema(&self) -> Result<Option<Schema>> {
        let mut on = self.engine.connect()?;
        let Some(columns) = on.describe(&self.table)? else { return Ok(None) };
        let given = columns.into_iter().filter(|column| !column.is_generated);
        let column = |column: TableColumn| Column {
            name: column.name,
            data_type: column.data_type,
            nullable: column.nullable,
            default: None,
        };
        Schema::new(given.map(column).collect()).map(Some)
    }

    /// The table as it is, or as it will be made for this schema.
    fn look(&self, on: &mut dyn Connection, request: &LoadRequest) -> Result<Into> {
        match on.describe(&self.table)? {
            Some(columns) => {
                let columns =
                    fits::columns_for(&*self.engine, &self.table, columns, &request.schema)?;
                Ok(Into { columns, exists: true })
            }
            None => Ok(Into { columns: Vec::new(), exists: false }),
        }
    }

    /// Makes a table for a schema, and gives its columns.
    fn make(
        &self,
        on: &mut dyn Connection,
        table: &TableName,
        schema: &Schema,
    ) -> Result<Vec<TableColumn>> {
        let columns = self.engine.columns_sql(schema)?;
        let name = self.engine.quotes().table(table);
        let options = self.engine.table_options();
        on.run(&format!("CREATE TABLE {name} ({columns}){options}"), &[])?;
        let made = on.describe(table)?.unwrap_or_default();
        fits::columns_for(&*self.engine, table, made, schema)
    }

    /// The method, why it is that, and the form of its rows.
    fn method(&self, columns: &[TableColumn]) -> Result<(Method, String, Arc<dyn RowForm>)> {
        let engine = &self.engine;
        if let Some(method) = self.options.method {
            if !engine.methods().contains(&method) {
                let names: Vec<&str> =
                    engine.methods().iter().map(|method| method.name()).collect();
                return Err(Error::Invalid(format!(
                    "--method {}: this engine has {}",
                    method.name(),
                    names.join(", ")
                )));
            }
            let form = engine.form(method, columns)?;
            return Ok((method, "method as given".to_owned(), form.into()));
        }
        let mut why = "the engine's fastest for many rows".to_owned();
        for method in engine.methods() {
            match engine.form(*method, columns) {
                Ok(form) => return Ok((*method, format!("{}: {why}", method.name()), form.into())),
                Err(Error::Invalid(not)) => why = not,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Invalid(why))
    }

    /// How many connections rows are sent over at most, and why.
    fn connections(&self, route: &Route, chunks: Option<u64>) -> (usize, String) {
        match (route, self.options.connections) {
            (Route::Direct { .. }, _) => {
                (1, "1 connection: all rows are one transaction".to_owned())
            }
            (_, Some(count)) => (count.max(1), "connections as given".to_owned()),
            (_, None) => {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let most = cores.clamp(CONNECTIONS.0, CONNECTIONS.1);
                let count = chunks.map_or(most, |chunks| most.min(chunks.max(1) as usize));
                let why = match count < most {
                    true => "a chunk of the input each".to_owned(),
                    false => format!(
                        "as many as this machine has cores, {} to {}",
                        CONNECTIONS.0, CONNECTIONS.1
                    ),
                };
                (count, format!("{count} connections: {why}"))
            }
        }
    }
}

/// Fewest and most connections that nobody asked for.
const CONNECTIONS: (usize, usize) = (2, 8);

/// Chunks of the inputs, as far as their sizes tell.
fn chunks_of(load: Load<'_>) -> Option<u64> {
    let bytes = |input: coload_input::InputFile| match input.source {
        InputSource::File { identity, .. } => Some(identity.bytes),
        InputSource::Object(object) => Some(object.bytes()),
        _ => None,
    };
    let bytes: u64 = load.request.inputs.iter().map(bytes).sum::<Option<u64>>()?;
    // A compressed file has more text than bytes.
    Some(bytes.saturating_mul(4).div_ceil(load.resources.chunk_bytes as u64).max(1))
}

/// What a load has found out before its rows go.
struct Begun {
    control: Box<dyn Connection>,
    id: LoadId,
    route: Route,
    journal: Option<Journal>,
    into: Into,
    notes: Vec<String>,
}

impl Destination for Database {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let started = Started::now();
        load.request.refuse_key(
            "in a database",
            "make the table there first, then load without a key; the database keeps its own",
        )?;
        let mut begun = self.begin(load)?;
        let result = match self.already(&mut begun)? {
            Some(rows) => return Ok(identity::earlier_report(self, &begun, rows, &started)),
            None => rows_go::run(self, load, &mut begun, &started),
        };
        if result.is_err()
            && let Route::Beside { staging, .. } = &begun.route
        {
            // If the connection is gone, the next load removes it.
            let _ = drop_table(&*self.engine, &mut *begun.control, staging);
        }
        result
    }
}

impl Database {
    fn begin(&self, load: Load<'_>) -> Result<Begun> {
        let mut control = self.engine.connect()?;
        let request = load.request;
        let id = match self.options.guarantee {
            Guarantee::Atomic => LoadId::random()?,
            Guarantee::Resumable => identity::load_id(&self.table, load)?,
        };
        let into = self.look(&mut *control, request)?;
        let facts = Facts {
            exists: into.exists,
            mode: request.mode,
            guarantee: self.options.guarantee,
            method: self.options.method,
            connections: self.options.connections,
        };
        let route = Route::of(facts, &self.table, id)?;
        let mut notes = Vec::new();
        let journal = Journal::new(&self.table, id);
        let journal = match journal.create(&*self.engine, &mut *control) {
            Ok(()) => Some(journal),
            Err(error) if self.options.guarantee == Guarantee::Resumable => return Err(error),
            Err(error) => {
                notes.push(format!(
                    "no journal ({error}): an answer to COMMIT that is lost stays unknown"
                ));
                None
            }
        };
        if let Route::Beside { staging, .. } = &route {
            remove_dead(&*self.engine, &mut *control, &self.table)?;
            control.lock(&staging.name)?;
        }
        if matches!(route, Route::Chunks { .. }) && !control.lock(&format!("coload {id}"))? {
            return Err(Error::Unavailable(format!("load {id} is running already")));
        }
        Ok(Begun { control, id, route, journal, into, notes })
    }

    /// Rows of the same resumable load, if it was done before. One that is to be done again is forgotten.
    fn already(&self, begun: &mut Begun) -> Result<Option<u64>> {
        let (Route::Chunks { .. }, Some(journal)) = (&begun.route, &begun.journal) else {
            return Ok(None);
        };
        let (_, end) = journal.read(&*self.engine, &mut *begun.control)?;
        if self.options.again && end.is_some() {
            journal.forget(&*self.engine, &mut *begun.control)?;
            return Ok(None);
        }
        Ok(end)
    }
}
