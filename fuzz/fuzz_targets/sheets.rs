//! Parts of a book, of any bytes.
#![no_main]

use std::io::{Cursor, Read};

use coload_sheets::{Area, Book, Parts, SheetLines, used_area};
use coload_types::Result;
use libfuzzer_sys::fuzz_target;

/// Parts that stand behind each other, each behind its length.
struct Fuzzed<'a>(Vec<(&'static str, &'a [u8])>);

const NAMES: [&str; 4] =
    ["xl/workbook.xml", "xl/styles.xml", "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"];
const RELATIONS: &[u8] = br#"<a><Relationship Id="1" Type="/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="2" Type="/styles" Target="styles.xml"/><Relationship Id="3" Type="/sharedStrings" Target="sharedStrings.xml"/></a>"#;

impl Parts for Fuzzed<'_> {
    fn name(&self) -> &str {
        "fuzzed"
    }

    fn open(&self, part: &str) -> Result<Option<Box<dyn Read + Send>>> {
        let part = self.0.iter().find(|(name, _)| *name == part);
        Ok(part.map(|(_, bytes)| Box::new(Cursor::new(bytes.to_vec())) as Box<dyn Read + Send>))
    }
}

fuzz_target!(|input: &[u8]| {
    let mut parts = vec![("xl/_rels/workbook.xml.rels", RELATIONS)];
    let mut rest = input;
    for name in NAMES {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { return };
        let (part, after) = after.split_at(after.len().min(usize::from(u16::from_le_bytes(*length))));
        parts.push((name, part));
        rest = after;
    }
    let parts = Fuzzed(parts);
    let Ok(book) = Book::read(&parts) else { return };
    let Ok(sheet) = book.find("fuzzed", None).cloned() else { return };
    let Ok(used) = used_area(&parts, &sheet, "fuzzed", Area::ALL) else { return };
    let area = used.area.unwrap_or(Area::ALL);
    let Ok(lines) = SheetLines::open(&parts, book, &sheet, "fuzzed", area) else { return };
    let mut text = Vec::new();
    if lines.take(64 << 20).read_to_end(&mut text).is_ok() && text.len() < 64 << 20 {
        let rows = (area.rows.1 - area.rows.0 + 1) as usize;
        let count = text.iter().filter(|byte| **byte == b'\n').count();
        assert!(count == if used.area.is_some() { rows } else { 0 });
    }
});
