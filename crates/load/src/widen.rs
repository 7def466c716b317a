//! Wider types for inferred columns that meet fields which their types do not hold.
//!
//! The sample did not show all: after a million integers comes a decimal. The column then gets a type that
//! holds both; nothing is rounded, and nothing is rejected for a guess. What is noted depends on the order of
//! the input only, so the types are the same for any number of threads.
//!
//! A load goes on (`legs`). Where a filter or an expression looked at the column, or inputs that are on the way to
//! a server must be decompressed again in any case, it starts again: that costs the time until the field was met. In the
//! end a pass goes to its end and notes all such fields, so that there are few passes.

use coload_ddl::Schema;
use coload_source::{
    BadRecord, CarefulRecord, ColumnForms, FieldError, FieldRules, RecordRules, RejectedRecord,
    SampleEnd, field_text, read_record,
};
use coload_store::converts_type;
use coload_types::{Column, DataType, Error, Physical, Place, Result, Value, check_bytes};
use coload_wire::FieldsByInput;

use crate::account::SHOWN_BYTES_MAX;
use crate::request::LoadRequest;

/// Passes that stop at the first field that does not fit.
pub const HASTY_PASSES: usize = 2;
/// Passes after which what still does not fit makes a column text.
const PASSES_MAX: usize = 5;

/// What a load does when a column needs a wider type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It starts again; passes before this one.
    StartAgain {
        /// Number of passes before this one.
        pass: usize,
    },
    /// It goes on with the chunk that did not fit.
    GoOn,
}

/// The column whose inferred type is too narrow for a field of a record, if that is why it is no row. What no
/// text is either is a reject. `inferred` is the type of a column, unless that was given.
pub fn unfit_column(
    record: &RejectedRecord,
    inferred: impl Fn(usize) -> Option<DataType>,
) -> Option<usize> {
    match &record.reason {
        BadRecord::Field { column, error: FieldError::Rule(_) } => {
            let text = DataType::Varchar(None);
            let helps = inferred(*column)? != text && check_bytes(record.value(), text).is_ok();
            helps.then_some(*column)
        }
        _ => None,
    }
}

/// A column whose type became wider during the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// Name of the column.
    pub column: String,
    /// Type that inference had taken for it.
    pub from: DataType,
    /// The type it has now.
    pub to: DataType,
    /// Where the first field stands that did not fit.
    pub place: Place,
    /// That field; of a long one the first 64 KiB.
    pub value: Vec<u8>,
}

impl Widened {
    /// The first characters of the field that did not fit, in quotes.
    pub fn shown(&self) -> String {
        shown(&self.value)
    }
}

/// The first characters of a field, in quotes; texts of JSON have theirs.
fn shown(value: &[u8]) -> String {
    /// Bytes that tell what it is.
    const TOLD_MAX: usize = 40;
    let text = String::from_utf8_lossy(&value[..value.len().min(TOLD_MAX)]);
    match text.starts_with('"') {
        true => text.into_owned(),
        false => format!("\"{text}\""),
    }
}

/// What the columns' fields have in common, the sample's and those that did not fit.
#[derive(Debug, Clone)]
pub struct Widening {
    forms: Vec<ColumnForms>,
    schema: Schema,
    rules: RecordRules,
    fields: FieldRules,
    /// The fields that the columns are.
    by_input: FieldsByInput,
    way: Way,
    /// The first field of each column that did not fit.
    noted: Vec<(usize, Place, Vec<u8>)>,
    /// Columns that became wider before.
    told: Vec<Widened>,
}

impl Widening {
    /// For a load whose columns were inferred, and whose inputs can be read again if that is needed.
    pub fn new(request: &LoadRequest, way: Way) -> Option<Self> {
        if way != Way::GoOn && request.inputs.read_once().is_some() {
            return None;
        }
        Some(Widening {
            forms: request.inferred.clone()?,
            schema: request.read_schema().clone(),
            rules: request.dialect.record_rules(request.field_count()),
            fields: request.dialect.field_rules(),
            by_input: request.fields_of_inputs(),
            way,
            noted: Vec::new(),
            told: Vec::new(),
        })
    }

    /// The same, that tells columns which became wider before, too.
    pub fn after(self, told: Vec<Widened>) -> Self {
        Widening { told, ..self }
    }

    /// Notes a record of an input that is no row because a field does not fit its column's type; else it is a
    /// reject. `place` says where the record is, whatever the field.
    pub fn note(
        &mut self,
        file: usize,
        record: &RejectedRecord,
        place: impl Fn() -> Place,
    ) -> bool {
        let columns = self.schema.columns();
        let forms = &self.forms;
        let inferred =
            |column: usize| (!forms[column].is_given()).then(|| columns[column].data_type);
        let Some(column) = unfit_column(record, inferred) else {
            return false;
        };
        self.add(file, column, record.value(), &place);
        self.add_others(file, record, column, &place);
        true
    }

    /// Takes a field of an input that does not fit its column into account.
    fn add(&mut self, file: usize, column: usize, field: &[u8], place: &impl Fn() -> Place) {
        self.forms[column].add(field, &self.fields.formats);
        if self.noted.iter().all(|(noted, ..)| *noted != column) {
            // Of some columns only others may not be read.
            let number = self.by_input.of(file).of_column[column].unwrap_or(column);
            let place = Place { field: number as u32 + 1, ..place() };
            self.noted.push((column, place, field[..field.len().min(SHOWN_BYTES_MAX)].to_vec()));
        }
    }

    /// Only one field of a record is told; another may not fit either.
    fn add_others(
        &mut self,
        file: usize,
        record: &RejectedRecord,
        told: usize,
        place: &impl Fn() -> Place,
    ) {
        let rules = RecordRules { fields: self.by_input.of(file).count, ..self.rules.clone() };
        if let Some(json) = &self.rules.json {
            let texts = json.evidence(&record.raw, &self.fields.formats);
            return self.add_texts(file, texts, told, place);
        }
        let mut fields = CarefulRecord::default();
        read_record(&record.raw, 0, true, &rules, &mut fields);
        for column in 0..self.forms.len() {
            if column == told || self.forms[column].is_given() {
                continue;
            }
            let Some(field) = self.by_input.of(file).of_column[column] else { continue };
            let Some(field) = fields.fields.get(field) else { continue };
            let raw = &record.raw[field.start..field.end];
            let text = match self.fields.read(raw) {
                Ok(None) => continue,
                Ok(Some(text)) => text,
                Err(_) => field_text(&record.raw, *field, &rules),
            };
            let data_type = self.schema.columns()[column].data_type;
            if data_type.physical() != Physical::Bytes && self.fields.is_typed_null(&text) {
                continue;
            }
            self.add_other(file, column, &text, place);
        }
    }

    /// The same of a record of JSON, of which each field has a text that tells its type.
    fn add_texts(
        &mut self,
        file: usize,
        texts: Vec<Option<Vec<u8>>>,
        told: usize,
        place: &impl Fn() -> Place,
    ) {
        for column in 0..self.forms.len() {
            let field = self.by_input.of(file).of_column[column];
            let text = field.and_then(|field| texts.get(field)?.as_deref());
            if let Some(text) = text.filter(|_| column != told && !self.forms[column].is_given()) {
                self.add_other(file, column, text, place);
            }
        }
    }

    /// Takes a field of a record that is told for another one into account.
    fn add_other(&mut self, file: usize, column: usize, text: &[u8], place: &impl Fn() -> Place) {
        let data_type = self.schema.columns()[column].data_type;
        let mut with_it = self.forms[column];
        with_it.add(text, &self.fields.formats);
        // What is noted must make the type wider.
        match self.holds(data_type, with_it.data_type(SampleEnd::Cut)) {
            true => self.forms[column] = with_it,
            false => self.add(file, column, text, place),
        }
    }

    /// Whether a field was noted.
    pub fn has_noted(&self) -> bool {
        !self.noted.is_empty()
    }

    /// Whether the pass is to stop now.
    pub fn stops(&self) -> bool {
        let hasty = match self.way {
            Way::StartAgain { pass } => pass < HASTY_PASSES,
            Way::GoOn => true,
        };
        hasty && self.has_noted()
    }

    /// Gives the request wider types, and tells which. `stored` are the least and the largest value that a
    /// column that is read has in the segments so far, as its type has them.
    ///
    /// # Errors
    /// `Input` with the place of a field that made the type of a column wider, when expressions of the load have no meaning
    /// for it.
    pub fn widen(
        mut self,
        request: &mut LoadRequest,
        stored: &[Option<(Value, Value)>],
    ) -> Result<Vec<Widened>> {
        let last = matches!(self.way, Way::StartAgain { pass } if pass + 1 >= PASSES_MAX);
        for (column, ..) in &self.noted {
            let forms = &mut self.forms[*column];
            let before = self.schema.columns()[*column].data_type;
            if let Some(Some((least, largest))) = stored.get(*column) {
                forms.add_stored(least, before);
                forms.add_stored(largest, before);
            }
            // What a DOUBLE was written as is not known, so that only text holds it.
            let now = forms.data_type(SampleEnd::Cut);
            let is_list = matches!(before, DataType::List(_));
            if last
                || before == DataType::Double
                || now == before
                || is_list && !converts_type(before, now)
            {
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
        let wider = Schema::new(columns)?;
        request
            .set_read_schema(wider.clone())
            .map_err(|error| self.unplanned(request, &wider, error))?;
        request.inferred = Some(self.forms);
        let columns = request.read_schema().columns().iter().zip(self.schema.columns());
        let columns: Vec<_> = columns.map(|(now, before)| (now.data_type, before)).collect();
        let told = self.noted.into_iter().map(|(column, place, value)| {
            let (to, before) = columns[column];
            Widened { column: before.name.clone(), from: before.data_type, to, place, value }
        });
        Ok(self.told.into_iter().chain(told).collect())
    }

    /// What is told when expressions of a load cannot be planned with wider types: the column which they cannot have so, and
    /// why it is.
    fn unplanned(&self, request: &LoadRequest, wider: &Schema, error: Error) -> Error {
        let Error::Invalid(why) = &error else { return error };
        let with_one = |column: usize| {
            let mut columns = self.schema.columns().to_vec();
            columns[column] = wider.columns()[column].clone();
            Schema::new(columns)
        };
        let fails =
            |(column, ..): &&(usize, Place, Vec<u8>)| match (&request.program, with_one(*column)) {
                (Some(program), Ok(schema)) => program.for_load(&schema, request.began_us).is_err(),
                _ => false,
            };
        let Some((column, place, value)) = self.noted.iter().find(fails).or(self.noted.first())
        else {
            return error;
        };
        let (before, now) = (&self.schema.columns()[*column], wider.columns()[*column].data_type);
        let (name, from) = (&before.name, before.data_type);
        Error::Input {
            place: Box::new(place.clone()),
            text: format!(
                "column {name} was taken for {from}, which {} is not; as {now} it does not fit: {why} (try --types '{name} {from}' \
                 with --max-rejects, or write TRY_CAST({name} AS {from}))",
                shown(value),
            ),
        }
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
