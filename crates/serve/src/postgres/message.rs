//! What clients send, in version 3 of PostgreSQL's protocol.
//!
//! ```text
//!   kind (1 byte, none in the first message), length (4 bytes, itself counted), body
//! ```
//!
//! Nothing of a body is believed: lengths within it that go beyond it, texts that are not UTF-8, and bytes behind its end are
//! errors.

use bytes::Bytes;

use super::fault::{Fault, code};

/// A message of a client that has logged in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Statements to be run, their answers as text.
    Query(String),
    Parse(Parse),
    Bind(Bind),
    Describe(Named),
    Close(Named),
    Execute {
        portal: String,
        /// Rows to be sent at most; all if 0.
        rows_max: u32,
    },
    Flush,
    Sync,
    Terminate,
    CopyData(Bytes),
    CopyDone,
    /// Why the client gives up.
    CopyFail(String),
    /// An answer to a request for a password.
    Password(Bytes),
}

/// A statement to be prepared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parse {
    pub name: String,
    pub text: String,
    /// Types of the first parameters; 0 is not known.
    pub types: Vec<u32>,
}

/// Values for a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub portal: String,
    pub statement: String,
    pub formats: Formats,
    /// `None` is NULL.
    pub values: Vec<Option<Bytes>>,
    pub answer_formats: Formats,
}

/// A statement or portal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    Statement(String),
    Portal(String),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Binary,
}

/// The formats of some values: one for each, one for all, or none said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Formats(Vec<Format>);

impl Formats {
    /// One for all.
    pub fn all(format: Format) -> Self {
        Formats(vec![format])
    }

    /// That of a value; text where none is said.
    pub fn of(&self, index: usize) -> Format {
        match self.0[..] {
            [all] => all,
            _ => self.0.get(index).copied().unwrap_or(Format::Text),
        }
    }

    /// Checks that they are for so many values.
    pub fn check(&self, values: usize) -> Result<(), Fault> {
        match self.0.len() {
            0 | 1 => Ok(()),
            said if said == values => Ok(()),
            said => Err(broken(&format!("{said} formats for {values} values"))),
        }
    }
}

impl Message {
    /// Reads the body of a message of a kind.
    ///
    /// # Errors
    /// Of class 08 when it is none of the protocol's.
    pub fn read(kind: u8, body: Bytes) -> Result<Self, Fault> {
        let mut body = Body { rest: body };
        let message = match kind {
            b'Q' => Message::Query(body.text()?),
            b'P' => Message::Parse(Parse {
                name: body.text()?,
                text: body.text()?,
                types: body.many(Body::u32)?,
            }),
            b'B' => Message::Bind(Bind {
                portal: body.text()?,
                statement: body.text()?,
                formats: body.formats()?,
                values: body.many(Body::value)?,
                answer_formats: body.formats()?,
            }),
            b'D' => Message::Describe(body.named()?),
            b'C' => Message::Close(body.named()?),
            b'E' => {
                let portal = body.text()?;
                // A count below 0 means all, as 0 does.
                let rows_max = u32::try_from(body.u32()? as i32).unwrap_or(0);
                Message::Execute { portal, rows_max }
            }
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'X' => Message::Terminate,
            b'd' => Message::CopyData(body.all()),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(body.text()?),
            b'p' => Message::Password(body.all()),
            b'F' => return Err(Fault::fatal(code::UNSUPPORTED, "calls of functions by number")),
            other => {
                let kind = other.escape_ascii();
                return Err(Fault::fatal(code::PROTOCOL, format!("no message of kind {kind}")));
            }
        };
        match body.rest.is_empty() {
            true => Ok(message),
            false => Err(broken("bytes behind its end")),
        }
    }
}

/// The fault of a message that is not as it should be; the connection cannot be believed any more.
fn broken(what: &str) -> Fault {
    Fault::fatal(code::PROTOCOL, format!("a message is not as the protocol has it: {what}"))
}

/// What is left of a body.
#[derive(Debug)]
pub(super) struct Body {
    rest: Bytes,
}

impl Body {
    /// All of a body.
    pub fn new(rest: Bytes) -> Self {
        Body { rest }
    }

    fn take(&mut self, bytes: usize) -> Result<Bytes, Fault> {
        match bytes <= self.rest.len() {
            true => Ok(self.rest.split_to(bytes)),
            false => Err(broken("a part goes beyond its end")),
        }
    }

    /// Everything that is left.
    pub fn all(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A text that ends with a zero.
    pub fn text(&mut self) -> Result<String, Fault> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let text = self.take(end.ok_or_else(|| broken("a text has no end"))?)?;
        self.take(1)?;
        let text = std::str::from_utf8(&text);
        text.map(str::to_owned)
            .map_err(|e| Fault::error(code::ENCODING, format!("a text is not UTF-8: {e}")))
    }

    fn u16(&mut self) -> Result<u16, Fault> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Fault> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A length, below 0 for NULL, and so many bytes.
    pub fn value(&mut self) -> Result<Option<Bytes>, Fault> {
        match self.u32()? as i32 {
            ..0 => Ok(None),
            length => self.take(length as usize).map(Some),
        }
    }

    /// A count and so many things.
    fn many<T>(&mut self, read: fn(&mut Self) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let count = self.u16()?;
        // Each takes bytes of the message, so that a count alone makes no room.
        (0..count).map(|_| read(self)).collect()
    }

    fn formats(&mut self) -> Result<Formats, Fault> {
        let codes = self.many(Body::u16)?;
        let format = |code| match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            other => Err(broken(&format!("no format has the number {other}"))),
        };
        codes.into_iter().map(format).collect::<Result<_, _>>().map(Formats)
    }

    fn named(&mut self) -> Result<Named, Fault> {
        match self.take(1)?[0] {
            b'S' => Ok(Named::Statement(self.text()?)),
            b'P' => Ok(Named::Portal(self.text()?)),
            _ => Err(broken("neither a statement nor a portal")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bind() -> Vec<u8> {
        b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0".to_vec()
    }

    #[test]
    fn a_message_is_read_to_its_last_byte() {
        let Message::Bind(read) = Message::read(b'B', bind().into()).unwrap() else { panic!() };
        assert_eq!((&*read.portal, &*read.statement), ("p", "s"));
        assert_eq!(read.values, [Some(Bytes::from_static(b"ab")), None]);
        assert_eq!((read.formats.of(1), read.answer_formats.of(0)), (Format::Binary, Format::Text));
        let mut longer = bind();
        longer.push(0);
        assert!(Message::read(b'B', longer.into()).is_err());
    }

    /// A library for the protocol panicked there.
    #[test]
    fn no_message_that_was_cut_off_is_believed() {
        let parse = b"name\0SELECT 1\0\0\x01\0\0\0\x17".to_vec();
        for (kind, whole) in [(b'B', bind()), (b'P', parse), (b'E', b"p\0\0\0\0\x01".to_vec())] {
            assert!(Message::read(kind, whole.clone().into()).is_ok());
            for length in 0..whole.len() {
                let cut = Bytes::copy_from_slice(&whole[..length]);
                assert!(Message::read(kind, cut).is_err(), "{kind} {length}");
            }
        }
    }

    #[test]
    fn what_is_not_utf_8_is_not_changed_silently() {
        let fault = Message::read(b'Q', Bytes::from_static(b"SELECT '\xff'\0")).unwrap_err();
        assert_eq!(fault.code, code::ENCODING);
    }

    #[test]
    fn formats_are_for_all_values_or_each() {
        let formats = Formats(vec![Format::Text, Format::Binary]);
        assert!(formats.check(2).is_ok() && formats.check(3).is_err());
        assert_eq!(formats.of(1), Format::Binary);
    }
}
