//! Whether all inputs begin as the first: what was found out of it, lines to read over and names, holds for all.

use coload_source::{GivenDialect, Header, Inputs, SampleEnd, Sniffed, read_names, shorten};
use coload_types::{Error, Result};

use crate::plan::{is_blank, sample};

/// Bytes of an input in which its names are looked for.
const HEAD_BYTES: usize = 64 << 10;

/// What is not found out where there are several inputs, as it would be read over in all of them.
pub fn for_several(inputs: &Inputs, given: &GivenDialect) -> GivenDialect {
    let mut given = given.clone();
    if inputs.len() > 1 {
        given.footer.get_or_insert(0);
    }
    given
}

/// Checks that no line of another input is read over because the first has comments.
///
/// # Errors
/// `Invalid` that says which flag tells.
pub fn check_comments(
    inputs: &Inputs,
    first: &str,
    sniffed: &Sniffed,
    given: &GivenDialect,
) -> Result<()> {
    match sniffed.dialect.comment {
        Some(comment) if inputs.len() > 1 && given.comment.is_none() => {
            let comment = char::from(comment);
            Err(Error::Invalid(format!(
                "{first} has lines that begin with {comment} and look like comments, and such lines of the other inputs would \
                 be read over too: say what they are (--comment '{comment}' if they are none of the table, --comment none \
                 if they are rows)"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks that no record of another input is taken for names, or for lines before the table, since the first has some.
///
/// # Errors
/// `Invalid` that names the input which begins otherwise.
pub fn check_heads(
    inputs: &Inputs,
    (first, text): (&str, &[u8]),
    sniffed: &Sniffed,
    given: &GivenDialect,
) -> Result<()> {
    let dialect = &sniffed.dialect;
    let has_names = dialect.header == Header::Present;
    let found_names = has_names && given.header.is_none();
    let found_skip = dialect.skip > 0 && given.skip.is_none();
    if inputs.len() < 2 || !(found_names || found_skip) {
        return Ok(());
    }
    let names_of = |text: &[u8], end| read_names(text, end, dialect, sniffed.schema.len());
    let names = names_of(&text[..text.len().min(HEAD_BYTES)], SampleEnd::Cut);
    for input in inputs.iter().filter(|input| input.name != first) {
        let (text, end) = sample(&input, None, HEAD_BYTES)?;
        if is_blank(&text) || has_names && names_of(&text, end) == names {
            continue;
        }
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (what, advice) = match found_names {
            true => (
                "names its columns",
                "--header if each input begins with names, --no-header if none does; if only the first does, load them \
                 as one: cat FILE... | coload load -",
            ),
            false => (
                "has lines before its table",
                "--skip N if each input has N such lines, --skip 0 if none has",
            ),
        };
        return Err(Error::Invalid(format!(
            "{first} {what}, and {} begins otherwise, with \"{}\": say how it is ({advice})",
            input.name,
            shorten(line.trim_ascii_end())
        )));
    }
    Ok(())
}
