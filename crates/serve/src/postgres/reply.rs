//! What the server says: messages gathered in a buffer, each with its kind and length before it.

use bytes::{BufMut, BytesMut};

use super::copy_binary::put_header;
use super::fault::Fault;
use super::kinds::Column;
use super::message::Format;

/// How the connection stands, as clients are told when they may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Idle,
    InTransaction,
    /// A statement of the transaction has failed.
    Failed,
}

/// Messages to a client.
#[derive(Debug, Default)]
pub(super) struct Replies {
    pub bytes: BytesMut,
    /// Whether the header of a COPY in binary has to be sent. It stands before the first row in one message, and the mark of the end
    /// has its own, as with PostgreSQL: clients go by messages.
    owes_header: bool,
}

impl Replies {
    /// A message whose body is written by `write`.
    fn message(&mut self, kind: u8, write: impl FnOnce(&mut BytesMut)) {
        self.bytes.put_u8(kind);
        self.sized(write);
    }

    /// A length, itself counted, and what is written.
    fn sized(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let start = self.bytes.len();
        self.bytes.put_u32(0);
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// A request of the login, or its end: a number and what goes with it.
    pub fn authentication(&mut self, number: u32, with: &[u8]) {
        self.message(b'R', |body| {
            body.put_u32(number);
            body.put_slice(with);
        });
    }

    pub fn negotiate_version(&mut self, minor: u32, unknown: &[String]) {
        self.message(b'v', |body| {
            body.put_u32(minor);
            body.put_u32(unknown.len() as u32);
            unknown.iter().for_each(|name| put_text(body, name));
        });
    }

    pub fn setting(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| {
            put_text(body, name);
            put_text(body, value);
        });
    }

    /// What a client cancels statements of this connection with.
    pub fn cancel_key(&mut self, key: [u8; 8]) {
        self.message(b'K', |body| body.put_slice(&key));
    }

    pub fn ready(&mut self, standing: Standing) {
        let letter = match standing {
            Standing::Idle => b'I',
            Standing::InTransaction => b'T',
            Standing::Failed => b'E',
        };
        self.message(b'Z', |body| body.put_u8(letter));
    }

    pub fn parsed(&mut self) {
        self.message(b'1', |_| ());
    }

    pub fn bound(&mut self) {
        self.message(b'2', |_| ());
    }

    pub fn closed(&mut self) {
        self.message(b'3', |_| ());
    }

    pub fn suspended(&mut self) {
        self.message(b's', |_| ());
    }

    pub fn no_columns(&mut self) {
        self.message(b'n', |_| ());
    }

    pub fn nothing_to_run(&mut self) {
        self.message(b'I', |_| ());
    }

    /// What a statement has done.
    pub fn done(&mut self, tag: &str) {
        self.message(b'C', |body| put_text(body, tag));
    }

    pub fn fault(&mut self, fault: &Fault) {
        let severity = if fault.is_fatal { "FATAL" } else { "ERROR" };
        self.told(b'E', severity, fault.code, &fault.text);
    }

    /// Something that the client should know, and that is no error.
    pub fn warning(&mut self, text: &str) {
        self.told(b'N', "WARNING", "01000", text);
    }

    fn told(&mut self, kind: u8, severity: &str, code: &str, text: &str) {
        let (first, hint) = text.split_once('\n').unwrap_or((text, ""));
        self.message(kind, |body| {
            // The second severity is never translated.
            for (field, value) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', first)]
            {
                body.put_u8(field);
                put_text(body, value);
            }
            if !hint.is_empty() {
                body.put_u8(b'D');
                put_text(body, hint);
            }
            body.put_u8(0);
        });
    }

    /// Types of a statement's parameters.
    pub fn parameters(&mut self, types: &[u32]) {
        self.message(b't', |body| {
            body.put_u16(types.len() as u16);
            types.iter().for_each(|oid| body.put_u32(*oid));
        });
    }

    pub fn columns(&mut self, columns: &[Column]) {
        self.message(b'T', |body| {
            body.put_u16(columns.len() as u16);
            for column in columns {
                put_text(body, &column.name);
                // The table and the number of a column are not known of what a query makes.
                body.put_u32(0);
                body.put_u16(0);
                body.put_u32(column.kind.oid());
                body.put_i16(column.kind.bytes());
                body.put_i32(column.modifier);
                put_format(body, column.format);
            }
        });
    }

    /// A message whose body may not come about; it is not there then.
    fn message_if<E>(
        &mut self,
        kind: u8,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let mut written = Ok(());
        self.message(kind, |body| written = write(body));
        if written.is_err() {
            self.bytes.truncate(start);
        }
        written
    }

    /// A row of so many values, which `write` writes.
    ///
    /// # Errors
    /// What `write` says; the row is then not there.
    pub fn row<E>(
        &mut self,
        columns: usize,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.message_if(b'D', |body| {
            body.put_u16(columns as u16);
            write(body)
        })
    }

    /// Asks for the rows of a COPY.
    pub fn copy_in(&mut self, columns: usize, format: Format) {
        self.message(b'G', |body| put_copy(body, columns, format));
    }

    /// Says that the rows of a COPY follow.
    pub fn copy_out(&mut self, columns: usize, format: Format) {
        self.owes_header = format == Format::Binary;
        self.message(b'H', |body| put_copy(body, columns, format));
    }

    /// A piece of a COPY in binary.
    ///
    /// # Errors
    /// What `write` says; the piece is then not there.
    pub fn copy_piece<E>(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let header = std::mem::take(&mut self.owes_header);
        self.message_if(b'd', |body| {
            if header {
                put_header(body);
            }
            write(body)
        })
    }

    /// A line of a COPY, whose end is added.
    ///
    /// # Errors
    /// What `write` says; the line is then not there.
    pub fn copy_row<E>(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        self.message_if(b'd', |line| {
            write(line)?;
            line.put_u8(b'\n');
            Ok(())
        })
    }

    pub fn copy_done(&mut self) {
        self.message(b'c', |_| ());
    }
}

fn put_copy(body: &mut BytesMut, columns: usize, format: Format) {
    body.put_u8(match format {
        Format::Text => 0,
        Format::Binary => 1,
    });
    body.put_u16(columns as u16);
    (0..columns).for_each(|_| put_format(body, format));
}

fn put_format(body: &mut BytesMut, format: Format) {
    body.put_u16(match format {
        Format::Text => 0,
        Format::Binary => 1,
    });
}

/// A text and a zero. A zero within it would end it for the client, so what stands behind is set off.
fn put_text(body: &mut BytesMut, text: &str) {
    match text.contains('\0') {
        true => body.put_slice(text.replace('\0', "\\0").as_bytes()),
        false => body.put_slice(text.as_bytes()),
    }
    body.put_u8(0);
}
