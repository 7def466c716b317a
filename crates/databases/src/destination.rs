//! A load into a database: what is there is looked at, rows go, what was refused is settled, all is published.

mod fits;
mod identity;
mod pass;
mod publish;
mod rows_go;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coload_ddl::Schema;
use coload_load::{Destination, Load, LoadReport, LoadRequest, Resources};
use coload_store::{LoadId, LoadMode};
use coload_threads::{Started, lock};
use coload_types::{Column, Error, Result};

use crate::choice::Known;
use crate::engine::{Connection, Engine, TableColumn};
use crate::journal::Journal;
use crate::mysql::Mysql;
use crate::names::TableName;
use crate::options::{DatabaseOptions, Guarantee};
use crate::postgres::Postgres;
use crate::rebuild::{Ddl, HAS_ROWS, TakenOff, has_rows};
use crate::sqlserver::SqlServer;
use crate::staging::{Facts, Route, drop_table, remove_dead};
use crate::trial::micros;

/// A table of a database, into which rows are loaded.
#[derive(Debug)]
pub struct Database {
    engine: Arc<dyn Engine>,
    table: TableName,
    options: DatabaseOptions,
    kept: Kept,
}

/// A connection that looked at the table before the load, and the microseconds that it took to make.
#[derive(Default)]
struct Kept(Mutex<Option<(Box<dyn Connection>, f64)>>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

/// The name of the file in which what was measured of the server of a URL is kept.
///
/// # Errors
/// `Invalid` when the URL is none.
pub fn tuning_name(url: &str) -> Result<String> {
    Ok(format!("{}.json", engine_of_url(url)?.place()))
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
        Some(("sqlserver" | "mssql", _)) => Ok(Arc::new(SqlServer::new(url)?)),
        _ => Err(Error::Invalid("not the URL of a database".into())),
    }
}

impl Database {
    /// A table at a URL.
    ///
    /// # Errors
    /// `Invalid` when the URL or the name is none.
    pub fn new(url: &str, table: &str, options: DatabaseOptions) -> Result<Self> {
        let engine = engine_of_url(url)?;
        Ok(Database { engine, table: TableName::parse(table)?, options, kept: Kept::default() })
    }

    fn connect(&self) -> Result<(Box<dyn Connection>, f64)> {
        let began = Instant::now();
        let on = self.engine.connect()?;
        Ok((on, micros(began)))
    }

    /// The columns of the table that are loaded, if it is there.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` with what it says.
    pub fn schema(&self) -> Result<Option<Schema>> {
        let (mut on, connect_us) = self.connect()?;
        let described = on.describe(&self.table)?;
        // A load follows, mostly.
        *lock(&self.kept.0) = Some((on, connect_us));
        let Some(columns) = described else { return Ok(None) };
        let given = columns.into_iter().filter(|column| !column.is_generated);
        let column = |column: TableColumn| Column {
            name: column.name,
            data_type: column.data_type,
            nullable: column.nullable,
            default: None,
        };
        Schema::new(given.map(column).collect()).map(Some)
    }

    /// The first connection of a load, the microseconds that it took to make, and the table.
    fn look_first(&self, request: &LoadRequest) -> Result<(Box<dyn Connection>, f64, Into)> {
        let kept = lock(&self.kept.0).take();
        if let Some((mut on, connect_us)) = kept {
            match self.look(&mut *on, request) {
                // Who looked at it long ago may have been forgotten by the server.
                Err(Error::Unavailable(_)) => {}
                into => return Ok((on, connect_us, into?)),
            }
        }
        let (mut on, connect_us) = self.connect()?;
        let into = self.look(&mut *on, request)?;
        Ok((on, connect_us, into))
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
}

/// What a load has found out before its rows go.
struct Begun {
    /// What is asked besides rows; `None` while rows go over it.
    control: Option<Box<dyn Connection>>,
    server: String,
    connect_us: f64,
    id: LoadId,
    route: Route,
    journal: Option<Journal>,
    into: Into,
    /// How indexes are built after the rows, if they are.
    rebuild: Option<Ddl>,
    /// What is to be built.
    taken_off: TakenOff,
    /// Whether the transaction of the rows is open on the connection that is left when they are there.
    is_open: bool,
    notes: Vec<String>,
}

impl Begun {
    /// The connection for what is asked besides rows; a new one, if the last is gone with rows.
    fn control(&mut self, engine: &dyn Engine) -> Result<&mut dyn Connection> {
        if self.control.is_none() {
            let mut on = engine.connect()?;
            if let Route::Beside { staging, .. } = &self.route {
                lock_again(&mut *on, &staging.name)?;
            }
            self.control = Some(on);
        }
        match &mut self.control {
            Some(on) => Ok(&mut **on),
            None => Err(Error::Unavailable("no connection".into())),
        }
    }
}

/// How long the connection before may keep the lock of a load: its thread ends with what it is sending.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Takes the lock of a load's table when the connection that had it is gone. Without it the table would be taken for one of a
/// load that died.
fn lock_again(on: &mut dyn Connection, name: &str) -> Result<()> {
    let began = Instant::now();
    while !on.lock(name)? {
        if began.elapsed() > LOCK_WAIT {
            return Err(Error::Unavailable(format!(
                "the lock {name} is held by another connection"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Destination for Database {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let started = Started::now();
        let known = Known::of(load);
        let chunk_bytes = known.chunk_bytes as usize;
        let resources = Resources { chunk_bytes, ..load.resources.clone() };
        load.request.refuse_key(
            "in a database",
            "make the table there first, then load without a key; the database keeps its own",
        )?;
        let mut begun = self.begin(load)?;
        let result = match self.already(&mut begun)? {
            Some(rows) => return Ok(identity::earlier_report(self, &begun, rows, &started)),
            None => {
                let load = Load { resources: &resources, ..load };
                rows_go::run(self, (load, known), &mut begun, &started)
            }
        };
        if result.is_err()
            && let Route::Beside { staging, .. } = begun.route.clone()
            && let Ok(control) = begun.control(&*self.engine)
        {
            // A transaction that failed takes no other statement. If the server is gone, the next load removes it.
            let _ = control.run(self.engine.rollback_sql(), &[]);
            let _ = drop_table(&*self.engine, control, &staging);
        }
        result
    }
}

impl Database {
    fn begin(&self, load: Load<'_>) -> Result<Begun> {
        let request = load.request;
        let id = match self.options.guarantee {
            Guarantee::Atomic => LoadId::random()?,
            Guarantee::Resumable => identity::load_id(&self.table, load)?,
        };
        let (mut control, connect_us, into) = self.look_first(request)?;
        let mut notes = Vec::new();
        let rebuild = self.rebuild(&mut *control, into.exists, request.mode, &mut notes)?;
        let facts = Facts {
            exists: into.exists,
            mode: request.mode,
            guarantee: self.options.guarantee,
            method: self.options.method,
            connections: self.options.connections,
            exchanges: rebuild == Some(Ddl::CommitsAtOnce),
        };
        let route = Route::of(facts, &self.table, id)?;
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
        let server = control.server();
        let control = Some(control);
        Ok(Begun {
            control,
            server,
            connect_us,
            id,
            route,
            journal,
            into,
            rebuild,
            taken_off: TakenOff::default(),
            is_open: false,
            notes,
        })
    }

    /// How indexes are built after the rows; `None`, and why, where they stay.
    fn rebuild(
        &self,
        on: &mut dyn Connection,
        exists: bool,
        mode: LoadMode,
        notes: &mut Vec<String>,
    ) -> Result<Option<Ddl>> {
        if !self.options.rebuild_indexes {
            return Ok(None);
        }
        if self.options.guarantee == Guarantee::Resumable {
            return Err(Error::Invalid(
                "--rebuild-indexes and --resumable: others would see rows of a table without its indexes, for as long as the \
                 load is not done (leave out one of them)"
                    .into(),
            ));
        }
        let why = if !exists {
            "--rebuild-indexes: the table is made by the load, and has no indexes".to_owned()
        } else if mode != LoadMode::Replace && has_rows(&*self.engine, on, &self.table)? {
            HAS_ROWS.to_owned()
        } else {
            match self.engine.keeps_indexes(on, &self.table)? {
                None => return Ok(Some(self.engine.ddl())),
                Some(why) => {
                    format!("--rebuild-indexes: indexes of {} stayed, for {why}", self.table)
                }
            }
        };
        notes.push(why);
        Ok(None)
    }

    /// Rows of the same resumable load, if it was done before. One that is to be done again is forgotten.
    fn already(&self, begun: &mut Begun) -> Result<Option<u64>> {
        let (Route::Chunks { .. }, Some(journal)) = (&begun.route, begun.journal.clone()) else {
            return Ok(None);
        };
        let control = begun.control(&*self.engine)?;
        let (_, end) = journal.read(&*self.engine, control)?;
        if self.options.again && end.is_some() {
            journal.forget(&*self.engine, control)?;
            return Ok(None);
        }
        Ok(end)
    }
}
