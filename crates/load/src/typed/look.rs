//! What is known of an input whose records have types before it is loaded.

use coload_types::DataType;

use crate::request::InputForm;

/// An input whose records have types.
#[derive(Debug, Clone)]
pub struct TypedInput {
    /// What it is.
    pub kind: TypedKind,
    /// Its fields in their order.
    pub fields: Vec<TypedField>,
    /// Bytes of a record in memory on average, if they are known.
    pub record_bytes: Option<usize>,
}

/// What an input is whose records have types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedKind {
    /// A file of Arrow, with a footer.
    ArrowFile,
    /// Messages of Arrow, one after the other.
    ArrowStream,
    /// A file of Parquet.
    Parquet,
    /// A file of Avro, or a stream of one.
    Avro,
    /// Rows of a table or a query of an engine of this name.
    Rows(&'static str),
}

impl TypedKind {
    /// The form that a load reads.
    pub fn form(self) -> InputForm {
        match self {
            TypedKind::ArrowFile | TypedKind::ArrowStream => InputForm::Arrow,
            TypedKind::Parquet => InputForm::Parquet,
            TypedKind::Avro => InputForm::Avro,
            TypedKind::Rows(_) => InputForm::Rows,
        }
    }

    /// What it is, for who asks.
    pub fn told(self) -> &'static str {
        match self {
            TypedKind::ArrowFile => "Arrow IPC (file)",
            TypedKind::ArrowStream => "Arrow IPC (stream)",
            TypedKind::Parquet => "Parquet",
            TypedKind::Avro => "Avro",
            TypedKind::Rows(engine) => engine,
        }
    }
}

/// A field of such an input.
#[derive(Debug, Clone)]
pub struct TypedField {
    /// Name of the field; may be empty.
    pub name: String,
    /// Whether NULL may stand in it.
    pub nullable: bool,
    /// What its values are, in the words of its format.
    pub kind: String,
    /// The SQL type that holds each of them, or why there is none.
    pub data_type: Result<DataType, String>,
    /// Whether its values can be read into some column.
    pub is_readable: bool,
    /// Whether it holds nothing but NULL, whatever its type.
    pub is_null: bool,
    /// Whether it holds lists of nothing but NULL, which are lists of any type.
    pub is_null_list: bool,
}
