//! The fields of a schema.

use std::fmt;

use arrow_ipc as ipc;

use crate::fault::{Fault, Result};
use crate::types::{ArrowType, Composite, Nesting, Unit};

/// Deepest nesting of fields that is read; the verifier of the metadata allows little more.
const DEPTH_MAX: usize = 32;
/// Most bytes of names and zones. Fields of hostile metadata may share one, and so may fields share those within them: what
/// is decoded has many times the bytes of the metadata then.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;
/// Bytes that a field counts beside its texts.
const FIELD_BYTES: usize = size_of::<Field>();
/// Where the name of an extension stands in the metadata of a field.
const EXTENSION: &str = "ARROW:extension:name";

/// The fields of a file or stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrowSchema {
    /// Fields in their order.
    pub fields: Vec<Field>,
}

/// A field: a column, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the field; may be empty.
    pub name: String,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// What its values are.
    pub values: ArrowType,
    /// How they are encoded.
    pub encoding: Encoding,
    /// Fields within it; of runs, their ends and their values.
    pub children: Vec<Field>,
}

/// How the values of a field stand in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Plain,
    /// Places in a dictionary.
    Dictionary {
        /// Number of the dictionary.
        id: i64,
        /// How the places are written.
        index: IntType,
    },
    /// Ends of runs, of this type, and a value for each.
    Runs(IntType),
}

/// An integer as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntType {
    /// Bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// Whether it has a sign.
    pub signed: bool,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.encoding, &self.children[..]) {
            (Encoding::Plain, _) => self.write_values(f),
            (Encoding::Dictionary { .. }, _) => {
                f.write_str("dictionary<")?;
                self.write_values(f)?;
                f.write_str(">")
            }
            (Encoding::Runs(_), [_, values]) => write!(f, "run_end_encoded<{values}>"),
            (Encoding::Runs(_), _) => write!(f, "run_end_encoded<{}>", self.values),
        }
    }
}

impl Field {
    /// Writes what its values are, whatever they are encoded by.
    fn write_values(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArrowType::Composite(of) = self.values else { return write!(f, "{}", self.values) };
        write!(f, "{}<", self.values)?;
        let within = self.fields_within();
        for (number, field) in within.iter().enumerate() {
            if number > 0 {
                f.write_str(", ")?;
            }
            match of {
                Composite::Struct => write!(f, "{}: {field}", field.name)?,
                _ => write!(f, "{field}")?,
            }
        }
        f.write_str(">")?;
        match of {
            Composite::FixedList(items) => write!(f, "[{items}]"),
            _ => Ok(()),
        }
    }

    /// Fields whose values are within its own: of a map keys and values.
    pub(crate) fn fields_within(&self) -> &[Field] {
        match (&self.values, self.encoding) {
            (
                ArrowType::Composite(Composite::Map),
                Encoding::Plain | Encoding::Dictionary { .. },
            ) => self.children.first().map_or(&[], |entries| &entries.children),
            _ => &self.children,
        }
    }
}

impl Field {
    /// The field that the values of its dictionary are of.
    fn of_dictionary(&self) -> Self {
        Field { encoding: Encoding::Plain, ..self.clone() }
    }

    /// The field whose values are in the dictionary of this number: this one, or one within it.
    fn find_dictionary(&self, number: i64) -> Option<Self> {
        match self.encoding {
            Encoding::Dictionary { id, .. } if id == number => Some(self.of_dictionary()),
            _ => self.children.iter().find_map(|child| child.find_dictionary(number)),
        }
    }
}

impl ArrowSchema {
    /// The field that the values of a dictionary are of.
    pub fn field_of_dictionary(&self, id: i64) -> Option<Field> {
        self.fields.iter().find_map(|field| field.find_dictionary(id))
    }

    /// The schema that metadata tell.
    ///
    /// # Errors
    /// `Damaged` when they contradict themselves, `Unknown` where bytes are in another order.
    pub(crate) fn decode(schema: ipc::Schema<'_>) -> Result<Self> {
        if schema.endianness() != ipc::Endianness::Little {
            return Err(Fault::Unknown(
                "the Arrow data have their bytes in the other order (big-endian), which is not read".to_owned(),
            ));
        }
        let fields = schema.fields().ok_or_else(|| Fault::damaged("a schema without fields"))?;
        let mut left = TEXT_BYTES_MAX;
        let fields = fields.iter().map(|field| decode_field(field, 0, &mut left));
        Ok(ArrowSchema { fields: fields.collect::<Result<_>>()? })
    }
}

/// A field, whose texts may have so many bytes still.
fn decode_field(field: ipc::Field<'_>, depth: usize, left: &mut usize) -> Result<Field> {
    if depth > DEPTH_MAX {
        return Err(Fault::damaged(format!("fields within fields, over {DEPTH_MAX} deep")));
    }
    let zone = field.type_as_timestamp().and_then(|timestamp| timestamp.timezone());
    let texts = [field.name(), zone].into_iter().flatten().map(str::len).sum::<usize>();
    take(left, FIELD_BYTES + texts)?;
    let children = field.children().into_iter().flat_map(|children| children.iter());
    let children =
        children.map(|child| decode_field(child, depth + 1, left)).collect::<Result<Vec<_>>>()?;
    let name = field.name().unwrap_or_default().to_owned();
    let mut values = decode_type(field, &children)?;
    let mut encoding = Encoding::Plain;
    if field.type_type() == ipc::Type::RunEndEncoded {
        let [ends, runs] = &children[..] else {
            return Err(Fault::damaged(format!(
                "field {name}: runs with {} children",
                children.len()
            )));
        };
        let (ArrowType::Int { width: width @ (2 | 4 | 8), signed: true }, Encoding::Plain) =
            (&ends.values, ends.encoding)
        else {
            return Err(Fault::damaged(format!("field {name}: ends of runs that are {ends}")));
        };
        if let ArrowType::Timestamp { zone: Some(zone), .. } = &runs.values {
            take(left, zone.len())?;
        }
        values = runs.values.clone();
        encoding = Encoding::Runs(IntType { width: *width, signed: true });
    }
    if let ArrowType::Composite(of) = values
        && encoding == Encoding::Plain
    {
        check_children(&name, of, &children)?;
    }
    if let Some(dictionary) = field.dictionary() {
        if children.iter().any(|child| child.find_dictionary(dictionary.id()).is_some()) {
            let text = format!("field {name}: values of dictionary {} within it", dictionary.id());
            return Err(Fault::damaged(text));
        }
        let index = match dictionary.indexType() {
            None => IntType { width: 4, signed: true },
            Some(int) => int_type(int)?,
        };
        encoding = Encoding::Dictionary { id: dictionary.id(), index };
    }
    let extension = field.custom_metadata().and_then(|pairs| {
        let own = pairs.iter().find(|pair| pair.key() == Some(EXTENSION));
        own.and_then(|pair| pair.value().map(str::to_owned))
    });
    if extension.as_deref() == Some("arrow.uuid") && values == ArrowType::FixedBinary(16) {
        values = ArrowType::Uuid;
    }
    Ok(Field { name, nullable: field.nullable(), values, encoding, children })
}

/// Checks that a value can be made of the fields within it.
fn check_children(name: &str, of: Composite, children: &[Field]) -> Result<()> {
    let is_right = match (of, children) {
        (Composite::Struct, _) => true,
        (Composite::Map, [entries]) => {
            entries.values == ArrowType::Composite(Composite::Struct)
                && entries.encoding == Encoding::Plain
                && entries.children.len() == 2
        }
        (_, children) => children.len() == 1,
    };
    match is_right {
        true => Ok(()),
        false => {
            let of = ArrowType::Composite(of);
            let text = format!("field {name}: a {of} with other fields than it has");
            Err(Fault::damaged(text))
        }
    }
}

pub(crate) fn take(left: &mut usize, bytes: usize) -> Result<()> {
    *left = left.checked_sub(bytes).ok_or_else(|| {
        Fault::Unknown(format!(
            "the fields of the Arrow data take over {TEXT_BYTES_MAX} bytes with their names, and no more are read"
        ))
    })?;
    Ok(())
}

fn int_type(int: ipc::Int<'_>) -> Result<IntType> {
    match int.bitWidth() {
        bits @ (8 | 16 | 32 | 64) => {
            Ok(IntType { width: bits as usize / 8, signed: int.is_signed() })
        }
        bits => Err(Fault::damaged(format!("an integer of {bits} bits"))),
    }
}

fn unit(unit: ipc::TimeUnit) -> Result<Unit> {
    match unit {
        ipc::TimeUnit::SECOND => Ok(Unit::Second),
        ipc::TimeUnit::MILLISECOND => Ok(Unit::Milli),
        ipc::TimeUnit::MICROSECOND => Ok(Unit::Micro),
        ipc::TimeUnit::NANOSECOND => Ok(Unit::Nano),
        other => Err(Fault::damaged(format!("a unit of time {other:?}"))),
    }
}

/// The type of a field, whatever its dictionary. What is not known is damage: a later version of the format may have types
/// whose buffers cannot be counted.
fn decode_type(field: ipc::Field<'_>, children: &[Field]) -> Result<ArrowType> {
    use Nesting::{Buffers, Union};
    let missing = || Fault::damaged("a type without its description");
    Ok(match field.type_type() {
        ipc::Type::Null => ArrowType::Null,
        ipc::Type::Bool => ArrowType::Bool,
        ipc::Type::Int => {
            let IntType { width, signed } = int_type(field.type_as_int().ok_or_else(missing)?)?;
            ArrowType::Int { width, signed }
        }
        ipc::Type::FloatingPoint => {
            match field.type_as_floating_point().ok_or_else(missing)?.precision() {
                ipc::Precision::HALF => ArrowType::Float(2),
                ipc::Precision::SINGLE => ArrowType::Float(4),
                ipc::Precision::DOUBLE => ArrowType::Float(8),
                other => return Err(Fault::damaged(format!("a float {other:?}"))),
            }
        }
        ipc::Type::Decimal => {
            let decimal = field.type_as_decimal().ok_or_else(missing)?;
            let (bits, precision, scale) =
                (decimal.bitWidth(), decimal.precision(), decimal.scale());
            match (bits, u8::try_from(precision), i8::try_from(scale)) {
                (32 | 64 | 128 | 256, Ok(precision @ 1..=76), Ok(scale)) => {
                    ArrowType::Decimal { width: bits as usize / 8, precision, scale }
                }
                _ => {
                    let text =
                        format!("a decimal of {bits} bits, {precision} digits, scale {scale}");
                    return Err(Fault::damaged(text));
                }
            }
        }
        ipc::Type::Date => match field.type_as_date().ok_or_else(missing)?.unit() {
            ipc::DateUnit::DAY => ArrowType::Date { width: 4 },
            ipc::DateUnit::MILLISECOND => ArrowType::Date { width: 8 },
            other => return Err(Fault::damaged(format!("a date in {other:?}"))),
        },
        ipc::Type::Time => {
            let time = field.type_as_time().ok_or_else(missing)?;
            match (time.bitWidth(), unit(time.unit())?) {
                (32, unit @ (Unit::Second | Unit::Milli)) => ArrowType::Time { width: 4, unit },
                (64, unit @ (Unit::Micro | Unit::Nano)) => ArrowType::Time { width: 8, unit },
                (bits, unit) => {
                    return Err(Fault::damaged(format!("a time of {bits} bits in {unit:?}")));
                }
            }
        }
        ipc::Type::Timestamp => {
            let timestamp = field.type_as_timestamp().ok_or_else(missing)?;
            let zone = timestamp.timezone().filter(|zone| !zone.is_empty()).map(str::to_owned);
            ArrowType::Timestamp { unit: unit(timestamp.unit())?, zone }
        }
        ipc::Type::Utf8 => ArrowType::Text(4),
        ipc::Type::LargeUtf8 => ArrowType::Text(8),
        ipc::Type::Utf8View => ArrowType::TextView,
        ipc::Type::Binary => ArrowType::Binary(4),
        ipc::Type::LargeBinary => ArrowType::Binary(8),
        ipc::Type::BinaryView => ArrowType::BinaryView,
        ipc::Type::FixedSizeBinary => {
            let width = field.type_as_fixed_size_binary().ok_or_else(missing)?.byteWidth();
            let width = usize::try_from(width);
            ArrowType::FixedBinary(width.map_err(|_| Fault::damaged("a width below 0"))?)
        }
        ipc::Type::Interval => ArrowType::Other("interval", Buffers(2)),
        ipc::Type::Duration => ArrowType::Other("duration", Buffers(2)),
        ipc::Type::List => ArrowType::Composite(Composite::List(4)),
        ipc::Type::LargeList => ArrowType::Composite(Composite::List(8)),
        ipc::Type::ListView => ArrowType::Composite(Composite::ListView(4)),
        ipc::Type::LargeListView => ArrowType::Composite(Composite::ListView(8)),
        ipc::Type::FixedSizeList => {
            let items = field.type_as_fixed_size_list().ok_or_else(missing)?.listSize();
            let items = usize::try_from(items);
            let items = items.map_err(|_| Fault::damaged("a list of fewer than 0 items"))?;
            ArrowType::Composite(Composite::FixedList(items))
        }
        ipc::Type::Struct_ => ArrowType::Composite(Composite::Struct),
        ipc::Type::Map => ArrowType::Composite(Composite::Map),
        ipc::Type::Union => match field.type_as_union().ok_or_else(missing)?.mode() {
            ipc::UnionMode::Sparse => ArrowType::Other("sparse_union", Union(1)),
            ipc::UnionMode::Dense => ArrowType::Other("dense_union", Union(2)),
            other => return Err(Fault::damaged(format!("a union {other:?}"))),
        },
        // The type of the values takes its place.
        ipc::Type::RunEndEncoded if children.len() == 2 => ArrowType::Null,
        other => {
            return Err(Fault::Unknown(format!(
                "field {} is {other:?}, a type that this version does not know",
                field.name().unwrap_or_default()
            )));
        }
    })
}
