//! Statements of transactions, procedures and the catalogue.

use std::collections::HashMap;

use super::expression::{Scope, operand};
use super::store::{Session, key_of};
use super::tokens::{Token, is_sign, is_word, text_of, tokens, type_at};
use super::types::{SqlError, Type, Val, error};
use super::wire::{Answer, Done};
use super::{Shared, catalogue};

/// A table for which INSERT BULK has asked.
pub struct BulkTarget {
    pub key: String,
    pub columns: Vec<(String, Type)>,
}

/// What a statement of a batch or a call does.
pub struct Run<'a> {
    pub shared: &'a Shared,
    pub session: &'a mut Session,
    pub answer: &'a mut Answer,
    pub tokens: Vec<Token>,
    pub at: usize,
    pub sql: String,
    pub parameters: HashMap<String, Val>,
    pub done: Done,
    pub bulk: Option<BulkTarget>,
}

impl Run<'_> {
    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub fn is(&mut self, word: &str) -> bool {
        let is = is_word(self.peek(), word);
        self.at += usize::from(is);
        is
    }

    pub fn is_sign(&mut self, sign: &str) -> bool {
        let is = is_sign(self.peek(), sign);
        self.at += usize::from(is);
        is
    }

    pub fn syntax<T>(&self) -> Result<T, SqlError> {
        error(
            102,
            format!(
                "Incorrect syntax near '{}'.",
                text_of(&self.tokens[self.at.min(self.tokens.len())..])
            ),
        )
    }

    pub fn want(&mut self, word: &str) -> Result<(), SqlError> {
        if self.is(word) { Ok(()) } else { self.syntax() }
    }

    pub fn want_sign(&mut self, sign: &str) -> Result<(), SqlError> {
        if self.is_sign(sign) { Ok(()) } else { self.syntax() }
    }

    pub fn name(&mut self) -> Result<String, SqlError> {
        let name = match self.peek() {
            Some(Token::Word(name) | Token::Name(name)) => name.clone(),
            _ => return self.syntax(),
        };
        self.at += 1;
        Ok(name)
    }

    /// A table, and how it is called.
    pub fn table(&mut self) -> Result<(String, String), SqlError> {
        let mut name = self.name()?;
        let mut schema = None;
        while self.is_sign(".") {
            schema = Some(std::mem::replace(&mut name, self.name()?));
        }
        Ok((key_of(schema.as_deref(), &name), name))
    }

    pub fn names(&mut self) -> Result<Vec<String>, SqlError> {
        self.want_sign("(")?;
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            let _ = self.is("DESC") || self.is("ASC");
            if self.is_sign(")") {
                return Ok(names);
            }
            self.want_sign(",")?;
        }
    }

    /// What stands in parentheses, with them.
    pub fn group(&mut self) -> Result<Vec<Token>, SqlError> {
        let start = self.at;
        self.want_sign("(")?;
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                None => return self.syntax(),
                Some(Token::Sign(sign)) if sign == "(" => depth += 1,
                Some(Token::Sign(sign)) if sign == ")" => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Ok(self.tokens[start..self.at].to_vec())
    }

    pub fn ended(&mut self, count: Option<u64>) -> Result<(), SqlError> {
        self.answer.done(self.done, count);
        Ok(())
    }

    pub fn statement(&mut self) -> Result<(), SqlError> {
        let shared = self.shared;
        if self.asks_catalogue()? {
            return Ok(());
        }
        if self.is("SET") {
            if self.is("FMTONLY") {
                self.session.format_only = self.is("ON");
                let _ = self.is("OFF");
                return self.ended(None);
            }
            let start = self.at;
            while self.at < self.tokens.len() && !is_sign(self.peek(), ";") {
                self.at += 1;
            }
            let words = text_of(&self.tokens[start..self.at]).to_uppercase();
            if words.starts_with("TRANSACTION ISOLATION LEVEL") {
                self.session.snapshots = words.ends_with("SNAPSHOT");
            }
            if let Some(language) = words.strip_prefix("LANGUAGE ") {
                self.session.language = language.to_owned();
            }
            if let Some(timeout) = words.strip_prefix("LOCK_TIMEOUT ") {
                self.session.lock_timeout = timeout.replace(' ', "").parse().unwrap_or(-1);
            }
            return self.ended(None);
        }
        if self.is("IF") {
            // As it is before ROLLBACK, and before DROP.
            if matches!(self.peek(), Some(Token::Variable(name)) if name == "@trancount") {
                self.at += 3;
                if self.session.transaction.is_none() {
                    self.at = self.tokens.len();
                    return self.ended(None);
                }
                return self.statement();
            }
            return self.syntax();
        }
        if self.is("BEGIN") {
            if !self.is("TRAN") {
                self.want("TRANSACTION")?;
            }
            let number = shared.db.lock().unwrap().begin(self.session);
            self.answer.change(8, &number.to_le_bytes(), &[]);
            return self.ended(None);
        }
        if self.is("COMMIT") {
            let _ = self.is("TRAN") || self.is("TRANSACTION");
            let Some(number) = self.session.transaction else {
                return error(
                    3902,
                    "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                );
            };
            shared.db.lock().unwrap().unlock(self.session.number);
            self.session.commit();
            self.answer.change(9, &[], &number.to_le_bytes());
            return self.ended(None);
        }
        if self.is("SAVE") {
            self.want("TRANSACTION")?;
            let name = self.name()?;
            if self.session.transaction.is_none() {
                return error(
                    628,
                    "Cannot issue SAVE TRANSACTION when there is no active transaction.",
                );
            }
            self.session.save(&name);
            return self.ended(None);
        }
        if self.is("ROLLBACK") {
            let _ = self.is("TRAN") || self.is("TRANSACTION");
            let name = match self.peek() {
                Some(Token::Word(_)) => Some(self.name()?),
                _ => None,
            };
            let Some(number) = self.session.transaction else {
                return error(
                    3903,
                    "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                );
            };
            let mut db = shared.db.lock().unwrap();
            match name {
                Some(name) => {
                    let Some(mark) = self.session.savepoint(&name) else {
                        return error(
                            6401,
                            format!(
                                "Cannot roll back {name}. No transaction or savepoint of that name was found."
                            ),
                        );
                    };
                    db.rollback(self.session, Some(mark));
                }
                None => {
                    db.rollback(self.session, None);
                    self.answer.change(10, &[], &number.to_le_bytes());
                }
            }
            drop(db);
            return self.ended(None);
        }
        if self.is("CREATE") {
            return if self.is("TABLE") { self.create_table() } else { self.create_index() };
        }
        if self.is("ALTER") {
            return self.alter();
        }
        if self.is("DROP") {
            self.want("TABLE")?;
            let missing = self.is("IF") && {
                self.want("EXISTS")?;
                true
            };
            let (key, name) = self.table()?;
            if !shared.db.lock().unwrap().drop_table(self.session, &key) && !missing {
                return error(
                    3701,
                    format!(
                        "Cannot drop the table '{name}', because it does not exist or you do not have permission."
                    ),
                );
            }
            return self.ended(None);
        }
        if self.is("TRUNCATE") {
            self.want("TABLE")?;
            let (key, _) = self.table()?;
            return self.delete(&key, &[]);
        }
        if self.is("DELETE") {
            self.want("FROM")?;
            let (key, _) = self.table()?;
            let filter = self.filter()?;
            return self.delete(&key, &filter);
        }
        if self.is("INSERT") {
            return if self.is("BULK") { self.insert_bulk() } else { self.insert() };
        }
        if self.is("SELECT") {
            return self.select();
        }
        if self.is("EXEC") {
            return self.exec();
        }
        if self.is("DECLARE") {
            self.at += 1;
            type_at(&self.tokens, &mut self.at)?;
            return Ok(());
        }
        if self.is("KILL") {
            let Some(Token::Number(number)) = self.peek().cloned() else { return self.syntax() };
            self.at += 1;
            shared.kill(number.parse().unwrap_or(0));
            return self.ended(None);
        }
        self.syntax()
    }

    /// Answers a question of the catalogue, if it is one.
    pub fn asks_catalogue(&mut self) -> Result<bool, SqlError> {
        let is_any =
            self.at == 0 && (self.sql.contains("sys.") || self.sql.contains("INFORMATION_SCHEMA."));
        if !is_any {
            return Ok(false);
        }
        let mut key = None;
        let literal = self
            .sql
            .split_once("OBJECT_ID(N'")
            .and_then(|(_, rest)| rest.split_once('\''))
            .map(|(name, _)| Val::Text(name.to_owned()));
        if let Some(Val::Text(name)) = self.parameters.get("p1").cloned().or(literal)
            && !self.sql.contains("dm_exec_requests")
            && !self.sql.contains("INFORMATION_SCHEMA")
        {
            let inner = tokens(&name)?;
            let names: Vec<&String> = inner
                .iter()
                .filter_map(|token| match token {
                    Token::Name(name) | Token::Word(name) => Some(name),
                    _ => None,
                })
                .collect();
            key = match names[..] {
                [name] => Some(key_of(None, name)),
                [schema, name] => Some(key_of(Some(schema), name)),
                _ => None,
            };
        }
        let db = self.shared.db.lock().unwrap();
        let table = key.and_then(|key| db.tables.get(&key));
        let name = match self.parameters.get("p1") {
            Some(Val::Text(name)) => name.as_str(),
            _ => "",
        };
        let Some((columns, rows)) = catalogue::ask(&db, &self.sql, (table, name)) else {
            return error(208, format!("Invalid object name: {}", self.sql));
        };
        self.at = self.tokens.len();
        self.answer.columns(&columns);
        rows.iter().for_each(|row| self.answer.row(row));
        self.answer.done(self.done, Some(rows.len() as u64));
        Ok(true)
    }

    pub fn exec(&mut self) -> Result<(), SqlError> {
        let mut into = None;
        if let Some(Token::Variable(name)) = self.peek().cloned() {
            self.at += 1;
            self.want_sign("=")?;
            into = Some(name);
        }
        let name = self.name()?.to_lowercase();
        let mut given = Vec::new();
        loop {
            let mut own = String::new();
            if let (Some(Token::Variable(name)), true) =
                (self.peek().cloned(), is_sign(self.tokens.get(self.at + 1), "="))
            {
                own = name;
                self.at += 2;
            }
            let scope = Scope { parameters: Some(&self.parameters), ..Scope::default() };
            given.push((own, operand(&self.tokens, &mut self.at, &scope)?));
            if !self.is_sign(",") {
                break;
            }
        }
        let texts: Vec<String> = given
            .iter()
            .map(|(_, value)| match value {
                Val::Text(text) => text.clone(),
                _ => String::new(),
            })
            .collect();
        let mut db = self.shared.db.lock().unwrap();
        match (name.as_str(), &texts[..]) {
            ("sp_rename", [from, to, kind]) if kind == "OBJECT" => {
                let inner = tokens(from)?;
                let names: Vec<String> = inner
                    .iter()
                    .filter_map(|token| match token {
                        Token::Name(name) | Token::Word(name) => Some(name.clone()),
                        _ => None,
                    })
                    .collect();
                let (schema, old) = match &names[..] {
                    [name] => (None, name),
                    [schema, name] => (Some(schema.as_str()), name),
                    _ => return error(15_225, "No item by that name could be found."),
                };
                db.rename(self.session, &key_of(schema, old), &key_of(schema, to))?;
                self.answer.info(15_477, "Caution: Changing any part of an object name could break scripts and stored procedures.");
            }
            ("sp_getapplock", [resource, mode, owner, _])
                if mode == "Exclusive" && owner == "Session" =>
            {
                let holder = *db.locks.entry(resource.clone()).or_insert(self.session.number);
                let got = if holder == self.session.number { 0 } else { -1 };
                if let Some(name) = into {
                    self.session.variables.insert(name, Val::Int(got));
                }
            }
            _ => return error(2812, format!("Could not find stored procedure '{name}'.")),
        }
        drop(db);
        self.ended(None)
    }
}
