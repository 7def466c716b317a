//! The columns of the fact table, by families that are alike.

use super::many::Many;

/// Columns that are alike but for their values.
pub struct Family {
    /// Name, followed by a number if there are several.
    pub stem: &'static str,
    /// Number of columns that are made from this entry.
    pub columns: u32,
    /// Type and constraint, as in CREATE TABLE.
    pub sql: &'static str,
    /// How often the field is empty, in a thousand.
    pub empty_permille: u32,
    /// Exponent of the frequencies' fall with the rank; 0 makes all values equally frequent.
    pub skew: f64,
    pub values: Values,
}

/// The values of a column. `step` is what each column of the family has more than the one before.
pub enum Values {
    /// A list of texts.
    List(&'static [&'static str]),
    /// `count` texts of a form: `A` stands for a letter, `9` for a digit, the rest for itself.
    Code { form: &'static str, count: u32, step: u32 },
    /// `count` descriptions of two or three words.
    Text { count: u32, step: u32 },
    /// `count` numbers, `apart` from each other, with `scale` decimal places.
    Number { low: i64, apart: i64, count: u32, scale: u32 },
    /// `count` days from a day since 1970-01-01 on.
    Date { first: i32, count: u32, step: u32 },
    /// Values of which nearly every row has another.
    Many(Many),
}

const fn family(
    stem: &'static str,
    columns: u32,
    sql: &'static str,
    skew: f64,
    values: Values,
) -> Family {
    Family { stem, columns, sql, empty_permille: 0, skew, values }
}

/// A family of columns that are mostly NULL.
const fn sparse(
    empty_permille: u32,
    stem: &'static str,
    columns: u32,
    sql: &'static str,
    values: Values,
) -> Family {
    Family { stem, columns, sql, empty_permille, skew: 0.0, values }
}

const fn many(stem: &'static str, columns: u32, sql: &'static str, which: Many) -> Family {
    Family { stem, columns, sql, empty_permille: 0, skew: 0.0, values: Values::Many(which) }
}

const fn code(form: &'static str, count: u32, step: u32) -> Values {
    Values::Code { form, count, step }
}

const fn integer(low: i64, apart: i64, count: u32) -> Values {
    Values::Number { low, apart, count, scale: 0 }
}

const fn decimal(scale: u32, apart: i64, count: u32) -> Values {
    Values::Number { low: 0, apart, count, scale }
}

/// 2018-01-01, in days since 1970-01-01.
const FIRST_DAY: i32 = 17_532;

use Values::{Date, List, Text};

/// All columns; the first is the first of the file.
// One line a family, so that it reads as a table.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    many("row_id", 1, "BIGINT NOT NULL", Many::RowId),
    // 12 codes of 20,000 values
    family("account", 3, "VARCHAR(10) NOT NULL", 0.0, code("9999999999", 20_000, 0)),
    family("article", 3, "VARCHAR(12) NOT NULL", 0.0, code("A-9999-AA-99", 20_000, 0)),
    family("customer", 2, "VARCHAR(8) NOT NULL", 0.0, code("AA999999", 20_000, 0)),
    family("contract", 2, "VARCHAR(18) NOT NULL", 0.0, code("000000000099999999", 20_000, 0)),
    family("member", 2, "INTEGER NOT NULL", 0.0, integer(100_000, 37, 20_000)),
    // 8 of 5,000 to 8,000
    family("employee", 4, "VARCHAR(7) NOT NULL", 0.0, code("A999999", 5_000, 500)),
    family("project", 4, "VARCHAR(14) NOT NULL", 0.0, code("PRJ/AA/999999", 6_500, 500)),
    // 10 dates
    family("day", 8, "DATE NOT NULL", 0.0, Date { first: FIRST_DAY, count: 1_000, step: 200 }),
    family("closing_day", 2, "DATE", 0.0, Date { first: FIRST_DAY, count: 1_100, step: 1_000 }),
    // 35 flags
    family("is", 12, "CHAR(1) NOT NULL", 0.7, List(&["N", "Y"])),
    family("has", 8, "INTEGER NOT NULL", 0.5, List(&["0", "1"])),
    family("status", 9, "VARCHAR(1) NOT NULL", 0.6, List(&["A", "B", "C", "D", "E"])),
    family("set", 6, "VARCHAR(5) NOT NULL", 0.3, List(&["true", "false"])),
    // Decimals of few values
    family("rate", 8, "DECIMAL(5,2) NOT NULL", 0.4, decimal(2, 25, 120)),
    family("factor", 6, "DECIMAL(9,5) NOT NULL", 0.0, decimal(5, 137, 900)),
    family("fee", 6, "DECIMAL(15,2) NOT NULL", 0.2, decimal(2, 490, 400)),
    // 16 mostly NULL
    sparse(930, "note", 4, "VARCHAR(40)", Text { count: 2_000, step: 500 }),
    sparse(960, "block", 4, "VARCHAR(2)", code("A9", 20, 10)),
    sparse(900, "cancelled_on", 3, "DATE", Date { first: FIRST_DAY, count: 900, step: 100 }),
    sparse(980, "exception", 3, "VARCHAR(10)", code("AA99999999", 3_000, 1_000)),
    sparse(950, "surcharge", 2, "DECIMAL(9,2)", decimal(2, 125, 600)),
    // Codes, texts and numbers of few values
    family("country", 4, "CHAR(2) NOT NULL", 0.5, code("AA", 60, 20)),
    family("plant", 5, "CHAR(4) NOT NULL", 0.3, code("9999", 130, 120)),
    family("group", 6, "VARCHAR(6) NOT NULL", 0.3, code("A999A9", 300, 250)),
    family("group_text", 7, "VARCHAR(60) NOT NULL", 0.3, Text { count: 200, step: 300 }),
    family("quantity", 7, "INTEGER NOT NULL", 0.4, integer(1, 1, 500)),
    family("year", 2, "INTEGER NOT NULL", 0.2, integer(2_015, 1, 12)),
    // Many values
    many("invoice", 3, "VARCHAR(20) NOT NULL", Many::Invoice),
    many("item_uuid", 3, "UUID NOT NULL", Many::Uuid),
    many("content_hash", 2, "VARCHAR(40) NOT NULL", Many::Hash),
    many("email", 2, "VARCHAR(80) NOT NULL", Many::Email),
    many("changed_at", 4, "TIMESTAMP NOT NULL", Many::Timestamp),
    many("amount", 4, "DECIMAL(15,2) NOT NULL", Many::Amount),
    many("external_id", 2, "BIGINT NOT NULL", Many::Number),
    many("comment", 2, "VARCHAR(200)", Many::Comment),
];
