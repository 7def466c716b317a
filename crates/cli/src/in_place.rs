//! Files and objects that statements read where they are: found, looked at and planned as the inputs of a load.
//!
//! Options of `read_csv('a.csv', delimiter => ';')` and its like are the flags of a load, by their names, with underscores as well as
//! hyphens; those that users of other programs type stand for them.

use clap::Parser;
use coload::{
    Error, InputForm, Inputs, Joined, LoadRequest, Mapping, Origin, Partitions, PlaceOptions,
    PlanRequest, Reader, Result, SAMPLE_BYTES, TEXT_ROOM, expand_inputs_with, parse_columns,
    plan_with,
};
use coload_serve::{ExternalInputs, ExternalOption, ExternalReference, OptionValue, ReadAs};
use coload_source::{InputFormat, UnknownKeys};

use crate::args::{DialectArgs, sample_size};
use crate::given::{check_given, given_dialect};
use crate::output::Failure;
use crate::sheet_args::SheetArgs;

/// Looks at inputs with what loads have.
#[derive(Debug, Default)]
pub struct InPlace {
    /// Where objects are.
    pub places: PlaceOptions,
}

/// What can be said of inputs.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    dialect: DialectArgs,
    #[command(flatten)]
    sheets: SheetArgs,
    #[arg(long, conflicts_with = "types")]
    columns: Option<String>,
    #[arg(long)]
    union_by_name: bool,
    #[arg(long, conflicts_with = "by_position")]
    by_name: bool,
    #[arg(long)]
    by_position: bool,
    #[arg(long)]
    partitions: bool,
    #[arg(long, conflicts_with = "partitions")]
    no_partitions: bool,
    #[arg(long, value_parser = sample_size)]
    sample: Option<usize>,
}

/// Names of options in other programs, and the flags that they are.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("delim", "delimiter"),
    ("sep", "delimiter"),
    ("nullstr", "null"),
    ("nulls", "null"),
    ("all-varchar", "all-text"),
    ("dateformat", "date-format"),
    ("timestampformat", "timestamp-format"),
    ("hive-partitioning", "partitions"),
    ("thousands", "thousands-separator"),
    ("dtypes", "types"),
    ("schema", "columns"),
];

/// Options of other programs that have no flag, and what to do.
const NO_FLAGS: [(&str, &str); 6] = [
    (
        "ignore-errors",
        "records that are no rows are never left out here; `coload load --max-rejects` sets them aside",
    ),
    ("sample-size", "write sample => '16MiB', or sample => 'all'"),
    ("filename", "`coload load --set name=@file` has the name of the input as a column"),
    ("compression", "it is found out"),
    ("names", "write columns => 'a BIGINT, b VARCHAR'"),
    ("header-rows", "write skip => 2, header => true"),
];

impl ExternalInputs for InPlace {
    fn find(&self, reference: &ExternalReference) -> Result<Inputs> {
        for input in &reference.inputs {
            if coload::is_database_url(input) {
                return Err(Error::Invalid(
                    "rows of a database are loaded first: coload load URL --into STORE".to_owned(),
                ));
            }
        }
        let wrong = |error: &Error| Error::Invalid(format!("{reference}: {error}"));
        let options = options(&reference.options).map_err(|error| wrong(&error))?;
        expand_inputs_with(&reference.inputs, &self.places, &options.sheets.choice(), TEXT_ROOM)
    }

    fn plan(&self, reference: &ExternalReference, inputs: Inputs) -> Result<LoadRequest> {
        let wrong = |error: &Error| Error::Invalid(format!("{reference}: {error}"));
        let options = options(&reference.options).map_err(|error| wrong(&error))?;
        let mut dialect = given_dialect(&options.dialect);
        if let Err(Failure::Usage(error) | Failure::Failed(error)) = check_given(&options.dialect) {
            return Err(wrong(&error));
        }
        if dialect.format.is_none() {
            dialect.format = match reference.read_as {
                ReadAs::Json => Some(InputFormat::Json),
                ReadAs::JsonLines => Some(InputFormat::JsonLines),
                ReadAs::Text => Some(InputFormat::Text),
                ReadAs::Any | ReadAs::Parquet | ReadAs::Arrow | ReadAs::Avro | ReadAs::Sheet => {
                    None
                }
            };
        }
        // Whoever names columns wants these; a load, which is to leave out nothing, asks first.
        if options.columns.is_some() && options.dialect.unknown_keys.is_none() {
            dialect.unknown_keys = UnknownKeys::Ignore;
        }
        let schema = options.columns.as_deref().map(parse_columns).transpose();
        let request = PlanRequest {
            schema: schema.map_err(|error| wrong(&error))?,
            dialect,
            beside: options.dialect.mapping.iter().flat_map(|given| given.tables.clone()).collect(),
            mapping: options.by_name.then(Mapping::default),
            reader: match options.by_position {
                true => Reader::Statement,
                false => Reader::StatementByName,
            },
            joined: if options.union_by_name { Joined::ByName } else { Joined::ByPosition },
            partitions: match (options.partitions, options.no_partitions) {
                (true, _) => Partitions::AreColumns,
                (false, true) => Partitions::AreFolders,
                (false, false) => Partitions::AreFound,
            },
            sample_bytes: options.sample.unwrap_or(SAMPLE_BYTES),
            ..PlanRequest::of(Origin::Found(inputs))
        };
        let Some(plan) = plan_with(&request, |_| Ok(None))? else {
            return Err(Error::Invalid(format!(
                "{reference} holds no record, so that its columns cannot be told: say them, as in read_csv('file', columns => \
                 'a BIGINT, b VARCHAR')"
            )));
        };
        check_form(reference, &plan.request)?;
        Ok(plan.request)
    }
}

/// Refuses inputs that are something else than the function says.
fn check_form(reference: &ExternalReference, request: &LoadRequest) -> Result<()> {
    let is_json = request.dialect.json.is_some();
    let is_sheet = request.inputs.first().is_some_and(|first| first.is_sheet());
    let (fits, what) = match reference.read_as {
        ReadAs::Any => (true, ""),
        ReadAs::Sheet => (is_sheet, "workbook (.xlsx)"),
        ReadAs::Text if is_sheet => (false, "delimited text"),
        ReadAs::Text => (request.form == InputForm::Text && !is_json, "delimited text"),
        ReadAs::Json | ReadAs::JsonLines => (request.form == InputForm::Text && is_json, "JSON"),
        ReadAs::Parquet => (request.form == InputForm::Parquet, "Parquet"),
        ReadAs::Arrow => (request.form == InputForm::Arrow, "Arrow IPC"),
        ReadAs::Avro => (request.form == InputForm::Avro, "Avro"),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{reference}: this is no {what}; without a function, as '{}', it is found out what it is",
            reference.inputs.join("', '")
        ))),
    }
}

/// Options as flags.
fn options(given: &[ExternalOption]) -> Result<Options> {
    let mut words: Vec<String> = Vec::new();
    for ExternalOption { name, value } in given {
        add_words(name, value, &mut words)?;
    }
    Options::try_parse_from(&words).map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        // What follows tells of a command line.
        let first = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
        Error::Invalid(first.replace("--", "").replace("argument", "option"))
    })
}

fn add_words(name: &str, value: &OptionValue, words: &mut Vec<String>) -> Result<()> {
    let name = name.replace('_', "-");
    if let Some((_, instead)) = NO_FLAGS.iter().find(|(other, _)| *other == name) {
        return Err(Error::Invalid(format!("there is no option {name}: {instead}")));
    }
    if name == "mapping"
        && !matches!(value, OptionValue::Text(text) if text.trim_start().starts_with('{'))
    {
        return Err(Error::Invalid(
            "mapping: write it itself, as in mapping => '{\"columns\": [{\"path\": \"a.b\", \"column\": \"b\"}]}'".to_owned(),
        ));
    }
    let known = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    let name = known.map_or(name.as_str(), |(_, flag)| flag);
    let flag = format!("--{name}");
    match (name, value) {
        // What is not said is found out.
        ("auto-detect", OptionValue::Switch(true)) => {}
        ("header" | "partitions", OptionValue::Switch(false)) => words.push(format!("--no-{name}")),
        (_, OptionValue::Switch(true)) => words.push(flag),
        (_, OptionValue::Switch(false)) => {}
        // An empty text is no character.
        ("quote" | "escape" | "comment", OptionValue::Text(text)) if text.is_empty() => {
            words.push(format!("{flag}=none"));
        }
        (_, OptionValue::Text(text)) => words.push(format!("{flag}={text}")),
        ("null" | "typed-null", OptionValue::List(texts)) => {
            words.extend(texts.iter().map(|text| format!("{flag}={text}")));
        }
        (_, OptionValue::List(texts)) => words.push(format!("{flag}={}", texts.join(","))),
    }
    Ok(())
}
