//! `coload sniff`.

use std::fmt::Write;

use coload::{DatabaseRows, Error, InputForm, ReadOptions, SniffedInput, is_database_url};
use coload_ddl::{column_sql, create_table_sql};
use coload_source::{Sniffed, expand_inputs_with};
use serde_json::{Value, json};

use crate::args::{SniffArgs, SniffForm};
use crate::given::{check_given, command_line, flags, given_dialect, sheet_flags, shell_word};
use crate::json_mapping::mapping_json;
use crate::output::{Done, Failure, print};
use crate::report::dialect_json;

/// What was found out, and what the input is.
struct Found {
    sniffed: Sniffed,
    form: InputForm,
    /// The columns that a load has to name, where it cannot read all fields.
    readable: Option<String>,
    /// Whether it is a sheet of a book.
    is_sheet: bool,
    /// Name of a table that is made of it.
    table: String,
    /// The tables beside that a mapping has.
    beside: Vec<(String, Sniffed)>,
}

/// Prints what was found out about a file, and why.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when the input is no delimited text.
pub fn run(args: &SniffArgs) -> Done {
    let found = find(args)?;
    print(&match args.output {
        SniffForm::Text => text(args, &found),
        SniffForm::Json => json_text(args, &found),
        SniffForm::Sql => sql(args, &found),
        SniffForm::Mapping => mapping(args, &found)?,
    })
}

/// What was found out, as JSON.
///
/// # Errors
/// As [`run`].
pub fn found_json(args: &SniffArgs) -> Done<String> {
    Ok(json_text(args, &find(args)?))
}

/// Looks at the input.
fn find(args: &SniffArgs) -> Done<Found> {
    check_given(&args.dialect)?;
    let given = given_dialect(&args.dialect);
    let options = ReadOptions { query: args.query.clone(), connections: Some(1) };
    let mut beside = Vec::new();
    let (found, input) = if is_database_url(&args.input) {
        let rows = DatabaseRows::open(&args.input, &options)?;
        (coload::sniff_rows(&rows, &given)?, Some(rows.input))
    } else if options.query.is_some() {
        return Err(Failure::Usage(Error::Invalid(
            "--query: give the URL of a database as the input, as in postgres://host/database"
                .to_owned(),
        )));
    } else {
        let inputs = expand_inputs_with(
            std::slice::from_ref(&args.input),
            &args.places.options(),
            &args.sheets.choice(),
            0,
        )?;
        let found = coload::sniff_input(&inputs, &given, args.sample)?;
        for table in args.dialect.mapping.iter().flat_map(|mapping| &mapping.tables) {
            let given = table.dialect(&given);
            let found = coload::sniff_input(&inputs, &given, args.sample)?;
            beside.push((table.table.clone(), found.sniffed));
        }
        (found, inputs.first())
    };
    let SniffedInput { sniffed, form, readable } = found;
    let is_sheet = input.as_ref().is_some_and(|input| input.is_sheet());
    let table = input.map_or_else(|| "t".to_owned(), |input| input.table_name());
    Ok(Found { sniffed, form, readable, is_sheet, table, beside })
}

fn text(args: &SniffArgs, found: &Found) -> String {
    let Found { sniffed, table, .. } = found;
    let mut out = String::new();
    for line in &sniffed.evidence {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "\n{}", create_table_sql(table, &sniffed.schema));
    for (table, sniffed) in &found.beside {
        let _ = writeln!(out, "\n{}", create_table_sql(table, &sniffed.schema));
    }
    let _ = writeln!(out, "\n{}", load_command(args, found));
    out
}

/// The mapping that the load would use.
fn mapping(args: &SniffArgs, found: &Found) -> Done<String> {
    let Some(mapping) = all_mappings(found) else {
        return Err(Failure::Usage(Error::Invalid(format!(
            "--output mapping: {} is not JSON, whose values have paths",
            args.input
        ))));
    };
    let mut text = serde_json::to_string_pretty(&mapping).unwrap_or_default();
    text.push('\n');
    Ok(text)
}

/// The mapping of what was found, with those of the tables beside.
fn all_mappings(found: &Found) -> Option<Value> {
    let mut mapping = mapping_json(&found.sniffed)?;
    let beside = found.beside.iter().filter_map(|(table, sniffed)| {
        let mut mapping = mapping_json(sniffed)?;
        mapping["table"] = json!(table);
        Some(mapping)
    });
    let beside: Vec<Value> = beside.collect();
    if !beside.is_empty() {
        mapping["tables"] = json!(beside);
    }
    Some(mapping)
}

fn sql(args: &SniffArgs, found: &Found) -> String {
    let Found { sniffed, table, .. } = found;
    let mut out = String::new();
    for line in &sniffed.evidence {
        let _ = writeln!(out, "-- {}", on_one_line(line));
    }
    let _ = writeln!(out, "-- {}", on_one_line(&load_command(args, found)));
    let beside = found.beside.iter().map(|(table, sniffed)| (table, &sniffed.schema));
    for (table, schema) in std::iter::once((table, &sniffed.schema)).chain(beside) {
        let _ = writeln!(out, "{};", create_table_sql(table, schema).trim_end_matches(';'));
    }
    out
}

fn load_command(args: &SniffArgs, found: &Found) -> String {
    let flags = all_flags(args, found);
    let query = args.query.iter().map(|query| format!(" --query {}", shell_word(query)));
    let query: String = query.collect();
    // A URL may have a password, which need not be shown again.
    let input = match is_database_url(&args.input) {
        true => "URL".to_owned(),
        false => shell_word(&args.input),
    };
    let command = format!("coload load {input}{query} --into STORE {}", flags.trim_start());
    command.trim_end().to_owned()
}

/// The flags that give the dialect, if it is text, and that of the types.
fn all_flags(args: &SniffArgs, found: &Found) -> String {
    let Found { sniffed, form, .. } = found;
    let mut flags = match form {
        InputForm::Text if found.is_sheet => {
            let given = args.sheets.flags().into_iter();
            command_line(&given.chain(sheet_flags(&sniffed.dialect)).collect::<Vec<_>>())
        }
        InputForm::Text => command_line(&flags(&sniffed.dialect)),
        InputForm::Arrow | InputForm::Parquet | InputForm::Avro | InputForm::Rows => String::new(),
    };
    if let Some(mapping) = &args.dialect.mapping {
        let _ = write!(flags, " --mapping={}", shell_word(&mapping.text));
    }
    if args.dialect.all_text {
        flags.push_str(" --all-text");
    }
    if let Some(columns) = &found.readable {
        // They have the types that were asked for.
        let _ = write!(flags, " --by-name --columns={}", shell_word(columns));
    } else if let Some(types) = &args.dialect.types {
        let columns: Vec<String> = types.0.iter().map(column_sql).collect();
        let _ = write!(flags, " --types={}", shell_word(&columns.join(", ")));
    }
    flags
}

fn json_text(args: &SniffArgs, found: &Found) -> String {
    let Found { sniffed, form, is_sheet, table, .. } = found;
    let columns: Vec<Value> = sniffed
        .schema
        .columns()
        .iter()
        .map(|c| json!({ "name": c.name, "type": c.data_type.to_string(), "sql": column_sql(c) }))
        .collect();
    let json = json!({
        "table": table,
        "format": match form {
            InputForm::Text if sniffed.dialect.json.is_some() => "json",
            InputForm::Text if *is_sheet => "sheet",
            InputForm::Text => "text",
            InputForm::Arrow => "arrow",
            InputForm::Parquet => "parquet",
            InputForm::Avro => "avro",
            InputForm::Rows => "rows",
        },
        "dialect": dialect_json((*form == InputForm::Text && !is_sheet).then_some(&sniffed.dialect)),
        "flags": all_flags(args, found).trim_start(),
        "columns": columns,
        "create_table": create_table_sql(table, &sniffed.schema),
        "evidence": sniffed.evidence,
        "mapping": all_mappings(found),
    });
    let mut text = serde_json::to_string_pretty(&json).unwrap_or_default();
    text.push('\n');
    text
}

/// A text without the characters that would end a comment.
fn on_one_line(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}
