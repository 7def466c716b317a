//! The first rows, which the line of names waits for: they decide how it is written.
//!
//! Fields are written one by one, and looked at before they are in quotes. What comes behind them is written by
//! [`coload_scan::SegmentLines`], which is compared with this.

use std::io::{self, Write};

use coload::{DataType, Result};
use coload_page::bitpack::BLOCK;
use coload_scan::{Quotes, Selection, Style};
use coload_store::SegmentFile;
use coload_types::delimited::NamesLine;
use coload_types::display::write_value;
use coload_types::{Column, Plain};

use crate::output::say;

/// The first rows on their way to a file.
pub struct Head {
    types: Vec<DataType>,
    style: Style,
    /// The line of names, until it is written.
    names: Option<NamesLine>,
    line: Vec<u8>,
    /// Blocks of the last page that were written.
    blocks: usize,
}

impl Head {
    /// The head of a file with the rows of a table of these columns.
    pub fn new(columns: &[Column], style: Style, no_header: bool) -> Self {
        let types = columns.iter().map(|c| c.data_type).collect();
        let (mut line, mut names) = (Vec::new(), None);
        match style.quotes {
            _ if no_header => {}
            Quotes::Texts => {
                let named = columns.iter().map(|c| (c.name.clone(), c.data_type.is_text()));
                names = Some(NamesLine::new(named.collect(), style.delimiter));
            }
            Quotes::Needed => {
                for (index, column) in columns.iter().enumerate() {
                    style.separate(&mut line, index);
                    style.push_as_needed(&mut line, column.name.as_bytes());
                }
                line.push(b'\n');
            }
        }
        Head { types, style, names, line, blocks: 0 }
    }

    /// Writes the line of names, unless it waits for rows.
    pub fn start(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.line)
    }

    /// How many blocks of the last page were written, once the line of names waits for no more.
    pub fn done(&self) -> Option<usize> {
        self.names.is_none().then_some(self.blocks)
    }

    /// Writes selected rows of a page, block by block, as long as the line of names waits. The outer error is that of reading.
    ///
    /// # Errors
    /// `Corrupt` when the page is damaged.
    pub fn write_page(
        &mut self,
        segment: &SegmentFile,
        (page, selection): (usize, &Selection),
        out: &mut impl Write,
    ) -> Result<io::Result<()>> {
        self.blocks = 0;
        if self.names.is_none() {
            return Ok(Ok(()));
        }
        let pages = (0..self.types.len()).map(|column| {
            let mut values = Plain::empty(segment.physical(column));
            segment.decode_page(column, page, &mut values).map(|()| values)
        });
        let pages = pages.collect::<Result<Vec<_>>>()?;
        let rows = segment.page_rows()[page] as usize;
        while self.names.is_some() && self.blocks * BLOCK < rows {
            let start = self.blocks * BLOCK;
            let block = *selection.block(self.blocks).0;
            for row in start..rows.min(start + BLOCK) {
                if !block.get(row - start) {
                    continue;
                }
                self.row(&pages, row);
                if let Err(error) = self.hand_on(out) {
                    return Ok(Err(error));
                }
            }
            self.blocks += 1;
        }
        Ok(Ok(()))
    }

    /// Makes the line of a row.
    fn row(&mut self, pages: &[Plain], row: usize) {
        let Head { types, style, names, line, .. } = self;
        let mut text = Vec::new();
        line.clear();
        for (index, (page, data_type)) in pages.iter().zip(types).enumerate() {
            style.separate(line, index);
            let Some(value) = page.get(row) else { continue };
            text.clear();
            write_value(&value, *data_type, &mut text);
            if let Some(names) = names {
                names.note_value(index, &text);
            }
            match data_type.is_text() && style.quotes == Quotes::Texts {
                true => Style::push_in_quotes(line, &text),
                false => style.push_as_needed(line, &text),
            }
        }
        line.push(b'\n');
    }

    /// Hands the line on: to the line of names if it waits.
    fn hand_on(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Some(waiting) = &mut self.names else { return out.write_all(&self.line) };
        if let Some(head) = waiting.push_row(&self.line) {
            say_how_told(waiting);
            self.names = None;
            out.write_all(&head)?;
        }
        Ok(())
    }

    /// Writes the line of names and the rows that waited for it.
    pub fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(mut names) = self.names.take() {
            say_how_told(&names);
            out.write_all(&names.take())?;
        }
        out.flush()
    }
}

/// Says that some programs refuse the file, where that is so.
fn say_how_told(names: &NamesLine) {
    if names.is_told_by_its_end() {
        say(
            "the line of names ends with CRLF and the others with LF, as quotes cannot tell names and texts of this table; a program that \
             refuses both takes what --quote needed writes (DuckDB: strict_mode=false)",
        );
    }
}
