//! TLS within the protocol: its handshake goes in packets of PRELOGIN, and all that follows in TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use coload_types::{Error, Result};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::wire::{HEADER, lost, message, wrong};
use crate::tls::is_of_tls;

/// Bytes of a packet of the handshake.
const PACKET_BYTES: usize = 4096;

/// Encrypts a connection, of which the name is checked as the configuration says.
///
/// # Errors
/// `Unavailable` when the connection is lost, `Refused` when the certificate is not to be trusted.
pub fn encrypt(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    host: &str,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|e| untrusted(&e))?;
    let mut tls = ClientConnection::new(config, name).map_err(|e| untrusted(&e))?;
    let mut packets = Packets::new(stream);
    shake_hands(&mut tls, &mut packets)?;
    Ok(StreamOwned::new(tls, packets.stream))
}

/// Both sides do not agree on how to encrypt, or one does not trust the other. It would be so again.
fn untrusted(why: &dyn std::fmt::Display) -> Error {
    Error::Refused(format!(
        "TLS to SQL Server: {why} (trustServerCertificate=true takes any certificate, serverCertificate=FILE names those \
         that are trusted)"
    ))
}

/// Bytes did not come or go; those that came may be none of TLS.
fn broken(error: &std::io::Error) -> Error {
    match error.kind() {
        _ if is_of_tls(error) => untrusted(error),
        ErrorKind::InvalidData => wrong(&error.to_string()),
        _ => lost(error),
    }
}

/// Does the handshake over packets.
fn shake_hands<S: Read + Write>(
    tls: &mut ClientConnection,
    packets: &mut Packets<S>,
) -> Result<()> {
    while tls.is_handshaking() {
        send(tls, packets)?;
        if !tls.is_handshaking() {
            break;
        }
        if !tls.wants_read() {
            return Err(wrong("a handshake of TLS that does not go on"));
        }
        if tls.read_tls(packets).map_err(|e| broken(&e))? == 0 {
            return Err(lost(&ErrorKind::UnexpectedEof.into()));
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert tells the server why; that it does not arrive is no other error.
            let _ = send(tls, packets);
            return Err(untrusted(&error));
        }
    }
    // What ends the handshake is of it, whoever has the last word.
    send(tls, packets)
}

/// Sends what there is to be sent.
fn send<S: Write>(tls: &mut ClientConnection, packets: &mut Packets<S>) -> Result<()> {
    while tls.wants_write() {
        tls.write_tls(packets).map_err(|e| broken(&e))?;
    }
    packets.send().map_err(|e| broken(&e))
}

/// Bytes of the handshake in packets.
struct Packets<S> {
    stream: S,
    out: Vec<u8>,
    /// Bytes of the packet that is being read.
    left: usize,
}

impl<S> Packets<S> {
    fn new(stream: S) -> Self {
        Packets { stream, out: Vec::new(), left: 0 }
    }
}

impl<S: Write> Packets<S> {
    /// Sends what was written as one message.
    fn send(&mut self) -> std::io::Result<()> {
        let out = std::mem::take(&mut self.out);
        let count = out.chunks(PACKET_BYTES - HEADER).count();
        for (at, part) in out.chunks(PACKET_BYTES - HEADER).enumerate() {
            let length = ((part.len() + HEADER) as u16).to_be_bytes();
            let status = u8::from(at + 1 == count);
            let header = [message::PRELOGIN, status, length[0], length[1], 0, 0, (at + 1) as u8, 0];
            self.stream.write_all(&[&header, part].concat())?;
        }
        self.stream.flush()
    }
}

impl<S> Write for Packets<S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<S: Read> Read for Packets<S> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            let mut header = [0; HEADER];
            self.stream.read_exact(&mut header)?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let is_ours = matches!(header[0], message::PRELOGIN | message::ANSWER);
            if !is_ours || length < HEADER {
                return Err(std::io::Error::new(
                    ErrorKind::InvalidData,
                    "a packet that is none of the handshake of TLS",
                ));
            }
            self.left = length - HEADER;
        }
        let most = bytes.len().min(self.left);
        let count = self.stream.read(&mut bytes[..most])?;
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio_rustls::rustls::version::TLS12;
    use tokio_rustls::rustls::{ServerConfig, ServerConnection};

    use super::*;
    use crate::tls::{Certificates, Checked, client_config};

    /// A server in memory, which does its part of the handshake when it is written to.
    struct Memory {
        tls: ServerConnection,
        /// What came, and what goes, in packets.
        came: VecDeque<u8>,
        goes: VecDeque<u8>,
        /// Bytes after which the connection is lost.
        left: usize,
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.came.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            let bytes: Vec<u8> = std::mem::take(&mut self.came).into();
            let mut packets = Packets::new(&bytes[..]);
            while self.tls.read_tls(&mut packets).is_ok_and(|count| count > 0) {
                if self.tls.process_new_packets().is_err() {
                    break;
                }
            }
            let mut out = Packets::new(Vec::new());
            while self.tls.wants_write() {
                self.tls.write_tls(&mut out)?;
            }
            out.send()?;
            self.goes.extend(out.stream);
            Ok(())
        }
    }

    impl Read for Memory {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            let most = bytes.len().min(self.left);
            let count = self.goes.read(&mut bytes[..most])?;
            self.left -= count;
            Ok(count)
        }
    }

    /// The end of a handshake with a server that nobody signed for.
    fn shaken(checked: Checked, left: usize) -> Result<()> {
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
        let private =
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS12])
            .expect("a version")
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)
            .expect("a certificate");
        let server = ServerConnection::new(Arc::new(config)).expect("a server");
        let memory = Memory { tls: server, came: VecDeque::new(), goes: VecDeque::new(), left };
        let config = client_config(checked, &Certificates::default(), &[&TLS12])?;
        let name = ServerName::try_from("localhost").expect("a name");
        let mut tls = ClientConnection::new(config, name).expect("a client");
        shake_hands(&mut tls, &mut Packets::new(memory))
    }

    #[test]
    fn a_handshake_ends_or_says_whether_to_try_again() {
        shaken(Checked::Nothing, usize::MAX).expect("any certificate");
        let error = shaken(Checked::SignerAndName, usize::MAX).expect_err("nobody signed it");
        assert!(matches!(error, Error::Refused(_)), "{error}");
        for left in [0, 5, 8, 20, 400] {
            let error = shaken(Checked::Nothing, left).expect_err("it is lost");
            assert!(matches!(error, Error::Unavailable(_)), "{left}: {error}");
        }
    }
}
