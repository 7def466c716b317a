//! What a book says of its sheets, of the formats of cells, and of its texts.

use std::io::Read;
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::fault::damaged;
use crate::kind::Kind;
use crate::serial::Epoch;
use crate::texts::Texts;
use crate::xml::{Event, Xml};

/// The part that lists the sheets.
pub const WORKBOOK: &str = "xl/workbook.xml";
/// The part that tells which parts the sheets are.
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";
/// Folder of the parts that relations are told from.
const FOLDER: &str = "xl/";
/// Most sheets, relations, formats and styles.
const LISTED_MAX: usize = 1 << 16;

/// The parts of a book, by their names.
pub trait Parts {
    /// The book in messages.
    fn name(&self) -> &str;

    /// Opens a part; `None` if there is none of that name.
    ///
    /// # Errors
    /// Those of reading.
    fn open(&self, part: &str) -> Result<Option<Box<dyn Read + Send>>>;
}

/// A sheet of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// Name as users see it.
    pub name: String,
    /// The part that has its cells.
    pub part: String,
    /// Whether users see it.
    pub is_hidden: bool,
}

/// A book without its cells.
#[derive(Debug, Default)]
pub struct Book {
    /// Sheets of cells, in their order; charts are left out.
    pub sheets: Vec<Sheet>,
    pub(crate) epoch: Epoch,
    /// Kinds of numbers, by style.
    pub(crate) kinds: Vec<Kind>,
    texts_part: Option<String>,
}

/// A part that another one names.
struct Relation {
    id: String,
    kind: String,
    target: String,
}

impl Book {
    /// Reads what a book says of its sheets and formats.
    ///
    /// # Errors
    /// `Input` when it is damaged, those of reading.
    pub fn read(parts: &dyn Parts) -> Result<Self> {
        let relations = relations(parts)?;
        let part_of = |kind: &str| {
            relations
                .iter()
                .find(|relation| relation.kind == kind)
                .map(|found| found.target.clone())
        };
        let mut book = Book { texts_part: part_of("sharedStrings"), ..Book::default() };
        book.read_workbook(parts, &relations)?;
        if let Some(part) = part_of("styles") {
            book.read_styles(parts, &part)?;
        }
        Ok(book)
    }

    fn read_workbook(&mut self, parts: &dyn Parts, relations: &[Relation]) -> Result<()> {
        let mut xml = needed(parts, WORKBOOK)?;
        loop {
            match xml.next_event()? {
                Event::Start if xml.element() == b"workbookPr" && xml.says("date1904")? => {
                    self.epoch = Epoch::Of1904;
                }
                Event::Start if xml.element() == b"sheet" && xml.depth() == 3 => {
                    let missing = || xml.error("a sheet has no name or part");
                    let name = xml.attribute("name")?.ok_or_else(missing)?;
                    let id = xml.attribute("id")?.ok_or_else(missing)?;
                    let is_hidden =
                        matches!(xml.attribute("state")?.as_deref(), Some("hidden" | "veryHidden"));
                    let found = relations.iter().find(|relation| relation.id == id);
                    let relation =
                        found.ok_or_else(|| xml.error(format!("sheet {name} has no part")))?;
                    if relation.kind == "worksheet" {
                        self.sheets.push(Sheet { name, part: relation.target.clone(), is_hidden });
                    }
                    check_count(&xml, self.sheets.len())?;
                }
                Event::Done => return Ok(()),
                _ => {}
            }
        }
    }

    fn read_styles(&mut self, parts: &dyn Parts, part: &str) -> Result<()> {
        let mut xml = needed(parts, part)?;
        let mut codes: Vec<(u32, Kind)> = Vec::new();
        let mut within = false;
        loop {
            match xml.next_event()? {
                Event::Start if xml.element() == b"numFmt" && xml.depth() == 3 => {
                    let id = xml.attribute("numFmtId")?.and_then(|id| id.parse().ok());
                    if let (Some(id), Some(code)) = (id, xml.attribute("formatCode")?) {
                        codes.push((id, Kind::of_code(&code)));
                    }
                    check_count(&xml, codes.len())?;
                }
                Event::Start if xml.element() == b"cellXfs" => {
                    within = true;
                    codes.sort_by_key(|(id, _)| *id);
                }
                Event::End if xml.element() == b"cellXfs" => within = false,
                Event::Start if within && xml.element() == b"xf" && xml.depth() == 3 => {
                    let id = xml.attribute("numFmtId")?.map_or(Some(0), |id| id.parse().ok());
                    let id: u32 = id.ok_or_else(|| xml.error("a style has no format"))?;
                    let own = codes.binary_search_by_key(&id, |(id, _)| *id).ok();
                    self.kinds.push(own.map_or_else(|| Kind::of_number(id), |own| codes[own].1));
                    check_count(&xml, self.kinds.len())?;
                }
                Event::Done => return Ok(()),
                _ => {}
            }
        }
    }

    /// The texts that cells share.
    ///
    /// # Errors
    /// `Input` when they are damaged, `Limit` when they are too many.
    pub fn texts(&self, parts: &dyn Parts) -> Result<Arc<Texts>> {
        let Some(part) = &self.texts_part else { return Ok(Arc::default()) };
        let name = part_name(parts, part);
        let source =
            parts.open(part)?.ok_or_else(|| damaged(parts.name(), format!("it has no {part}")))?;
        Ok(Arc::new(Texts::read(&name, source)?))
    }

    /// The sheet that a text names: by its name, or by its number from 1; the first one that is seen if nothing is said.
    ///
    /// # Errors
    /// `Invalid` when there is no such sheet.
    pub fn find(&self, book: &str, wanted: Option<&str>) -> Result<&Sheet> {
        let found = match wanted {
            None => self.sheets.iter().find(|sheet| !sheet.is_hidden).or(self.sheets.first()),
            Some(text) => {
                let named = self.sheets.iter().find(|sheet| sheet.name == text);
                let number = || text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                named.or_else(|| self.sheets.get(number()?))
            }
        };
        found.ok_or_else(|| match wanted {
            Some(text) => {
                Error::Invalid(format!("{book} has no sheet {text}; it has {}", self.names()))
            }
            None => Error::Invalid(format!("{book} has no sheet of cells")),
        })
    }

    /// Names of the first sheets, for messages.
    pub fn names(&self) -> String {
        /// Sheets that a message names.
        const SHOWN_MAX: usize = 10;
        let shown: Vec<&str> =
            self.sheets.iter().take(SHOWN_MAX).map(|sheet| sheet.name.as_str()).collect();
        match self.sheets.len().saturating_sub(SHOWN_MAX) {
            0 if shown.is_empty() => "none".to_owned(),
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

fn part_name(parts: &dyn Parts, part: &str) -> String {
    format!("{}!{part}", parts.name())
}

/// Opens a part that must be there.
pub fn needed(parts: &dyn Parts, part: &str) -> Result<Xml> {
    match parts.open(part)? {
        Some(source) => Ok(Xml::new(part_name(parts, part), source)),
        None => Err(damaged(parts.name(), format!("it has no {part}"))),
    }
}

fn check_count(xml: &Xml, count: usize) -> Result<()> {
    match count > LISTED_MAX {
        true => Err(Error::Limit(format!("{} lists more than {LISTED_MAX} of a kind", xml.name()))),
        false => Ok(()),
    }
}

fn relations(parts: &dyn Parts) -> Result<Vec<Relation>> {
    let mut xml = needed(parts, RELATIONS)?;
    let mut relations = Vec::new();
    loop {
        match xml.next_event()? {
            Event::Start if xml.element() == b"Relationship" => {
                let is_outside = xml.attribute("TargetMode")?.as_deref() == Some("External");
                let (id, kind) = (xml.attribute("Id")?, xml.attribute("Type")?);
                if let (Some(id), Some(kind), Some(target), false) =
                    (id, kind, xml.attribute("Target")?, is_outside)
                {
                    let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                    relations.push(Relation { id, kind, target: path_of(&target) });
                }
                check_count(&xml, relations.len())?;
            }
            Event::Done => return Ok(relations),
            _ => {}
        }
    }
}

/// The name of the part that a relation of the workbook names.
fn path_of(target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut folders: Vec<&str> = FOLDER.trim_end_matches('/').split('/').collect();
    for step in target.split('/') {
        match step {
            "." | "" => {}
            ".." => {
                folders.pop();
            }
            step => folders.push(step),
        }
    }
    folders.join("/")
}
