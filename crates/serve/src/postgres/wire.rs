//! A connection as messages: what comes is bounded before it is kept, what goes is gathered until it is worth a packet.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::fault::{Fault, code};
use super::message::Message;
use super::reply::Replies;
use crate::flight::Room;

/// Bytes that are gathered before they are sent.
const SEND_BYTES: usize = 64 << 10;
/// Bytes that a client sends within the stall time, or the rest of a message.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a message before the client has shown who it is.
const MESSAGE_OF_STRANGER_MAX: usize = 4 << 10;
/// Messages up to this size need no room.
const FREE_BYTES: usize = 64 << 10;

/// A connection's bytes, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What bounds the messages of a client that has logged in.
#[derive(Debug, Clone)]
pub(super) struct WireLimits {
    pub message_bytes_max: usize,
    /// Room that all messages under way share.
    pub room: Room,
    /// How long a client may stall within a message.
    pub stall_time: Duration,
}

/// Both directions of a connection.
pub(super) struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    pub replies: Replies,
    limits: WireLimits,
    is_known: bool,
}

/// Why there is no message.
pub(super) enum Ended {
    /// The client has gone, or the connection broke.
    Gone,
    /// What came was none of the protocol's.
    Told(Fault),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Ended::Gone
    }
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Ended::Told(fault)
    }
}

impl Wire {
    pub fn new(stream: Box<dyn Stream>, limits: WireLimits) -> Self {
        let (stream, replies) = (BufReader::new(stream), Replies::default());
        Wire { stream, replies, limits, is_known: false }
    }

    /// Takes larger messages from now on.
    pub fn is_known(&mut self) {
        self.is_known = true;
    }

    /// The next message, when all that was to be said is sent.
    pub async fn read(&mut self) -> Result<Message, Ended> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).await?;
        let [kind, length @ ..] = head;
        let length = i32::from_be_bytes(length);
        let max = match self.is_known {
            true => self.limits.message_bytes_max.min(self.limits.room.bytes_max()),
            false => MESSAGE_OF_STRANGER_MAX,
        };
        let bytes = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
        let bytes = bytes.filter(|bytes| *bytes <= max).ok_or_else(|| {
            let text =
                format!("a message of {length} bytes, over {max} (--max-message of the server)");
            Fault::fatal(code::PROTOCOL, text)
        })?;
        Ok(Message::read(kind, self.body(bytes).await?)?)
    }

    /// A body as it comes; it takes memory only as its bytes are there.
    async fn body(&mut self, bytes: usize) -> Result<Bytes, Ended> {
        let _room = match bytes > FREE_BYTES {
            true => Some(self.limits.room.take(bytes).await),
            false => None,
        };
        let mut body = BytesMut::new();
        while body.len() < bytes {
            let start = body.len();
            body.resize(bytes.min(start + PIECE_BYTES), 0);
            let piece = self.stream.read_exact(&mut body[start..]);
            timeout(self.limits.stall_time, piece).await.map_err(|_| self.stalled())??;
        }
        Ok(body.freeze())
    }

    fn stalled(&self) -> Fault {
        let seconds = self.limits.stall_time.as_secs();
        let text = format!(
            "the client sent nothing for {seconds} s within a message (--stall-time of the server)"
        );
        Fault::fatal(code::PROTOCOL, text)
    }

    /// Waits until the client has gone; for ever while it has sent something that was not read.
    pub async fn gone(&mut self) {
        match self.stream.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => futures::future::pending().await,
            _ => {}
        }
    }

    /// Sends what was gathered, if it is worth it.
    pub async fn send_some(&mut self) -> io::Result<()> {
        match self.replies.bytes.len() >= SEND_BYTES {
            true => self.send().await,
            false => Ok(()),
        }
    }

    /// Sends all.
    pub async fn send(&mut self) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(&self.replies.bytes).await?;
        self.replies.bytes.clear();
        stream.flush().await
    }

    /// Sends all and ends the connection.
    pub async fn close(mut self) {
        let _ = self.send().await;
        let _ = self.stream.get_mut().shutdown().await;
    }
}
