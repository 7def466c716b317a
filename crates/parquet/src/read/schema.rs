//! The fields of a file: names, what their values are, and how these are stored.

use std::sync::Arc;

use coload_arrow::{ArrowType, Fault, Nesting, Unit};
use coload_types::DataType;

use super::logical::{Logical, converted_type, described, logical_type};
use super::thrift::{Compact, Result as ThriftResult, Wrong};
use super::tree::{Nested, nested_of};

/// Deepest nesting of groups.
pub(super) const DEPTH_MAX: usize = 64;
/// Bytes of the longest decimal that is read.
const DECIMAL_BYTES_MAX: usize = 32;
/// How values of moments are stored that count nanoseconds of a Julian day.
const INT96_BYTES: usize = 12;

/// A field of a file: a column, or what none can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetField {
    /// Name of the field.
    pub name: String,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// What the field is, in the words of Parquet: `INT32 (DATE)`.
    pub kind: String,
    /// What its values are: the type whose values are written so.
    pub meaning: ArrowType,
    /// Where its values are, of a list or map the first of them; `None` for what is not read.
    pub stored: Option<Stored>,
    /// What a list or map is made of, whose rows are texts of JSON.
    pub nested: Option<Arc<Nested>>,
}

/// How the values of a field are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Number of its column chunk in each row group.
    pub leaf: usize,
    /// How its values are written.
    pub(super) physical: Physical,
    /// The type of the rows that are read of it.
    pub values: ArrowType,
    /// The level of its values: groups and fields around them that may be NULL, and lists; 0 where there are no levels.
    pub(super) most: u32,
    /// Lists around it.
    pub(super) lists: u32,
    /// Whether there are no values but NULL, however they are written.
    pub(super) is_null: bool,
}

impl Stored {
    /// Whether its values are in lists, so that there may be several in a row.
    pub fn is_in_lists(&self) -> bool {
        self.lists > 0
    }

    /// Whether its values are texts or bytes of any length.
    pub fn is_text(&self) -> bool {
        matches!(self.values, ArrowType::Text(_) | ArrowType::Binary(_))
    }
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    Fixed(usize),
}

impl Physical {
    /// Bytes of each value, where these are as many.
    pub(super) fn width(self) -> Option<usize> {
        match self {
            Physical::Boolean | Physical::ByteArray => None,
            Physical::Int32 | Physical::Float => Some(4),
            Physical::Int64 | Physical::Double => Some(8),
            Physical::Int96 => Some(INT96_BYTES),
            Physical::Fixed(bytes) => Some(bytes),
        }
    }

    /// Its number in footers.
    pub(super) fn number(self) -> i32 {
        match self {
            Physical::Boolean => 0,
            Physical::Int32 => 1,
            Physical::Int64 => 2,
            Physical::Int96 => 3,
            Physical::Float => 4,
            Physical::Double => 5,
            Physical::ByteArray => 6,
            Physical::Fixed(_) => 7,
        }
    }

    fn name(self) -> String {
        match self {
            Physical::Boolean => "BOOLEAN".to_owned(),
            Physical::Int32 => "INT32".to_owned(),
            Physical::Int64 => "INT64".to_owned(),
            Physical::Int96 => "INT96".to_owned(),
            Physical::Float => "FLOAT".to_owned(),
            Physical::Double => "DOUBLE".to_owned(),
            Physical::ByteArray => "BYTE_ARRAY".to_owned(),
            Physical::Fixed(bytes) => format!("FIXED_LEN_BYTE_ARRAY({bytes})"),
        }
    }
}

/// An element of the schema as the footer has it.
#[derive(Debug, Default)]
pub(super) struct Element {
    physical: Option<i32>,
    length: Option<i32>,
    repetition: Option<i32>,
    name: String,
    children: usize,
    converted: Option<i32>,
    scale: i32,
    precision: i32,
    logical: Option<Logical>,
}

impl Element {
    pub(super) fn decode(from: &mut Compact<'_>) -> ThriftResult<Self> {
        let mut element = Element::default();
        from.structure(|from, field, kind| {
            match field {
                1 => element.physical = Some(from.i32(kind)?),
                2 => element.length = Some(from.i32(kind)?),
                3 => element.repetition = Some(from.i32(kind)?),
                4 => {
                    let name = std::str::from_utf8(from.binary(kind)?);
                    let name = name.map_err(|_| Wrong::Bad("a name that is not UTF-8"))?;
                    element.name = name.to_owned();
                }
                5 => element.children = from.u32(kind)? as usize,
                6 => element.converted = Some(from.i32(kind)?),
                7 => element.scale = from.i32(kind)?,
                8 => element.precision = from.i32(kind)?,
                10 => element.logical = Some(logical_type(from, kind)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(element)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has no values of its own.
    pub(super) fn is_group(&self) -> bool {
        self.physical.is_none()
    }

    /// How many fields are within it.
    pub(super) fn children(&self) -> usize {
        self.children
    }

    /// Whether it may be NULL, and whether it may come several times.
    pub(super) fn repetition(&self) -> (bool, bool) {
        (self.repetition == Some(1), self.repetition == Some(2))
    }

    /// What the values mean: as the file says, or as it said before there were logical types.
    pub(super) fn logical(&self) -> Logical {
        match (self.logical, self.converted) {
            (Some(logical), _) => logical,
            (None, None) => Logical::None,
            (None, Some(converted)) => converted_type(converted, self.precision, self.scale),
        }
    }

    fn physical(&self) -> Result<Physical, Fault> {
        let damaged = |what: String| Fault::Damaged(format!("field {}: {what}", self.name));
        Ok(match self.physical {
            Some(0) => Physical::Boolean,
            Some(1) => Physical::Int32,
            Some(2) => Physical::Int64,
            Some(3) => Physical::Int96,
            Some(4) => Physical::Float,
            Some(5) => Physical::Double,
            Some(6) => Physical::ByteArray,
            Some(7) => {
                let length = self.length.and_then(|length| usize::try_from(length).ok());
                let length = length.filter(|length| *length > 0);
                Physical::Fixed(length.ok_or_else(|| damaged("values without a length".into()))?)
            }
            Some(other) => return Err(damaged(format!("values of the unknown type {other}"))),
            None => return Err(damaged("neither values nor fields within it".into())),
        })
    }
}

/// The fields that the elements of a schema are: those right below its root.
///
/// # Errors
/// `Damaged` when they are no tree, or a type does not go with its values.
pub(super) fn fields(elements: &[Element]) -> Result<Vec<ParquetField>, Fault> {
    let Some((root, rest)) = elements.split_first() else {
        return Err(Fault::Damaged("a schema without elements".to_owned()));
    };
    let mut tree = Tree { elements: rest, leaves: 0 };
    let mut fields = Vec::new();
    for _ in 0..root.children {
        tree.fields(&Above::default(), &mut fields)?;
    }
    match tree.elements.is_empty() {
        true => Ok(fields),
        false => Err(Fault::Damaged("a schema with more elements than fields".to_owned())),
    }
}

/// What is around an element.
#[derive(Debug, Clone, Default)]
struct Above {
    /// Names of the groups, with points between them.
    name: String,
    /// Groups that may be NULL.
    level: u32,
    depth: usize,
}

/// The elements that are left, depth first, and the leaves so far.
pub(super) struct Tree<'a> {
    elements: &'a [Element],
    leaves: usize,
}

impl<'a> Tree<'a> {
    /// The next element.
    pub(super) fn next(&mut self) -> Result<&'a Element, Fault> {
        let (first, rest) = self
            .elements
            .split_first()
            .ok_or_else(|| Fault::Damaged("a schema with fewer elements than fields".to_owned()))?;
        self.elements = rest;
        Ok(first)
    }

    /// Adds the fields of the next element: itself, or those within a group, whose names are `a.b`.
    fn fields(&mut self, above: &Above, out: &mut Vec<ParquetField>) -> Result<(), Fault> {
        let element = self.next()?;
        let optional = u32::from(element.repetition != Some(0));
        let name = match above.name.is_empty() {
            true => element.name.clone(),
            false => format!("{}.{}", above.name, element.name),
        };
        let here = Above { name, level: above.level + optional, depth: above.depth + 1 };
        if here.depth > DEPTH_MAX {
            return Err(Fault::Damaged(format!("fields within fields, over {DEPTH_MAX} deep")));
        }
        let is_group = element.children > 0 && element.repetition != Some(2);
        match element.logical() {
            Logical::None if is_group => {
                (0..element.children).try_for_each(|_| self.fields(&here, out))?;
            }
            _ if element.children > 0
                || element.physical.is_none()
                || element.repetition == Some(2) =>
            {
                out.push(self.nested(element, above.level, here)?);
            }
            _ => out.push(self.value(element, here)?),
        }
        Ok(())
    }

    /// A field of values.
    fn value(&mut self, element: &Element, here: Above) -> Result<ParquetField, Fault> {
        let leaf = self.leaves;
        self.leaves += 1;
        let physical = element.physical()?;
        let (meaning, values) = meaning(element, physical)?;
        let kind = match described(element.logical()) {
            None => physical.name(),
            Some(logical) => format!("{} ({logical})", physical.name()),
        };
        let stored = match meaning {
            ArrowType::Other(..) => None,
            _ => {
                let is_null = meaning == ArrowType::Null;
                Some(Stored { leaf, physical, values, most: here.level, lists: 0, is_null })
            }
        };
        let nullable = here.level > 0;
        Ok(ParquetField { name: here.name, nullable, kind, meaning, stored, nested: None })
    }

    /// A list or a map, or a group of which no more is known.
    fn nested(
        &mut self,
        element: &'a Element,
        level: u32,
        here: Above,
    ) -> Result<ParquetField, Fault> {
        let (elements, leaves) = (self.elements, self.leaves);
        let mut first = None;
        self.within(element, &here.name, 0, &mut first)?;
        let what = match element.logical() {
            Logical::List => "list",
            Logical::Map => "map",
            _ if element.repetition == Some(2) => "repeated field",
            _ => "group",
        };
        let kind = match first {
            Some((path, physical)) => format!("{what} with {path} {}", Physical::name(physical)),
            None => what.to_owned(),
        };
        let is_known = matches!(element.logical(), Logical::None | Logical::List | Logical::Map)
            || element.children == 0;
        let nested = match is_known {
            true => {
                let mut again = Tree { elements, leaves };
                nested_of(&mut again, element, level)?
            }
            false => None,
        };
        // Of a list the values are in its leaves: this tells what its rows are.
        let stored = nested
            .as_ref()
            .and_then(|nested| nested.leaves.first())
            .map(|first| Stored { values: ArrowType::Text(4), ..first.clone() });
        let nullable = level > 0 || element.repetition == Some(1) || nested.is_none();
        let meaning = match stored {
            Some(_) => ArrowType::Text(4),
            None => ArrowType::Other(what, Nesting::Buffers(0)),
        };
        let nested = nested.filter(|_| stored.is_some()).map(Arc::new);
        Ok(ParquetField { name: here.name, nullable, kind, meaning, stored, nested })
    }

    /// The values of an element that is a leaf; `None` when their type is none that is read.
    pub(super) fn leaf(
        &mut self,
        element: &Element,
        most: u32,
        lists: u32,
    ) -> Result<Option<Stored>, Fault> {
        let leaf = self.leaves;
        self.leaves += 1;
        let physical = element.physical()?;
        let (meaning, values) = meaning(element, physical)?;
        Ok(match meaning {
            ArrowType::Other(..) => None,
            _ => {
                let is_null = meaning == ArrowType::Null;
                Some(Stored { leaf, physical, values, most, lists, is_null })
            }
        })
    }

    fn within(
        &mut self,
        element: &Element,
        path: &str,
        depth: usize,
        first: &mut Option<(String, Physical)>,
    ) -> Result<(), Fault> {
        if depth > DEPTH_MAX {
            return Err(Fault::Damaged(format!("fields within fields, over {DEPTH_MAX} deep")));
        }
        if element.children == 0 {
            // A group without fields has no values either.
            if element.physical.is_some() {
                self.leaves += 1;
                let physical = element.physical()?;
                first.get_or_insert_with(|| (path.to_owned(), physical));
            }
            return Ok(());
        }
        for _ in 0..element.children {
            let child = self.next()?;
            let path = match first {
                None => format!("{path}.{}", child.name),
                Some(_) => String::new(),
            };
            self.within(child, &path, depth + 1, first)?;
        }
        Ok(())
    }
}

/// What the values of a field are, and the type of the rows that are read of it.
fn meaning(element: &Element, physical: Physical) -> Result<(ArrowType, ArrowType), Fault> {
    use Physical::{Boolean, ByteArray, Double, Fixed, Float, Int32, Int64, Int96};
    let logical = element.logical();
    let both = |of: ArrowType| Ok((of.clone(), of));
    let width = physical.width().unwrap_or(0);
    match (logical, physical) {
        (Logical::Null, _) => Ok((ArrowType::Null, plain(physical))),
        (Logical::None, _) => both(plain(physical)),
        (Logical::Decimal { precision, scale }, Int32 | Int64 | ByteArray | Fixed(_)) => {
            let wide = match physical {
                Int32 | Int64 => width,
                Fixed(bytes) if bytes <= 16 => 16,
                _ if precision <= 38 && physical == ByteArray => 16,
                _ => DECIMAL_BYTES_MAX,
            };
            match (u8::try_from(precision), i8::try_from(scale)) {
                (Ok(precision @ 1..=76), Ok(scale @ 0..)) if width <= DECIMAL_BYTES_MAX => {
                    both(ArrowType::Decimal { width: wide, precision, scale })
                }
                _ => Err(Fault::Damaged(format!(
                    "field {}: a decimal of {precision} digits, {scale} of them after the point",
                    element.name
                ))),
            }
        }
        (Logical::Date, Int32) => both(ArrowType::Date { width: 4 }),
        (Logical::Time { unit: Unit::Milli, .. }, Int32) => {
            both(ArrowType::Time { width: 4, unit: Unit::Milli })
        }
        (Logical::Time { unit: unit @ (Unit::Micro | Unit::Nano), .. }, Int64) => {
            both(ArrowType::Time { width: 8, unit })
        }
        (Logical::Timestamp { utc, unit }, Int64) => {
            both(ArrowType::Timestamp { unit, zone: utc.then(|| "UTC".to_owned()) })
        }
        (Logical::Integer { bits: bits @ (8 | 16 | 32), signed }, Int32) => {
            let values = ArrowType::Int { width: 4, signed };
            Ok((ArrowType::Int { width: bits as usize / 8, signed }, values))
        }
        (Logical::Integer { bits: 64, signed }, Int64) => both(ArrowType::Int { width: 8, signed }),
        (Logical::String | Logical::Enum | Logical::Json, ByteArray) => both(ArrowType::Text(4)),
        (Logical::String, Fixed(_)) => both(ArrowType::FixedBinary(width)),
        (Logical::Bson | Logical::Geometry, ByteArray) => both(ArrowType::Binary(4)),
        (Logical::Uuid, Fixed(16)) => both(ArrowType::Uuid),
        (Logical::Float16, Fixed(2)) => both(ArrowType::Float(2)),
        (Logical::Other(name), _) => {
            let none = ArrowType::Other(name, Nesting::Buffers(0));
            Ok((none.clone(), none))
        }
        (_, Boolean | Int32 | Int64 | Int96 | Float | Double | ByteArray | Fixed(_)) => {
            Err(Fault::Damaged(format!(
                "field {}: values of {} that are said to be {}",
                element.name,
                physical.name(),
                described(logical).unwrap_or_default()
            )))
        }
    }
}

/// What values are of which nothing more is said.
fn plain(physical: Physical) -> ArrowType {
    match physical {
        Physical::Boolean => ArrowType::Bool,
        Physical::Int32 => ArrowType::Int { width: 4, signed: true },
        Physical::Int64 => ArrowType::Int { width: 8, signed: true },
        Physical::Int96 => ArrowType::Int96,
        Physical::Float => ArrowType::Float(4),
        Physical::Double => ArrowType::Float(8),
        Physical::ByteArray => ArrowType::Binary(4),
        Physical::Fixed(bytes) => ArrowType::FixedBinary(bytes),
    }
}

impl ParquetField {
    /// Where all its values are.
    pub fn leaves(&self) -> &[Stored] {
        match (&self.nested, &self.stored) {
            (Some(nested), _) => &nested.leaves,
            (None, stored) => stored.as_slice(),
        }
    }

    /// The SQL type that holds each value of it.
    ///
    /// # Errors
    /// Why there is none, to follow the name of the type.
    pub fn sql_type(&self) -> Result<DataType, String> {
        match self.nested.as_deref().and_then(Nested::element) {
            Some(element) => Ok(DataType::List(element)),
            None => self.meaning.sql_type(),
        }
    }

    /// Whether its rows are lists of nothing but NULL.
    pub fn is_null_list(&self) -> bool {
        self.nested.as_deref().is_some_and(Nested::is_of_nulls)
    }
}
