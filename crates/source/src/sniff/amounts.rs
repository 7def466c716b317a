//! Columns whose fields are numbers with something around them: they are text, and it is said.
//!
//! A sign tells what is counted, `%` is a hundredth or the number itself, and parentheses a negative amount or a note: what the table is to
//! hold, the user knows.

use coload_types::{Column, DataType};

use crate::field::FieldRules;
use crate::infer::is_null;
use crate::sample::Field;

/// Signs of money that are told by one character.
const MONEY: &str = "$€£¥₹₽₩₺₴₪฿¢";

/// What stands around a number.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Around {
    Nothing,
    /// A sign before or behind it.
    Sign(char),
    /// A pair of parentheses, as accountants write negative amounts.
    Parentheses,
}

/// Says of each column of text whose fields are all numbers that have a sign or parentheses.
pub(super) fn say_amounts(
    columns: &[Column],
    rows: &[Vec<Field<'_>>],
    rules: &FieldRules,
    evidence: &mut Vec<String>,
) {
    for (index, column) in columns.iter().enumerate() {
        if column.data_type != DataType::Varchar(None) {
            continue;
        }
        let fields = rows.iter().filter_map(|row| row.get(index));
        let fields = fields.filter(|field| !is_null(field, rules) && !field.text.is_empty());
        let Some(mut found) = fields.map(|field| around(&field.text)).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        found.retain(|around| *around != Around::Nothing);
        found.dedup();
        let what = match &found[..] {
            [] => continue,
            [Around::Sign(sign)] => format!("have '{sign}'"),
            all if all.contains(&Around::Parentheses) => "may stand in parentheses".to_owned(),
            _ => "have signs of money".to_owned(),
        };
        evidence.push(format!(
            "column {} is text: its numbers {what}; read it as a number in SQL, with replace() and CAST",
            column.name
        ));
    }
}

/// What stands around a number; `None` if it is none.
fn around(field: &[u8]) -> Option<Around> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let (inner, found) = match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        Some(inner) => (inner, Around::Parentheses),
        None => (text, Around::Nothing),
    };
    let inner = inner.strip_prefix('-').unwrap_or(inner).trim();
    let sign = |c: char| MONEY.contains(c) || c == '%';
    let found_sign = inner.chars().find(|c| sign(*c));
    let bare = inner.trim_start_matches(|c: char| MONEY.contains(c)).trim_end_matches(sign).trim();
    let bare = bare.strip_prefix('-').unwrap_or(bare);
    let digits = bare.chars().filter(char::is_ascii_digit).count();
    let number = digits > 0
        && bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && bare.chars().all(|c| c.is_ascii_digit() || ".,'’ \u{a0}\u{202f}".contains(c));
    let found = match found_sign {
        Some(sign) if found == Around::Nothing => Around::Sign(sign),
        _ => found,
    };
    number.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_something_around_them_are_told() {
        for (text, expected) in [
            ("$1,234.50", Some(Around::Sign('$'))),
            ("-$5", Some(Around::Sign('$'))),
            ("5 €", Some(Around::Sign('€'))),
            ("12.5%", Some(Around::Sign('%'))),
            ("(1,234)", Some(Around::Parentheses)),
            ("17", Some(Around::Nothing)),
            ("abc", None),
            ("$", None),
            ("%5a", None),
            ("", None),
        ] {
            assert_eq!(around(text.as_bytes()), expected, "{text}");
        }
    }
}
