//! The slow, obvious way to read a delimited text: one byte, one field, one row after the other.

use coload_format::{Schema, Value};
use coload_load::LoadOptions;
use coload_source::{
    BadRecord, ColumnRules, Dialect, Header, Reject, RejectWriter, RejectedRecord, Trailing,
    TypeOrigin, tokenise_slowly,
};

/// A row; `None` is NULL.
pub type Row = Vec<Option<Value>>;

/// What a text holds.
#[derive(Debug, Default)]
pub struct Model {
    /// Rows in order.
    pub rows: Vec<Row>,
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
        let last = values.len() - 1;
        values[last] = values[last].strip_suffix(b"\r").unwrap_or(values[last]);
        if dialect.trailing == Trailing::Delimiter
            && values.len() == schema.len() + 1
            && values[last].is_empty()
        {
            values.pop();
        }
        if values.len() != schema.len() {
            let found = fields.len();
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
    }

    fn reject(&mut self, line: u64, start: usize, reason: BadRecord, value: &[u8], raw: &[u8]) {
        let (value, raw) = (value.to_vec(), raw.to_vec());
        let reject = RejectedRecord { reason, line, offset: start as u64, value, raw };
        self.rejects.push((line + 1, reject));
    }
}

/// The rejects of several inputs as a load tells them.
pub fn rejects(models: &[Model], options: &LoadOptions) -> Vec<Reject> {
    let columns: Vec<_> =
        options.schema.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
    let of_input = |(model, input): (&Model, &coload_source::InputFile)| {
        let name = input.name.clone();
        let tell =
            |(line, r): &(u64, RejectedRecord)| Reject::new(r.clone(), &name, *line, &columns);
        model.rejects.iter().map(tell).collect::<Vec<_>>()
    };
    models.iter().zip(&options.inputs).flat_map(of_input).collect()
}

/// The file of rejects.
pub fn rejects_file(rejects: &[Reject]) -> Vec<u8> {
    let mut writer = RejectWriter::new(Vec::new()).unwrap();
    for reject in rejects {
        writer.write(reject).unwrap();
    }
    writer.finish().unwrap()
}

fn rules(dialect: &Dialect, schema: &Schema, column: usize) -> ColumnRules {
    let field = column;
    let column = &schema.columns()[column];
    ColumnRules {
        field,
        origin: TypeOrigin::Declared,
        data_type: column.data_type,
        nullable: column.nullable,
        fields: dialect.field_rules(),
    }
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
    let separators = dialect.record_rules(1).separators;
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
