//! What the connections of a client share, and the thread and the task of one.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
    mpsc::Sender,
};
use std::time::Instant;

use arrow_flight::{FlightData, FlightDescriptor};
use coload_threads::lock;
use coload_types::Result;
use futures::StreamExt;
use tonic::Streaming;

use super::gate::{CreditGate, FrameIs};
use super::rate::{Rate, Window};
use super::{ClientOptions, LinkStats};
use crate::LOAD_COMMAND;
use crate::compress::{Compression, ReceiverQueue, WireCompression, choose_compression, compress};
use crate::frame::{
    Ack, Assembler, Frame, HEADER_BYTES, KIND_ACK, KIND_ERROR, Message, Part, cut_message,
    decode_frame,
};
use crate::gain::{Gains, thread_cpu_ns};
use crate::outbox::Outbox;
use crate::status::{error_from_bytes, error_from_status};

/// What the connections of a client share.
#[derive(Debug)]
pub struct Shared {
    pub outbox: Outbox,
    compression: WireCompression,
    connections: AtomicU64,
    frames: AtomicU64,
    frames_compressed: AtomicU64,
    message_bytes: AtomicU64,
    wire_bytes: AtomicU64,
    done_bytes: AtomicU64,
    receiver_waiting_bytes: AtomicU64,
    /// CPU nanoseconds of the threads that make frames.
    sending_ns: AtomicU64,
    /// CPU nanoseconds of the network's thread.
    network_ns: Arc<AtomicU64>,
    load: Mutex<Vec<u8>>,
    rate: Mutex<Rate>,
    gains: Mutex<Gains>,
}

impl Shared {
    /// Nothing sent yet; `network_ns` is kept by the network's thread.
    pub fn new(options: &ClientOptions, network_ns: Arc<AtomicU64>) -> Self {
        Shared {
            outbox: Outbox::new(options.outbox_bytes),
            compression: options.compression,
            connections: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            frames_compressed: AtomicU64::new(0),
            message_bytes: AtomicU64::new(0),
            wire_bytes: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            receiver_waiting_bytes: AtomicU64::new(0),
            sending_ns: AtomicU64::new(0),
            network_ns,
            load: Mutex::default(),
            rate: Mutex::default(),
            gains: Mutex::default(),
        }
    }

    /// What went over the link so far.
    pub fn stats(&self) -> LinkStats {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        LinkStats {
            frames: get(&self.frames),
            frames_compressed: get(&self.frames_compressed),
            message_bytes: get(&self.message_bytes),
            wire_bytes: get(&self.wire_bytes),
            done_bytes: get(&self.done_bytes),
            receiver_waiting_bytes: get(&self.receiver_waiting_bytes),
            bytes_per_second: lock(&self.rate).bytes_per_second,
            cpu_ns: get(&self.sending_ns) + get(&self.network_ns),
        }
    }

    /// What the receiver said last of its load.
    pub fn receiver_load(&self) -> Vec<u8> {
        lock(&self.load).clone()
    }

    fn take_ack(&self, ack: &Ack, gate: &CreditGate) {
        let connections = self.connections.load(Ordering::Relaxed).max(1) as f64;
        let rate = lock(&self.rate).bytes_per_second.map(|rate| rate / connections);
        let new = gate.take(ack, rate);
        let done = self.done_bytes.fetch_add(new, Ordering::Relaxed) + new;
        self.receiver_waiting_bytes.store(ack.waiting_bytes, Ordering::Relaxed);
        lock(&self.load).clone_from(&ack.load);
        let under_way = self.wire_bytes.load(Ordering::Relaxed).saturating_sub(done);
        let network = self.outbox.waiting() > 0 && ack.waiting_bytes * 2 <= under_way;
        let frames = self.frames.load(Ordering::Relaxed);
        let compressed = self.frames_compressed.load(Ordering::Relaxed);
        lock(&self.rate).observe(Window { at: Instant::now(), done, frames, compressed }, network);
    }

    /// The compression of the next frame: by the queues, and by what it gains.
    fn wanted_compression(&self) -> Compression {
        let receiver_waiting = self.receiver_waiting_bytes.load(Ordering::Relaxed);
        let under_way = self.wire_bytes.load(Ordering::Relaxed);
        let under_way = under_way.saturating_sub(self.done_bytes.load(Ordering::Relaxed));
        let receiver = match receiver_waiting * 2 > under_way {
            true => ReceiverQueue::Long,
            false => ReceiverQueue::Short,
        };
        let wanted = choose_compression(self.compression, self.outbox.waiting(), receiver);
        if self.compression != WireCompression::Adaptive || wanted == Compression::None {
            return wanted;
        }
        let rate = lock(&self.rate).raw_rate();
        rate.map_or(Compression::None, |rate| lock(&self.gains).best(wanted, rate))
    }

    fn make_frame(&self, part: Part) -> Frame {
        let wanted = self.wanted_compression();
        let started = thread_cpu_ns();
        let bytes_before = part.bytes.len();
        let packed = compress(wanted, &part.bytes);
        if wanted != Compression::None {
            let bytes = packed.1.as_ref().map_or(bytes_before, Vec::len);
            lock(&self.gains).note(wanted, bytes_before, bytes, thread_cpu_ns() - started);
        }
        let frame = Frame::new(part, packed);
        let compressed = frame.compression != Compression::None;
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.frames_compressed.fetch_add(u64::from(compressed), Ordering::Relaxed);
        self.message_bytes.fetch_add(bytes_before as u64, Ordering::Relaxed);
        self.wire_bytes.fetch_add(frame.wire_bytes(), Ordering::Relaxed);
        frame
    }
}

/// The thread of a connection: messages to frames, compressed as the queues say.
pub fn send_all(
    first: Message,
    shared: &Shared,
    gate: &CreditGate,
    frames: &tokio::sync::mpsc::Sender<FlightData>,
) {
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut descriptor = Some(FlightDescriptor::new_cmd(LOAD_COMMAND));
    let (mut sent, mut spent) = (0, 0);
    let mut next = Some(first);
    while let Some(message) = next {
        let mut place = FrameIs::First;
        for part in cut_message(message) {
            if !gate.wait(sent + (HEADER_BYTES + part.bytes.len()) as u64, place) {
                return;
            }
            place = FrameIs::Later;
            let frame = shared.make_frame(part);
            sent += frame.wire_bytes();
            if frames.blocking_send(frame.into_flight(descriptor.take())).is_err() {
                return;
            }
        }
        let now = thread_cpu_ns();
        shared.sending_ns.fetch_add(now - spent, Ordering::Relaxed);
        spent = now;
        next = shared.outbox.pop();
    }
}

/// Reads what the other end says until it closes the stream.
///
/// # Errors
/// What the other end says is wrong, or what is wrong with the connection.
pub async fn read_answers(
    mut answers: Streaming<FlightData>,
    shared: &Shared,
    gate: &CreditGate,
    inbox: &Sender<Result<Message>>,
    target: &str,
) -> Result<()> {
    let mut assembler = Assembler::default();
    while let Some(data) = answers.next().await {
        let data = data.map_err(|s| error_from_status(target, &s))?;
        let frame = decode_frame(&data.app_metadata, data.data_body)?;
        let Some((message, _)) = assembler.push(frame)? else { continue };
        match message.kind {
            KIND_ACK => shared.take_ack(&Ack::decode(&message.bytes)?, gate),
            KIND_ERROR => return Err(error_from_bytes(&message.bytes)),
            // The other end of the inbox goes last.
            _ => drop(inbox.send(Ok(message))),
        }
    }
    Ok(())
}
