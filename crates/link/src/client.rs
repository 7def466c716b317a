//! The sending end: several connections that empty one outbox.
//!
//! Each connection is a Flight `DoExchange` with a thread that compresses and a task that reads what
//! the receiver says. The first thing that goes wrong on any of them ends all.

mod connect;
mod gate;
mod rate;
mod sending;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, RecvTimeoutError, Sender, channel},
};
use std::time::Duration;

use arrow_flight::FlightData;
use coload_threads::{Thread, drop_elsewhere, lock, spawn};
use coload_types::{Error, Result};
use tokio::runtime::Runtime;

pub use connect::ClientTls;

use crate::compress::WireCompression;
use crate::frame::Message;
use crate::gain::thread_cpu_ns;
use connect::{connect, exchange};
use gate::CreditGate;
use sending::{Shared, read_answers, send_all};

/// Frames that a connection may have ready: small ones then go out together.
const FRAMES_READY: usize = 4;

/// Where to, and how.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Host and port of the server, as `host:port`.
    pub address: String,
    /// Bytes that may wait to be sent.
    pub outbox_bytes: usize,
    /// Which frames are compressed, and how.
    pub compression: WireCompression,
    /// Value of the header `authorization`.
    pub authorization: Option<String>,
    /// TLS; without it the connection is open to read.
    pub tls: Option<ClientTls>,
}

/// What went over a link.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LinkStats {
    /// Frames that were sent.
    pub frames: u64,
    /// Frames of these that were sent compressed.
    pub frames_compressed: u64,
    /// Bytes of the messages before compression, without headers of frames.
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
    /// CPU nanoseconds of the link's threads, compression included.
    pub cpu_ns: u64,
}

/// The sending end of a link.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    shared: Arc<Shared>,
    inbox: Mutex<Receiver<Result<Message>>>,
    inbox_sender: Sender<Result<Message>>,
    threads: Vec<Thread<()>>,
    runtime: Option<Runtime>,
}

impl Client {
    /// A client without connections.
    ///
    /// # Errors
    /// `Unavailable` when its threads cannot be started.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let network_ns = Arc::new(AtomicU64::new(0));
        let spent = Arc::clone(&network_ns);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("coload-link")
            .on_thread_park(move || spent.store(thread_cpu_ns(), Ordering::Relaxed))
            .enable_all()
            .build()
            .map_err(|e| Error::Unavailable(format!("cannot start the link: {e}")))?;
        let shared = Shared::new(&options, network_ns);
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
        let gate = Arc::new(CreditGate::default());
        let target = self.options.address.clone();
        let (address, authorization) = (target.clone(), self.options.authorization.clone());
        let tls = self.options.tls.clone();
        let thread = {
            let (shared, gate) = (Arc::clone(&self.shared), Arc::clone(&gate));
            let builder = std::thread::Builder::new().name(format!("coload-send-{number}"));
            spawn(builder, move || send_all(first, &shared, &gate, &sender))
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
        self.shared.stats()
    }

    /// What the receiver said last of its load.
    pub fn receiver_load(&self) -> Vec<u8> {
        self.shared.receiver_load()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.outbox.close(ended());
        if let Some(runtime) = self.runtime.take() {
            // Ends the tasks, and with them the channels that the threads wait for.
            drop_elsewhere(runtime);
        }
    }
}

fn ended() -> Error {
    Error::Unavailable("the link has ended".into())
}
