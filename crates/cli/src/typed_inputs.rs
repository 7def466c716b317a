//! Inputs whose records have types, Arrow, Parquet and Avro: whether they are, and the columns that their fields are.

use coload_databases::DatabaseRows;
use coload_ddl::{Schema, column_sql, quote_name};
use coload_load::{
    InputForm, RefusedColumn, TypedField, TypedInput, look_at_arrow, look_at_avro, look_at_parquet,
    refuse_damaged_start,
};
use coload_source::{
    Dialect, GivenDialect, InputFile, Inputs, NullsAre, SampleEnd, Sniffed, of_input, unique_texts,
};
use coload_types::{Column, DataType, Error, Result, same_name};

use crate::plan::{PlanRequest, Reader, sample};
use crate::set_columns::names_of;
use crate::typed_union::{TypedUnion, check_all_read};
use crate::union::Joined;

/// Bytes of other inputs in which their schema is looked for first.
const HEAD_BYTES: usize = 64 << 10;

/// What is found out of inputs whose records have types.
pub struct TypedFound {
    /// What they are.
    pub form: InputForm,
    /// Their columns, in the form in which those of text are found.
    pub sniffed: Sniffed,
    /// Bytes of a record on average, if it is known.
    pub record_bytes: Option<usize>,
    /// Columns that cannot be read, by the numbers of their fields.
    pub refused: Vec<RefusedColumn>,
    /// How inputs are joined, if by name; the columns are those of all then.
    pub union: Option<TypedUnion>,
}

/// What is found out of one input.
#[derive(Debug)]
pub struct SniffedInput {
    /// Its columns.
    pub sniffed: Sniffed,
    /// What it is.
    pub form: InputForm,
    /// The columns that a load has to name, if there are fields that it cannot read: they are those of `sniffed`.
    pub readable: Option<String>,
}

/// Looks at an input with the first bytes of it; `None` when its records have no types.
///
/// # Errors
/// Those of [`look_at_arrow`], [`look_at_parquet`] and [`look_at_avro`]; `Input` for Parquet whose start is damaged.
fn look(input: &InputFile, sample: &[u8], end: SampleEnd) -> Result<Option<TypedInput>> {
    if let Some(found) = look_at_parquet(input, sample)? {
        return Ok(Some(found));
    }
    if let Some(found) = look_at_avro(&input.name, sample, end)? {
        return Ok(Some(found));
    }
    let found = look_at_arrow(&input.name, sample, end)?;
    if found.is_none() {
        refuse_damaged_start(input, sample)?;
    }
    Ok(found)
}

/// Finds the columns of inputs, if the records of the first of them have types: `schema` if there is one by position, else
/// those of the fields. With a `table` the types of fields that are not read do not matter, nor for who reads some columns only.
///
/// # Errors
/// `Invalid` when flags say what only text has, when a field is of a type that no column holds, or when inputs have
/// different fields; those of [`look_at_arrow`], [`look_at_parquet`] and [`look_at_avro`].
pub fn find_typed(
    inputs: &Inputs,
    request: &PlanRequest,
    (input, sample, end): (&InputFile, &[u8], SampleEnd),
    schema: Option<&Schema>,
    table: Option<&Schema>,
) -> Result<Option<TypedFound>> {
    let looked = match request.origin.rows() {
        Some(rows) => Some(rows.input()),
        None => look(input, sample, end)?,
    };
    let Some(found) = looked else { return Ok(None) };
    let (name, kind) = (input.name.as_str(), name_of(&found));
    check_flags(name, kind, &request.dialect)?;
    if request.joined == Joined::ByName {
        return joined_by_name(inputs, request, (name, &found), table.is_some()).map(Some);
    }
    for input in inputs.iter().filter(|input| input.name != name) {
        check_alike(name, &found, &input, request)?;
    }
    let sniffed = columns_of(name, &found, &request.dialect.columns, schema);
    let sniffed = sniffed.map_err(|error| of_input(name, error))?;
    let refused = refused(name, &found, &request.dialect.columns, table.is_some());
    let refused = match (request.reader, refused.first()) {
        (Reader::Load, Some(first)) if table.is_none() => {
            let others = others_told(&found, &sniffed.schema, &refused);
            return Err(Error::Invalid(format!("{} ({others})", first.text)));
        }
        // Columns that are given are told of when they are read.
        (Reader::Load, _) => Vec::new(),
        (Reader::Statement | Reader::StatementByName, _) => with_cures(&found, refused),
    };
    let (form, record_bytes) = (found.kind.form(), found.record_bytes);
    Ok(Some(TypedFound { form, sniffed, record_bytes, refused, union: None }))
}

/// The columns of all inputs, joined by name; with `are_given` their types are given.
fn joined_by_name(
    inputs: &Inputs,
    request: &PlanRequest,
    (first, found): (&str, &TypedInput),
    are_given: bool,
) -> Result<TypedFound> {
    let mut union = TypedUnion::default();
    for input in inputs.iter() {
        match input.name == first {
            true => union.add(first, found)?,
            false => {
                let other = look_at_other((first, found), &input, request.sample_bytes)?;
                union.add(&input.name, &other)?;
            }
        }
    }
    let sniffed = union.sniffed(&request.dialect.columns, found)?;
    let mut refused = union.refused(request.reader, are_given);
    if request.reader == Reader::Load {
        // Columns that are given are told of when they are read.
        if !are_given {
            check_all_read(&refused)?;
        }
        refused.clear();
    }
    let (form, record_bytes) = (found.kind.form(), found.record_bytes);
    Ok(TypedFound { form, sniffed, record_bytes, refused, union: Some(union) })
}

/// The columns of one input, if its records have types.
///
/// # Errors
/// As [`find_typed`].
pub fn sniff_typed(
    input: &InputFile,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
) -> Result<Option<SniffedInput>> {
    let Some(found) = look(input, sample, end)? else { return Ok(None) };
    check_flags(&input.name, name_of(&found), given)?;
    sniffed_input(&input.name, &found, given).map(Some)
}

/// The columns of rows of a database.
///
/// # Errors
/// `Invalid` when flags say what only text has.
pub fn sniff_rows(rows: &DatabaseRows, given: &GivenDialect) -> Result<SniffedInput> {
    let found = rows.source.input();
    check_flags(&rows.input.name, name_of(&found), given)?;
    sniffed_input(&rows.input.name, &found, given)
}

/// The columns of what can be read, and what is told of the rest.
fn sniffed_input(name: &str, found: &TypedInput, given: &GivenDialect) -> Result<SniffedInput> {
    let form = found.kind.form();
    let sniffed = columns_of(name, found, &given.columns, None);
    let mut sniffed = sniffed.map_err(|error| of_input(name, error))?;
    let refused = refused(name, found, &given.columns, false);
    if refused.is_empty() {
        return Ok(SniffedInput { sniffed, form, readable: None });
    }
    let others = readable(found, &sniffed.schema, &refused);
    sniffed.evidence.extend(refused.iter().map(|refused| refused.text.clone()));
    let Some(schema) = others else {
        return Err(Error::Invalid(sniffed.evidence.pop().unwrap_or_default()));
    };
    let readable = Some(columns_sql(&schema));
    sniffed.schema = schema;
    Ok(SniffedInput { sniffed, form, readable })
}

/// Fields of types that no column holds, with their numbers; of given columns, those that cannot be read at all.
fn refused(
    name: &str,
    found: &TypedInput,
    given: &[Column],
    columns_are_given: bool,
) -> Vec<RefusedColumn> {
    let names = names_of_fields(found);
    let of = |(column, field): (usize, &TypedField)| {
        let is_given =
            columns_are_given || given.iter().any(|c| same_name(&c.name, &names[column]));
        let why = match &field.data_type {
            Ok(_) if field.is_readable => return None,
            Err(_) if field.is_readable && is_given => return None,
            Ok(_) => "which no column holds",
            Err(why) => why.as_str(),
        };
        let text = format!("{name}: field {} is {}, {why}", field.name, field.kind);
        Some(RefusedColumn { column, kind: field.kind.clone(), text })
    };
    found.fields.iter().enumerate().filter_map(of).collect()
}

/// Names of the columns that the fields are.
pub fn names_of_fields(found: &TypedInput) -> Vec<String> {
    unique_texts(found.fields.iter().map(|field| field.name.clone()))
}

/// The columns of fields that can be read; `None` if there are none.
fn readable(found: &TypedInput, all: &Schema, refused: &[RefusedColumn]) -> Option<Schema> {
    let is_refused = |number: usize| refused.iter().any(|refused| refused.column == number);
    let fields = (0..found.fields.len()).filter(|number| !is_refused(*number));
    Schema::new(fields.map(|number| all.columns()[number].clone()).collect()).ok()
}

fn columns_sql(schema: &Schema) -> String {
    schema.columns().iter().map(column_sql).collect::<Vec<_>>().join(", ")
}

/// How the other fields are loaded.
fn others_told(found: &TypedInput, all: &Schema, refused: &[RefusedColumn]) -> String {
    /// Characters of a message that are still read.
    const TOLD_MAX: usize = 300;
    let others = match readable(found, all, refused).as_ref().map(columns_sql) {
        Some(columns) if columns.len() <= TOLD_MAX => {
            format!("load the others with --by-name --columns '{columns}'")
        }
        Some(_) => "load the others with --by-name --columns, which coload sniff prints".to_owned(),
        None => "it has no other field".to_owned(),
    };
    match refused.first().map(|first| &found.fields[first.column]) {
        Some(field) if field.is_readable => {
            format!("{others}, or give it another type: --types '{} DOUBLE'", field.name)
        }
        _ => others,
    }
}

/// The same with what a statement can do.
fn with_cures(found: &TypedInput, refused: Vec<RefusedColumn>) -> Vec<RefusedColumn> {
    /// Columns that are named in a message.
    const NAMED_MAX: usize = 10;
    let names = names_of_fields(found);
    let all: Vec<String> = refused.iter().map(|column| quote_name(&names[column.column])).collect();
    let exclude = match all.len() <= NAMED_MAX {
        true => all.join(", "),
        false => format!("{}, ..", all[..NAMED_MAX].join(", ")),
    };
    let with_cure = |(refused, column): (RefusedColumn, &String)| {
        let other = match found.fields[refused.column].is_readable {
            true => format!(", or give it another type: types => '{column} DOUBLE'"),
            false => String::new(),
        };
        let text = format!(
            "{} (name the columns that are to be read, or leave out those that cannot be, as in SELECT * EXCLUDE ({exclude}){other})",
            refused.text
        );
        RefusedColumn { text, ..refused }
    };
    refused.into_iter().zip(&all).map(with_cure).collect()
}

/// What an input is, in the words of messages.
fn name_of(found: &TypedInput) -> &'static str {
    found.kind.form().typed_name().unwrap_or_default()
}

/// Refuses flags of text.
fn check_flags(name: &str, kind: &str, given: &GivenDialect) -> Result<()> {
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
            "{name} is {kind}, whose values have types, and {flag} says how text is written: leave it out"
        ))),
        None => Ok(()),
    }
}

/// What is found out of another input, which must be what the first is.
fn look_at_other(
    (first, found): (&str, &TypedInput),
    input: &InputFile,
    bytes_max: usize,
) -> Result<TypedInput> {
    let look_at = |bytes: usize| {
        let (text, end) = sample(input, None, bytes)?;
        look(input, &text, end)
    };
    let other = match look_at(HEAD_BYTES) {
        Err(Error::Limit(_)) if bytes_max > HEAD_BYTES => look_at(bytes_max)?,
        other => other?,
    };
    other.filter(|other| other.kind.form() == found.kind.form()).ok_or_else(|| {
        Error::Invalid(format!(
            "{first} is {}, and {} is not: load it by itself",
            name_of(found),
            input.name
        ))
    })
}

/// Checks that another input has the fields of the first, in its order.
fn check_alike(
    first: &str,
    found: &TypedInput,
    input: &InputFile,
    request: &PlanRequest,
) -> Result<()> {
    let other = look_at_other((first, found), input, request.sample_bytes)?;
    let names = |input: &TypedInput| -> Vec<String> {
        input.fields.iter().map(|field| field.name.to_lowercase()).collect()
    };
    match names(found) == names(&other) {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{} has other fields than {first}, or in another order: {}",
            input.name,
            request.reader.joining()
        ))),
    }
}

/// The columns of the fields.
fn columns_of(
    name: &str,
    found: &TypedInput,
    given: &[Column],
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    let fields = &found.fields;
    let names = names_of_fields(found);
    if let Some(wrong) = given.iter().find(|given| !names.iter().any(|n| same_name(n, &given.name)))
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
            let column = |(field, name_of): (&TypedField, String)| {
                let given = given.iter().find(|given| same_name(&given.name, &name_of));
                let data_type = type_of(field, given);
                Ok(Column { nullable: field.nullable, ..Column::new(name_of, data_type) })
            };
            Schema::new(fields.iter().zip(names).map(column).collect::<Result<_>>()?)?
        }
    };
    let kinds: Vec<String> =
        fields.iter().map(|field| format!("{} {}", field.name, field.kind)).collect();
    Ok(Sniffed {
        dialect: Dialect::default(),
        schema,
        forms: Vec::new(),
        evidence: vec![format!("{}, fields: {}", found.kind.told(), kinds.join(", "))],
    })
}

/// The type of the column that a field becomes; any for one that is refused.
fn type_of(field: &TypedField, given: Option<&Column>) -> DataType {
    match (given, &field.data_type) {
        (Some(given), _) if field.is_readable => given.data_type,
        (_, Ok(data_type)) => *data_type,
        (_, Err(_)) => DataType::Varchar(None),
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
        if !same_name(field, &column.name)
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
