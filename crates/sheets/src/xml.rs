//! Elements and texts of a part of a book, in order.
//!
//! Reads what books are written in: elements, attributes, texts, character data, comments. A document type, which could name
//! other files or grow without end, is refused, and so is any element, text or comment of over [`TOKEN_BYTES_MAX`] bytes, and what is deeper
//! than [`DEPTH_MAX`]. End tags must be those of their elements.
//!
//! Memory: a buffer of [`TOKEN_BYTES_MAX`] and one block. Cost: each byte is looked at twice.

use std::io::Read;
use std::ops::Range;

use coload_types::{Error, Result};

use crate::entities::append_text;
use crate::fault::damaged_at;

/// Most bytes of an element with its attributes, or of a text without one. A cell of Excel has 32,767 characters at most.
pub const TOKEN_BYTES_MAX: usize = 4 << 20;
/// Most elements within each other. Sheets have seven or so.
pub const DEPTH_MAX: usize = 64;
/// Bytes read at once.
const BLOCK_BYTES: usize = 64 << 10;

/// What comes next in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An element begins; it has a name and attributes.
    Start,
    /// The innermost element ends; it has a name.
    End,
    /// Text within the innermost element.
    Text,
    /// The part has ended, and all elements with it.
    Done,
}

/// A part that is read.
pub struct Xml {
    /// The part in messages.
    name: String,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Where the next token begins in the buffer, and in the part.
    at: usize,
    offset: u64,
    ended: bool,
    /// The name of the element, its attributes, or the text, in the buffer.
    found: Range<usize>,
    attributes: Range<usize>,
    /// Whether the text is character data, without references.
    is_data: bool,
    /// Whether the element that began ends at once.
    is_empty: bool,
    /// Names of the elements that are open, one after the other, and where each begins.
    open: Vec<u8>,
    starts: Vec<usize>,
    /// Whether an element was met.
    has_root: bool,
}

impl Xml {
    /// A part by its name in messages.
    pub fn new(name: String, source: Box<dyn Read + Send>) -> Self {
        Xml {
            name,
            source,
            buffer: Vec::new(),
            at: 0,
            offset: 0,
            ended: false,
            found: 0..0,
            attributes: 0..0,
            is_data: false,
            is_empty: false,
            open: Vec::new(),
            starts: Vec::new(),
            has_root: false,
        }
    }

    /// The part in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Elements that are open.
    pub fn depth(&self) -> usize {
        self.starts.len()
    }

    /// The name of the element that began or ends, without its prefix.
    pub fn element(&self) -> &[u8] {
        local(&self.buffer[self.found.clone()])
    }

    /// An error at the token.
    pub fn error(&self, text: impl std::fmt::Display) -> Error {
        damaged_at(&self.name, self.offset + self.at as u64, text)
    }

    /// Appends the text that was found.
    ///
    /// # Errors
    /// `Input` when it is not UTF-8, or a reference is none.
    pub fn append_text(&self, out: &mut Vec<u8>) -> Result<()> {
        let raw = &self.buffer[self.found.clone()];
        if self.is_data {
            if std::str::from_utf8(raw).is_err() {
                return Err(self.error("text is not UTF-8"));
            }
            out.extend_from_slice(raw);
            return Ok(());
        }
        append_text(raw, out).map_err(|text| self.error(text))
    }

    /// The value of an attribute of the element that began, by its name without a prefix.
    ///
    /// # Errors
    /// `Input` when the attributes are damaged.
    pub fn attribute(&self, wanted: &str) -> Result<Option<String>> {
        let mut rest = self.buffer[self.attributes.clone()].trim_ascii();
        while !rest.is_empty() {
            let (name, value, after) =
                first_attribute(rest).ok_or_else(|| self.error("attributes are damaged"))?;
            if local(name) == wanted.as_bytes() {
                let mut text = Vec::new();
                append_text(value, &mut text).map_err(|text| self.error(text))?;
                return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
            }
            rest = after.trim_ascii_start();
        }
        Ok(None)
    }

    /// Whether an attribute of the element that began says so; `1` and `true` do.
    ///
    /// # Errors
    /// As [`Xml::attribute`].
    pub fn says(&self, wanted: &str) -> Result<bool> {
        Ok(matches!(self.attribute(wanted)?.as_deref(), Some("1" | "true")))
    }

    /// What comes next.
    ///
    /// # Errors
    /// `Input` when the part is damaged or ends too early, those of reading.
    pub fn next_event(&mut self) -> Result<Event> {
        if std::mem::take(&mut self.is_empty) {
            return self.close();
        }
        loop {
            self.drop_read();
            if !self.fill_to(self.at + 1)? {
                return match self.starts.is_empty() && self.has_root {
                    true => Ok(Event::Done),
                    false => Err(self.error("it ends within an element")),
                };
            }
            if self.buffer[self.at] != b'<' {
                if self.read_text()? {
                    return Ok(Event::Text);
                }
                continue;
            }
            self.fill_to(self.at + 9)?;
            let head = &self.buffer[self.at..];
            if head.starts_with(b"<?") {
                let end = self.find(self.at + 2, b"?>")?;
                self.advance(end);
            } else if head.starts_with(b"<!--") {
                let end = self.find(self.at + 4, b"-->")?;
                self.advance(end);
            } else if head.starts_with(b"<![CDATA[") {
                let end = self.find(self.at + 9, b"]]>")?;
                (self.found, self.is_data) = (self.at + 9..end - 3, true);
                if self.starts.is_empty() {
                    return Err(self.error("text stands outside of elements"));
                }
                self.advance(end);
                return Ok(Event::Text);
            } else if head.starts_with(b"<!") {
                return Err(self.error("a document type is not read"));
            } else {
                return self.read_tag();
            }
        }
    }

    /// Reads the text up to the next element; false when it is blanks outside of all elements.
    fn read_text(&mut self) -> Result<bool> {
        let mut from = self.at;
        let end = loop {
            if let Some(found) = memchr::memchr(b'<', &self.buffer[from..]) {
                break from + found;
            }
            from = self.buffer.len();
            if !self.fill_to(from + 1)? {
                break from;
            }
        };
        let text = self.at..end;
        if self.starts.is_empty() {
            let blank = |byte: &u8| byte.is_ascii_whitespace();
            let mark: &[u8] =
                if self.offset + text.start as u64 == 0 { b"\xef\xbb\xbf" } else { b"" };
            let outside = &self.buffer[text];
            if !outside.strip_prefix(mark).unwrap_or(outside).iter().all(blank) {
                return Err(self.error("it is not XML in UTF-8"));
            }
            self.advance(end);
            return Ok(false);
        }
        (self.found, self.is_data) = (text, false);
        self.advance(end);
        Ok(true)
    }

    /// Reads a tag.
    fn read_tag(&mut self) -> Result<Event> {
        let end = self.find_tag_end()?;
        let (start, inner_end) = (self.at + 1, end - 1);
        if self.buffer[start] == b'/' {
            self.found =
                start + 1..start + 1 + self.buffer[start + 1..inner_end].trim_ascii_end().len();
            let opened = self.starts.last().map(|from| &self.open[*from..]);
            if opened != Some(&self.buffer[self.found.clone()]) {
                return Err(self.error("an end tag is not that of its element"));
            }
            self.advance(end);
            return self.close();
        }
        let is_empty = inner_end > start && self.buffer[inner_end - 1] == b'/';
        let inner = start..inner_end - usize::from(is_empty);
        let tag = &self.buffer[inner.clone()];
        let name = tag.iter().position(u8::is_ascii_whitespace).unwrap_or(tag.len());
        if name == 0 || tag[..name].iter().any(|byte| matches!(byte, b'<' | b'"' | b'\'' | b'=')) {
            return Err(self.error("a tag has no name"));
        }
        if self.starts.len() == DEPTH_MAX {
            return Err(self.error(format!("elements are deeper than {DEPTH_MAX}")));
        }
        if self.starts.is_empty() && std::mem::replace(&mut self.has_root, true) {
            return Err(self.error("something follows its end"));
        }
        self.found = inner.start..inner.start + name;
        self.attributes = inner.start + name..inner.end;
        self.is_empty = is_empty;
        self.starts.push(self.open.len());
        self.open.extend_from_slice(&self.buffer[self.found.clone()]);
        self.advance(end);
        Ok(Event::Start)
    }

    fn close(&mut self) -> Result<Event> {
        let from = self.starts.pop().unwrap_or(0);
        self.open.truncate(from);
        Ok(Event::End)
    }

    /// Where the tag ends that begins here, behind its `>`; one within quotes is part of a value.
    fn find_tag_end(&mut self) -> Result<usize> {
        let mut from = self.at + 1;
        let mut quote = None;
        loop {
            while from < self.buffer.len() {
                match (quote, self.buffer[from]) {
                    (None, b'>') if from > self.at + 1 => return Ok(from + 1),
                    (None, b'>' | b'<') => return Err(self.error("a tag is damaged")),
                    (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
                    (Some(open), byte) if open == byte => quote = None,
                    _ => {}
                }
                from += 1;
            }
            if !self.fill_to(from + 1)? {
                return Err(self.error("it ends within a tag"));
            }
        }
    }

    /// Where an end mark ends that is sought from a place on.
    fn find(&mut self, from: usize, mark: &[u8]) -> Result<usize> {
        let mut from = from;
        loop {
            let seen = self.buffer.len();
            if let Some(found) = memchr::memmem::find(&self.buffer[from.min(seen)..], mark) {
                return Ok(from + found + mark.len());
            }
            from = from.max(seen.saturating_sub(mark.len() - 1));
            if !self.fill_to(seen + 1)? {
                return Err(self.error("it ends within a comment or text"));
            }
        }
    }

    fn advance(&mut self, to: usize) {
        self.at = to;
    }

    /// Drops what was read before, where a token begins.
    fn drop_read(&mut self) {
        if self.at >= BLOCK_BYTES {
            self.buffer.drain(..self.at);
            self.offset += self.at as u64;
            self.at = 0;
        }
    }

    /// Reads until the buffer has so many bytes; false when the part ends before.
    fn fill_to(&mut self, length: usize) -> Result<bool> {
        while self.buffer.len() < length && !self.ended {
            if self.buffer.len() - self.at > TOKEN_BYTES_MAX {
                return Err(Error::Limit(format!(
                    "{} (byte {}): an element or a text has over {TOKEN_BYTES_MAX} bytes",
                    self.name,
                    self.offset + self.at as u64
                )));
            }
            let before = self.buffer.len();
            self.buffer.resize(before + BLOCK_BYTES, 0);
            let read = self.source.read(&mut self.buffer[before..]);
            self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
        Ok(self.buffer.len() >= length)
    }

    fn read_error(&self, error: std::io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Unavailable(format!("cannot read {}: {error}", self.name)),
        }
    }
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(name, |at| &name[at + 1..])
}

/// Name and value of the first attribute, and what follows it.
fn first_attribute(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let equals = memchr::memchr(b'=', text)?;
    let name = text[..equals].trim_ascii();
    let after = text[equals + 1..].trim_ascii_start();
    let (quote, value) = after.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    let end = memchr::memchr(*quote, value)?;
    (!name.is_empty()).then_some((name, &value[..end], &value[end + 1..]))
}

#[cfg(test)]
mod tests;
