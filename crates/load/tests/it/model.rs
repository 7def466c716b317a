//! The slow, obvious way to read a delimited text: one byte, one field, one row after the other.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_source::{
    BadRecord, ColumnRules, Dialect, FixedWidths, Header, Reject, RejectColumns, RejectWriter,
    RejectedRecord, RejectedValue, Told, Trailing, TypeOrigin, tokenise_slowly,
};
use coload_types::Value;
use coload_wire::ColumnFrom;

use crate::support::Options;

/// A row; `None` is NULL.
pub type Row = Vec<Option<Value>>;
/// Whether a row keeps a rule; `None` is NULL, which breaks none.
pub type RowRule = fn(&Row) -> Option<bool>;

/// What a text holds.
#[derive(Debug, Default)]
pub struct Model {
    /// Rows in order.
    pub rows: Vec<Row>,
    /// For each row the 1-based line it starts on, its byte, and the record.
    places: Vec<(u64, u64, Vec<u8>)>,
    /// Rejects in order, each with the 1-based line it starts on.
    pub rejects: Vec<(u64, RejectedRecord)>,
}

impl Model {
    /// Reads a whole input.
    pub fn read(text: &[u8], dialect: &Dialect, schema: &Schema) -> Model {
        let mut model = Model::default();
        let (start, mut line) = first_record(text, dialect);
        let mut at = start;
        for (end, fields) in records(text, start, dialect) {
            let Some(end) = end else {
                let raw = text[at..].strip_suffix(b"\n").unwrap_or(&text[at..]);
                model.reject(line, at, BadRecord::OpenQuote, b"", raw);
                break;
            };
            model.read_record(text, (at, end), &fields, line, dialect, schema);
            line += newlines(&text[at..(end + 1).min(text.len())]);
            at = end + 1;
        }
        model
    }

    fn read_record(
        &mut self,
        text: &[u8],
        (start, end): (usize, usize),
        fields: &[(usize, usize)],
        line: u64,
        dialect: &Dialect,
        schema: &Schema,
    ) {
        let raw = text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end]);
        let is_comment = dialect.comment.is_some() && raw.first().copied() == dialect.comment;
        if is_comment && raw.contains(&b'\n') {
            return self.reject(line, start, BadRecord::OpenQuote, b"", raw);
        }
        if is_comment || raw.is_empty() && schema.len() > 1 {
            return;
        }
        let mut values: Vec<&[u8]> = fields.iter().map(|(s, e)| &text[*s..*e]).collect();
        if let Some(fixed) = &dialect.fixed {
            values = fixed_fields(raw, fixed);
        } else if let Some(last) = values.last_mut() {
            *last = last.strip_suffix(b"\r").unwrap_or(last);
        }
        if dialect.trailing == Trailing::Delimiter
            && values.len() == schema.len() + 1
            && values[schema.len()].is_empty()
        {
            values.pop();
        }
        if values.len() != schema.len() {
            let found = if dialect.fixed.is_some() { values.len() } else { fields.len() };
            return self.reject(line, start, BadRecord::FieldCount { found }, b"", raw);
        }
        let mut row = Vec::new();
        for (column, value) in values.iter().enumerate() {
            match rules(dialect, schema, column).value(value) {
                Ok(value) => row.push(value),
                Err(error) => {
                    let reason = BadRecord::Field { column, error };
                    let fields = dialect.field_rules();
                    let shown = fields.read(value).ok().flatten();
                    return self.reject(
                        line,
                        start,
                        reason,
                        shown.as_deref().unwrap_or(value),
                        raw,
                    );
                }
            }
        }
        self.rows.push(row);
        self.places.push((line + 1, start as u64, raw.to_vec()));
    }

    /// Makes the rows of the table of those that were read from the load's first input, and leaves out those
    /// that break a rule of the table; `holds` are its rules in order, of the columns that are read.
    pub fn finish(&mut self, options: &Options, holds: &[RowRule]) {
        let rows = std::mem::take(&mut self.rows).into_iter();
        for (row, (line, offset, raw)) in rows.zip(std::mem::take(&mut self.places)) {
            let derived = derive(&row, options);
            let Some(broken) = holds.iter().position(|holds| holds(&row) == Some(false)) else {
                self.rows.push(derived);
                self.places.push((line, offset, raw));
                continue;
            };
            let rule = &options.schema.checks()[broken];
            let at = rule.columns()[0];
            let column = &options.schema.columns()[at];
            let value = derived[at].as_ref().map(|v| v.display(column.data_type));
            let told = Told {
                column: Some(column.name.clone()),
                value: value.unwrap_or_default().into_bytes(),
                reason: format!("breaks {}", rule.sql()),
                advice: "--max-rejects N to set such records aside".to_owned(),
            };
            let value = RejectedValue::Apart(told.value.clone());
            let reason = BadRecord::Told(Arc::new(told));
            let reject = RejectedRecord { reason, line: line - 1, offset, value, raw };
            self.rejects.push((line, reject));
        }
        self.rejects.sort_by_key(|(_, reject)| reject.offset);
    }

    fn reject(&mut self, line: u64, start: usize, reason: BadRecord, value: &[u8], raw: &[u8]) {
        let (value, raw) = (RejectedValue::Apart(value.to_vec()), raw.to_vec());
        let reject = RejectedRecord { reason, line, offset: start as u64, value, raw };
        self.rejects.push((line + 1, reject));
    }
}

/// The rejects of several inputs as a load tells them.
pub fn rejects(models: &[Model], options: &Options) -> Vec<Reject> {
    let columns: Vec<_> =
        options.read_schema().columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
    let of_input = |(model, input): (&Model, coload_source::InputFile)| {
        let name = input.name;
        let tell =
            |(line, r): &(u64, RejectedRecord)| Reject::new(r.clone(), &name, *line, &columns);
        model.rejects.iter().map(tell).collect::<Vec<_>>()
    };
    models.iter().zip(options.inputs.iter()).flat_map(of_input).collect()
}

/// The file of rejects.
pub fn rejects_file(rejects: &[Reject]) -> Vec<u8> {
    let mut writer = RejectWriter::new(Vec::new(), RejectColumns::Plain).unwrap();
    for reject in rejects {
        writer.write(reject).unwrap();
    }
    writer.finish().unwrap()
}

fn rules(dialect: &Dialect, schema: &Schema, column: usize) -> ColumnRules {
    let field = Some(column);
    let column = &schema.columns()[column];
    ColumnRules {
        field,
        absent: None,
        origin: TypeOrigin::Declared,
        data_type: column.data_type,
        nullable: column.nullable,
        empties_are_null: dialect.json.is_some(),
        fields: dialect.field_rules().of(column.data_type),
    }
}

/// The row of the table for one that was read from the first input.
fn derive(row: &Row, options: &Options) -> Row {
    let Some(derivation) = &options.derivation else { return row.clone() };
    let value = |from: &ColumnFrom| match from {
        ColumnFrom::Read(index) => row[*index].clone(),
        ColumnFrom::Constant(value) => value.clone(),
        ColumnFrom::Partition(_) => panic!("no model knows paths"),
        ColumnFrom::LoadTime => panic!("no model knows the time"),
        ColumnFrom::InputName => Some(Value::Bytes(options.inputs.name(0).as_bytes().into())),
    };
    derivation.columns.iter().map(value).collect()
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|b| **b == b'\n').count() as u64
}

/// Where the data starts, and the lines before it.
fn first_record(text: &[u8], dialect: &Dialect) -> (usize, u64) {
    let mut at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let line_end =
        |at: usize| text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |p| at + p + 1);
    let start = at;
    for _ in 0..dialect.skip {
        at = line_end(at);
    }
    if dialect.header == Header::Present {
        while at < text.len()
            && (dialect.comment == Some(text[at])
                || text[at..].starts_with(b"\n")
                || text[at..].starts_with(b"\r\n"))
        {
            at = line_end(at);
        }
        if at < text.len() {
            let header = records(text, at, dialect).next();
            at = header.and_then(|(end, _)| end).map_or(text.len(), |e| (e + 1).min(text.len()));
        }
    }
    (at, newlines(&text[start..at]))
}

/// The records from `start` on: where each one's newline stands (`None` when a quote is left open)
/// and where its fields stand. A last line without a newline counts as if it had one.
fn records<'a>(
    text: &'a [u8],
    start: usize,
    dialect: &Dialect,
) -> impl Iterator<Item = (Option<usize>, Vec<(usize, usize)>)> + use<'a> {
    let mut text = text.to_vec();
    if text.len() > start && text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    let mut ends = Vec::new();
    let mut separators = dialect.record_rules(1).separators;
    if dialect.fixed.is_some() {
        // Only line ends tell; the fields are found later.
        (separators.delimiter, separators.quote) = (b'\n', None);
    }
    tokenise_slowly(&text, start, text.len(), separators, &mut ends);
    let mut all = Vec::new();
    let (mut field, mut fields) = (start, Vec::new());
    let mut record = start;
    for end in ends {
        let end = end as usize;
        fields.push((field, end));
        field = end + 1;
        if text[end] == b'\n' {
            all.push((Some(end), std::mem::take(&mut fields)));
            record = end + 1;
        }
    }
    if record < text.len() {
        all.push((None, Vec::new()));
    }
    all.into_iter()
}

/// The fields of a line, found anew for each from what the layout says of itself.
fn fixed_fields<'a>(line: &'a [u8], fixed: &FixedWidths) -> Vec<&'a [u8]> {
    // A character starts at the first byte and at each that goes on none.
    let mut starts: Vec<usize> =
        (0..line.len()).filter(|at| *at == 0 || line[*at] >> 6 != 2).collect();
    let characters = starts.len();
    starts.push(line.len());
    let (layout, mut fields, mut end) = (fixed.to_string(), Vec::new(), 0);
    let number = |text: &str| text.parse::<usize>().unwrap();
    let by_ranges = layout.contains('-');
    for part in layout.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, "")) => (number(first) - 1, usize::MAX),
            Some((first, last)) => (number(first) - 1, number(last)),
            None => (end, end + number(part)),
        };
        if first >= characters {
            return fields;
        }
        fields.push(without_spaces(&line[starts[first]..starts[last.min(characters)]]));
        end = last.min(characters);
    }
    let rest = without_spaces(&line[starts[end]..]);
    if !by_ranges && !rest.is_empty() {
        fields.push(rest);
    }
    fields
}

fn without_spaces(mut field: &[u8]) -> &[u8] {
    while let Some(shorter) = field.strip_prefix(b" ") {
        field = shorter;
    }
    while let Some(shorter) = field.strip_suffix(b" ") {
        field = shorter;
    }
    field
}
