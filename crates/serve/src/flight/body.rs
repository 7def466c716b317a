//! What a client sends with a call, as it comes: within its time, and no larger than there is room for.
//!
//! tonic makes room for a message as soon as its head says how large it is, and takes the reset of a request for
//! its regular end. Here a head waits until the messages under way leave room for its message, a
//! client that stalls gets an error, and a reset keeps being one, so that half an ingest is never
//! published as a whole one.
//!
//! Invariant: bytes of messages under way, as their heads say, are at most those of the budget.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};

/// Bytes of a message's head: a flag, and four of length.
const HEAD_BYTES: usize = 5;
/// Messages up to this size need no room: they are in the buffer of their connection.
const FREE_BYTES: usize = 64 << 10;
/// A client that sends so much within the stall time, or a whole message, does not stall.
const PROGRESS_BYTES: usize = 64 << 10;

/// Room for messages that clients are sending.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    bytes: Arc<Semaphore>,
    bytes_max: usize,
}

impl Room {
    pub fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Room { bytes: Arc::new(Semaphore::new(bytes_max)), bytes_max }
    }

    /// Waits for room for a message; it is given back when what this gives is dropped.
    pub async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()
    }

    /// The largest message for which there can be room.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

/// What holds for the body of a call.
#[derive(Debug, Clone)]
pub(crate) struct BodyLimits {
    /// Larger messages are refused.
    pub message_bytes_max: usize,
    /// Larger messages wait for room.
    pub room: Option<Room>,
    /// How long a client may stall; `None` for as long as it likes.
    pub stall_time: Option<Duration>,
}

/// A body that keeps to its limits.
pub(crate) fn limited(body: Body, limits: BodyLimits) -> Body {
    let incoming =
        Incoming { limits, framing: Framing::default(), permit: None, stalled: Stall::default() };
    let frames = futures::stream::unfold(Some((body, incoming)), |state| async {
        let (mut body, mut incoming) = state?;
        let begun = Instant::now();
        let frame = match incoming.until(begun) {
            None => body.frame().await,
            Some(until) => match timeout_at(until, body.frame()).await {
                Ok(frame) => frame,
                Err(_) => return Some((Err(incoming.too_slow()), None)),
            },
        };
        let frame = match frame? {
            Ok(frame) => frame,
            Err(status) => return Some((Err(keep_cancelled(status)), None)),
        };
        if let Some(data) = frame.data_ref() {
            incoming.stalled.waited += begun.elapsed();
            if let Err(status) = incoming.take(data).await {
                return Some((Err(status), None));
            }
        }
        Some((Ok(frame), Some((body, incoming))))
    });
    Body::new(StreamBody::new(frames.boxed()))
}

/// What is known of a body so far.
struct Incoming {
    limits: BodyLimits,
    framing: Framing,
    /// Room of the message that comes.
    permit: Option<OwnedSemaphorePermit>,
    stalled: Stall,
}

/// How long was waited for the client, and what it sent meanwhile.
#[derive(Debug, Default)]
struct Stall {
    waited: Duration,
    bytes: usize,
}

impl Incoming {
    fn until(&self, now: Instant) -> Option<Instant> {
        let time = self.limits.stall_time?;
        Some(now + time.saturating_sub(self.stalled.waited))
    }

    fn too_slow(&self) -> Status {
        let seconds = self.limits.stall_time.unwrap_or_default().as_secs();
        Status::deadline_exceeded(format!(
            "the client sent nothing, or next to nothing, for {seconds} s (--stall-time)"
        ))
    }

    /// Looks at bytes that came, and waits until there is room for the messages that they begin.
    async fn take(&mut self, mut data: &[u8]) -> Result<(), Status> {
        self.stalled.bytes += data.len();
        if self.framing.rest == 0 {
            // Who reads has asked for more, so that the message before is out of the buffer.
            self.permit = None;
        }
        let mut is_whole = false;
        while let Some(bytes) = self.framing.next_message(&mut data) {
            is_whole = true;
            self.make_room(bytes).await?;
        }
        is_whole |= self.framing.is_between();
        if is_whole || self.stalled.bytes >= PROGRESS_BYTES {
            self.stalled = Stall::default();
        }
        Ok(())
    }

    async fn make_room(&mut self, bytes: usize) -> Result<(), Status> {
        let max = self.limits.message_bytes_max;
        if bytes > max {
            return Err(Status::resource_exhausted(format!(
                "a message of {bytes} bytes; the limit is {max} bytes (send smaller batches, or raise \
                 --max-message or --memory of the server)"
            )));
        }
        self.permit = None;
        let Some(room) = &self.limits.room else { return Ok(()) };
        if bytes <= FREE_BYTES {
            return Ok(());
        }
        let permit = Arc::clone(&room.bytes).acquire_many_owned(bytes as u32);
        let permit = match self.limits.stall_time {
            None => permit.await,
            Some(time) => tokio::time::timeout(time, permit).await.map_err(|_| {
                Status::resource_exhausted(
                    "messages of other clients leave no room for this one (try again, send smaller \
                     batches, or raise --memory of the server)",
                )
            })?,
        };
        self.permit = Some(permit.map_err(|_| Status::unavailable("the server stops"))?);
        Ok(())
    }
}

/// Where messages begin in the bytes of a body.
#[derive(Debug, Default)]
struct Framing {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes of the message that are to come.
    rest: usize,
}

impl Framing {
    /// Goes on to the end of the next head in the data, and tells how large its message is; `None` when the data
    /// ends before.
    fn next_message(&mut self, data: &mut &[u8]) -> Option<usize> {
        let skipped = self.rest.min(data.len());
        self.rest -= skipped;
        *data = &data[skipped..];
        while self.head_bytes < HEAD_BYTES {
            let (first, others) = data.split_first()?;
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            *data = others;
        }
        self.head_bytes = 0;
        let [_, length @ ..] = self.head;
        self.rest = u32::from_be_bytes(length) as usize;
        Some(self.rest)
    }

    /// Whether the data so far ends with a whole message.
    fn is_between(&self) -> bool {
        self.rest == 0 && self.head_bytes == 0
    }
}

/// Any code but `Cancelled` reaches who reads the stream.
fn keep_cancelled(status: Status) -> Status {
    match status.code() {
        Code::Cancelled => Status::aborted("the client went away before the end of its stream"),
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use futures::FutureExt;

    use super::*;

    fn message(bytes: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend((bytes as u32).to_be_bytes());
        message.resize(HEAD_BYTES + bytes, 7);
        message
    }

    #[test]
    fn messages_are_found_however_their_bytes_are_cut() {
        let sizes = [0, 1, 300, 0, 70_000];
        let bytes: Vec<u8> = sizes.iter().flat_map(|size| message(*size)).collect();
        for part in [1, 2, 3, 5, 6, 299, bytes.len()] {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            for mut data in bytes.chunks(part) {
                while let Some(size) = framing.next_message(&mut data) {
                    found.push(size);
                }
            }
            assert_eq!(found, sizes, "{part}");
            assert!(framing.is_between());
        }
    }

    fn incoming(room: &Room, stall_ms: u64) -> Incoming {
        let limits = BodyLimits {
            message_bytes_max: 1 << 20,
            room: Some(room.clone()),
            stall_time: Some(Duration::from_millis(stall_ms)),
        };
        Incoming { limits, framing: Framing::default(), permit: None, stalled: Stall::default() }
    }

    #[tokio::test]
    async fn a_head_waits_for_room_and_a_message_that_is_read_gives_it_back() {
        let room = Room::new(1 << 20);
        let mut first = incoming(&room, 60_000);
        first.take(&message(1 << 20)[..HEAD_BYTES]).await.unwrap();
        let mut second = incoming(&room, 60_000);
        let head = message(100 << 10);
        assert!(second.take(&head).now_or_never().is_none());
        // A small one needs none.
        assert!(incoming(&room, 60_000).take(&message(100)).now_or_never().unwrap().is_ok());
        first.take(&message(1 << 20)[HEAD_BYTES..]).await.unwrap();
        first.take(&message(1)).await.unwrap();
        assert!(incoming(&room, 60_000).take(&head).await.is_ok());
        let refused = incoming(&room, 60_000).take(&message(2 << 20)[..HEAD_BYTES]).await;
        assert!(refused.unwrap_err().message().contains("--max-message"));
    }

    #[tokio::test]
    async fn a_client_that_sends_next_to_nothing_is_told_so() {
        let room = Room::new(1 << 20);
        let limits = incoming(&room, 100).limits;
        // A byte now and then never makes a message.
        let bytes = futures::stream::unfold(message(1 << 19).into_iter(), |mut bytes| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let byte = Bytes::from(vec![bytes.next()?]);
            Some((Ok::<_, Status>(http_body_util::Full::new(byte).frame().await?.unwrap()), bytes))
        });
        let slow = Body::new(StreamBody::new(bytes.boxed()));
        let failed = limited(slow, limits).collect().await.unwrap_err();
        assert_eq!(failed.code(), Code::DeadlineExceeded);
        assert!(failed.message().contains("--stall-time"), "{failed}");
    }
}
