//! Inputs of JSON: their keys are looked for in several of them, as one does not have those of all.

use coload_ddl::Schema;
use coload_source::{
    Between, Dialect, Encoding, GivenDialect, Inputs, Item, JsonForm, NullsAre, SampleEnd, Sniffed,
    Splitter, bom_len, of_input, sniff_json,
};
use coload_types::{Error, Result};

use crate::plan::sample;

/// Inputs that are looked at beside the first, spread over all.
const SAMPLED_MAX: usize = 1000;
/// Bytes of each that are looked at, if there are several.
const HEAD_BYTES: usize = 64 << 10;

/// Looks at some inputs together; `sniffed` is what the first one tells.
///
/// # Errors
/// As [`sniff_json`], those of reading, and `Invalid` when flags say how delimited text is written.
pub fn sniff_several(
    inputs: &Inputs,
    (name, text, end): (&str, &[u8], SampleEnd),
    (given, bytes_max): (&GivenDialect, usize),
    schema: Option<&Schema>,
    sniffed: Sniffed,
) -> Result<Sniffed> {
    check_flags(name, given)?;
    if inputs.len() == 1 || sniffed.dialect.encoding.encoding != Encoding::Utf8 {
        return Ok(sniffed);
    }
    let mut texts = vec![(text.to_vec(), end)];
    let mut left = bytes_max;
    let step = inputs.len().div_ceil(SAMPLED_MAX).max(1);
    for number in (0..inputs.len()).step_by(step) {
        let input = inputs.at(number);
        if left == 0 {
            break;
        }
        if input.name == name {
            continue;
        }
        let (text, end) = sample(&input, None, HEAD_BYTES.min(left))?;
        left -= text.len().min(left);
        texts.push((text, end));
    }
    let samples: Vec<_> = texts.iter().map(|(text, end)| (&text[..], *end)).collect();
    let all = sniff_json(name, &samples, given, schema);
    let mut all = all.map_err(|error| of_input(name, error))?;
    all.dialect.encoding = sniffed.dialect.encoding;
    Ok(all)
}

/// Bytes of a record of the sample on average.
pub fn mean_record(text: &[u8], dialect: &Dialect) -> Option<usize> {
    let json = dialect.json.as_ref()?;
    let records = match json.form {
        JsonForm::Lines => text.iter().filter(|byte| **byte == b'\n').count(),
        JsonForm::Documents => {
            let (at, between) = (bom_len(text), Between::default());
            let mut records = Splitter { text, end: text.len(), is_last: false, at, between };
            let mut count = 0;
            while let Item::Record { .. } | Item::Bad { .. } = records.next_item() {
                count += 1;
            }
            count
        }
    };
    Some(text.len() / records.max(1))
}

/// Refuses flags of delimited text.
///
/// # Errors
/// `Invalid` that names the flag.
pub fn check_flags(name: &str, given: &GivenDialect) -> Result<()> {
    let policies = &given.policies;
    let flags = [
        ("--quote", given.quote.is_some()),
        ("--escape", given.escape.is_some()),
        ("--escapes", given.escapes.is_some()),
        ("--delimiter", given.delimiter.is_some() || given.aligned.is_some()),
        ("--fixed-width", given.fixed.is_some()),
        ("--header-rows", given.header_rows.is_some()),
        ("--header and --no-header", given.header.is_some()),
        ("--null", given.nulls.is_some()),
        ("--quoted-null", given.nulls_are != NullsAre::Unquoted),
        ("--typed-null", given.typed_nulls.is_some()),
        ("--decimal-separator", given.decimal.is_some()),
        ("--thousands-separator", given.thousands.is_some()),
        ("--skip", given.skip.is_some()),
        // Of several inputs no footer is looked for.
        ("--footer", given.footer.is_some_and(|lines| lines > 0)),
        ("--line-end", given.line_end.is_some()),
        ("--ragged", policies.ragged.is_some()),
        ("--quotes", policies.quotes.is_some()),
        ("--invalid-bytes", policies.invalid_bytes.is_some()),
        ("--comment", given.comment.is_some_and(|comment| comment.is_some())),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Error::Invalid(format!(
            "{name} is JSON, and {flag} says how delimited text is written: leave it out, or give --format text"
        ))),
        None => Ok(()),
    }
}
