//! The fields of a file: names, what their values are, and how these are stored.

use coload_arrow::{ArrowType, Fault, Nesting, Unit};
use coload_types::DataType;

use super::logical::{Logical, converted_type, described, logical_type};
use super::thrift::{Compact, Result as ThriftResult, Wrong};

/// Deepest nesting of groups.
const DEPTH_MAX: usize = 64;
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
    /// Where its values are; `None` for groups and lists.
    pub stored: Option<Stored>,
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
    /// Whether NULL may stand in it, so that there are levels.
    pub(super) optional: bool,
}

impl Stored {
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

    /// What the values mean: as the file says, or as it said before there were logical types.
    fn logical(&self) -> Logical {
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
        fields.push(tree.field()?);
    }
    match tree.elements.is_empty() {
        true => Ok(fields),
        false => Err(Fault::Damaged("a schema with more elements than fields".to_owned())),
    }
}

/// The elements that are left, depth first, and the leaves so far.
struct Tree<'a> {
    elements: &'a [Element],
    leaves: usize,
}

impl<'a> Tree<'a> {
    fn next(&mut self) -> Result<&'a Element, Fault> {
        let (first, rest) = self
            .elements
            .split_first()
            .ok_or_else(|| Fault::Damaged("a schema with fewer elements than fields".to_owned()))?;
        self.elements = rest;
        Ok(first)
    }

    fn field(&mut self) -> Result<ParquetField, Fault> {
        let element = self.next()?;
        let nullable = element.repetition != Some(0);
        if element.children > 0 || element.physical.is_none() || element.repetition == Some(2) {
            return self.nested(element);
        }
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
            _ => Some(Stored { leaf, physical, values, optional: nullable }),
        };
        Ok(ParquetField { name: element.name.clone(), nullable, kind, meaning, stored })
    }

    /// A group or a list, with the first values within it.
    fn nested(&mut self, element: &Element) -> Result<ParquetField, Fault> {
        let mut first = None;
        self.within(element, &element.name, 0, &mut first)?;
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
        Ok(ParquetField {
            name: element.name.clone(),
            nullable: element.repetition != Some(0),
            kind,
            meaning: ArrowType::Other(what, Nesting::Buffers(0)),
            stored: None,
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
    /// The SQL type that holds each value of it.
    ///
    /// # Errors
    /// Why there is none, to follow the name of the type.
    pub fn sql_type(&self) -> Result<DataType, String> {
        self.meaning.sql_type()
    }
}
