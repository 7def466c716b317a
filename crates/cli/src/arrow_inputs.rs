//! Inputs of Arrow: whether they are, and the columns that their fields are.

use coload_arrow::{ArrowType, Field};
use coload_ddl::Schema;
use coload_load::{ArrowForm, ArrowInput, look_at_arrow};
use coload_source::{
    Dialect, GivenDialect, InputFile, Inputs, NullsAre, SampleEnd, Sniffed, unique_texts,
};
use coload_types::{Column, DataType, Error, Result};

use crate::plan::{PlanRequest, sample};
use crate::set_columns::names_of;
use crate::union::Joined;

/// Bytes of other inputs in which their schema is looked for first.
const HEAD_BYTES: usize = 64 << 10;

/// What is found out of inputs that are Arrow.
pub struct ArrowFound {
    /// Their columns, in the form in which those of text are found.
    pub sniffed: Sniffed,
    /// Bytes of a record on average, if it is known.
    pub record_bytes: Option<usize>,
}

/// Finds the columns of inputs, if the first of them is Arrow: `schema` if there is one by position, else those of the fields.
/// With a `table` the types of fields that are not read do not matter.
///
/// # Errors
/// `Invalid` when flags say what only text has, when a field is of a type that no column holds, or when inputs have
/// different fields; those of [`look_at_arrow`].
pub fn find_arrow(
    inputs: &Inputs,
    request: &PlanRequest,
    (name, sample, end): (&str, &[u8], SampleEnd),
    schema: Option<&Schema>,
    table: Option<&Schema>,
) -> Result<Option<ArrowFound>> {
    let Some(found) = look_at_arrow(name, sample, end)? else { return Ok(None) };
    check_flags(name, &request.dialect)?;
    if request.joined == Joined::ByName {
        return Err(Error::Invalid(format!(
            "{name} is Arrow, and --union-by-name joins inputs of text: load inputs with different fields one by one, with \
             --by-name"
        )));
    }
    for input in inputs.iter().filter(|input| input.name != name) {
        check_alike(name, &found, &input, request.sample_bytes)?;
    }
    let sniffed = columns_of(name, &found, &request.dialect.columns, schema, table)?;
    Ok(Some(ArrowFound { sniffed, record_bytes: found.record_bytes }))
}

/// The columns of one input, if it is Arrow.
///
/// # Errors
/// As [`find_arrow`].
pub fn sniff_arrow(
    name: &str,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
) -> Result<Option<Sniffed>> {
    let Some(found) = look_at_arrow(name, sample, end)? else { return Ok(None) };
    check_flags(name, given)?;
    columns_of(name, &found, &given.columns, None, None).map(Some)
}

/// Refuses flags of text.
fn check_flags(name: &str, given: &GivenDialect) -> Result<()> {
    let policies = &given.policies;
    let flags = [
        ("--delimiter", given.delimiter.is_some() || given.aligned.is_some()),
        ("--fixed-width", given.fixed.is_some()),
        ("--quote", given.quote.is_some()),
        ("--escape", given.escape.is_some()),
        ("--escapes", given.escapes.is_some()),
        ("--header-rows", given.header_rows.is_some()),
        ("--header and --no-header", given.header.is_some()),
        ("--null", given.nulls.is_some()),
        ("--quoted-null", given.nulls_are != NullsAre::Unquoted),
        ("--typed-null", given.typed_nulls.is_some()),
        ("--decimal-separator", given.decimal.is_some()),
        ("--thousands-separator", given.thousands.is_some()),
        ("--date-format", given.date.is_some()),
        ("--timestamp-format", given.timestamp.is_some()),
        ("--type-order", given.types.is_some()),
        ("--skip", given.skip.is_some()),
        ("--footer", given.footer.is_some()),
        ("--line-end", given.line_end.is_some()),
        ("--encoding", given.encoding.is_some()),
        ("--all-text", given.all_text),
        ("--ragged", policies.ragged.is_some()),
        ("--quotes", policies.quotes.is_some()),
        ("--invalid-bytes", policies.invalid_bytes.is_some()),
        ("--comment", given.comment.is_some()),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Error::Invalid(format!(
            "{name} is Arrow, whose values have types, and {flag} says how text is written: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Checks that another input has the fields of the first, in its order.
fn check_alike(first: &str, found: &ArrowInput, input: &InputFile, bytes_max: usize) -> Result<()> {
    let look = |bytes: usize| {
        let (text, end) = sample(input, None, bytes)?;
        look_at_arrow(&input.name, &text, end)
    };
    let other = match look(HEAD_BYTES) {
        Err(Error::Limit(_)) if bytes_max > HEAD_BYTES => look(bytes_max)?,
        other => other?,
    };
    let Some(other) = other else {
        return Err(Error::Invalid(format!(
            "{first} is Arrow, and {} is not: load it by itself",
            input.name
        )));
    };
    let names = |input: &ArrowInput| -> Vec<String> {
        input.schema.fields.iter().map(|field| field.name.to_lowercase()).collect()
    };
    match names(found) == names(&other) {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{} has other fields than {first}, or in another order: load it by itself",
            input.name
        ))),
    }
}

/// The columns of the fields.
fn columns_of(
    name: &str,
    found: &ArrowInput,
    given: &[Column],
    schema: Option<&Schema>,
    table: Option<&Schema>,
) -> Result<Sniffed> {
    let fields = &found.schema.fields;
    let names = unique_texts(fields.iter().map(|field| field.name.clone()));
    if let Some(wrong) =
        given.iter().find(|given| !names.iter().any(|n| n.eq_ignore_ascii_case(&given.name)))
    {
        return Err(Error::Invalid(format!(
            "--types: {name} has no field {}; it has {}",
            wrong.name,
            names.join(", ")
        )));
    }
    let schema = match schema {
        Some(schema) => {
            check_order(name, &names, schema)?;
            schema.clone()
        }
        None => {
            let column = |(field, name_of): (&Field, String)| {
                let given = given.iter().find(|given| given.name.eq_ignore_ascii_case(&name_of));
                let data_type = type_of(name, field, given, table.is_some())?;
                Ok(Column { nullable: field.nullable, ..Column::new(name_of, data_type) })
            };
            Schema::new(fields.iter().zip(names).map(column).collect::<Result<_>>()?)?
        }
    };
    let form = match found.form {
        ArrowForm::File => "file",
        ArrowForm::Stream => "stream",
    };
    let kinds: Vec<String> = fields.iter().map(|field| format!("{} {field}", field.name)).collect();
    Ok(Sniffed {
        dialect: Dialect::default(),
        schema,
        forms: Vec::new(),
        evidence: vec![format!("Arrow IPC ({form}), fields: {}", kinds.join(", "))],
    })
}

/// The type of the column that a field becomes. Of fields of a table's columns only the names count.
fn type_of(name: &str, field: &Field, given: Option<&Column>, is_known: bool) -> Result<DataType> {
    let found = match (given, field.values.sql_type()) {
        (Some(given), _) if !matches!(field.values, ArrowType::Other(..)) => {
            return Ok(given.data_type);
        }
        (_, found) => found,
    };
    match found {
        Ok(data_type) => Ok(data_type),
        Err(_) if is_known => Ok(DataType::Varchar(None)),
        Err(why) => Err(Error::Invalid(format!(
            "{name}: field {} is {field}, {why} (give the columns that are to be read with --columns, and --by-name)",
            field.name
        ))),
    }
}

/// Checks that fields which are columns by their position have not the names of others.
fn check_order(name: &str, names: &[String], schema: &Schema) -> Result<()> {
    if names.len() != schema.len() {
        return Err(Error::Invalid(format!(
            "{name} has {} fields and the table {} columns: it has {}, and the columns are {} (try --by-name, or --set)",
            names.len(),
            schema.len(),
            names.join(", "),
            names_of(schema)
        )));
    }
    for (number, (field, column)) in names.iter().zip(schema.columns()).enumerate() {
        if !field.eq_ignore_ascii_case(&column.name)
            && let Some(other) = schema.position(field)
        {
            return Err(Error::Invalid(format!(
                "{name}: field {} is {field}, which is the name of column {}, and column {} is {} (try --by-name)",
                number + 1,
                other + 1,
                number + 1,
                column.name
            )));
        }
    }
    Ok(())
}
