//! A connection that is logged in: requests, and the tokens of their answers.

use coload_types::{Error, Result};

use super::login::Login;
use super::request::{
    Procedure, put_call, put_descriptor, put_int_parameter, put_text_parameter, put_utf16,
};
use super::types::TypeInfo;
use super::wire::{Wire, message, text_of, wrong};

/// Servers that send us on to another one, one after the other, at most.
const LOGIN_HOPS: usize = 3;
/// Most characters of the name of a host, as DNS has it.
const HOST_MAX: usize = 253;
/// The server says that a duplicate was left out (an index with IGNORE_DUP_KEY).
pub const LEFT_OUT: i32 = 3604;
/// Most columns of an answer.
const COLUMNS_MAX: u16 = 4096;
/// Most bytes of a value that is asked for by the load itself.
const OWN_VALUE_MAX: u64 = 64 << 20;

/// What tokens begin with.
mod token {
    pub const RETURN_STATUS: u8 = 0x79;
    pub const COLUMNS: u8 = 0x81;
    pub const TABLE_NAMES: u8 = 0xa4;
    pub const COLUMN_INFO: u8 = 0xa5;
    pub const ORDER: u8 = 0xa9;
    pub const ERROR: u8 = 0xaa;
    pub const INFO: u8 = 0xab;
    pub const RETURN_VALUE: u8 = 0xac;
    pub const LOGIN_ACK: u8 = 0xad;
    pub const FEATURES: u8 = 0xae;
    pub const ROW: u8 = 0xd1;
    pub const SPARSE_ROW: u8 = 0xd2;
    pub const CHANGE: u8 = 0xe3;
    pub const STATE: u8 = 0xe4;
    pub const SSPI: u8 = 0xed;
    pub const DONE: u8 = 0xfd;
    pub const DONE_PROC: u8 = 0xfe;
    pub const DONE_IN_PROC: u8 = 0xff;
}

/// What is told of a request that ended, or of a part of it.
mod status {
    pub const MORE: u16 = 1;
    pub const ERROR: u16 = 2;
    pub const COUNT: u16 = 0x10;
    pub const SERVER_ERROR: u16 = 0x100;
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_info: TypeInfo,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// Its number.
    pub number: i32,
    /// How bad it is; from 20 on the connection ends.
    pub class: u8,
    /// What it says.
    pub text: String,
}

impl ServerError {
    /// How much it says of what became of the statement: an error of the server itself, or a deadlock, which ends the
    /// transaction, more than one of a value.
    fn rank(&self) -> u8 {
        match self.class {
            13 => 17,
            class => class.max(16),
        }
    }

    /// Keeps the error that tells what became of a statement: the first one, unless a worse one follows.
    pub fn keep(self, kept: &mut Option<ServerError>) {
        if kept.as_ref().is_none_or(|kept| self.rank() > kept.rank()) {
            *kept = Some(self);
        }
    }
}

/// A part of a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Rows that it says, if it does.
    pub count: Option<u64>,
    /// Whether it is of a statement of a batch, and not within a procedure or a trigger.
    pub of_batch: bool,
}

/// Rows that an answer tells, however many parts it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those of the last part that tells any.
    pub last: Option<u64>,
    /// Those of the last statement of the batch, if it tells any.
    pub of_batch: Option<u64>,
}

impl Counts {
    fn add(&mut self, done: Done) {
        self.last = done.count.or(self.last);
        if done.of_batch {
            self.of_batch = done.count;
        }
    }
}

/// What an answer has next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Columns, whose rows follow.
    Columns(Vec<ColumnInfo>),
    /// A row: its values are to be read by [`Session::value`].
    Row,
    /// A parameter that a procedure gave back, as a whole number if it is one.
    Returned(Option<i32>),
    /// A part has ended.
    Done(Done),
    /// An error; others may follow.
    Error(ServerError),
    /// All was read.
    End,
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Session {
    wire: Wire,
    /// The transaction that is open, as the server numbers it; 0 if none.
    transaction: u64,
    collation: [u8; 5],
    /// Whether the server said that it left out a duplicate, in answer to the last request.
    has_left_out: bool,
    is_over: bool,
    /// Columns of the rows that come.
    columns_count: usize,
    /// Bits of the values of a row that are NULL, if they are told before it.
    nulls: Vec<u8>,
    /// Whether an error was told, and whether a part ended with one.
    has_told: bool,
    ended_badly: bool,
    is_logged_in: bool,
    /// Where the server sends us instead.
    route: Option<(String, u16)>,
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached; what it says, by `world`.
    pub fn open(login: &Login, world: fn(&ServerError) -> Error) -> Result<Self> {
        let (mut host, mut port) = (login.host.clone(), login.port);
        for _ in 0..LOGIN_HOPS {
            let mut session = Session::new(login.open(&host, port)?);
            if let Some(error) = session.read_all()?.1 {
                return Err(world(&error));
            }
            match session.route.take() {
                // Anybody between us could have written it, and would be sent the password.
                Some((to, _)) if !session.wire.is_encrypted() => {
                    return Err(Error::Refused(format!(
                        "SQL Server at {host}:{port} sends us to {to} over a connection that is not encrypted \
                         (encrypt=true, or name {to} in the URL)"
                    )));
                }
                Some(route) => (host, port) = route,
                None if session.is_logged_in => {
                    session.wire.set_timeout(None)?;
                    return Ok(session);
                }
                None => return Err(wrong("a login that is neither taken nor refused")),
            }
        }
        Err(Error::Unavailable("SQL Server sends us from server to server".into()))
    }

    fn new(wire: Wire) -> Self {
        Session {
            wire,
            transaction: 0,
            // That of the United States, until the server says its own.
            collation: [0x09, 0x04, 0xd0, 0x00, 0x34],
            has_left_out: false,
            is_over: false,
            columns_count: 0,
            nulls: Vec::new(),
            has_told: false,
            ended_badly: false,
            is_logged_in: false,
            route: None,
        }
    }

    /// How texts of the connection's database compare, for the types of texts that are sent.
    pub fn collation(&self) -> [u8; 5] {
        self.collation
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction != 0
    }

    /// Whether the server said in its last answer that it left out a duplicate.
    pub fn has_left_out(&self) -> bool {
        self.has_left_out
    }

    fn begin(&mut self, kind: u8) {
        self.has_left_out = false;
        self.is_over = false;
        self.has_told = false;
        self.ended_badly = false;
        self.wire.begin(kind);
    }

    /// Sends a statement.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn send_batch(&mut self, sql: &str) -> Result<()> {
        let mut out = Vec::with_capacity(sql.len() * 2 + 22);
        put_descriptor(self.transaction, &mut out);
        put_utf16(sql.as_bytes(), &mut out);
        self.begin(message::BATCH);
        self.wire.put(&out)?;
        self.wire.end()
    }

    /// Sends a statement with parameters, as `sp_executesql` has it: their declaration, and what `parameters` appends for each.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn send_sql(&mut self, sql: &str, declared: &str, parameters: &[u8]) -> Result<()> {
        let mut out = Vec::new();
        put_call(Procedure::ExecuteSql, self.transaction, &mut out);
        put_text_parameter("", sql, self.collation, &mut out);
        if !declared.is_empty() {
            put_text_parameter("", declared, self.collation, &mut out);
        }
        self.send_call(&out, parameters)
    }

    /// Prepares a statement; its handle is given back.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn send_prepare(&mut self, sql: &str, declared: &str) -> Result<()> {
        let mut out = Vec::new();
        put_call(Procedure::Prepare, self.transaction, &mut out);
        put_int_parameter("", None, true, &mut out);
        put_text_parameter("", declared, self.collation, &mut out);
        put_text_parameter("", sql, self.collation, &mut out);
        // Whether columns of the answer are told.
        put_int_parameter("", Some(1), false, &mut out);
        self.send_call(&out, &[])
    }

    /// Runs a statement that was prepared, or forgets it.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn send_prepared(
        &mut self,
        procedure: Procedure,
        handle: i32,
        parameters: &[u8],
    ) -> Result<()> {
        let mut out = Vec::new();
        put_call(procedure, self.transaction, &mut out);
        put_int_parameter("", Some(handle), false, &mut out);
        self.send_call(&out, parameters)
    }

    fn send_call(&mut self, out: &[u8], parameters: &[u8]) -> Result<()> {
        self.begin(message::CALL);
        self.wire.put(out)?;
        self.wire.put(parameters)?;
        self.wire.end()
    }

    /// Sends rows, for which INSERT BULK has asked: columns, rows, and their end.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub fn send_bulk(&mut self, columns: &[u8], rows: &[u8]) -> Result<()> {
        /// The end of rows: no status, no command, no count.
        const DONE: [u8; 13] = [token::DONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        self.begin(message::BULK);
        self.wire.put(columns)?;
        self.wire.put(rows)?;
        self.wire.put(&DONE)?;
        self.wire.end()
    }

    /// Reads an answer to its end: the rows that it tells, and the error that says what became of it. However long it is,
    /// no more than a value of it is in memory.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub fn read_all(&mut self) -> Result<(Counts, Option<ServerError>)> {
        let (mut counts, mut kept) = (Counts::default(), None);
        let mut columns = Vec::new();
        let mut value = Vec::new();
        loop {
            match self.next()? {
                Token::Columns(found) => columns = found,
                Token::Row => {
                    for (at, column) in columns.iter().enumerate() {
                        self.value(&column.type_info, at, (&mut value, OWN_VALUE_MAX))?;
                    }
                }
                Token::Done(done) => counts.add(done),
                Token::Error(error) => error.keep(&mut kept),
                Token::Returned(_) => {}
                Token::End => return Ok((counts, kept)),
            }
        }
    }

    /// Reads the value of a column of a row; whether it is none that is NULL.
    ///
    /// # Errors
    /// `Limit` when it has more bytes than may be; those of [`Self::next`].
    pub fn value(
        &mut self,
        type_info: &TypeInfo,
        at: usize,
        (out, most): (&mut Vec<u8>, u64),
    ) -> Result<bool> {
        if self.nulls.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1) {
            out.clear();
            return Ok(false);
        }
        type_info.read_value(&mut self.wire, out, most)
    }

    /// What the answer has next. Rows must have been read.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost, `Corrupt` when the answer is none of the protocol.
    pub fn next(&mut self) -> Result<Token> {
        loop {
            if self.is_over && self.wire.is_read() {
                if self.ended_badly && !self.has_told {
                    self.has_told = true;
                    let text = "the statement ended with an error that was not told".to_owned();
                    return Ok(Token::Error(ServerError { number: 0, class: 16, text }));
                }
                return Ok(Token::End);
            }
            match self.wire.u8()? {
                token::COLUMNS => match self.columns()? {
                    Some(columns) => return Ok(Token::Columns(columns)),
                    None => continue,
                },
                token::ROW => {
                    self.nulls.clear();
                    return Ok(Token::Row);
                }
                token::SPARSE_ROW => {
                    self.nulls.resize(self.columns_count.div_ceil(8), 0);
                    self.wire.read(&mut self.nulls)?;
                    return Ok(Token::Row);
                }
                token::ERROR => {
                    self.has_told = true;
                    return self.told().map(Token::Error);
                }
                token::INFO => self.has_left_out |= self.told()?.number == LEFT_OUT,
                token::DONE => return self.done(true),
                token::DONE_PROC | token::DONE_IN_PROC => return self.done(false),
                token::RETURN_STATUS => self.wire.skip(4)?,
                token::RETURN_VALUE => return self.returned(),
                token::CHANGE => self.change()?,
                token::LOGIN_ACK => {
                    self.skip_short()?;
                    self.is_logged_in = true;
                }
                token::TABLE_NAMES | token::COLUMN_INFO | token::ORDER | token::SSPI => {
                    self.skip_short()?;
                }
                token::STATE => {
                    let length = self.wire.u32()? as usize;
                    self.wire.skip(length)?;
                }
                token::FEATURES => {
                    while self.wire.u8()? != 0xff {
                        let length = self.wire.u32()? as usize;
                        self.wire.skip(length)?;
                    }
                }
                other => return Err(wrong(&format!("a token {other:#x}"))),
            }
        }
    }

    fn skip_short(&mut self) -> Result<()> {
        let length = usize::from(self.wire.u16()?);
        self.wire.skip(length)
    }

    fn columns(&mut self) -> Result<Option<Vec<ColumnInfo>>> {
        use super::types::kind;
        let count = self.wire.u16()?;
        if count == u16::MAX {
            return Ok(None);
        }
        if count > COLUMNS_MAX {
            return Err(wrong("too many columns"));
        }
        self.columns_count = usize::from(count);
        let mut columns = Vec::new();
        for _ in 0..count {
            // The type of the user, which is none.
            self.wire.skip(4)?;
            let flags = self.wire.u16()?;
            let type_info = TypeInfo::read(&mut self.wire)?;
            if matches!(type_info.kind, kind::TEXT | kind::NTEXT | kind::IMAGE) {
                for _ in 0..self.wire.u8()? {
                    self.wire.long_text()?;
                }
            }
            let name = self.wire.short_text()?;
            columns.push(ColumnInfo { name, type_info, nullable: flags & 1 != 0 });
        }
        Ok(Some(columns))
    }

    /// An error or an information; its length is that of what is known, and perhaps of more.
    fn told(&mut self) -> Result<ServerError> {
        let length = usize::from(self.wire.u16()?);
        let mut bytes = Vec::new();
        self.wire.read_into(length, &mut bytes)?;
        let short = || wrong("an error that is cut off");
        let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let (&[_, class, low, high], rest) = rest.split_first_chunk().ok_or_else(short)?;
        let units = usize::from(u16::from_le_bytes([low, high]));
        let text = rest.get(..2 * units).ok_or_else(short)?;
        Ok(ServerError { number: i32::from_le_bytes(*number), class, text: text_of(text) })
    }

    fn done(&mut self, of_batch: bool) -> Result<Token> {
        let told = self.wire.u16()?;
        self.wire.skip(2)?;
        let count = self.wire.u64()?;
        self.is_over = told & status::MORE == 0;
        if told & (status::ERROR | status::SERVER_ERROR) != 0 {
            self.ended_badly = true;
        }
        let count = (told & status::COUNT != 0).then_some(count);
        Ok(Token::Done(Done { count, of_batch }))
    }

    fn returned(&mut self) -> Result<Token> {
        self.wire.skip(2)?;
        self.wire.short_text()?;
        // Status, the type of the user, flags.
        self.wire.skip(1 + 4 + 2)?;
        let type_info = TypeInfo::read(&mut self.wire)?;
        let mut value = Vec::new();
        let given = type_info.read_value(&mut self.wire, &mut value, OWN_VALUE_MAX)?;
        let number = <[u8; 4]>::try_from(value.as_slice()).ok().map(i32::from_le_bytes);
        Ok(Token::Returned(number.filter(|_| given)))
    }

    /// The server tells what is otherwise from now on.
    fn change(&mut self) -> Result<()> {
        let length = usize::from(self.wire.u16()?);
        let mut bytes = Vec::new();
        self.wire.read_into(length, &mut bytes)?;
        let short = || wrong("a change that is cut off");
        let (what, rest) = bytes.split_first().ok_or_else(short)?;
        let value = |rest: &[u8]| {
            let (length, rest) = rest.split_first()?;
            rest.get(..usize::from(*length)).map(<[u8]>::to_vec)
        };
        match what {
            // Bytes of a packet, as text.
            4 => {
                let (length, rest) = rest.split_first().ok_or_else(short)?;
                let text = rest.get(..2 * usize::from(*length)).ok_or_else(short)?;
                let bytes = text_of(text).parse().map_err(|_| short())?;
                self.wire.set_packet_bytes(bytes);
            }
            7 => {
                let collation = value(rest).ok_or_else(short)?;
                if let Ok(collation) = collation.try_into() {
                    self.collation = collation;
                }
            }
            // A transaction began.
            8 => {
                let number = value(rest).ok_or_else(short)?;
                let number = <[u8; 8]>::try_from(number).map_err(|_| short())?;
                self.transaction = u64::from_le_bytes(number);
            }
            // It was committed, rolled back, or ended with the call that began it.
            9 | 10 | 17 => self.transaction = 0,
            // Another server: the length, TCP, port, name.
            20 => {
                let (head, rest) = rest.split_first_chunk::<7>().ok_or_else(short)?;
                let units = usize::from(u16::from_le_bytes([head[5], head[6]]));
                let host = text_of(rest.get(..2 * units).ok_or_else(short)?);
                let port = u16::from_le_bytes([head[3], head[4]]);
                let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:\\".contains(c);
                let is_host = (1..=HOST_MAX).contains(&host.len()) && host.chars().all(is_name);
                if head[2] != 0 || port == 0 || !is_host {
                    return Err(wrong("it sends us to a host that is none"));
                }
                // Azure names the instance behind the host; the port says which it is.
                let host = host.split('\\').next().unwrap_or_default().to_owned();
                self.route = Some((host, port));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
