//! The schema of a file: its types, which may name each other, and themselves.

use std::collections::HashMap;
use std::sync::Arc;

use coload_arrow::{Fault, Result, Unit};
use serde_json::{Map, Value};

use crate::leaf::{DURATION_BYTES, Leaf, Meaning, Stored};

/// Most types of a schema.
const TYPES_MAX: usize = 1 << 20;
/// Most bytes of the name of a type with its namespace, and of all such names: a namespace is that of all types within.
const NAME_BYTES_MAX: usize = 4 << 10;
const NAMES_BYTES_MAX: usize = 64 << 20;
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
    /// For each type whether its values have bytes.
    widths: Vec<Width>,
    root: TypeId,
}

/// Whether values have bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Width {
    /// Each has none.
    Nothing,
    /// Each has some; of a record the values of these fields.
    Some(Vec<TypeId>),
}

impl Schema {
    /// Reads a schema from its JSON.
    ///
    /// # Errors
    /// `Unknown` when it is none.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(json)
            .map_err(|error| wrong(format!("it is no JSON: {error}")))?;
        let mut parse = Parse { types: Vec::new(), named: HashMap::new(), name_bytes: 0 };
        let root = parse.any(&json, "")?;
        Ok(Schema { widths: widths(&parse.types), types: parse.types, root })
    }

    /// The type of its records.
    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// Whether values of a type have no bytes.
    pub(crate) fn has_no_bytes(&self, id: TypeId) -> bool {
        self.widths[id.0 as usize] == Width::Nothing
    }

    /// The fields of a record whose values have bytes.
    pub(crate) fn fields_with_bytes(&self, id: TypeId) -> &[TypeId] {
        match &self.widths[id.0 as usize] {
            Width::Nothing => &[],
            Width::Some(fields) => fields,
        }
    }
}

/// Finds the types whose values have no bytes: NULL, what has a fixed length of 0, and records of nothing else.
///
/// It goes from what has bytes to the records that it is in, for records may be within each other as deep as there are types.
fn widths(types: &[Type]) -> Vec<Width> {
    let mut around: Vec<Vec<usize>> = vec![Vec::new(); types.len()];
    let mut has_bytes = vec![false; types.len()];
    let mut next = Vec::new();
    for (number, of) in types.iter().enumerate() {
        match of {
            Type::Record(fields) => {
                fields.iter().for_each(|(_, field)| around[field.0 as usize].push(number));
            }
            Type::Leaf(leaf) if leaf.bytes_min() == 0 => {}
            Type::Leaf(_) | Type::Array(_) | Type::Map(_) | Type::Union(_) => {
                has_bytes[number] = true;
                next.push(number);
            }
        }
    }
    while let Some(number) = next.pop() {
        for record in &around[number] {
            if !std::mem::replace(&mut has_bytes[*record], true) {
                next.push(*record);
            }
        }
    }
    let with_bytes = |of: &Type| match of {
        Type::Record(fields) => {
            let fields = fields.iter().map(|(_, field)| *field);
            fields.filter(|field| has_bytes[field.0 as usize]).collect()
        }
        _ => Vec::new(),
    };
    let width = |(of, has_bytes): (&Type, &bool)| match has_bytes {
        true => Width::Some(with_bytes(of)),
        false => Width::Nothing,
    };
    types.iter().zip(&has_bytes).map(width).collect()
}

/// The first bytes of a text, for messages.
fn told(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}

fn wrong(what: impl std::fmt::Display) -> Fault {
    Fault::Unknown(format!("the schema is none: {what}"))
}

struct Parse {
    types: Vec<Type>,
    named: HashMap<String, TypeId>,
    /// Bytes of the names.
    name_bytes: usize,
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
            other => Err(wrong(format!("{} stands for a type", told(&other.to_string())))),
        }
    }

    fn by_name(&mut self, name: &str, space: &str) -> Result<TypeId> {
        if let Some(stored) = primitive(name) {
            return self.push(Type::Leaf(Leaf { stored, meaning: Meaning::Itself }));
        }
        // No type has a name that is longer.
        let full = match name.len().saturating_add(space.len()) <= NAME_BYTES_MAX {
            true => full_name(name, None, space).0,
            false => name.to_owned(),
        };
        let found = self.named.get(&full).or_else(|| self.named.get(name));
        found.copied().ok_or_else(|| wrong(format!("there is no type {}", told(name))))
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
            let own = text("namespace");
            let bytes = name.len().saturating_add(own.unwrap_or(space).len());
            match bytes <= NAME_BYTES_MAX {
                true => Ok(full_name(name, own, space)),
                false => Err(wrong(format!(
                    "the name of a type has {bytes} bytes with its namespace, over {NAME_BYTES_MAX}"
                ))),
            }
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
        self.name_bytes += name.len();
        if self.name_bytes > NAMES_BYTES_MAX {
            return Err(wrong(format!("the names of its types have over {NAMES_BYTES_MAX} bytes")));
        }
        match self.named.insert(name.clone(), id) {
            None => Ok(()),
            Some(_) => Err(wrong(format!("there are two types {name}"))),
        }
    }
}
