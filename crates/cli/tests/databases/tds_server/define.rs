//! Statements that make tables, and rows.

use std::collections::HashMap;

use super::expression::{Scope, evaluate_all, operand, places};
use super::rows::{Given, insert_row, lock_for_writing};
use super::run::{BulkTarget, Run};
use super::store::{Column, Table, Unique};
use super::tokens::{Token, is_sign, is_word, text_of, type_at};
use super::types::{SqlError, Type, Val, Value, error};

impl Run<'_> {
    pub fn create_table(&mut self) -> Result<(), SqlError> {
        let (key, name) = self.table()?;
        self.want_sign("(")?;
        let mut table = Table::default();
        let mut keys: Vec<(bool, Vec<String>)> = Vec::new();
        loop {
            if self.is("CONSTRAINT") {
                self.name()?;
            }
            if self.is("PRIMARY") {
                self.want("KEY")?;
                keys.push((true, self.names()?));
            } else if self.is("UNIQUE") {
                keys.push((false, self.names()?));
            } else if self.is("CHECK") {
                let check = self.group()?;
                table.checks.push((format!("CK__{name}"), check));
            } else {
                let column = self.name()?;
                if self.is("AS") {
                    let computed = self.group()?;
                    table.columns.push(Column {
                        name: column,
                        of: Type::bigint(),
                        nullable: true,
                        identity: false,
                        computed: Some(computed),
                        default: None,
                    });
                } else {
                    let of = type_at(&self.tokens, &mut self.at)?;
                    let mut made = Column {
                        name: column.clone(),
                        of,
                        nullable: true,
                        identity: false,
                        computed: None,
                        default: None,
                    };
                    loop {
                        if self.is("NOT") {
                            self.want("NULL")?;
                            made.nullable = false;
                        } else if self.is("NULL") {
                        } else if self.is("IDENTITY") {
                            if is_sign(self.peek(), "(") {
                                self.group()?;
                            }
                            (made.identity, made.nullable) = (true, false);
                        } else if self.is("DEFAULT") {
                            made.default = Some(self.operand_tokens()?);
                        } else if self.is("PRIMARY") {
                            self.want("KEY")?;
                            made.nullable = false;
                            keys.push((true, vec![column.clone()]));
                        } else if self.is("UNIQUE") {
                            keys.push((false, vec![column.clone()]));
                        } else if self.is("CHECK") {
                            let check = self.group()?;
                            table.checks.push((format!("CK__{name}__{column}"), check));
                        } else {
                            break;
                        }
                    }
                    table.columns.push(made);
                }
            }
            if self.is_sign(")") {
                break;
            }
            self.want_sign(",")?;
        }
        for (primary, names) in keys {
            let columns = places(&table.columns, &names)?;
            for at in columns.iter().filter(|_| primary) {
                table.columns[*at].nullable = false;
            }
            let name = format!("{}__{name}", if primary { "PK" } else { "UQ" });
            table.uniques.push(Unique {
                name,
                primary,
                columns,
                ignores: false,
                disabled: false,
                keys: HashMap::new(),
            });
        }
        self.shared.db.lock().unwrap().create(self.session, key, table)?;
        self.ended(None)
    }

    /// A value: a call, or something in parentheses, or one word.
    pub fn operand_tokens(&mut self) -> Result<Vec<Token>, SqlError> {
        if is_sign(self.peek(), "(") {
            return self.group();
        }
        let start = self.at;
        self.at += 1;
        if is_sign(self.peek(), "(") {
            self.group()?;
        }
        Ok(self.tokens[start..self.at].to_vec())
    }

    pub fn create_index(&mut self) -> Result<(), SqlError> {
        self.want("UNIQUE")?;
        self.want("INDEX")?;
        let name = self.name()?;
        self.want("ON")?;
        let (key, _) = self.table()?;
        let names = self.names()?;
        let ignores = self.is("WITH") && text_of(&self.group()?).contains("IGNORE_DUP_KEY = ON");
        let mut db = self.shared.db.lock().unwrap();
        let Some(table) = db.tables.get_mut(&key) else {
            return error(1088, "Cannot find the object.");
        };
        let columns = places(&table.columns, &names)?;
        let mut unique = Unique {
            name,
            primary: false,
            columns,
            ignores,
            disabled: false,
            keys: HashMap::new(),
        };
        for (number, row) in &table.rows {
            let cells: Vec<Value> = unique.columns.iter().map(|at| row[*at].clone()).collect();
            if unique.keys.insert(cells, *number).is_some() {
                return error(
                    1505,
                    "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found.",
                );
            }
        }
        table.uniques.push(unique);
        drop(db);
        self.ended(None)
    }

    pub fn alter(&mut self) -> Result<(), SqlError> {
        if self.is("INDEX") {
            let index = self.name()?;
            self.want("ON")?;
            let (key, _) = self.table()?;
            let disabled = self.is("DISABLE");
            if !disabled {
                self.want("REBUILD")?;
            }
            let mut db = self.shared.db.lock().unwrap();
            db.alter_index(self.session, (&key, &index), disabled)?;
            drop(db);
            return self.ended(None);
        }
        self.want("TABLE")?;
        let (key, name) = self.table()?;
        self.want("ADD")?;
        let is_check = self.is("CHECK");
        if !is_check {
            self.want("DEFAULT")?;
        }
        let tokens = self.operand_tokens()?;
        let column = if is_check {
            None
        } else {
            self.want("FOR")?;
            Some(self.name()?)
        };
        let mut db = self.shared.db.lock().unwrap();
        let Some(table) = db.tables.get_mut(&key) else {
            return error(4902, "Cannot find the object.");
        };
        match column {
            None => table.checks.push((format!("CK__{name}"), tokens)),
            Some(column) => {
                let at = places(&table.columns, &[column])?[0];
                table.columns[at].default = Some(tokens);
            }
        }
        drop(db);
        self.ended(None)
    }

    pub fn filter(&mut self) -> Result<Vec<Token>, SqlError> {
        if !self.is("WHERE") {
            return Ok(Vec::new());
        }
        let start = self.at;
        let ends = |token: Option<&Token>| {
            token.is_none() || is_sign(token, ";") || is_word(token, "ORDER")
        };
        while !ends(self.peek()) {
            self.at += 1;
        }
        Ok(self.tokens[start..self.at].to_vec())
    }

    pub fn delete(&mut self, key: &str, filter: &[Token]) -> Result<(), SqlError> {
        let mut db = lock_for_writing(self.shared, self.session, key)?;
        let Some(table) = db.tables.get(key) else { return error(208, "Invalid object name.") };
        let mut numbers = Vec::new();
        for (number, row) in &table.rows {
            let scope = Scope {
                columns: &table.columns,
                row,
                parameters: Some(&self.parameters),
                variables: None,
            };
            if filter.is_empty() || evaluate_all(filter, &scope)? == Val::Int(1) {
                numbers.push(*number);
            }
        }
        for number in &numbers {
            db.delete(self.session, key, *number);
        }
        drop(db);
        self.ended(Some(numbers.len() as u64))
    }

    pub fn insert_bulk(&mut self) -> Result<(), SqlError> {
        self.shared.seen.lock().unwrap().push(self.sql.clone());
        // In another one texts that the server converts are other days, and errors are told otherwise.
        if self.session.program == "coload" && self.session.language != "US_ENGLISH" {
            return error(2755, "SET LANGUAGE is missing.");
        }
        let (key, name) = self.table()?;
        self.want_sign("(")?;
        let mut columns = Vec::new();
        loop {
            let column = self.name()?;
            columns.push((column, type_at(&self.tokens, &mut self.at)?));
            if self.is_sign(")") {
                break;
            }
            self.want_sign(",")?;
        }
        if self.is("WITH") {
            let known =
                ["CHECK_CONSTRAINTS", "FIRE_TRIGGERS", "KEEP_NULLS", "TABLOCK", "ROWS_PER_BATCH"];
            for option in self.group()? {
                if let Token::Word(word) = option
                    && !known.contains(&word.as_str())
                {
                    return error(319, format!("Incorrect syntax near '{word}'."));
                }
            }
        }
        let db = self.shared.db.lock().unwrap();
        let Some(table) = db.tables.get(&key) else {
            return error(208, format!("Invalid object name '{name}'."));
        };
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        places(&table.columns, &names)?;
        drop(db);
        self.bulk = Some(BulkTarget { key, columns });
        self.ended(None)
    }

    pub fn insert(&mut self) -> Result<(), SqlError> {
        let _ = self.is("INTO");
        let (key, name) = self.table()?;
        let mut db = lock_for_writing(self.shared, self.session, &key)?;
        let Some(table) = db.tables.get(&key) else {
            return error(208, format!("Invalid object name '{name}'."));
        };
        let all: Vec<String> = table
            .columns
            .iter()
            .filter(|c| !c.identity && c.computed.is_none())
            .map(|c| c.name.clone())
            .collect();
        let names = if is_sign(self.peek(), "(") { self.names()? } else { all };
        let mut count = 0;
        if self.is("SELECT") {
            let list = self.list()?;
            self.want("FROM")?;
            let (from, _) = self.table()?;
            let Some(source) = db.tables.get(&from) else {
                return error(208, "Invalid object name.");
            };
            let mut rows = Vec::new();
            for row in source.rows.values() {
                let mut cells = Vec::new();
                for (name, tokens) in names.iter().zip(&list) {
                    let at = match &tokens[..] {
                        [Token::Name(name) | Token::Word(name)] => {
                            places(&source.columns, std::slice::from_ref(name))?[0]
                        }
                        _ => return self.syntax(),
                    };
                    cells.push((name.clone(), row[at].clone(), source.columns[at].of.clone()));
                }
                rows.push(cells);
            }
            for cells in rows {
                let given = cells
                    .iter()
                    .map(|(name, value, of)| (name.clone(), Given::Typed(value.clone(), of)));
                count += u64::from(insert_row(
                    &mut db,
                    self.session,
                    &key,
                    given.collect(),
                    self.answer,
                )?);
            }
            drop(db);
            return self.ended(Some(count));
        }
        self.want("VALUES")?;
        let mut rows = 0;
        loop {
            self.want_sign("(")?;
            rows += 1;
            if rows > 1000 {
                return error(
                    10_738,
                    "The number of row value expressions in the INSERT statement exceeds the maximum allowed number of 1000 row values.",
                );
            }
            let mut cells = Vec::new();
            loop {
                let scope = Scope { parameters: Some(&self.parameters), ..Scope::default() };
                let value = operand(&self.tokens, &mut self.at, &scope)?;
                let Some(name) = names.get(cells.len()) else {
                    return error(110, "There are fewer columns than values.");
                };
                cells.push((name.clone(), Given::Val(bytes_of(value))));
                if self.is_sign(")") {
                    break;
                }
                self.want_sign(",")?;
            }
            if cells.len() != names.len() {
                return error(109, "There are more columns than values.");
            }
            count += u64::from(insert_row(&mut db, self.session, &key, cells, self.answer)?);
            if !self.is_sign(",") {
                break;
            }
        }
        drop(db);
        self.ended(Some(count))
    }
}

/// A value that is of bytes as bytes.
fn bytes_of(value: Val) -> Val {
    match value {
        Val::Raw(of, bytes) if matches!(of.kind, 0xa5 | 0xad) => Val::Bytes(bytes),
        value => value,
    }
}
