//! Names and types of columns, from the records of a sample.

use coload_ddl::Schema;
use coload_types::{Column, DataType, Error, Result, same_name};

use super::amounts::say_amounts;
use super::attempt::usual_field_count;
use super::shape::fit_header;
use crate::dialect::GivenDialect;
use crate::field::FieldRules;
use crate::header::{Names, unique_names};
use crate::infer::{ColumnForms, infer_columns};
use crate::sample::{Field, SampleEnd};

/// Names from the header or made up; types from the records.
pub(super) fn infer_schema(
    header: &[Vec<Field<'_>>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Result<(Schema, Vec<ColumnForms>)> {
    let names = fit_header(header, columns, evidence);
    let names = unique_names(names.as_deref().map_or(Names::None, Names::Header), columns);
    let typed = given_types(&names, &given.columns)?;
    if given.all_text {
        let text = |name| Column::new(name, DataType::Varchar(None));
        let columns = names.into_iter().map(text).zip(typed);
        let columns = columns.map(|(text, typed)| typed.unwrap_or(text)).collect();
        return Ok((Schema::new(columns)?, Vec::new()));
    }
    evidence.push(format!("types: from {} records", rows.len()));
    // Where all records lack fields that have a name, the others tell types.
    let usual = usual_field_count(rows).unwrap_or(columns).min(columns);
    let mut forms = infer_columns(rows, usual, rules);
    forms.resize(columns, ColumnForms::trying(rules.types));
    let mut columns = Vec::with_capacity(names.len());
    for ((name, forms), typed) in names.into_iter().zip(&mut forms).zip(typed) {
        if let Some(column) = &typed {
            forms.give(column.data_type);
        }
        columns.push(typed.unwrap_or_else(|| Column::new(name, forms.data_type(end))));
    }
    say_amounts(&columns, rows, rules, evidence);
    Ok((Schema::new(columns)?, forms))
}

/// For each name the column of `--types`, under the name that the input has.
pub(super) fn given_types(names: &[String], given: &[Column]) -> Result<Vec<Option<Column>>> {
    let mut typed = vec![None; names.len()];
    for column in given {
        let Some(at) = names.iter().position(|name| same_name(name, &column.name)) else {
            return Err(Error::Invalid(format!(
                "--types: there is no column {}; there is {}",
                column.name,
                names.join(", ")
            )));
        };
        typed[at] = Some(Column { name: names[at].clone(), ..column.clone() });
    }
    Ok(typed)
}
