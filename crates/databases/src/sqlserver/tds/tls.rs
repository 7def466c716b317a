//! TLS within the protocol: its handshake goes in packets of PRELOGIN, and all that follows in TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use coload_types::{Error, Result};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::wire::{HEADER, message};

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
    let failed = |e: &dyn std::fmt::Display| {
        Error::Refused(format!(
            "TLS to SQL Server: {e} (trustServerCertificate=true takes any certificate, serverCertificate=FILE names those \
             that are trusted, encrypt=false lets rows go unencrypted)"
        ))
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(&e))?;
    let mut tls = ClientConnection::new(config, name).map_err(|e| failed(&e))?;
    let mut packets = Packets { stream, out: Vec::new(), left: 0 };
    while tls.is_handshaking() {
        while tls.wants_write() {
            tls.write_tls(&mut packets).map_err(|e| failed(&e))?;
        }
        packets.send().map_err(|e| failed(&e))?;
        if tls.is_handshaking() && tls.wants_read() {
            match tls.read_tls(&mut packets) {
                Ok(0) => {
                    return Err(Error::Unavailable(
                        "SQL Server: the connection ended in the handshake of TLS".into(),
                    ));
                }
                Ok(_) => {}
                Err(e) => return Err(failed(&e)),
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert tells the server why.
                let _ = tls.write_tls(&mut packets);
                let _ = packets.send();
                return Err(failed(&error));
            }
        }
    }
    // What ends the handshake is of it, whoever has the last word.
    while tls.wants_write() {
        tls.write_tls(&mut packets).map_err(|e| failed(&e))?;
    }
    packets.send().map_err(|e| failed(&e))?;
    Ok(StreamOwned::new(tls, packets.stream))
}

/// Bytes of the handshake in packets.
struct Packets {
    stream: TcpStream,
    out: Vec<u8>,
    /// Bytes of the packet that is being read.
    left: usize,
}

impl Packets {
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
            let mut header = [0; HEADER];
            self.stream.read_exact(&mut header)?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let is_ours = matches!(header[0], message::PRELOGIN | message::ANSWER);
            if !is_ours || length < HEADER {
                return Err(std::io::Error::other("a packet that is none of the handshake"));
            }
            self.left = length - HEADER;
        }
        let most = bytes.len().min(self.left);
        let count = self.stream.read(&mut bytes[..most])?;
        self.left -= count;
        Ok(count)
    }
}
