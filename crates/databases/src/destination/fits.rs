//! Whether the columns of a load fit those of a table.

use coload_ddl::Schema;
use coload_types::{DataType, Error, Result, same_name};

use crate::engine::{Engine, TableColumn};
use crate::names::TableName;

/// The columns of a table into which those of a load go, in the order of the load.
///
/// # Errors
/// `Invalid` when the table lacks one, the server makes its values itself, or it has another type; or when a column that
/// must have a value is not loaded.
pub fn columns_for(
    engine: &dyn Engine,
    table: &TableName,
    columns: Vec<TableColumn>,
    schema: &Schema,
) -> Result<Vec<TableColumn>> {
    let refuse = |text: String| Err(Error::Invalid(format!("table {table}: {text}")));
    let mut taken: Vec<Option<TableColumn>> = columns.into_iter().map(Some).collect();
    let mut found = Vec::with_capacity(schema.len());
    for column in schema.columns() {
        let named = |exact: bool| {
            let fits = |other: &Option<TableColumn>| {
                other.as_ref().is_some_and(|other| match exact {
                    true => other.name == column.name,
                    false => same_name(&other.name, &column.name),
                })
            };
            taken.iter().position(fits)
        };
        let Some(at) = named(true).or_else(|| named(false)) else {
            let names: Vec<&str> = taken.iter().flatten().map(|c| c.name.as_str()).collect();
            return refuse(format!(
                "it has no column {}; it has {}",
                column.name,
                names.join(", ")
            ));
        };
        let Some(other) = taken[at].take() else { continue };
        if other.is_generated {
            return refuse(format!(
                "the server makes the values of column {} itself: do not load it",
                other.name
            ));
        }
        let stands = engine.stands_for(column.data_type, &other).then_some(column.data_type);
        let Some(data_type) = stands.or_else(|| type_for(column.data_type, other.data_type)) else {
            return refuse(format!(
                "column {} is {}, which takes {}, and the load has {} (leave out --columns, --schema and --types to have \
                 the table's)",
                other.name, other.type_name, other.data_type, column.data_type
            ));
        };
        found.push(TableColumn { data_type, ..other });
    }
    let lacks = taken.iter().flatten().find(|c| !c.nullable && !c.has_default && !c.is_generated);
    if let Some(column) = lacks {
        return refuse(format!(
            "column {} must have a value, and is not loaded (--set {}=VALUE gives it one)",
            column.name, column.name
        ));
    }
    Ok(found)
}

/// The type with which values go into a column of another, if none is narrowed but by what the server checks.
fn type_for(loaded: DataType, table: DataType) -> Option<DataType> {
    use DataType::{Binary, Char, Decimal, Varchar};
    let fits = match (loaded, table) {
        // The server counts digits before the point, and characters.
        (Decimal { scale: own, .. }, Decimal { scale, .. }) => own <= scale,
        (Char(_) | Varchar(_), Char(_) | Varchar(_)) | (Binary(_), Binary(_)) => true,
        (loaded, table) => loaded == table,
    };
    fits.then_some(loaded)
}
