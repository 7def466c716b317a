//! Files that `coload export` and COPY wrote: their quotes tell texts from other values, and names from rows.
//!
//! ```text
//!   id,"name"          id,"price"        note,"name"       "7",note
//!   1,"Ada"            1,9.50            "7","Ada"         1,"x"
//!   2,                 2,10.00           "x",              2,
//!   texts and others   no text           texts only        no plain name but that of a text
//! ```
//!
//! Texts are in quotes, NULL is nothing, all else is bare. A name is in quotes where its column is text; where that leaves
//! all names alike, the first that can be is bare. A bare name among quoted ones is what other programs do not write.
//! Where quotes cannot tell, all names are in quotes, and their line alone ends with CRLF; where there are no rows, an empty
//! line behind it does. Decision 0027.

use coload_ddl::Schema;
use coload_input::Encoding;
use coload_types::delimited::{bare_name, is_plain_name, tells_nothing};
use coload_types::parse_value::{is_double_as_written, parse_int, parse_value, parse_wide};
use coload_types::{Column, DataType, Result};

use super::{Sniffed, bom_len, given_types};
use crate::careful::{CarefulRecord, Reading, read_record};
use crate::dialect::{Dialect, GivenDialect, Header};
use crate::header::{check_header_order, unique_texts};
use crate::infer::{ColumnForms, given_columns, infer_columns};
use crate::sample::{Field, SampleEnd, Split, split_records};

/// Delimiters that are tried.
const DELIMITERS: [u8; 4] = *b",\t;|";

/// What the fields of a column have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fields {
    /// All fields of the column are NULL.
    None,
    Quoted,
    Bare,
    Mixed,
}

/// What tells the names from rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The names are told by their quotes.
    ByQuotes,
    /// The end of their line.
    ByLineEnd,
    /// The end of the empty line behind them: there are no rows.
    WithoutRows,
}

/// What the quotes of the names say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heads {
    /// All are in quotes.
    Quoted,
    /// All but the one that is bare then.
    AllButOne(usize),
    /// Several are bare, and at least one is in quotes.
    Some,
}

/// Whether an input may be what Coload wrote, as far as its bytes and first records tell. Coload writes UTF-8, so that nothing else
/// of the bytes is looked at then: control characters in texts are texts.
pub(super) fn looks_exported(sample: &[u8], end: SampleEnd, given: &GivenDialect) -> bool {
    let is_utf8 = given.encoding.is_none_or(|encoding| encoding == Encoding::Utf8);
    let text = &sample[bom_len(sample)..];
    // Coload begins with a quote or a letter.
    let is_start = |byte: &u8| *byte == b'"' || byte.is_ascii_alphabetic() || !byte.is_ascii();
    let may_be = |delimiter: &u8| {
        may_be_exported(text, end, Split { delimiter: *delimiter, ..Split::CSV }).is_some()
    };
    is_utf8
        && text.first().is_some_and(is_start)
        && leaves_all_open(given)
        && DELIMITERS.iter().any(may_be)
        && is_valid(text, end)
}

/// Whether a text is UTF-8 up to a character that the end of the sample cuts.
fn is_valid(text: &[u8], end: SampleEnd) -> bool {
    match std::str::from_utf8(text) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && end == SampleEnd::Cut,
    }
}

/// Dialect and columns of a text that Coload wrote; `None` of any other.
///
/// # Errors
/// `Invalid` when `--types` names a column that there is not, or the names are those of `schema` in another order.
pub(super) fn sniff_exported(
    name: &str,
    text: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Option<Sniffed>> {
    if !leaves_all_open(given) {
        return Ok(None);
    }
    for delimiter in DELIMITERS {
        let split = Split { delimiter, ..Split::CSV };
        let Some(told) = may_be_exported(text, end, split) else { continue };
        let records = split_records(text, end, split, usize::MAX);
        let Some((names, rows)) = records.records.split_first() else { continue };
        let texts = text_columns(names, rows, told).filter(|_| records.faults == 0);
        let Some(texts) = texts else { continue };
        let dialect = Dialect {
            delimiter,
            header: Header::Present,
            footer: u64::from(told == Told::WithoutRows),
            types: given.types.unwrap_or_default(),
            nulls_are: given.nulls_are,
            ..Dialect::default()
        };
        dialect.check()?;
        let evidence = vec![
            "as Coload exports: what is in quotes is text (--delimiter or --header: look closer)"
                .to_owned(),
        ];
        let (schema, forms) = match schema {
            Some(schema) => {
                check_header_order(name, names, schema)?;
                (schema.clone(), Vec::new())
            }
            None => columns_of(names, rows, &texts, &dialect, given, end)?,
        };
        let dialect = Dialect { typed: given_columns(&forms), ..dialect };
        return Ok(Some(Sniffed { dialect, schema, forms, evidence }));
    }
    Ok(None)
}

/// Whether nothing is given of how the text is written.
pub(super) fn leaves_all_open(given: &GivenDialect) -> bool {
    let rest = GivenDialect {
        types: None,
        columns: Vec::new(),
        columns_are_given: false,
        encoding: None,
        footer: given.footer.filter(|footer| *footer > 0),
        comment: given.comment.filter(Option::is_some),
        ..given.clone()
    };
    rest == GivenDialect::default()
}

/// What may tell the names, by the first two records: most other texts are told by them.
fn may_be_exported(text: &[u8], end: SampleEnd, split: Split) -> Option<Told> {
    let head = split_records(text, end, split, 2);
    let (names, row) = (head.records.first()?, head.records.get(1));
    if names.iter().all(|name| name.quoted) && head.faults == 0 {
        let marked = told_by_line_end(text, end, split);
        if marked.is_some() {
            return marked;
        }
    }
    let are_plain = names.iter().all(|name| name.quoted || is_plain_name(&name.text));
    let may_be = match (heads(names)?, row) {
        (Heads::Quoted, None) => false,
        (Heads::Some | Heads::AllButOne(_), None) => are_plain && names.len() > 1,
        (Heads::AllButOne(_), Some(row)) => row.len() == names.len(),
        (_, Some(row)) => are_plain && row.len() == names.len(),
    };
    may_be.then_some(Told::ByQuotes)
}

/// Whether the first line ends with CRLF, and the next does not; or it does not, and all that follows is one CRLF.
fn told_by_line_end(text: &[u8], end: SampleEnd, split: Split) -> Option<Told> {
    let rules = Dialect { delimiter: split.delimiter, ..Dialect::default() }.record_rules(0);
    let mut record = CarefulRecord::default();
    let whole = end == SampleEnd::Whole;
    let mut next = |at: usize| {
        let read = read_record(text, at, whole, &rules, &mut record) == Reading::Whole;
        (read && !record.is_faulty()).then(|| (record.next, text[record.end..record.next].to_vec()))
    };
    let (first, first_end) = next(0)?;
    match (&*first_end, &text[first..]) {
        (b"\n", b"\r\n") if whole => Some(Told::WithoutRows),
        (b"\r\n", []) => None,
        (b"\r\n", _) => match next(first) {
            Some((_, second_end)) => (second_end == b"\n").then_some(Told::ByLineEnd),
            // The first row is longer than the sample.
            None => (!whole).then_some(Told::ByLineEnd),
        },
        _ => None,
    }
}

/// What the quotes of the names say; `None` when nothing.
fn heads(names: &[Field<'_>]) -> Option<Heads> {
    let bare = names.iter().filter(|name| !name.quoted).count();
    let one = bare_name(names.iter().map(|name| &*name.text));
    match bare {
        0 => Some(Heads::Quoted),
        1 if one.is_some_and(|at| !names[at].quoted) => one.map(Heads::AllButOne),
        _ if bare < names.len() => Some(Heads::Some),
        _ => None,
    }
}

/// For each column whether it is text; `None` when the text is not as Coload writes it.
fn text_columns(names: &[Field<'_>], rows: &[Vec<Field<'_>>], told: Told) -> Option<Vec<bool>> {
    if rows.iter().any(|row| row.len() != names.len()) {
        return None;
    }
    let fields: Vec<Fields> = (0..names.len()).map(|column| fields_of(rows, column)).collect();
    let texts = match told {
        Told::ByQuotes => told_by_quotes(names, rows, &fields)?,
        Told::ByLineEnd | Told::WithoutRows => {
            let is_text = |fields: &Fields| match fields {
                Fields::Mixed => None,
                Fields::None | Fields::Quoted => Some(true),
                Fields::Bare => Some(false),
            };
            fields.iter().map(is_text).collect::<Option<Vec<bool>>>()?
        }
    };
    are_typed(rows, &texts).then_some(texts)
}

/// For each column whether it is text, where quotes tell names from rows. A column without values in the sample is text, unless
/// its name is bare where that says that it is not: what comes later may be in quotes.
fn told_by_quotes(
    names: &[Field<'_>],
    rows: &[Vec<Field<'_>>],
    fields: &[Fields],
) -> Option<Vec<bool>> {
    let all = |wanted: &[Fields]| fields.iter().all(|fields| wanted.contains(fields));
    let needless = |field: &Field<'_>| field.quoted && !tells_nothing(&field.text);
    if !names.iter().chain(rows.iter().flatten()).any(needless) {
        return None;
    }
    let heads = heads(names)?;
    let is_text = |(at, (name, fields)): (usize, (&Field<'_>, &Fields))| match fields {
        Fields::Mixed => None,
        Fields::None => Some(name.quoted || heads == Heads::AllButOne(at)),
        Fields::Quoted => (name.quoted || heads == Heads::AllButOne(at)).then_some(true),
        Fields::Bare => (!name.quoted || !is_plain_name(&name.text)).then_some(false),
    };
    match heads {
        Heads::Quoted | Heads::AllButOne(_) if all(&[Fields::Bare, Fields::None]) => {
            let says = if heads == Heads::Quoted { !rows.is_empty() } else { names.len() > 1 };
            says.then(|| fields.iter().map(|fields| *fields == Fields::None).collect())
        }
        Heads::Quoted => None,
        Heads::AllButOne(_) | Heads::Some => {
            names.iter().zip(fields).enumerate().map(is_text).collect()
        }
    }
}

fn fields_of(rows: &[Vec<Field<'_>>], column: usize) -> Fields {
    let values = rows.iter().map(|row| &row[column]);
    let mut values = values.filter(|field| field.quoted || !field.text.is_empty());
    let Some(first) = values.next() else { return Fields::None };
    match (values.all(|field| field.quoted == first.quoted), first.quoted) {
        (false, _) => Fields::Mixed,
        (true, true) => Fields::Quoted,
        (true, false) => Fields::Bare,
    }
}

/// Whether the columns that are no text hold values of other types: a first row of bare and quoted words looks like names.
fn are_typed(rows: &[Vec<Field<'_>>], texts: &[bool]) -> bool {
    let dialect = Dialect::default();
    let forms = infer_columns(rows, texts.len(), &dialect.field_rules());
    let is_typed = |(column, forms): (usize, &ColumnForms)| {
        texts[column]
            || forms.data_type(SampleEnd::Whole) != DataType::Varchar(None)
            || rows.iter().all(|row| is_word_of_type(&row[column].text))
    };
    forms.iter().enumerate().all(is_typed)
}

/// Whether a value of a type that is not inferred is written so, or NULL.
fn is_word_of_type(text: &[u8]) -> bool {
    text.is_empty() || TOLD_TYPES.iter().any(|data_type| is_value(text, *data_type))
}

/// Types of bare values that are not inferred, as other programs write texts so.
const TOLD_TYPES: [DataType; 3] = [DataType::Double, DataType::Uuid, DataType::Binary(None)];

/// Whether a text is a value of one of these types as it is written.
fn is_value(text: &[u8], data_type: DataType) -> bool {
    match data_type {
        DataType::Uuid => text.len() == 36 && parse_wide(text, data_type).is_ok(),
        DataType::Binary(_) => text.starts_with(b"\\x") && parse_value(text, data_type).is_ok(),
        _ => parse_int(text, data_type).is_ok_and(|value| is_double_as_written(text, value)),
    }
}

/// The type that all bare values of a column have, if it is one of those that are not inferred.
fn told_type(rows: &[Vec<Field<'_>>], column: usize) -> Option<DataType> {
    let values = || rows.iter().map(|row| &row[column].text).filter(|text| !text.is_empty());
    let is_of = |data_type: &&DataType| values().all(|text| is_value(text, **data_type));
    values().next().and_then(|_| TOLD_TYPES.iter().find(is_of)).copied()
}

fn columns_of(
    names: &[Field<'_>],
    rows: &[Vec<Field<'_>>],
    texts: &[bool],
    dialect: &Dialect,
    given: &GivenDialect,
    end: SampleEnd,
) -> Result<(Schema, Vec<ColumnForms>)> {
    let names = names.iter().map(|name| String::from_utf8_lossy(&name.text).into_owned());
    let names = unique_texts(names);
    let mut forms = infer_columns(rows, names.len(), &dialect.field_rules());
    let typed = given_types(&names, &given.columns)?;
    let mut columns = Vec::with_capacity(names.len());
    let each = names.into_iter().zip(&mut forms).zip(typed).zip(texts).enumerate();
    for (at, (((name, forms), typed), is_text)) in each {
        if let Some(column) = &typed {
            forms.give(column.data_type);
        } else if *is_text {
            forms.make_text();
        } else if forms.data_type(end) == DataType::Varchar(None)
            && let Some(data_type) = told_type(rows, at)
        {
            forms.give(data_type);
        }
        columns.push(typed.unwrap_or_else(|| Column::new(name, forms.data_type(end))));
    }
    Ok((Schema::new(columns)?, forms))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quotes_tell_texts_and_names() {
        for (text, expected) in [
            ("id,\"name\"\n1,\"Ada\"\n2,\n", Some("id BIGINT, \"name\" VARCHAR")),
            ("id,\"zip\"\n1,\"1.50\"\n2,\"2.5\"\n", Some("id BIGINT, zip VARCHAR")),
            ("\"a\",\"price\"\n1,9.50\n,10.00\n", Some("a BIGINT, price DECIMAL(18,2)")),
            ("\"2\",\" x\"\n1,9.50\n", Some("\"2\" BIGINT, \" x\" DECIMAL(18,2)")),
            ("note,\"n\"\n\"7\",\"true\"\n\"x\",\n", Some("note VARCHAR, n VARCHAR")),
            ("note\n\"7\"\n\"-\"\n", Some("note VARCHAR")),
            ("id\t\"name\"\n", Some("id VARCHAR, name VARCHAR")),
            ("a,\"price\"\n1,9.50\n,10.00\n", Some("a BIGINT, price DECIMAL(18,2)")),
            ("a,b,\"note\"\n1,2,\n", Some("a BIGINT, b BIGINT, note VARCHAR")),
            ("a,\"price\"\n,\n", Some("a VARCHAR, price VARCHAR")),
            ("\"7\",note\n1,\"2\"\n", Some("\"7\" BIGINT, note VARCHAR")),
            ("\"7\",größe\n1,\"2\"\n", Some("\"7\" BIGINT, größe VARCHAR")),
            ("größe,\"x y\"\n1,\"2\"\n", Some("größe BIGINT, x y VARCHAR")),
            ("x y,\"größe\"\n\"1\",\"2\"\n", Some("x y VARCHAR, größe VARCHAR")),
            // The end of a line tells.
            ("\"a,b\"\r\n\"7\"\n", Some("a,b VARCHAR")),
            ("\"a,b\"\r\n\n7\n", Some("a,b BIGINT")),
            ("\"1\",\"2\"\r\n\"7\",1e16\n,NaN\n", Some("1 VARCHAR, 2 DOUBLE")),
            ("\"1\"\t\"2\"\r\n\t\n", Some("1 VARCHAR, 2 VARCHAR")),
            ("\"a,b\"\n\r\n", Some("a,b VARCHAR")),
            ("\"a\",\"b\"\r\n\"1\",\"2\"\r\n", None),
            ("\"a\"\r\n", None),
            ("\"a\"\r\n\r\n", None),
            ("\"a\"\n\n", None),
            ("\"a\",\"b\"\r\nx,\"2\"\n", None),
            // What other programs write.
            ("\"a\",\"b\"\n\"1\",\"2\"\n", None),
            ("\"a\",\"b\"\n\"x\",2\n", None),
            ("a,b\n\"x\",2\n", None),
            ("id,\"name\"\nx,Ada\n", None),
            ("\"a\",\"b\"\n1,x\n", None),
            ("Ann,\"x\"\nBob,\"y\"\n", None),
            ("Ann Lee,\"x\"\nBob,\"y\"\n", None),
            ("größe,\"x\"\n", None),
            ("5,\"x\"\n6,\"y\"\n", None),
            ("\"x y\",\"2\"\n1,\"2\"\n", None),
        ] {
            let given = GivenDialect::default();
            let found =
                sniff_exported("f", text.as_bytes(), SampleEnd::Whole, &given, None).unwrap();
            let columns = found.map(|found| {
                let columns = found.schema.columns().iter().map(coload_ddl::column_sql);
                columns.collect::<Vec<_>>().join(", ")
            });
            let plain = |columns: &str| columns.replace('"', "");
            assert_eq!(columns.as_deref().map(plain), expected.map(plain), "{text}");
        }
    }
}
