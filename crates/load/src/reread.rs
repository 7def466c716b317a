//! Columns that became text are read again: what to read, and nothing else.

use coload_ddl::Schema;
use coload_types::Result;
use coload_wire::{ColumnFrom, Derivation, RejectLimit};

use crate::projection::project;
use crate::request::LoadRequest;

/// A load of columns of the table as text. `clean` says that no record was rejected.
///
/// # Errors
/// None that a schema with the same names could have.
pub fn reread_request(request: &LoadRequest, texts: &[usize], clean: bool) -> Result<LoadRequest> {
    let mut again = match reads_all(request, texts) {
        true if clean => project(request, texts)?,
        // A record is left out for any of its fields, so all are looked at again.
        _ => with_all_fields(request, texts)?,
    };
    again.inferred = None;
    again.stream = None;
    again.max_rejects = RejectLimit::Count(u64::MAX);
    again.rejects_file = None;
    again.rejects_table = None;
    again.count_distinct = false;
    Ok(again)
}

/// Whether nothing but their own fields makes these columns of the table.
fn reads_all(request: &LoadRequest, columns: &[usize]) -> bool {
    let is_read = |column: &usize| match &request.derivation {
        Some(derivation) => matches!(derivation.columns[*column], ColumnFrom::Read(_)),
        None => true,
    };
    request.program.is_none() && columns.iter().all(is_read)
}

fn with_all_fields(request: &LoadRequest, columns: &[usize]) -> Result<LoadRequest> {
    let from_of = |column: &usize| match &request.derivation {
        Some(derivation) => derivation.columns[*column].clone(),
        None => ColumnFrom::Read(*column),
    };
    let derivation = Derivation {
        read: request.read_schema().clone(),
        columns: columns.iter().map(from_of).collect(),
    };
    let all = request.schema.columns();
    let schema = Schema::new(columns.iter().map(|c| all[*c].clone()).collect())?;
    Ok(LoadRequest { schema, derivation: Some(derivation), ..request.clone() })
}
