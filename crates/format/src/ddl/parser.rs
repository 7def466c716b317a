//! Tokens to columns.

use super::lexer::{Kind, Token, error_at, tokens};
use crate::{Column, Error, Result, Schema, parse_value};

/// Words that start a constraint of the table where a column could stand.
const TABLE_CONSTRAINTS: [&str; 6] =
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE"];

/// Reads tokens from left to right.
pub struct Parser<'a> {
    what: &'static str,
    sql: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl<'a> Parser<'a> {
    /// Over the tokens of `sql`, which messages call `what`.
    pub fn new(what: &'static str, sql: &'a str) -> Result<Self> {
        Ok(Parser { what, sql, tokens: tokens(what, sql)?, next: 0 })
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
        while self.take_symbol(';') {}
        self.end("nothing after the columns")?;
        Ok((name, Schema::new(columns)?))
    }

    /// Columns separated by commas and nothing else.
    pub fn column_list(&mut self) -> Result<Schema> {
        let columns = self.columns()?;
        self.end("a comma between columns")?;
        Schema::new(columns)
    }

    fn columns(&mut self) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        loop {
            columns.push(self.column()?);
            if !self.take_symbol(',') {
                return Ok(columns);
            }
        }
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
                _ => return Err(self.no_constraint(&word)),
            }
        }
        Ok(column)
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
    fn literal(&mut self) -> Result<Option<String>> {
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
        Err(self.expected("a literal after DEFAULT (a number, 'text', TRUE, FALSE or NULL)"))
    }

    /// Refuses what would be dropped silently.
    fn no_constraint(&self, word: &str) -> Error {
        let text = match word {
            "PRIMARY" | "UNIQUE" | "FOREIGN" | "REFERENCES" | "CHECK" | "CONSTRAINT"
            | "EXCLUDE" => format!("{word}: keys and checks are not enforced, leave it out"),
            _ => {
                format!("{word} is not understood: expected NOT NULL, DEFAULT, a comma or the end")
            }
        };
        self.error(self.tokens[self.next].at, &text)
    }

    /// The kind of the next token.
    pub fn peek(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    /// Takes the next token if it is this word.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Kind::Word(w) if w.eq_ignore_ascii_case(word));
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

    fn end(&self, expected: &str) -> Result<()> {
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
