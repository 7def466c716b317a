//! Columns that became text are read again: what to read, and nothing else.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_source::InputFields;
use coload_types::Result;
use coload_wire::{ColumnFrom, Derivation, FieldMap, RejectLimit};

use crate::request::LoadRequest;

/// A load of columns of the table as text. `clean` says that no record was rejected.
///
/// # Errors
/// None that a schema with the same names could have.
pub fn reread_request(request: &LoadRequest, texts: &[usize], clean: bool) -> Result<LoadRequest> {
    let from_of = |column: &usize| match &request.derivation {
        Some(derivation) => derivation.columns[*column].clone(),
        None => ColumnFrom::Read(*column),
    };
    let from: Vec<ColumnFrom> = texts.iter().map(from_of).collect();
    let columns = request.schema.columns();
    let schema = Schema::new(texts.iter().map(|c| columns[*c].clone()).collect())?;
    let mut again = LoadRequest {
        schema,
        derivation: None,
        inferred: None,
        stream: None,
        max_rejects: RejectLimit::Count(u64::MAX),
        rejects_file: None,
        rejects_table: None,
        count_distinct: false,
        ..request.clone()
    };
    let read = from.iter().map(|from| match from {
        ColumnFrom::Read(read) => Some(*read),
        ColumnFrom::Constant(_)
        | ColumnFrom::InputName
        | ColumnFrom::Partition(_)
        | ColumnFrom::LoadTime => None,
    });
    match read.collect::<Option<Vec<usize>>>() {
        Some(read) if clean && request.program.is_none() => {
            let mut fields = request.fields_of_inputs().of_columns(&read);
            match (&request.fields_by_input, fields.ways.pop()) {
                (None, Some(InputFields { count, of_column })) => {
                    let of_column = of_column.into_iter().flatten().collect();
                    again.fields = Some(FieldMap { count, of_column });
                }
                (_, last) => {
                    fields.ways.extend(last);
                    again.fields_by_input = Some(Arc::new(fields));
                }
            }
        }
        // A record is left out for any of its fields, so all are looked at again.
        _ => {
            let read = request.read_schema().clone();
            again.derivation = Some(Derivation { read, columns: from });
        }
    }
    Ok(again)
}
