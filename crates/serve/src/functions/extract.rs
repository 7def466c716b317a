//! `regexp_extract(text, pattern[, group])`: the first match, or one of its groups; the empty text where there is none, as in
//! DuckDB.

use std::sync::Arc;

use coload_types::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use regex::{Regex, RegexBuilder};

use crate::error::to_datafusion;

/// Largest program that a pattern may become.
const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RegexpExtract {
    signature: Signature,
}

impl RegexpExtract {
    pub fn new() -> Self {
        let text = DataType::Utf8View;
        let without = TypeSignature::Exact(vec![text.clone(), text.clone()]);
        let with = TypeSignature::Exact(vec![text.clone(), text, DataType::Int64]);
        RegexpExtract { signature: Signature::one_of(vec![without, with], Volatility::Immutable) }
    }
}

fn compile(pattern: &str) -> Result<Regex> {
    let built = RegexBuilder::new(pattern).size_limit(PROGRAM_BYTES_MAX).build();
    built.map_err(|e| to_datafusion(Error::Invalid(format!("the pattern '{pattern}': {e}"))))
}

impl ScalarUDFImpl for RegexpExtract {
    fn name(&self) -> &str {
        "regexp_extract"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (texts, patterns) = (arrays[0].as_string_view(), arrays[1].as_string_view());
        let groups: ArrayRef = match arrays.get(2) {
            Some(groups) => Arc::clone(groups),
            None => Arc::new(Int64Array::from(vec![0; texts.len()])),
        };
        let groups = groups.as_primitive::<Int64Type>();
        let mut made = StringBuilder::new();
        let mut last: Option<(String, Regex)> = None;
        for row in 0..texts.len() {
            if texts.is_null(row) || patterns.is_null(row) || groups.is_null(row) {
                made.append_null();
                continue;
            }
            let pattern = patterns.value(row);
            if last.as_ref().is_none_or(|(compiled, _)| compiled != pattern) {
                last = Some((pattern.to_owned(), compile(pattern)?));
            }
            let Some((_, regex)) = &last else { continue };
            let group = usize::try_from(groups.value(row)).ok();
            let Some(group) = group.filter(|group| *group < regex.captures_len()) else {
                return Err(to_datafusion(Error::Invalid(format!(
                    "the pattern '{pattern}' has groups 0 to {}, and no group {}",
                    regex.captures_len() - 1,
                    groups.value(row)
                ))));
            };
            let found = regex.captures(texts.value(row)).and_then(|captures| captures.get(group));
            made.append_value(found.map_or("", |found| found.as_str()));
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}
