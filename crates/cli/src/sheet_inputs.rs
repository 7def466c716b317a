//! Inputs that are sheets of books: their text is made of cells, so that nothing is to be found out of how it is written.

use coload_source::{GivenDialect, InputFile, InputFormat, Inputs, Sniffed};
use coload_types::{Error, Result};

/// What is given of the inputs: if they are sheets, that they are.
///
/// # Errors
/// `Invalid` when some are sheets and others are not, or flags say how text is written.
pub fn of_sheets(inputs: &Inputs, given: &GivenDialect) -> Result<GivenDialect> {
    let Some(sheet) = inputs.iter().find(InputFile::is_sheet) else { return Ok(given.clone()) };
    if let Some(other) = inputs.iter().find(|input| !input.is_sheet()) {
        return Err(Error::Invalid(format!(
            "{} is a sheet of a book, and {} is not: load each by itself",
            sheet.name, other.name
        )));
    }
    check_flags(&sheet.name, given)?;
    Ok(GivenDialect { format: Some(InputFormat::Sheet), ..given.clone() })
}

/// Refuses flags of delimited text.
fn check_flags(name: &str, given: &GivenDialect) -> Result<()> {
    let policies = &given.policies;
    let flags = [
        ("--format", given.format.is_some_and(|format| format != InputFormat::Sheet)),
        ("--delimiter", given.delimiter.is_some() || given.aligned.is_some()),
        ("--fixed-width", given.fixed.is_some()),
        ("--quote", given.quote.is_some()),
        ("--escape", given.escape.is_some()),
        ("--escapes", given.escapes.is_some()),
        ("--comment", given.comment.is_some()),
        ("--decimal-separator", given.decimal.is_some()),
        ("--thousands-separator", given.thousands.is_some()),
        ("--line-end", given.line_end.is_some()),
        ("--encoding", given.encoding.is_some()),
        ("--ragged", policies.ragged.is_some()),
        ("--quotes", policies.quotes.is_some()),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Error::Invalid(format!(
            "{name} is a sheet of a book, whose cells are known, and {flag} says how delimited text is written: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Tells which cells are read, before what was found out of them.
pub fn tell_sheet(input: &InputFile, sniffed: &mut Sniffed) {
    let Some(sheet) = input.sheet() else { return };
    let mut lines =
        vec![format!("cells {} of {} (--sheet and --range say otherwise)", sheet.area, input.name)];
    if sheet.merged > 0 {
        lines.push(format!(
            "{} merged areas: the value stands in the first cell of each, and the others are NULL",
            sheet.merged
        ));
    }
    sniffed.evidence.splice(0..0, lines);
}
