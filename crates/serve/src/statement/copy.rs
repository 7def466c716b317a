//! COPY table TO 'file' and COPY (query) TO 'file'.
//!
//! ```text
//!   COPY t TO 'f.csv'
//!   COPY t TO 'f' (FORMAT csv, HEADER false, DELIMITER '|', NULL 'NULL')
//!   COPY (SELECT ..) TO 'f.parquet' WITH (COMPRESSION zstd)
//! ```

use std::path::PathBuf;

use coload_format::{Error, Result};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::TryStreamExt;

use super::{count, stream, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::export::{CsvOptions, Export, ParquetOptions};
use crate::rights::{Rights, Role};

/// A COPY statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The query whose rows are written.
    query: String,
    path: PathBuf,
    options: Vec<(String, String)>,
}

/// Reads a COPY; `None` when the text is another statement.
pub(crate) fn parse(text: &str) -> Result<Option<Copy>> {
    let is_copy = text.trim_start().get(..4).is_some_and(|w| w.eq_ignore_ascii_case("copy"));
    if !is_copy {
        return Ok(None);
    }
    read(text).map(Some).map_err(|e| match e {
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => Error::Invalid(text),
        ParserError::RecursionLimitExceeded => Error::Limit("the query is nested too deep".into()),
    })
}

fn read(text: &str) -> std::result::Result<Copy, ParserError> {
    let dialect = GenericDialect {};
    let mut parser = Parser::new(&dialect).try_with_sql(text)?;
    parser.expect_keyword(Keyword::COPY)?;
    let query = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?.to_string();
        parser.expect_token(&Token::RParen)?;
        query
    } else {
        let table = parser.parse_object_name(false)?;
        let columns = parser.parse_parenthesized_column_list(
            datafusion::sql::sqlparser::parser::IsOptional::Optional,
            false,
        )?;
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        let columns = if columns.is_empty() { "*".into() } else { columns.join(", ") };
        format!("SELECT {columns} FROM {table}")
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
            options.push(read_option(&mut parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    let _ = parser.consume_token(&Token::SemiColon);
    parser.expect_token(&Token::EOF)?;
    Ok(Copy { query, path, options })
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

/// Runs a COPY.
pub(crate) async fn run(database: &Database, rights: &Rights, copy: Copy) -> Result<Answer> {
    // It can write wherever the process can.
    rights.require_everywhere(Role::Admin, "COPY TO a file of the server")?;
    let export = export(&copy)?;
    let snapshot = database.store().snapshot()?;
    let session = database.session_of(&snapshot, rights, None);
    let statement = super::parse(&session, &copy.query, &snapshot)?;
    let plan = session.statement_to_plan(statement).await.map_err(from_datafusion)?;
    let mut rows = stream(&session, &plan).await?;
    let mut writer = export.create(&copy.path, rows.schema())?;
    let mut written = 0;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        writer.write(&batch)?;
        written += batch.num_rows() as u64;
    }
    writer.finish()?;
    count(written)
}

/// How the rows are written, by the options and the file's ending.
fn export(copy: &Copy) -> Result<Export> {
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
            Ok(Export::Csv(csv))
        }
        Some("parquet") => {
            let mut parquet = ParquetOptions::default();
            for (name, value) in options {
                match name.as_str() {
                    "compression" => parquet.set_compression(value)?,
                    _ => return Err(no_option(name, "parquet", "COMPRESSION")),
                }
            }
            Ok(Export::Parquet(parquet))
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
