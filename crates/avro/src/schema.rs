//! The schema of a file: its types, which may name each other, and themselves.

use std::collections::HashMap;
use std::sync::Arc;

use coload_arrow::{Fault, Result, Unit};
use serde_json::{Map, Value};

use crate::leaf::{DURATION_BYTES, Leaf, Meaning, Stored};

/// Most types of a schema.
const TYPES_MAX: usize = 1 << 20;
/// Most bytes of a value of fixed length.
const FIXED_BYTES_MAX: u64 = 1 << 30;
/// Most digits of a decimal that is taken for one, and not for its bytes.
const DIGITS_MAX: u64 = 255;
const SCALE_MAX: u64 = 127;

/// Number of a type in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(u32);

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Leaf(Leaf),
    Array(TypeId),
    /// By keys, which are texts.
    Map(TypeId),
    Union(Vec<TypeId>),
    /// Names of fields, and their types.
    Record(Vec<(String, TypeId)>),
}

/// The types of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    types: Vec<Type>,
    root: TypeId,
}

impl Schema {
    /// Reads a schema from its JSON.
    ///
    /// # Errors
    /// `Unknown` when it is none.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(json)
            .map_err(|error| wrong(format!("it is no JSON: {error}")))?;
        let mut parse = Parse { types: Vec::new(), named: HashMap::new() };
        let root = parse.any(&json, "")?;
        Ok(Schema { types: parse.types, root })
    }

    /// The type of its records.
    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}

fn wrong(what: impl std::fmt::Display) -> Fault {
    Fault::Unknown(format!("the schema is none: {what}"))
}

struct Parse {
    types: Vec<Type>,
    named: HashMap<String, TypeId>,
}

/// A name with its namespace, and that namespace.
fn full_name(name: &str, own: Option<&str>, around: &str) -> (String, String) {
    if let Some((space, _)) = name.rsplit_once('.') {
        return (name.trim_start_matches('.').to_owned(), space.to_owned());
    }
    let space = own.unwrap_or(around);
    match space.is_empty() {
        true => (name.to_owned(), String::new()),
        false => (format!("{space}.{name}"), space.to_owned()),
    }
}

fn primitive(name: &str) -> Option<Stored> {
    Some(match name {
        "null" => Stored::Null,
        "boolean" => Stored::Bool,
        "int" => Stored::Int,
        "long" => Stored::Long,
        "float" => Stored::Float,
        "double" => Stored::Double,
        "bytes" => Stored::Bytes,
        "string" => Stored::Text,
        _ => return None,
    })
}

/// What values mean that are written so. What is no meaning of theirs is passed over, as the specification has it.
fn meaning(stored: &Stored, of: &Map<String, Value>) -> Meaning {
    let timestamp = |unit, utc| Meaning::Timestamp { unit, utc };
    match (of.get("logicalType").and_then(Value::as_str).unwrap_or_default(), stored) {
        ("decimal", Stored::Bytes | Stored::Fixed(_)) => decimal(stored, of),
        ("date", Stored::Int) => Meaning::Date,
        ("time-millis", Stored::Int) => Meaning::Time(Unit::Milli),
        ("time-micros", Stored::Long) => Meaning::Time(Unit::Micro),
        ("timestamp-millis", Stored::Long) => timestamp(Unit::Milli, true),
        ("timestamp-micros", Stored::Long) => timestamp(Unit::Micro, true),
        ("timestamp-nanos", Stored::Long) => timestamp(Unit::Nano, true),
        ("local-timestamp-millis", Stored::Long) => timestamp(Unit::Milli, false),
        ("local-timestamp-micros", Stored::Long) => timestamp(Unit::Micro, false),
        ("local-timestamp-nanos", Stored::Long) => timestamp(Unit::Nano, false),
        ("uuid", Stored::Text | Stored::Fixed(16)) => Meaning::Uuid,
        ("duration", Stored::Fixed(DURATION_BYTES)) => Meaning::Duration,
        _ => Meaning::Itself,
    }
}

fn decimal(stored: &Stored, of: &Map<String, Value>) -> Meaning {
    let number = |key: &str| of.get(key).map(|value| value.as_u64());
    let (Some(Some(precision)), Some(scale)) =
        (number("precision"), number("scale").unwrap_or(Some(0)))
    else {
        return Meaning::Itself;
    };
    // So many digits have a place in so many bytes.
    let most = match stored {
        Stored::Fixed(bytes) => (*bytes as f64 * 8.0 - 1.0).max(0.0) * std::f64::consts::LOG10_2,
        _ => DIGITS_MAX as f64,
    };
    let is_one = (1..=DIGITS_MAX).contains(&precision)
        && scale <= precision.min(SCALE_MAX)
        && precision as f64 <= most.floor();
    match is_one {
        true => Meaning::Decimal { precision: precision as u8, scale: scale as i8 },
        false => Meaning::Itself,
    }
}

impl Parse {
    fn push(&mut self, new: Type) -> Result<TypeId> {
        if self.types.len() >= TYPES_MAX {
            return Err(wrong(format!("it has more than {TYPES_MAX} types")));
        }
        self.types.push(new);
        Ok(TypeId(self.types.len() as u32 - 1))
    }

    /// A type; JSON nests no deeper than its parser lets it.
    fn any(&mut self, json: &Value, space: &str) -> Result<TypeId> {
        match json {
            Value::String(name) => self.by_name(name, space),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.any(branch, space));
                let branches = branches.collect::<Result<Vec<_>>>()?;
                match branches.is_empty() {
                    true => Err(wrong("a union without types")),
                    false => self.push(Type::Union(branches)),
                }
            }
            Value::Object(of) => self.object(of, space),
            other => Err(wrong(format!("{other} stands for a type"))),
        }
    }

    fn by_name(&mut self, name: &str, space: &str) -> Result<TypeId> {
        if let Some(stored) = primitive(name) {
            return self.push(Type::Leaf(Leaf { stored, meaning: Meaning::Itself }));
        }
        let (full, _) = full_name(name, None, space);
        let found = self.named.get(&full).or_else(|| self.named.get(name));
        found.copied().ok_or_else(|| wrong(format!("there is no type {name}")))
    }

    fn object(&mut self, of: &Map<String, Value>, space: &str) -> Result<TypeId> {
        let text = |key: &str| of.get(key).and_then(Value::as_str);
        let inner = |key: &str| of.get(key).ok_or_else(|| wrong(format!("a type without {key}")));
        let Some(kind) = text("type") else { return self.any(inner("type")?, space) };
        if let Some(stored) = primitive(kind) {
            let meaning = meaning(&stored, of);
            return self.push(Type::Leaf(Leaf { stored, meaning }));
        }
        let named = || -> Result<(String, String)> {
            let name = text("name").ok_or_else(|| wrong(format!("a type {kind} without name")))?;
            Ok(full_name(name, text("namespace"), space))
        };
        match kind {
            "array" => {
                let items = self.any(inner("items")?, space)?;
                self.push(Type::Array(items))
            }
            "map" => {
                let values = self.any(inner("values")?, space)?;
                self.push(Type::Map(values))
            }
            "record" | "error" => {
                let (name, space) = named()?;
                // Its fields may be of itself.
                let id = self.push(Type::Record(Vec::new()))?;
                self.name(name, id)?;
                let Value::Array(given) = inner("fields")? else {
                    return Err(wrong("fields that are no list"));
                };
                let mut fields = Vec::with_capacity(given.len());
                for field in given {
                    let name = field.get("name").and_then(Value::as_str);
                    let (Some(name), Some(of)) = (name, field.get("type")) else {
                        return Err(wrong("a field without name or type"));
                    };
                    fields.push((name.to_owned(), self.any(of, &space)?));
                }
                self.types[id.0 as usize] = Type::Record(fields);
                Ok(id)
            }
            "enum" => {
                let (name, _) = named()?;
                let Value::Array(symbols) = inner("symbols")? else {
                    return Err(wrong("symbols that are no list"));
                };
                let symbols = symbols.iter().map(|symbol| symbol.as_str().map(str::to_owned));
                let symbols: Option<Arc<[String]>> = symbols.collect();
                let stored =
                    Stored::Enum(symbols.ok_or_else(|| wrong("a symbol that is no text"))?);
                let id = self.push(Type::Leaf(Leaf { stored, meaning: Meaning::Itself }))?;
                self.name(name, id)?;
                Ok(id)
            }
            "fixed" => {
                let (name, _) = named()?;
                let size = inner("size")?.as_u64().filter(|size| *size <= FIXED_BYTES_MAX);
                let size = size.ok_or_else(|| wrong(format!("the size of {name} is none")))?;
                let stored = Stored::Fixed(size as usize);
                let meaning = meaning(&stored, of);
                let id = self.push(Type::Leaf(Leaf { stored, meaning }))?;
                self.name(name, id)?;
                Ok(id)
            }
            other => self.by_name(other, space),
        }
    }

    fn name(&mut self, name: String, id: TypeId) -> Result<()> {
        match self.named.insert(name.clone(), id) {
            None => Ok(()),
            Some(_) => Err(wrong(format!("there are two types {name}"))),
        }
    }
}
