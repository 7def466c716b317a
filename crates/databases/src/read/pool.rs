//! Connections that read parts, each for a worker at a time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use coload_threads::lock;
use coload_types::Result;

/// Opens a connection that sees the snapshot.
type Open<C> = Box<dyn Fn() -> Result<C> + Send + Sync>;

/// Connections of one snapshot.
pub struct Pool<C> {
    state: Mutex<State<C>>,
    changed: Condvar,
    open: Open<C>,
    most: usize,
}

struct State<C> {
    idle: Vec<C>,
    /// Connections that are open, or being opened.
    count: usize,
    /// The server gives no more.
    is_full: bool,
}

impl<C> Pool<C> {
    /// No connection yet, and so many at most.
    pub fn new(most: usize, open: Open<C>) -> Arc<Self> {
        let state = State { idle: Vec::new(), count: 0, is_full: false };
        Arc::new(Pool {
            state: Mutex::new(state),
            changed: Condvar::new(),
            open,
            most: most.max(1),
        })
    }

    /// Lends a connection; waits until one comes back where all are lent.
    ///
    /// # Errors
    /// Those of connecting, where there is none yet.
    pub fn lend(self: &Arc<Self>) -> Result<Lent<C>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok(Lent { connection: Some(connection), pool: Arc::clone(self) });
            }
            if state.count < self.most && !(state.is_full && state.count > 0) {
                state.count += 1;
                drop(state);
                let opened = (self.open)();
                state = lock(&self.state);
                match opened {
                    Ok(connection) => {
                        return Ok(Lent { connection: Some(connection), pool: Arc::clone(self) });
                    }
                    Err(error) => {
                        state.count -= 1;
                        // Fewer will do.
                        if state.count == 0 {
                            return Err(error);
                        }
                        state.is_full = true;
                        continue;
                    }
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A connection that was lent. Dropped, it is closed, for it may be in the middle of an answer.
pub struct Lent<C> {
    connection: Option<C>,
    pool: Arc<Pool<C>>,
}

impl<C> Lent<C> {
    /// The connection.
    pub fn get(&mut self) -> Option<&mut C> {
        self.connection.as_mut()
    }

    /// Gives it back, to be lent again.
    pub fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            lock(&self.pool.state).idle.push(connection);
            self.pool.changed.notify_one();
        }
    }
}

impl<C> Drop for Lent<C> {
    fn drop(&mut self) {
        if self.connection.is_some() {
            lock(&self.pool.state).count -= 1;
            self.pool.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use coload_types::Error;

    use super::*;

    #[test]
    fn a_connection_that_comes_back_is_lent_again_and_no_more_are_opened_than_there_may_be() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let pool = Pool::new(2, Box::new(move || Ok(count.fetch_add(1, Ordering::Relaxed))));
        let (mut first, second) = (pool.lend().expect("one"), pool.lend().expect("two"));
        first.give_back();
        drop(first);
        let mut again = pool.lend().expect("the first");
        assert_eq!(again.get().copied(), Some(0));
        assert_eq!(opened.load(Ordering::Relaxed), 2);
        drop(second);
        let mut third = pool.lend().expect("in place of the one that was closed");
        assert_eq!(third.get().copied(), Some(2));
    }

    #[test]
    fn a_server_that_gives_no_more_is_done_with_fewer() {
        let opened = AtomicUsize::new(0);
        let pool = Pool::new(
            3,
            Box::new(move || match opened.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err(Error::Unavailable("too many".into())),
            }),
        );
        let mut first = pool.lend().expect("one");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pool.lend().map(|_| ()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            first.give_back();
            assert!(waits.join().expect("no panic").is_ok());
        });
    }
}
