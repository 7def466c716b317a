//! What must become of a dirty text: its records read by the careful reader, which has all of the text.

use std::borrow::Cow;

use coload_source::{
    CarefulField, CarefulRecord, Dialect, InvalidBytes, Mending, Ragged, Reading, RecordRules,
    Trailing, field_text, read_record,
};
use coload_types::Value;

/// The values of a row.
pub type Row = Vec<Option<Value>>;

/// What becomes of a text, read slowly from its first byte to its last.
#[derive(Debug, Default, PartialEq)]
pub struct Expected {
    /// Rows of text; none is NULL.
    pub rows: Vec<Row>,
    /// Line and byte offset of each reject.
    pub rejects: Vec<(u64, u64)>,
    /// Rows mended, by kind.
    pub mended: [u64; Mending::ALL.len()],
    /// Longest record.
    pub record_bytes_max: usize,
}

impl Expected {
    /// All columns are text, and no field is NULL.
    pub fn read(text: &[u8], dialect: &Dialect, columns: usize) -> Self {
        let rules = dialect.record_rules(columns);
        let mut out = Expected::default();
        let mut record = CarefulRecord::default();
        let (mut at, mut line) = (0, 1);
        let mut headers = dialect.header_records();
        while at < text.len() {
            assert_eq!(read_record(text, at, true, &rules, &mut record), Reading::Whole);
            let blank = record.comment || record.end == at && (columns > 1 || headers > 0);
            if blank {
            } else if headers > 0 {
                headers -= 1;
            } else {
                out.record_bytes_max = out.record_bytes_max.max(record.next - at);
                out.take(text, &record, (dialect, &rules), (line, at as u64));
            }
            line += record.lines;
            at = record.next;
        }
        out
    }

    fn take(
        &mut self,
        text: &[u8],
        record: &CarefulRecord,
        (dialect, rules): (&Dialect, &RecordRules),
        at: (u64, u64),
    ) {
        let Some((fields, mut mendings)) = fields(text, record, rules) else {
            return self.rejects.push(at);
        };
        // An escape that ends a field has nothing behind it.
        let of_fields = dialect.field_rules();
        let kept = record.fields.iter().take(rules.fields).filter(|f| f.is_regular());
        if kept.map(|f| of_fields.read(&text[f.start..f.end])).any(|read| read.is_err()) {
            return self.rejects.push(at);
        }
        let mut row = Row::new();
        for field in fields {
            if field.contains(&0) {
                return self.rejects.push(at);
            }
            match (String::from_utf8(field), rules.policies.invalid_bytes) {
                (Ok(field), _) => row.push(Some(Value::Bytes(field.into_bytes().into()))),
                (Err(_), InvalidBytes::Reject) => return self.rejects.push(at),
                (Err(error), InvalidBytes::Replace) => {
                    let clean = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    row.push(Some(Value::Bytes(clean.into_bytes().into())));
                    if !mendings.contains(&Mending::Replaced) {
                        mendings.push(Mending::Replaced);
                    }
                }
            }
        }
        self.rows.push(row);
        mendings.into_iter().for_each(|m| self.mended[m as usize] += 1);
    }
}

type Fields = (Vec<Vec<u8>>, Vec<Mending>);

/// The fields as meant, as many as there are columns, and what had to be done.
fn fields(text: &[u8], record: &CarefulRecord, rules: &RecordRules) -> Option<Fields> {
    let mut mendings = Vec::new();
    let mut fields = record.fields.clone();
    let is_empty = |f: &CarefulField| f.start == f.end;
    if rules.trailing == Trailing::Delimiter
        && fields.len() == rules.fields + 1
        && is_empty(&fields[rules.fields])
    {
        fields.pop();
    }
    if record.is_faulty() {
        return None;
    }
    let surplus = fields.len() > rules.fields;
    let nothing = !surplus || fields[rules.fields..].iter().all(is_empty);
    match rules.policies.ragged {
        _ if fields.len() == rules.fields => {}
        Ragged::Reject => return None,
        _ if !surplus => mendings.push(Mending::Padded),
        _ if nothing => mendings.push(Mending::Trimmed),
        Ragged::Pad => return None,
        Ragged::Truncate => mendings.push(Mending::Truncated),
    }
    fields.truncate(rules.fields);
    if fields.iter().any(|f| !f.is_regular()) {
        mendings.push(Mending::Requoted);
    }
    let mut texts: Vec<Vec<u8>> =
        fields.iter().map(|f| field_text(text, *f, rules)).map(Cow::into_owned).collect();
    texts.resize(rules.fields, Vec::new());
    Some((texts, mendings))
}
