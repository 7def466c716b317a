//! `CREATE TABLE .. SHARD BY (columns) [SHARDS n]` and `CREATE REFERENCE TABLE`: how a table is spread over the leaves of a
//! cluster.
//!
//! The parser knows no such words, so they are cut out of the text first. What is left is a CREATE TABLE as any.

use coload_cluster::{SHARDS_DEFAULT, ShardBy};
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{CreateTable, Statement};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::columns::{schema_of, table_name};
use super::ddl::{check_create, on_existing, require_create};
use super::limits::StatementLimits;
use super::text::{parse, parse_statement};
use super::{done, unsupported};
use crate::Answer;
use crate::cluster::shard_by;
use crate::database::Database;
use crate::rights::Rights;

/// A table that is to be made on all leaves.
pub(crate) struct NewTable {
    table: CreateTable,
    spread: Spread,
}

/// What a statement says of which leaf has which row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// SHARD BY these columns, in so many shards.
    By(Vec<String>, u32),
    /// REFERENCE: all have all.
    Everywhere,
}

/// What stands behind SHARD BY.
struct Clause {
    columns: Vec<String>,
    shards: Option<u64>,
}

/// Reads a CREATE TABLE that says how it is sharded; `None` for any other text.
pub(crate) fn parse_sharded(text: &str, limits: &StatementLimits) -> Result<Option<NewTable>> {
    let begins = |word: &str, of: &str| word.eq_ignore_ascii_case(of);
    let mut words = text.split_whitespace();
    if !words.next().is_some_and(|word| begins(word, "CREATE")) {
        return Ok(None);
    }
    if let Some(word) = words.next().filter(|word| begins(word, "REFERENCE")) {
        // The second word of the text, wherever that stands.
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let table = new_table(&[before, after].concat(), "REFERENCE", limits)?;
        return Ok(Some(NewTable { table, spread: Spread::Everywhere }));
    }
    if !text.to_ascii_uppercase().contains("SHARD") {
        return Ok(None);
    }
    let Some(at) = clause_starts(text) else { return Ok(None) };
    let (before, clause) = text.split_at(at);
    let Clause { columns, shards } =
        parse(clause, limits, read_clause).map_err(|error| match error {
            Error::Invalid(text) => {
                Error::Invalid(format!("{text}: write SHARD BY (columns) [SHARDS n]"))
            }
            other => other,
        })?;
    let table = new_table(before, "SHARD BY", limits)?;
    let shards = u32::try_from(shards.unwrap_or(SHARDS_DEFAULT.into())).unwrap_or(u32::MAX);
    Ok(Some(NewTable { table, spread: Spread::By(columns, shards) }))
}

/// The CREATE TABLE that is left without what it says of leaves.
fn new_table(text: &str, said: &str, limits: &StatementLimits) -> Result<CreateTable> {
    let Statement::CreateTable(mut table) = parse_statement(text, limits)? else {
        return Err(unsupported(said, "it is for CREATE TABLE"));
    };
    check_create(&mut table, limits)?;
    match table.query {
        None => Ok(table),
        Some(_) => Err(unsupported(
            &format!("{said} of CREATE TABLE .. AS"),
            "make the table, and INSERT INTO it",
        )),
    }
}

/// The byte at which SHARD BY stands, outside of brackets, quotes and comments.
fn clause_starts(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => {
                // A doubled quote ends a text and begins the next.
                at += 1 + bytes[at + 1..].iter().position(|byte| *byte == quote)?;
            }
            b'-' if bytes[at..].starts_with(b"--") => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n')?;
            }
            b'/' if bytes[at..].starts_with(b"/*") => at += text[at..].find("*/")? + 1,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b's' | b'S' if depth == 0 && is_clause(&text[at..]) && is_start(bytes, at) => {
                return Some(at);
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_start(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_whitespace() || bytes[at - 1] == b')')
}

fn is_clause(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let shard = words.next().is_some_and(|word| word.eq_ignore_ascii_case("SHARD"));
    let by = words.next().is_some_and(|word| {
        word.get(..2).is_some_and(|by| by.eq_ignore_ascii_case("BY"))
            && word.as_bytes().get(2).is_none_or(|next| *next == b'(')
    });
    shard && by
}

fn read_clause(parser: &mut Parser<'_>) -> std::result::Result<Clause, ParserError> {
    // SHARD and BY, as was seen.
    parser.next_token();
    parser.next_token();
    parser.expect_token(&Token::LParen)?;
    let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
    let columns = columns.into_iter().map(|column| column.value).collect();
    parser.expect_token(&Token::RParen)?;
    let is_shards = matches!(
        &parser.peek_token().token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("SHARDS")
    );
    let shards = match is_shards {
        true => {
            parser.next_token();
            Some(parser.parse_literal_uint()?)
        }
        false => None,
    };
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token().token {
        Token::EOF => Ok(Clause { columns, shards }),
        other => Err(ParserError::ParserError(format!("expected the end, found {other}"))),
    }
}

impl NewTable {
    /// Makes it on all leaves.
    pub(crate) fn run(&self, database: &Database, rights: &Rights) -> Result<Answer> {
        create(database, rights, &self.table, Some(&self.spread))
    }
}

/// Makes a table of a cluster; the columns that tell shards are those of its key, or none, if nobody says so.
pub(crate) fn create(
    database: &Database,
    rights: &Rights,
    table: &CreateTable,
    spread: Option<&Spread>,
) -> Result<Answer> {
    let Some(cluster) = &database.options().cluster else {
        return Err(Error::Invalid(
            "SHARD BY is for a cluster, as REFERENCE is, and this store is in none (coload serve --cluster)".into(),
        ));
    };
    let (name, on_existing) = (table_name(&table.name)?, on_existing(table)?);
    require_create(rights, on_existing, &name)?;
    let schema = schema_of(table)?;
    if !schema.indexes().is_empty() {
        return Err(crate::cluster::refuse("an index"));
    }
    let (by, shards) = match spread {
        None => (shard_by(&schema, None)?, SHARDS_DEFAULT),
        Some(Spread::By(names, shards)) => (shard_by(&schema, Some(names))?, *shards),
        Some(Spread::Everywhere) => (ShardBy::Everywhere, 1),
    };
    cluster.member().create_table(&name, &schema, (&by, shards), on_existing)?;
    Ok(done())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<Option<Spread>> {
        let found = parse_sharded(text, &StatementLimits::default())?;
        Ok(found.map(|table| table.spread))
    }

    #[test]
    fn a_clause_is_read_where_it_stands_last() {
        let of = |columns: &[&str], shards| {
            Some(Spread::By(columns.iter().map(|c| (*c).to_owned()).collect(), shards))
        };
        assert_eq!(
            read("CREATE TABLE t (a INT) SHARD BY (a)").unwrap(),
            of(&["a"], SHARDS_DEFAULT)
        );
        let text = "create table if not exists t (a int, \"b c\" text default 'x) shard by (')\n shard  by(\"b c\", a) shards 16;";
        assert_eq!(read(text).unwrap(), of(&["b c", "a"], 16));
        let text = "CREATE TABLE t (a INT, shard INT) -- shard by (b)\n";
        assert_eq!(read(text).unwrap(), None);
        assert_eq!(read("SELECT shard FROM t").unwrap(), None);
        assert_eq!(read("CREATE TABLE shard (by INT)").unwrap(), None);
    }

    #[test]
    fn a_reference_table_is_one_that_says_so_first() {
        let text = "create\n reference TABLE IF NOT EXISTS t (a INT, reference INT)";
        assert_eq!(read(text).unwrap(), Some(Spread::Everywhere));
        assert_eq!(read("CREATE TABLE reference (a INT)").unwrap(), None);
        assert!(read("CREATE REFERENCE TABLE t AS SELECT 1").is_err());
        assert!(read("CREATE REFERENCE VIEW t AS SELECT 1").is_err());
        assert!(read("CREATE REFERENCE TABLE t (a INT) SHARD BY (a)").is_err());
    }

    #[test]
    fn what_is_no_clause_is_refused() {
        for clause in [
            "SHARD BY a",
            "SHARD BY ()",
            "SHARD BY (a) SHARDS",
            "SHARD BY (a) SHARDS x",
            "SHARD BY (a) SHARDS -1",
            "SHARD BY (a) b",
            "SHARD BY (a",
        ] {
            let text = format!("CREATE TABLE t (a INT) {clause}");
            assert!(read(&text).is_err(), "{text}");
        }
        assert!(read("CREATE TABLE t SHARD BY (a) AS SELECT 1").is_err());
        assert!(read("CREATE VIEW v AS SELECT 1 SHARD BY (a)").is_err());
    }
}
