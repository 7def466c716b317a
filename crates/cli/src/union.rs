//! Inputs with different fields, joined by name.
//!
//! The columns are those of all inputs in the order in which they first appear. The header of each input is read;
//! of the first input of each header, and of some others, a sample tells the types.

use std::collections::HashMap;

use coload_ddl::Schema;
use coload_source::{
    ColumnForms, DateFormat, Dialect, Formats, GivenDialect, Header, InputFields, InputFile,
    Inputs, LineEnd, SampleEnd, Sniffed, read_names, sniff,
};
use coload_types::{Column, Error, Result};
use coload_wire::FieldsByInput;

use crate::mapping::{Mapping, map_columns};
use crate::plan::{is_blank, sample};
use crate::set_columns::{lacking, names_of};

/// Bytes of an input in which its header is looked for first, and those in which a longer one must end.
const HEAD_BYTES: usize = 64 << 10;
const HEAD_BYTES_MAX: usize = 4 << 20;
/// Inputs whose samples tell types even if others have the same header.
const SAMPLED_MAX: usize = 32;
/// Different headers that inputs may have.
const HEADERS_MAX: usize = 1024;

/// How the inputs of a load belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Joined {
    /// All have the fields of the first, in its order.
    #[default]
    ByPosition,
    /// Fields of the same name are a column; inputs may lack some.
    ByName,
}

/// The inputs of a load, and what is known of the first.
#[derive(Debug, Clone, Copy)]
pub struct KnownInputs<'a> {
    /// All inputs of the load, in their order.
    pub all: &'a Inputs,
    /// The one that was looked at, and its first bytes.
    pub first: (&'a str, &'a [u8], SampleEnd),
    /// The dialect that flags give; the rest is found out for each input.
    pub given: &'a GivenDialect,
    /// Bytes of a sample.
    pub sample_bytes: usize,
}

/// The columns of all inputs.
#[derive(Debug, Default)]
pub struct Union {
    /// In the order in which they first appear.
    pub columns: Vec<Column>,
    /// Their numbers, by their names in small letters.
    by_name: HashMap<String, usize>,
    /// What their fields have in common; nothing where no types are looked for.
    forms: Vec<ColumnForms>,
    /// The columns that the fields of each header are, and the first input that has it.
    headers: Vec<(Vec<usize>, String)>,
    /// Inputs that were sampled, and whether all was seen of each.
    sampled: usize,
    is_cut: bool,
    /// Inputs that hold nothing.
    blank: usize,
}

/// Finds the fields of all inputs; `sniffed`, which is of the first, then has the columns that are read.
///
/// # Errors
/// `Invalid` when an input has no header or is written in another way, or when a column is missing that must be
/// there.
pub fn join_by_name(
    inputs: KnownInputs<'_>,
    mapping: Option<&Mapping>,
    table: Option<Schema>,
    sniffed: &mut Sniffed,
) -> Result<FieldsByInput> {
    let (first, text, end) = inputs.first;
    check_header(first, &sniffed.dialect)?;
    let mut union = Union::default();
    let mut known = HashMap::new();
    union.add_header(&sniffed.schema, first)?;
    union.add_sample(0, sniffed, end);
    known.insert(names(text, end, sniffed), 0);
    let mut of_input = Vec::with_capacity(inputs.all.len());
    for input in inputs.all.iter() {
        let header = match input.name == first {
            true => 0,
            false => union.header_of(&input, &inputs, sniffed, &mut known)?,
        };
        of_input.push(header as u32);
    }
    let all_sampled = of_input.len() == union.sampled + union.blank;
    sniffed.schema = union.schema(inputs.given, all_sampled)?;
    sniffed.forms = std::mem::take(&mut union.forms);
    let given = sniffed.forms.iter().enumerate().filter(|(_, forms)| forms.is_given());
    sniffed.dialect.typed = given.map(|(column, _)| column as u32).collect();
    Ok(union.fields(of_input, first, (mapping, table), sniffed)?.0)
}

impl Union {
    /// The number of an input's header, which is new or known.
    fn header_of(
        &mut self,
        input: &InputFile,
        inputs: &KnownInputs<'_>,
        first: &Sniffed,
        known: &mut HashMap<Vec<Vec<String>>, usize>,
    ) -> Result<usize> {
        let (mut text, mut end) = sample(input, None, HEAD_BYTES)?;
        if is_blank(&text) && end == SampleEnd::Whole {
            self.blank += 1;
            return Ok(0);
        }
        let mut found = names(&text, end, first);
        if found.is_empty() {
            (text, end) = sample(input, None, HEAD_BYTES_MAX)?;
            found = names(&text, end, first);
        }
        let header = known.get(&found).copied();
        if let Some(header) = header
            && self.sampled >= SAMPLED_MAX
        {
            return Ok(header);
        }
        if header.is_none() && inputs.sample_bytes > text.len() && self.sampled < SAMPLED_MAX {
            (text, end) = sample(input, None, inputs.sample_bytes)?;
        }
        let own = sniff_alike(input, (&text, end), inputs, first)?;
        let header = match header {
            Some(header) => header,
            None => self.add_header(&own.schema, &input.name)?,
        };
        known.insert(found, header);
        self.add_sample(header, &own, end);
        Ok(header)
    }

    /// Adds the columns of a header, which an input has, and gives its number.
    ///
    /// # Errors
    /// `Limit` when there are too many.
    pub fn add_header(&mut self, own: &Schema, input: &str) -> Result<usize> {
        if self.headers.len() == HEADERS_MAX {
            return Err(Error::Limit(format!(
                "{input} has one header more than the {HEADERS_MAX} different ones that --union-by-name joins: load \
                 inputs in several loads into one table, with --by-name"
            )));
        }
        let mut of_field = Vec::with_capacity(own.len());
        for column in own.columns() {
            let next = self.columns.len();
            let position = *self.by_name.entry(column.name.to_lowercase()).or_insert(next);
            if position == next {
                self.columns.push(column.clone());
            }
            of_field.push(position);
        }
        self.headers.push((of_field, input.to_owned()));
        Ok(self.headers.len() - 1)
    }

    /// Takes what a sample tells of types into account.
    fn add_sample(&mut self, header: usize, own: &Sniffed, end: SampleEnd) {
        self.sampled += 1;
        self.is_cut |= end == SampleEnd::Cut;
        for (column, forms) in self.headers[header].0.iter().zip(&own.forms) {
            match self.forms.get_mut(*column) {
                Some(known) => known.add_sample(forms),
                // New columns come in order.
                None => self.forms.push(*forms),
            }
        }
    }

    /// The columns that the fields of a header are.
    pub fn columns_of(&self, header: usize) -> &[usize] {
        &self.headers[header].0
    }

    /// Whether some input has no field of a column.
    pub fn is_lacking(&self, column: usize) -> bool {
        self.headers.iter().any(|(of_field, _)| !of_field.contains(&column))
    }

    /// A column by its name.
    ///
    /// # Errors
    /// `Invalid` when no input has it.
    pub fn position(&self, name: &str) -> Result<usize> {
        if let Some(at) = self.by_name.get(&name.to_lowercase()) {
            return Ok(*at);
        }
        let schema = Schema::new(self.columns.clone())?;
        Err(Error::Invalid(format!(
            "--types: no input has a field {name}; they have {}",
            names_of(&schema)
        )))
    }

    /// Finds the fields of inputs, whose headers are told by their numbers, for the columns that `mapping` and `table` ask for.
    /// `sniffed`, which has the columns of all inputs, then has these; they come with their numbers among all.
    ///
    /// # Errors
    /// `Invalid` when a column is missing that must be there.
    pub fn fields(
        &self,
        of_input: Vec<u32>,
        first: &str,
        (mapping, table): (Option<&Mapping>, Option<Schema>),
        sniffed: &mut Sniffed,
    ) -> Result<(FieldsByInput, Vec<usize>)> {
        let mapping = mapping.cloned().unwrap_or_default();
        let map = map_columns(first, &mapping, table, sniffed)?;
        let of_column = map.map_or_else(|| (0..self.columns.len()).collect(), |map| map.of_column);
        let ways = self.ways(&of_column);
        self.check_lacking(&ways, sniffed)?;
        Ok((FieldsByInput { ways, of_input }, of_column))
    }

    /// The columns with the types that hold all samples, or that were given.
    fn schema(&mut self, given: &GivenDialect, all_sampled: bool) -> Result<Schema> {
        let end = if all_sampled && !self.is_cut { SampleEnd::Whole } else { SampleEnd::Cut };
        for typed in &given.columns {
            let at = self.position(&typed.name)?;
            self.columns[at].data_type = typed.data_type;
            if let Some(forms) = self.forms.get_mut(at) {
                forms.give(typed.data_type);
            }
        }
        for (column, forms) in self.columns.iter_mut().zip(&self.forms) {
            column.data_type = forms.data_type(end);
        }
        Schema::new(self.columns.clone())
    }

    /// The fields of each header that are columns which are read: those of the union with these numbers.
    fn ways(&self, of_column: &[usize]) -> Vec<InputFields> {
        let way = |(of_field, _): &(Vec<usize>, String)| {
            let mut fields = vec![None; self.columns.len()];
            for (field, column) in of_field.iter().enumerate() {
                fields[*column] = Some(field);
            }
            let of_column = of_column.iter().map(|column| fields[*column]).collect();
            InputFields { count: of_field.len(), of_column }
        };
        self.headers.iter().map(way).collect()
    }

    /// Tells the columns that some inputs lack.
    ///
    /// # Errors
    /// `Invalid` when one is NOT NULL and has no default, or when an input has none of them.
    fn check_lacking(&self, ways: &[InputFields], sniffed: &mut Sniffed) -> Result<()> {
        let mut told = vec![None; sniffed.schema.len()];
        for (way, (of_field, input)) in ways.iter().zip(&self.headers) {
            let own = of_field.iter().map(|column| self.columns[*column].clone()).collect();
            let own = Schema::new(own)?;
            if way.of_column.iter().all(Option::is_none) {
                return Err(Error::Invalid(format!(
                    "{input} has no field of the name of a column; it has {}, and the columns are {} (try --map \
                     FIELD=COLUMN)",
                    names_of(&own),
                    names_of(&sniffed.schema)
                )));
            }
            let columns = sniffed.schema.columns().iter().zip(&way.of_column).zip(&mut told);
            for ((column, field), told) in columns {
                if field.is_none() && told.is_none() {
                    *told = Some(format!("{} in {input}", lacking(input, &own, column)?));
                }
            }
        }
        let told: Vec<String> = told.into_iter().flatten().collect();
        if !told.is_empty() {
            sniffed.evidence.push(format!(
                "{} different lists of fields are joined by name; columns that inputs lack: {}",
                self.headers.len(),
                told.join(", ")
            ));
        }
        Ok(())
    }
}

/// The header of an input, in small letters.
fn names(text: &[u8], end: SampleEnd, first: &Sniffed) -> Vec<Vec<String>> {
    read_names(text, end, &first.dialect, first.schema.len())
}

fn check_header(input: &str, dialect: &Dialect) -> Result<()> {
    match dialect.header {
        Header::Present => Ok(()),
        Header::Absent => Err(Error::Invalid(format!(
            "{input} does not begin with names of its fields, by which --union-by-name joins inputs (--header says \
             that each input does)"
        ))),
    }
}

/// Whether two inputs write dates in one way, as far as they have any.
fn is_same_or_none(own: Option<DateFormat>, first: Option<DateFormat>) -> bool {
    match (own, first) {
        (Some(own), Some(first)) => own == first,
        _ => true,
    }
}

/// What is found out of an input that is to be read as the first is.
fn sniff_alike(
    input: &InputFile,
    (text, end): (&[u8], SampleEnd),
    inputs: &KnownInputs<'_>,
    first: &Sniffed,
) -> Result<Sniffed> {
    let name = &input.name;
    let dialect = &first.dialect;
    let free = sniff(
        name,
        text,
        end,
        &GivenDialect { columns: Vec::new(), ..inputs.given.clone() },
        None,
    )?;
    check_header(name, &free.dialect)?;
    let own = &free.dialect;
    let has_own_decimals = own.formats.decimal != Formats::default().decimal;
    let parts = [
        ("--delimiter", free.schema.len() < 2 || own.delimiter == dialect.delimiter),
        ("--delimiter", free.schema.len() < 2 || own.long_delimiter == dialect.long_delimiter),
        ("--delimiter", own.aligned == dialect.aligned),
        ("--fixed-width", own.fixed == dialect.fixed),
        (
            "--quote",
            own.quote == dialect.quote || own.quote.is_none_or(|quote| !text.contains(&quote)),
        ),
        ("--escape", own.escape.is_none_or(|own| dialect.escape == Some(own))),
        ("--comment", own.comment.is_none_or(|own| dialect.comment == Some(own))),
        ("--line-end", own.line_end == LineEnd::Newline || own.line_end == dialect.line_end),
        (
            "--decimal-separator",
            !has_own_decimals || own.formats.decimal == dialect.formats.decimal,
        ),
        ("--date-format", is_same_or_none(own.formats.date, dialect.formats.date)),
        ("--skip", own.skip == dialect.skip),
        ("--header-rows", own.header_records() == dialect.header_records()),
        ("--encoding", own.encoding.encoding == dialect.encoding.encoding || text.is_ascii()),
    ];
    if let Some((flag, _)) = parts.iter().find(|(_, same)| !same) {
        return Err(Error::Invalid(format!(
            "{name} is written otherwise than {}, as far as {flag} says, and inputs of one load are read alike: load \
             it by itself, or give {flag}",
            inputs.first.0
        )));
    }
    let given = GivenDialect {
        delimiter: match (&dialect.long_delimiter, dialect.fixed, dialect.aligned) {
            (Some(long), ..) => Some(long.bytes().to_vec()),
            (None, None, None) => Some(vec![dialect.delimiter]),
            _ => None,
        },
        fixed: dialect.fixed,
        aligned: dialect.aligned,
        quote: Some(dialect.quote),
        escape: Some(dialect.escape),
        escapes: Some(dialect.escapes),
        header: Some(Header::Present),
        header_rows: Some(dialect.header_records()),
        skip: Some(dialect.skip),
        trailing: Some(dialect.trailing),
        line_end: Some(dialect.line_end),
        nulls: Some(dialect.nulls.clone()),
        encoding: Some(dialect.encoding.encoding),
        decimal: Some(dialect.formats.decimal),
        date: dialect.formats.date.or(inputs.given.date),
        timestamp: dialect.formats.timestamp.or(inputs.given.timestamp),
        columns: Vec::new(),
        ..inputs.given.clone()
    };
    sniff(name, text, end, &given, None)
}
