//! The cells of a sheet, one after the other, as the part has them.

use coload_types::{Error, Place, Result};

use crate::area::{COLUMNS_MAX, ROWS_MAX, cell_at, cell_name, row_number};
use crate::entities::resolve_escapes;
use crate::texts::append_rich;
use crate::xml::{Event, Xml};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Held {
    /// A number as it is written, which may be a date.
    #[default]
    Number,
    /// The number of a text that cells share.
    SharedText,
    /// A text.
    Text,
    /// `1` or `0`.
    Boolean,
    /// An error such as `#N/A`.
    Error,
    /// A date as ISO 8601 has it.
    Date,
}

/// A cell that has a value.
#[derive(Debug, Default)]
pub struct Cell {
    /// Row, from 1.
    pub row: u32,
    /// Column, from 1.
    pub column: u32,
    /// What the value is.
    pub held: Held,
    /// Number of the style.
    pub style: usize,
    /// The value as it is written, references resolved.
    pub value: Vec<u8>,
}

/// Cells of a sheet in the order of rows and columns.
pub struct Cells {
    xml: Xml,
    /// The sheet in messages.
    sheet: String,
    /// Where the part is.
    state: State,
    row: u32,
    column: u32,
    /// Areas whose cells are one to users.
    pub merged: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Rows,
    After,
}

impl Cells {
    /// The cells of a part; `sheet` is its name in messages.
    pub fn new(xml: Xml, sheet: String) -> Self {
        Cells { xml, sheet, state: State::Before, row: 0, column: 0, merged: 0 }
    }

    /// Reads the next cell that has a value; false when there is none.
    ///
    /// # Errors
    /// `Input` when the part is damaged, with the cell; those of reading.
    pub fn read(&mut self, cell: &mut Cell) -> Result<bool> {
        loop {
            match self.xml.next_event()? {
                Event::Done => return self.end(),
                Event::Start if !self.begins_cell() => self.begin_other()?,
                Event::Start => {
                    if self.read_cell(cell)? {
                        return Ok(true);
                    }
                }
                Event::End if self.state == State::Rows && self.xml.depth() == 1 => {
                    self.state = State::After;
                }
                Event::End | Event::Text => {}
            }
        }
    }

    fn begins_cell(&self) -> bool {
        self.state == State::Rows && self.xml.depth() == 4 && self.xml.element() == b"c"
    }

    /// Takes note of an element that is no cell.
    fn begin_other(&mut self) -> Result<()> {
        match (self.state, self.xml.depth(), self.xml.element()) {
            (State::Before, 1, b"worksheet") => {}
            (State::Before, 1, _) => return Err(self.xml.error("it is no sheet of cells")),
            (State::Before, 2, b"sheetData") => self.state = State::Rows,
            (State::Rows, 3, b"row") => self.begin_row()?,
            (State::After, 3, b"mergeCell") => self.merged += 1,
            (State::After, 2, b"sheetData") => {
                return Err(self.xml.error("it has rows in two places"));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&self) -> Result<bool> {
        match self.state {
            State::Before => Err(self.xml.error("it is no sheet of cells")),
            State::Rows | State::After => Ok(false),
        }
    }

    fn begin_row(&mut self) -> Result<()> {
        let number = match self.xml.attribute("r")? {
            Some(number) => row_number(number.as_bytes())
                .ok_or_else(|| self.xml.error(format!("there is no row {number}")))?,
            None => self.row + 1,
        };
        if number <= self.row || number > ROWS_MAX {
            return Err(self.xml.error(format!("row {number} stands behind row {}", self.row)));
        }
        (self.row, self.column) = (number, 0);
        Ok(())
    }

    /// Reads the cell that has begun; false when it has no value.
    fn read_cell(&mut self, cell: &mut Cell) -> Result<bool> {
        let place = match self.xml.attribute("r")? {
            Some(name) => cell_at(name.as_bytes())
                .ok_or_else(|| self.xml.error(format!("there is no cell {name}")))?,
            None => (self.row, self.column + 1),
        };
        if place.0 != self.row || place.1 <= self.column || place.1 > COLUMNS_MAX {
            let (found, before) =
                (cell_name(place.0, place.1), cell_name(self.row, self.column.max(1)));
            return Err(self.xml.error(format!("cell {found} stands behind cell {before}")));
        }
        self.column = place.1;
        (cell.row, cell.column) = place;
        let style = self.xml.attribute("s")?;
        cell.style = match style.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(style)) => style,
            Some(Err(_)) => return Err(self.xml.error("a cell has no such style")),
        };
        let told = self.xml.attribute("t")?;
        cell.held = match told.as_deref() {
            None | Some("n") => Held::Number,
            Some("s") => Held::SharedText,
            Some("str" | "inlineStr") => Held::Text,
            Some("b") => Held::Boolean,
            Some("e") => Held::Error,
            Some("d") => Held::Date,
            Some(other) => return Err(self.xml.error(format!("a cell has no type {other}"))),
        };
        self.read_value(cell)
    }

    fn read_value(&mut self, cell: &mut Cell) -> Result<bool> {
        let depth = self.xml.depth();
        let (mut has_value, mut has_formula, mut is_value) = (false, false, false);
        let mut is_rich = false;
        cell.value.clear();
        loop {
            match self.xml.next_event()? {
                Event::Start if self.xml.depth() == depth + 1 => match self.xml.element() {
                    b"v" => {
                        if std::mem::replace(&mut has_value, true) {
                            return Err(self.xml.error("a cell has two values"));
                        }
                        is_value = true;
                    }
                    b"is" => {
                        if std::mem::replace(&mut has_value, true) {
                            return Err(self.xml.error("a cell has two values"));
                        }
                        is_rich = true;
                        append_rich(&mut self.xml, &mut cell.value)?;
                    }
                    b"f" => has_formula = true,
                    _ => {}
                },
                Event::Text if is_value && self.xml.depth() == depth + 1 => {
                    self.xml.append_text(&mut cell.value)?;
                }
                Event::End if self.xml.depth() == depth => is_value = false,
                Event::End if self.xml.depth() < depth => break,
                Event::Done => break,
                _ => {}
            }
        }
        let is_text = cell.held == Held::Text;
        // An empty text is a value, an empty number is none.
        has_value &= is_text || !cell.value.trim_ascii().is_empty();
        if has_formula && !has_value {
            return Err(fault(
                &self.sheet,
                cell,
                "the formula has no value: open the book where it is calculated, and save it",
            ));
        }
        if is_text && !is_rich {
            resolve_escapes(&mut cell.value, 0);
        }
        Ok(has_value)
    }
}

/// An error in a cell.
pub fn fault(sheet: &str, cell: &Cell, text: impl std::fmt::Display) -> Error {
    let place = Place {
        file: format!("{sheet}!{}", cell_name(cell.row, cell.column)),
        line: u64::from(cell.row),
        byte: 0,
        field: cell.column,
    };
    Error::Input { place: Box::new(place), text: text.to_string() }
}
