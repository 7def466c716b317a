//! Indexes of a table of MySQL, taken off and built again as the server writes them in SHOW CREATE TABLE.

use coload_types::{Error, Result};

use crate::engine::Connection;
use crate::names::TableName;
use crate::rebuild::TakenOff;

/// Why a table cannot be exchanged for another one: foreign keys and triggers go with the table, and not with its name.
const KEEPS_SQL: &str = "\
SELECT CASE
  WHEN EXISTS (SELECT 1 FROM information_schema.TRIGGERS
               WHERE EVENT_OBJECT_SCHEMA = COALESCE(?, DATABASE()) AND EVENT_OBJECT_TABLE = ?) THEN 'it has triggers'
  WHEN EXISTS (SELECT 1 FROM information_schema.KEY_COLUMN_USAGE
               WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND REFERENCED_TABLE_NAME IS NOT NULL)
    THEN 'it has foreign keys'
  WHEN EXISTS (SELECT 1 FROM information_schema.KEY_COLUMN_USAGE
               WHERE REFERENCED_TABLE_SCHEMA = COALESCE(?, DATABASE()) AND REFERENCED_TABLE_NAME = ?)
    THEN 'foreign keys refer to it'
  WHEN (SELECT TABLE_TYPE FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?) <> 'BASE TABLE' THEN 'it is no ordinary table'
END";

/// Why nothing is taken off a table, if so.
///
/// # Errors
/// What the server says.
pub fn keeps_indexes(on: &mut dyn Connection, table: &TableName) -> Result<Option<String>> {
    let name = table.name.as_str();
    let sql = match &table.schema {
        Some(_) => KEEPS_SQL.to_owned(),
        None => KEEPS_SQL.replace("COALESCE(?, DATABASE())", "DATABASE()"),
    };
    let one: Vec<&str> = table.schema.as_deref().into_iter().chain([name]).collect();
    let parameters = one.repeat(4);
    Ok(on.ask(&sql, &parameters)?.into_iter().flatten().flatten().next())
}

/// Has a table count on where another one is, which LIKE does not do. Both are given as SQL has them.
///
/// # Errors
/// What the server says.
pub fn count_on(on: &mut dyn Connection, new: &str, like: &str) -> Result<()> {
    match counter(&definition(on, like)?) {
        Some(next) => on.run(&format!("ALTER TABLE {new} AUTO_INCREMENT = {next}"), &[]).map(drop),
        None => Ok(()),
    }
}

/// What AUTO_INCREMENT gives next, as the line behind the columns tells it.
fn counter(definition: &str) -> Option<u64> {
    let options = definition.lines().rev().find(|line| line.starts_with(") "))?;
    let (_, rest) = options.split_once(" AUTO_INCREMENT=")?;
    rest.split(' ').next()?.parse().ok()
}

/// How a table is made, as the server writes it.
fn definition(on: &mut dyn Connection, table: &str) -> Result<String> {
    let told = on.ask(&format!("SHOW CREATE TABLE {table}"), &[])?;
    let definition = told.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten());
    definition.ok_or_else(|| Error::Refused(format!("MySQL does not tell how {table} is made")))
}

/// Takes off what a table has that nobody else sees. The table is given as SQL has it.
///
/// # Errors
/// What the server says.
pub fn take_off(on: &mut dyn Connection, table: &str) -> Result<TakenOff> {
    let definition = definition(on, table)?;
    let (taken, drops) = plan(&definition, table);
    if let Some(sql) = drops {
        on.run(&sql, &[])?;
    }
    Ok(taken)
}

/// An index, as a line of SHOW CREATE TABLE has it.
struct Line<'a> {
    text: &'a str,
    /// Its name, in SQL.
    name: &'a str,
    /// Its first column, in SQL; empty where it is an expression.
    first: &'a str,
    is_unique: bool,
    /// Built alone: the engine reads the whole table for each.
    is_alone: bool,
}

/// What is taken off a table that is made so, and the statement that does it.
fn plan(definition: &str, table: &str) -> (TakenOff, Option<String>) {
    let lines = || definition.lines().map(|line| line.trim().trim_end_matches(','));
    let counted = lines().find(|line| line.starts_with('`') && line.contains(" AUTO_INCREMENT"));
    let counted = counted.and_then(|line| name_at(line)).unwrap_or_default();
    let primary = lines().find(|line| line.starts_with("PRIMARY KEY "));
    let primary_first =
        primary.and_then(|line| line.split_once('(')).and_then(|(_, rest)| name_at(rest));
    let mut taken = TakenOff::default();
    let (mut drops, mut together) = (Vec::new(), Vec::new());
    for line in lines().filter_map(index_of_line) {
        let shown = line.name.trim_matches('`').replace("``", "`");
        let counts = line.first == counted && !counted.is_empty() && primary_first != Some(counted);
        let why = match (line.is_unique && primary.is_none(), counts) {
            (true, _) => Some("rows are in its order, as the table has no primary key"),
            (_, true) => Some("AUTO_INCREMENT needs it"),
            _ => None,
        };
        match why {
            Some(why) => taken.kept.push((shown, why.to_owned())),
            None => {
                taken.names.push(shown);
                drops.push(format!("DROP INDEX {}", line.name));
                let add = format!("ADD {}", line.text);
                match line.is_alone {
                    true => taken.restore.push(format!("ALTER TABLE {table} {add}")),
                    false => together.push(add),
                }
            }
        }
    }
    if !together.is_empty() {
        // One statement reads the rows once.
        taken.restore.insert(0, format!("ALTER TABLE {table} {}", together.join(", ")));
    }
    let sql = (!drops.is_empty()).then(|| format!("ALTER TABLE {table} {}", drops.join(", ")));
    (taken, sql)
}

/// The name in backticks with which a text begins, with them.
fn name_at(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('`')?;
    let mut at = 0;
    loop {
        at += rest.get(at..)?.find('`')?;
        match rest.get(at + 1..).is_some_and(|rest| rest.starts_with('`')) {
            true => at += 2,
            false => return text.get(..at + 2),
        }
    }
}

fn index_of_line(text: &str) -> Option<Line<'_>> {
    const KINDS: [(&str, bool, bool); 5] = [
        ("UNIQUE KEY ", true, false),
        ("FULLTEXT KEY ", false, true),
        ("SPATIAL KEY ", false, true),
        ("VECTOR KEY ", false, true),
        ("KEY ", false, false),
    ];
    let (kind, is_unique, is_alone) =
        KINDS.into_iter().find(|(kind, ..)| text.starts_with(kind))?;
    let rest = text.strip_prefix(kind)?;
    let name = name_at(rest)?;
    let columns = rest.get(name.len()..)?.trim_start().strip_prefix('(')?;
    Some(Line { text, name, first: name_at(columns).unwrap_or_default(), is_unique, is_alone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_taken_off_and_made_as_the_server_writes_them() {
        let definition = "CREATE TABLE `t` (\n  `id` bigint(20) NOT NULL AUTO_INCREMENT,\n  `KEY ``x` int(11) DEFAULT NULL COMMENT \
                          'KEY `no` (`no`)',\n  `t` text DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `a``b` (`KEY ``x`,`id` \
                          DESC),\n  KEY `p` (`t`(10)) USING BTREE COMMENT 'it''s (one), `two`',\n  KEY `f` ((lower(`t`))),\n  \
                          FULLTEXT KEY `w` (`t`),\n  CONSTRAINT `c` CHECK (`id` > 0)\n) ENGINE=InnoDB";
        let (taken, drops) = plan(definition, "`d`.`s`");
        assert_eq!(taken.names, ["a`b", "p", "f", "w"]);
        assert!(taken.kept.is_empty());
        assert_eq!(
            drops.as_deref(),
            Some(
                "ALTER TABLE `d`.`s` DROP INDEX `a``b`, DROP INDEX `p`, DROP INDEX `f`, DROP INDEX `w`"
            )
        );
        assert_eq!(
            taken.restore,
            [
                "ALTER TABLE `d`.`s` ADD UNIQUE KEY `a``b` (`KEY ``x`,`id` DESC), ADD KEY `p` (`t`(10)) USING BTREE COMMENT \
                 'it''s (one), `two`', ADD KEY `f` ((lower(`t`)))",
                "ALTER TABLE `d`.`s` ADD FULLTEXT KEY `w` (`t`)"
            ]
        );
    }

    #[test]
    fn the_counter_is_that_of_the_table() {
        let definition = "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5 '\n) ENGINE=InnoDB AUTO_INCREMENT=1000 COMMENT='x'";
        assert_eq!(counter(definition), Some(1000));
        assert_eq!(counter("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB"), None);
    }

    #[test]
    fn indexes_that_the_table_needs_stay() {
        let definition = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `v` int(11) NOT NULL,\n  PRIMARY KEY \
                          (`v`),\n  KEY `n` (`id`),\n  KEY `m` (`v`,`id`)\n) ENGINE=InnoDB";
        let (taken, _) = plan(definition, "t");
        assert_eq!((taken.names.as_slice(), taken.kept.len()), (&["m".to_owned()][..], 1));
        let definition = "CREATE TABLE `t` (\n  `v` int(11) NOT NULL,\n  UNIQUE KEY `u` (`v`)\n)";
        let (taken, drops) = plan(definition, "t");
        assert_eq!((taken.names.len(), taken.kept.len(), drops), (0, 1, None));
    }
}
