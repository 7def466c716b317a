//! What statements run on: a store here, or a server.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use coload::{Coload, Error};
use coload_ddl::quote_name;
use coload_serve::arrow::array::{Array, ArrayRef, AsArray};
use coload_serve::arrow::compute::cast;
use coload_serve::arrow::datatypes::DataType as ArrowType;
use coload_serve::arrow::util::display::array_value_to_string;
use coload_serve::{
    Address, Allowed, AnswerRows, Credentials, Database, DatabaseOptions, ExternalPlaces, Remote,
};
use tempfile::TempDir;

use crate::args::{CredentialArgs, SqlArgs};
use crate::config::Config;
use crate::in_place::InPlace;
use crate::output::{Done, say};
use crate::report::{Side, align};
use crate::size::{show_bytes, show_count};

/// A store or a server.
pub enum Target {
    /// A store that this process reads and writes, and its folder if it goes with it.
    Store(Database, Option<TempDir>),
    /// A server, over the network.
    Server(Box<Remote>),
}

impl Target {
    /// Opens the store, or connects to the server.
    ///
    /// # Errors
    /// `Failed` when there is none, or it does not let one in.
    pub fn open(args: &SqlArgs, config: &Config) -> Done<Self> {
        let named = args.store.as_ref().or(config.store.as_ref());
        if let Some(named) = named.filter(|named| Address::is_meant(named)) {
            let address: Address = named.parse()?;
            let credentials = credentials(&args.credentials, &address)?;
            return Ok(Target::Server(Box::new(Remote::connect(address, &credentials)?)));
        }
        let (store, temporary) = match named {
            Some(named) => (Coload::open(named)?, None),
            None => {
                let folder = tempfile::Builder::new().prefix("coload-sql-").tempdir();
                let failed = |e| Error::Unavailable(format!("cannot make a temporary store: {e}"));
                let folder = folder.map_err(failed)?;
                (Coload::create_or_open(folder.path().join("store"))?, Some(folder))
            }
        };
        let mut options =
            DatabaseOptions { memory: coload_load::default_memory(), ..Default::default() };
        options.threads = args.threads.unwrap_or(options.threads);
        options.memory = args.memory.unwrap_or(options.memory);
        options.spill = args.spill.options();
        options.external = Some(ExternalPlaces {
            inputs: Arc::new(InPlace { places: args.places.options() }),
            allowed: Allowed::Everything,
        });
        Ok(Target::Store(store.database(options)?.clone(), temporary))
    }

    /// What the shell calls the target.
    pub fn name(&self) -> String {
        match self {
            Target::Store(_, Some(_)) => "a store that is gone at the end".to_owned(),
            Target::Store(database, None) => format!("store {}", database.store().path().display()),
            Target::Server(server) => format!("server {}", server.address()),
        }
    }

    /// Starts one statement; its rows are taken as they come.
    pub fn start(&mut self, statement: &str) -> AnswerRows {
        match self {
            Target::Store(database, _) => database.start(statement),
            Target::Server(server) => server.start(statement),
        }
    }

    /// Tables and their columns, by table, as far as they may be seen; at most `NAMES_MAX` columns.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn names(&mut self) -> Result<Vec<(String, Vec<String>)>, Error> {
        /// Columns of which a list for completion is made.
        const NAMES_MAX: usize = 20_000;
        let mut rows = self.start(&format!(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = \
             'public' ORDER BY table_name, ordinal_position LIMIT {NAMES_MAX}"
        ));
        let mut names: Vec<(String, Vec<String>)> = Vec::new();
        while let Some(batch) = rows.next_rows()? {
            let text = |column: usize| cast(batch.column(column), &ArrowType::Utf8);
            let (Ok(tables), Ok(columns)) = (text(0), text(1)) else { continue };
            let (tables, columns) = (tables.as_string::<i32>(), columns.as_string::<i32>());
            for (table, column) in tables.iter().flatten().zip(columns.iter().flatten()) {
                match names.last_mut() {
                    Some((last, columns)) if last == table => columns.push(column.to_owned()),
                    _ => names.push((table.to_owned(), vec![column.to_owned()])),
                }
            }
        }
        Ok(names)
    }

    /// The tables, a line each.
    ///
    /// # Errors
    /// `Failed` when they cannot be read.
    pub fn tables(&mut self) -> Done<String> {
        let database = match self {
            Target::Store(database, _) => database,
            Target::Server(server) => {
                let names = server.names(
                    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' \
                     ORDER BY table_name",
                )?;
                return Ok(names.iter().map(|name| quote_name(name) + "\n").collect());
            }
        };
        let snapshot = database.store().snapshot()?;
        let head = ["table", "rows", "bytes", "columns"].map(str::to_owned).to_vec();
        let mut lines = vec![head];
        for table in snapshot.tables() {
            lines.push(vec![
                quote_name(&table.name),
                show_count(table.rows()),
                show_bytes(table.bytes()),
                table.schema.len().to_string(),
            ]);
        }
        for view in snapshot.views() {
            let is_view = ["view", "", ""].map(str::to_owned);
            lines.push([vec![quote_name(&view.name)], is_view.to_vec()].concat());
        }
        Ok(align(&lines, &[Side::Left, Side::Right, Side::Right, Side::Right]))
    }

    /// The rows of a statement as texts.
    ///
    /// # Errors
    /// What the statement fails with.
    pub fn texts(&mut self, statement: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let mut answer = self.start(statement);
        let mut rows = Vec::new();
        while let Some(batch) = answer.next_rows()? {
            let cells = |row: usize| {
                let cell = |column: &ArrayRef| {
                    let text = array_value_to_string(column, row);
                    let text = text.map_err(|e| Error::Refused(format!("internal error: {e}")));
                    column.is_valid(row).then_some(text).transpose()
                };
                batch.columns().iter().map(cell).collect::<Result<Vec<_>, Error>>()
            };
            for row in 0..batch.num_rows() {
                rows.push(cells(row)?);
            }
        }
        Ok(rows)
    }
}

fn credentials(args: &CredentialArgs, address: &Address) -> Done<Credentials> {
    let mut password = secret(args.password_file.as_deref(), "COLOAD_PASSWORD")?;
    let token = secret(args.token_file.as_deref(), "COLOAD_TOKEN")?;
    if address.user.is_some() && password.is_none() && token.is_none() {
        let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if is_person {
            say("password:");
            let typed = console::Term::stderr().read_secure_line();
            password = Some(
                typed.map_err(|e| Error::Unavailable(format!("cannot read the password: {e}")))?,
            );
        }
    }
    Ok(Credentials {
        password,
        token,
        ca: args.tls_ca.clone(),
        certificate: args.tls_certificate.clone().zip(args.tls_key.clone()),
    })
}

/// The first line of a file, or else what the environment says.
fn secret(file: Option<&Path>, variable: &str) -> Done<Option<String>> {
    let Some(path) = file else {
        return Ok(std::env::var(variable).ok().filter(|text| !text.is_empty()));
    };
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
        _ => Err(Error::Invalid(format!("{} has no first line", path.display())).into()),
    }
}
