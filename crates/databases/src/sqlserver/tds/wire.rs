//! Packets: 8 bytes of a header, and a part of a message.
//!
//! ```text
//!   type | status (1: the last of its message) | length, high byte first | process | number | window
//! ```

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use coload_types::{Error, Result};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

/// Bytes of the header of a packet.
pub const HEADER: usize = 8;
/// Bytes of packets that are written at once.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Least packet that there is.
const PACKET_MIN: usize = 512;

/// Kinds of messages.
pub mod message {
    /// A statement.
    pub const BATCH: u8 = 1;
    /// A call of a procedure.
    pub const CALL: u8 = 3;
    /// An answer.
    pub const ANSWER: u8 = 4;
    /// Rows of INSERT BULK.
    pub const BULK: u8 = 7;
    /// Who we are.
    pub const LOGIN: u8 = 16;
    /// What both sides can, and the handshake of TLS.
    pub const PRELOGIN: u8 = 18;
}

/// Bytes to the server and back.
#[derive(Debug)]
pub enum Stream {
    /// As they are.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(bytes),
            Stream::Tls(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// Messages over a stream. One that was broken off is of no use any more.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<Stream>,
    /// Bytes of a packet at most, its header among them.
    packet_bytes: usize,
    /// Packets that are being written: whole ones, and the one that begins at `open`.
    out: Vec<u8>,
    open: usize,
    kind: u8,
    number: u8,
    /// What is there of the packet that is being read.
    packet: Vec<u8>,
    at: usize,
    /// Whether it is the last of its message.
    is_last: bool,
    is_broken: bool,
}

/// The server's bytes are none of the protocol.
pub fn wrong(what: &str) -> Error {
    Error::Corrupt(format!("SQL Server: an answer that is none of TDS: {what}"))
}

/// The connection is gone, and another one may be made.
pub fn lost(error: &std::io::Error) -> Error {
    Error::Unavailable(format!("SQL Server: the connection is lost: {error}"))
}

impl Wire {
    /// Over a stream, in packets of so many bytes.
    pub fn new(stream: Stream, packet_bytes: usize) -> Self {
        Wire {
            stream: BufReader::with_capacity(READ_BYTES, stream),
            packet_bytes,
            out: Vec::new(),
            open: 0,
            kind: 0,
            number: 0,
            packet: Vec::new(),
            at: 0,
            is_last: true,
            is_broken: false,
        }
    }

    /// Whether nobody between us and the server reads or writes what goes over it.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.stream.get_ref(), Stream::Tls(_))
    }

    /// The stream, when no answer is on its way.
    ///
    /// # Errors
    /// `Corrupt` when the server said more than it was asked.
    pub fn into_stream(self) -> Result<Stream> {
        match self.stream.buffer().is_empty() {
            true => Ok(self.stream.into_inner()),
            false => Err(wrong("bytes behind its end")),
        }
    }

    /// The server wants packets of so many bytes.
    pub fn set_packet_bytes(&mut self, bytes: usize) {
        self.packet_bytes = bytes.clamp(PACKET_MIN, usize::from(u16::MAX));
    }

    fn io<T>(
        &mut self,
        run: impl FnOnce(&mut BufReader<Stream>) -> std::io::Result<T>,
    ) -> Result<T> {
        if self.is_broken {
            return Err(Error::Unavailable("SQL Server: the connection was lost before".into()));
        }
        run(&mut self.stream).map_err(|error| {
            self.is_broken = true;
            lost(&error)
        })
    }

    /// Begins a message.
    pub fn begin(&mut self, kind: u8) {
        self.out.clear();
        self.kind = kind;
        self.number = 1;
        self.open_packet();
    }

    fn open_packet(&mut self) {
        self.open = self.out.len();
        self.out.extend_from_slice(&[self.kind, 0, 0, 0, 0, 0, self.number, 0]);
        self.number = self.number.wrapping_add(1);
    }

    fn close_packet(&mut self, status: u8) {
        let length = (self.out.len() - self.open) as u16;
        let header = &mut self.out[self.open..self.open + HEADER];
        header[1] = status;
        header[2..4].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends to the message.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let room = self.packet_bytes - (self.out.len() - self.open).min(self.packet_bytes);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.out.extend_from_slice(now);
            if later.is_empty() {
                return Ok(());
            }
            bytes = later;
            self.close_packet(0);
            if self.out.len() >= WRITE_BYTES {
                let out = std::mem::take(&mut self.out);
                self.io(|stream| stream.get_mut().write_all(&out))?;
                self.out = out;
                self.out.clear();
            }
            self.open_packet();
        }
    }

    /// Ends the message, and awaits its answer.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn end(&mut self) -> Result<()> {
        self.close_packet(1);
        let out = std::mem::take(&mut self.out);
        self.io(|stream| {
            stream.get_mut().write_all(&out)?;
            stream.get_mut().flush()
        })?;
        self.out = out;
        self.await_answer();
        Ok(())
    }

    /// An answer comes, to what was sent here or before.
    pub fn await_answer(&mut self) {
        self.packet.clear();
        self.at = 0;
        self.is_last = false;
    }

    /// How long to wait for bytes; for ever if `None`.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.io(|stream| match stream.get_ref() {
            Stream::Plain(stream) => stream.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.sock.set_read_timeout(timeout),
        })
    }

    fn next_packet(&mut self) -> Result<()> {
        if self.is_last {
            self.is_broken = true;
            return Err(wrong("it ends early"));
        }
        let mut header = [0; HEADER];
        self.io(|stream| stream.read_exact(&mut header))?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] != message::ANSWER || length < HEADER {
            self.is_broken = true;
            return Err(wrong("a packet is of another kind (is this the port of SQL Server?)"));
        }
        let mut packet = std::mem::take(&mut self.packet);
        packet.resize(length - HEADER, 0);
        let read = self.io(|stream| stream.read_exact(&mut packet));
        (self.packet, self.at) = (packet, 0);
        self.is_last = header[1] & 1 != 0;
        read
    }

    /// Whether all of the answer was read.
    pub fn is_read(&self) -> bool {
        self.is_last && self.at == self.packet.len()
    }

    /// Reads so many bytes of the answer.
    ///
    /// # Errors
    /// `Corrupt` when it has fewer, `Unavailable` when the connection is lost.
    pub fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.at == self.packet.len() {
                self.next_packet()?;
                continue;
            }
            let count = out.len().min(self.packet.len() - self.at);
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&self.packet[self.at..self.at + count]);
            self.at += count;
            out = later;
        }
        Ok(())
    }

    /// Appends so many bytes of the answer; no memory is asked for before they have come.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_into(&mut self, mut count: usize, out: &mut Vec<u8>) -> Result<()> {
        while count > 0 {
            if self.at == self.packet.len() {
                self.next_packet()?;
                continue;
            }
            let now = count.min(self.packet.len() - self.at);
            out.extend_from_slice(&self.packet[self.at..self.at + now]);
            self.at += now;
            count -= now;
        }
        Ok(())
    }

    /// Passes over so many bytes of the answer.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn skip(&mut self, mut count: usize) -> Result<()> {
        while count > 0 {
            if self.at == self.packet.len() {
                self.next_packet()?;
                continue;
            }
            let now = count.min(self.packet.len() - self.at);
            self.at += now;
            count -= now;
        }
        Ok(())
    }

    /// The rest of the answer, of so many bytes at most.
    ///
    /// # Errors
    /// As [`Self::read`]; `Corrupt` when it is longer.
    pub fn read_rest(&mut self, most: usize) -> Result<Vec<u8>> {
        let mut rest = Vec::new();
        while !self.is_read() {
            if self.at == self.packet.len() {
                self.next_packet()?;
            }
            rest.extend_from_slice(&self.packet[self.at..]);
            self.at = self.packet.len();
            if rest.len() > most {
                return Err(wrong("it is too long"));
            }
        }
        Ok(rest)
    }

    /// A byte.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, the lowest first.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Some bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// A text of so many UTF-16 units.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn text(&mut self, units: usize) -> Result<String> {
        let mut bytes = Vec::new();
        self.read_into(units * 2, &mut bytes)?;
        Ok(text_of(&bytes))
    }

    /// A text whose length is a byte.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn short_text(&mut self) -> Result<String> {
        let units = usize::from(self.u8()?);
        self.text(units)
    }

    /// A text whose length is two bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn long_text(&mut self) -> Result<String> {
        let units = usize::from(self.u16()?);
        self.text(units)
    }
}

/// The text of UTF-16 units, the low byte first; for messages and names.
pub fn text_of(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
