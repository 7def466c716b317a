//! The mapping of values of JSON to columns, as a file has it.
//!
//! ```text
//!   {"unnest": "items",
//!    "columns": [{"path": "id", "column": "order_id", "type": "BIGINT"},
//!                {"path": ["items", "a.b"], "column": "note", "json": true}],
//!    "tables": [{"table": "tags", "unnest": "tags", "columns": [{"path": "id"}, {"path": "tags", "column": "tag"}]}]}
//! ```
//!
//! A path is keys with points between them, or a list of keys where one has a point itself. `tables` has mappings of other tables
//! that the same load fills.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use coload_ddl::{column_sql, parse_columns};
use coload_source::{GivenDialect, Holds, JsonMapping, MappedColumn, Sniffed};
use coload_types::{Error, Result};
use serde_json::{Map, Value, json};

/// Bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A mapping, and what was given for it.
#[derive(Debug, Clone)]
pub struct GivenMapping {
    /// The name of the file, or the mapping itself.
    pub text: String,
    /// What it says.
    pub mapping: Arc<JsonMapping>,
    /// What it says of other tables.
    pub tables: Vec<TableMapping>,
}

/// A table that is loaded beside another one, from the same records.
#[derive(Debug, Clone)]
pub struct TableMapping {
    /// Its name.
    pub table: String,
    /// Which values its columns are.
    pub mapping: Arc<JsonMapping>,
}

impl TableMapping {
    /// What is given for the first table, for this one: types are of columns of the first.
    pub fn dialect(&self, first: &GivenDialect) -> GivenDialect {
        let mapping = Some(Arc::clone(&self.mapping));
        GivenDialect { mapping, unnest: None, columns: Vec::new(), ..first.clone() }
    }
}

/// The value of `--mapping`: a file, or the mapping itself.
///
/// # Errors
/// `Invalid` that says what is wrong with it.
pub fn parse_mapping(text: &str) -> Result<GivenMapping> {
    let read = match text.trim_start().starts_with('{') {
        true => text.to_owned(),
        false => read_file(Path::new(text))?,
    };
    let value: Value = serde_json::from_str(&read)
        .map_err(|error| Error::Invalid(format!("--mapping is no JSON: {error}")))?;
    let (mapping, tables) = mappings_of(&value).map_err(|text| {
        Error::Invalid(format!("--mapping: {text} (coload sniff --output mapping prints one)"))
    })?;
    Ok(GivenMapping { text: text.to_owned(), mapping: Arc::new(mapping), tables })
}

fn read_file(path: &Path) -> Result<String> {
    let bytes = fs::metadata(path).map_err(|error| Error::io("open", path, &error))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(Error::Limit(format!("--mapping {}: it has {bytes} bytes", path.display())));
    }
    fs::read_to_string(path).map_err(|error| Error::io("read", path, &error))
}

fn mappings_of(value: &Value) -> std::result::Result<(JsonMapping, Vec<TableMapping>), String> {
    let main = object(value, &["unnest", "columns", "tables"])?;
    let mut mappings = vec![mapping_of(main)?];
    let mut names: Vec<&str> = Vec::new();
    let tables = match main.get("tables") {
        None | Some(Value::Null) => &[][..],
        Some(tables) => {
            tables.as_array().ok_or_else(|| format!("{tables} is no list of tables"))?
        }
    };
    for table in tables {
        let table = object(table, &["table", "unnest", "columns"])?;
        let name = table.get("table").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or("one of \"tables\" has no name, as in \"table\": \"items\"")?;
        if names.iter().any(|other| other.to_lowercase() == name.to_lowercase()) {
            return Err(format!("table {name} is there twice"));
        }
        names.push(name);
        mappings.push(mapping_of(table).map_err(|text| format!("table {name}: {text}"))?);
    }
    let elsewhere = (0..mappings.len()).map(|of| elsewhere(&mappings, of));
    let elsewhere = elsewhere.collect::<std::result::Result<Vec<_>, _>>()?;
    for (mapping, elsewhere) in mappings.iter_mut().zip(elsewhere) {
        mapping.elsewhere = elsewhere;
    }
    let mut mappings = mappings.into_iter();
    let main = mappings.next().unwrap_or_default();
    let named = names.into_iter().zip(mappings);
    let named = named
        .map(|(name, mapping)| TableMapping { table: name.to_owned(), mapping: Arc::new(mapping) });
    Ok((main, named.collect()))
}

fn mapping_of(object: &Map<String, Value>) -> std::result::Result<JsonMapping, String> {
    let unnest = object.get("unnest").filter(|value| !value.is_null()).map(path_of).transpose()?;
    let columns = object.get("columns").and_then(Value::as_array);
    let columns =
        columns.filter(|columns| !columns.is_empty()).ok_or("it has no list \"columns\"")?;
    let columns = columns.iter().map(column_of).collect::<std::result::Result<_, _>>()?;
    Ok(JsonMapping { unnest, columns, elsewhere: Vec::new() })
}

/// The paths that a mapping does not name, and others do: records may have them. Of items that another table unnests it is the list.
fn elsewhere(mappings: &[JsonMapping], of: usize) -> std::result::Result<Vec<Vec<String>>, String> {
    let own = &mappings[of];
    let mut known: Vec<&Vec<String>> = own.columns.iter().map(|column| &column.path).collect();
    let own_columns = known.len();
    for (_, other) in mappings.iter().enumerate().filter(|(at, _)| *at != of) {
        let list = other.unnest.as_ref().filter(|list| own.unnest.as_ref() != Some(list));
        let columns = other.columns.iter().map(|column| &column.path);
        let outside = columns.filter(|path| list.is_none_or(|list| !path.starts_with(list)));
        for path in outside.chain(list) {
            if known.contains(&path) || own.unnest.as_ref() == Some(path) {
                continue;
            }
            let is_part = |a: &[String], b: &[String]| a.starts_with(b);
            if let Some(clash) = known.iter().find(|own| is_part(own, path) || is_part(path, own)) {
                let (part, whole) =
                    if is_part(clash, path) { (*clash, path) } else { (path, *clash) };
                let (part, whole) = (part.join("."), whole.join("."));
                return Err(format!("{part} of one table is a part of {whole} of another"));
            }
            known.push(path);
        }
    }
    Ok(known[own_columns..].iter().map(|path| (*path).clone()).collect())
}

fn column_of(value: &Value) -> std::result::Result<MappedColumn, String> {
    let object = object(value, &["path", "column", "type", "json"])?;
    let path = path_of(object.get("path").ok_or_else(|| format!("{value} has no \"path\""))?)?;
    let name = match object.get("column") {
        None => path.join("."),
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        Some(other) => return Err(format!("{other} is no name of a column")),
    };
    let given = match object.get("type") {
        None | Some(Value::Null) => None,
        Some(Value::String(data_type)) => {
            let quoted = format!("\"{}\" {data_type}", name.replace('"', "\"\""));
            let columns = parse_columns(&quoted).map_err(|error| error.to_string())?;
            match columns.columns() {
                [column] => Some(column.clone()),
                _ => return Err(format!("{data_type} is no type")),
            }
        }
        Some(other) => return Err(format!("{other} is no type")),
    };
    let holds = match object.get("json") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(true)) => Some(Holds::Json),
        Some(Value::Bool(false)) => Some(Holds::Value),
        Some(other) => return Err(format!("\"json\" is true or false, not {other}")),
    };
    Ok(MappedColumn { path, name, given, holds })
}

/// An object that has none but these keys.
fn object<'a>(
    value: &'a Value,
    keys: &[&str],
) -> std::result::Result<&'a Map<String, Value>, String> {
    let object = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => {
            Err(format!("there is no key \"{key}\": there is \"{}\"", keys.join("\", \"")))
        }
        None => Ok(object),
    }
}

fn path_of(value: &Value) -> std::result::Result<Vec<String>, String> {
    let keys: Option<Vec<String>> = match value {
        Value::String(path) => Some(path.split('.').map(str::to_owned).collect()),
        Value::Array(keys) => keys.iter().map(|key| key.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    keys.filter(|keys| !keys.is_empty()).ok_or_else(|| format!("{value} is no path"))
}

/// The value of `--unnest`: keys with points between them, or a list of keys in JSON.
///
/// # Errors
/// `Invalid` when it is no path.
pub fn parse_path(text: &str) -> Result<Vec<String>> {
    let value = match text.starts_with('[') {
        true => serde_json::from_str(text).map_err(|error| {
            Error::Invalid(format!("--unnest {text} is no list of keys: {error}"))
        })?,
        false => Value::String(text.to_owned()),
    };
    path_of(&value).map_err(|text| Error::Invalid(format!("--unnest: {text}")))
}

/// A path as a mapping and `--unnest` take it.
pub fn path_value(path: &[String]) -> Value {
    match path.iter().any(|key| key.contains('.') || key.is_empty() || key.starts_with('[')) {
        true => json!(path),
        false => Value::String(path.join(".")),
    }
}

/// A path as `--unnest` takes it.
pub fn path_text(path: &[String]) -> String {
    match path_value(path) {
        Value::String(text) => text,
        list => list.to_string(),
    }
}

/// The mapping that says what was found out; `None` if the input is no JSON.
pub fn mapping_json(sniffed: &Sniffed) -> Option<Value> {
    let json = sniffed.dialect.json.as_ref()?;
    let columns = sniffed.schema.columns().iter().zip(json.keys.paths());
    let columns: Vec<Value> = columns
        .map(|(column, path)| {
            let sql = column_sql(column);
            let name = sql.len() - column_sql_type(&sql, &column.name).len();
            let mut entry = json!({
                "path": path_value(&path.keys),
                "column": column.name,
                "type": sql[name..].trim(),
            });
            if path.holds == Holds::Json {
                entry["json"] = json!(true);
            }
            entry
        })
        .collect();
    Some(match &json.unnest {
        Some(list) => json!({ "unnest": path_value(list), "columns": columns }),
        None => json!({ "columns": columns }),
    })
}

/// What stands behind the name of a column in its SQL.
fn column_sql_type<'a>(sql: &'a str, name: &str) -> &'a str {
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    sql.strip_prefix(&quoted).or_else(|| sql.strip_prefix(name)).unwrap_or(sql)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mappings_say_paths_columns_and_types() {
        let text = r#"{"unnest": "a.items", "columns": [{"path": "id"},
            {"path": ["a", "items", "x.y"], "column": "X \"y\"", "type": "DECIMAL(9,2) NOT NULL"},
            {"path": "a.b", "json": true}]}"#;
        let mapping = parse_mapping(text).unwrap().mapping;
        assert_eq!(mapping.unnest, Some(vec!["a".to_owned(), "items".to_owned()]));
        assert_eq!(mapping.columns[1].path, ["a", "items", "x.y"]);
        assert_eq!(
            mapping.columns[1].given.as_ref().map(column_sql).as_deref(),
            Some("\"X \"\"y\"\"\" DECIMAL(9,2) NOT NULL")
        );
        assert_eq!(
            (mapping.columns[2].name.as_str(), mapping.columns[2].holds),
            ("a.b", Some(Holds::Json))
        );
        for (wrong, told) in [
            ("{", "is no JSON"),
            ("{}", "no list \"columns\""),
            (r#"{"columns": []}"#, "no list \"columns\""),
            (r#"{"columns": [{"column": "a"}]}"#, "has no \"path\""),
            (r#"{"columns": [{"path": []}]}"#, "is no path"),
            (r#"{"columns": [{"path": "a", "typ": "INT"}]}"#, "there is no key \"typ\""),
            (r#"{"columns": [{"path": "a", "type": "INT, b INT"}]}"#, "is no type"),
            (r#"{"columns": [{"path": "a", "type": "FROG"}]}"#, "FROG"),
            (r#"{"columns": [{"path": "a"}], "tables": {}}"#, "is no list of tables"),
            (
                r#"{"columns": [{"path": "a"}], "tables": [{"columns": [{"path": "b"}]}]}"#,
                "has no name",
            ),
            (
                r#"{"columns": [{"path": "a"}], "tables": [{"table": "t", "columns": []}]}"#,
                "table t: it has no list",
            ),
            (
                r#"{"columns": [{"path": "a"}], "tables": [{"table": "t", "columns": [{"path": "a.b"}]}]}"#,
                "a.b of one table is a part of a of another",
            ),
            (
                r#"{"columns": [{"path": "a"}], "tables": [{"table": "t", "columns": [{"path": "b"}]},
                    {"table": "T", "columns": [{"path": "b"}]}]}"#,
                "table T is there twice",
            ),
            ("/no/such/file", "cannot open"),
        ] {
            let error = parse_mapping(wrong).unwrap_err().to_string();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_table_knows_what_others_take_of_a_record() {
        let text = r#"{"columns": [{"path": "id"}, {"path": "who.name"}], "tables": [
            {"table": "items", "unnest": "items", "columns": [{"path": "id"}, {"path": "items.n"}]},
            {"table": "parts", "unnest": "items", "columns": [{"path": "items.parts"}]},
            {"table": "tags", "unnest": "tags", "columns": [{"path": "tags"}, {"path": "at"}]}]}"#;
        let given = parse_mapping(text).unwrap();
        let told = |mapping: &JsonMapping| {
            mapping.elsewhere.iter().map(|path| path.join(".")).collect::<Vec<_>>()
        };
        assert_eq!(told(&given.mapping), ["items", "at", "tags"]);
        let of_tables: Vec<_> = given.tables.iter().map(|table| told(&table.mapping)).collect();
        assert_eq!(of_tables[0], ["who.name", "items.parts", "at", "tags"]);
        assert_eq!(of_tables[1], ["id", "who.name", "items.n", "at", "tags"]);
        assert_eq!(of_tables[2], ["id", "who.name", "items"]);
    }

    #[test]
    fn paths_come_back() {
        for path in ["a", "a.b", "[\"a.b\",\"c\"]", "[\"\"]"] {
            assert_eq!(path_text(&parse_path(path).unwrap()), path);
        }
        assert!(parse_path("[1]").is_err() && parse_path("[").is_err());
    }
}
