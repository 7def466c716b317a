//! JSON: what separates records, which paths are columns, and of which types.
//!
//! ```text
//!   {"id": 1, "who": {"name": "Ann"}, "tags": ["a"]}   ->   id BIGINT, who.name VARCHAR, tags VARCHAR[]
//! ```
//!
//! A path whose values are all objects becomes the paths of these. One whose values are lists of values of one kind is a list.
//! One with other lists, or an object among its values, holds JSON, and so does an object whose keys are no names but values:
//! many of them, few in each.

use std::collections::HashMap;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_json::{
    Between, Fault, Holds, Item, Json, Keys, LineBreaks, PADDING, Path, Splitter, parse_tree,
};
use coload_types::{Column, DataType, Error, Place, Result, same_name};

use super::foreign::{is_empty_document, is_json};
use super::{Sniffed, bom_len, given_formats, given_types};
use crate::dialect::{Dialect, GivenDialect};
use crate::header::unique_texts;
use crate::infer::{ColumnForms, given_columns};
use crate::json::{
    InputFormat, JsonForm, JsonMapping, JsonRules, MappedColumn, WHOLE, evidence_of, tell_fault,
};
use crate::reject::shorten;
use crate::sample::SampleEnd;

/// Keys that an object of names has at most, if each of its objects has few of them.
const NAMES_MAX: usize = 64;
/// An object has a tenth of the names at least.
const NAMES_PER_OBJECT: usize = 10;
/// Most keys of a path.
const PATH_KEYS_MAX: usize = 16;

/// The first bytes of an input, and whether they are all.
pub type JsonSample<'a> = (&'a [u8], SampleEnd);

/// What the first bytes of an input of JSON tell of its columns, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonTells {
    /// There is no record.
    Nothing,
    /// There are records, or what stands in their place, and none has a key.
    Records,
    /// A record has a key.
    Keys,
}

/// What a text tells of columns; `None` when it does not look like JSON, or is delimited as somebody says.
pub fn json_tells(text: &[u8], end: SampleEnd, given: &GivenDialect) -> Option<JsonTells> {
    if given.encoding.is_some_and(|encoding| encoding != coload_input::Encoding::Utf8)
        || !looks_like_json(text, given)
    {
        return None;
    }
    let mut tells = JsonTells::Nothing;
    let mut records = splitter(text, end);
    loop {
        match records.next_item() {
            Item::Record { start, end } => {
                tells = JsonTells::Records;
                let record = parse_tree(&padded(&text[start..end]), 0, LineBreaks::AreSpace)
                    .is_ok_and(|(record, _)| has_keys(&record));
                if record {
                    return Some(JsonTells::Keys);
                }
            }
            Item::Bad { .. } => tells = JsonTells::Records,
            // What is longer than what is looked at has keys, for all that is known.
            Item::More => return Some(JsonTells::Keys),
            Item::End => return Some(tells),
        }
    }
}

fn has_keys(record: &Json<'_>) -> bool {
    matches!(record, Json::Object(entries, _) if !entries.is_empty())
}

/// Whether a text looks like JSON, or is to be read so, and nothing says that it is delimited.
fn looks_like_json(text: &[u8], given: &GivenDialect) -> bool {
    match given.format {
        Some(InputFormat::Text | InputFormat::Sheet) => return false,
        Some(InputFormat::Json | InputFormat::JsonLines) => return true,
        None => {}
    }
    let told = given.delimiter.is_some() || given.fixed.is_some() || given.aligned.is_some();
    let has_paths = given.list().is_some() || given.mapping.is_some();
    let text = text[bom_len(text)..].trim_ascii_start();
    (!told || has_paths) && (is_json(text) || is_empty_document(text))
}

/// Whether a text is to be read as JSON: it looks so, and nothing says that it is delimited. Where the columns are known, one
/// of them must be a key, if there is one.
pub(super) fn is_to_be_json(text: &[u8], given: &GivenDialect, schema: Option<&Schema>) -> bool {
    if !looks_like_json(text, given) {
        return false;
    }
    let is_said = given.format.is_some() || given.list().is_some() || given.mapping.is_some();
    let Some(schema) = schema.filter(|_| !is_said) else { return true };
    if is_empty_document(&text[bom_len(text)..]) {
        return true;
    }
    let mut seen = Seen::default();
    seen.add_records(text, SampleEnd::Cut, JsonForm::Documents, given);
    let is_column = |(key, _): &(Vec<u8>, Seen)| {
        let key = String::from_utf8_lossy(key).to_lowercase();
        let of = |name: &str| name == key || name.starts_with(&format!("{key}."));
        schema.columns().iter().any(|column| of(&column.name.to_lowercase()))
    };
    seen.children.iter().any(is_column)
}

/// Paths and columns of inputs of JSON; `schema` has the columns by their names, if there is one.
///
/// # Errors
/// `Input` or `Invalid` when no record tells the columns, `Invalid` when `--types` names a path that there is not, or when there
/// are too many columns.
pub fn sniff_json(
    name: &str,
    samples: &[JsonSample<'_>],
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    let is_blank = |text: &[u8]| text[bom_len(text)..].trim_ascii().is_empty();
    let mut with_text = samples.iter().filter(|(text, _)| !is_blank(text)).peekable();
    let form = match given.format {
        Some(InputFormat::JsonLines) => JsonForm::Lines,
        _ if with_text.peek().is_some()
            && with_text.all(|(text, end)| has_lines(text, *end, samples.len())) =>
        {
            JsonForm::Lines
        }
        _ => JsonForm::Documents,
    };
    let mut seen = Seen::default();
    for (text, end) in samples {
        seen.add_records(text, *end, form, given);
    }
    let mut leaves = Vec::new();
    seen.leaves(&mut Vec::new(), &mut leaves);
    if let Some(list) = given.list() {
        with_items(list, &seen, &mut leaves);
    }
    let mut evidence =
        vec![match form {
        JsonForm::Lines => "JSON, a record on each line (--format json or text says otherwise)",
        JsonForm::Documents => {
            "JSON, documents or lists of records (--format json-lines or text says otherwise)"
        }
    }
    .to_owned()];
    if let Some(list) = given.list() {
        evidence.push(format!(
            "rows are the items of {}: {} in the first {} records (--unnest)",
            list.join("."),
            seen.items.as_ref().map_or(0, |items| items.values() + items.nulls),
            seen.objects
        ));
    }
    let names = match &given.mapping {
        Some(mapping) => {
            leaves = mapped(mapping, &leaves);
            mapping.columns.iter().map(|column| column.name.clone()).collect()
        }
        None if leaves.is_empty() && schema.is_none() => return Err(no_columns(name, samples)),
        None => unique_texts(leaves.iter().map(|leaf| leaf.path.keys.join("."))),
    };
    let end = match samples {
        [(_, SampleEnd::Whole)] => SampleEnd::Whole,
        _ => SampleEnd::Cut,
    };
    let is_json = |leaf: &Leaf| {
        leaf.path.holds == Holds::Json && leaf.forms.data_type(end) == DataType::Varchar(None)
    };
    let lists: Vec<&str> = names
        .iter()
        .zip(&leaves)
        .filter(|(_, leaf)| is_json(leaf))
        .map(|(name, _)| name.as_str())
        .collect();
    if !lists.is_empty() {
        evidence.push(format!(
            "JSON as text, of lists, objects and what they stand beside: {}",
            lists.join(", ")
        ));
    }
    let (schema, forms, mut paths) = match schema {
        Some(schema) => {
            (schema.clone(), Vec::new(), paths_of(schema, &names, &leaves, given.list())?)
        }
        None => {
            evidence.push(format!("types: from {} records", seen.objects));
            let given = &with_mapped_types(given)?;
            let (schema, forms) = columns_of(names, &leaves, given, end)?;
            (schema, forms, leaves.into_iter().map(|leaf| leaf.path).collect())
        }
    };
    // Fields behind those of the columns, which nobody reads.
    let elsewhere = given.mapping.iter().flat_map(|mapping| &mapping.elsewhere);
    paths.extend(elsewhere.map(|keys| Path { keys: keys.clone(), holds: Holds::Json }));
    let keys = Keys::new(paths).map_err(|text| Error::Invalid(format!("{name}: {text}")))?;
    let unnest = given.list().cloned();
    let rules = JsonRules { form, keys: Arc::new(keys), unknown: given.unknown_keys, unnest };
    rules.check()?;
    let dialect = Dialect {
        delimiter: b'\n',
        formats: given_formats(given),
        types: given.types.unwrap_or_default(),
        typed: given_columns(&forms),
        json: Some(Arc::new(rules)),
        ..Dialect::default()
    };
    dialect.check()?;
    Ok(Sniffed { dialect, schema, forms, evidence })
}

fn columns_of(
    names: Vec<String>,
    leaves: &[Leaf],
    given: &GivenDialect,
    end: SampleEnd,
) -> Result<(Schema, Vec<ColumnForms>)> {
    let typed = given_types(&names, &given.columns)?;
    let mut forms: Vec<ColumnForms> = leaves.iter().map(|leaf| leaf.forms).collect();
    let column = |((name, forms), typed): ((String, &mut ColumnForms), Option<Column>)| {
        if let Some(column) = &typed {
            forms.give(column.data_type);
        }
        let data_type = if given.all_text { DataType::Varchar(None) } else { forms.data_type(end) };
        typed.unwrap_or_else(|| Column::new(name, data_type))
    };
    let columns = names.into_iter().zip(&mut forms).zip(typed).map(column).collect();
    let forms = if given.all_text { Vec::new() } else { forms };
    Ok((Schema::new(columns)?, forms))
}

/// Puts the values of items in the place of their list.
fn with_items(list: &[String], seen: &Seen, leaves: &mut Vec<Leaf>) {
    let at = leaves.iter().position(|leaf| leaf.path.keys.starts_with(list));
    leaves.retain(|leaf| !leaf.path.keys.starts_with(list));
    let mut of_items = Vec::new();
    if let Some(items) = &seen.items {
        let mut keys = list.to_vec();
        match items.scalars + items.lists == 0 {
            true => items.leaves(&mut keys, &mut of_items),
            false => of_items.push(items.leaf(&keys)),
        }
    }
    let at = at.unwrap_or(leaves.len()).min(leaves.len());
    leaves.splice(at..at, of_items);
}

/// The values that a mapping names, with what was seen of them.
fn mapped(mapping: &JsonMapping, leaves: &[Leaf]) -> Vec<Leaf> {
    let leaf = |column: &MappedColumn| {
        let found = leaves.iter().find(|leaf| leaf.path.keys == column.path);
        let is_object = leaves.iter().any(|leaf| leaf.path.keys.starts_with(&column.path));
        let seen = found.map(|leaf| leaf.path.holds);
        let holds =
            column.holds.or(seen).unwrap_or(if is_object { Holds::Json } else { Holds::Value });
        let mut forms = found.map_or_else(ColumnForms::default, |leaf| leaf.forms);
        // Lists of values stay lists, if nobody says that they are JSON.
        if column.holds == Some(Holds::Json) || holds == Holds::Json && found.is_none() {
            forms.make_text();
        }
        Leaf { path: Path { keys: column.path.clone(), holds }, forms }
    };
    mapping.columns.iter().map(leaf).collect()
}

/// What is given, with the types of a mapping.
fn with_mapped_types(given: &GivenDialect) -> Result<GivenDialect> {
    let mut all = given.clone();
    let mapped = given.mapping.iter().flat_map(|mapping| &mapping.columns);
    for column in mapped.filter_map(|column| column.given.as_ref()) {
        if given.columns.iter().any(|other| same_name(&other.name, &column.name)) {
            return Err(Error::Invalid(format!(
                "column {} has a type in --types and in --mapping: say it once",
                column.name
            )));
        }
        all.columns.push(column.clone());
    }
    Ok(all)
}

/// The paths of columns that are known: those of the same names, else what their names say.
fn paths_of(
    schema: &Schema,
    names: &[String],
    leaves: &[Leaf],
    list: Option<&Vec<String>>,
) -> Result<Vec<Path>> {
    let path = |column: &Column| {
        let same = |name: &String| *name == column.name;
        let alike = |name: &String| same_name(name, &column.name);
        let at = names.iter().position(same).or_else(|| names.iter().position(alike));
        let is_list = matches!(column.data_type, DataType::List(_));
        match at {
            // A string is no list, whatever stands in it.
            Some(at) if is_list => Path { holds: Holds::Json, ..leaves[at].path.clone() },
            Some(at) => leaves[at].path.clone(),
            None => {
                let keys: Vec<String> = column.name.split('.').map(str::to_owned).collect();
                let is_leaf = |leaf: &Leaf| {
                    // Items may be objects, whatever some of them are.
                    let is_list = list == Some(&leaf.path.keys);
                    !is_list && keys.starts_with(&leaf.path.keys)
                        || leaf.path.keys.starts_with(&keys)
                };
                let keys =
                    if leaves.iter().any(is_leaf) { vec![column.name.clone()] } else { keys };
                Path { keys, holds: if is_list { Holds::Json } else { Holds::Value } }
            }
        }
    };
    Ok(schema.columns().iter().map(path).collect())
}

/// What to say of inputs of which no record tells the columns.
fn no_columns(name: &str, samples: &[JsonSample<'_>]) -> Error {
    const GIVE: &str = "give --columns or --schema";
    let Some((text, end)) = samples.iter().find(|(text, _)| !text.trim_ascii().is_empty()) else {
        return Error::Invalid(format!(
            "{name} holds no record, so that its columns cannot be told: {GIVE}"
        ));
    };
    let mut records = splitter(text, *end);
    let mut count = 0;
    loop {
        let (start, end, fault) = match records.next_item() {
            Item::Record { start, end } => {
                match parse_tree(&padded(&text[start..end]), 0, LineBreaks::AreSpace) {
                    Ok(_) => {
                        count += 1;
                        continue;
                    }
                    Err(fault) => (start, end, Fault::new(fault.rule, start + fault.at)),
                }
            }
            Item::Bad { start, end, fault } => (start, end, fault),
            Item::More => {
                return Error::Invalid(format!(
                    "{name} looks like JSON, and no record ends in the first {} bytes: give a larger --sample",
                    text.len()
                ));
            }
            Item::End => {
                let what = match count {
                    0 => "holds no record",
                    _ => "looks like JSON, and no record has a value for a column",
                };
                return Error::Invalid(format!(
                    "{name} {what}, so that its columns cannot be told: {GIVE}"
                ));
            }
        };
        let (path, value) = tell_fault(&text[start..end], fault.at - start, fault.rule);
        let column = if path == WHOLE { String::new() } else { format!(" (column {path})") };
        let newlines = memchr::memchr_iter(b'\n', &text[..start]).count();
        let line = 1 + newlines as u64;
        let place = Place { file: name.to_owned(), line, byte: start as u64, field: 0 };
        let text = format!(
            "\"{}\" {}{column}, and no other record tells the columns: {GIVE}, and --max-rejects N to set such records aside \
             (or --format text to load the lines as they are)",
            shorten(&value),
            fault.rule.text()
        );
        return Error::Input { place: Box::new(place), text };
    }
}

fn splitter(text: &[u8], end: SampleEnd) -> Splitter<'_> {
    let is_last = end == SampleEnd::Whole;
    Splitter { text, end: text.len(), is_last, at: bom_len(text), between: Between::default() }
}

/// Whether each record stands on a line of its own, as far as the sample tells. A single record of several inputs may be on many
/// lines in others.
fn has_lines(text: &[u8], end: SampleEnd, inputs: usize) -> bool {
    begins_with_line(text, end, inputs) && !goes_over_lines(text, end)
}

/// Whether some record goes over lines, and is one: a line that is cut short does not become a record with the next.
fn goes_over_lines(text: &[u8], end: SampleEnd) -> bool {
    let mut records = splitter(text, end);
    loop {
        match records.next_item() {
            Item::Record { start, end } => {
                let record = &text[start..end];
                if memchr::memchr(b'\n', record).is_some()
                    && parse_tree(&padded(record), 0, LineBreaks::AreSpace)
                        .is_ok_and(|(_, behind)| behind == record.len())
                {
                    return true;
                }
            }
            Item::Bad { .. } => {}
            Item::End | Item::More => return false,
        }
    }
}

/// Whether the first record stands on a line of its own, as far as the first two tell.
fn begins_with_line(text: &[u8], end: SampleEnd, inputs: usize) -> bool {
    let mut records = splitter(text, end);
    let Item::Record { start, end: first } = records.next_item() else {
        // What is wrong on a line is wrong on it only.
        return records.between == Between::Documents && is_closed_line(text);
    };
    if records.between != Between::Documents || text[start..first].contains(&b'\n') {
        return false;
    }
    let rest = &text[first..];
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !line.trim_ascii().is_empty() {
        return false;
    }
    let is_alone = rest.trim_ascii().is_empty() && end == SampleEnd::Whole;
    !(is_alone && inputs > 1)
}

/// Whether the first line is an object by its first and last bytes.
fn is_closed_line(text: &[u8]) -> bool {
    let text = text[bom_len(text)..].trim_ascii_start();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    line.len() < text.len() && line.starts_with(b"{") && line.ends_with(b"}")
}

fn padded(text: &[u8]) -> Vec<u8> {
    [text, &[0; PADDING]].concat()
}

/// A path, and what its values have in common.
struct Leaf {
    path: Path,
    forms: ColumnForms,
}

/// What was seen at a path.
#[derive(Default)]
struct Seen {
    /// Keys of its objects, in the order in which they came.
    children: Vec<(Vec<u8>, Seen)>,
    by_key: HashMap<Vec<u8>, usize>,
    /// Values that are not NULL, by kind.
    objects: usize,
    lists: usize,
    scalars: usize,
    nulls: usize,
    forms: ColumnForms,
    /// What the elements of its lists have in common.
    elements: Option<ColumnForms>,
    /// Items of the list that is unnested; of the record only.
    items: Option<Box<Seen>>,
}

impl Seen {
    /// Adds the records of a text that are some.
    fn add_records(&mut self, text: &[u8], end: SampleEnd, form: JsonForm, given: &GivenDialect) {
        let padded = padded(text);
        let formats = given_formats(given);
        let mut add = |start: usize, breaks: LineBreaks| {
            if let Ok((Json::Object(entries, raw), _)) = parse_tree(&padded, start, breaks)
                && std::str::from_utf8(raw).is_ok()
            {
                self.objects += 1;
                self.add_entries(&entries, given, &formats);
                if let Some(Json::List(list)) =
                    given.list().and_then(|list| value_at(&entries, list))
                {
                    self.add_items(list, given, &formats);
                }
            }
        };
        if form == JsonForm::Lines {
            let mut at = bom_len(text);
            while at < text.len() {
                let newline = memchr::memchr(b'\n', &text[at..]);
                if newline.is_none() && end == SampleEnd::Cut {
                    break;
                }
                let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
                let blanks = text[at..].iter().take_while(is_blank).count();
                add(at + blanks, LineBreaks::EndRecords);
                at = newline.map_or(text.len(), |newline| at + newline + 1);
            }
            return;
        }
        let mut records = splitter(text, end);
        loop {
            match records.next_item() {
                Item::Record { start, .. } => add(start, LineBreaks::AreSpace),
                Item::Bad { .. } => {}
                Item::End | Item::More => return,
            }
        }
    }

    /// Adds the items of a list.
    fn add_items(&mut self, list: &[u8], given: &GivenDialect, formats: &crate::formats::Formats) {
        let text = padded(list);
        let items = self.items.get_or_insert_with(|| {
            let forms = ColumnForms::trying(given.types.unwrap_or_default());
            Box::new(Seen { forms, ..Seen::default() })
        });
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let mut at = 1;
        loop {
            at += text[at..].iter().take_while(|byte| is_between(byte)).count();
            let Ok((item, end)) = parse_tree(&text, at, LineBreaks::AreSpace) else { return };
            items.add_value(&item, given, formats);
            at = end;
        }
    }

    fn add_entries(
        &mut self,
        entries: &[(std::borrow::Cow<'_, [u8]>, Json<'_>)],
        given: &GivenDialect,
        formats: &crate::formats::Formats,
    ) {
        for (key, value) in entries {
            let at = match self.by_key.get(&key[..]) {
                Some(at) => *at,
                None => {
                    let at = self.children.len();
                    let forms = ColumnForms::trying(given.types.unwrap_or_default());
                    self.children.push((key.to_vec(), Seen { forms, ..Seen::default() }));
                    self.by_key.insert(key.to_vec(), at);
                    at
                }
            };
            self.children[at].1.add_value(value, given, formats);
        }
    }

    fn add_value(
        &mut self,
        value: &Json<'_>,
        given: &GivenDialect,
        formats: &crate::formats::Formats,
    ) {
        match value {
            Json::Null => self.nulls += 1,
            Json::Object(inner, _) => {
                self.objects += 1;
                self.add_entries(inner, given, formats);
            }
            Json::List(list) => {
                self.lists += 1;
                let order = given.types.unwrap_or_default();
                let elements = self.elements.get_or_insert_with(|| ColumnForms::of_lists(order));
                elements.add(list, formats);
            }
            Json::Bool(_) | Json::Number(_) | Json::Text(_) => self.scalars += 1,
        }
        if let Some(field) = evidence_of(value, Holds::Value, formats) {
            self.forms.add(&field, formats);
            if matches!(value, Json::Number(_)) {
                self.forms.note_number();
            }
        }
    }

    /// Whether its keys are values, not names.
    fn is_map(&self) -> bool {
        let met: usize = self.children.iter().map(|(_, child)| child.values()).sum();
        let names = self.children.len();
        names > NAMES_MAX
            && met.saturating_mul(NAMES_PER_OBJECT) < names.saturating_mul(self.objects)
    }

    fn values(&self) -> usize {
        self.objects + self.lists + self.scalars
    }

    fn leaves(&self, keys: &mut Vec<String>, out: &mut Vec<Leaf>) {
        for (key, child) in &self.children {
            keys.push(String::from_utf8_lossy(key).into_owned());
            let has_keys = !child.children.is_empty() && keys.len() < PATH_KEYS_MAX;
            if child.lists + child.scalars == 0 && has_keys && !child.is_map() {
                child.leaves(keys, out);
            } else {
                out.push(child.leaf(keys));
            }
            keys.pop();
        }
    }

    /// The column of what was seen, at a path.
    fn leaf(&self, keys: &[String]) -> Leaf {
        let is_json = self.lists + self.objects > 0;
        let holds = if is_json { Holds::Json } else { Holds::Value };
        let mut forms = self.forms;
        match self.elements {
            Some(elements) if self.objects + self.scalars == 0 => forms = elements,
            _ if is_json => forms.make_text(),
            _ => {}
        }
        Leaf { path: Path { keys: keys.to_vec(), holds }, forms }
    }
}

/// The value at a path of a record.
fn value_at<'a>(
    entries: &'a [(std::borrow::Cow<'_, [u8]>, Json<'a>)],
    path: &[String],
) -> Option<&'a Json<'a>> {
    let (first, rest) = path.split_first()?;
    let (_, value) = entries.iter().find(|(key, _)| **key == *first.as_bytes())?;
    match (rest, value) {
        ([], value) => Some(value),
        (rest, Json::Object(inner, _)) => value_at(inner, rest),
        _ => None,
    }
}
