//! Packets, the login, and the tokens of answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};

use super::store::Session;
use super::types::{Type, Value, put_value};
use super::{PASSWORD, Shared, USER};

pub const BATCH: u8 = 1;
pub const CALL: u8 = 3;
pub const ANSWER: u8 = 4;
pub const ATTENTION: u8 = 6;
pub const BULK: u8 = 7;
pub const TRANSACTION: u8 = 14;
const LOGIN: u8 = 16;
const PRELOGIN: u8 = 18;

pub fn server_config(key: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<ServerConfig> {
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&tokio_rustls::rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    Arc::new(config)
}

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub struct Message {
    pub kind: u8,
    pub bytes: Vec<u8>,
}

/// Messages over a connection.
pub struct Line {
    stream: Box<dyn Stream>,
    packet_bytes: usize,
}

impl Line {
    pub fn read(&mut self) -> Option<Message> {
        let mut bytes = Vec::new();
        let mut kind = None;
        loop {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header).ok()?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            // Of the kind of the first, and not longer than was agreed.
            let is_of_kind = *kind.get_or_insert(header[0]) == header[0];
            if length < 8 || length > self.packet_bytes || !is_of_kind {
                return None;
            }
            let start = bytes.len();
            bytes.resize(start + length - 8, 0);
            self.stream.read_exact(&mut bytes[start..]).ok()?;
            if header[1] & 1 != 0 {
                return Some(Message { kind: header[0], bytes });
            }
        }
    }

    pub fn write(&mut self, kind: u8, bytes: &[u8]) -> Option<()> {
        let mut out = Vec::with_capacity(bytes.len() + 8);
        let most = self.packet_bytes - 8;
        let count = bytes.len().div_ceil(most).max(1);
        for at in 0..count {
            let part = &bytes[at * most..bytes.len().min((at + 1) * most)];
            let length = ((part.len() + 8) as u16).to_be_bytes();
            let status = u8::from(at + 1 == count);
            out.extend_from_slice(&[kind, status, length[0], length[1], 0, 51, (at + 1) as u8, 0]);
            out.extend_from_slice(part);
        }
        self.stream.write_all(&out).ok()?;
        self.stream.flush().ok()
    }
}

/// The handshake of TLS in packets of PRELOGIN.
struct Packets {
    stream: TcpStream,
    out: Vec<u8>,
    left: usize,
}

impl Packets {
    fn send(&mut self) -> std::io::Result<()> {
        let out = std::mem::take(&mut self.out);
        if out.is_empty() {
            return Ok(());
        }
        let length = ((out.len() + 8) as u16).to_be_bytes();
        self.stream
            .write_all(&[&[PRELOGIN, 1, length[0], length[1], 0, 0, 1, 0], &out[..]].concat())
    }
}

impl Write for Packets {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Packets {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header)?;
            if header[0] != PRELOGIN {
                return Err(std::io::Error::other("no packet of the handshake"));
            }
            self.left = usize::from(u16::from_be_bytes([header[2], header[3]])).saturating_sub(8);
        }
        let most = bytes.len().min(self.left);
        let count = self.stream.read(&mut bytes[..most])?;
        self.left -= count;
        Ok(count)
    }
}

fn encrypt(shared: &Shared, stream: TcpStream) -> Option<StreamOwned<ServerConnection, TcpStream>> {
    let mut tls = ServerConnection::new(Arc::clone(&shared.tls)).ok()?;
    let mut packets = Packets { stream, out: Vec::new(), left: 0 };
    while tls.is_handshaking() {
        if tls.wants_read() && !tls.wants_write() {
            if tls.read_tls(&mut packets).ok()? == 0 {
                return None;
            }
            let processed = tls.process_new_packets();
            while tls.wants_write() {
                tls.write_tls(&mut packets).ok()?;
            }
            packets.send().ok()?;
            processed.ok()?;
        }
        while tls.wants_write() {
            tls.write_tls(&mut packets).ok()?;
        }
        packets.send().ok()?;
    }
    Some(StreamOwned::new(tls, packets.stream))
}

/// Does what is done before statements come.
pub fn login(shared: &Shared, stream: TcpStream, session: &mut Session) -> Option<Line> {
    let mut line = Line { stream: Box::new(stream.try_clone().ok()?), packet_bytes: 4096 };
    let Message { kind, bytes } = line.read()?;
    if kind != PRELOGIN {
        return None;
    }
    let asked = option(&bytes, 1)?;
    let told = match (asked, shared.encrypts) {
        (1 | 3, true) => 1,
        (0, true) => 0,
        (_, false) => 2,
        _ => 2,
    };
    // Version, encryption, instance, thread, several requests at once.
    let options: [(u8, &[u8]); 5] =
        [(0, &[15, 0, 0x07, 0xd0, 0, 0]), (1, &[told]), (2, &[0]), (3, &[]), (4, &[0])];
    let (mut out, mut data) = (Vec::new(), Vec::new());
    for (number, bytes) in options {
        let at = (5 * options.len() + 1 + data.len()) as u16;
        out.push(number);
        out.extend_from_slice(&at.to_be_bytes());
        out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        data.extend_from_slice(bytes);
    }
    out.push(0xff);
    out.extend(data);
    line.write(ANSWER, &out)?;
    let message = match told {
        2 => line.read()?,
        _ => {
            let tls = encrypt(shared, stream.try_clone().ok()?)?;
            let mut line_of_tls = Line { stream: Box::new(tls), packet_bytes: 4096 };
            let message = line_of_tls.read()?;
            if told == 1 {
                line = line_of_tls;
            }
            message
        }
    };
    if message.kind != LOGIN {
        return None;
    }
    let mut answer = Answer::default();
    let login = Login::read(&message.bytes)?;
    if login.user != USER || login.password != PASSWORD {
        answer.error(18_456, 14, &format!("Login failed for user '{}'.", login.user));
        answer.done_with(Done::Batch, 2, None);
        line.write(ANSWER, &answer.bytes)?;
        return None;
    }
    if !["", "d", "master"].contains(&login.database.as_str()) {
        answer.error(
            4060,
            11,
            &format!("Cannot open database \"{}\" requested by the login.", login.database),
        );
        answer.done_with(Done::Batch, 2, None);
        line.write(ANSWER, &answer.bytes)?;
        return None;
    }
    session.program = login.program;
    answer.change_text(1, "d", "master");
    answer.change(7, &COLLATION, &[]);
    let packet_bytes = login.packet_bytes.clamp(512, 32_767);
    answer.acknowledge();
    answer.change_text(4, &packet_bytes.to_string(), "4096");
    answer.done_with(Done::Batch, 0, None);
    line.write(ANSWER, &answer.bytes)?;
    line.packet_bytes = packet_bytes as usize;
    Some(line)
}

/// SQL_Latin1_General_CP1_CI_AS.
pub const COLLATION: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

fn option(bytes: &[u8], wanted: u8) -> Option<u8> {
    let mut at = 0;
    while *bytes.get(at)? != 0xff {
        let option = bytes.get(at..at + 5)?;
        if option[0] == wanted {
            return bytes.get(usize::from(u16::from_be_bytes([option[1], option[2]]))).copied();
        }
        at += 5;
    }
    None
}

struct Login {
    user: String,
    password: String,
    program: String,
    database: String,
    packet_bytes: u32,
}

impl Login {
    fn read(bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u16_at = |at: usize| {
            Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
        };
        if u32_at(0)? as usize != bytes.len() || u32_at(4)? < 0x7200_0000 {
            return None;
        }
        let part = |number: usize| {
            let at = u16_at(36 + 4 * number)?;
            bytes.get(at..at + 2 * u16_at(38 + 4 * number)?)
        };
        let shown: Vec<u8> = part(2)?.iter().map(|byte| (byte ^ 0xa5).rotate_left(4)).collect();
        Some(Login {
            user: text(part(1)?),
            password: text(&shown),
            program: text(part(3)?),
            database: text(part(8)?),
            packet_bytes: match u32_at(8)? {
                0 => 4096,
                bytes => bytes,
            },
        })
    }
}

pub fn text(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// What follows the headers of a request, whose transaction must be the one that is open.
pub fn after_headers<'a>(
    bytes: &'a [u8],
    session: &Session,
    answer: &mut Answer,
) -> Option<&'a [u8]> {
    let all = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let mut at = 4;
    let mut transaction = None;
    while at < all {
        let length = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        if bytes.get(at + 4..at + 6)? == [2, 0] {
            transaction = Some(u64::from_le_bytes(bytes.get(at + 6..at + 14)?.try_into().ok()?));
        }
        at += length.max(6);
    }
    if at != all || transaction != Some(session.transaction.unwrap_or(0)) {
        answer.error(3989, 16, "New request is not allowed to start because it should come with valid transaction descriptor.");
        answer.done_with(Done::Batch, 2, None);
    }
    bytes.get(all..)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Batch = 0xfd,
    Procedure = 0xfe,
    InProcedure = 0xff,
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    pub bytes: Vec<u8>,
    /// Where the status of the last part that ended is.
    last: usize,
    columns: Vec<Type>,
    has_failed: bool,
}

impl Answer {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn short(&mut self, text: &str) {
        self.bytes.push(text.encode_utf16().count() as u8);
        self.bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    }

    fn told(&mut self, token: u8, number: i32, class: u8, text: &str) {
        let mut body = Vec::new();
        body.extend_from_slice(&number.to_le_bytes());
        body.extend_from_slice(&[1, class]);
        body.extend_from_slice(&(text.encode_utf16().count() as u16).to_le_bytes());
        body.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        // No name of the server, no procedure, the first line.
        body.extend_from_slice(&[1, b's', 0, 0, 1, 0, 0, 0]);
        self.bytes.push(token);
        self.bytes.extend_from_slice(&(body.len() as u16).to_le_bytes());
        self.bytes.extend(body);
    }

    pub fn error(&mut self, number: i32, class: u8, text: &str) {
        self.told(0xaa, number, class, text);
        self.has_failed = true;
    }

    pub fn info(&mut self, number: i32, text: &str) {
        self.told(0xab, number, 0, text);
    }

    pub fn change(&mut self, kind: u8, new: &[u8], old: &[u8]) {
        self.bytes.push(0xe3);
        self.bytes.extend_from_slice(&((3 + new.len() + old.len()) as u16).to_le_bytes());
        self.bytes.extend_from_slice(&[kind, new.len() as u8]);
        self.bytes.extend_from_slice(new);
        self.bytes.push(old.len() as u8);
        self.bytes.extend_from_slice(old);
    }

    fn change_text(&mut self, kind: u8, new: &str, old: &str) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0xe3, 0, 0, kind]);
        self.short(new);
        self.short(old);
        let length = (self.bytes.len() - at - 3) as u16;
        self.bytes[at + 1..at + 3].copy_from_slice(&length.to_le_bytes());
    }

    fn acknowledge(&mut self) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0xad, 0, 0, 1, 0x74, 0, 0, 4]);
        self.short("Microsoft SQL Server");
        self.bytes.extend_from_slice(&[15, 0, 0x07, 0xd0]);
        let length = (self.bytes.len() - at - 3) as u16;
        self.bytes[at + 1..at + 3].copy_from_slice(&length.to_le_bytes());
    }

    pub fn columns(&mut self, columns: &[(String, Type)]) {
        self.bytes.push(0x81);
        self.bytes.extend_from_slice(&(columns.len() as u16).to_le_bytes());
        for (name, of) in columns {
            self.bytes.extend_from_slice(&[0, 0, 0, 0, 9, 0]);
            of.put(&mut self.bytes);
            self.short(name);
        }
        self.columns = columns.iter().map(|(_, of)| of.clone()).collect();
    }

    /// A row; one of two with NULL is sent with their bits before.
    pub fn row(&mut self, cells: &[Value]) {
        let nulls = cells.iter().filter(|cell| cell.is_none()).count();
        if nulls * 2 > cells.len() {
            self.bytes.push(0xd2);
            let mut bits = vec![0_u8; cells.len().div_ceil(8)];
            for (at, cell) in cells.iter().enumerate() {
                bits[at / 8] |= u8::from(cell.is_none()) << (at % 8);
            }
            self.bytes.extend(bits);
            for (cell, of) in cells.iter().zip(&self.columns) {
                if cell.is_some() {
                    put_value(cell, of, &mut self.bytes);
                }
            }
            return;
        }
        self.bytes.push(0xd1);
        for (cell, of) in cells.iter().zip(&self.columns) {
            put_value(cell, of, &mut self.bytes);
        }
    }

    pub fn status(&mut self) {
        self.bytes.extend_from_slice(&[0x79, 0, 0, 0, 0]);
    }

    /// A parameter that is given back: a whole number.
    pub fn returned(&mut self, value: i32) {
        self.bytes.extend_from_slice(&[0xac, 0, 0]);
        self.short("");
        self.bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0x26, 4, 4]);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A part has ended; others follow until [`Self::end`].
    pub fn done(&mut self, what: Done, count: Option<u64>) {
        let failed = std::mem::take(&mut self.has_failed);
        self.done_with(what, 1 | if failed { 2 } else { 0 }, count);
    }

    pub fn done_with(&mut self, what: Done, status: u16, count: Option<u64>) {
        self.bytes.push(what as u8);
        self.last = self.bytes.len();
        let status = status | if count.is_some() { 0x10 } else { 0 };
        self.bytes.extend_from_slice(&status.to_le_bytes());
        self.bytes.extend_from_slice(&[0xc3, 0]);
        self.bytes.extend_from_slice(&count.unwrap_or(0).to_le_bytes());
    }

    /// Nothing follows the last part.
    pub fn end(&mut self) {
        if self.last == 0 || self.has_failed {
            self.done(Done::Batch, None);
        }
        self.bytes[self.last] &= !1;
    }
}
