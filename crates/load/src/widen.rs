//! Wider types for inferred columns that meet fields which their types do not hold.
//!
//! The sample did not show all: after a million integers comes a decimal. The load then starts again with
//! a type that holds both; nothing is rounded, and nothing is rejected for a guess. What is noted depends on
//! the order of the input only, so the types are the same for any number of threads.
//!
//! Cost: the time until the field was met, again. From the third pass on a pass goes to its end and notes
//! all such fields, so that there are few passes.

use coload_format::{Column, DataType, Place, Result, Schema};
use coload_source::{
    BadRecord, CarefulRecord, ColumnForms, FieldError, FieldRules, InputSource, RecordRules,
    RejectedRecord, SampleEnd, field_text, read_record,
};

use crate::options::LoadOptions;

/// Passes that stop at the first field that does not fit.
const HASTY_PASSES: usize = 2;
/// Passes after which what still does not fit makes a column text.
const PASSES_MAX: usize = 5;

/// A column whose type became wider during the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// Its name.
    pub column: String,
    /// The inferred type.
    pub from: DataType,
    /// The type it has now.
    pub to: DataType,
    /// Where the first field stands that did not fit.
    pub place: Place,
    /// That field.
    pub value: Vec<u8>,
}

/// What the columns' fields have in common, the sample's and those that did not fit.
#[derive(Debug)]
pub struct Widening {
    forms: Vec<ColumnForms>,
    schema: Schema,
    rules: RecordRules,
    fields: FieldRules,
    pass: usize,
    /// The first field of each column that did not fit.
    noted: Vec<(usize, Place, Vec<u8>)>,
}

impl Widening {
    /// For a load whose columns were inferred, and whose inputs can be read again.
    pub fn new(options: &LoadOptions, pass: usize) -> Option<Self> {
        let once = |source: &InputSource| {
            matches!(source, InputSource::Stdin | InputSource::Stream { .. })
        };
        if options.inputs.iter().any(|input| once(&input.source)) {
            return None;
        }
        Some(Widening {
            forms: options.inferred.clone()?,
            schema: options.read_schema().clone(),
            rules: options.dialect.record_rules(options.field_count()),
            fields: options.dialect.field_rules(),
            pass,
            noted: Vec::new(),
        })
    }

    /// Notes a record that is no row because a field does not fit its column's type; else it is a
    /// reject.
    pub fn note(&mut self, record: &RejectedRecord, place: impl FnOnce() -> Place) -> bool {
        let BadRecord::Field { column, error: FieldError::Rule(_) } = &record.reason else {
            return false;
        };
        let column = *column;
        if self.schema.columns()[column].data_type == DataType::Varchar(None) {
            return false;
        }
        if self.noted.iter().all(|(noted, ..)| *noted != column) {
            self.noted.push((column, place(), record.value.clone()));
        }
        self.forms[column].add(&record.value, &self.fields.formats);
        self.add_others(record, column);
        true
    }

    /// Only one field of a record is told; another may not fit either.
    fn add_others(&mut self, record: &RejectedRecord, told: usize) {
        let mut fields = CarefulRecord::default();
        read_record(&record.raw, 0, true, &self.rules, &mut fields);
        for (index, field) in fields.fields.iter().enumerate().take(self.forms.len()) {
            let raw = &record.raw[field.start..field.end];
            if index != told && !self.fields.nulls.iter().any(|null| null == raw) {
                let text = field_text(&record.raw, *field, &self.rules);
                self.forms[index].add(&text, &self.fields.formats);
            }
        }
    }

    /// Whether a field was noted.
    pub fn has_noted(&self) -> bool {
        !self.noted.is_empty()
    }

    /// Whether the pass is to stop now.
    pub fn stops(&self) -> bool {
        self.has_noted() && self.pass < HASTY_PASSES
    }

    /// Gives the options wider types, and tells which.
    ///
    /// # Errors
    /// None that a schema with the same names could have.
    pub fn widen(mut self, options: &mut LoadOptions) -> Result<Vec<Widened>> {
        for (column, ..) in &self.noted {
            let forms = &mut self.forms[*column];
            let before = self.schema.columns()[*column].data_type;
            if self.pass + 1 >= PASSES_MAX || forms.data_type(SampleEnd::Cut) == before {
                forms.make_text();
            }
        }
        let wider = |(column, forms): (&Column, &ColumnForms)| {
            let data_type = forms.data_type(SampleEnd::Cut);
            let narrower = forms.has_no_values() || self.holds(column.data_type, data_type);
            let data_type = if narrower { column.data_type } else { data_type };
            Column { data_type, ..column.clone() }
        };
        let columns = self.schema.columns().iter().zip(&self.forms).map(wider).collect();
        options.set_read_schema(Schema::new(columns)?)?;
        options.inferred = Some(self.forms);
        let columns = options.read_schema().columns().iter().zip(self.schema.columns());
        let columns: Vec<_> = columns.map(|(now, before)| (now.data_type, before)).collect();
        let told = self.noted.into_iter().map(|(column, place, value)| {
            let (to, before) = columns[column];
            Widened { column: before.name.clone(), from: before.data_type, to, place, value }
        });
        Ok(told.collect())
    }

    /// Whether the type that a column has takes what the other would.
    fn holds(&self, has: DataType, other: DataType) -> bool {
        use DataType::{Decimal, Varchar};
        match (has, other) {
            (Varchar(None), _) => true,
            (Decimal { precision: p, scale: s }, Decimal { precision: q, scale: t }) => {
                s >= t && p - s >= q - t
            }
            (has, other) => has == other,
        }
    }
}
