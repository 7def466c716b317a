//! The beginning of a connection: what both sides can, TLS, and who we are.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coload_types::{Error, Result};
use tokio_rustls::rustls::ClientConfig;

use super::request::put_utf16;
use super::tls;
use super::wire::{Stream, Wire, message, wrong};

/// Version of the protocol: that of SQL Server 2012 and all that followed.
const VERSION: u32 = 0x7400_0004;
/// Bytes of a packet, as they are asked for. Records of TLS have 16 KiB at most.
const PACKET_BYTES: usize = 16_000;
/// Bytes of packets until the server has said how many it takes.
const PACKET_FIRST: usize = 4096;
/// Most bytes of what a server says of itself before the login.
const PRELOGIN_MAX: usize = 4096;

/// What is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Everything.
    All,
    /// The login, and everything if the server asks for it.
    Login,
    /// Nothing, not even the password.
    Nothing,
}

/// Numbers by which both sides tell it.
mod encrypts {
    pub const LOGIN: u8 = 0;
    pub const ALL: u8 = 1;
    pub const CANNOT: u8 = 2;
    pub const ALL_REQUIRED: u8 = 3;
}

/// Who we are, and to whom.
#[derive(Clone)]
pub struct Login {
    /// Host, as a name or an address.
    pub host: String,
    /// Port of TCP.
    pub port: u16,
    /// Name that the certificate must have; the host's if `None`.
    pub certificate_name: Option<String>,
    /// What is encrypted.
    pub encryption: Encryption,
    /// How certificates are checked.
    pub tls: Arc<ClientConfig>,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// Database; the user's own if empty.
    pub database: String,
    /// Name of the program.
    pub program: String,
    /// Whether only reading is meant, by which a replica may answer.
    pub reads_only: bool,
    /// How long to wait for a connection.
    pub patience: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Login {
    /// Connects to a host, and sends who we are. The answer is not read.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it does not encrypt, or is not to be trusted.
    pub fn open(&self, host: &str, port: u16) -> Result<Wire> {
        let stream = self.connect(host, port)?;
        let mut wire = Wire::new(Stream::Plain(stream), PACKET_FIRST);
        wire.begin(message::PRELOGIN);
        wire.put(&prelogin(match self.encryption {
            Encryption::All => encrypts::ALL,
            Encryption::Login => encrypts::LOGIN,
            Encryption::Nothing => encrypts::CANNOT,
        }))?;
        wire.end()?;
        let answered = encryption_of(&wire.read_rest(PRELOGIN_MAX)?)?;
        let Stream::Plain(stream) = wire.into_stream()? else {
            return Err(wrong("TLS before its time"));
        };
        let refuse =
            |text: &str| Err(Error::Refused(format!("SQL Server at {host}:{port} {text}")));
        let all = match (self.encryption, answered) {
            (Encryption::All | Encryption::Login, encrypts::ALL | encrypts::ALL_REQUIRED) => {
                Some(true)
            }
            // Anybody between us can say so for the server, and would read the password.
            (Encryption::All | Encryption::Login, encrypts::CANNOT) => {
                return refuse(
                    "does not encrypt connections (encrypt=disable sends the password and the rows as they are, for all \
                     who listen)",
                );
            }
            (Encryption::All, _) => {
                return refuse("encrypts the login only (encrypt=false lets rows go unencrypted)");
            }
            (Encryption::Login, encrypts::LOGIN) => Some(false),
            (Encryption::Nothing, encrypts::CANNOT | encrypts::LOGIN) => None,
            (Encryption::Nothing, _) => {
                return refuse("takes encrypted connections only (encrypt=true)");
            }
            (Encryption::Login, _) => return refuse("asks for an encryption that nobody knows"),
        };
        let name = self.certificate_name.as_deref().unwrap_or(host);
        let login = self.message(host)?;
        match all {
            None => {
                let mut wire = Wire::new(Stream::Plain(stream), PACKET_FIRST);
                send_login(&mut wire, &login)?;
                Ok(wire)
            }
            Some(true) => {
                let tls = tls::encrypt(stream, Arc::clone(&self.tls), name)?;
                let mut wire = Wire::new(Stream::Tls(Box::new(tls)), PACKET_FIRST);
                send_login(&mut wire, &login)?;
                Ok(wire)
            }
            // Only the login is encrypted: what follows goes over the connection as it is.
            Some(false) => {
                let tls = tls::encrypt(stream, Arc::clone(&self.tls), name)?;
                let mut wire = Wire::new(Stream::Tls(Box::new(tls)), PACKET_FIRST);
                send_login(&mut wire, &login)?;
                let Stream::Tls(tls) = wire.into_stream()? else {
                    return Err(wrong("TLS that is none"));
                };
                let mut wire = Wire::new(Stream::Plain(tls.sock), PACKET_FIRST);
                wire.await_answer();
                Ok(wire)
            }
        }
    }

    fn connect(&self, host: &str, port: u16) -> Result<TcpStream> {
        let failed = |e: &dyn std::fmt::Display| {
            Error::Unavailable(format!("cannot connect to SQL Server at {host}:{port}: {e}"))
        };
        let began = Instant::now();
        let mut last = failed(&"the host has no address");
        for address in (host, port).to_socket_addrs().map_err(|e| failed(&e))? {
            let left = self.patience.saturating_sub(began.elapsed()).max(Duration::from_secs(1));
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(|e| failed(&e))?;
                    // A server that is there and says nothing is none; statements may last.
                    stream.set_read_timeout(Some(self.patience)).map_err(|e| failed(&e))?;
                    return Ok(stream);
                }
                Err(error) => last = failed(&error),
            }
        }
        Err(last)
    }

    /// LOGIN7: numbers, then where each text is and how many units it has, then the texts.
    fn message(&self, host: &str) -> Result<Vec<u8>> {
        const FIXED: usize = 94;
        /// Language of a database; the initial database must be there, and its name is told.
        const FLAGS: [u8; 4] = [0xe0, 0x03, 0, 0];
        let mut out = vec![0; 4];
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(PACKET_BYTES as u32).to_le_bytes());
        // Version of the program.
        out.extend_from_slice(&1_u32.to_le_bytes());
        out.extend_from_slice(&std::process::id().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut flags = FLAGS;
        flags[2] = if self.reads_only { 0x20 } else { 0 };
        out.extend_from_slice(&flags);
        // Time zone, and language.
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&0x409_u32.to_le_bytes());
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let texts = [
            machine.trim(),
            &self.user,
            &self.password,
            &self.program,
            host,
            "",
            "coload",
            "",
            &self.database,
        ];
        let mut data: Vec<u8> = Vec::new();
        for (number, text) in texts.into_iter().enumerate() {
            let at = data.len();
            let units = put_utf16(text.as_bytes(), &mut data);
            if units > 128 {
                return Err(Error::Invalid(
                    "a user, password, host or database of SQL Server has 128 characters at most"
                        .into(),
                ));
            }
            if number == 2 {
                // The password is hidden from a glance, and from nobody else.
                data[at..].iter_mut().for_each(|byte| *byte = byte.rotate_left(4) ^ 0xa5);
            }
            out.extend_from_slice(&((FIXED + at) as u16).to_le_bytes());
            out.extend_from_slice(&(units as u16).to_le_bytes());
        }
        let end = ((FIXED + data.len()) as u16).to_le_bytes();
        // The address of the machine, which nobody needs.
        out.extend_from_slice(&[0; 6]);
        // Windows' own login, a file of a database, a new password: none.
        for _ in 0..3 {
            out.extend_from_slice(&[end[0], end[1], 0, 0]);
        }
        out.extend_from_slice(&[0; 4]);
        debug_assert_eq!(out.len(), FIXED);
        out.extend_from_slice(&data);
        let length = (out.len() as u32).to_le_bytes();
        out[..4].copy_from_slice(&length);
        Ok(out)
    }
}

fn send_login(wire: &mut Wire, login: &[u8]) -> Result<()> {
    wire.begin(message::LOGIN);
    wire.put(login)?;
    wire.end()
}

/// Options, of which each has its number, and where its bytes are.
fn prelogin(encryption: u8) -> Vec<u8> {
    let options: [(u8, &[u8]); 5] = [
        (0, &[1, 0, 0, 0, 0, 0]),
        (1, &[encryption]),
        // The default instance: ours is that of the port.
        (2, &[0]),
        (3, &[0; 4]),
        // One request at a time.
        (4, &[0]),
    ];
    let mut at = 5 * options.len() + 1;
    let (mut out, mut data) = (Vec::new(), Vec::new());
    for (number, bytes) in options {
        out.push(number);
        out.extend_from_slice(&(at as u16).to_be_bytes());
        out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        at += bytes.len();
        data.extend_from_slice(bytes);
    }
    out.push(0xff);
    out.extend(data);
    out
}

/// What a server says it encrypts.
fn encryption_of(answer: &[u8]) -> Result<u8> {
    let mut at = 0;
    loop {
        let option = answer.get(at..at + 5).filter(|option| option[0] != 0xff);
        let Some(option) = option else { return Err(wrong("it does not say what it encrypts")) };
        if option[0] == 1 {
            let place = usize::from(u16::from_be_bytes([option[1], option[2]]));
            return answer.get(place).copied().ok_or_else(|| wrong("an option beyond its end"));
        }
        at += 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_encrypts_is_read_from_its_options() {
        assert_eq!(encryption_of(&prelogin(3)).expect("an option"), 3);
        assert_eq!(encryption_of(&prelogin(0)).expect("an option"), 0);
        for broken in [&[][..], &[1], &[0xff], &[1, 0, 9, 0, 1], &[0, 0, 0, 0, 0, 0xff]] {
            assert!(encryption_of(broken).is_err(), "{broken:?}");
        }
    }
}
