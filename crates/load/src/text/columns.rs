//! How the columns of a load are read from the fields of records.

use coload_source::{ColumnPlan, ColumnRules, Rows, TypeOrigin, plan_column};

use crate::grain::ColumnRoom;
use crate::partition::KnownSymbols;
use crate::request::LoadRequest;

/// How the columns that are read are read.
pub fn column_rules(request: &LoadRequest) -> Vec<ColumnRules> {
    let fields = request.dialect.field_rules();
    let by_input = request.fields_of_inputs();
    let of_column = &by_input.of(0).of_column;
    let origin = |column: usize| match request.inferred_type(column) {
        Some(_) => TypeOrigin::Inferred,
        None => TypeOrigin::Declared,
    };
    request
        .read_schema()
        .columns()
        .iter()
        .enumerate()
        .map(|(column, c)| ColumnRules {
            field: of_column[column],
            absent: c.default.clone(),
            data_type: c.data_type,
            nullable: c.nullable,
            empties_are_null: request.dialect.json.is_some(),
            fields: fields.of(c.data_type),
            origin: origin(column),
        })
        .collect()
}

/// Plans the columns from a sample's records; only as many columns of text have symbols as there is room for.
pub fn plan_columns(
    rows: &Rows<'_>,
    columns: &[ColumnRules],
    (room, known): (ColumnRoom, &KnownSymbols),
) -> Vec<ColumnPlan> {
    let ColumnRoom { mut encoders, dictionary } = room;
    let plan = |(number, column): (usize, &ColumnRules)| {
        let Some(field) = column.field else { return ColumnPlan::Codes };
        let known = known.get(number).and_then(Option::as_ref);
        match plan_column(rows, field, column.data_type, (dictionary, known)) {
            ColumnPlan::Text { .. } if encoders == 0 => ColumnPlan::PlainText,
            plan @ ColumnPlan::Text { .. } => {
                encoders -= 1;
                plan
            }
            plan => plan,
        }
    };
    columns.iter().enumerate().map(plan).collect()
}
