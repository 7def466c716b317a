//! SELECT.

use std::sync::Arc;

use super::expression::{Scope, aggregate, evaluate_all, places, type_of};
use super::run::Run;
use super::store::{Column, Table};
use super::tokens::{Token, is_sign, is_word, text_of};
use super::types::{SqlError, Type, Val, Value, error, store};

impl Run<'_> {
    /// The parts of a list, to FROM, INTO or the end.
    pub fn list(&mut self) -> Result<Vec<Vec<Token>>, SqlError> {
        let mut parts = vec![Vec::new()];
        let mut depth = 0;
        while let Some(token) = self.peek().cloned() {
            let ends = is_word(Some(&token), "FROM")
                || is_word(Some(&token), "INTO")
                || is_sign(Some(&token), ";");
            if depth == 0 && ends {
                break;
            }
            match &token {
                Token::Sign(sign) if sign == "(" => depth += 1,
                Token::Sign(sign) if sign == ")" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            match (&token, depth) {
                (Token::Sign(sign), 0) if sign == "," => parts.push(Vec::new()),
                _ => parts.last_mut().unwrap().push(token),
            }
        }
        Ok(parts)
    }

    pub fn select(&mut self) -> Result<(), SqlError> {
        let mut top = usize::MAX;
        if self.is("TOP") {
            let group = self.group()?;
            top = evaluate_all(&group, &Scope::default())?.int()?.unwrap_or(0) as usize;
        }
        let list = self.list()?;
        if self.is("INTO") {
            return self.select_into(&list);
        }
        if !self.is("FROM") {
            return self.select_values(&list);
        }
        let (key, name) = self.table()?;
        let mut locks = false;
        if self.is("WITH") {
            locks = text_of(&self.group()?).contains("TABLOCK");
        }
        let filter = self.filter()?;
        let mut order = Vec::new();
        if self.is("ORDER") {
            self.want("BY")?;
            loop {
                order.push(self.name()?);
                let _ = self.is("ASC") || self.is("DESC");
                if !self.is_sign(",") {
                    break;
                }
            }
        }
        let table = self.read_table(&key, &name, locks)?;
        let mut rows: Vec<Arc<Vec<Value>>> = Vec::new();
        for row in table.rows.values() {
            let scope = Scope {
                columns: &table.columns,
                row,
                parameters: Some(&self.parameters),
                variables: None,
            };
            if filter.is_empty() || evaluate_all(&filter, &scope)? == Val::Int(1) {
                rows.push(Arc::clone(row));
            }
        }
        if !order.is_empty() {
            let places = places(&table.columns, &order)?;
            let number = |row: &Arc<Vec<Value>>| -> Vec<i64> {
                places
                    .iter()
                    .map(|at| {
                        Val::of(&row[*at], &table.columns[*at].of)
                            .int()
                            .ok()
                            .flatten()
                            .unwrap_or(i64::MIN)
                    })
                    .collect()
            };
            rows.sort_by_cached_key(|row| {
                let texts: Vec<String> = places
                    .iter()
                    .map(|at| match Val::of(&row[*at], &table.columns[*at].of) {
                        Val::Text(text) => text,
                        _ => String::new(),
                    })
                    .collect();
                (number(row), texts)
            });
        }
        rows.truncate(top);
        self.project(&list, &table.columns, &rows)
    }

    /// A table as this session sees it.
    pub fn read_table(&mut self, key: &str, name: &str, locks: bool) -> Result<Table, SqlError> {
        let keeps = self.session.snapshots && self.session.transaction.is_some();
        if let Some(seen) = self.session.seen.get(key).filter(|_| keeps) {
            return Ok(seen.clone());
        }
        let mut db = self.shared.db.lock().unwrap();
        if self.session.snapshots && db.no_snapshots {
            return error(
                3952,
                "Snapshot isolation transaction failed accessing database 'd' because snapshot isolation is not allowed in this database.",
            );
        }
        let Some(table) = db.tables.get_mut(key) else {
            return error(208, format!("Invalid object name '{name}'."));
        };
        if locks {
            table.locked = Some(self.session.number);
        }
        let copy = table.clone();
        drop(db);
        if self.session.snapshots && self.session.transaction.is_some() {
            self.session.seen.insert(key.to_owned(), copy.clone());
        }
        Ok(copy)
    }

    pub fn project(
        &mut self,
        list: &[Vec<Token>],
        columns: &[Column],
        rows: &[Arc<Vec<Value>>],
    ) -> Result<(), SqlError> {
        enum Cell {
            Column(usize),
            Value(Vec<Token>, Type),
            Aggregate(Val, Type),
        }
        let (mut names, mut cells) = (Vec::new(), Vec::new());
        for part in list {
            match &part[..] {
                [Token::Sign(star)] if star == "*" => {
                    for (at, column) in columns.iter().enumerate() {
                        names.push((column.name.clone(), column.of.clone()));
                        cells.push(Cell::Column(at));
                    }
                }
                [Token::Name(name) | Token::Word(name)] => {
                    let at = places(columns, std::slice::from_ref(name))?[0];
                    names.push((columns[at].name.clone(), columns[at].of.clone()));
                    cells.push(Cell::Column(at));
                }
                part => match aggregate(part, columns, rows)? {
                    Some((value, of)) => {
                        names.push((String::new(), of.clone()));
                        cells.push(Cell::Aggregate(value, of));
                    }
                    None => {
                        let of = type_of(part);
                        names.push((String::new(), of.clone()));
                        cells.push(Cell::Value(part.to_vec(), of));
                    }
                },
            }
        }
        let rows = if self.session.format_only { &[] } else { rows };
        let is_aggregate = cells.iter().any(|cell| matches!(cell, Cell::Aggregate(..)));
        self.answer.columns(&names);
        let nothing = Arc::new(vec![None; columns.len()]);
        let one = [nothing];
        let rows = if is_aggregate { &one[..] } else { rows };
        for row in rows {
            let mut out = Vec::new();
            for cell in &cells {
                out.push(match cell {
                    Cell::Column(at) => row[*at].clone(),
                    Cell::Aggregate(value, of) => store(value, of, "")?,
                    Cell::Value(tokens, of) => {
                        let scope = Scope {
                            columns,
                            row,
                            parameters: Some(&self.parameters),
                            variables: None,
                        };
                        store(&evaluate_all(tokens, &scope)?, of, "")?
                    }
                });
            }
            self.answer.row(&out);
        }
        self.ended(Some(rows.len() as u64))
    }

    pub fn select_values(&mut self, list: &[Vec<Token>]) -> Result<(), SqlError> {
        let mut names = Vec::new();
        let mut row = Vec::new();
        for part in list {
            let (value, of) = match text_of(part).to_uppercase().as_str() {
                "CAST ( @@VERSION AS NVARCHAR ( 300 ) )" | "@@VERSION" => (
                    Val::Text(
                        "Microsoft SQL Server test server of TDS - 15.0.2000.0\n\tof tests"
                            .to_owned(),
                    ),
                    Type::text(),
                ),
                "CAST ( @@SPID AS NVARCHAR ( 20 ) )" => {
                    (Val::Text(self.session.number.to_string()), Type::text())
                }
                "@@SPID" => (Val::Int(i64::from(self.session.number)), Type::int()),
                "@@TRANCOUNT" => {
                    (Val::Int(i64::from(self.session.transaction.is_some())), Type::int())
                }
                _ => {
                    let scope = Scope {
                        parameters: Some(&self.parameters),
                        variables: Some(&self.session.variables),
                        ..Scope::default()
                    };
                    let value = evaluate_all(part, &scope)?;
                    let of = match value {
                        Val::Text(_) => Type::text(),
                        _ => type_of(part),
                    };
                    (value, of)
                }
            };
            row.push(store(&value, &of, "")?);
            names.push((String::new(), of));
        }
        self.answer.columns(&names);
        self.answer.row(&row);
        self.ended(Some(1))
    }

    pub fn select_into(&mut self, list: &[Vec<Token>]) -> Result<(), SqlError> {
        let (new, _) = self.table()?;
        self.want("FROM")?;
        let (old, _) = self.table()?;
        let mut db = self.shared.db.lock().unwrap();
        let Some(source) = db.tables.get(&old) else { return error(208, "Invalid object name.") };
        let mut table = Table::default();
        for part in list {
            let [Token::Name(name)] = &part[..] else { return self.syntax() };
            let column =
                source.columns[places(&source.columns, std::slice::from_ref(name))?[0]].clone();
            table.columns.push(Column { default: None, computed: None, ..column });
        }
        db.create(self.session, new, table)?;
        drop(db);
        self.ended(Some(0))
    }
}
