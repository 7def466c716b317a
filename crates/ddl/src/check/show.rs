//! A condition as SQL, which reads back as the same condition.

use coload_types::Column;

use super::{Comparison, Condition, Operand};
use crate::sql::{literal_sql, quote_name};

/// The condition in SQL.
pub fn condition_sql(condition: &Condition, columns: &[Column]) -> String {
    let name = |column: &usize| quote_name(&columns[*column].name);
    let show = |operand: &Operand| operand_sql(operand, columns);
    match condition {
        Condition::And(parts) => join(parts, " AND ", columns),
        Condition::Or(parts) => join(parts, " OR ", columns),
        Condition::Not(part) => format!("NOT {}", within(part, columns)),
        Condition::Compare { left, comparison, right } => {
            format!("{} {} {}", show(left), comparison_sql(*comparison), show(right))
        }
        Condition::Between { operand, low, high } => {
            format!("{} BETWEEN {} AND {}", show(operand), show(low), show(high))
        }
        Condition::In { operand, list } => {
            let list: Vec<String> = list.iter().map(show).collect();
            format!("{} IN ({})", show(operand), list.join(", "))
        }
        Condition::Like { column, pattern, .. } => {
            format!("{} LIKE '{}'", name(column), pattern.replace('\'', "''"))
        }
        Condition::IsNull(column) => format!("{} IS NULL", name(column)),
        Condition::IsTrue(column) => name(column),
    }
}

fn join(parts: &[Condition], word: &str, columns: &[Column]) -> String {
    parts.iter().map(|part| within(part, columns)).collect::<Vec<_>>().join(word)
}

/// In parentheses where it has parts.
fn within(condition: &Condition, columns: &[Column]) -> String {
    let sql = condition_sql(condition, columns);
    match condition {
        Condition::And(_) | Condition::Or(_) | Condition::Not(_) => format!("({sql})"),
        _ => sql,
    }
}

fn operand_sql(operand: &Operand, columns: &[Column]) -> String {
    match operand {
        Operand::Column { column, .. } => quote_name(&columns[*column].name),
        Operand::Length { column, .. } => format!("length({})", quote_name(&columns[*column].name)),
        Operand::Literal { value, data_type, .. } => literal_sql(value, *data_type),
    }
}

fn comparison_sql(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}
