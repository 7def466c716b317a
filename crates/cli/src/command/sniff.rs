//! `coload sniff`.

use std::fmt::Write;

use coload::{DatabaseRows, Error, InputForm, ReadOptions, is_database_url};
use coload_ddl::{column_sql, create_table_sql};
use coload_source::{Sniffed, expand_inputs_with};
use serde_json::{Value, json};

use crate::args::{SniffArgs, SniffForm};
use crate::given::{check_given, command_line, flags, given_dialect, shell_word};
use crate::output::{Done, Failure, print};
use crate::report::dialect_json;

/// What was found out, and what the input is.
type Found<'a> = (&'a Sniffed, InputForm);

/// Prints what was found out about a file, and why.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when the input is no delimited text.
pub fn run(args: &SniffArgs) -> Done {
    let (sniffed, form, table) = find(args)?;
    print(&match args.output {
        SniffForm::Text => text(args, (&sniffed, form), &table),
        SniffForm::Json => json_text(args, (&sniffed, form), &table),
        SniffForm::Sql => sql(args, (&sniffed, form), &table),
    })
}

/// What was found out, as JSON.
///
/// # Errors
/// As [`run`].
pub fn found_json(args: &SniffArgs) -> Done<String> {
    let (sniffed, form, table) = find(args)?;
    Ok(json_text(args, (&sniffed, form), &table))
}

/// Looks at the input; the name of a table that is made of it comes last.
fn find(args: &SniffArgs) -> Done<(Sniffed, InputForm, String)> {
    check_given(&args.dialect)?;
    let given = given_dialect(&args.dialect);
    let options = ReadOptions { query: args.query.clone(), connections: Some(1) };
    let (sniffed, form, input) = if is_database_url(&args.input) {
        let rows = DatabaseRows::open(&args.input, &options)?;
        let (sniffed, form) = coload::sniff_rows(&rows, &given)?;
        (sniffed, form, Some(rows.input))
    } else if options.query.is_some() {
        return Err(Failure::Usage(Error::Invalid(
            "--query: give the URL of a database as the input, as in postgres://host/database"
                .to_owned(),
        )));
    } else {
        let inputs = expand_inputs_with(std::slice::from_ref(&args.input), &args.places.options())?;
        let (sniffed, form) = coload::sniff_input(&inputs, &given, args.sample)?;
        (sniffed, form, inputs.first())
    };
    let table = input.map_or_else(|| "t".to_owned(), |input| input.table_name());
    Ok((sniffed, form, table))
}

fn text(args: &SniffArgs, (sniffed, form): Found<'_>, table: &str) -> String {
    let mut out = String::new();
    for line in &sniffed.evidence {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "\n{}", create_table_sql(table, &sniffed.schema));
    let _ = writeln!(out, "\n{}", load_command(args, (sniffed, form)));
    out
}

fn sql(args: &SniffArgs, (sniffed, form): Found<'_>, table: &str) -> String {
    let mut out = String::new();
    for line in &sniffed.evidence {
        let _ = writeln!(out, "-- {}", on_one_line(line));
    }
    let _ = writeln!(out, "-- {}", on_one_line(&load_command(args, (sniffed, form))));
    let _ = writeln!(out, "{};", create_table_sql(table, &sniffed.schema).trim_end_matches(';'));
    out
}

fn load_command(args: &SniffArgs, found: Found<'_>) -> String {
    let flags = all_flags(args, found);
    let query = args.query.iter().map(|query| format!(" --query {}", shell_word(query)));
    let query: String = query.collect();
    // A URL may have a password, which need not be shown again.
    let input = match is_database_url(&args.input) {
        true => "URL".to_owned(),
        false => shell_word(&args.input),
    };
    let command = format!("coload load {input}{query} --into STORE {flags}");
    command.trim_end().to_owned()
}

/// The flags that give the dialect, if it is text, and that of the types.
fn all_flags(args: &SniffArgs, (sniffed, form): Found<'_>) -> String {
    let mut flags = match form {
        InputForm::Text => command_line(&flags(&sniffed.dialect)),
        InputForm::Arrow | InputForm::Parquet | InputForm::Rows => String::new(),
    };
    if args.dialect.all_text {
        flags.push_str(" --all-text");
    }
    if let Some(types) = &args.dialect.types {
        let columns: Vec<String> = types.0.iter().map(column_sql).collect();
        let _ = write!(flags, " --types={}", shell_word(&columns.join(", ")));
    }
    flags
}

fn json_text(args: &SniffArgs, (sniffed, form): Found<'_>, table: &str) -> String {
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
            InputForm::Text => "text",
            InputForm::Arrow => "arrow",
            InputForm::Parquet => "parquet",
            InputForm::Rows => "rows",
        },
        "dialect": dialect_json((form == InputForm::Text).then_some(&sniffed.dialect)),
        "flags": all_flags(args, (sniffed, form)).trim_start(),
        "columns": columns,
        "create_table": create_table_sql(table, &sniffed.schema),
        "evidence": sniffed.evidence,
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
