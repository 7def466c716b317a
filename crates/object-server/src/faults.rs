//! What a server does wrong, when it is told to.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coload_threads::lock;

use crate::request::Request;

/// Something that goes wrong with one request.
#[derive(Clone)]
pub enum Fault {
    /// It is answered with a status and nothing else.
    Status(u16),
    /// It is answered with another address.
    Moved(String),
    /// The answer ends after a share of its body, in percent; that to a put does not come.
    Cut(u64),
    /// The server is silent for a time, and goes away.
    Silent(Duration),
    /// The server takes its time.
    Slow(Duration),
    /// Parts are not given: the answer is the whole object.
    NoParts,
    /// The condition of the request is not looked at.
    NoConditions,
    /// Something is done before the answer is made.
    Then(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status(status) => write!(f, "Status({status})"),
            Fault::Moved(to) => write!(f, "Moved({to})"),
            Fault::Cut(percent) => write!(f, "Cut({percent})"),
            Fault::Silent(time) => write!(f, "Silent({time:?})"),
            Fault::Slow(time) => write!(f, "Slow({time:?})"),
            Fault::NoParts => f.write_str("NoParts"),
            Fault::NoConditions => f.write_str("NoConditions"),
            Fault::Then(_) => f.write_str("Then"),
        }
    }
}

/// Chooses what goes wrong with a request.
type Chooser = Box<dyn Fn(&Request) -> Option<Fault> + Send + Sync>;

/// What goes wrong, and with which requests.
#[derive(Default)]
pub struct Faults {
    chooser: Mutex<Option<Chooser>>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl Faults {
    /// Asks `choose` what goes wrong with each request from now on.
    pub fn set(&self, choose: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        *lock(&self.chooser) = Some(Box::new(choose));
    }

    pub(crate) fn take(&self, request: &Request) -> Option<Fault> {
        lock(&self.chooser).as_ref().and_then(|choose| choose(request))
    }
}
