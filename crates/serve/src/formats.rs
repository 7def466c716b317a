//! Formats of dates and times, which are those of strftime, or of PostgreSQL where these mean one thing.
//!
//! `to_char(d, 'YYYY-MM-DD')` is a text without a single field for the engine, which answers `YYYY-MM-DD` for each row: it
//! becomes `%Y-%m-%d`. Another format with letters and without a field is an error that says what to write instead.

use std::sync::Arc;

use coload_types::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

use crate::error::to_datafusion;

/// Functions whose arguments behind the first are formats.
const FORMATTED: [&str; 9] = [
    "to_char",
    "to_date",
    "to_time",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
    "to_unixtime",
];

/// What the engine says of a field that it does not know.
const UNKNOWN_FIELD: &str = "Format error";

/// What others write for a field, and the field; the longest of those that begin alike first.
const OTHERS: [(&str, &str); 20] = [
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("month", "%B"),
    ("mon", "%b"),
    (":mm", ":%M"),
    ("mm", "%m"),
    ("mi", "%M"),
    ("ms", "%3f"),
    ("us", "%6f"),
    ("ddd", "%j"),
    ("dd", "%d"),
    ("day", "%A"),
    ("dy", "%a"),
    ("hh24", "%H"),
    ("hh12", "%I"),
    ("hh", "%H"),
    ("ss", "%S"),
    ("am", "%p"),
    ("pm", "%p"),
    ("iw", "%V"),
];

/// Fields of PostgreSQL whose text is that of a field of strftime, in any case; the longest of those that begin alike first.
/// Without HH, which is 12 hours there and 24 elsewhere, and without names that are padded with blanks.
const POSTGRES: [(&str, &str); 14] = [
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("mm", "%m"),
    ("mi", "%M"),
    ("ms", "%3f"),
    ("us", "%6f"),
    ("ddd", "%j"),
    ("dd", "%d"),
    ("hh24", "%H"),
    ("hh12", "%I"),
    ("ss", "%S"),
    ("am", "%p"),
    ("pm", "%p"),
    ("iw", "%V"),
];

/// Fields whose text has the case in which they are written.
const POSTGRES_CASED: [(&str, &str); 4] =
    [("FMMonth", "%B"), ("FMDay", "%A"), ("Mon", "%b"), ("Dy", "%a")];

/// The format of strftime that means what one of PostgreSQL does; `None` where that is in doubt.
fn of_postgres(format: &str) -> Option<String> {
    let lower = format.to_ascii_lowercase();
    // Minutes in Java, months in PostgreSQL.
    if format.contains('%') || lower.contains(":mm") || lower.contains("mm:") {
        return None;
    }
    let (mut out, mut at, mut fields) = (String::new(), 0, 0);
    while let Some(next) = format[at..].chars().next() {
        let cased = POSTGRES_CASED.iter().find(|(theirs, _)| format[at..].starts_with(theirs));
        let found =
            cased.or_else(|| POSTGRES.iter().find(|(field, _)| lower[at..].starts_with(field)));
        match found {
            Some((theirs, ours)) => {
                let is_small = *ours == "%p" && format[at..].starts_with(char::is_lowercase);
                out.push_str(if is_small { "%P" } else { ours });
                at += theirs.len();
                fields += 1;
            }
            None if next.is_ascii_alphabetic() && next != 'T' => return None,
            None => {
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    (fields > 0).then_some(out)
}

/// A function that looks at its formats, where it has some; else the function itself.
pub(crate) fn with_checked_formats(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match FORMATTED.contains(&function.name()) {
        true => Arc::new(ScalarUDF::from(Formatted { inner: function })),
        false => function,
    }
}

/// A format of strftime in the place of one of others; `None` when it is told from text by nothing.
fn in_strftime(format: &str) -> Option<String> {
    let lower = format.to_ascii_lowercase();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(next) = format[at..].chars().next() {
        let found = OTHERS.iter().find(|(theirs, _)| lower[at..].starts_with(theirs));
        match found {
            Some((theirs, ours)) => {
                out.push_str(ours);
                at += theirs.len();
            }
            // What is left would be text of its own.
            None if next.is_ascii_alphabetic() && next != 'T' && next != 'Z' => return None,
            None => {
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    let is_half_day = out.contains("%p");
    Some(if is_half_day { out.replace("%H", "%I") } else { out })
}

/// Looks at one format.
fn check(function: &str, format: &str) -> Result<()> {
    let has_fields = format.contains('%');
    let has_words = match has_fields {
        true => format.to_ascii_lowercase().contains("yyyy"),
        false => format.contains(|c: char| c.is_ascii_alphabetic()),
    };
    if !has_words {
        return Ok(());
    }
    let instead = in_strftime(format).filter(|_| !has_fields);
    let instead = instead.unwrap_or_else(|| "%Y-%m-%d %H:%M:%S".to_owned());
    Err(to_datafusion(Error::Invalid(format!(
        "{function} takes a format of strftime, which '{format}' is not: write such as '{instead}'"
    ))))
}

fn check_all(function: &str, formats: &ColumnarValue) -> Result<()> {
    match formats {
        ColumnarValue::Scalar(value) => match value.try_as_str().flatten() {
            Some(format) => check(function, format),
            None => Ok(()),
        },
        ColumnarValue::Array(array) => {
            let texts: ArrayRef = match array.data_type() {
                DataType::Utf8View => Arc::clone(array),
                DataType::Utf8 | DataType::LargeUtf8 => cast(array, &DataType::Utf8View)?,
                _ => return Ok(()),
            };
            texts.as_string_view().iter().flatten().try_for_each(|format| check(function, format))
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Formatted {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Formatted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::from(Formatted { inner }))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for format in args.args.iter_mut().skip(1) {
            let ColumnarValue::Scalar(value) = format else { continue };
            if let Some(ours) = value.try_as_str().flatten().and_then(of_postgres) {
                *value = match value.data_type() {
                    DataType::Utf8View => ScalarValue::Utf8View(Some(ours)),
                    DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(ours)),
                    _ => ScalarValue::Utf8(Some(ours)),
                };
            }
        }
        let formats = args.args.iter().skip(1);
        formats.into_iter().try_for_each(|formats| check_all(self.name(), formats))?;
        self.inner.invoke_with_args(args).map_err(|error| {
            match error.to_string().contains(UNKNOWN_FIELD) {
                true => to_datafusion(Error::Invalid(format!(
                    "{} takes a format of strftime, and a field of this one is unknown",
                    self.name()
                ))),
                false => error,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_others_are_told_as_those_of_strftime() {
        for (theirs, ours) in [
            ("YYYY-MM-DD", "%Y-%m-%d"),
            ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
            ("DD Mon YYYY, HH12:MI:SS AM", "%d %b %Y, %I:%M:%S %p"),
            ("YYYY-MM-DDTHH24:MI:SS.US", "%Y-%m-%dT%H:%M:%S.%6f"),
            ("HH:MI PM", "%I:%M %p"),
            ("YYYYé", "%Yé"),
        ] {
            assert_eq!(in_strftime(theirs).as_deref(), Some(ours));
            let text = check("to_char", theirs).expect_err(theirs).to_string();
            assert!(text.contains(&format!("'{ours}'")), "{text}");
        }
        assert_eq!(in_strftime("hello"), None);
    }

    #[test]
    fn formats_of_postgres_are_taken_where_they_mean_one_thing() {
        for (theirs, ours) in [
            ("YYYY-MM-DD", Some("%Y-%m-%d")),
            ("yyyymmdd", Some("%Y%m%d")),
            ("DD Mon YYYY, HH12:MI:SS AM", Some("%d %b %Y, %I:%M:%S %p")),
            ("YYYY-MM-DDTHH24:MI:SS.US", Some("%Y-%m-%dT%H:%M:%S.%6f")),
            ("FMMonth", Some("%B")),
            ("yyyy-MM-dd HH:mm:ss", None),
            ("HH:MI PM", None),
            ("Month", None),
            ("MON", None),
            ("hello", None),
            ("-", None),
            ("%Y", None),
        ] {
            assert_eq!(of_postgres(theirs).as_deref(), ours, "{theirs}");
        }
    }

    #[test]
    fn formats_of_strftime_may_have_words() {
        for format in ["%Y", "the year %Y", "", "-", "%d.%m.", "2024"] {
            assert!(check("to_char", format).is_ok(), "{format}");
        }
        for format in ["hello", "%d YYYY", "Y"] {
            assert!(check("to_char", format).is_err(), "{format}");
        }
    }
}
