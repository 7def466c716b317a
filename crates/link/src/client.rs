//! The sending end: several connections that empty one outbox.
//!
//! Each connection is a Flight `DoExchange` with a thread that compresses and a task that reads what
//! the receiver says. The first thing that goes wrong on any of them ends all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightData, FlightDescriptor};
use bytes::Bytes;
use coload_format::{Error, Result};
use futures::StreamExt;
use tokio::runtime::Runtime;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Streaming};

use crate::compress::{Compression, ReceiverQueue, WireCompression, choose_compression, compress};
use crate::frame::{
    Ack, Assembler, Frame, HEADER_BYTES, KIND_ACK, KIND_ERROR, Message, cut_message, decode_frame,
};
use crate::gain::{Gains, thread_cpu_ns};
use crate::outbox::Outbox;
use crate::server::CREDIT_FIRST_BYTES;
use crate::status::{error_from_bytes, error_from_status};
use crate::{
    CONNECTION_WINDOW_BYTES, GRPC_BYTES_MAX, KEEP_ALIVE_TIMEOUT, LOAD_COMMAND, STREAM_WINDOW_BYTES,
};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that a connection may have ready: small ones then go out together.
const FRAMES_READY: usize = 4;
/// A connection that says nothing for so long is asked, and given up when it does not answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Time over which the rate of the link is averaged.
const RATE_WINDOW: Duration = Duration::from_millis(200);
/// Time after which the rate is measured again without compression.
const RAW_INTERVAL: Duration = Duration::from_secs(10);

/// TLS of a client; all in PEM form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// Root of the server's certificate; without it those of the system.
    pub ca: Option<Vec<u8>>,
    /// The client's own certificate and key.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// Where to, and how.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// `host:port`.
    pub address: String,
    /// Bytes that may wait to be sent.
    pub outbox_bytes: usize,
    /// What is compressed.
    pub compression: WireCompression,
    /// Value of the header `authorization`.
    pub authorization: Option<String>,
    /// TLS; without it the connection is open to read.
    pub tls: Option<ClientTls>,
}

/// What went over a link.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkStats {
    /// Frames sent.
    pub frames: u64,
    /// Frames sent compressed.
    pub frames_compressed: u64,
    /// Bytes of messages.
    pub message_bytes: u64,
    /// Bytes of frames, with headers, after compression.
    pub wire_bytes: u64,
    /// Bytes the receiver is done with.
    pub done_bytes: u64,
    /// Bytes that wait at the receiver, as it said last.
    pub receiver_waiting_bytes: u64,
    /// Bytes a second while there was always something on its way and the receiver kept up; `None`
    /// until that was the case for some time.
    pub bytes_per_second: Option<f64>,
}

/// The sending end of a link.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    shared: Arc<Shared>,
    inbox: Mutex<Receiver<Result<Message>>>,
    inbox_sender: Sender<Result<Message>>,
    threads: Vec<std::thread::JoinHandle<()>>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    compression: WireCompression,
    frames: AtomicU64,
    frames_compressed: AtomicU64,
    message_bytes: AtomicU64,
    wire_bytes: AtomicU64,
    done_bytes: AtomicU64,
    receiver_waiting_bytes: AtomicU64,
    load: Mutex<Vec<u8>>,
    rate: Mutex<Rate>,
    gains: Mutex<Gains>,
}

/// Measures the link while it is never idle.
#[derive(Debug, Default)]
struct Rate {
    since: Option<Window>,
    bytes_per_second: Option<f64>,
    /// When the last window without compression ended.
    raw_at: Option<Instant>,
}

/// The beginning of a time over which the rate is measured.
#[derive(Debug, Clone, Copy)]
struct Window {
    at: Instant,
    done: u64,
    frames: u64,
    compressed: u64,
}

/// What one connection may send.
#[derive(Debug)]
struct CreditGate {
    state: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug)]
struct Gate {
    credit_bytes: u64,
    done_bytes: u64,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CreditGate {
    /// Waits until `sent` bytes may be sent in all; whether they may.
    fn wait(&self, sent: u64) -> bool {
        let mut state = lock(&self.state);
        while state.credit_bytes < sent && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Takes an acknowledgement; says how many bytes are newly done.
    fn take(&self, ack: &Ack) -> u64 {
        let mut state = lock(&self.state);
        let new = ack.done_bytes.saturating_sub(state.done_bytes);
        state.done_bytes = state.done_bytes.max(ack.done_bytes);
        // Credit may also shrink: what was sent on it stays sent.
        state.credit_bytes = ack.credit_bytes;
        drop(state);
        self.changed.notify_all();
        new
    }
}

impl Client {
    /// A client without connections.
    ///
    /// # Errors
    /// `Unavailable` when its threads cannot be started.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("coload-link")
            .enable_all()
            .build()
            .map_err(|e| Error::Unavailable(format!("cannot start the link: {e}")))?;
        let shared = Shared {
            outbox: Outbox::new(options.outbox_bytes),
            compression: options.compression,
            frames: AtomicU64::new(0),
            frames_compressed: AtomicU64::new(0),
            message_bytes: AtomicU64::new(0),
            wire_bytes: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            receiver_waiting_bytes: AtomicU64::new(0),
            load: Mutex::default(),
            rate: Mutex::default(),
            gains: Mutex::default(),
        };
        let (inbox_sender, inbox) = channel();
        Ok(Client {
            options,
            shared: Arc::new(shared),
            inbox: Mutex::new(inbox),
            inbox_sender,
            threads: Vec::new(),
            runtime: Some(runtime),
        })
    }

    /// Makes one more connection; `first` goes over it before all others.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached, `Refused` when it takes no loads.
    pub fn open(&mut self, first: Message) -> Result<()> {
        let Some(runtime) = &self.runtime else { return Err(ended()) };
        let (sender, receiver) = tokio::sync::mpsc::channel::<FlightData>(FRAMES_READY);
        let number = self.threads.len();
        let gate = Arc::new(CreditGate {
            state: Mutex::new(Gate {
                credit_bytes: CREDIT_FIRST_BYTES,
                done_bytes: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let target = self.options.address.clone();
        let (address, authorization) = (target.clone(), self.options.authorization.clone());
        let tls = self.options.tls.clone();
        let thread = {
            let (shared, gate) = (Arc::clone(&self.shared), Arc::clone(&gate));
            let builder = std::thread::Builder::new().name(format!("coload-send-{number}"));
            builder
                .spawn(move || send_all(first, &shared, &gate, &sender))
                .map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?
        };
        self.threads.push(thread);
        let answers = runtime.block_on(async {
            let channel = connect(&address, tls.as_ref()).await?;
            exchange(channel, receiver, authorization.as_deref(), &address).await
        });
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                gate.close();
                self.shared.outbox.close(error.clone());
                return Err(error);
            }
        };
        let (shared, inbox) = (Arc::clone(&self.shared), self.inbox_sender.clone());
        runtime.spawn(async move {
            let error = match read_answers(answers, &shared, &gate, &inbox, &target).await {
                Ok(()) => Error::Unavailable(format!("{target} closed the connection")),
                Err(error) => error,
            };
            shared.outbox.close(error.clone());
            gate.close();
            let _ = inbox.send(Err(error));
        });
        Ok(())
    }

    /// Puts a message into the outbox; waits while it is full.
    ///
    /// # Errors
    /// What went wrong on a connection.
    pub fn push(&self, message: Message) -> Result<()> {
        self.shared.outbox.push(message)
    }

    /// The next message from the other end; `None` when none came in time.
    ///
    /// # Errors
    /// What went wrong on a connection, or what the other end says is wrong.
    pub fn receive(&self, timeout: Duration) -> Result<Option<Message>> {
        match lock(&self.inbox).recv_timeout(timeout) {
            Ok(message) => message.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }

    /// Frames that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.shared.outbox.waiting()
    }

    /// What went over the link so far.
    pub fn stats(&self) -> LinkStats {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let shared = &self.shared;
        LinkStats {
            frames: get(&shared.frames),
            frames_compressed: get(&shared.frames_compressed),
            message_bytes: get(&shared.message_bytes),
            wire_bytes: get(&shared.wire_bytes),
            done_bytes: get(&shared.done_bytes),
            receiver_waiting_bytes: get(&shared.receiver_waiting_bytes),
            bytes_per_second: lock(&shared.rate).bytes_per_second,
        }
    }

    /// What the receiver said last of its load.
    pub fn receiver_load(&self) -> Vec<u8> {
        lock(&self.shared.load).clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.outbox.close(ended());
        if let Some(runtime) = self.runtime.take() {
            // Ends the tasks, and with them the channels that the threads wait for.
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

fn ended() -> Error {
    Error::Unavailable("the link has ended".into())
}

async fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Channel> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|e| Error::Invalid(format!("{address} is no address (host:port): {e}")))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    if let Some(tls) = tls {
        let mut config = match &tls.ca {
            Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some((certificate, key)) = &tls.certificate {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint = endpoint
            .tls_config(config)
            .map_err(|e| Error::Invalid(format!("a certificate or key is wrong: {}", why(&e))))?;
    }
    endpoint
        .connect()
        .await
        .map_err(|e| Error::Unavailable(format!("cannot connect to {address}: {}", why(&e))))
}

/// What the transport's error comes from: its own text says only that something failed.
fn why(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

async fn exchange(
    channel: Channel,
    frames: tokio::sync::mpsc::Receiver<FlightData>,
    authorization: Option<&str>,
    address: &str,
) -> Result<Streaming<FlightData>> {
    let mut client = FlightServiceClient::new(channel)
        .max_decoding_message_size(GRPC_BYTES_MAX)
        .max_encoding_message_size(GRPC_BYTES_MAX);
    let stream = futures::stream::unfold(frames, |mut frames| async move {
        frames.recv().await.map(|frame| (frame, frames))
    });
    let mut request = Request::new(stream);
    if let Some(authorization) = authorization {
        let value = MetadataValue::try_from(authorization)
            .map_err(|_| Error::Invalid("the password or token holds control characters".into()))?;
        request.metadata_mut().insert("authorization", value);
    }
    let answer = client.do_exchange(request).await;
    Ok(answer.map_err(|s| error_from_status(address, &s))?.into_inner())
}

/// The thread of a connection: messages to frames, compressed as the queues say.
fn send_all(
    first: Message,
    shared: &Shared,
    gate: &CreditGate,
    frames: &tokio::sync::mpsc::Sender<FlightData>,
) {
    let mut descriptor = Some(FlightDescriptor::new_cmd(LOAD_COMMAND));
    let mut sent = 0;
    let mut next = Some(first);
    while let Some(message) = next {
        for (more, raw) in cut_message(&message) {
            if !gate.wait(sent + (HEADER_BYTES + raw.len()) as u64) {
                return;
            }
            let frame = make_frame(&message, more, raw, shared);
            sent += frame.wire_bytes();
            let compressed = frame.compression != Compression::None;
            shared.frames.fetch_add(1, Ordering::Relaxed);
            shared.frames_compressed.fetch_add(u64::from(compressed), Ordering::Relaxed);
            shared.message_bytes.fetch_add(raw.len() as u64, Ordering::Relaxed);
            shared.wire_bytes.fetch_add(frame.wire_bytes(), Ordering::Relaxed);
            let data = FlightData {
                flight_descriptor: descriptor.take(),
                app_metadata: Bytes::copy_from_slice(&frame.header()),
                data_body: frame.body,
                ..FlightData::default()
            };
            if frames.blocking_send(data).is_err() {
                return;
            }
        }
        next = shared.outbox.pop();
    }
}

fn make_frame(message: &Message, more: bool, raw: &[u8], shared: &Shared) -> Frame {
    let receiver_waiting = shared.receiver_waiting_bytes.load(Ordering::Relaxed);
    let under_way = shared.wire_bytes.load(Ordering::Relaxed);
    let under_way = under_way.saturating_sub(shared.done_bytes.load(Ordering::Relaxed));
    let receiver = match receiver_waiting * 2 > under_way {
        true => ReceiverQueue::Long,
        false => ReceiverQueue::Short,
    };
    let waiting = shared.outbox.waiting();
    let mut wanted = choose_compression(shared.compression, waiting, receiver);
    if shared.compression == WireCompression::Adaptive && wanted != Compression::None {
        let rate = lock(&shared.rate).raw_rate();
        wanted = rate.map_or(Compression::None, |rate| lock(&shared.gains).best(wanted, rate));
    }
    let started = thread_cpu_ns();
    let (compression, packed) = compress(wanted, raw);
    if wanted != Compression::None {
        let bytes = packed.as_ref().map_or(raw.len(), Vec::len);
        lock(&shared.gains).note(wanted, raw.len(), bytes, thread_cpu_ns() - started);
    }
    Frame {
        kind: message.kind,
        compression,
        more,
        message_bytes: message.bytes.len() as u32,
        frame_bytes: raw.len() as u32,
        body: packed.map_or_else(|| Bytes::copy_from_slice(raw), Bytes::from),
    }
}

/// Reads what the other end says until it closes the stream.
async fn read_answers(
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
            KIND_ACK => {
                let ack = Ack::decode(&message.bytes)?;
                let new = gate.take(&ack);
                shared.take_ack(&ack, new);
            }
            KIND_ERROR => return Err(error_from_bytes(&message.bytes)),
            // The other end of the inbox goes last.
            _ => drop(inbox.send(Ok(message))),
        }
    }
    Ok(())
}

impl Shared {
    fn take_ack(&self, ack: &Ack, new: u64) {
        let done = self.done_bytes.fetch_add(new, Ordering::Relaxed) + new;
        self.receiver_waiting_bytes.store(ack.waiting_bytes, Ordering::Relaxed);
        lock(&self.load).clone_from(&ack.load);
        let under_way = self.wire_bytes.load(Ordering::Relaxed).saturating_sub(done);
        let network = self.outbox.waiting() > 0 && ack.waiting_bytes * 2 <= under_way;
        let frames = self.frames.load(Ordering::Relaxed);
        let compressed = self.frames_compressed.load(Ordering::Relaxed);
        lock(&self.rate).observe(Window { at: Instant::now(), done, frames, compressed }, network);
    }
}

impl Rate {
    /// `network` says that the network was what was waited for.
    fn observe(&mut self, now: Window, network: bool) {
        if !network {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        let elapsed = now.at.duration_since(since.at);
        if elapsed < RATE_WINDOW {
            return;
        }
        let rate = (now.done - since.done) as f64 / elapsed.as_secs_f64();
        let old = self.bytes_per_second.unwrap_or(rate);
        let compressed = now.compressed - since.compressed;
        let raw = compressed * 5 <= now.frames - since.frames;
        // Compressing may be what was waited for: then the link gives more than was seen.
        self.bytes_per_second = Some(if raw { (old + rate) / 2.0 } else { old.max(rate) });
        if raw {
            self.raw_at = Some(now.at);
        }
        self.since = Some(now);
    }

    /// The rate, unless it is time to look at it again without compression.
    fn raw_rate(&self) -> Option<f64> {
        let fresh = self.raw_at.is_some_and(|at| at.elapsed() < RAW_INTERVAL);
        self.bytes_per_second.filter(|_| fresh)
    }
}
