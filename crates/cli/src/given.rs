//! What flags say of how a text is written, and the flags that say it.

use coload::{Dialect, GivenDialect, GivenPolicies, Header, InvalidBytes, LineEnd, Quotes, Ragged};
use coload_source::{
    Escapes, InputFormat, JsonRules, LongDelimiter, NullsAre, UnknownKeys, describe_byte,
};

use crate::args::{
    BytesPolicy, Delimiter, DialectArgs, Encoding, EscapesForm, FormatName, KeysPolicy,
    LineEndForm, QuotesPolicy, RaggedPolicy,
};
use crate::json_mapping::path_text;
use crate::output::{Done, Failure};

/// The parts of a dialect that flags give.
pub fn given_dialect(args: &DialectArgs) -> GivenDialect {
    let header = match (args.header, args.no_header, args.header_rows) {
        (_, true, _) | (_, _, Some(0)) => Some(Header::Absent),
        (true, ..) | (_, _, Some(_)) => Some(Header::Present),
        _ => None,
    };
    GivenDialect {
        delimiter: args.delimiter.as_ref().and_then(|d| d.bytes()).map(<[u8]>::to_vec),
        aligned: args.delimiter.as_ref().and_then(Delimiter::aligned),
        fixed: args.fixed_width,
        quote: args.quote.map(|q| q.0),
        escape: args.escape.map(|e| e.0),
        escapes: args.escapes.map(escapes),
        header,
        nulls: (!args.null.is_empty()).then(|| nulls(args)),
        typed_nulls: (!args.typed_null.is_empty()).then(|| typed_nulls(args)),
        skip: args.skip,
        comment: args.comment.map(|c| c.0),
        trailing: None,
        line_end: args.line_end.map(|form| match form {
            LineEndForm::Lf => LineEnd::Newline,
            LineEndForm::Any => LineEnd::Any,
            LineEndForm::Returns => LineEnd::Returns,
        }),
        header_rows: args.header_rows.filter(|rows| *rows > 0),
        footer: args.footer,
        // Known where the table is.
        columns_are_given: false,
        policies: GivenPolicies {
            ragged: args.ragged.map(|policy| match policy {
                RaggedPolicy::Reject => Ragged::Reject,
                RaggedPolicy::Pad => Ragged::Pad,
                RaggedPolicy::Truncate => Ragged::Truncate,
            }),
            quotes: args.quotes.map(|policy| match policy {
                QuotesPolicy::Strict => Quotes::Strict,
                QuotesPolicy::Lenient => Quotes::Lenient,
            }),
            invalid_bytes: args.invalid_bytes.map(|policy| match policy {
                BytesPolicy::Reject => InvalidBytes::Reject,
                BytesPolicy::Replace => InvalidBytes::Replace,
            }),
        },
        encoding: match args.encoding {
            Some(Encoding::Text(encoding)) => Some(encoding),
            Some(Encoding::Auto) | None => None,
        },
        all_text: args.all_text,
        decimal: args.decimal_separator,
        thousands: args.thousands_separator,
        date: args.date_format,
        timestamp: args.timestamp_format,
        types: args.type_order,
        columns: args.types.as_ref().map(|types| types.0.clone()).unwrap_or_default(),
        nulls_are: nulls_are(args),
        format: args.format.map(|format| match format {
            FormatName::Text => InputFormat::Text,
            FormatName::Json => InputFormat::Json,
            FormatName::JsonLines => InputFormat::JsonLines,
        }),
        unknown_keys: match args.unknown_keys {
            Some(KeysPolicy::Ignore) => UnknownKeys::Ignore,
            Some(KeysPolicy::Reject) | None => UnknownKeys::Reject,
        },
        unnest: args.unnest.as_ref().map(|path| path.0.clone()),
        mapping: args.mapping.as_ref().map(|given| given.mapping.clone()),
    }
}

fn escapes(form: EscapesForm) -> Escapes {
    match form {
        EscapesForm::Quoted => Escapes::Quoted,
        EscapesForm::Anywhere => Escapes::Anywhere,
        EscapesForm::Letters => Escapes::Letters,
    }
}

fn nulls_are(args: &DialectArgs) -> NullsAre {
    if args.quoted_null { NullsAre::AlsoQuoted } else { NullsAre::Unquoted }
}

fn nulls(args: &DialectArgs) -> Vec<Vec<u8>> {
    args.null.iter().map(|n| n.clone().into_bytes()).collect()
}

fn typed_nulls(args: &DialectArgs) -> Vec<Vec<u8>> {
    args.typed_null.iter().map(|n| n.trim().as_bytes().to_vec()).collect()
}

/// Refuses flags that give a byte two meanings, before anything is opened.
pub fn check_given(args: &DialectArgs) -> Done {
    let delimiter = args.delimiter.as_ref().and_then(Delimiter::bytes);
    let dialect = given_dialect(args);
    let given = Dialect {
        // No text is cut at a byte that UTF-8 does not have, so it contradicts nothing.
        delimiter: delimiter.and_then(|d| d.first().copied()).unwrap_or(u8::MAX),
        long_delimiter: delimiter.and_then(LongDelimiter::new),
        quote: args.quote.and_then(|q| q.0),
        escape: dialect.own_escape().or(dialect.escape.flatten()),
        escapes: dialect.escapes.unwrap_or_default(),
        comment: args.comment.and_then(|c| c.0),
        nulls: nulls(args),
        ..Dialect::default()
    };
    given.check().map_err(Failure::Usage)
}

/// The flag that has no value.
const QUOTED_NULL: &str = "--quoted-null";

/// The flags that give this dialect, a pair each.
pub fn flags(dialect: &Dialect) -> Vec<(&'static str, String)> {
    if let Some(json) = &dialect.json {
        return json_flags(json, dialect);
    }
    let mut flags = match (&dialect.fixed, dialect.aligned) {
        (Some(fixed), _) => vec![("--fixed-width", fixed.to_string())],
        (None, Some(aligned)) => vec![
            ("--delimiter", aligned.to_string()),
            ("--quote", dialect.quote.map_or("none".to_owned(), byte_text)),
        ],
        (None, None) => vec![
            ("--delimiter", delimiter_text(dialect)),
            ("--quote", dialect.quote.map_or("none".to_owned(), byte_text)),
        ],
    };
    if let Some(escape) = dialect.escape.filter(|escape| Some(*escape) != dialect.quote) {
        flags.push(("--escape", byte_text(escape)));
    }
    match dialect.escapes {
        Escapes::Quoted => {}
        Escapes::Anywhere => flags.push(("--escapes", "anywhere".to_owned())),
        Escapes::Letters => flags.push(("--escapes", "letters".to_owned())),
    }
    let number = |flag, count: u64| (flag, count.to_string());
    flags.push(number("--header-rows", dialect.header_records()));
    for (flag, count) in [("--skip", dialect.skip), ("--footer", dialect.footer)] {
        flags.extend((count > 0).then(|| number(flag, count)));
    }
    if let Some(comment) = dialect.comment {
        flags.push(("--comment", byte_text(comment)));
    }
    let text = |text: &str| text.to_owned();
    if dialect.encoding.encoding != coload_input::Encoding::Utf8 {
        flags.push(("--encoding", dialect.encoding.encoding.to_string()));
    }
    match dialect.line_end {
        LineEnd::Newline => {}
        LineEnd::Any => flags.push(("--line-end", text("any"))),
        LineEnd::Returns => flags.push(("--line-end", text("returns"))),
    }
    for null in dialect.nulls.iter().filter(|_| dialect.nulls != Dialect::default().nulls) {
        flags.push(("--null", String::from_utf8_lossy(null).into_owned()));
    }
    for null in &dialect.typed_nulls {
        flags.push(("--typed-null", String::from_utf8_lossy(null).into_owned()));
    }
    if dialect.nulls_are == NullsAre::AlsoQuoted {
        flags.push((QUOTED_NULL, text("true")));
    }
    let formats = dialect.formats;
    if formats.decimal != b'.' {
        flags.push(("--decimal-separator", byte_text(formats.decimal)));
    }
    flags.extend(formats.thousands.map(|c| ("--thousands-separator", byte_text(c))));
    flags.extend(formats.date.map(|f| ("--date-format", text(f.text()))));
    flags.extend(formats.timestamp.map(|f| ("--timestamp-format", text(f.text()))));
    if !dialect.types.is_default() {
        flags.push(("--type-order", dialect.types.to_string()));
    }
    match dialect.policies.ragged {
        Ragged::Reject => {}
        Ragged::Pad => flags.push(("--ragged", text("pad"))),
        Ragged::Truncate => flags.push(("--ragged", text("truncate"))),
    }
    if dialect.policies.quotes == Quotes::Lenient {
        flags.push(("--quotes", text("lenient")));
    }
    if dialect.policies.invalid_bytes == InvalidBytes::Replace {
        flags.push(("--invalid-bytes", text("replace")));
    }
    flags
}

/// The flags that give what was found out of a sheet: how its text is written is no matter of the user's.
pub fn sheet_flags(dialect: &Dialect) -> Vec<(&'static str, String)> {
    let are_errors = dialect
        .typed_nulls
        .iter()
        .map(Vec::as_slice)
        .eq(coload_input::CELL_ERRORS.map(str::as_bytes));
    let is_of_sheet = |flag: &str| match flag {
        "--header-rows" | "--skip" | "--footer" | "--null" | QUOTED_NULL | "--date-format"
        | "--timestamp-format" | "--type-order" | "--invalid-bytes" => true,
        "--typed-null" => !are_errors,
        _ => false,
    };
    flags(dialect).into_iter().filter(|(flag, _)| is_of_sheet(flag)).collect()
}

/// The flags that give a dialect of JSON.
fn json_flags(json: &JsonRules, dialect: &Dialect) -> Vec<(&'static str, String)> {
    let mut flags = vec![("--format", json.form.to_string())];
    flags.extend(json.unnest.iter().map(|list| ("--unnest", path_text(list))));
    if json.unknown == UnknownKeys::Ignore {
        flags.push(("--unknown-keys", "ignore".to_owned()));
    }
    if dialect.encoding.encoding != coload_input::Encoding::Utf8 {
        flags.push(("--encoding", dialect.encoding.encoding.to_string()));
    }
    let formats = dialect.formats;
    flags.extend(formats.date.map(|f| ("--date-format", f.text().to_owned())));
    flags.extend(formats.timestamp.map(|f| ("--timestamp-format", f.text().to_owned())));
    if !dialect.types.is_default() {
        flags.push(("--type-order", dialect.types.to_string()));
    }
    flags
}

/// The flags as a shell takes them.
pub fn command_line(flags: &[(&'static str, String)]) -> String {
    let flag = |(flag, value): &(&str, String)| match *flag {
        QUOTED_NULL => (*flag).to_owned(),
        flag => format!("{flag}={}", shell_word(value)),
    };
    flags.iter().map(flag).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn delimiter_text(dialect: &Dialect) -> String {
    match &dialect.long_delimiter {
        Some(long) => String::from_utf8_lossy(long.bytes()).into_owned(),
        None => byte_text(dialect.delimiter),
    }
}

/// A byte as a flag takes it.
fn byte_text(byte: u8) -> String {
    match byte {
        b'!'..=b'~' => char::from(byte).to_string(),
        _ => describe_byte(byte),
    }
}
