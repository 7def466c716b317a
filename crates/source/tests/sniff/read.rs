//! Reads a text as a load would that is told nothing, slowly: what is found out decides everything.

use coload_input::{End, convert_all};
use coload_source::{
    CarefulRecord, Dialect, GivenDialect, Ragged, Reading, SampleEnd, bom_len, field_text,
    first_line, read_record, sniff,
};
use coload_types::{DataType, parse_value};

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Table {
    pub names: Vec<String>,
    pub types: Vec<DataType>,
    /// Values as SQL writes them; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Records that a load would set aside.
    pub rejects: usize,
    pub dialect: Dialect,
    pub evidence: Vec<String>,
}

/// Reads all of a text.
pub fn read(bytes: &[u8]) -> Result<Table, String> {
    read_given(bytes, &GivenDialect::default())
}

/// Reads all of a text of which something is known.
pub fn read_given(bytes: &[u8], given: &GivenDialect) -> Result<Table, String> {
    let found = sniff("t.csv", bytes, SampleEnd::Whole, given, None).map_err(|e| e.to_string())?;
    let dialect = found.dialect;
    let said = dialect.encoding.said;
    let (encoding, mark) = dialect.encoding.encoding.of_text(bytes, said);
    let text = convert_all(encoding, &bytes[mark..], End::Here);
    let body = &text[bom_len(&text)..];
    let types: Vec<DataType> = found.schema.columns().iter().map(|c| c.data_type).collect();
    let rules = dialect.record_rules(types.len());
    let mut at = 0;
    for _ in 0..dialect.skip {
        at += first_line(&body[at..], true, &rules).unwrap_or(0);
    }
    let mut ends = vec![at];
    let mut end = at;
    while end < body.len() {
        end += first_line(&body[end..], true, &rules).unwrap();
        ends.push(end);
    }
    let last = ends[ends.len().saturating_sub(1 + dialect.footer as usize)];
    let body = &body[..last];
    let mut table = Table {
        names: found.schema.columns().iter().map(|c| c.name.clone()).collect(),
        types,
        rows: Vec::new(),
        rejects: 0,
        dialect,
        evidence: found.evidence,
    };
    let mut record = CarefulRecord::default();
    let mut header = table.dialect.header_records();
    while at < body.len() && read_record(body, at, true, &rules, &mut record) == Reading::Whole {
        let blank = record.end == at && table.types.len() > 1;
        let start = at;
        at = record.next;
        if record.comment || blank || start == body.len() {
            continue;
        }
        if header > 0 {
            header -= 1;
            continue;
        }
        match row(body, &record, &table) {
            Some(row) => table.rows.push(row),
            None => table.rejects += 1,
        }
    }
    Ok(table)
}

fn row(text: &[u8], record: &CarefulRecord, table: &Table) -> Option<Vec<Option<String>>> {
    let columns = table.types.len();
    let rules = table.dialect.record_rules(columns);
    let mut fields = record.fields.clone();
    let ragged = table.dialect.policies.ragged;
    if record.is_faulty() {
        return None;
    }
    if !rules.takes(fields.len()) {
        let empty = |f: &coload_source::CarefulField| f.start == f.end;
        let mends = ragged != Ragged::Reject
            && (fields.len() < columns || fields[columns..].iter().all(empty));
        if !mends {
            return None;
        }
    }
    fields.truncate(columns);
    let mut row = Vec::new();
    for (field, data_type) in fields.iter().zip(&table.types) {
        let own = table.dialect.field_rules().of(*data_type);
        let raw = &text[field.start..field.end];
        let quoted = table.dialect.quote.is_some_and(|q| raw.first() == Some(&q));
        let value = field_text(text, *field, &rules);
        let is_null = !(quoted && field.is_regular()) && own.nulls.iter().any(|n| **n == *value)
            || own.is_typed_null(&value);
        if is_null {
            row.push(None);
            continue;
        }
        let plain = own.formats.rewrite(&value, *data_type)?;
        parse_value(&plain, *data_type).ok()?;
        row.push(Some(String::from_utf8_lossy(&plain).into_owned()));
    }
    row.resize(columns, None);
    Some(row)
}

/// Whether two values of a type are the same.
pub fn same(a: &Option<String>, b: &Option<String>, data_type: DataType) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a == b => true,
        (Some(a), Some(b)) => {
            match (parse_value(a.as_bytes(), data_type), parse_value(b.as_bytes(), data_type)) {
                (Ok(a), Ok(b)) => a == b,
                _ => false,
            }
        }
        (a, b) => a == b,
    }
}
