//! Column declarations of SQL as a table's schema.

use coload_ddl::{Check, Key, KeyKind, Schema, list_refused};
use coload_types::{Column, DataType, ElementType, Error, Result, Value, parse_value};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryLength, CharacterLength, ColumnDef, ColumnOption, CreateTable,
    DataType as SqlType, ExactNumberInfo, Expr, Ident, ObjectName, OrderByOptions,
    PrimaryKeyConstraint, Statement, TableConstraint, TimezoneInfo, UnaryOperator,
    Value as SqlValue, WrappedCollection,
};

use super::ddl::check_create;
use super::index;
use super::limits::StatementLimits;
use super::schemas::no_schema;
use super::text::parse_statement;
use crate::catalog::{CATALOG, SCHEMA, is_schema};
use crate::planning::on_large_stack;
use crate::types::check_name;

/// Reads a `CREATE TABLE name (columns)`: the table's name and its columns.
///
/// # Errors
/// `Invalid` when it is not one such statement, or a declaration is not supported.
pub fn parse_create_table(sql: &str) -> Result<(String, Schema)> {
    on_large_stack(|| {
        let limits = StatementLimits::default();
        let statement = parse_statement(sql, &limits).map_err(|e| match e {
            Error::Invalid(text) => Error::Invalid(format!("not a CREATE TABLE: {text}")),
            other => other,
        })?;
        match statement {
            Statement::CreateTable(mut table) if table.query.is_none() => {
                check_create(&mut table, &limits)?;
                Ok((table_name(&table.name)?, schema_of(&table)?))
            }
            _ => Err(Error::Invalid("not a single CREATE TABLE statement".into())),
        }
    })
}

/// Reads column declarations: `a BIGINT NOT NULL, b DECIMAL(15,2)`.
///
/// # Errors
/// As [`parse_create_table`].
pub fn parse_columns(declarations: &str) -> Result<Schema> {
    Ok(parse_create_table(&format!("CREATE TABLE t ({declarations}\n)"))?.1)
}

/// The name of a table, which may be qualified with `coload` and `public`.
pub(crate) fn table_name(name: &ObjectName) -> Result<String> {
    let parts = name
        .0
        .iter()
        .map(|part| part.as_ident().map(|i| i.value.as_str()))
        .collect::<Option<Vec<_>>>();
    match parts.as_deref() {
        Some([table]) => Ok((*table).to_owned()),
        Some([schema, table]) if is_schema(schema) => Ok((*table).to_owned()),
        Some([catalog, schema, table])
            if catalog.eq_ignore_ascii_case(CATALOG) && is_schema(schema) =>
        {
            Ok((*table).to_owned())
        }
        Some([schema, _]) => Err(no_schema(&name.to_string(), schema)),
        _ => Err(Error::Invalid(format!(
            "{name} does not name a table of the store (the only schema is {CATALOG}.{SCHEMA})"
        ))),
    }
}

/// The schema of a CREATE TABLE with columns.
pub(crate) fn schema_of(table: &CreateTable) -> Result<Schema> {
    let columns = table.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    let mut rules = Vec::new();
    for definition in &table.columns {
        for option in &definition.options {
            if let ColumnOption::Check(rule) = &option.option {
                rules.push((option.name.as_ref().or(rule.name.as_ref()), &*rule.expr));
            }
        }
    }
    for constraint in &table.constraints {
        match constraint {
            TableConstraint::Check(rule) => rules.push((rule.name.as_ref(), &*rule.expr)),
            TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_) => {}
            other => return Err(unchecked(&other.to_string(), &table.name.to_string())),
        }
    }
    let check = |(name, expr): (Option<&Ident>, &Expr)| {
        Check::parse(name.map(|name| name.value.clone()), &expr.to_string(), &columns)
    };
    let checks = rules.into_iter().map(check).collect::<Result<Vec<_>>>()?;
    let (key, indexes) = (key_of(table, &columns)?, index::of_table(table, &columns)?);
    Schema::new(columns)?.with_checks(checks)?.with_key(key)?.with_indexes(indexes)
}

/// The key of a CREATE TABLE, wherever it stands.
fn key_of(table: &CreateTable, columns: &[Column]) -> Result<Option<Key>> {
    let mut keys = Vec::new();
    for definition in &table.columns {
        for option in &definition.options {
            if let ColumnOption::PrimaryKey(constraint) = &option.option {
                check_named(option.name.as_ref())?;
                key_columns(constraint)?;
                keys.push((KeyKind::Primary, vec![definition.name.value.clone()]));
            }
        }
    }
    for constraint in &table.constraints {
        if let TableConstraint::PrimaryKey(constraint) = constraint {
            keys.push((KeyKind::Primary, key_columns(constraint)?));
        }
    }
    if let Some(WrappedCollection::NoWrapping(columns) | WrappedCollection::Parentheses(columns)) =
        &table.cluster_by
    {
        let mut names = Vec::new();
        columns.iter().try_for_each(|column| push_names(column, &mut names))?;
        keys.push((KeyKind::Cluster, names));
    }
    match &keys[..] {
        [] => Ok(None),
        [(kind, names)] => Key::of_names(*kind, names, columns).map(Some),
        [(first, _), (second, _), ..] => Err(Error::Invalid(format!(
            "a table has one key, which its rows are ordered by: {} beside {}",
            second.sql_name(),
            first.sql_name()
        ))),
    }
}

fn check_named(name: Option<&Ident>) -> Result<()> {
    match name {
        None => Ok(()),
        Some(name) => Err(Error::Invalid(format!(
            "CONSTRAINT {name} PRIMARY KEY: only a CHECK or UNIQUE may have a name, leave it out"
        ))),
    }
}

/// The columns of a PRIMARY KEY; none where it stands at its column.
fn key_columns(constraint: &PrimaryKeyConstraint) -> Result<Vec<String>> {
    let PrimaryKeyConstraint {
        name,
        index_name,
        index_type,
        columns,
        index_options,
        characteristics,
    } = constraint;
    check_named(name.as_ref())?;
    if index_name.is_some()
        || index_type.is_some()
        || !index_options.is_empty()
        || characteristics.is_some()
    {
        return Err(unchecked(&constraint.to_string(), "a table"));
    }
    let mut names = Vec::new();
    for column in columns {
        let OrderByOptions { asc, nulls_first } = &column.column.options;
        if column.operator_class.is_some()
            || *asc == Some(false)
            || nulls_first.is_some()
            || column.column.with_fill.is_some()
        {
            return Err(Error::Invalid(format!(
                "PRIMARY KEY ({column}): keys are in the order of their values, so name the column only"
            )));
        }
        push_names(&column.column.expr, &mut names)?;
    }
    Ok(names)
}

/// The names of columns in an expression that is a list of them.
fn push_names(expr: &Expr, names: &mut Vec<String>) -> Result<()> {
    match expr {
        Expr::Identifier(name) => names.push(name.value.clone()),
        Expr::Nested(inner) => push_names(inner, names)?,
        Expr::Tuple(inner) => inner.iter().try_for_each(|inner| push_names(inner, names))?,
        other => {
            return Err(Error::Invalid(format!("{other} in a key is not the name of a column")));
        }
    }
    Ok(())
}

fn unchecked(constraint: &str, on: &str) -> Error {
    Error::Invalid(format!(
        "{constraint} on {on} is not supported: nothing would check it, so leave it out"
    ))
}

pub(crate) fn column(definition: &ColumnDef) -> Result<Column> {
    let name = &definition.name.value;
    check_name(name)?;
    let mut column = Column::new(name, data_type(&definition.data_type, name)?);
    for option in &definition.options {
        match &option.option {
            ColumnOption::NotNull => column.nullable = false,
            ColumnOption::Null => column.nullable = true,
            // Checks and keys are read when all columns are known.
            ColumnOption::Comment(_)
            | ColumnOption::Check(_)
            | ColumnOption::PrimaryKey(_)
            | ColumnOption::Unique(_) => {}
            ColumnOption::Default(expr) => {
                column.default = default_value(expr, column.data_type, name)?;
            }
            other => return Err(unchecked(&other.to_string(), &format!("column {name}"))),
        }
    }
    Ok(column)
}

/// The type of a declaration.
fn data_type(sql: &SqlType, column: &str) -> Result<DataType> {
    use SqlType as S;
    let no_length = |length: &Option<u64>| length.is_none();
    Ok(match sql {
        S::Boolean | S::Bool => DataType::Boolean,
        S::SmallInt(n) | S::Int2(n) | S::TinyInt(n) if no_length(n) => DataType::SmallInt,
        S::Int16 => DataType::SmallInt,
        S::Integer(n) | S::Int(n) | S::Int4(n) | S::MediumInt(n) if no_length(n) => {
            DataType::Integer
        }
        S::Int32 => DataType::Integer,
        S::BigInt(n) | S::Int8(n) if no_length(n) => DataType::BigInt,
        S::Int64 => DataType::BigInt,
        S::Decimal(info) | S::Numeric(info) | S::Dec(info) => decimal(info, column)?,
        S::Real | S::Float4 | S::Float32 => DataType::Real,
        S::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => DataType::Real,
        S::Float(_) | S::Double(_) | S::DoublePrecision | S::Float8 | S::Float64 => {
            DataType::Double
        }
        S::Date | S::Date32 => DataType::Date,
        S::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            check_micros(*precision, column)?;
            DataType::Time
        }
        S::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        | S::Datetime(precision)
        | S::TimestampNtz(precision) => {
            check_micros(*precision, column)?;
            DataType::Timestamp
        }
        S::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            check_micros(*precision, column)?;
            DataType::TimestampTz
        }
        S::Char(length) | S::Character(length) => {
            DataType::Char(char_length(length.as_ref(), column)?.unwrap_or(1))
        }
        S::Varchar(length)
        | S::CharacterVarying(length)
        | S::CharVarying(length)
        | S::Nvarchar(length) => DataType::Varchar(char_length(length.as_ref(), column)?),
        S::Text | S::String(None) => DataType::Varchar(None),
        S::String(Some(n)) => DataType::Varchar(Some(length(*n, column)?)),
        S::Binary(n) | S::Blob(n) | S::Bytes(n) => {
            DataType::Binary(n.map(|n| length(n, column)).transpose()?)
        }
        S::Varbinary(Some(BinaryLength::IntegerLength { length: n })) => {
            DataType::Binary(Some(length(*n, column)?))
        }
        S::Varbinary(_) | S::Bytea => DataType::Binary(None),
        S::Uuid => DataType::Uuid,
        S::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => list(data_type(element, column)?, column)?,
        other => {
            return Err(Error::Invalid(format!(
                "type {other} of column {column} is not supported: there is BOOLEAN, SMALLINT, \
                 INTEGER, BIGINT, DECIMAL, REAL, DOUBLE, DATE, TIME, TIMESTAMP [WITH TIME ZONE], \
                 CHAR, VARCHAR, TEXT, BINARY, UUID and lists, as BIGINT[]"
            )));
        }
    })
}

fn list(data_type: DataType, column: &str) -> Result<DataType> {
    let element = ElementType::of(data_type);
    element.map(DataType::List).ok_or_else(|| Error::Invalid(list_refused(data_type, column)))
}

fn decimal(info: &ExactNumberInfo, column: &str) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::None => {
            return Err(Error::Invalid(format!(
                "DECIMAL of column {column} has no precision (say DECIMAL(18,2))"
            )));
        }
    };
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => DataType::decimal(precision, scale),
        _ => Err(Error::Invalid(format!(
            "DECIMAL({precision},{scale}) of column {column}: precision is 1 to 38, scale 0 to precision"
        ))),
    }
}

fn check_micros(precision: Option<u64>, column: &str) -> Result<()> {
    const MICROS: u64 = 6;
    match precision {
        Some(p) if p > MICROS => Err(Error::Invalid(format!(
            "precision {p} of column {column} is finer than a microsecond ({MICROS} digits)"
        ))),
        _ => Ok(()),
    }
}

fn char_length(declared: Option<&CharacterLength>, column: &str) -> Result<Option<u32>> {
    match declared {
        Some(CharacterLength::IntegerLength { length: n, .. }) => length(*n, column).map(Some),
        Some(CharacterLength::Max) | None => Ok(None),
    }
}

fn length(declared: u64, column: &str) -> Result<u32> {
    match u32::try_from(declared) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::Invalid(format!(
            "length {declared} of column {column} is not 1 to {}",
            u32::MAX
        ))),
    }
}

/// The value of a DEFAULT; `None` is NULL.
fn default_value(expr: &Expr, data_type: DataType, column: &str) -> Result<Option<Value>> {
    let Some(text) = literal_text(expr) else {
        return Err(Error::Invalid(format!("DEFAULT {expr} of column {column} is not a literal")));
    };
    let Some(text) = text else { return Ok(None) };
    // The digits of x'02' are no characters.
    if is_hex(expr) && !matches!(data_type, DataType::Binary(_)) {
        return Err(Error::Invalid(format!(
            "DEFAULT {expr} of column {column} is of bytes, and the column is {data_type}"
        )));
    }
    parse_value(text.as_bytes(), data_type).map(Some).map_err(|rule| {
        Error::Invalid(format!("DEFAULT {expr} of column {column} is not {data_type}: {rule}"))
    })
}

fn is_hex(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, SqlValue::HexStringLiteral(_)),
        Expr::Nested(inner) => is_hex(inner),
        _ => false,
    }
}

/// The text of a literal as a field would have it; inside, `None` for NULL.
fn literal_text(expr: &Expr) -> Option<Option<String>> {
    match expr {
        Expr::Value(value) => match &value.value {
            SqlValue::Null => Some(None),
            SqlValue::Boolean(b) => Some(Some(b.to_string())),
            SqlValue::Number(digits, _) => Some(Some(digits.clone())),
            SqlValue::HexStringLiteral(digits) => Some(Some(format!("\\x{digits}"))),
            other => other.clone().into_string().map(Some),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            literal_text(expr)?.map(|digits| Some(format!("-{digits}")))
        }
        Expr::TypedString(typed) => typed.value.value.clone().into_string().map(Some),
        Expr::Nested(inner) => literal_text(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn declarations_are_read() {
        let schema = parse_columns(
            "a BIGINT NOT NULL, b DECIMAL(15,2) DEFAULT -1.5, c CHAR, d TIMESTAMPTZ, \
             e VARCHAR(7) DEFAULT 'x', f DOUBLE PRECISION, g DATE DEFAULT DATE '2024-02-29', h UUID",
        )
        .unwrap();
        let columns = schema.columns();
        let types: Vec<String> = columns.iter().map(|c| c.data_type.to_string()).collect();
        assert_eq!(
            types,
            [
                "BIGINT",
                "DECIMAL(15,2)",
                "CHAR(1)",
                "TIMESTAMP WITH TIME ZONE",
                "VARCHAR(7)",
                "DOUBLE",
                "DATE",
                "UUID"
            ]
        );
        assert!(!columns[0].nullable && columns[1].nullable);
        assert_eq!(columns[1].default, Some(Value::Int(-150)));
        assert_eq!(columns[4].default, Some(Value::Bytes(Box::from(*b"x"))));
        assert_eq!(columns[6].default, Some(Value::Int(19_782)));
    }

    #[test]
    fn keys_are_read_wherever_they_stand() {
        let key = |sql: &str| {
            let (_, schema) = parse_create_table(sql).unwrap();
            let columns = schema.columns();
            (schema.key().map(|key| key.sql(columns)), columns.iter().map(|c| c.nullable).collect())
        };
        let primary = |sql: &str| (Some(sql.to_owned()), vec![false, true]);
        assert_eq!(key("CREATE TABLE t (a INT PRIMARY KEY, b INT)"), primary("PRIMARY KEY (a)"));
        assert_eq!(
            key("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a))"),
            primary("PRIMARY KEY (a)")
        );
        let both = (Some("PRIMARY KEY (b, a)".to_owned()), vec![false, false]);
        assert_eq!(key("CREATE TABLE t (a INT, b INT, PRIMARY KEY (b, a))"), both);
        for list in ["(b, a)", "b, a"] {
            let cluster = (Some("CLUSTER BY (b, a)".to_owned()), vec![true, true]);
            assert_eq!(key(&format!("CREATE TABLE t (a INT, b INT) CLUSTER BY {list}")), cluster);
        }
        assert_eq!(key("CREATE TABLE t (a INT, b INT)"), (None, vec![true, true]));
    }

    #[test]
    fn what_would_not_be_checked_is_refused() {
        for (bad, word) in [
            ("a BIGINT PRIMARY KEY, PRIMARY KEY (a)", "one key"),
            ("a BIGINT, PRIMARY KEY (b)", "no such column"),
            ("a BIGINT, b DATE, PRIMARY KEY (a, a)", "twice"),
            ("a BIGINT, PRIMARY KEY (a DESC)", "order"),
            ("a BIGINT, CONSTRAINT k PRIMARY KEY (a)", "name"),
            ("a BIGINT, UNIQUE (b)", "no such column"),
            ("a BIGINT, UNIQUE (a DESC)", "order"),
            ("a BIGINT REFERENCES b", "REFERENCES"),
            ("a INTERVAL", "INTERVAL"),
            ("a DECIMAL", "precision"),
            ("a TIMESTAMP(9)", "microsecond"),
            ("a BIGINT DEFAULT 'x'", "DEFAULT"),
            ("a DATE DEFAULT now()", "literal"),
            ("a VARCHAR(0)", "length"),
        ] {
            let error = parse_columns(bad).unwrap_err().to_string();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }

    /// `x'02'` was the two characters, `02`.
    #[test]
    fn bytes_by_their_digits_are_bytes() {
        let of = |text: &str| parse_columns(text).map(|s| s.columns()[0].default.clone());
        assert_eq!(
            of("b BINARY DEFAULT x'02fF'").unwrap(),
            Some(Value::Bytes(Box::from([2, 255])))
        );
        assert_eq!(of("b BINARY DEFAULT (x'')").unwrap(), Some(Value::Bytes(Box::default())));
        for wrong in [
            "b BINARY DEFAULT x'0'",
            "b BINARY DEFAULT x'zz'",
            "b VARCHAR DEFAULT x'02'",
            "b UUID DEFAULT x'02'",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
