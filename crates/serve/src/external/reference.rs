//! How a statement names inputs.

use std::fmt;

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, Ident, ObjectName,
    ObjectNamePart, UnaryOperator, Value,
};

/// Inputs that a statement names, and how they are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalReference {
    /// What they are said to be.
    pub read_as: ReadAs,
    /// Files, patterns and addresses, as a load has them.
    pub inputs: Vec<String>,
    /// What is said of them, by names of flags.
    pub options: Vec<ExternalOption>,
}

/// What inputs are said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// It is found out.
    Any,
    /// Delimited text.
    Text,
    /// JSON.
    Json,
    /// JSON, a document a line.
    JsonLines,
    /// Parquet.
    Parquet,
    /// Arrow IPC.
    Arrow,
    /// Avro.
    Avro,
    /// A sheet of a book.
    Sheet,
}

/// Something that is said of inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalOption {
    /// Name, in lower case.
    pub name: String,
    /// Value.
    pub value: OptionValue,
}

/// What an option is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A text or a number, as it is written.
    Text(String),
    /// On or off.
    Switch(bool),
    /// Several texts.
    List(Vec<String>),
}

/// Functions that read inputs, and what they take them for.
const FUNCTIONS: [(&str, ReadAs); 12] = [
    ("read_file", ReadAs::Any),
    ("read_csv", ReadAs::Text),
    ("read_csv_auto", ReadAs::Text),
    ("read_json", ReadAs::Json),
    ("read_json_auto", ReadAs::Json),
    ("read_ndjson", ReadAs::JsonLines),
    ("read_ndjson_auto", ReadAs::JsonLines),
    ("read_parquet", ReadAs::Parquet),
    ("parquet_scan", ReadAs::Parquet),
    ("read_arrow", ReadAs::Arrow),
    ("read_avro", ReadAs::Avro),
    ("read_xlsx", ReadAs::Sheet),
];

/// Names of functions that read inputs.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().map(|(name, _)| name)
}

/// The inputs that the name of a relation is: a text in single quotes.
pub(crate) fn of_name(name: &ObjectName) -> Option<ExternalReference> {
    let [ObjectNamePart::Identifier(Ident { value, quote_style: Some('\''), .. })] = &name.0[..]
    else {
        return None;
    };
    let inputs = vec![value.clone()];
    Some(ExternalReference { read_as: ReadAs::Any, inputs, options: Vec::new() })
}

/// The inputs that a function in the place of a table names; `None` when it is another.
///
/// # Errors
/// `Invalid` when an argument is no literal.
pub(crate) fn of_function(called: &str, args: &[FunctionArg]) -> Result<Option<ExternalReference>> {
    let Some((_, read_as)) = FUNCTIONS.iter().find(|(name, _)| *name == called) else {
        return Ok(None);
    };
    let mut reference =
        ExternalReference { read_as: *read_as, inputs: Vec::new(), options: Vec::new() };
    for arg in args {
        match argument(arg) {
            Some(Argument::Inputs(inputs)) if reference.inputs.is_empty() => {
                reference.inputs = inputs
            }
            Some(Argument::Option(option)) => {
                if reference.options.iter().any(|known| known.name == option.name) {
                    return Err(Error::Invalid(format!(
                        "{called}: {} is given twice",
                        option.name
                    )));
                }
                reference.options.push(option);
            }
            _ => {
                return Err(Error::Invalid(format!(
                    "{called}: {arg} is no input and no option: write {called}('file', name => value), literals all; several \
                     inputs are ['a', 'b']"
                )));
            }
        }
    }
    if reference.inputs.is_empty() {
        return Err(Error::Invalid(format!("{called}: name a file, as in {called}('data/*.csv')")));
    }
    Ok(Some(reference))
}

enum Argument {
    Inputs(Vec<String>),
    Option(ExternalOption),
}

fn argument(arg: &FunctionArg) -> Option<Argument> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => match left.as_ref() {
            Expr::Identifier(name) => option(&name.value, right),
            _ => None,
        },
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => match value(expr)? {
            OptionValue::Text(input) if is_text(expr) => Some(Argument::Inputs(vec![input])),
            OptionValue::List(inputs) => Some(Argument::Inputs(inputs)),
            OptionValue::Text(_) | OptionValue::Switch(_) => None,
        },
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(expr),
            operator:
                FunctionArgOperator::RightArrow
                | FunctionArgOperator::Equals
                | FunctionArgOperator::Assignment,
        } => option(&name.value, expr),
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(expr),
            operator:
                FunctionArgOperator::RightArrow
                | FunctionArgOperator::Equals
                | FunctionArgOperator::Assignment,
        } => option(&name.value, expr),
        _ => None,
    }
}

fn option(name: &str, expr: &Expr) -> Option<Argument> {
    let option = ExternalOption { name: name.to_ascii_lowercase(), value: value(expr)? };
    Some(Argument::Option(option))
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

fn value(expr: &Expr) -> Option<OptionValue> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, false) => {
                Some(OptionValue::Text(text.clone()))
            }
            Value::Boolean(on) => Some(OptionValue::Switch(*on)),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match value(expr)? {
            OptionValue::Text(text) if !is_text(expr) => {
                Some(OptionValue::Text(format!("-{text}")))
            }
            _ => None,
        },
        Expr::Array(array) => {
            let text = |expr: &Expr| match value(expr) {
                Some(OptionValue::Text(text)) if is_text(expr) => Some(text),
                _ => None,
            };
            array.elem.iter().map(text).collect::<Option<Vec<_>>>().map(OptionValue::List)
        }
        _ => None,
    }
}

impl fmt::Display for ExternalReference {
    /// As a statement writes it; the name that the planner knows the table by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = match &self.inputs[..] {
            [one] => quoted(one),
            more => list(more),
        };
        let function = FUNCTIONS.iter().find(|(_, read_as)| *read_as == self.read_as);
        match function {
            Some((name, read_as)) if *read_as != ReadAs::Any || !self.options.is_empty() => {
                write!(f, "{name}({inputs}")?;
                for ExternalOption { name, value } in &self.options {
                    match value {
                        OptionValue::Text(text) => write!(f, ", {name} => {}", quoted(text))?,
                        OptionValue::Switch(on) => write!(f, ", {name} => {on}")?,
                        OptionValue::List(texts) => write!(f, ", {name} => {}", list(texts))?,
                    }
                }
                f.write_str(")")
            }
            _ => f.write_str(&inputs),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}
