//! COPY table TO 'file' and COPY (query) TO 'file'.
//!
//! ```text
//!   COPY t TO 'f.csv'
//!   COPY t TO 'f' (FORMAT csv, HEADER false, DELIMITER '|', NULL 'NULL')
//!   COPY (SELECT ..) TO 'f.parquet' WITH (COMPRESSION zstd)
//! ```

use std::path::PathBuf;

use coload_types::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::limits::StatementLimits;
use super::spelling::respelled;
use super::{count, plan_of, text, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::export::{CsvOptions, Export as Form, ParquetOptions, Rows as FileRows, in_order};
use crate::memory::execute;
use crate::rights::{Rights, Role};

/// A COPY statement, parsed and not yet planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The query whose rows are written.
    pub query: Box<Query>,
    path: PathBuf,
    options: Vec<(String, String)>,
}

/// A COPY that was planned.
pub(crate) struct Export {
    session: SessionState,
    rows: LogicalPlan,
    /// The columns of the rows as they were written.
    columns: SchemaRef,
    path: PathBuf,
    form: Form,
}

/// Reads a COPY; `None` when the text is another statement.
pub(crate) fn parse(statement: &str, limits: &StatementLimits) -> Result<Option<Copy>> {
    let is_copy = statement.trim_start().get(..4).is_some_and(|w| w.eq_ignore_ascii_case("copy"));
    if !is_copy {
        return Ok(None);
    }
    let (rows, path, options) = text::parse(statement, limits, read)?;
    let query = match rows {
        Rows::Query(query) => query,
        Rows::Table(select) => match text::parse_statement(&select, limits)? {
            Statement::Query(query) => query,
            _ => return Err(Error::Invalid("not a table to copy".into())),
        },
    };
    Ok(Some(Copy { query, path, options }))
}

enum Rows {
    Query(Box<Query>),
    /// A SELECT of a table.
    Table(String),
}

type Read = (Rows, PathBuf, Vec<(String, String)>);

fn read(parser: &mut Parser<'_>) -> std::result::Result<Read, ParserError> {
    parser.expect_keyword(Keyword::COPY)?;
    let rows = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        Rows::Query(query)
    } else {
        let table = parser.parse_object_name(false)?;
        let columns = parser.parse_parenthesized_column_list(
            datafusion::sql::sqlparser::parser::IsOptional::Optional,
            false,
        )?;
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        let columns = if columns.is_empty() { "*".into() } else { columns.join(", ") };
        Rows::Table(format!("SELECT {columns} FROM {table}"))
    };
    if parser.parse_keyword(Keyword::FROM) {
        return Err(ParserError::ParserError(
            "COPY .. FROM is not supported: `coload load` brings files into a table".into(),
        ));
    }
    parser.expect_keyword(Keyword::TO)?;
    let path = parser.parse_literal_string()?.into();
    let mut options = Vec::new();
    if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
        options.push(("format".into(), parser.parse_identifier()?.value));
    }
    let _ = parser.parse_one_of_keywords(&[Keyword::WITH, Keyword::OPTIONS]);
    if parser.consume_token(&Token::LParen) {
        loop {
            options.push(read_option(parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    let _ = parser.consume_token(&Token::SemiColon);
    parser.expect_token(&Token::EOF)?;
    Ok((rows, path, options))
}

/// A name and perhaps a value; without one it is `true`.
fn read_option(parser: &mut Parser<'_>) -> std::result::Result<(String, String), ParserError> {
    let word = |token: Token| match token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) => Ok(text),
        Token::Number(digits, _) => Ok(digits),
        other => Err(ParserError::ParserError(format!("{other} is not an option of COPY"))),
    };
    let name = word(parser.next_token().token)?;
    let _ = parser.consume_token(&Token::Eq);
    let value = match parser.peek_token().token {
        Token::Comma | Token::RParen => "true".into(),
        _ => word(parser.next_token().token)?,
    };
    Ok((name.to_lowercase(), value))
}

/// Asks for the right to write files: a COPY can write wherever the process can.
pub(crate) fn check_right(rights: &Rights) -> Result<()> {
    rights.require_everywhere(Role::Admin, "COPY TO a file of the server")
}

impl Export {
    /// Of the rows of a plan, with names as they were written.
    pub fn new(
        session: SessionState,
        rows: LogicalPlan,
        columns: SchemaRef,
        copy: &Copy,
    ) -> Result<Self> {
        Ok(Export { session, rows, columns, path: copy.path.clone(), form: export(copy)? })
    }

    /// Plans the query, writes the file, and answers the count of rows.
    pub async fn run(self, database: &Database, user: &str) -> Result<Answer> {
        let (session, plan) = plan_of(database, user, &self.session, &self.rows).await?;
        let ordered = in_order(&plan)?;
        let columns = respelled(&plan.schema(), &self.columns);
        let rows = match ordered {
            Some(plan) => FileRows::Partitions(plan, session.task_ctx()),
            None => FileRows::Stream(execute(&session, Some(&self.rows), plan)?),
        };
        let Export { path, form, .. } = self;
        let own = database.clone();
        let work = async move { form.write(&own, &path, columns, rows).await };
        count(database.watch().work(work).await?)
    }
}

/// How the rows are written, by the options and the file's ending.
fn export(copy: &Copy) -> Result<Form> {
    let ending = copy.path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let named = copy.options.iter().find(|(name, _)| name == "format");
    let format = named.map(|(_, value)| value.to_lowercase()).or_else(|| ending.clone());
    let options = copy.options.iter().filter(|(name, _)| name != "format");
    match format.as_deref() {
        Some("csv" | "tsv" | "tbl" | "txt") => {
            let mut csv = CsvOptions::default();
            if format.as_deref() == Some("tsv") {
                csv.delimiter = b'\t';
            }
            for (name, value) in options {
                set_csv(&mut csv, name, value)?;
            }
            Ok(Form::Csv(csv))
        }
        Some("parquet") => {
            let mut parquet = ParquetOptions::default();
            for (name, value) in options {
                match name.as_str() {
                    "compression" => parquet.set_compression(value)?,
                    _ => return Err(no_option(name, "parquet", "COMPRESSION")),
                }
            }
            Ok(Form::Parquet(parquet))
        }
        Some(other) if named.is_some() => {
            Err(unsupported(&format!("FORMAT {other}"), "there is csv and parquet"))
        }
        _ => Err(Error::Invalid(format!(
            "the ending of {} tells no format: say (FORMAT csv) or (FORMAT parquet)",
            copy.path.display()
        ))),
    }
}

fn set_csv(csv: &mut CsvOptions, name: &str, value: &str) -> Result<()> {
    let byte = || match value.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ if value == "\\t" => Ok(b'\t'),
        _ => Err(Error::Invalid(format!("{name} {value:?} of COPY is not one ASCII character"))),
    };
    match name {
        "header" => {
            csv.header = match value.to_lowercase().as_str() {
                "true" | "on" | "1" => true,
                "false" | "off" | "0" => false,
                _ => {
                    return Err(Error::Invalid(format!(
                        "HEADER {value} is neither true nor false"
                    )));
                }
            }
        }
        "delimiter" => csv.delimiter = byte()?,
        "quote" => csv.quote = byte()?,
        "null" => csv.null = value.to_owned(),
        _ => return Err(no_option(name, "csv", "HEADER, DELIMITER, QUOTE and NULL")),
    }
    Ok(())
}

fn no_option(name: &str, format: &str, there_is: &str) -> Error {
    Error::Invalid(format!("COPY to {format} has no option {name}: there is {there_is}"))
}
