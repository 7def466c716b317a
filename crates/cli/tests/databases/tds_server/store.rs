//! Tables in memory, and what undoes what a transaction did.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::tokens::Token;
use super::types::{SqlError, Type, Value, error};

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub of: Type,
    pub nullable: bool,
    pub identity: bool,
    pub computed: Option<Vec<Token>>,
    pub default: Option<Vec<Token>>,
}

#[derive(Debug, Clone)]
pub struct Unique {
    pub name: String,
    pub primary: bool,
    pub columns: Vec<usize>,
    pub ignores: bool,
    /// Whether it is asked of no row.
    pub disabled: bool,
    pub keys: HashMap<Vec<Value>, u64>,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    pub id: i64,
    pub columns: Vec<Column>,
    pub rows: BTreeMap<u64, Arc<Vec<Value>>>,
    pub uniques: Vec<Unique>,
    /// Rules, with their names.
    pub checks: Vec<(String, Vec<Token>)>,
    /// The session that keeps writers away.
    pub locked: Option<u32>,
    pub next_identity: i64,
}

#[derive(Debug)]
enum Undo {
    Inserted(String, u64),
    Deleted(String, u64, Arc<Vec<Value>>),
    Created(String),
    Dropped(String, Box<Table>),
    Renamed(String, String),
    /// An index of a table, which was disabled or not.
    Altered(String, String, bool),
    Savepoint(String),
}

/// What a connection has open.
#[derive(Debug)]
pub struct Session {
    pub number: u32,
    pub program: String,
    /// Whether a request is being answered.
    pub is_busy: bool,
    /// The transaction that is open, by its number.
    pub transaction: Option<u64>,
    undo: Vec<Undo>,
    pub handles: HashMap<i32, (String, Vec<(String, Type)>)>,
    /// Reads are of the moment of the first one of the transaction.
    pub snapshots: bool,
    pub seen: HashMap<String, Table>,
    pub lock_timeout: i64,
    /// In which texts and days are converted, and errors are told; empty for that of the login.
    pub language: String,
    /// Only columns of answers are told.
    pub format_only: bool,
    pub variables: HashMap<String, super::types::Val>,
}

impl Session {
    pub fn new(number: u32) -> Self {
        Session {
            number,
            program: String::new(),
            is_busy: false,
            transaction: None,
            undo: Vec::new(),
            handles: HashMap::new(),
            snapshots: false,
            seen: HashMap::new(),
            lock_timeout: -1,
            language: String::new(),
            format_only: false,
            variables: HashMap::new(),
        }
    }

    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    pub fn save(&mut self, name: &str) {
        self.undo.push(Undo::Savepoint(name.to_owned()));
    }

    /// Where a savepoint is, the last one of its name.
    pub fn savepoint(&self, name: &str) -> Option<usize> {
        self.undo.iter().rposition(|undo| matches!(undo, Undo::Savepoint(other) if other == name))
    }

    pub fn commit(&mut self) {
        self.undo.clear();
        self.transaction = None;
        self.seen.clear();
    }
}

#[derive(Debug, Default)]
pub struct Db {
    /// By schema and name.
    pub tables: BTreeMap<String, Table>,
    next_id: i64,
    next_row: u64,
    next_transaction: u64,
    /// Application locks, and who has them.
    pub locks: HashMap<String, u32>,
    /// Whether SNAPSHOT is allowed.
    pub no_snapshots: bool,
}

/// The key of a table: names are compared without regard to case.
pub fn key_of(schema: Option<&str>, name: &str) -> String {
    format!("{}\u{1}{}", schema.unwrap_or("dbo").to_lowercase(), name.to_lowercase())
}

impl Db {
    /// Whether a column may be NULL.
    pub fn is_nullable(&self, key: &str, name: &str) -> bool {
        let columns = self.tables.get(key).map(|table| table.columns.as_slice());
        let mut columns = columns.unwrap_or_default().iter();
        columns.any(|column| column.name.eq_ignore_ascii_case(name) && column.nullable)
    }

    pub fn begin(&mut self, session: &mut Session) -> u64 {
        self.next_transaction += 1;
        *session.transaction.get_or_insert(0x0100_0000_0000 + self.next_transaction)
    }

    pub fn create(
        &mut self,
        session: &mut Session,
        key: String,
        mut table: Table,
    ) -> Result<(), SqlError> {
        if self.tables.contains_key(&key) {
            let name = key.split('\u{1}').next_back().unwrap_or("");
            return error(
                2714,
                format!("There is already an object named '{name}' in the database."),
            );
        }
        self.next_id += 1;
        table.id = self.next_id;
        self.tables.insert(key.clone(), table);
        session.undo.push(Undo::Created(key));
        Ok(())
    }

    pub fn drop_table(&mut self, session: &mut Session, key: &str) -> bool {
        match self.tables.remove(key) {
            Some(table) => {
                session.undo.push(Undo::Dropped(key.to_owned(), Box::new(table)));
                true
            }
            None => false,
        }
    }

    pub fn rename(&mut self, session: &mut Session, from: &str, to: &str) -> Result<(), SqlError> {
        if self.tables.contains_key(to) {
            return error(
                15_335,
                "Error: The new name is already in use as a OBJECT name and would cause a duplicate that is not permitted.",
            );
        }
        let Some(table) = self.tables.remove(from) else {
            return error(15_225, "No item by that name could be found in the current database.");
        };
        self.tables.insert(to.to_owned(), table);
        session.undo.push(Undo::Renamed(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Adds a row, or says why not; whether it was added.
    pub fn insert(
        &mut self,
        session: &mut Session,
        key: &str,
        row: Vec<Value>,
    ) -> Result<bool, SqlError> {
        self.next_row += 1;
        let number = self.next_row;
        let Some(table) = self.tables.get_mut(key) else {
            return error(208, "Invalid object name.");
        };
        let shown = key.replace('\u{1}', ".");
        for unique in table.uniques.iter().filter(|unique| !unique.disabled) {
            let cells: Vec<Value> = unique.columns.iter().map(|at| row[*at].clone()).collect();
            if unique.keys.contains_key(&cells) {
                if unique.ignores {
                    return Ok(false);
                }
                let of = |at: &usize| super::types::Val::of(&row[*at], &table.columns[*at].of);
                let told: Vec<String> =
                    unique.columns.iter().map(|at| shown_value(&of(at))).collect();
                let told = told.join(", ");
                return match unique.primary {
                    true => error(
                        2627,
                        format!(
                            "Violation of PRIMARY KEY constraint '{}'. Cannot insert duplicate key in object '{shown}'. The duplicate key value is ({told}).",
                            unique.name
                        ),
                    ),
                    false => error(
                        2601,
                        format!(
                            "Cannot insert duplicate key row in object '{shown}' with unique index '{}'. The duplicate key value is ({told}).",
                            unique.name
                        ),
                    ),
                };
            }
        }
        for unique in &mut table.uniques {
            let cells: Vec<Value> = unique.columns.iter().map(|at| row[*at].clone()).collect();
            unique.keys.insert(cells, number);
        }
        table.rows.insert(number, Arc::new(row));
        session.undo.push(Undo::Inserted(key.to_owned(), number));
        Ok(true)
    }

    /// Disables an index, or builds it.
    pub fn alter_index(
        &mut self,
        session: &mut Session,
        (key, name): (&str, &str),
        disabled: bool,
    ) -> Result<(), SqlError> {
        let was = self.disable(key, name, disabled)?;
        session.undo.push(Undo::Altered(key.to_owned(), name.to_owned(), was));
        Ok(())
    }

    fn disable(&mut self, key: &str, name: &str, disabled: bool) -> Result<bool, SqlError> {
        let table = self.tables.get_mut(key);
        let found = table.and_then(|table| {
            let Table { uniques, rows, .. } = table;
            uniques.iter_mut().find(|unique| unique.name == name).zip(Some(rows))
        });
        let Some((unique, rows)) = found else {
            return error(2727, format!("Cannot find index '{name}'."));
        };
        let was = std::mem::replace(&mut unique.disabled, disabled);
        unique.keys.clear();
        for (number, row) in rows.iter().filter(|_| !disabled) {
            let cells = unique.columns.iter().map(|at| row[*at].clone()).collect();
            if unique.keys.insert(cells, *number).is_some() {
                unique.disabled = was;
                return error(
                    1505,
                    format!(
                        "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the index name '{name}'."
                    ),
                );
            }
        }
        Ok(was)
    }

    pub fn delete(&mut self, session: &mut Session, key: &str, number: u64) {
        if let Some(row) = self.remove(key, number) {
            session.undo.push(Undo::Deleted(key.to_owned(), number, row));
        }
    }

    fn remove(&mut self, key: &str, number: u64) -> Option<Arc<Vec<Value>>> {
        let table = self.tables.get_mut(key)?;
        let row = table.rows.remove(&number)?;
        for unique in &mut table.uniques {
            let cells: Vec<Value> = unique.columns.iter().map(|at| row[*at].clone()).collect();
            unique.keys.remove(&cells);
        }
        Some(row)
    }

    /// Undoes what was done since a mark, or all of the transaction, which then is over.
    pub fn rollback(&mut self, session: &mut Session, mark: Option<usize>) {
        while session.undo.len() > mark.unwrap_or(0) {
            match session.undo.pop() {
                Some(Undo::Inserted(key, number)) => drop(self.remove(&key, number)),
                Some(Undo::Deleted(key, number, row)) => {
                    if let Some(table) = self.tables.get_mut(&key) {
                        for unique in &mut table.uniques {
                            let cells = unique.columns.iter().map(|at| row[*at].clone()).collect();
                            unique.keys.insert(cells, number);
                        }
                        table.rows.insert(number, row);
                    }
                }
                Some(Undo::Created(key)) => drop(self.tables.remove(&key)),
                Some(Undo::Dropped(key, table)) => drop(self.tables.insert(key, *table)),
                Some(Undo::Renamed(from, to)) => {
                    if let Some(table) = self.tables.remove(&to) {
                        self.tables.insert(from, table);
                    }
                }
                Some(Undo::Altered(key, name, disabled)) => {
                    // What was there before is no duplicate.
                    let _ = self.disable(&key, &name, disabled);
                }
                Some(Undo::Savepoint(_)) | None => {}
            }
        }
        if mark.is_none() {
            session.transaction = None;
            session.seen.clear();
            self.unlock(session.number);
        }
    }

    /// Locks of tables end with the transaction.
    pub fn unlock(&mut self, number: u32) {
        for table in self.tables.values_mut() {
            table.locked = table.locked.filter(|owner| *owner != number);
        }
    }

    /// A session is over.
    pub fn forget(&mut self, number: u32) {
        self.locks.retain(|_, owner| *owner != number);
        self.unlock(number);
    }
}

fn shown_value(value: &super::types::Val) -> String {
    use super::types::Val;
    match value {
        Val::Null => "<NULL>".to_owned(),
        Val::Int(number) => number.to_string(),
        Val::Text(text) | Val::Number(text) => text.clone(),
        _ => "...".to_owned(),
    }
}
