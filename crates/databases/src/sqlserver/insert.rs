//! Statements that insert, and their parameters.

use coload_load::RowBytes;
use coload_types::{Error, Result};

use super::QUOTES;
use super::cells::CellKind;
use super::tds::{put_name, put_numbered_name};
use crate::engine::RowTable;
use crate::options::Method;

/// Most parameters of a statement: the server takes 2,100 with the two that a call has besides.
pub const PARAMETERS_MAX: usize = 2098;
/// Most rows of a list of VALUES.
pub const VALUES_ROWS_MAX: usize = 1000;

/// Whether a method takes so many columns.
///
/// # Errors
/// `Invalid` when it does not.
pub fn check_width(method: Method, columns: usize) -> Result<()> {
    match method == Method::InsertBulk || columns <= PARAMETERS_MAX {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{columns} columns: a statement of SQL Server has {PARAMETERS_MAX} parameters at most (--method insert-bulk)"
        ))),
    }
}

/// How the columns of a table go.
///
/// # Errors
/// `Invalid` when nobody knows how one goes.
pub fn kinds(table: &RowTable) -> Result<Vec<CellKind>> {
    table.columns.iter().map(CellKind::of).collect()
}

/// INSERT of so many rows, whose values are parameters.
pub fn insert_sql(table: &RowTable, rows: usize) -> String {
    let width = table.columns.len();
    let names = QUOTES.list(table.columns.iter().map(|column| column.name.as_str()));
    let row = |row: usize| {
        let parameters: Vec<String> =
            (1..=width).map(|column| format!("@P{}", row * width + column)).collect();
        format!("({})", parameters.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("INSERT INTO {} ({names}) VALUES {}", QUOTES.table(&table.name), rows.join(", "))
}

/// The declaration of the parameters of so many rows.
pub fn declared(kinds: &[CellKind], rows: usize) -> String {
    let types: Vec<String> = kinds.iter().map(|kind| kind.declaration()).collect();
    let all = (0..rows).flat_map(|_| &types).enumerate();
    all.map(|(number, name)| format!("@P{} {name}", number + 1)).collect::<Vec<_>>().join(",")
}

/// Appends the parameters of some rows, with their names if a statement has them.
///
/// # Errors
/// `Corrupt` when a row is none of these columns.
pub fn put_parameters(
    kinds: &[CellKind],
    (rows, range): (&RowBytes, std::ops::Range<usize>),
    collation: [u8; 5],
    named: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut number = 0;
    for row in range {
        let mut rest = rows.slice(row..row + 1).get(1..).unwrap_or_default();
        for kind in kinds {
            number += 1;
            let cell = kind.cell_bytes(rest).and_then(|bytes| rest.split_at_checked(bytes));
            let Some((cell, after)) = cell else {
                return Err(Error::Corrupt("a row that ends early".into()));
            };
            rest = after;
            match named {
                true => put_numbered_name(number, out),
                false => out.push(0),
            }
            out.push(0);
            kind.put_type(collation, out);
            out.extend_from_slice(cell);
        }
    }
    Ok(())
}

/// Words of INSERT BULK that not all tables need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// The table is locked as a whole, by all who load into it together: one of our own, without indexes.
    pub locks: bool,
    /// Triggers run.
    pub fires: bool,
}

/// INSERT BULK, whose rows follow in a message of their own. Rules are checked, triggers run, and NULL is NULL, as by
/// INSERT; without these words none of it would be.
pub fn bulk_sql(table: &RowTable, kinds: &[CellKind], hints: Hints) -> String {
    let column = |(column, kind): (&crate::engine::TableColumn, &CellKind)| {
        format!("{} {}", QUOTES.name(&column.name), kind.declaration())
    };
    let columns: Vec<String> = table.columns.iter().zip(kinds).map(column).collect();
    let fires = if hints.fires { ", FIRE_TRIGGERS" } else { "" };
    let locks = if hints.locks { ", TABLOCK" } else { "" };
    format!(
        "INSERT BULK {} ({}) WITH (CHECK_CONSTRAINTS, KEEP_NULLS{fires}{locks})",
        QUOTES.table(&table.name),
        columns.join(", ")
    )
}

/// The columns of the rows of INSERT BULK, as the protocol has them. The server compares with the table whether a column may
/// be NULL, and takes no rows where we say otherwise (4816).
pub fn bulk_columns(table: &RowTable, kinds: &[CellKind], collation: [u8; 5]) -> Vec<u8> {
    /// It may be NULL.
    const NULLABLE: u16 = 0x0001;
    /// It may be written.
    const WRITABLE: u16 = 0x0004;
    let mut out = vec![0x81];
    out.extend_from_slice(&(kinds.len() as u16).to_le_bytes());
    for (column, kind) in table.columns.iter().zip(kinds) {
        out.extend_from_slice(&[0; 4]);
        let flags = WRITABLE | if column.nullable { NULLABLE } else { 0 };
        out.extend_from_slice(&flags.to_le_bytes());
        kind.put_type(collation, &mut out);
        put_name(&column.name, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use coload_types::DataType;

    use super::*;
    use crate::engine::{Cell, TableColumn};
    use crate::names::TableName;

    /// A server compares them with the table, and takes no rows where they differ (4816).
    #[test]
    fn columns_of_a_bulk_load_say_whether_they_may_be_null() {
        let column = |name: &str, nullable| TableColumn {
            name: name.to_owned(),
            type_name: "int".to_owned(),
            data_type: DataType::Integer,
            cell: Cell::OfType,
            nullable,
            is_generated: false,
            has_default: false,
            type_number: 0,
            array_number: 0,
        };
        let table = RowTable {
            name: TableName { schema: None, name: "t".to_owned() },
            columns: vec![column("a", true), column("b", false)],
            method: Method::InsertBulk,
            batch_rows: 1,
            freezes: false,
        };
        let bytes = bulk_columns(&table, &kinds(&table).expect("kinds"), [0; 5]);
        let expected = [
            0x81, 2, 0, 0, 0, 0, 0, 5, 0, 0x26, 4, 1, b'a', 0, 0, 0, 0, 0, 4, 0, 0x26, 4, 1, b'b',
            0,
        ];
        assert_eq!(bytes, expected);
    }
}
