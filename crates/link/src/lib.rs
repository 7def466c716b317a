//! The wire between two machines that share a load: frames, credits, adaptive compression.
//!
//! ```text
//!   messages -> outbox -> compress? -> frames ==Flight DoExchange, several connections==> messages
//!                  ^                                                                          |
//!                  +--------- credit, the receiver's queue, its load  <------------- done ----+
//! ```
//!
//! A message is a kind and bytes; what they mean is the business of those who use the link. It travels
//! on one connection, cut into frames with a checksum each. Messages of one connection keep their
//! order, those of several have none.
//!
//! Neither side buffers without bound: the sender's outbox has a limit in bytes, and what is on its
//! way or waits at the receiver is limited by credit, which the receiver gives back when it is done with
//! a message. An acknowledgement also tells how much waits at the receiver, so that the sender can tell
//! a slow network, which compression helps, from a slow receiver, which it harms.
//!
//! Invariant: bytes and queues only; nothing here knows of columns, tables or files.

mod client;
mod compress;
mod frame;
mod gain;
mod outbox;
mod server;
mod status;

pub use client::{Client, ClientOptions, ClientTls, LinkStats};
pub use compress::{Compression, ReceiverQueue, WireCompression, choose_compression};
pub use frame::{
    Ack, Assembler, FRAME_BYTES_MAX, Frame, HEADER_BYTES, MESSAGE_BYTES_MAX, Message, WIRE_VERSION,
    cut_message, decode_frame,
};
pub use outbox::Outbox;
pub use server::{Credit, Exchange, Handler, LargeMessages, Replies, exchange};
pub use status::{error_from_bytes, error_from_status, error_to_bytes, status_from_error};

pub use arrow_flight;
pub use tonic;

/// Descriptor of a load's first message: the `cmd` of its Flight descriptor begins with it.
pub const LOAD_COMMAND: &str = "coload.load";
/// Largest gRPC message that either end takes: a frame and its header.
pub const GRPC_BYTES_MAX: usize = FRAME_BYTES_MAX + (64 << 10);
/// How long the answer to a question whether the other end is there may take: on a slow link it waits
/// behind megabytes of data.
pub const KEEP_ALIVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// HTTP/2 window of one stream.
pub const STREAM_WINDOW_BYTES: u32 = 16 << 20;
/// HTTP/2 window of one connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// Largest HTTP/2 frame that a server takes.
pub const HTTP2_FRAME_BYTES: u32 = 1 << 20;
