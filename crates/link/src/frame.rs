//! A frame: at most a MiB of a message, with what it takes to check it.
//!
//! ```text
//!   app_metadata   magic "CF", version u8, kind u8, compression u8, more u8, 0 u16,
//!                  message bytes u32, frame bytes u32, checksum u64          24 bytes, little-endian
//!   data_body      the bytes, compressed or not
//! ```
//!
//! `frame bytes` are those before compression, `message bytes` those of the whole message. `more` is 1
//! in all frames of a message but its last. The checksum is XXH3 of the data body, seeded by the
//! checksum of the first 16 bytes of the header, so that a header cannot be put before another body.
//!
//! Bytes from the network are hostile: lengths are checked before memory is taken, and memory grows
//! with the bytes that came, not with the bytes that were announced.

use arrow_flight::{FlightData, FlightDescriptor};
use bytes::Bytes;
use coload_types::bytes::{ByteReader, checksum};
use coload_types::{Error, Result};

use crate::compress::{Compression, decompress};

/// The version of the wire that this program speaks, and the only one: those before it were never released.
pub const WIRE_VERSION: u8 = 11;
/// The version of frames.
const FRAME_VERSION: u8 = 1;
/// Most bytes of a message in one frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// Largest message: one column of one fragment, whose text has at most 1 GiB.
pub const MESSAGE_BYTES_MAX: usize = (1 << 30) + (64 << 20);

const MAGIC: [u8; 2] = *b"CF";
/// Kind of an acknowledgement.
pub(crate) const KIND_ACK: u8 = 0;
/// Kind of an error, after which the connection ends.
pub(crate) const KIND_ERROR: u8 = 1;

/// A kind and bytes. Kinds below 16 are the link's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What the message is, as the protocol above numbers it; below 16 the link's own.
    pub kind: u8,
    /// The message itself, which the link does not look into.
    pub bytes: Vec<u8>,
}

impl Message {
    /// A message of this kind.
    pub fn new(kind: u8, bytes: Vec<u8>) -> Self {
        Message { kind, bytes }
    }

    /// Number of frames that the message takes; an empty one takes a frame too.
    pub fn frames(&self) -> usize {
        self.bytes.len().div_ceil(FRAME_BYTES_MAX).max(1)
    }
}

/// A frame that was checked, its bytes as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Kind of the message.
    pub kind: u8,
    /// How `body` is compressed.
    pub compression: Compression,
    /// Whether the message goes on.
    pub more: bool,
    /// Bytes of the whole message.
    pub message_bytes: u32,
    /// Bytes of this frame before compression.
    pub frame_bytes: u32,
    /// Bytes of the frame without its header, compressed as `compression` says.
    pub body: Bytes,
}

impl Frame {
    /// A part of a message, with what compressing it gave.
    pub(crate) fn new(part: Part, (compression, packed): (Compression, Option<Vec<u8>>)) -> Self {
        Frame {
            kind: part.kind,
            compression,
            more: part.more,
            message_bytes: part.message_bytes,
            frame_bytes: part.bytes.len() as u32,
            body: packed.map_or(part.bytes, Bytes::from),
        }
    }

    /// The frame as Flight carries it.
    pub(crate) fn into_flight(self, flight_descriptor: Option<FlightDescriptor>) -> FlightData {
        FlightData {
            flight_descriptor,
            app_metadata: Bytes::copy_from_slice(&self.header()),
            data_body: self.body,
            ..FlightData::default()
        }
    }

    /// The header of this frame.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&MAGIC);
        header[2] = FRAME_VERSION;
        header[3] = self.kind;
        header[4] = self.compression.to_byte();
        header[5] = u8::from(self.more);
        header[8..12].copy_from_slice(&self.message_bytes.to_le_bytes());
        header[12..16].copy_from_slice(&self.frame_bytes.to_le_bytes());
        let sum = checksum_of(&header[..16], &self.body);
        header[16..].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> u64 {
        (HEADER_BYTES + self.body.len()) as u64
    }
}

fn checksum_of(head: &[u8], body: &[u8]) -> u64 {
    checksum(body) ^ checksum(head).rotate_left(1)
}

/// A part of a message: what is in one frame of it.
#[derive(Debug, Clone)]
pub struct Part {
    kind: u8,
    more: bool,
    message_bytes: u32,
    /// The bytes, which the message's parts share with it.
    pub bytes: Bytes,
}

/// Cuts a message into what its frames have. Nothing is copied.
pub fn cut_message(message: Message) -> impl Iterator<Item = Part> {
    let (kind, count) = (message.kind, message.frames());
    let all = Bytes::from(message.bytes);
    (0..count).map(move |i| {
        let start = i * FRAME_BYTES_MAX;
        let end = (start + FRAME_BYTES_MAX).min(all.len());
        let message_bytes = all.len() as u32;
        Part { kind, more: i + 1 < count, message_bytes, bytes: all.slice(start..end) }
    })
}

/// Checks a frame.
///
/// # Errors
/// `Corrupt` when header and body do not agree, `Refused` for another version.
pub fn decode_frame(header: &[u8], body: Bytes) -> Result<Frame> {
    let mut reader = ByteReader::new(header);
    if header.len() != HEADER_BYTES || reader.array()? != MAGIC {
        return Err(Error::Corrupt("a frame without its header".into()));
    }
    let version = reader.u8()?;
    if version != FRAME_VERSION {
        return Err(Error::Refused(format!(
            "a frame of version {version}; this program knows {FRAME_VERSION} (update the older side)"
        )));
    }
    let kind = reader.u8()?;
    let compression = Compression::from_byte(reader.u8()?)?;
    let more = reader.u8()?;
    let reserved = reader.u16()?;
    let (message_bytes, frame_bytes, sum) = (reader.u32()?, reader.u32()?, reader.u64()?);
    if checksum_of(&header[..16], &body) != sum {
        return Err(Error::Corrupt(format!("a frame of kind {kind} has another checksum")));
    }
    if more > 1
        || reserved != 0
        || frame_bytes as usize > FRAME_BYTES_MAX
        || body.len() > FRAME_BYTES_MAX
        || message_bytes as usize > MESSAGE_BYTES_MAX
        || compression == Compression::None && body.len() != frame_bytes as usize
    {
        return Err(Error::Corrupt(format!("a frame of kind {kind} whose lengths do not agree")));
    }
    Ok(Frame { kind, compression, more: more == 1, message_bytes, frame_bytes, body })
}

/// Puts the frames of one connection together to messages.
#[derive(Debug, Default)]
pub struct Assembler {
    started: Option<(u8, u32)>,
    bytes: Vec<u8>,
    wire_bytes: u64,
}

impl Assembler {
    /// Takes a frame; gives the message that it ends, and its bytes on the wire.
    ///
    /// # Errors
    /// `Corrupt` when the frame does not fit the ones before, or its bytes do not decompress.
    pub fn push(&mut self, frame: Frame) -> Result<Option<(Message, u64)>> {
        let (kind, total) = *self.started.get_or_insert((frame.kind, frame.message_bytes));
        if kind != frame.kind || total != frame.message_bytes {
            return Err(Error::Corrupt("a message within another".into()));
        }
        self.wire_bytes += frame.wire_bytes();
        if self.bytes.len() + frame.frame_bytes as usize > total as usize {
            return Err(Error::Corrupt("a message longer than it says".into()));
        }
        if self.bytes.is_empty() && frame.more {
            // Room that is not written takes no memory. To grow step by step takes that of both at each step.
            self.bytes
                .try_reserve_exact(total as usize)
                .map_err(|_| Error::Limit(format!("no room for a message of {total} bytes")))?;
        }
        decompress(frame.compression, &frame.body, frame.frame_bytes as usize, &mut self.bytes)?;
        if frame.more {
            return Ok(None);
        }
        if self.bytes.len() != total as usize {
            return Err(Error::Corrupt("a message shorter than it says".into()));
        }
        self.started = None;
        let wire_bytes = std::mem::take(&mut self.wire_bytes);
        Ok(Some((Message { kind, bytes: std::mem::take(&mut self.bytes) }, wire_bytes)))
    }
}

/// What a receiver tells a sender after each few messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ack {
    /// Wire bytes the receiver is done with, since the connection began.
    pub done_bytes: u64,
    /// Wire bytes that may be sent in all, since the connection began.
    pub credit_bytes: u64,
    /// Bytes that wait at the receiver, of all connections.
    pub waiting_bytes: u64,
    /// What the application has to say of its load.
    pub load: Vec<u8>,
}

impl Ack {
    /// The acknowledgement as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.load.len());
        for number in [self.done_bytes, self.credit_bytes, self.waiting_bytes] {
            out.extend(number.to_le_bytes());
        }
        out.extend(&self.load);
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when bytes are missing.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        Ok(Ack {
            done_bytes: reader.u64()?,
            credit_bytes: reader.u64()?,
            waiting_bytes: reader.u64()?,
            load: reader.take(reader.remaining())?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn frames(message: &Message, compression: Compression) -> Vec<Frame> {
        let compress = |raw: &[u8]| crate::compress::compress(compression, raw);
        let frame = |part: Part| {
            let packed = compress(&part.bytes);
            Frame::new(part, packed)
        };
        cut_message(message.clone()).map(frame).collect()
    }

    #[test]
    fn a_message_comes_back_from_its_frames() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
            for length in [0, 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX * 2 + 7] {
                let message = Message::new(20, (0..length).map(|i| (i / 9) as u8).collect());
                let mut assembler = Assembler::default();
                let mut came = None;
                for frame in frames(&message, compression) {
                    let again = decode_frame(&frame.header(), frame.body.clone()).unwrap();
                    assert_eq!((again.more, &again.body), (frame.more, &frame.body));
                    came = assembler.push(again).unwrap();
                }
                assert_eq!(came.unwrap().0, message);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let message = Message::new(20, b"some bytes of a page".to_vec());
        let frame = &frames(&message, Compression::None)[0];
        let header = frame.header();
        for bit in 0..HEADER_BYTES * 8 {
            let mut header = header;
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_frame(&header, frame.body.clone()).is_err(), "bit {bit}");
        }
        for bit in 0..message.bytes.len() * 8 {
            let mut body = message.bytes.clone();
            body[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_frame(&header, Bytes::from(body)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn frames_of_two_messages_do_not_mix() {
        let long = Message::new(20, vec![1; FRAME_BYTES_MAX + 1]);
        let other = Message::new(21, vec![2; 5]);
        let mut assembler = Assembler::default();
        assembler.push(frames(&long, Compression::None).remove(0)).unwrap();
        assert!(assembler.push(frames(&other, Compression::None).remove(0)).is_err());
        let mut assembler = Assembler::default();
        let first = frames(&long, Compression::None).remove(0);
        assembler.push(first.clone()).unwrap();
        assert!(assembler.push(first).is_err(), "a frame that came twice");
    }

    proptest! {
        #[test]
        fn hostile_frames_are_refused_or_harmless(
            header in proptest::collection::vec(any::<u8>(), 0..40),
            body in proptest::collection::vec(any::<u8>(), 0..100),
            compression in 0u8..4,
            frame_bytes in 0u32..2_000_000,
        ) {
            prop_assert!(decode_frame(&header, Bytes::from(body.clone())).is_err());
            if let Ok(compression) = Compression::from_byte(compression) {
                // A frame whose sender made the checksum fit.
                let frame = Frame {
                    kind: 20, compression, more: false, message_bytes: frame_bytes,
                    frame_bytes, body: Bytes::from(body),
                };
                if let Ok(frame) = decode_frame(&frame.header(), frame.body.clone()) {
                    let _ = Assembler::default().push(frame);
                }
            }
        }
    }
}
