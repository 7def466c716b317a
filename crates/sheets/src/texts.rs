//! The table of texts that cells share.

use std::io::Read;

use coload_types::{Error, Result};

use crate::entities::resolve_escapes;
use crate::xml::{Event, Xml};

/// Most bytes of all texts, which are held in memory.
pub const TEXTS_BYTES_MAX: usize = 128 << 20;
/// Most texts; four bytes are held of each.
pub const TEXTS_MAX: usize = 16 << 20;

/// Texts by their numbers.
#[derive(Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Texts {
    /// Reads the part with the texts.
    ///
    /// # Errors
    /// `Input` when it is damaged, `Limit` when it has too many of them.
    pub fn read(name: &str, part: Box<dyn Read + Send>) -> Result<Self> {
        let mut xml = Xml::new(name.to_owned(), part);
        let mut texts = Texts::default();
        loop {
            match xml.next_event()? {
                Event::Start if xml.depth() == 2 && xml.element() == b"si" => {
                    append_rich(&mut xml, &mut texts.bytes)?;
                    texts.ends.push(texts.bytes.len() as u32);
                    if texts.bytes.len() > TEXTS_BYTES_MAX || texts.ends.len() > TEXTS_MAX {
                        return Err(too_many(name));
                    }
                }
                Event::Done => return Ok(texts),
                _ => {}
            }
        }
    }

    /// A text.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)? as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.bytes.get(start..end)
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes that the table holds.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}

fn too_many(name: &str) -> Error {
    Error::Limit(format!(
        "{name}: texts of cells are held in memory, at most {TEXTS_MAX} of them with {} MiB (save the sheet as CSV, and load that)",
        TEXTS_BYTES_MAX >> 20
    ))
}

/// Appends the text of the element that has begun, up to its end: its parts without what is said about their pronunciation.
///
/// # Errors
/// `Input` when it is damaged.
pub fn append_rich(xml: &mut Xml, out: &mut Vec<u8>) -> Result<()> {
    let (depth, from) = (xml.depth(), out.len());
    // The depth of the element `t` or `rPh` that is open.
    let (mut text_at, mut sound_at) = (None, None);
    loop {
        match xml.next_event()? {
            Event::Start => match xml.element() {
                b"t" if text_at.is_none() => text_at = Some(xml.depth()),
                b"rPh" if sound_at.is_none() => sound_at = Some(xml.depth()),
                _ => {}
            },
            Event::Text if text_at == Some(xml.depth()) && sound_at.is_none() => {
                xml.append_text(out)?
            }
            Event::Text => {}
            Event::End if xml.depth() < depth => {
                resolve_escapes(out, from);
                return Ok(());
            }
            Event::End => {
                let is_over = |at: &mut Option<usize>| {
                    if at.is_some_and(|at| at > xml.depth()) {
                        *at = None;
                    }
                };
                is_over(&mut text_at);
                is_over(&mut sound_at);
            }
            Event::Done => return Ok(()),
        }
        if out.len() - from > TEXTS_BYTES_MAX {
            return Err(too_many(xml.name()));
        }
    }
}
