//! Columns of a table from fields of the input by name.

use coload_ddl::Schema;
use coload_source::Sniffed;
use coload_types::{Column, Error, Result, same_name};
use coload_wire::FieldMap;

use crate::set_columns::{lacking, names_of};

/// Which fields become which columns: those of the same name, but for those that are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// A field, by its name in the header or its number from 1, and the name of its column.
    pub pairs: Vec<(String, String)>,
}

impl Mapping {
    /// Adds `field=column`.
    ///
    /// # Errors
    /// `Invalid` when it is not of that form.
    pub fn add(&mut self, text: &str) -> Result<()> {
        match text.rsplit_once('=') {
            Some((field, column)) if !field.is_empty() && !column.is_empty() => {
                self.pairs.push((field.to_owned(), column.to_owned()));
                Ok(())
            }
            _ => Err(Error::Invalid(format!(
                "--map \"{text}\": expected FIELD=COLUMN, as in --map 'Customer No=customer_id' or --map \
                 3=customer_id"
            ))),
        }
    }
}

/// Finds the field of each column; `sniffed` then has the columns that have one. Without a table the
/// columns are those of the input, renamed.
///
/// # Errors
/// `Invalid` when a field is not there, or a column that must have one.
pub fn map_columns(
    name: &str,
    mapping: &Mapping,
    table: Option<Schema>,
    sniffed: &mut Sniffed,
) -> Result<Option<FieldMap>> {
    let input = sniffed.schema.clone();
    let named = mapping
        .pairs
        .iter()
        .map(|(field, column)| Ok((find_field(name, &input, field)?, column.as_str())))
        .collect::<Result<Vec<_>>>()?;
    let Some(schema) = table else {
        sniffed.schema = rename(&input, &named)?;
        return Ok(None);
    };
    for (_, column) in &named {
        if schema.position(column).is_none() {
            return Err(Error::Invalid(format!(
                "--map: the table has no column {column}; it has {}",
                names_of(&schema)
            )));
        }
    }
    let (mut columns, mut of_column, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for column in schema.columns() {
        match find_source(&input, &named, column) {
            Some(field) => {
                of_column.push(field);
                columns.push(column.clone());
            }
            None => missing.push(lacking(name, &input, column)?),
        }
    }
    if columns.is_empty() {
        return Err(Error::Invalid(format!(
            "{name} has no field of the name of a column; it has {}, and the columns are {} (try --map \
             FIELD=COLUMN)",
            names_of(&input),
            names_of(&schema)
        )));
    }
    if !missing.is_empty() {
        let columns = missing.join(", ");
        sniffed.evidence.push(format!("columns that the input lacks: {columns} (--map, --set)"));
    }
    let count = input.len();
    let ignored: Vec<&str> = (0..count)
        .filter(|field| !of_column.contains(field))
        .map(|field| input.columns()[field].name.as_str())
        .collect();
    if !ignored.is_empty() {
        sniffed.evidence.push(format!("fields that are not read: {}", ignored.join(", ")));
    }
    sniffed.schema = Schema::new(columns)?;
    Ok(Some(FieldMap { count, of_column }))
}

/// Checks that each column is a field of its name.
///
/// # Errors
/// `Invalid` that names those which are none, and the fields.
pub fn check_all_there(name: &str, input: &Schema, columns: &Schema) -> Result<()> {
    let lacks = columns.columns().iter().filter(|column| input.position(&column.name).is_none());
    let lacks: Vec<&str> = lacks.map(|column| column.name.as_str()).collect();
    match lacks.is_empty() {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{name} has no field {}; it has {} (a column is the field of its name; by_position => true takes fields in their order, and by_name => true has NULL for those that are not there)",
            lacks.join(", "),
            names_of(input)
        ))),
    }
}

/// A field by its name, else by its number from 1.
fn find_field(name: &str, input: &Schema, field: &str) -> Result<usize> {
    let number = field.parse::<usize>().ok().filter(|n| (1..=input.len()).contains(n));
    input.position(field).or(number.map(|n| n - 1)).ok_or_else(|| {
        Error::Invalid(format!("--map: {name} has no field {field}; it has {}", names_of(input)))
    })
}

/// The field of a column: what the user named, else that of its name.
fn find_source(input: &Schema, named: &[(usize, &str)], column: &Column) -> Option<usize> {
    let given = named.iter().find(|(_, target)| same_name(target, &column.name));
    given.map(|(field, _)| *field).or_else(|| input.position(&column.name))
}

fn rename(input: &Schema, named: &[(usize, &str)]) -> Result<Schema> {
    let mut columns = input.columns().to_vec();
    for (field, target) in named {
        (*target).clone_into(&mut columns[*field].name);
    }
    Schema::new(columns)
}
