//! One connection of a client: its messages, in the order they come.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

use coload_link::{Credit, Handler, LargeMessages, Message, Replies, WIRE_VERSION};
use coload_store::{LoadId, PlacedRows};
use coload_threads::lock;
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};
use coload_wire::{
    ABORT, ASK_MAP, BLOCK, CHUNK, CHUNKS, COMMIT, Commit, DESCRIBE, DONE, FINISH, Finish, GONE,
    HELLO, JOIN, Join, LIST, LOADS, LOOK, LoadDescription, Look, RANGE, RANGES, REJECTS, SEAL,
    SETTLE, TABLE, TEXT_FRAGMENT, WIDEN, Widen, write_statuses,
};

use crate::active::Active;
use crate::loads::{AllShares, Begun, Inner, Need, PendingShares, Permission};
use crate::whole_inputs::WholeInputs;

/// A connection of a client, and the load that it belongs to.
pub(crate) struct Connection {
    loads: Arc<Inner>,
    permission: Permission,
    load: Arc<Mutex<Option<Attempt>>>,
    whole: Arc<Mutex<Option<Arc<WholeInputs>>>>,
    /// Shares of a load that wait for this client, which had none to send.
    shares: Arc<Mutex<Option<Box<PendingShares>>>>,
}

/// A load, and which attempt of its client a connection is of.
type Attempt = (Arc<Active>, u64);

impl Connection {
    pub fn new(loads: Arc<Inner>, permission: Permission) -> Self {
        Connection {
            loads,
            permission,
            load: Arc::default(),
            whole: Arc::default(),
            shares: Arc::default(),
        }
    }

    fn load(&self) -> Result<Attempt> {
        let load = lock(&self.load);
        load.clone().ok_or_else(|| Error::Corrupt("a message before the load was begun".into()))
    }

    /// Does something that takes time, away from the network's threads; its answer or error is sent.
    fn answer(
        &self,
        replies: &Replies,
        work: impl FnOnce() -> Result<Option<Message>> + Send + 'static,
    ) {
        let replies = replies.clone();
        tokio::task::spawn_blocking(move || {
            let sent = match work() {
                Ok(Some(message)) => replies.send(&message),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                replies.fail(&error);
            }
        });
    }

    fn hello(&self, message: &Message, replies: &Replies) -> Result<()> {
        let mut reader = ByteReader::new(&message.bytes);
        let version = reader.u8()?;
        check_version(version)?;
        let description = LoadDescription::decode(reader.take(reader.remaining())?)?;
        (self.permission)(&description.table, Need::of(&description))?;
        let (loads, slot, to) = (Arc::clone(&self.loads), Arc::clone(&self.load), replies.clone());
        let (whole_slot, shares_slot) = (Arc::clone(&self.whole), Arc::clone(&self.shares));
        self.answer(replies, move || match loads.begin(description, &to)? {
            Begun::WholeInputs(whole, message) => {
                *lock(&whole_slot) = Some(whole);
                Ok(Some(message))
            }
            Begun::Done(message) => Ok(Some(message)),
            Begun::Shares(pending, question) => {
                *lock(&shares_slot) = Some(pending);
                Ok(Some(question))
            }
            Begun::Load(load, attempt, message) => {
                *lock(&slot) = Some((load, attempt));
                Ok(Some(message))
            }
        });
        Ok(())
    }
}

/// A client and its server speak one version.
fn check_version(client: u8) -> Result<()> {
    let update = match client.cmp(&WIRE_VERSION) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => "update the server",
        Ordering::Less => "update the client",
    };
    Err(Error::Refused(format!(
        "the client speaks version {client} of the wire, and the server version {WIRE_VERSION} ({update})"
    )))
}

fn read_id(bytes: &[u8]) -> Result<LoadId> {
    let mut reader = ByteReader::new(bytes);
    let id = LoadId::from_u128(reader.i128()? as u128);
    reader.finish()?;
    Ok(id)
}

/// The loads of tables that the client may know of.
fn seen_loads(loads: &Inner, permission: &Permission) -> Result<Message> {
    let mut statuses = loads.list()?;
    statuses.retain(|status| permission(&status.table, Need::See).is_ok());
    Ok(Message::new(LOADS, write_statuses(&statuses)))
}

impl Handler for Connection {
    fn message(&self, message: Message, credit: Credit, replies: &Replies) -> Result<()> {
        match message.kind {
            HELLO => self.hello(&message, replies)?,
            JOIN => {
                let join = Join::decode(&message.bytes)?;
                if let Some(whole) = self.loads.find_whole(join.id) {
                    (self.permission)(&whole.description.table, Need::of(&whole.description))?;
                    *lock(&self.whole) = Some(whole);
                    return Ok(());
                }
                let load = self.loads.find(join.id)?;
                (self.permission)(&load.description.table, Need::of(&load.description))?;
                load.join(join.attempt, replies)?;
                *lock(&self.load) = Some((load, join.attempt));
            }
            BLOCK => {
                let (load, attempt) = self.load()?;
                load.take_block(attempt, message.bytes, credit, &self.loads.pool);
            }
            TEXT_FRAGMENT => {
                let (load, attempt) = self.load()?;
                load.take_text(attempt, message.bytes, credit, &self.loads.pool);
            }
            SEAL => {
                let (load, attempt) = self.load()?;
                load.take_seal(attempt, message.bytes, credit, &self.loads.pool);
            }
            FINISH => {
                let finish = Finish::decode(&message.bytes)?;
                let loads = Arc::clone(&self.loads);
                if let Some(whole) = lock(&self.whole).clone() {
                    self.answer(replies, move || {
                        whole.finish(&finish, &loads.store, &loads.options).map(Some)
                    });
                    return Ok(());
                }
                let (load, _) = self.load()?;
                self.answer(replies, move || loads.finish(&load, &finish).map(Some));
            }
            GONE => {
                let (load, _) = self.load()?;
                (self.permission)(&load.description.table, Need::Replace)?;
                *lock(&load.gone) = Some(PlacedRows::decode(&message.bytes)?);
            }
            SETTLE => {
                if let Some(pending) = lock(&self.shares).take() {
                    let (loads, slot) = (Arc::clone(&self.loads), Arc::clone(&self.shares));
                    self.answer(replies, move || match loads.show_shares(*pending)? {
                        AllShares::Done(done) => Ok(Some(Message::new(DONE, done.encode()))),
                        AllShares::ToTell(pending, question) => {
                            *lock(&slot) = Some(pending);
                            Ok(Some(question))
                        }
                    });
                    return Ok(());
                }
                let (load, attempt) = self.load()?;
                let loads = Arc::clone(&self.loads);
                self.answer(replies, move || loads.settle(&load, attempt).map(Some));
            }
            RANGE => {
                let (load, attempt) = self.load()?;
                self.answer(replies, move || {
                    Ok(Some(Message::new(RANGES, load.ranges(attempt)?.encode())))
                });
            }
            WIDEN => {
                let (load, attempt) = self.load()?;
                let widen = Widen::decode(&message.bytes)?;
                let loads = Arc::clone(&self.loads);
                self.answer(replies, move || loads.widen(&load, attempt, widen).map(Some));
            }
            CHUNK | CHUNKS => {
                let whole = lock(&self.whole).clone();
                let whole =
                    whole.ok_or_else(|| Error::Corrupt("bytes before their load".into()))?;
                let to = replies.clone();
                self.answer(replies, move || {
                    let taken = match message.kind {
                        CHUNK => whole.take_chunk(&message.bytes, &to),
                        _ => whole.take_chunks(&message.bytes, &to),
                    };
                    drop(credit);
                    taken.map(|()| None)
                });
            }
            REJECTS => {
                let whole = lock(&self.whole).clone();
                let whole =
                    whole.ok_or_else(|| Error::Corrupt("rejects before their load".into()))?;
                let mut reader = ByteReader::new(&message.bytes);
                let from = reader.varint()?;
                reader.finish()?;
                self.answer(replies, move || whole.rejects_piece(from).map(Some));
            }
            LIST => {
                let (loads, permission) = (Arc::clone(&self.loads), Arc::clone(&self.permission));
                self.answer(replies, move || seen_loads(&loads, &permission).map(Some));
            }
            ABORT => {
                let id = read_id(&message.bytes)?;
                let (loads, permission) = (Arc::clone(&self.loads), Arc::clone(&self.permission));
                self.answer(replies, move || {
                    let (table, need) = loads.needs(id)?;
                    permission(&table, need)?;
                    loads.abort(id)?;
                    seen_loads(&loads, &permission).map(Some)
                });
            }
            ASK_MAP => {
                // Names of tables are in it, and who sees none of them is told none.
                let (loads, permission) = (Arc::clone(&self.loads), Arc::clone(&self.permission));
                self.answer(replies, move || loads.map_seen(&permission).map(Some));
            }
            COMMIT => {
                let commit = Commit::decode(&message.bytes)?;
                let (loads, permission) = (Arc::clone(&self.loads), Arc::clone(&self.permission));
                self.answer(replies, move || {
                    permission(&loads.table_to_commit(&commit)?, Need::Add)?;
                    loads.commit(&commit).map(Some)
                });
            }
            LOOK => {
                let look = Look::decode(&message.bytes)?;
                let loads = Arc::clone(&self.loads);
                self.answer(replies, move || loads.look(look).map(Some));
            }
            DESCRIBE => {
                let table = String::from_utf8_lossy(&message.bytes).into_owned();
                (self.permission)(&table, Need::See)?;
                let loads = Arc::clone(&self.loads);
                self.answer(replies, move || {
                    Ok(Some(Message::new(TABLE, loads.describe(&table)?.into_bytes())))
                });
            }
            other => return Err(Error::Corrupt(format!("a message of kind {other}"))),
        }
        Ok(())
    }

    fn window_bytes(&self) -> u64 {
        let load = lock(&self.load).as_ref().map(|(load, _)| Arc::clone(load));
        self.loads.window_bytes(load.as_deref())
    }

    fn message_bytes_max(&self) -> u64 {
        self.loads.message_bytes_max()
    }

    fn waiting_bytes(&self) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        lock(&self.load).as_ref().map_or(0, |(load, _)| load.waiting_bytes.load(Relaxed))
    }

    fn large_messages(&self) -> Option<LargeMessages> {
        lock(&self.load).as_ref().map(|(load, _)| load.large_messages.clone())
    }

    fn load(&self) -> Vec<u8> {
        let load = lock(&self.load).as_ref().map(|(load, _)| Arc::clone(load));
        self.loads.load_of(load.as_deref()).encode()
    }

    fn closed(&self) {
        drop(lock(&self.shares).take());
        if let Some(whole) = lock(&self.whole).take() {
            self.loads.leave_whole(&whole);
        }
        if let Some((load, attempt)) = lock(&self.load).take() {
            self.loads.leave(&load, attempt);
        }
    }
}
