//! A schema as columns: fields of records within records are columns `a.b`, and what has many values is JSON.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{ArrowType, Fault, Result, Slice, SliceValues, Strings};
use coload_types::{DataType, ElementType};

use crate::cursor::{Cursor, damaged};
use crate::leaf::{Leaf, Stored};
use crate::schema::{Schema, Type, TypeId};

/// Most columns of a file.
const COLUMNS_MAX: usize = 1 << 15;
/// Most bytes of the names of the columns, of what they are, and of symbols: records that are named stand in many places.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// How deep records are in records whose fields are columns.
const DEPTH_MAX: usize = 64;
/// Fields of a record in another that are looked at to know how long it is at least.
const FIELDS_LOOKED_AT: usize = 64;
/// The column of a file whose records are single values.
const VALUE_NAME: &str = "value";

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvroField {
    /// Name, with those of the records that it is in.
    pub name: String,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// What its values are, in the words of Avro.
    pub kind: String,
    /// The SQL type that holds each of them, or why there is none.
    pub data_type: std::result::Result<DataType, String>,
    /// Whether its values are lists of nothing but NULL.
    pub is_null_list: bool,
    /// Texts that its values are places of, if it is an enum.
    pub symbols: Option<Arc<[String]>>,
    /// Least bytes that a row of it takes in memory.
    pub(crate) row_bytes: u64,
}

impl AvroField {
    /// The texts of an enum, as rows of a column, and their type.
    pub fn dictionary(&self) -> Option<(ArrowType, Slice<'static>)> {
        let symbols = self.symbols.as_ref()?;
        let ends = symbols.iter().scan(0, |end, symbol| {
            *end += symbol.len();
            Some(*end)
        });
        let places = [0].into_iter().chain(ends).collect();
        let bytes = symbols.concat().into_bytes();
        let strings = Strings::Ends { places, bytes: bytes.into() };
        let slice = Slice::new(symbols.len(), None, SliceValues::Strings(strings));
        Some((ArrowType::Text(8), slice))
    }
}

/// Which branch of a union says that there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// There is no union.
    None,
    /// A union of one type, which is written as one.
    Only,
    /// The first of two.
    NullFirst,
    /// The second of two.
    NullSecond,
}

impl Choice {
    /// Reads which branch there is: whether it is NULL.
    pub fn is_null(self, cursor: &mut Cursor<'_>) -> Result<bool> {
        Ok(match self {
            Choice::None => false,
            Choice::Only => {
                cursor.choice(1, "branch")?;
                false
            }
            Choice::NullFirst => cursor.choice(2, "branch")? == 0,
            Choice::NullSecond => cursor.choice(2, "branch")? == 1,
        })
    }
}

/// What a value of a record is in columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A value of one column.
    Leaf { column: usize, choice: Choice, leaf: Leaf },
    /// A text of JSON.
    Json { column: usize, of: TypeId },
    /// Values of several columns.
    Record { columns: Range<usize>, choice: Choice, fields: Vec<Node> },
}

/// A schema as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its columns, in their order.
    pub fields: Vec<AvroField>,
    pub(crate) schema: Schema,
    pub(crate) root: Node,
    /// Least bytes of a record.
    pub(crate) record_bytes_min: u64,
}

impl Layout {
    /// The columns of a schema.
    ///
    /// # Errors
    /// `Unknown` when these are too many, or records are too deep.
    pub fn new(schema: Schema) -> Result<Self> {
        let mut make =
            Make { schema: &schema, fields: Vec::new(), path: Vec::new(), text_bytes: 0 };
        let root = make.node("", schema.root(), false)?;
        let fields = make.fields;
        let record_bytes_min = bytes_min(&schema, schema.root(), 0);
        Ok(Layout { fields, root, record_bytes_min, schema })
    }
}

/// Least bytes of a value, or fewer where it nests deep.
fn bytes_min(schema: &Schema, id: TypeId, depth: usize) -> u64 {
    match schema.get(id) {
        Type::Leaf(leaf) => leaf.bytes_min(),
        Type::Array(_) | Type::Map(_) | Type::Union(_) => 1,
        // Records of records may have many fields: some of two levels tell enough.
        Type::Record(fields) if depth < 2 => fields
            .iter()
            .take(if depth == 0 { usize::MAX } else { FIELDS_LOOKED_AT })
            .fold(0, |sum: u64, (_, field)| {
                sum.saturating_add(bytes_min(schema, *field, depth + 1))
            }),
        Type::Record(_) => 0,
    }
}

struct Make<'a> {
    schema: &'a Schema,
    fields: Vec<AvroField>,
    /// Records that are being gone through.
    path: Vec<TypeId>,
    /// Bytes of the texts of the fields.
    text_bytes: usize,
}

impl Make<'_> {
    /// What a value is that stands under a name; whether what it is in may be NULL.
    fn node(&mut self, name: &str, id: TypeId, nullable: bool) -> Result<Node> {
        let (choice, of) = self.choice_of(id);
        let nullable = nullable || matches!(choice, Choice::NullFirst | Choice::NullSecond);
        match self.schema.get(of) {
            Type::Leaf(leaf) => {
                let symbols = match &leaf.stored {
                    Stored::Enum(symbols) => Some(Arc::clone(symbols)),
                    _ => None,
                };
                let column = self.push(AvroField {
                    name: name_of(name),
                    nullable: nullable || leaf.stored == Stored::Null,
                    kind: leaf.kind(),
                    data_type: leaf.sql_type(),
                    is_null_list: false,
                    symbols,
                    row_bytes: row_bytes(leaf),
                })?;
                Ok(Node::Leaf { column, choice, leaf: leaf.clone() })
            }
            Type::Record(fields) if !fields.is_empty() && !self.path.contains(&of) => {
                if self.path.len() >= DEPTH_MAX {
                    return Err(Fault::Unknown(format!(
                        "field {name} is within {DEPTH_MAX} records, and no deeper ones are read"
                    )));
                }
                let first = self.fields.len();
                self.path.push(of);
                let inner = fields.iter().map(|(field, of)| {
                    let name = match name.is_empty() {
                        true => field.clone(),
                        false => format!("{name}.{field}"),
                    };
                    self.node(&name, *of, nullable)
                });
                let inner = inner.collect::<Result<_>>()?;
                self.path.pop();
                Ok(Node::Record { columns: first..self.fields.len(), choice, fields: inner })
            }
            _ => {
                // The union is written with the value.
                let of = id;
                let column = self.push(AvroField {
                    name: name_of(name),
                    nullable: nullable || self.has_null(of),
                    kind: self.kind(of),
                    data_type: Ok(self.element(of).map_or(DataType::Varchar(None), DataType::List)),
                    is_null_list: self.is_null_list(of),
                    symbols: None,
                    row_bytes: 8,
                })?;
                Ok(Node::Json { column, of })
            }
        }
    }

    fn push(&mut self, field: AvroField) -> Result<usize> {
        if self.fields.len() >= COLUMNS_MAX {
            return Err(Fault::Unknown(format!(
                "the schema has more than {COLUMNS_MAX} fields, and no more are read"
            )));
        }
        let symbols = field.symbols.iter().flat_map(|symbols| symbols.iter());
        let symbols: usize = symbols.map(|symbol| symbol.len() + size_of::<usize>()).sum();
        self.text_bytes += field.name.len() + field.kind.len() + symbols;
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(Fault::Unknown(format!(
                "the names and symbols of the fields have over {TEXT_BYTES_MAX} bytes, and no more are read"
            )));
        }
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }

    fn is_null(&self, id: TypeId) -> bool {
        matches!(self.schema.get(id), Type::Leaf(leaf) if leaf.stored == Stored::Null)
    }

    fn has_null(&self, id: TypeId) -> bool {
        match self.schema.get(id) {
            Type::Union(branches) => branches.iter().any(|branch| self.is_null(*branch)),
            _ => self.is_null(id),
        }
    }

    /// What a union chooses between, if it is of one type beside NULL.
    fn choice_of(&self, id: TypeId) -> (Choice, TypeId) {
        let Type::Union(branches) = self.schema.get(id) else { return (Choice::None, id) };
        match branches[..] {
            [only] => (Choice::Only, only),
            [null, of] if self.is_null(null) => (Choice::NullFirst, of),
            [of, null] if self.is_null(null) => (Choice::NullSecond, of),
            _ => (Choice::None, id),
        }
    }

    /// The type of the elements of an array, if a column has lists of such.
    fn element(&self, id: TypeId) -> Option<ElementType> {
        let Type::Array(items) = self.schema.get(self.choice_of(id).1) else { return None };
        let Type::Leaf(leaf) = self.schema.get(self.choice_of(*items).1) else { return None };
        ElementType::of(leaf.sql_type().ok()?)
    }

    /// Whether the elements of an array are nothing but NULL.
    fn is_null_list(&self, id: TypeId) -> bool {
        match self.schema.get(self.choice_of(id).1) {
            Type::Array(items) => self.is_null(*items),
            _ => false,
        }
    }

    /// What values are that become JSON.
    fn kind(&self, id: TypeId) -> String {
        match self.schema.get(self.choice_of(id).1) {
            Type::Leaf(leaf) => leaf.kind(),
            Type::Array(_) => "array".to_owned(),
            Type::Map(_) => "map".to_owned(),
            Type::Record(_) => "record".to_owned(),
            Type::Union(branches) => {
                let kinds = branches.iter().map(|branch| match self.schema.get(*branch) {
                    Type::Union(_) => "union".to_owned(),
                    _ => self.kind(*branch),
                });
                format!("union of {}", kinds.collect::<Vec<_>>().join(" | "))
            }
        }
    }
}

fn name_of(name: &str) -> String {
    match name.is_empty() {
        true => VALUE_NAME.to_owned(),
        false => name.to_owned(),
    }
}

/// Least bytes that a row takes in memory.
fn row_bytes(leaf: &Leaf) -> u64 {
    match leaf.values() {
        // Numbers that turn out to be long are written anew.
        ArrowType::Decimal { .. } => 48,
        ArrowType::Null => 0,
        ArrowType::Bool => 1,
        values => values.width().unwrap_or(8) as u64,
    }
}

/// Values in values, one level down.
///
/// # Errors
/// `Damaged` where there are too many levels.
pub(crate) fn deeper(depth: usize) -> Result<usize> {
    match depth < VALUE_DEPTH_MAX {
        true => Ok(depth + 1),
        false => damaged(format!("values within {VALUE_DEPTH_MAX} others")),
    }
}

/// How deep values are in others, which JSON is read to as well.
const VALUE_DEPTH_MAX: usize = 127;
