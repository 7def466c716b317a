//! Trying again: what a server refuses for the moment, and what did not come through, is asked for again with longer and
//! longer waits, until nothing has come for some time.

use std::future::Future;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coload_threads::lock;
use coload_types::{Error, Result};
use object_store::Error as StoreError;
use tokio::time::{sleep, timeout};

use crate::place::PlaceOptions;
use crate::words;

/// First and longest wait.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Who waits for so long is told why, and so often at most, whatever else is waited for.
const TOLD_AFTER: Duration = Duration::from_millis(500);
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// When somebody was told last.
static TOLD: Mutex<Option<Instant>> = Mutex::new(None);

/// Why a request did not give what it was to give.
pub enum Trouble {
    /// The answer ended early.
    Cut,
    /// Nothing came for long.
    Silent,
    /// The server refused, or could not be reached.
    Refused(StoreError),
    /// It is no use to ask again.
    Is(Error),
}

/// Attempts at one thing.
pub struct Attempts<'a> {
    options: &'a PlaceOptions,
    /// Since when nothing has come.
    since: Option<Instant>,
    wait: Duration,
}

impl<'a> Attempts<'a> {
    /// Nothing has gone wrong yet.
    pub fn new(options: &'a PlaceOptions) -> Self {
        Attempts { options, since: None, wait: WAITS.0 }
    }

    /// Something came: waits are short again.
    pub fn got_on(&mut self) {
        (self.since, self.wait) = (None, WAITS.0);
    }

    /// Waits before the next attempt; false when there was enough time for it.
    pub async fn wait(&mut self, trouble: &Trouble) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let Some(left) = self.options.retry_max.checked_sub(since.elapsed() + self.wait) else {
            return false;
        };
        if since.elapsed() >= TOLD_AFTER {
            self.tell(trouble, left.as_secs().max(1));
        }
        // Many that were refused at once do not come again at once.
        let spread = since.elapsed().subsec_nanos() % 1000;
        sleep(self.wait.mul_f64(0.75 + f64::from(spread) / 2000.0)).await;
        self.wait = (self.wait * 2).min(WAITS.1);
        true
    }
}

impl Attempts<'_> {
    fn tell(&self, trouble: &Trouble, seconds: u64) {
        let Some(tell) = self.options.on_wait else { return };
        let text = match trouble {
            Trouble::Cut | Trouble::Is(_) => return,
            Trouble::Silent => {
                format!("a server sends nothing; trying again for up to {seconds} s")
            }
            Trouble::Refused(error) => words::waiting(error, seconds),
        };
        let mut told = lock(&TOLD);
        if told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tell(&text);
        }
    }
}

/// Asks for something, again and again if need be.
///
/// # Errors
/// What is told of the last attempt.
pub async fn ask<T, F: Future<Output = object_store::Result<T>>>(
    options: &PlaceOptions,
    request: impl Fn() -> F,
) -> std::result::Result<T, Trouble> {
    let mut attempts = Attempts::new(options);
    loop {
        let trouble = match timeout(options.silence_max, request()).await {
            Ok(Ok(given)) => return Ok(given),
            Ok(Err(error)) if words::may_pass(&error) => Trouble::Refused(error),
            Ok(Err(error)) => return Err(Trouble::Refused(error)),
            Err(_) => Trouble::Silent,
        };
        if !attempts.wait(&trouble).await {
            return Err(trouble);
        }
    }
}

impl Trouble {
    /// What is told of it.
    pub fn told(self, address: &str, options: &PlaceOptions) -> Error {
        match self {
            Trouble::Cut => words::cut(address),
            Trouble::Silent => words::silent(address, options.silence_max.as_secs_f64()),
            Trouble::Refused(error) => words::request_error(address, &error),
            Trouble::Is(error) => error,
        }
    }
}

/// As [`ask`], with what is told in place of what went wrong; `address` is what messages show.
///
/// # Errors
/// As [`ask`].
pub async fn ask_or_tell<T, F: Future<Output = object_store::Result<T>>>(
    options: &PlaceOptions,
    address: &str,
    request: impl Fn() -> F,
) -> Result<T> {
    ask(options, request).await.map_err(|trouble| trouble.told(address, options))
}
