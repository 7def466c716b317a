//! Columns whose values no field of a record tells: a constant, a default, the name of the input, the time of the load.
//!
//! ```text
//!   record   a b         read:   a, b
//!   table    a b c d     c is a constant, d the name of the input
//! ```

use coload_ddl::Schema;
use coload_types::calendar::DAY_MICROS;
use coload_types::{DataType, Error, Result, Value, parse_value};

/// Where the values of a column of the table come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnFrom {
    /// A column that is read, or that a program makes, by its number.
    Read(usize),
    /// The same in all rows; NULL if `None`.
    Constant(Option<Value>),
    /// The name of the input that the record comes from.
    InputName,
    /// The value of this key in the path of the input that the record comes from, as in `year=2026/a.csv`.
    Partition(Box<str>),
    /// When the load began, the same in all rows.
    LoadTime,
}

/// An instant in UTC, microseconds since the epoch, as a value of a type; `None` if it holds none.
pub fn load_time(epoch_us: i64, data_type: DataType) -> Option<Value> {
    match data_type {
        DataType::Timestamp | DataType::TimestampTz => Some(Value::Int(epoch_us)),
        DataType::Date => Some(Value::Int(epoch_us.div_euclid(DAY_MICROS))),
        DataType::Char(_) | DataType::Varchar(_) => {
            let text = Value::Int(epoch_us).display(DataType::TimestampTz);
            parse_value(text.as_bytes(), data_type).ok()
        }
        DataType::Boolean | DataType::Time | DataType::Binary(_) | DataType::Uuid => None,
        DataType::List(_) => None,
        DataType::SmallInt | DataType::Integer | DataType::BigInt => None,
        DataType::Decimal { .. } | DataType::Real | DataType::Double => None,
    }
}

/// How the rows of a table are made of the columns that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    /// Columns that are read from the text.
    pub read: Schema,
    /// Where each column of the table comes from.
    pub columns: Vec<ColumnFrom>,
}

impl Derivation {
    /// The columns that are read, with the types that the columns of `table` have which they are.
    ///
    /// # Errors
    /// None that a schema with the same names could have.
    pub fn read_as(&self, table: &Schema) -> Result<Schema> {
        let mut read = self.read.columns().to_vec();
        for (from, column) in self.columns.iter().zip(table.columns()) {
            if let ColumnFrom::Read(index) = from
                && let Some(read) = read.get_mut(*index)
            {
                read.data_type = column.data_type;
            }
        }
        Schema::new(read)
    }

    /// Checks that the columns are those of `table`. `made` are the columns that a program makes of those
    /// that are read, if there is one.
    ///
    /// # Errors
    /// `Invalid` when a column cannot be what it is said to be.
    pub fn check(&self, table: &Schema, made: Option<&Schema>) -> Result<()> {
        let read = made.unwrap_or(&self.read);
        let wrong = |what: String| Err(Error::Invalid(what));
        if self.columns.len() != table.len() {
            return wrong(format!("{} of {} columns are given", self.columns.len(), table.len()));
        }
        for (column, from) in table.columns().iter().zip(&self.columns) {
            let name = &column.name;
            let fits = match from {
                ColumnFrom::Read(index) => {
                    read.columns().get(*index).is_some_and(|c| c.data_type == column.data_type)
                }
                ColumnFrom::Constant(Some(value)) => {
                    value.physical() == column.data_type.physical()
                }
                ColumnFrom::Constant(None) if !column.nullable => {
                    return wrong(format!("column {name} is NOT NULL, and no value is given"));
                }
                ColumnFrom::Constant(None) => true,
                ColumnFrom::InputName => column.data_type.is_text(),
                // Who knows the inputs checks the values.
                ColumnFrom::Partition(_) => true,
                ColumnFrom::LoadTime => {
                    use DataType::{Date, Timestamp, TimestampTz};
                    column.data_type.is_text()
                        || matches!(column.data_type, Timestamp | TimestampTz | Date)
                }
            };
            if !fits {
                return wrong(format!(
                    "column {name} is {}, which {from:?} is not",
                    column.data_type
                ));
            }
        }
        Ok(())
    }
}
