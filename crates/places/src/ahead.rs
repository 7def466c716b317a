//! Reads objects ahead of those who parse them, in blocks, several at once.
//!
//! ```text
//!   objects   1: |done|done|read|here|    2: |coming|coming|      3: |      |
//!                            ^ who asks                       ^ next
//! ```
//!
//! Before [`ReadAhead::start`] inputs are looked at: the first and last bytes of an object are fetched once, with those of the
//! objects behind it, and others as they are asked for or said to be looked at soon. After it blocks of what is not there are fetched in the order of objects and bytes, as far ahead
//! as there is room; one goes when all of it was read. A block that had to go twice before that is not fetched again as a
//! whole: who asks gets what he asks for.
//!
//! Memory: blocks and heads take what `start` says; before it, heads take [`heads::ENDS_BYTES_MAX`]. 4 MiB more are parts
//! that were looked at.

mod flow;
mod heads;
mod parts;
mod seen;
mod slots;

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use coload_threads::lock;
use coload_types::{Error, Result};
use futures::StreamExt;

use crate::blocks::Wanted;
use crate::fetch::fetch;
use crate::object::{ObjectRef, Objects};
use crate::runtime::{handle, wait_for};
use heads::{End, Heads, Side};
use parts::Parts;
use slots::{Key, Slots, ToFetch};

/// Bytes that are fetched at least where nobody reads ahead: what comes next is mostly near.
const LOOK_BYTES: u64 = 64 << 10;
/// Bytes of a part that is kept at most: footers are looked at more than once.
const KEPT_PART_BYTES_MAX: u64 = 1 << 20;
/// Small parts that are fetched at once.
const LOOKS_AT_ONCE: usize = 128;
/// Least and most bytes of a block.
const BLOCK_BYTES: (usize, usize) = (1 << 20, 4 << 20);
/// Share of what may be there for ends of objects that came when they were looked at.
const HEADS_SHARE: usize = 4;
/// Blocks that have room at once.
const BLOCKS: usize = 64;

/// What is there of some objects, and is coming.
#[derive(Default)]
pub struct ReadAhead {
    state: Mutex<State>,
    /// Something has come.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    heads: Heads,
    parts: Parts,
    slots: Slots,
}

/// Bytes that were asked for.
enum Filling {
    Coming,
    There(Arc<Vec<u8>>),
    Failed(Error),
}

impl Filling {
    /// How to get what stands in them; they begin at `start`.
    fn way(&self, start: u64) -> Way {
        match self {
            Filling::There(bytes) => Way::There(Arc::clone(bytes), start, None),
            Filling::Failed(error) => Way::Failed(error.clone()),
            Filling::Coming => Way::Wait,
        }
    }

    /// Bytes that are there.
    fn bytes(&self) -> usize {
        match self {
            Filling::There(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// What becomes of bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// They are not read again.
    Goes,
    /// They were looked at, and will be read.
    Stays,
}

/// What to do for a part that somebody wants.
enum Way {
    /// It is there, and this is where it begins.
    There(Arc<Vec<u8>>, u64, Option<Key>),
    /// It will be there.
    Wait,
    /// It is fetched by itself.
    Alone,
    /// It cannot be had.
    Failed(Error),
}

impl ReadAhead {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Says which parts of an object will be read.
    pub fn announce(&self, of: &ObjectRef, parts: Vec<Wanted>) {
        self.lock().slots.announce(of.number, parts);
    }

    /// Begins to fetch all objects from one on in their order; so many bytes may be there at once.
    pub fn start(all: &Arc<Objects>, bytes: usize, first: u32) {
        let block_bytes = (bytes / BLOCKS).clamp(BLOCK_BYTES.0, BLOCK_BYTES.1);
        let mut guard = all.ahead.lock();
        let state = &mut *guard;
        state.parts.keep_expected();
        let slots = &state.slots;
        let kept =
            state.heads.keep_read(all, (first, (bytes / HEADS_SHARE) as u64), |object, end| {
                slots.is_wanted(object, end)
            });
        let left = bytes.saturating_sub(state.heads.bytes() as usize);
        state.slots.start(all, (left, block_bytes as u64), first, &kept);
        Self::go_on(all, state);
    }

    /// Fetches nothing ahead any more.
    pub fn stop(&self) {
        self.lock().slots.stop();
    }

    /// Begins to fetch some parts of an object at once, for who looks at them soon.
    pub fn look_at(of: &ObjectRef, parts: Vec<Range<u64>>) {
        let mut state = of.all.ahead.lock();
        let new = |part: &Range<u64>| !part.is_empty() && state.parts.expect(of.number, part);
        let parts: Vec<Range<u64>> = parts.into_iter().filter(new).collect();
        drop(state);
        let Ok(handle) = handle() else { return };
        let object = of.clone();
        handle.spawn(async move {
            let one = |part: Range<u64>| {
                let object = object.clone();
                async move {
                    let bytes = fetch(&object, part.clone(), Vec::new()).await;
                    let ahead = &object.all.ahead;
                    ahead.lock().parts.arrived(object.number, part.start, bytes);
                    ahead.changed.notify_all();
                }
            };
            let all = futures::stream::iter(parts.into_iter().map(one));
            all.buffer_unordered(LOOKS_AT_ONCE).for_each(|()| std::future::ready(())).await;
        });
    }

    /// Fills a buffer with bytes of an object that it has.
    ///
    /// # Errors
    /// Those of fetching.
    pub fn read(of: &ObjectRef, buffer: &mut [u8], at: u64, then: Then) -> Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = at + done as u64;
            let out = &mut buffer[done..];
            done += Self::read_some(of, out, at, then)?;
        }
        Ok(())
    }

    /// Fills the start of a buffer, and says how much of it.
    fn read_some(of: &ObjectRef, out: &mut [u8], at: u64, then: Then) -> Result<usize> {
        let ahead = &of.all.ahead;
        let mut state = ahead.lock();
        loop {
            match Self::way(of, &mut state, at, out.len()) {
                Way::There(bytes, start, key) => {
                    drop(state);
                    let place = (at - start) as usize;
                    let from = &bytes[place..];
                    let count = from.len().min(out.len());
                    out[..count].copy_from_slice(&from[..count]);
                    drop(bytes);
                    if let Some(key) = key.filter(|_| then == Then::Goes) {
                        let mut state = ahead.lock();
                        state.slots.was_read(key, place..place + count);
                        Self::go_on(&of.all, &mut state);
                    }
                    return Ok(count);
                }
                Way::Failed(error) => return Err(error),
                Way::Alone => {
                    drop(state);
                    return Self::read_alone(of, out, at);
                }
                Way::Wait => {
                    state = ahead.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Finds out how to get what stands at a place, and has it fetched; so many bytes are wanted.
    fn way(of: &ObjectRef, state: &mut State, at: u64, bytes: usize) -> Way {
        if let Some(way) = state.parts.way(of.number, at, bytes) {
            return way;
        }
        if !state.slots.is_started() {
            let Some(side) = Heads::side(of, at) else { return Way::Alone };
            for side in [Side::Tail, Side::Head] {
                // Who looks at one end of an object mostly looks at the other.
                let missing = state.heads.missing(of, side);
                missing.into_iter().for_each(|end| Self::fetch_end(&of.all, end));
            }
            return state.heads.get((side, of.number), heads::range(of, side).start);
        }
        if let Some(there) = state.heads.there(of, at) {
            return there;
        }
        let (way, fetched) = state.slots.way(of, at);
        fetched.into_iter().for_each(|block| Self::fetch_block(&of.all, block));
        way
    }

    /// Fetches what is next as long as there is room.
    fn go_on(all: &Arc<Objects>, state: &mut State) {
        while let Some(block) = state.slots.next(&all.objects) {
            Self::fetch_block(all, block);
        }
    }

    fn fetch_block(all: &Arc<Objects>, block: ToFetch) {
        let ToFetch { key, range, buffer, start } = block;
        let of = all.at(key.0 as usize);
        let arrive = move |of: &ObjectRef, bytes: Result<Vec<u8>>| {
            let mut state = of.all.ahead.lock();
            state.slots.arrived(key, start, bytes);
            Self::go_on(&of.all, &mut state);
            drop(state);
            of.all.ahead.changed.notify_all();
        };
        Self::spawn(of, range, buffer, arrive);
    }

    fn fetch_end(all: &Arc<Objects>, end: End) {
        let of = all.at(end.1 as usize);
        let range = heads::range(&of, end.0);
        let arrive = move |of: &ObjectRef, bytes: Result<Vec<u8>>| {
            of.all.ahead.lock().heads.arrived(end, bytes);
            of.all.ahead.changed.notify_all();
        };
        Self::spawn(of, range, Vec::new(), arrive);
    }

    /// Fetches a part, on the threads of the network, and hands it over. The lock may be held by who calls.
    fn spawn(
        of: ObjectRef,
        range: Range<u64>,
        buffer: Vec<u8>,
        arrive: impl FnOnce(&ObjectRef, Result<Vec<u8>>) + Send + 'static,
    ) {
        // The threads are there since the object was found.
        if let Ok(handle) = handle() {
            handle.spawn(async move {
                let bytes = fetch(&of, range, buffer).await;
                arrive(&of, bytes);
            });
        }
    }

    /// Fetches a part for the one who asks; some more, if that is little, is given away.
    fn read_alone(of: &ObjectRef, out: &mut [u8], at: u64) -> Result<usize> {
        let ahead = &of.all.ahead;
        let end = at + out.len() as u64;
        let mut range = at..end;
        if end - at < LOOK_BYTES {
            // Near the end what is before is wanted, too: a footer behind its length.
            let start = at.min(of.bytes().saturating_sub(LOOK_BYTES));
            range = start..end.max((start + LOOK_BYTES).min(of.bytes()));
        }
        let (fetched, part) = (of.clone(), range.clone());
        let bytes = wait_for(async move { fetch(&fetched, part, Vec::new()).await })?;
        let from = (at - range.start) as usize;
        out.copy_from_slice(&bytes[from..from + out.len()]);
        if bytes.len() as u64 <= KEPT_PART_BYTES_MAX {
            ahead.lock().parts.keep(of.number, range.start, bytes);
        }
        Ok(out.len())
    }
}
