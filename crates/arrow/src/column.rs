//! The columns that fields become: fields of structs are columns `a.b`, and lists and maps are one column each.

use coload_types::{DataType, ElementType};

use crate::fault::{Fault, Result};
use crate::schema::{ArrowSchema, Encoding, Field, TEXT_BYTES_MAX, take};
use crate::types::{ArrowType, Composite, Nesting};

/// A column of what a schema describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrowColumn {
    /// Its name: that of its field, and before it those of the structs around it, with points between them.
    pub name: String,
    /// Whether NULL may stand in it, or in a struct around it.
    pub nullable: bool,
    /// What its field is, in the words of Arrow.
    pub kind: String,
    /// The type of the rows that are read of it; `Other` for those that no column holds.
    pub values: ArrowType,
    /// The type of the elements of lists, where a column has such; their rows are texts of JSON that are read again.
    pub element: Option<ElementType>,
    /// Whether its rows are lists of nothing but NULL.
    pub is_null_list: bool,
    /// How they are encoded.
    pub encoding: Encoding,
    /// Numbers of the dictionaries that its values stand in.
    pub dictionaries: Vec<i64>,
    /// The field in the schema, and the fields within it that lead to the column's.
    pub(crate) path: Vec<usize>,
}

impl ArrowColumn {
    /// The SQL type that holds each of its rows.
    ///
    /// # Errors
    /// Why there is none, to follow the name of the type.
    pub fn sql_type(&self) -> std::result::Result<DataType, String> {
        self.element.map_or_else(|| self.values.sql_type(), |element| Ok(DataType::List(element)))
    }

    /// Whether its rows can be read.
    pub fn is_readable(&self) -> bool {
        !matches!(self.values, ArrowType::Other(..))
    }

    /// The field of the schema that it is of.
    pub fn field(&self) -> usize {
        self.path[0]
    }

    /// The field that its rows are of.
    pub(crate) fn inner<'s>(&self, schema: &'s ArrowSchema) -> Option<&'s Field> {
        let (first, rest) = self.path.split_first()?;
        rest.iter().try_fold(schema.fields.get(*first)?, |field, child| field.children.get(*child))
    }

    /// Whether its rows are lists or maps, which are written as texts.
    pub fn is_written(&self, schema: &ArrowSchema) -> bool {
        self.inner(schema).is_some_and(Field::is_composite)
    }
}

/// The type of the rows of a list or a map: texts of JSON, which `nested::write_lists` writes.
pub(crate) fn values_of_list(_field: &Field) -> ArrowType {
    ArrowType::Text(4)
}

impl Field {
    /// Whether its rows have others within them, and stand as they are.
    pub(crate) fn is_composite(&self) -> bool {
        matches!(self.values, ArrowType::Composite(_)) && self.encoding == Encoding::Plain
    }

    /// The type of the elements, if its rows are lists of values of which a column has lists.
    fn element(&self) -> Option<ElementType> {
        let is_list = match self.values {
            ArrowType::Composite(composite) => {
                matches!(
                    composite,
                    Composite::List(_) | Composite::ListView(_) | Composite::FixedList(_)
                )
            }
            _ => false,
        };
        let [item] = &self.children[..] else { return None };
        let is_flat = is_list
            && self.encoding == Encoding::Plain
            && !matches!(item.encoding, Encoding::Runs(_));
        match &item.values {
            _ if !is_flat => None,
            ArrowType::Composite(_) | ArrowType::Other(..) => None,
            values => ElementType::of(values.sql_type().ok()?),
        }
    }

    /// Whether its rows are lists of nothing but NULL.
    fn is_null_list(&self) -> bool {
        self.element().is_some() && self.children.iter().all(|item| item.values == ArrowType::Null)
    }

    /// The type of the rows that are read of it.
    pub fn values_read(&self) -> ArrowType {
        match self.values {
            ArrowType::Composite(_) => values_of_list(self),
            _ => self.values.clone(),
        }
    }

    /// Whether its rows, and those within them, can be read.
    fn is_readable(&self) -> bool {
        match (self.encoding, &self.values) {
            (_, ArrowType::Other(..)) => false,
            (Encoding::Runs(_), _) => {
                self.children.get(1).is_some_and(|of| of.is_readable() && !of.is_composite())
            }
            (_, ArrowType::Composite(_)) => self.fields_within().iter().all(Field::is_readable),
            _ => true,
        }
    }

    /// Numbers of the dictionaries that its values and those within them stand in.
    pub fn dictionaries(&self) -> Vec<i64> {
        fn add(field: &Field, out: &mut Vec<i64>) {
            if let Encoding::Dictionary { id, .. } = field.encoding
                && !out.contains(&id)
            {
                out.push(id);
            }
            field.children.iter().for_each(|child| add(child, out));
        }
        let mut out = Vec::new();
        add(self, &mut out);
        out
    }
}

impl ArrowSchema {
    /// The columns that its fields become, in their order.
    ///
    /// # Errors
    /// `Unknown` when their names take more than they may: those of structs stand before each field within them.
    pub fn columns(&self) -> Result<Vec<ArrowColumn>> {
        let mut making = Making { columns: Vec::new(), left: TEXT_BYTES_MAX };
        for (number, field) in self.fields.iter().enumerate() {
            let above = Above { name: "", nullable: false, path: &[] };
            making.add(field, number, &above)?;
        }
        Ok(making.columns)
    }
}

/// What is around a field.
struct Above<'a> {
    name: &'a str,
    nullable: bool,
    path: &'a [usize],
}

struct Making {
    columns: Vec<ArrowColumn>,
    /// Bytes that the columns may still take.
    left: usize,
}

impl Making {
    fn add(&mut self, field: &Field, number: usize, above: &Above<'_>) -> Result<()> {
        let name = match above.name.is_empty() {
            true => field.name.clone(),
            false => format!("{}.{}", above.name, field.name),
        };
        take(&mut self.left, name.len() + size_of::<ArrowColumn>())?;
        let nullable = above.nullable || field.nullable;
        let path: Vec<usize> = above.path.iter().copied().chain([number]).collect();
        let is_struct = field.values == ArrowType::Composite(Composite::Struct)
            && field.encoding == Encoding::Plain;
        if is_struct && !field.children.is_empty() {
            let here = Above { name: &name, nullable, path: &path };
            let mut children = field.children.iter().enumerate();
            return children.try_for_each(|(number, child)| self.add(child, number, &here));
        }
        let values = match field.is_readable() && !is_struct {
            true => field.values_read(),
            false => ArrowType::Other("what no column holds", Nesting::Buffers(0)),
        };
        self.columns.push(ArrowColumn {
            name,
            nullable,
            kind: field.to_string(),
            values,
            element: field.element(),
            is_null_list: field.is_null_list(),
            encoding: field.encoding,
            dictionaries: field.dictionaries(),
            path,
        });
        Ok(())
    }
}

/// What is told of a field that is none of the kind that was expected.
pub(crate) fn no_such_field(number: usize) -> Fault {
    Fault::damaged(format!("field {number} is not there"))
}
