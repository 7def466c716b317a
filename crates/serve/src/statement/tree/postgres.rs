//! What tools of PostgreSQL write around its catalogue, by what the engine has.
//!
//! ```text
//!   pg_catalog.version()               version()
//!   a OPERATOR(pg_catalog.~) b         a ~ b
//!   a COLLATE pg_catalog.default       a             texts are in the order of their bytes
//!   a = ANY (ARRAY['r', 'p'])          a IN ('r', 'p')
//!   'pg_class'::regclass               (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'pg_class')
//!   a::oid, a::name, a::"char"         CASTs to BIGINT, VARCHAR, VARCHAR
//! ```

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Subscript, Value,
    ValueWithSpan,
};

use super::refuse;
use super::spoken::expression;

/// The schema of the catalogue.
pub(crate) const PG_CATALOG: &str = "pg_catalog";

/// Functions of the catalogue: name, how many arguments, and what it stands for. The tables of the catalogue have only what
/// their reader may see.
pub(super) const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("col_description", 2, "CAST(NULL AS VARCHAR)"),
    ("current_catalog", 0, "'coload'"),
    ("current_database", 0, "'coload'"),
    ("current_schema", 0, "'public'"),
    (
        "format_type",
        2,
        "CASE $1 WHEN 16 THEN 'boolean' WHEN 17 THEN 'bytea' WHEN 20 THEN 'bigint' WHEN 21 THEN 'smallint' \
         WHEN 23 THEN 'integer' WHEN 25 THEN 'text' WHEN 700 THEN 'real' WHEN 701 THEN 'double precision' \
         WHEN 1042 THEN 'character(' || CAST($2 - 4 AS VARCHAR) || ')' \
         WHEN 1043 THEN CASE WHEN $2 >= 4 THEN 'character varying(' || CAST($2 - 4 AS VARCHAR) || ')' ELSE 'character varying' END \
         WHEN 1082 THEN 'date' WHEN 1083 THEN 'time without time zone' WHEN 1114 THEN 'timestamp without time zone' \
         WHEN 1184 THEN 'timestamp with time zone' WHEN 1186 THEN 'interval' \
         WHEN 1700 THEN CASE WHEN $2 >= 4 THEN 'numeric(' || CAST(($2 - 4) >> 16 AS VARCHAR) || ',' \
         || CAST(($2 - 4) & 65535 AS VARCHAR) || ')' ELSE 'numeric' END \
         WHEN 1000 THEN 'boolean[]' WHEN 1005 THEN 'smallint[]' WHEN 1007 THEN 'integer[]' WHEN 1009 THEN 'text[]' \
         WHEN 1016 THEN 'bigint[]' WHEN 1021 THEN 'real[]' WHEN 1022 THEN 'double precision[]' WHEN 1182 THEN 'date[]' \
         WHEN 1183 THEN 'time without time zone[]' WHEN 1115 THEN 'timestamp without time zone[]' \
         WHEN 1185 THEN 'timestamp with time zone[]' WHEN 1231 THEN 'numeric[]' ELSE '???' END",
    ),
    ("current_setting", 1, SETTINGS),
    ("current_setting", 2, SETTINGS),
    ("obj_description", 1, "CAST(NULL AS VARCHAR)"),
    ("obj_description", 2, "CAST(NULL AS VARCHAR)"),
    // Nobody holds a lock by a number of his own.
    ("pg_advisory_unlock_all", 0, "CAST(NULL AS VARCHAR)"),
    ("pg_encoding_to_char", 1, "'UTF8'"),
    ("pg_function_is_visible", 1, "TRUE"),
    ("pg_get_expr", 2, "CAST($1 AS VARCHAR)"),
    ("pg_get_expr", 3, "CAST($1 AS VARCHAR)"),
    ("pg_get_function_arguments", 1, "CAST(NULL AS VARCHAR)"),
    ("pg_get_function_result", 1, "CAST(NULL AS VARCHAR)"),
    ("pg_get_userbyid", 1, "'coload'"),
    ("pg_is_in_recovery", 0, "FALSE"),
    ("pg_table_is_visible", 1, "TRUE"),
    ("pg_type_is_visible", 1, "TRUE"),
    (
        "quote_ident",
        1,
        "CASE WHEN regexp_like($1, '^[a-z_][a-z0-9_$]*$') THEN $1 ELSE '\"' || replace($1, '\"', '\"\"') || '\"' END",
    ),
    ("shobj_description", 2, "CAST(NULL AS VARCHAR)"),
    ("to_regtype", 1, "(SELECT oid FROM pg_catalog.pg_type WHERE typname = $1)"),
    // Clients tell what they may send by the number; the rest says who answers.
    (
        "version",
        0,
        concat!("'PostgreSQL 15.0, as spoken by Coload ", env!("CARGO_PKG_VERSION"), "'"),
    ),
];

/// Those that tools ask for by a function.
const SETTINGS: &str = "CASE lower($1) WHEN 'server_version_num' THEN '150000' WHEN 'server_version' THEN '15.0' WHEN \
    'search_path' THEN '\"$user\", public' WHEN 'timezone' THEN 'UTC' WHEN 'client_encoding' THEN 'UTF8' WHEN \
    'server_encoding' THEN 'UTF8' WHEN 'standard_conforming_strings' THEN 'on' WHEN 'is_superuser' THEN 'off' WHEN \
    'transaction_read_only' THEN 'off' WHEN 'default_transaction_read_only' THEN 'off' WHEN 'max_index_keys' THEN '32' END";

/// Takes the name of the catalogue off a function.
pub(super) fn without_schema(function: &mut Function) {
    if let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(_)] =
        &function.name.0[..]
        && schema.value.eq_ignore_ascii_case(PG_CATALOG)
    {
        function.name.0.remove(0);
    }
}

/// Makes an expression one that the engine has, if it is one that tools write.
///
/// # Errors
/// When it is none that has a meaning here.
pub(super) fn meant(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { op: op @ BinaryOperator::PGCustomBinaryOperator(_), .. } => {
            if let BinaryOperator::PGCustomBinaryOperator(parts) = &op
                && let [schema, sign] = &parts[..]
                && schema.eq_ignore_ascii_case(PG_CATALOG)
                && let Some(plain) = operator(sign)
            {
                *op = plain;
            }
            Ok(())
        }
        Expr::Collate { expr: inner, collation } => {
            let last = collation.0.last().and_then(ObjectNamePart::as_ident);
            let is_bytes = last.is_some_and(|name| {
                matches!(&*name.value.to_lowercase(), "default" | "c" | "posix")
            });
            if !is_bytes {
                return refuse(
                    &format!("COLLATE {collation}"),
                    "texts are in the order of their bytes",
                );
            }
            *expr = std::mem::replace(inner, Expr::value(Value::Null));
            Ok(())
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            if let Some(schema) = searched_schema(root, access_chain) {
                *expr = Expr::value(Value::SingleQuotedString(schema.to_owned()));
            }
            Ok(())
        }
        Expr::AnyOp { compare_op: BinaryOperator::Eq, .. } => one_of(expr),
        Expr::AllOp { compare_op: BinaryOperator::NotEq, .. } => one_of(expr),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, .. } => cast(expr),
        _ => Ok(()),
    }
}

/// The schema in `(current_schemas(true))[1]`: those in which names are looked for, the catalogue first.
fn searched_schema(root: &Expr, access: &[AccessExpr]) -> Option<&'static str> {
    let mut inner = root;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let Expr::Function(function) = inner else { return None };
    let last = function.name.0.last().and_then(ObjectNamePart::as_ident)?;
    let [AccessExpr::Subscript(Subscript::Index { index })] = access else { return None };
    let is_called = last.value.eq_ignore_ascii_case("current_schemas");
    match (is_called, &*function.args.to_string().to_lowercase(), &*index.to_string()) {
        (true, "(true)", "1") => Some(PG_CATALOG),
        (true, "(true)", "2") | (true, "(false)", "1") => Some(crate::catalog::SCHEMA),
        _ => None,
    }
}

fn operator(sign: &str) -> Option<BinaryOperator> {
    Some(match sign {
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// `a = ANY (ARRAY[..])` and `a <> ALL (ARRAY[..])` as IN and NOT IN.
fn one_of(expr: &mut Expr) -> Result<()> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, right, .. } => (left, right, false),
        Expr::AllOp { left, right, .. } => (left, right, true),
        _ => return Ok(()),
    };
    let mut inner = &mut **right;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let Expr::Array(Array { elem, named: true }) = inner else { return Ok(()) };
    let list = std::mem::take(elem);
    if list.is_empty() {
        return Ok(());
    }
    let left = std::mem::replace(left, Box::new(Expr::value(Value::Null)));
    *expr = Expr::InList { expr: left, list, negated };
    Ok(())
}

/// Casts to types of the catalogue.
fn cast(expr: &mut Expr) -> Result<()> {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
    let name = match data_type {
        DataType::Custom(ObjectName(parts), arguments) if arguments.is_empty() => {
            match &parts[..] {
                [ObjectNamePart::Identifier(name)] => name,
                [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)]
                    if schema.value.eq_ignore_ascii_case(PG_CATALOG) =>
                {
                    name
                }
                _ => return Ok(()),
            }
        }
        DataType::Regclass => &Ident::new("regclass"),
        _ => return Ok(()),
    };
    match &*name.value.to_lowercase() {
        "oid" | "int8" => *data_type = DataType::BigInt(None),
        "int4" => *data_type = DataType::Integer(None),
        "int2" => *data_type = DataType::SmallInt(None),
        "bool" => *data_type = DataType::Boolean,
        "name" | "text" | "char" | "varchar" => *data_type = DataType::Varchar(None),
        "regclass" => {
            let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) =
                &**inner
            else {
                return refuse(
                    "a CAST to regclass of what is no text in quotes",
                    "join pg_catalog.pg_class",
                );
            };
            let table =
                text.rsplit('.').next().unwrap_or_default().trim_matches('"').replace('\'', "''");
            let found = expression(&format!(
                "(SELECT oid FROM pg_catalog.pg_class WHERE relname = '{table}')"
            ));
            if let Some(found) = found {
                *expr = found;
            }
        }
        // Of a number its name; of a text its number.
        "regtype" => {
            let is_text = matches!(
                &**inner,
                Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. })
            );
            let called = if is_text {
                expression("to_regtype(NULL)")
            } else {
                expression("format_type(NULL, -1)")
            };
            let Some(Expr::Function(mut call)) = called else { return Ok(()) };
            if let FunctionArguments::List(list) = &mut call.args
                && let Some(first) = list.args.first_mut()
            {
                let inner = std::mem::replace(&mut **inner, Expr::value(Value::Null));
                *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(inner));
            }
            *expr = Expr::Function(call);
        }
        _ => {}
    }
    Ok(())
}
