//! What a load is asked to do.

use std::path::PathBuf;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_source::{ColumnForms, Dialect, InputFields, Inputs, RejectColumns};
use coload_store::{DeleteWhere, LoadId, LoadMode, OnConflict};
use coload_threads::epoch_us;
use coload_types::{Column, DataType, Error, Result};
use coload_wire::{
    ColumnFrom, DeleteText, Derivation, FieldMap, FieldsByInput, PartIs, RejectLimit, Share,
    parse_delete_where,
};

use crate::grain::RecordSize;
use crate::opened::OpenedStream;
use crate::program::RowProgram;
use crate::typed_source::TypedSource;
use crate::wanted::WantedRows;

/// Opens an input by its number.
pub type OpenStream = Arc<dyn Fn(usize) -> Box<dyn std::io::Read + Send> + Send + Sync>;

/// The form that the inputs of a load are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputForm {
    /// Delimited text.
    Text,
    /// Files or streams of Arrow IPC.
    Arrow,
    /// Files of Parquet.
    Parquet,
    /// Files or streams of Avro.
    Avro,
    /// Rows that somebody else reads: of a database, or of batches of Arrow in memory.
    Rows,
}

/// A column of which nothing can be read, for its field is of a type that no column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedColumn {
    /// Number of it among the columns that are read.
    pub column: usize,
    /// What the field is, in the words of its format.
    pub kind: String,
    /// What is to be told of it: the name of the input, what the field is, and why.
    pub text: String,
}

/// What is loaded, and into which table.
#[derive(Clone)]
pub struct LoadRequest {
    /// Files, in order; one may be standard input.
    pub inputs: Inputs,
    /// The input, if it is a stream that was opened to look at it.
    pub stream: Option<OpenedStream>,
    /// The inputs in order, if they are bytes that come from elsewhere; then all of them are.
    pub streams: Option<OpenStream>,
    /// The rows of the input, if it is one that has rows and no bytes.
    pub source: Option<Arc<dyn TypedSource>>,
    /// Which rows somebody wants, if not all; a hint, for whoever reads inputs in place.
    pub wanted: Option<Arc<WantedRows>>,
    /// What the load is known by when it comes again; its own id if there is none.
    pub key: Option<LoadId>,
    /// Name of the table, as the user wrote it.
    pub table: String,
    /// Columns of the table; in the order of the fields, unless `derivation` and `fields` say otherwise.
    pub schema: Schema,
    /// How rows are made of the columns that are read, if these are others than the table's.
    pub derivation: Option<Derivation>,
    /// Makes other columns of those that are read, and leaves rows out; `derivation` is then of its columns.
    pub program: Option<Arc<dyn RowProgram>>,
    /// When the load began, microseconds since the epoch: what is set to the load's time, and now() of the
    /// program. One that goes on with an earlier attempt began when that did.
    pub began_us: i64,
    /// Which fields the columns are that are read.
    pub fields: Option<FieldMap>,
    /// The same where inputs have different fields; `fields` then says nothing.
    pub fields_by_input: Option<Arc<FieldsByInput>>,
    /// What the sample's fields have in common, if the types were inferred from it: then fields that
    /// do not fit make the types wider, and no record is rejected for them. A declared column rejects.
    pub inferred: Option<Vec<ColumnForms>>,
    /// Columns of which nothing can be read: the load is one of others, which [`crate::project`] chooses.
    pub refused: Vec<RefusedColumn>,
    /// How large a record is, if there was a sample that tells it: chunks and partitions follow from it.
    pub record: Option<RecordSize>,
    /// What the inputs are.
    pub form: InputForm,
    /// How the text is written, if they are text.
    pub dialect: Dialect,
    /// What happens to rows that are there.
    pub mode: LoadMode,
    /// What happens to keys of a PRIMARY KEY that are there already.
    pub on_conflict: OnConflict,
    /// A column of the table, and what it is in records that are no rows and take those with their keys away.
    pub delete_where: Option<DeleteText>,
    /// Whether distinct values are estimated where no dictionary tells; it costs some 5 % of a load.
    pub count_distinct: bool,
    /// Text that is read, chunks that begin in it whole; all of it if `None`. For dry runs.
    pub sample_bytes: Option<u64>,
    /// Records that may be set aside before the load fails.
    pub max_rejects: RejectLimit,
    /// File that gets the rejects.
    pub rejects_file: Option<PathBuf>,
    /// Files and folders that it must not be written over or into, and what they are.
    pub protected: Vec<(PathBuf, &'static str)>,
    /// Table that gets what the file gets, in the version that shows the rows.
    pub rejects_table: Option<String>,
    /// Loads of the same inputs into other tables, which become visible in the version that shows this one.
    pub beside: Vec<LoadRequest>,
    /// Whether it goes on where an earlier attempt was interrupted, for a store of this machine. One whose inputs are on other
    /// machines does so in any case, and one into a server.
    pub resumable: bool,
    /// Which share of a load of several workers it is, and which parts of its inputs are read.
    pub share: Option<Arc<Share>>,
    /// All of the load of which it is a share, where its records may have to be told again.
    pub whole: Option<Arc<LoadRequest>>,
}

impl std::fmt::Debug for LoadRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadRequest")
            .field("inputs", &self.inputs)
            .field("table", &self.table)
            .field("schema", &self.schema)
            .field("dialect", &self.dialect)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl LoadRequest {
    /// Defaults for everything but inputs, table, columns and dialect.
    pub fn new(
        inputs: impl Into<Inputs>,
        table: impl Into<String>,
        schema: Schema,
        dialect: Dialect,
    ) -> Self {
        LoadRequest {
            inputs: inputs.into(),
            stream: None,
            streams: None,
            source: None,
            wanted: None,
            key: None,
            table: table.into(),
            schema,
            derivation: None,
            program: None,
            began_us: epoch_us(),
            fields: None,
            fields_by_input: None,
            inferred: None,
            refused: Vec::new(),
            record: None,
            form: InputForm::Text,
            dialect,
            mode: LoadMode::Append,
            on_conflict: OnConflict::Error,
            delete_where: None,
            count_distinct: false,
            sample_bytes: None,
            max_rejects: RejectLimit::Count(0),
            rejects_file: None,
            protected: Vec::new(),
            rejects_table: None,
            beside: Vec::new(),
            resumable: false,
            share: None,
            whole: None,
        }
    }

    /// How the text is written, if the inputs are text.
    pub fn dialect_of_text(&self) -> Option<&Dialect> {
        match self.form {
            // Of a sheet it is ours.
            InputForm::Text if self.inputs.first().is_some_and(|first| first.is_sheet()) => None,
            InputForm::Text => Some(&self.dialect),
            InputForm::Arrow | InputForm::Parquet | InputForm::Avro | InputForm::Rows => None,
        }
    }

    /// Which rows take those with their keys away.
    ///
    /// # Errors
    /// `Invalid` when what they say is no value of the column.
    pub fn delete_where(&self) -> Result<Option<DeleteWhere>> {
        self.delete_where.as_ref().map(|text| parse_delete_where(&self.schema, text)).transpose()
    }

    /// Refuses a key for a target whose tables have none of ours, and what is to happen when one is there already.
    ///
    /// # Errors
    /// `Invalid` that says what to do instead.
    pub fn refuse_key(&self, target: &str, instead: &str) -> Result<()> {
        if self.on_conflict != OnConflict::Error || self.delete_where.is_some() {
            return Err(Error::Invalid(format!(
                "what happens to keys that are there already can be chosen for a store of this machine or at a server, and table {} is \
                 {target} (leave --on-conflict and --delete-where out; load into another table and INSERT .. ON CONFLICT from that)",
                self.table
            )));
        }
        let Some(key) = self.schema.key() else { return Ok(()) };
        Err(Error::Invalid(format!(
            "cannot make {} of table {} {target}: {instead}",
            key.sql(self.schema.columns()),
            self.table
        )))
    }

    /// What is read of an input.
    pub(crate) fn part(&self, number: usize) -> &PartIs {
        let part = self.share.as_ref().and_then(|share| share.parts.get(number));
        part.map_or(&PartIs::Whole, |part| &part.is)
    }

    /// Columns that are read from the inputs.
    pub fn read_schema(&self) -> &Schema {
        self.derivation.as_ref().map_or(&self.schema, |derivation| &derivation.read)
    }

    /// Why nothing can be read of a column of the table; `None` for one that can be read.
    pub fn refused(&self, column: usize) -> Option<&RefusedColumn> {
        let read = match &self.derivation {
            Some(derivation) => match derivation.columns.get(column)? {
                ColumnFrom::Read(read) => *read,
                _ => return None,
            },
            None => column,
        };
        self.refused.iter().find(|refused| refused.column == read)
    }

    /// Gives the columns that are read other types, and with them those of the table.
    ///
    /// # Errors
    /// None that a schema with the same names could have.
    pub(crate) fn set_read_schema(&mut self, read: Schema) -> Result<()> {
        let Some(derivation) = &mut self.derivation else {
            self.schema = read.with_rules_of(&self.schema)?;
            return Ok(());
        };
        if let Some(program) = &mut self.program {
            *program = program.for_load(&read, self.began_us)?;
        }
        let made = self.program.as_ref().map_or(&read, |program| program.schema());
        let mut columns = self.schema.columns().to_vec();
        for (column, from) in columns.iter_mut().zip(&derivation.columns) {
            if let ColumnFrom::Read(index) = from {
                column.data_type = made.columns()[*index].data_type;
            }
        }
        self.schema = Schema::new(columns)?.with_rules_of(&self.schema)?;
        derivation.read = read;
        Ok(())
    }

    /// The type of a column that is read, if it was inferred.
    pub(crate) fn inferred_type(&self, column: usize) -> Option<DataType> {
        let forms = self.inferred.as_ref()?.get(column)?;
        (!forms.is_given()).then(|| self.read_schema().columns()[column].data_type)
    }

    /// Names and types of the columns that are read, for messages about rejects.
    pub(crate) fn read_names(&self) -> Vec<(String, DataType)> {
        let read = self.read_schema().columns();
        read.iter().map(|c| (c.name.clone(), c.data_type)).collect()
    }

    /// Whether fragments may go as text: nothing but its types makes rows of records, and these are given.
    pub(crate) fn may_go_as_text(&self) -> bool {
        self.inferred.is_none()
            && self.fields_by_input.is_none()
            && self.derivation.is_none()
            && self.program.is_none()
            && self.schema.checks().is_empty()
    }

    /// Whether it depends on the types of columns which rows there are.
    pub(crate) fn has_rows_by_value(&self) -> bool {
        self.program.is_some() || !self.schema.checks().is_empty()
    }

    /// Makes it a load that began at another time.
    ///
    /// # Errors
    /// None that the program did not have when it was made.
    pub(crate) fn begin_at(&mut self, began_us: i64) -> Result<()> {
        self.began_us = began_us;
        if let Some(program) = &self.program {
            self.program = Some(program.for_load(self.read_schema(), began_us)?);
        }
        Ok(())
    }

    /// Gives the columns that are read the types of the table's.
    ///
    /// # Errors
    /// `Corrupt` when these are not so many.
    pub(crate) fn set_types(&mut self, table: &Schema) -> Result<()> {
        if table.len() != self.schema.len() {
            return Err(Error::Corrupt(format!("{} columns of a load", table.len())));
        }
        let read = match &self.derivation {
            Some(derivation) => derivation.read_as(table)?,
            None => {
                let pairs = self.schema.columns().iter().zip(table.columns());
                let typed =
                    pairs.map(|(own, other)| Column { data_type: other.data_type, ..own.clone() });
                Schema::new(typed.collect())?
            }
        };
        self.set_read_schema(read)
    }

    /// The columns of its file of rejects.
    pub(crate) fn reject_columns(&self) -> RejectColumns {
        match self.form {
            InputForm::Arrow | InputForm::Parquet => RejectColumns::WithPart,
            InputForm::Text | InputForm::Avro | InputForm::Rows => RejectColumns::Plain,
        }
    }

    /// The fields of the inputs of a load.
    pub(crate) fn fields_of_inputs(&self) -> FieldsByInput {
        if let Some(fields) = &self.fields_by_input {
            return FieldsByInput::clone(fields);
        }
        let way = match &self.fields {
            Some(FieldMap { count, of_column }) => InputFields {
                count: *count,
                of_column: of_column.iter().map(|field| Some(*field)).collect(),
            },
            None => {
                let count = self.read_schema().len();
                InputFields { count, of_column: (0..count).map(Some).collect() }
            }
        };
        FieldsByInput { ways: vec![way], of_input: Vec::new() }
    }

    /// Fields of a record; of the longest where inputs have different ones.
    pub fn field_count(&self) -> usize {
        if let Some(fields) = &self.fields_by_input {
            return fields.ways.iter().map(|way| way.count).max().unwrap_or(0);
        }
        self.fields.as_ref().map_or(self.read_schema().len(), |fields| fields.count)
    }

    /// Checks what does not depend on the inputs.
    pub(crate) fn check(&self) -> Result<()> {
        self.dialect.check()?;
        // A worker may have nothing to do.
        if self.inputs.is_empty() && self.share.is_none() {
            return Err(Error::Invalid(
                "no input: name a file, a glob, or - for standard input".into(),
            ));
        }
        if let Some(derivation) = &self.derivation {
            let made = self.program.as_ref().map(|program| program.schema());
            derivation.check(&self.schema, made)?;
        }
        if let Some(FieldMap { count, of_column }) = &self.fields
            && (of_column.len() != self.read_schema().len() || of_column.iter().any(|f| f >= count))
        {
            return Err(Error::Invalid(format!(
                "{} columns are read from {of_column:?} of {count} fields",
                self.read_schema().len()
            )));
        }
        if let Some(fields) = &self.fields_by_input {
            fields.check(self.inputs.len(), self.read_schema().len())?;
        }
        Ok(())
    }
}
