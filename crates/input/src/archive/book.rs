//! Sheets of books, which are zip files: each is a member, whose text is its cells.

use std::io::{self, Read};
use std::sync::Arc;

use coload_sheets::{Area, Book, Parts, Sheet, SheetLines, WORKBOOK, used_area};
use coload_types::{Error, Place, Result};

use super::{ArchiveAt, Check, Member, SEPARATOR, Stored, zip};
use crate::decoder::Decoder;
use crate::inputs::{InputFile, InputSource};
use crate::open::TextInput;

/// Which sheet of a book is read, and which of its cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SheetChoice {
    /// Name of the sheet, or its number from 1; the first one that is seen if not given.
    pub sheet: Option<String>,
    /// Cells that are read; those that have values if not given.
    pub area: Option<Area>,
}

impl SheetChoice {
    /// Refuses a choice of sheets where an input has none.
    ///
    /// # Errors
    /// `Invalid` that names the flag and the input.
    pub fn check(&self, inputs: &crate::inputs::Inputs) -> Result<()> {
        let flag = match self {
            SheetChoice { sheet: Some(_), .. } => "--sheet",
            SheetChoice { area: Some(_), .. } => "--range",
            _ => return Ok(()),
        };
        match inputs.iter().find(|input| !input.is_sheet()) {
            Some(other) => Err(Error::Invalid(format!(
                "{flag}: {} is no workbook (.xlsx): leave it out, or load it by itself",
                other.name
            ))),
            None => Ok(()),
        }
    }
}

/// What is read of a sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SheetArea {
    /// Cells that are read.
    pub area: Area,
    /// Areas of the sheet whose cells are one to users.
    pub merged: u64,
}

/// A book in a file, and its parts.
struct BookFile {
    name: String,
    archive: ArchiveAt,
    members: Vec<Member>,
}

impl BookFile {
    fn find(&self, part: &str) -> Result<Option<&Member>> {
        let mut found = self.members.iter().filter(|member| member.name == part);
        let first = found.next();
        match found.next() {
            // Programs would not agree on which one it is.
            Some(_) => Err(Error::Invalid(format!("{} has the part {part} twice", self.name))),
            None => Ok(first),
        }
    }
}

impl Parts for BookFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, part: &str) -> Result<Option<Box<dyn Read + Send>>> {
        let Some(member) = self.find(part)? else { return Ok(None) };
        let Stored::Zip { format, check } = member.stored else { return Ok(None) };
        let name = format!("{}{SEPARATOR}{part}", self.name);
        let file = Arc::new(self.archive.open_part(&self.name, member)?);
        let text = Decoder::new(&name, file.reader(0), format, 0, u64::MAX)?;
        let text = Checked {
            name,
            text: Box::new(text.into_reader()),
            check,
            bytes: 0,
            crc: libdeflater::Crc::new(),
        };
        Ok(Some(Box::new(text)))
    }
}

/// A part whose length and checksum must be those that the directory has: it never gives more bytes than that.
struct Checked {
    name: String,
    text: Box<dyn Read + Send>,
    check: Check,
    bytes: u64,
    crc: libdeflater::Crc,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        self.bytes += read as u64;
        self.crc.update(&buffer[..read]);
        let is_end = read == 0 && !buffer.is_empty();
        let is_wrong = is_end && self.bytes < self.check.bytes
            || self.bytes > self.check.bytes
            || is_end && self.crc.sum() != self.check.crc;
        if is_wrong {
            let place = Place { file: self.name.clone(), line: 0, byte: self.bytes, field: 0 };
            let text = format!(
                "not a valid workbook: its length or checksum is not that of the directory, which says {} bytes",
                self.check.bytes
            );
            return Err(io::Error::other(Error::Input { place: Box::new(place), text }));
        }
        Ok(read)
    }
}

/// Whether members are those of a book.
pub fn is_book(members: &[Member]) -> bool {
    members.iter().any(|member| member.name == WORKBOOK)
}

/// The sheets of a book that a pattern names, in their order; without a pattern the one that is chosen.
///
/// # Errors
/// `Invalid` when there is none, `Input` when the book is damaged.
pub fn find_sheets(
    name: &str,
    archive: &ArchiveAt,
    members: Vec<Member>,
    pattern: Option<&str>,
    choice: &SheetChoice,
) -> Result<Vec<InputFile>> {
    let parts = BookFile { name: name.to_owned(), archive: archive.clone(), members };
    let book = Book::read(&parts)?;
    if let (Some(pattern), Some(sheet)) = (pattern, &choice.sheet) {
        return Err(Error::Invalid(format!(
            "--sheet {sheet}: {}{SEPARATOR}{pattern} names sheets already",
            parts.name
        )));
    }
    let (pattern, area) = match pattern {
        Some(pattern) => with_area(&book, pattern, choice.area)?,
        None => (None, choice.area),
    };
    let glob = pattern.filter(|pattern| pattern.contains(['*', '?', '[']));
    let glob = glob.and_then(|pattern| glob::Pattern::new(pattern).ok());
    let is_name = |sheet: &Sheet| Some(sheet.name.as_str()) == pattern;
    let sheets: Vec<&Sheet> = match glob {
        Some(glob) if !book.sheets.iter().any(is_name) => {
            book.sheets.iter().filter(|sheet| glob.matches(&sheet.name)).collect()
        }
        _ => vec![book.find(&parts.name, pattern.or(choice.sheet.as_deref()))?],
    };
    if sheets.is_empty() {
        let pattern = pattern.unwrap_or_default();
        return Err(Error::Invalid(format!(
            "{} has no sheet {pattern}; it has {}",
            parts.name,
            book.names()
        )));
    }
    sheets.into_iter().map(|sheet| input(&parts, sheet, area)).collect()
}

/// The sheet and the cells that a pattern names, such as `Sheet1!A1:F200`, in which messages tell them.
fn with_area<'a>(
    book: &Book,
    pattern: &'a str,
    given: Option<Area>,
) -> Result<(Option<&'a str>, Option<Area>)> {
    let is_sheet = book.sheets.iter().any(|sheet| sheet.name == pattern);
    let cells = pattern.rsplit_once(SEPARATOR).filter(|_| !is_sheet);
    let Some((sheet, area)) =
        cells.and_then(|(sheet, text)| Some((sheet, Area::parse(text).ok()?)))
    else {
        return Ok((Some(pattern), given));
    };
    match given {
        Some(given) if given != area => {
            Err(Error::Invalid(format!("--range {given}: {pattern} names cells already")))
        }
        _ => Ok((Some(sheet), Some(area))),
    }
}

fn input(parts: &BookFile, sheet: &Sheet, wanted: Option<Area>) -> Result<InputFile> {
    let name = format!("{}{SEPARATOR}{}", parts.name, sheet.name);
    let used = used_area(parts, sheet, &name, wanted.unwrap_or(Area::ALL))?;
    let found = used.area.unwrap_or(Area { rows: (1, 1), columns: (1, 1) });
    // Of what is given all columns are read, and the rows that have values.
    let area = match wanted {
        Some(wanted) => Area {
            rows: (wanted.rows.0, found.rows.1.max(wanted.rows.0)),
            columns: if wanted.columns.1 == Area::ALL.columns.1 {
                (wanted.columns.0, found.columns.1.max(wanted.columns.0))
            } else {
                wanted.columns
            },
        },
        None => found,
    };
    let stored = Stored::Sheet(SheetArea { area, merged: used.merged });
    let bytes = parts.find(&sheet.part)?.map_or(0, |member| member.bytes);
    let name = match wanted {
        Some(wanted) => format!("{name}{SEPARATOR}{wanted}"),
        None => name,
    };
    let member = Member { name: sheet.name.clone(), start: 0, bytes, stored };
    let source = InputSource::Member { archive: parts.archive.clone(), member };
    Ok(InputFile { name, source })
}

/// Opens a sheet to be read as text.
///
/// # Errors
/// `Unavailable` when the book cannot be read, `Input` when it is damaged, `Limit` when its texts are too many.
pub fn open_sheet(name: &str, archive: &ArchiveAt, sheet: &str, area: Area) -> Result<TextInput> {
    let shown = archive.shown();
    let members = zip::members(&archive.open(&shown)?)?;
    let parts = BookFile { name: shown, archive: archive.clone(), members };
    let book = Book::read(&parts)?;
    let found = book.sheets.iter().find(|found| found.name == sheet);
    let found = found.cloned().ok_or_else(|| Error::Invalid(format!("{name} is not there")))?;
    let lines =
        SheetLines::open(&parts, book, &found, &format!("{}{SEPARATOR}{sheet}", parts.name), area)?;
    let held = lines.held_bytes();
    Ok(TextInput::of_lines(name, Box::new(lines), held))
}
