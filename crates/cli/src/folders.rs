//! Folders such as `year=2026` in the paths of inputs, and the columns that they are (decision 0066).

use coload_ddl::Schema;
use coload_input::Names;
use coload_source::Inputs;
use coload_types::{Error, Result, same_name};
use coload_wire::partition_values;

use crate::conflict_rule::ConflictRule;
use crate::origin::Origin;
use crate::plan::{PlanRequest, plan_with};
use crate::set_columns::{SetColumn, SetValue};

/// What folders such as `year=2026` in the paths of inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitions {
    /// Columns where that is clear: all inputs have the same keys, which are no fields of theirs and, of a table that is
    /// there, columns.
    AreFound,
    /// Folders as others.
    AreFolders,
    /// Columns, one a key, after those of the inputs.
    AreColumns,
}

/// The columns that folders of the paths are, as far as that can be told before the fields are known.
///
/// # Errors
/// Those of [`partition_columns`], where they are asked for.
pub fn folder_columns(
    request: &PlanRequest,
    inputs: &Inputs,
    table: Option<&Schema>,
) -> Result<Vec<SetColumn>> {
    // What is set says otherwise.
    let is_set =
        |new: &SetColumn| request.set.iter().any(|set| same_name(&set.column, &new.column));
    let names = inputs.names();
    match request.partitions {
        Partitions::AreFolders => Ok(Vec::new()),
        Partitions::AreColumns => {
            Ok(partition_columns(names)?.into_iter().filter(|new| !is_set(new)).collect())
        }
        Partitions::AreFound => {
            // Who says which columns there are, or which keys are, wants no others.
            let is_said = request.select.is_some()
                || request.set.iter().any(|set| set.value == SetValue::Partition);
            let found = if is_said { Vec::new() } else { clear_partition_columns(names) };
            let found: Vec<SetColumn> = found.into_iter().filter(|new| !is_set(new)).collect();
            let Some(table) = table else { return Ok(found) };
            let of_table: Vec<SetColumn> =
                found.into_iter().filter(|new| table.position(&new.column).is_some()).collect();
            match of_table.is_empty() || have_all(request, inputs, table, &of_table)? {
                true => Ok(Vec::new()),
                false => Ok(of_table),
            }
        }
    }
}

/// Whether the inputs have fields for the columns of a table that folders would be, by name or, where columns are fields of
/// the same place, by their number.
fn have_all(
    request: &PlanRequest,
    inputs: &Inputs,
    table: &Schema,
    folders: &[SetColumn],
) -> Result<bool> {
    let alone = PlanRequest {
        origin: Origin::Found(inputs.clone()),
        schema: None,
        key: None,
        set: Vec::new(),
        partitions: Partitions::AreFolders,
        on_conflict: ConflictRule::Error,
        delete_where: None,
        ..request.clone()
    };
    let Some(plan) = plan_with(&alone, |_| Ok(None))? else { return Ok(false) };
    let fields = &plan.request.schema;
    let is_by_position = request.mapping.is_none();
    Ok(folders.iter().any(|folder| fields.position(&folder.column).is_some())
        || (is_by_position && fields.len() >= table.len()))
}

/// The keys in the paths of all inputs, such as `year` of `year=2026/a.csv`.
///
/// # Errors
/// `Invalid` when inputs have different keys, one has a key twice, or none has any.
fn partition_columns(names: &Names) -> Result<Vec<SetColumn>> {
    let keys_of = |name: &str| -> Vec<String> {
        partition_values(name).map(|(key, _)| key.to_owned()).collect()
    };
    let mut all: Option<(String, Vec<String>)> = None;
    for name in names.iter() {
        let keys = keys_of(&name);
        let Some((first, known)) = &all else {
            if keys.is_empty() {
                return Err(Error::Invalid(format!(
                    "--partitions: {name} has no folder such as year=2026 in its path"
                )));
            }
            let twice = |at: usize| keys[..at].iter().any(|key| same_name(key, &keys[at]));
            if let Some(at) = (0..keys.len()).find(|at| twice(*at)) {
                return Err(Error::Invalid(format!(
                    "--partitions: {name} has {}= twice in its path",
                    keys[at]
                )));
            }
            all = Some((name, keys));
            continue;
        };
        if *known != keys {
            return Err(Error::Invalid(format!(
                "--partitions: {first} has {}= in its path, and {name} has {} (load them one after the other)",
                known.join("=, "),
                if keys.is_empty() { "none".to_owned() } else { keys.join("=, ") + "=" }
            )));
        }
    }
    let (_, keys) = all.unwrap_or_default();
    Ok(keys.into_iter().map(|column| SetColumn { column, value: SetValue::Partition }).collect())
}

/// The keys in the paths of all inputs, if there is no doubt that they are columns: they are words, none is there twice, and
/// all paths have the same.
fn clear_partition_columns(names: &Names) -> Vec<SetColumn> {
    let is_word = |key: &str| {
        key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || !b.is_ascii())
            && !key.as_bytes()[0].is_ascii_digit()
    };
    let has_words = |name: &str| partition_values(name).all(|(key, _)| is_word(key));
    match names.iter().next().filter(|first| has_words(first)) {
        // What is wrong with them is no error where nobody asks for them.
        Some(_) => partition_columns(names).unwrap_or_default(),
        None => Vec::new(),
    }
}
