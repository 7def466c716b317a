//! A load of several tables: a request for each, from the mapping that names them.

use std::borrow::Cow;

use coload_types::{Error, Result};

use crate::conflict_rule::ConflictRule;
use crate::origin::Origin;
use crate::plan::PlanRequest;

/// The request for the first table, and those for the tables beside it.
///
/// # Errors
/// `Invalid` when a flag is for one table only, or the inputs can be read only once.
pub fn of_tables(request: &PlanRequest) -> Result<(Cow<'_, PlanRequest>, Vec<PlanRequest>)> {
    if request.beside.is_empty() {
        return Ok((Cow::Borrowed(request), Vec::new()));
    }
    let of_one_table = [
        ("--where", request.filter.is_some()),
        ("--select", request.select.is_some()),
        ("--on-conflict", request.on_conflict != ConflictRule::Error),
        ("--delete-where", request.delete_where.is_some()),
        ("--map", request.mapping.is_some()),
    ];
    if let Some((flag, _)) = of_one_table.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Invalid(format!(
            "{flag} is for loads of one table, and --mapping has several: load each by itself, with its part of the mapping"
        )));
    }
    let inputs = request.origin.inputs(&request.places, &request.sheets, request.text_room)?;
    if let Some(once) = inputs.read_once() {
        return Err(Error::Invalid(format!(
            "{}: can be read only once, and each table of --mapping reads it (load a file)",
            once.name
        )));
    }
    let main = PlanRequest { origin: Origin::Found(inputs), beside: Vec::new(), ..request.clone() };
    let beside = request.beside.iter().map(|of| PlanRequest {
        table: Some(of.table.clone()),
        schema: None,
        key: None,
        dialect: of.dialect(&main.dialect),
        ..main.clone()
    });
    let beside = beside.collect();
    Ok((Cow::Owned(main), beside))
}
