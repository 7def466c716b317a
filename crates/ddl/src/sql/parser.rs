//! Tokens to columns.

use coload_types::{Column, Error, Result, parse_value};

use super::lexer::{Kind, Token, error_at, tokens};
use crate::{Check, Index, IndexKind, Key, KeyKind, Schema};

/// Words that start a constraint of the table where a column could stand.
const TABLE_CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "EXCLUDE"];

/// Reads tokens from left to right.
pub struct Parser<'a> {
    what: &'static str,
    sql: &'a str,
    tokens: Vec<Token>,
    next: usize,
    /// Names of CHECKs, and where their conditions start.
    checks: Vec<(Option<String>, usize)>,
    /// The key, by the names of its columns.
    key: Option<(KeyKind, Vec<String>)>,
    /// What UNIQUE was said of, by the names of columns, and the name of the constraint.
    unique: Vec<(Option<String>, Vec<String>)>,
}

impl<'a> Parser<'a> {
    /// Over the tokens of `sql`, which messages call `what`.
    pub fn new(what: &'static str, sql: &'a str) -> Result<Self> {
        let tokens = tokens(what, sql)?;
        Ok(Parser { what, sql, tokens, next: 0, checks: Vec::new(), key: None, unique: Vec::new() })
    }

    /// `CREATE TABLE name (columns)` and nothing after it but a semicolon.
    pub fn create_table(&mut self) -> Result<(String, Schema)> {
        self.keyword("CREATE", "CREATE TABLE")?;
        self.keyword("TABLE", "TABLE")?;
        if self.take_word("IF") {
            self.keyword("NOT", "IF NOT EXISTS")?;
            self.keyword("EXISTS", "IF NOT EXISTS")?;
        }
        let mut name = self.name("the name of the table")?;
        while self.take_symbol('.') {
            name = self.name("the name of the table")?;
        }
        self.symbol('(', "( and the columns")?;
        let columns = self.columns()?;
        self.symbol(')', "a comma or )")?;
        if self.is_word("CLUSTER") {
            self.next += 1;
            self.keyword("BY", "BY after CLUSTER")?;
            self.key_columns(KeyKind::Cluster)?;
        }
        while self.take_symbol(';') {}
        self.end("nothing after the columns")?;
        Ok((name, self.schema(columns)?))
    }

    /// Columns separated by commas and nothing else.
    pub fn column_list(&mut self) -> Result<Schema> {
        let columns = self.columns()?;
        self.end("a comma between columns")?;
        self.schema(columns)
    }

    fn columns(&mut self) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        loop {
            if !self.table_check()? && !self.table_key()? && !self.table_unique()? {
                columns.push(self.column()?);
            }
            if !self.take_symbol(',') {
                return Ok(columns);
            }
        }
    }

    /// The schema, when all columns are known that conditions may name.
    fn schema(&mut self, columns: Vec<Column>) -> Result<Schema> {
        let mut checks = Vec::new();
        for (name, start) in std::mem::take(&mut self.checks) {
            self.next = start;
            let condition = self.condition(&columns, 0)?;
            self.symbol(')', "AND, OR or ) after the condition")?;
            checks.push(Check::new(name, condition, &columns));
        }
        let key = self.key.take();
        let key = key.map(|(kind, names)| Key::of_names(kind, &names, &columns)).transpose()?;
        let unique = std::mem::take(&mut self.unique).into_iter().map(|(name, names)| {
            Index::of_names(name.unwrap_or_default(), IndexKind::Unique, (&names, &columns))
        });
        let indexes = unique.collect::<Result<Vec<_>>>()?;
        Schema::new(columns)?.with_checks(checks)?.with_key(key)?.with_indexes(indexes)
    }

    /// Takes a UNIQUE that stands where a column could; says whether there is one.
    fn table_unique(&mut self) -> Result<bool> {
        let is_named = self.is_word("CONSTRAINT") && self.is_word_at(self.next + 2, "UNIQUE");
        let is_there = is_named || self.is_word("UNIQUE") && self.next_is_symbol('(');
        if !is_there {
            return Ok(false);
        }
        let name = match self.take_word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        self.keyword("UNIQUE", "UNIQUE")?;
        let names = self.names()?;
        self.unique.push((name, names));
        Ok(true)
    }

    /// Takes a PRIMARY KEY that stands where a column could; says whether there is one.
    fn table_key(&mut self) -> Result<bool> {
        // A column may have that name.
        let is_key = self.is_word("PRIMARY") && self.is_word_at(self.next + 1, "KEY");
        if is_key {
            self.next += 2;
            self.key_columns(KeyKind::Primary)?;
        }
        Ok(is_key)
    }

    /// `(a, b)` behind the words of a key.
    fn key_columns(&mut self, kind: KeyKind) -> Result<()> {
        let begin = self.next;
        let names = self.names()?;
        self.set_key(begin, kind, names)
    }

    /// `(a, b)`.
    fn names(&mut self) -> Result<Vec<String>> {
        self.symbol('(', "( and the columns of the key")?;
        let mut names = vec![self.name("the name of a column")?];
        while self.take_symbol(',') {
            names.push(self.name("the name of a column")?);
        }
        self.symbol(')', "a comma or ) after the columns of the key")?;
        Ok(names)
    }

    fn set_key(&mut self, at: usize, kind: KeyKind, names: Vec<String>) -> Result<()> {
        match &self.key {
            None => self.key = Some((kind, names)),
            Some((first, _)) => {
                let text = format!(
                    "a table has one key, which its rows are ordered by: {} beside {}",
                    kind.sql_name(),
                    first.sql_name()
                );
                return Err(self.error(self.tokens[at].at, &text));
            }
        }
        Ok(())
    }

    /// Takes a CHECK that stands where a column could; says whether there is one.
    fn table_check(&mut self) -> Result<bool> {
        let is_check = match self.is_word("CONSTRAINT") {
            true => self.is_rule(),
            // A column may have that name.
            false => self.is_word("CHECK") && self.next_is_symbol('('),
        };
        if is_check {
            self.rule()?;
        }
        Ok(is_check)
    }

    /// `[CONSTRAINT name] CHECK (condition)`; the condition is read when all columns are known.
    fn rule(&mut self) -> Result<()> {
        let name = match self.take_word("CONSTRAINT") {
            true => Some(self.name("the name of the constraint")?),
            false => None,
        };
        self.keyword("CHECK", "CHECK")?;
        self.symbol('(', "( and the condition")?;
        self.checks.push((name, self.next));
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                Kind::Symbol('(') => open += 1,
                Kind::Symbol(')') => open -= 1,
                Kind::End => return Err(self.expected(") after the condition")),
                _ => {}
            }
            self.next += 1;
        }
        Ok(())
    }

    fn column(&mut self) -> Result<Column> {
        if let Kind::Word(word) = self.peek()
            && TABLE_CONSTRAINTS.iter().any(|c| c.eq_ignore_ascii_case(word))
        {
            return Err(self.no_constraint(&word.to_uppercase()));
        }
        let name = self.name("the name of a column")?;
        let data_type = self.data_type(&name)?;
        let mut column = Column::new(name, data_type);
        while let Kind::Word(word) = self.peek() {
            let word = word.to_uppercase();
            match word.as_str() {
                "NOT" => {
                    self.next += 1;
                    self.keyword("NULL", "NULL after NOT")?;
                    column.nullable = false;
                }
                "NULL" => self.next += 1,
                "DEFAULT" => {
                    self.next += 1;
                    self.default(&mut column)?;
                }
                "CHECK" | "CONSTRAINT" if self.is_rule() => self.rule()?,
                "PRIMARY" if self.is_word_at(self.next + 1, "KEY") => {
                    let at = self.next;
                    self.next += 2;
                    self.set_key(at, KeyKind::Primary, vec![column.name.clone()])?;
                }
                "UNIQUE" => {
                    self.next += 1;
                    self.unique.push((None, vec![column.name.clone()]));
                }
                _ => return Err(self.no_constraint(&word)),
            }
        }
        Ok(column)
    }

    /// Whether a CHECK starts here, named or not.
    fn is_rule(&self) -> bool {
        let check = |at: usize| {
            let kind = self.tokens.get(at).map(|token| &token.kind);
            matches!(kind, Some(Kind::Word(word)) if word.eq_ignore_ascii_case("CHECK"))
        };
        check(self.next) || check(self.next + 2)
    }

    /// The literal after DEFAULT, as a value of the column's type.
    fn default(&mut self, column: &mut Column) -> Result<()> {
        let parenthesis = self.take_symbol('(');
        let at = self.tokens[self.next].at;
        column.default = match self.literal()? {
            None => None,
            Some(text) => match parse_value(text.as_bytes(), column.data_type) {
                Ok(value) => Some(value),
                Err(rule) => {
                    let (name, data_type) = (&column.name, column.data_type);
                    let text = format!("the default {text} of {name} is not {data_type}: {rule}");
                    return Err(self.error(at, &text));
                }
            },
        };
        if parenthesis {
            self.symbol(')', ") after the literal")?;
        }
        Ok(())
    }

    /// The text of a literal; `None` is NULL.
    pub fn literal(&mut self) -> Result<Option<String>> {
        let mut sign = "";
        if self.take_symbol('-') {
            sign = "-";
        } else if self.take_symbol('+') {
            sign = "+";
        }
        match self.peek().clone() {
            Kind::Number(number) => {
                self.next += 1;
                return Ok(Some(format!("{sign}{number}")));
            }
            Kind::Text(text) if sign.is_empty() => {
                self.next += 1;
                return Ok(Some(text));
            }
            Kind::Word(word) if sign.is_empty() => match word.to_uppercase().as_str() {
                "NULL" => {
                    self.next += 1;
                    return Ok(None);
                }
                "TRUE" | "FALSE" => {
                    self.next += 1;
                    return Ok(Some(word));
                }
                "DATE" | "TIME" | "TIMESTAMP" => {
                    if let Kind::Text(text) = self.tokens[self.next + 1].kind.clone() {
                        self.next += 2;
                        return Ok(Some(text));
                    }
                }
                _ => {}
            },
            _ => {}
        }
        Err(self.expected("a literal (a number, 'text', TRUE, FALSE or NULL)"))
    }

    /// Refuses what would be dropped silently.
    fn no_constraint(&self, word: &str) -> Error {
        let text = match word {
            "CONSTRAINT" => {
                "CONSTRAINT: only a CHECK or UNIQUE may have a name, leave it out".to_owned()
            }
            "PRIMARY" => "PRIMARY: expected PRIMARY KEY".to_owned(),
            "FOREIGN" | "REFERENCES" | "EXCLUDE" => {
                format!("{word} is not enforced, leave it out (PRIMARY KEY and UNIQUE are)")
            }
            _ => {
                format!(
                    "{word} is not understood: expected NOT NULL, DEFAULT, CHECK, a comma or the end"
                )
            }
        };
        self.error(self.tokens[self.next].at, &text)
    }

    /// Passes over the next token.
    pub fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Whether the token after the next is this symbol.
    pub fn next_is_symbol(&self, symbol: char) -> bool {
        self.tokens.get(self.next + 1).is_some_and(|token| token.kind == Kind::Symbol(symbol))
    }

    /// Whether the token after the next is a text.
    pub fn next_is_text(&self) -> bool {
        self.tokens.get(self.next + 1).is_some_and(|token| matches!(token.kind, Kind::Text(_)))
    }

    /// The kind of the next token.
    pub fn peek(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(self.next, word)
    }

    fn is_word_at(&self, at: usize, word: &str) -> bool {
        let kind = self.tokens.get(at).map(|token| &token.kind);
        matches!(kind, Some(Kind::Word(w)) if w.eq_ignore_ascii_case(word))
    }

    /// Takes the next token if it is this word.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    /// Takes the next token if it is this symbol.
    pub fn take_symbol(&mut self, symbol: char) -> bool {
        let found = *self.peek() == Kind::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    /// Takes this word, or says what was expected.
    pub fn keyword(&mut self, word: &str, expected: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Takes this symbol, or says what was expected.
    pub fn symbol(&mut self, symbol: char, expected: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Takes a bare word.
    pub fn word(&mut self) -> Option<String> {
        let Kind::Word(word) = self.peek().clone() else {
            return None;
        };
        self.next += 1;
        Some(word)
    }

    /// Takes a whole number.
    pub fn count(&mut self, expected: &str) -> Result<u32> {
        if let Kind::Number(number) = self.peek()
            && let Ok(count) = number.parse()
        {
            self.next += 1;
            return Ok(count);
        }
        Err(self.expected(expected))
    }

    fn name(&mut self, expected: &str) -> Result<String> {
        match self.peek().clone() {
            Kind::Word(name) => {
                self.next += 1;
                Ok(name)
            }
            Kind::Name(name) if !name.is_empty() => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected(expected)),
        }
    }

    /// Nothing more, or says what was expected.
    pub fn end(&self, expected: &str) -> Result<()> {
        if *self.peek() == Kind::End { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// "expected ..., found ..." at the next token.
    pub fn expected(&self, expected: &str) -> Error {
        let token = &self.tokens[self.next];
        self.error(token.at, &format!("expected {expected}, found {}", token.kind.describe()))
    }

    /// An error at the token before the next one.
    pub fn error_before(&self, text: &str) -> Error {
        self.error(self.tokens[self.next.saturating_sub(1)].at, text)
    }

    fn error(&self, at: usize, text: &str) -> Error {
        error_at(self.what, self.sql, at, text)
    }
}
