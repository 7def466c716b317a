//! The connections of a load: a thread each, more and fewer of them while it runs.
//!
//! ```text
//!   queue -> thread with a connection -> a chunk is there -> Steering: one more thread, or this one leaves
//!                                     -> once a second     -> Watch: others are hurt, one leaves
//! ```
//!
//! A thread leaves between two chunks only, and a connection that is added begins with a chunk that nobody had: what is one
//! transaction is over one connection, however many there are at a moment (decision 0061).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coload_threads::{Thread, lock, spawn};
use coload_types::{Error, Result};

use crate::costs::Unit;
use crate::engine::Connection;
use crate::sender::{Hand, Sending};
use crate::steering::{Batches, Change, Steering};
use crate::watch::{EVERY, PAUSE, Watch};

/// Changes that a report has; the others are only counted.
const CHANGES_MAX: usize = 64;

/// Those who send the rows of a load.
pub struct Crew {
    /// What they have in common.
    pub sending: Sending,
    /// Whether the transaction that is open has nothing in it.
    is_fresh: bool,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    threads: Vec<Thread<()>>,
    /// Connections of threads that have left.
    idle: Vec<Box<dyn Connection>>,
    /// Threads that send or are about to.
    active: usize,
    /// Threads that should.
    wanted: usize,
    most: usize,
    /// Numbers of the connections, by their threads.
    numbers: BTreeMap<usize, u64>,
    next_thread: usize,
    /// `None` where the number is given, or can only be one.
    steering: Option<Steering>,
    batches: Batches,
    changes: Vec<Change>,
    watch: Option<Watch>,
    /// When the server was asked what others do; at first at once, to know what they did before.
    asked: Option<Instant>,
    pauses: bool,
    notes: Vec<String>,
}

/// How many send, and who decides.
#[derive(Debug)]
pub struct Start {
    /// Connections at first.
    pub connections: usize,
    /// What changes their number, if anything does.
    pub steering: Option<Steering>,
    /// What changes the rows of a statement.
    pub batches: Batches,
    /// Whether the transaction that is open has nothing in it.
    pub is_fresh: bool,
}

impl Crew {
    /// Begins to send over this connection, and as many more as there should be.
    ///
    /// # Errors
    /// `Unavailable` when a thread cannot be started.
    pub fn begin(sending: Sending, first: Box<dyn Connection>, start: Start) -> Result<Arc<Self>> {
        let Start { connections, steering, batches, is_fresh } = start;
        let watch = (sending.unit == Unit::Chunk && steering.is_some()).then(Watch::default);
        let state = State {
            threads: Vec::new(),
            idle: Vec::new(),
            active: 0,
            wanted: connections,
            most: connections,
            numbers: BTreeMap::new(),
            next_thread: 0,
            steering,
            batches,
            changes: Vec::new(),
            watch,
            asked: None,
            pauses: false,
            notes: Vec::new(),
        };
        let began = Instant::now();
        let crew = Arc::new(Crew { sending, is_fresh, began, state: Mutex::new(state) });
        let mut first = Some(first);
        for _ in 0..connections {
            crew.add(&mut lock(&crew.state), first.take())?;
        }
        Ok(crew)
    }

    /// Starts a thread, with this connection or one that it makes.
    fn add(self: &Arc<Self>, state: &mut State, on: Option<Box<dyn Connection>>) -> Result<()> {
        let number = state.next_thread;
        let on = on.or_else(|| state.idle.pop());
        let crew = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("coload-send-{number}"));
        let spawned = spawn(thread, move || crew.work(number, on));
        let failed = |e| Error::Unavailable(format!("cannot start a thread: {e}"));
        state.threads.push(spawned.map_err(failed)?);
        state.next_thread += 1;
        state.active += 1;
        Ok(())
    }

    /// Sends until there is nothing more, or there are more who send than should.
    fn work(self: &Arc<Self>, thread: usize, on: Option<Box<dyn Connection>>) {
        let on = match on.map_or_else(|| self.sending.engine.connect(), Ok) {
            Ok(on) => on,
            Err(error) => return self.without(&error),
        };
        let mut hand = Hand::new(on, self.sending.table.clone(), self.is_fresh);
        while self.stays(thread, &mut hand) {
            let Some(rows) = self.sending.queue.next() else { break };
            let (began, count) = (Instant::now(), rows.rows.len() as u64);
            let bytes = rows.rows.bytes.len() as u64;
            if let Err(error) = self.sending.send(&mut hand, rows) {
                self.sending.queue.fail(error);
                return;
            }
            self.learn(&mut hand, (count, bytes), began.elapsed());
        }
        let mut state = lock(&self.state);
        state.numbers.remove(&thread);
        if !self.sending.queue.has_failed() {
            state.idle.push(hand.on);
        }
    }

    /// Whether a thread goes on; one that does not is not counted any more.
    fn stays(&self, thread: usize, hand: &mut Hand) -> bool {
        let mut state = lock(&self.state);
        if state.active > state.wanted {
            state.active -= 1;
            return false;
        }
        state.numbers.insert(thread, hand.on.number());
        hand.table.batch_rows = state.batches.rows();
        let pauses = state.pauses;
        drop(state);
        if pauses {
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// A connection could not be made: the load goes on with the others.
    fn without(&self, error: &Error) {
        let mut state = lock(&self.state);
        state.active -= 1;
        let now = self.began.elapsed();
        let why = format!("a connection more could not be had: {error}");
        let change = state.steering.as_mut().and_then(|s| s.could_not_add(now, why.clone()));
        match change {
            Some(change) => self.apply(&mut state, change),
            None => {
                state.wanted = state.wanted.saturating_sub(1).max(1);
                state.notes.push(why);
            }
        }
    }

    /// What a chunk tells: of throughput, and now and then of others.
    fn learn(self: &Arc<Self>, hand: &mut Hand, (rows, bytes): (u64, u64), took: Duration) {
        let mut state = lock(&self.state);
        let now = self.began.elapsed();
        let tried = state.batches.sent(hand.table.batch_rows, rows, took);
        if let Some(why) = tried.filter(|_| hand.table.method.has_batches()) {
            let connections = state.wanted;
            self.note(&mut state, Change { at: now, connections, why });
        }
        let change = state.steering.as_mut().and_then(|steering| steering.sent(now, bytes));
        if let Some(change) = change {
            self.apply_and_add(&mut state, change);
        }
        let is_time = state.asked.is_none_or(|asked| asked.elapsed() >= EVERY);
        if state.watch.is_some() && is_time {
            state.asked = Some(Instant::now());
            let own: Vec<u64> = state.numbers.values().copied().collect();
            drop(state);
            self.look_at_others(hand, &own);
        }
    }

    fn look_at_others(self: &Arc<Self>, hand: &mut Hand, own: &[u64]) {
        let others = hand.on.others(own);
        let mut state = lock(&self.state);
        let judged = match (others, state.watch.as_mut()) {
            (Ok(others), Some(watch)) => watch.judge(others),
            (Err(error), _) => {
                state.watch = None;
                state.notes.push(format!("what others wait for cannot be read: {error}"));
                None
            }
            (Ok(_), None) => None,
        };
        let Some(why) = judged else {
            state.pauses = false;
            return;
        };
        let now = self.began.elapsed();
        let change = state.steering.as_mut().and_then(|s| s.hurt(now, why.clone()));
        match change {
            Some(change) => self.apply(&mut state, change),
            None if !state.pauses => {
                state.pauses = true;
                let why = format!("{why}: a pause before each chunk");
                self.note(&mut state, Change { at: now, connections: 1, why });
            }
            None => {}
        }
    }

    /// Changes how many should send; those who are too many leave by themselves.
    fn apply(&self, state: &mut State, change: Change) {
        state.wanted = change.connections;
        state.most = state.most.max(change.connections);
        self.sending.queue.set_room(change.connections);
        self.note(state, change);
    }

    fn apply_and_add(self: &Arc<Self>, state: &mut State, change: Change) {
        if change.connections > state.active && self.sending.queue.has_ended() {
            return;
        }
        self.apply(state, change);
        while state.active < state.wanted {
            if let Err(error) = self.add(state, None) {
                state.wanted = state.active;
                state.notes.push(error.to_string());
            }
        }
    }

    fn note(&self, state: &mut State, change: Change) {
        if state.changes.len() < CHANGES_MAX {
            state.changes.push(change);
        }
    }

    /// Waits until all have sent what there was.
    pub fn wait(&self) {
        // One may be added meanwhile.
        loop {
            let Some(thread) = lock(&self.state).threads.pop() else { return };
            if thread.join().is_err() {
                let text = "a thread that sends rows panicked".to_owned();
                self.sending.queue.fail(Error::Unavailable(text));
            }
        }
    }

    /// Connections that nobody sends over.
    pub fn take_idle(&self) -> Vec<Box<dyn Connection>> {
        std::mem::take(&mut lock(&self.state).idle)
    }

    /// Most connections that sent at once, rows of a statement at last, what changed meanwhile, and what else is to be said.
    pub fn told(&self) -> (usize, usize, Vec<Change>, Vec<String>) {
        let state = lock(&self.state);
        let connections = state.most.min(state.next_thread);
        (connections, state.batches.rows(), state.changes.clone(), state.notes.clone())
    }
}
