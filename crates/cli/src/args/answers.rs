//! Flags of `sql` that say how answers are shown.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use coload_serve::output::{FORMATS, OutputFormat};

/// How answers are shown, and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Answers")]
pub struct AnswerArgs {
    /// Form of the answers [default: what the ending of --output-file says, or table]
    #[arg(long, value_name = "FORM", value_parser = forms())]
    pub output: Option<&'static OutputFormat>,
    /// File of the answers, in the form that its ending says, which has its name only when it is whole
    #[arg(short, long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Rows of a table that are shown, the first and the last ones; 0 for all [default: 40 on a terminal, else all]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,
    /// Show answers on a terminal by COLOAD_PAGER, PAGER or less, with all rows
    #[arg(long)]
    pub pager: bool,
    /// Say how long each statement took [default: in the shell]
    #[arg(long)]
    pub timing: bool,
}

fn forms() -> impl TypedValueParser<Value = &'static OutputFormat> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(values).try_map(|name| OutputFormat::of_name(&name))
}
