//! Reads the items of a list of a record, each as a row that has the values of the record beside its own.
//!
//! ```text
//!   {"id": 7, "items": [{"n": 1}, {"n": 2}], "day": "mo"}      fields id, items.n, day
//!   7 \n 1 \n mo \n 7 \n 2 \n mo \n
//! ```
//!
//! A record whose list is empty, NULL or not there has no rows. An item that is NULL has a row with NULLs.
//!
//! Cost: a record is read once, and its values are copied for each item. Memory: the rows of a record, at most [`ROWS_BYTES_MAX`].

use std::sync::Arc;

use crate::fault::{Fault, Rule};
use crate::keys::{Holds, Keys, Path};
use crate::row::{Read, RowReader, Rows, UnknownKeys};
use crate::space::{LineBreaks, byte_at, skip_space};
use crate::string::{Found, find_end, unescape};
use crate::value::Scratch;

/// Most bytes of the rows of one record: its values are there once for each item.
pub const ROWS_BYTES_MAX: usize = 64 << 20;

/// An item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Where it stands in the text.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// What is wrong with it, if it is no row.
    pub fault: Option<Fault>,
}

/// The items of a record, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items {
    /// Start and end of the list in the text.
    pub list: (usize, usize),
    /// What is in it.
    pub items: Vec<Item>,
}

/// Where a field comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Record(usize),
    Item(usize),
}

/// Reads records by the items of a list.
#[derive(Debug)]
pub struct ListReader {
    list: Vec<String>,
    record: RowReader,
    item: RowReader,
    /// Whether items are read as values, not as objects.
    are_values: bool,
    sources: Vec<Source>,
    scratch: Scratch,
    record_row: Rows,
    item_row: Rows,
}

impl ListReader {
    /// A reader of the list at a path. Paths that go on behind it are those of items; one that is the same is that of items which are no objects.
    ///
    /// # Errors
    /// What to say when paths clash.
    pub fn new(keys: &Keys, list: &[String], unknown: UnknownKeys) -> Result<Self, String> {
        let (mut of_record, mut of_item, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for path in keys.paths() {
            match path.keys.strip_prefix(list) {
                Some(inner) => {
                    sources.push(Source::Item(of_item.len()));
                    of_item.push(Path { keys: inner.to_vec(), holds: path.holds });
                }
                None => {
                    sources.push(Source::Record(of_record.len()));
                    of_record.push(path.clone());
                }
            }
        }
        // Behind the others, as it is never written, so that no field of the record is the last.
        of_record.push(Path { keys: list.to_vec(), holds: Holds::Json });
        let are_values = of_item.iter().any(|path| path.keys.is_empty());
        if are_values {
            if of_item.len() > 1 {
                return Err(format!("path {} clashes with another", list.join(".")));
            }
            of_item[0].keys.push(String::new());
        }
        let fields = of_record.len();
        let mut record = RowReader::new(Arc::new(Keys::new(of_record)?), unknown);
        record.read_as(fields - 1, Read::Nothing);
        Ok(ListReader {
            list: list.to_vec(),
            record,
            item: RowReader::new(Arc::new(Keys::new(of_item)?), unknown),
            are_values,
            sources,
            scratch: Scratch::default(),
            record_row: Rows::default(),
            item_row: Rows::default(),
        })
    }

    /// Says how the values of a field are written; one that is JSON stays so.
    pub fn read_as(&mut self, field: usize, read: Read) {
        match self.sources.get(field) {
            Some(Source::Record(field)) => self.record.read_as(*field, read),
            Some(Source::Item(field)) => self.item.read_as(*field, read),
            None => {}
        }
    }

    /// Reads the record that begins at `at`: a row for each item that is one, in their order; where it ends.
    ///
    /// # Errors
    /// What is wrong with the record; nothing is left of it then.
    pub fn read(
        &mut self,
        text: &[u8],
        at: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
        found: &mut Items,
    ) -> Result<usize, Fault> {
        found.items.clear();
        self.record_row.clear(ROWS_BYTES_MAX);
        let end = self.record.read(text, at, breaks, &mut self.record_row)?;
        rows.has_nul |= self.record_row.has_nul;
        rows.has_quotes |= self.record_row.has_quotes;
        let Some(list) = locate(text, at, &self.list, breaks, &mut self.scratch)? else {
            return Ok(end);
        };
        match byte_at(text, list) {
            b'[' => {}
            b'n' => return Ok(end),
            _ => return Err(Fault::new(Rule::NoListHere, list)),
        }
        let (bytes, ends) = (rows.text.len(), rows.ends.len());
        let mut next = skip_space(text, list + 1, breaks);
        while byte_at(text, next) != b']' {
            let item_end = self.scratch.check(text, (next, 0), breaks)?;
            let fault = self.read_item(text, next, breaks, rows).err();
            found.items.push(Item { start: next, end: item_end, fault });
            if rows.text.len() - bytes > ROWS_BYTES_MAX {
                rows.text.truncate(bytes);
                rows.ends.truncate(ends);
                found.items.clear();
                return Err(Fault::new(Rule::TooManyItems, list));
            }
            next = skip_space(text, item_end, breaks);
            if byte_at(text, next) == b',' {
                next = skip_space(text, next + 1, breaks);
            }
        }
        found.list = (list, next + 1);
        Ok(end)
    }

    /// Reads an item as a row, with the values of the record.
    fn read_item(
        &mut self,
        text: &[u8],
        at: usize,
        breaks: LineBreaks,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        self.item_row.clear(ROWS_BYTES_MAX);
        if self.are_values {
            self.item.read_value(text, at, breaks, &mut self.item_row)?;
        } else if byte_at(text, at) != b'n' {
            let read = self.item.read(text, at, breaks, &mut self.item_row);
            read.map_err(|fault| match fault.rule {
                Rule::NoObject => Fault::new(Rule::NoObjectHere, fault.at),
                _ => fault,
            })?;
        }
        rows.has_nul |= self.item_row.has_nul;
        rows.has_quotes |= self.item_row.has_quotes;
        let last = self.sources.len().saturating_sub(1);
        for (number, source) in self.sources.iter().enumerate() {
            let field = match source {
                Source::Record(field) => self.record_row.field(*field),
                Source::Item(field) => {
                    let value = self.item_row.field(*field);
                    // Of the last field of a row a return is there twice.
                    match !self.are_values && *field + 2 == self.item_row.ends.len() {
                        true => value.strip_suffix(b"\r").unwrap_or(value),
                        false => value,
                    }
                }
            };
            rows.text.extend_from_slice(field);
            if number == last && field.last() == Some(&b'\r') {
                rows.text.push(b'\r');
            }
            rows.end_field();
        }
        Ok(())
    }
}

/// Where the value of a path begins in a record that was checked; `None` when it is not there.
fn locate(
    text: &[u8],
    record: usize,
    path: &[String],
    breaks: LineBreaks,
    scratch: &mut Scratch,
) -> Result<Option<usize>, Fault> {
    let mut at = record;
    'keys: for wanted in path {
        if byte_at(text, at) != b'{' {
            return Ok(None);
        }
        let mut next = skip_space(text, at + 1, breaks);
        while byte_at(text, next) == b'"' {
            let Found { end, is_escaped } = find_end(text, next + 1)?;
            let is_wanted =
                *unescape(&text[next + 1..end], next + 1, is_escaped)? == *wanted.as_bytes();
            let colon = skip_space(text, end + 1, breaks);
            at = skip_space(text, colon + 1, breaks);
            if is_wanted {
                continue 'keys;
            }
            next = skip_space(text, scratch.check(text, (at, 0), breaks)?, breaks);
            if byte_at(text, next) == b',' {
                next = skip_space(text, next + 1, breaks);
            }
        }
        return Ok(None);
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::masks::PADDING;

    fn keys(paths: &[&str]) -> Keys {
        let path = |path: &&str| Path {
            keys: path.split('.').map(str::to_owned).collect(),
            holds: Holds::Value,
        };
        Keys::new(paths.iter().map(path).collect()).unwrap()
    }

    fn read(paths: &[&str], list: &str, record: &str) -> Result<String, String> {
        let list: Vec<String> = list.split('.').map(str::to_owned).collect();
        let mut reader = ListReader::new(&keys(paths), &list, UnknownKeys::Reject)?;
        let text = [record.as_bytes(), &[0; PADDING]].concat();
        let (mut rows, mut items) = (Rows::default(), Items::default());
        let read = reader.read(&text, 0, LineBreaks::EndRecords, &mut rows, &mut items);
        let end = read.map_err(|fault| format!("{:?} {}", fault.rule, fault.at))?;
        assert_eq!(end, record.len());
        let good = items.items.iter().filter(|item| item.fault.is_none()).count();
        assert_eq!(rows.ends.len(), 1 + good * paths.len());
        let mut told = String::from_utf8_lossy(&rows.text).replace('\n', "|");
        for item in &items.items {
            if let Some(fault) = item.fault {
                told.push_str(&format!(" {:?} {}..{}", fault.rule, item.start, item.end));
            }
        }
        Ok(told)
    }

    #[test]
    fn items_are_rows_beside_the_values_of_their_record() {
        let paths = ["id", "o.items.n", "o.day"];
        for (record, expected) in [
            (r#"{"id":7,"o":{"items":[{"n":1},{"n":"\r"}],"day":"mo"}}"#, "|7|1|mo|7|\r|mo|"),
            (r#"{"o":{"day":"x\r", "items" : [ null , { } ] },"id":8}"#, "|8||x\r\r|8||x\r\r|"),
            (r#"{"id":7,"o":{"items":[]}}"#, "|"),
            (r#"{"id":7,"o":{"items":null}}"#, "|"),
            (r#"{"id":7,"o":null}"#, "|"),
            (r#"{}"#, "|"),
            (
                r#"{"id":1,"o":{"items":[{"x":[{"n":1}]},{"n":2},3]}}"#,
                "|1|2|| UnknownKey 22..37 NoObjectHere 46..47",
            ),
        ] {
            assert_eq!(read(&paths, "o.items", record).as_deref(), Ok(expected), "{record}");
        }
        for (record, expected) in [
            (r#"{"id":7,"o":{"items":{"n":1}}}"#, "NoListHere 21"),
            (r#"{"id":7,"o":[]}"#, "NoObjectHere 12"),
            (r#"{"id":7,"o":{"items":[1,]}}"#, "TrailingComma 23"),
            (r#"{"id":7,"x":1}"#, "UnknownKey 8"),
            (r#"{"o":{"items":[]},"o":{}}"#, "TwiceTheKey 18"),
        ] {
            assert_eq!(read(&paths, "o.items", record), Err(expected.to_owned()), "{record}");
        }
    }

    #[test]
    fn items_may_be_values() {
        let record = r#"{"tags":["a",1,null,"","\n"],"id":7}"#;
        assert_eq!(read(&["id", "tags"], "tags", record).as_deref(), Ok("|7|a|7|1|7||7|\"\"|7|||"));
        let record = r#"{"tags":["x\r"],"id":7}"#;
        assert_eq!(read(&["tags", "id"], "tags", record).as_deref(), Ok("|x\r|7|"));
        assert_eq!(read(&["id", "tags"], "tags", record).as_deref(), Ok("|7|x\r\r|"));
        assert!(
            ListReader::new(&keys(&["a"]), &["a".to_owned(), "b".to_owned()], UnknownKeys::Reject)
                .is_err()
        );
    }

    #[test]
    fn rows_of_a_record_have_a_limit() {
        let record =
            format!("{{\"id\":\"{}\",\"n\":[{}0]}}", "x".repeat(1 << 20), "0,".repeat(100));
        assert_eq!(
            read(&["id", "n"], "n", &record),
            Err(format!("TooManyItems {}", 13 + (1 << 20)))
        );
    }
}
