//! The receiving end: one Flight `DoExchange`, whose messages go to a handler.

use std::pin::Pin;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use arrow_flight::FlightData;
use coload_threads::lock;
use coload_types::{Error, Result};
use futures::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;

use crate::compress::Compression;
use crate::frame::{
    Ack, Assembler, Frame, KIND_ACK, KIND_ERROR, Message, cut_message, decode_frame,
};
use crate::status::{error_from_status, error_to_bytes};

/// What may be sent before the first acknowledgement.
pub(crate) const CREDIT_FIRST_BYTES: u64 = 4 << 20;
/// Bytes done after which an acknowledgement is sent at once.
const ACK_BYTES: u64 = 512 << 10;
/// Acknowledgements are sent so often when nothing happens, to tell of changed credit and load.
const ACK_INTERVAL: Duration = Duration::from_millis(100);
/// Answers that may wait for a client that does not read them.
const REPLIES_MAX: usize = 256;

/// What becomes of messages. The methods are called on the network's threads: they must not work long.
pub trait Handler: Send + Sync + 'static {
    /// Takes a message. `credit` is dropped when its bytes are out of memory.
    ///
    /// # Errors
    /// Told to the sender, and ends the connection.
    fn message(&self, message: Message, credit: Credit, replies: &Replies) -> Result<()>;

    /// Bytes that may be under way or wait, of this connection.
    fn window_bytes(&self) -> u64;

    /// Largest message that is taken.
    fn message_bytes_max(&self) -> u64;

    /// Bytes of messages that wait, of all connections.
    fn waiting_bytes(&self) -> u64;

    /// Who may have a large message at once; `None` before it is known.
    fn large_messages(&self) -> Option<LargeMessages>;

    /// What acknowledgements tell of the load of this side.
    fn load(&self) -> Vec<u8>;

    /// Told once when the connection has ended, whoever ended it.
    fn closed(&self);
}

/// Lets one large message at a time be in memory, of those connections that share this.
///
/// A message that is larger than the window of its connection is let through beyond it, or it would never pass. Each of
/// several connections would have one.
#[derive(Debug, Clone)]
pub struct LargeMessages {
    bytes: u64,
    turn: Arc<Semaphore>,
}

impl LargeMessages {
    /// Messages of more than `bytes` are large.
    pub fn new(bytes: u64) -> Self {
        LargeMessages { bytes, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for the turn of a message, if it is large.
    async fn turn_of(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        if bytes <= self.bytes {
            return None;
        }
        // It is never closed.
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }
}

/// The answers of one exchange.
pub type Exchange = Pin<Box<dyn Stream<Item = std::result::Result<FlightData, Status>> + Send>>;

/// Sends messages back on one connection. Clones share it.
#[derive(Debug, Clone)]
pub struct Replies {
    sender: mpsc::Sender<std::result::Result<FlightData, Status>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Held while the parts of a message are sent: acknowledgements come from other threads.
    sending: Mutex<()>,
    done_bytes: AtomicU64,
    told_bytes: AtomicU64,
    window_bytes: AtomicU64,
    waiting_bytes: AtomicU64,
    /// Bytes of a message of which frames are missing: they are let through beyond the window, which
    /// it could never pass else.
    partial_bytes: AtomicU64,
}

impl Replies {
    /// Sends a message.
    ///
    /// # Errors
    /// `Unavailable` when the client is gone or does not read.
    pub fn send(&self, message: &Message) -> Result<()> {
        // The parts of a message follow each other; it is few bytes, mostly.
        let _sending = lock(&self.shared.sending);
        for part in cut_message(message.clone()) {
            let frame = Frame::new(part, (Compression::None, None));
            let data = frame.into_flight(None);
            self.sender.try_send(Ok(data)).map_err(|_| {
                Error::Unavailable("the client is gone, or does not read what it is told".into())
            })?;
        }
        Ok(())
    }

    /// Tells an error; the connection should end then.
    pub fn fail(&self, error: &Error) {
        let _ = self.send(&Message::new(KIND_ERROR, error_to_bytes(error)));
    }

    fn acknowledge(&self, load: Vec<u8>) {
        let done_bytes = self.shared.done_bytes.load(Ordering::Acquire);
        self.shared.told_bytes.store(done_bytes, Ordering::Relaxed);
        let ack = Ack {
            done_bytes,
            credit_bytes: done_bytes
                + self.shared.window_bytes.load(Ordering::Relaxed)
                + self.shared.partial_bytes.load(Ordering::Relaxed),
            waiting_bytes: self.shared.waiting_bytes.load(Ordering::Relaxed),
            load,
        };
        // One that finds no room is made good by the next, which counts from the start.
        let _ = self.send(&Message::new(KIND_ACK, ack.encode()));
    }

    fn look(&self, handler: &dyn Handler) {
        self.shared.window_bytes.store(handler.window_bytes(), Ordering::Relaxed);
        self.shared.waiting_bytes.store(handler.waiting_bytes(), Ordering::Relaxed);
    }
}

/// The room that a message takes at the receiver; given back to the sender when dropped.
pub struct Credit {
    wire_bytes: u64,
    replies: Replies,
    handler: Arc<dyn Handler>,
    /// The turn of a large message.
    _turn: Option<OwnedSemaphorePermit>,
}

impl std::fmt::Debug for Credit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credit").field("wire_bytes", &self.wire_bytes).finish_non_exhaustive()
    }
}

impl Credit {
    /// Bytes of the message on the wire.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        let shared = &self.replies.shared;
        let done = shared.done_bytes.fetch_add(self.wire_bytes, Ordering::AcqRel) + self.wire_bytes;
        if done - shared.told_bytes.load(Ordering::Relaxed).min(done) >= ACK_BYTES {
            self.replies.look(&*self.handler);
            self.replies.acknowledge(self.handler.load());
        }
    }
}

/// Runs one exchange: frames in, messages to the handler, answers out.
pub fn exchange<S>(inbound: S, handler: Arc<dyn Handler>) -> Exchange
where
    S: Stream<Item = std::result::Result<FlightData, Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(REPLIES_MAX);
    let replies = Replies { sender, shared: Arc::default() };
    tokio::spawn(async move {
        let ended = {
            let ticker = tick(&replies, &*handler);
            let reader = read(inbound, &handler, &replies);
            tokio::select! { ended = reader => ended, () = ticker => Ok(()) }
        };
        if let Err(error) = ended {
            replies.fail(&error);
        }
        handler.closed();
    });
    let stream = futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    });
    Box::pin(stream)
}

/// Acknowledges at intervals; ends when the client is gone.
async fn tick(replies: &Replies, handler: &dyn Handler) {
    let mut interval = tokio::time::interval(ACK_INTERVAL);
    while !replies.sender.is_closed() {
        interval.tick().await;
        replies.look(handler);
        replies.acknowledge(handler.load());
    }
}

async fn read<S>(inbound: S, handler: &Arc<dyn Handler>, replies: &Replies) -> Result<()>
where
    S: Stream<Item = std::result::Result<FlightData, Status>> + Send + 'static,
{
    let mut inbound = Box::pin(inbound);
    let mut assembler = Assembler::default();
    let mut turn = None;
    while let Some(data) = inbound.next().await {
        let data = data.map_err(|s| error_from_status("client", &s))?;
        let frame = decode_frame(&data.app_metadata, data.data_body)?;
        let partial = if frame.more { u64::from(frame.message_bytes) } else { 0 };
        let told = &replies.shared.partial_bytes;
        if partial == 0 {
            told.store(0, Ordering::Relaxed);
        } else if told.load(Ordering::Relaxed) != partial {
            if partial > handler.message_bytes_max() {
                return Err(Error::Limit(format!(
                    "a message of {partial} bytes; the server takes {} (lower --chunk-size, or raise \
                     --load-memory of the server)",
                    handler.message_bytes_max()
                )));
            }
            if let Some(large) = handler.large_messages() {
                turn = large.turn_of(partial).await;
            }
            told.store(partial, Ordering::Relaxed);
            replies.look(&**handler);
            replies.acknowledge(handler.load());
        }
        let Some((message, wire_bytes)) = assembler.push(frame)? else { continue };
        if message.kind < 16 {
            return Err(Error::Corrupt(format!("a message of kind {}", message.kind)));
        }
        let (handler_of, turn) = (Arc::clone(handler), turn.take());
        let credit =
            Credit { wire_bytes, replies: replies.clone(), handler: handler_of, _turn: turn };
        handler.message(message, credit, replies)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[derive(Default)]
    struct Answering {
        answered: AtomicU64,
        ended: AtomicBool,
    }

    impl Handler for Answering {
        fn message(&self, message: Message, credit: Credit, replies: &Replies) -> Result<()> {
            drop(credit);
            replies.send(&message)?;
            self.answered.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn window_bytes(&self) -> u64 {
            1 << 20
        }

        fn message_bytes_max(&self) -> u64 {
            1 << 20
        }

        fn waiting_bytes(&self) -> u64 {
            0
        }

        fn large_messages(&self) -> Option<LargeMessages> {
            None
        }

        fn load(&self) -> Vec<u8> {
            Vec::new()
        }

        fn closed(&self) {
            self.ended.store(true, Ordering::Release);
        }
    }

    /// Each of four connections had a message of 64 MiB in memory at a server that has 256.
    #[test]
    fn a_large_message_waits_for_the_one_before_and_a_small_one_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let large = LargeMessages::new(100);
            let (again, small) = (large.clone(), large.turn_of(100).await);
            assert!(small.is_none());
            let first = large.turn_of(101).await;
            let next = tokio::spawn(async move { again.turn_of(500).await });
            tokio::task::yield_now().await;
            assert!(first.is_some() && !next.is_finished());
            drop(first);
            assert!(next.await.unwrap().is_some());
        });
    }

    /// Symptom: the answer to a load of a million files, of several frames, had an acknowledgement within it, and the client
    /// took it for damage.
    #[test]
    fn the_parts_of_an_answer_follow_each_other() {
        let (sender, mut receiver) = mpsc::channel(1 << 20);
        let replies = Replies { sender, shared: Arc::default() };
        let sent = AtomicBool::new(false);
        let long = Message::new(20, vec![7; 40 * crate::frame::FRAME_BYTES_MAX]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !sent.load(Ordering::Acquire) {
                    replies.acknowledge(Vec::new());
                    std::thread::yield_now();
                }
            });
            replies.send(&long).unwrap();
            sent.store(true, Ordering::Release);
        });
        drop(replies);
        let mut assembler = Assembler::default();
        let mut found = 0;
        while let Some(data) = receiver.blocking_recv() {
            let data = data.unwrap();
            let frame = decode_frame(&data.app_metadata, data.data_body).unwrap();
            let whole = assembler.push(frame).unwrap();
            found += usize::from(whole.is_some_and(|(message, _)| message.bytes == long.bytes));
        }
        assert_eq!(found, 1);
    }

    #[test]
    fn a_client_that_does_not_read_ends_its_connection_and_nothing_piles_up() {
        let frame = |number: u32| {
            let message = Message::new(20, number.to_le_bytes().to_vec());
            let parts =
                cut_message(message).map(|part| Frame::new(part, (Compression::None, None)));
            Ok(parts.last().unwrap().into_flight(None))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handler = Arc::new(Answering::default());
        let watched = Arc::clone(&handler);
        runtime.block_on(async move {
            let inbound = futures::stream::iter((0..10 * REPLIES_MAX as u32).map(frame));
            let mut answers = exchange(inbound, handler);
            while !watched.ended.load(Ordering::Acquire) {
                tokio::task::yield_now().await;
            }
            let answered = watched.answered.load(Ordering::Relaxed);
            assert!(answered <= REPLIES_MAX as u64, "{answered}");
            // What did fit is there, and then the stream ends.
            let mut read = 0;
            while answers.next().await.is_some() {
                read += 1;
            }
            assert!((1..=REPLIES_MAX).contains(&read), "{read}");
        });
    }
}
