//! Inputs whose records have types, joined by the names of their fields.
//!
//! ```text
//!   a.parquet   id INTEGER, price DECIMAL(9,2)       columns   id BIGINT   price DECIMAL(9,2)   note VARCHAR
//!   b.parquet   note VARCHAR, ID BIGINT                        id          NULL                 note
//! ```
//!
//! The columns are those of all inputs in the order in which they first appear, each of the type that holds the values of all.

use std::collections::HashMap;

use coload_ddl::{Schema, quote_name};
use coload_load::{RefusedColumn, TypedField, TypedInput};
use coload_source::{Dialect, Sniffed};
use coload_types::{Column, DataType, Error, Result};
use coload_wire::FieldsByInput;

use crate::mapping::Mapping;
use crate::plan::Reader;
use crate::typed_inputs::names_of_fields;
use crate::union::Union;

/// Inputs that are joined.
#[derive(Debug, Default)]
pub struct TypedUnion {
    union: Union,
    /// What is known of each column.
    types: Vec<Common>,
    /// The header of each input.
    of_input: Vec<u32>,
    /// Headers by the names of their fields, and by what the fields are.
    by_names: HashMap<Vec<String>, usize>,
    by_fields: HashMap<Vec<(String, String, bool)>, usize>,
}

/// What the fields of a column have in common.
#[derive(Debug, Default)]
struct Common {
    /// The types that they have, each with the first input that has it; those of fields that hold nothing but NULL do not count.
    met: Vec<(DataType, String)>,
    /// The type that holds the values of all.
    data_type: Option<DataType>,
    /// The first input whose field is of lists of nothing but NULL, and that field: any type of lists holds them.
    null_list: Option<(String, TypedField)>,
    /// Whether NULL may stand in one of them.
    nullable: bool,
    /// Why there is no such type.
    wrong: Option<Wrong>,
}

/// Why a column cannot be read as it is.
#[derive(Debug)]
struct Wrong {
    /// What a field is.
    kind: String,
    text: String,
    /// A type with which it can be read, if there is one.
    other: Option<DataType>,
}

impl TypedUnion {
    /// Adds the fields of the next input.
    ///
    /// # Errors
    /// `Invalid` when they are no columns, `Limit` when inputs have too many different ones.
    pub fn add(&mut self, input: &str, found: &TypedInput) -> Result<()> {
        let names = names_of_fields(found);
        let small = || names.iter().map(|name| name.to_lowercase());
        let of = |(name, field): (String, &TypedField)| (name, field.kind.clone(), field.nullable);
        let key: Vec<_> = small().zip(&found.fields).map(of).collect();
        let header = match self.by_fields.get(&key) {
            Some(header) => *header,
            None => {
                let by_names: Vec<String> = small().collect();
                let header = match self.by_names.get(&by_names) {
                    Some(header) => *header,
                    None => {
                        // Their types are told apart.
                        let columns = names.iter().map(|n| Column::new(n, DataType::Varchar(None)));
                        let own = Schema::new(columns.collect())?;
                        self.union.add_header(&own, input)?
                    }
                };
                self.by_names.insert(by_names, header);
                self.types.resize_with(self.union.columns.len(), Common::default);
                for (column, field) in self.union.columns_of(header).iter().zip(&found.fields) {
                    self.types[*column].add(input, field);
                }
                self.by_fields.insert(key, header);
                header
            }
        };
        self.of_input.push(header as u32);
        Ok(())
    }

    /// The columns of all inputs, in the form in which those of text are found; those of `given` have the types that are given.
    ///
    /// # Errors
    /// `Invalid` when a type is given for a column that no input has.
    pub fn sniffed(&mut self, given: &[Column], found: &TypedInput) -> Result<Sniffed> {
        self.types.iter_mut().for_each(Common::settle);
        for typed in given {
            let at = self.union.position(&typed.name)?;
            self.types[at].give(typed.data_type);
        }
        let mut told = Vec::new();
        for (number, common) in self.types.iter().enumerate() {
            let nullable = common.nullable || self.union.is_lacking(number);
            let column = &mut self.union.columns[number];
            column.data_type = common.data_type.unwrap_or(DataType::Varchar(None));
            column.nullable = nullable;
            if common.met.len() > 1 {
                let met =
                    common.met.iter().map(|(data_type, input)| format!("{data_type} in {input}"));
                let met: Vec<String> = met.collect();
                told.push(format!("{} {} ({})", column.name, column.data_type, met.join(", ")));
            }
        }
        let kinds = found.fields.iter().map(|field| format!("{} {}", field.name, field.kind));
        let kinds: Vec<String> = kinds.collect();
        let mut evidence = vec![format!("{}, fields: {}", found.kind.told(), kinds.join(", "))];
        if !told.is_empty() {
            evidence.push(format!("columns whose types differ: {}", told.join(", ")));
        }
        let schema = Schema::new(self.union.columns.clone())?;
        Ok(Sniffed { dialect: Dialect::default(), schema, forms: Vec::new(), evidence })
    }

    /// Columns that cannot be read, by their numbers; where the types of all are given, only those that no type helps.
    pub fn refused(&self, reader: Reader, are_given: bool) -> Vec<RefusedColumn> {
        let columns = self.types.iter().zip(&self.union.columns).enumerate();
        let of = |(column, (common, Column { name, .. })): (usize, (&Common, &Column))| {
            let Wrong { kind, text, other } = common.wrong.as_ref()?;
            if are_given && other.is_some() {
                return None;
            }
            let name = quote_name(name);
            let cure = match (reader, other) {
                (Reader::Load, Some(other)) => format!("give it one: --types '{name} {other}'"),
                (Reader::Load, None) => {
                    "name the columns that are to be loaded: --columns".to_owned()
                }
                (_, Some(other)) => format!("give it one: types => '{name} {other}'"),
                (_, None) => format!("leave it out, as in SELECT * EXCLUDE ({name})"),
            };
            let text = format!("{text} ({cure})");
            Some(RefusedColumn { column, kind: kind.clone(), text })
        };
        columns.filter_map(of).collect()
    }

    /// The fields of each input, and the numbers of the columns that are read; see [`Union::fields`].
    ///
    /// # Errors
    /// Those of [`Union::fields`].
    pub fn fields(
        self,
        first: &str,
        asked: (Option<&Mapping>, Option<Schema>),
        sniffed: &mut Sniffed,
    ) -> Result<(FieldsByInput, Vec<usize>)> {
        self.union.fields(self.of_input, first, asked, sniffed)
    }
}

impl Common {
    fn add(&mut self, input: &str, field: &TypedField) {
        self.nullable |= field.nullable || field.is_null;
        let data_type = match &field.data_type {
            _ if field.is_null => return,
            Ok(_) if field.is_null_list => {
                self.null_list.get_or_insert_with(|| (input.to_owned(), field.clone()));
                return;
            }
            Ok(data_type) if field.is_readable => *data_type,
            why => {
                let why = why.as_ref().err().map_or("which no column holds", |why| why.as_str());
                let text = format!("{input}: field {} is {}, {why}", field.name, field.kind);
                let other = field.is_readable.then_some(DataType::Double);
                self.refuse(Wrong { kind: field.kind.clone(), text, other });
                return;
            }
        };
        if self.met.iter().all(|(met, _)| *met != data_type) {
            match self.data_type.map(|known| known.common(data_type)) {
                None => self.data_type = Some(data_type),
                Some(Some(common)) => self.data_type = Some(common),
                Some(None) => self.refuse_both(input, field, data_type),
            }
            self.met.push((data_type, input.to_owned()));
        }
    }

    /// Adds lists of nothing but NULL, when all others are known: they are of the type of the others, if these are lists.
    fn settle(&mut self) {
        let Some((input, field)) = self.null_list.take() else { return };
        if !matches!(self.data_type, Some(DataType::List(_))) {
            self.add(&input, &TypedField { is_null_list: false, ..field });
        }
    }

    /// There is no type for what was met and one more.
    fn refuse_both(&mut self, input: &str, field: &TypedField, data_type: DataType) {
        let differs = |(met, _): &&(DataType, String)| met.common(data_type).is_none();
        let Some((met, of)) = self.met.iter().find(differs).or(self.met.last()) else { return };
        let text = format!(
            "{input}: field {} is {data_type}, and {met} in {of}: no type holds the values of both as they are",
            field.name
        );
        let other = match met.is_number() && data_type.is_number() {
            true => DataType::Double,
            false => DataType::Varchar(None),
        };
        self.refuse(Wrong { kind: data_type.to_string(), text, other: Some(other) });
    }

    /// What is wrong first is told; what no type helps before others.
    fn refuse(&mut self, wrong: Wrong) {
        let is_worse = |known: &Wrong| known.other.is_some() && wrong.other.is_none();
        if self.wrong.as_ref().is_none_or(is_worse) {
            self.wrong = Some(wrong);
        }
    }

    /// Gives it a type.
    fn give(&mut self, data_type: DataType) {
        self.data_type = Some(data_type);
        if self.wrong.as_ref().is_some_and(|wrong| wrong.other.is_some()) {
            self.wrong = None;
        }
    }
}

/// What is told of the first column that a load cannot read.
///
/// # Errors
/// `Invalid` if there is one.
pub fn check_all_read(refused: &[RefusedColumn]) -> Result<()> {
    match refused.first() {
        Some(first) => Err(Error::Invalid(first.text.clone())),
        None => Ok(()),
    }
}
