//! What every call goes through: who calls is known before a byte of what is sent is read.
//!
//! ```text
//!   headers --credentials--> Rights --connection inside, calls of the user--> body within its limits --> calls
//! ```
//!
//! Invariant: no call but the handshake is answered by what is behind the gate without [`Rights`] in its extensions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use coload_threads::lock;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;

use super::body::{BodyLimits, Room, limited};
use super::door::{Call, Visit};
use super::service::Service as Flight;
use crate::rights::Rights;

/// Calls of one user under way at once: those of a pool of connections, several times.
const CALLS_OF_USER_MAX: usize = 512;
/// Bytes of a message of somebody who is not known yet.
const MESSAGE_OF_STRANGER_MAX: usize = 4 << 10;
/// How long a client may take to say who it is, once it has begun to.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The gate before a service.
#[derive(Debug, Clone)]
pub(super) struct Gate<S> {
    inner: S,
    gate: Arc<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    flight: Flight,
    room: Room,
    message_bytes_max: usize,
    stall_time: Duration,
    calls: Mutex<HashMap<Arc<str>, usize>>,
}

/// A call of a user, until it is dropped.
struct Counted {
    user: Arc<str>,
    gate: Arc<Keeper>,
    _call: Call,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut calls = lock(&self.gate.calls);
        if let Some(count) = calls.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.user);
            }
        }
    }
}

impl<S> Gate<S> {
    pub fn new(inner: S, flight: Flight, message_bytes_max: usize, room: Room) -> Self {
        let stall_time = flight.shared.limits.stall_time;
        let message_bytes_max = message_bytes_max.min(room.bytes_max());
        let calls = Mutex::default();
        Gate {
            inner,
            gate: Arc::new(Keeper { flight, room, message_bytes_max, stall_time, calls }),
        }
    }
}

impl Keeper {
    /// Lets a call of a known user through.
    async fn enter(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        headers: &http::HeaderMap,
    ) -> Result<(Rights, Counted), Status> {
        let headers = MetadataMap::from_headers(headers.clone());
        let caller = self.flight.shared.users.caller(visit.peer(), &headers).await;
        let rights = caller.inspect_err(|_| {
            visit.was_refused();
            self.flight.shared.metrics.calls_refused.inc();
        })?;
        visit.admit()?;
        let user: Arc<str> = rights.user().into();
        let mut calls = lock(&self.calls);
        let count = calls.entry(Arc::clone(&user)).or_default();
        if *count >= CALLS_OF_USER_MAX {
            return Err(Status::resource_exhausted(format!(
                "{CALLS_OF_USER_MAX} calls of this user are under way"
            )));
        }
        *count += 1;
        drop(calls);
        Ok((rights, Counted { user, gate: Arc::clone(self), _call: visit.call() }))
    }

    fn body_limits(&self, path: &str) -> BodyLimits {
        match path.ends_with("/DoExchange") {
            // Loads have credit and a budget of their own, and their clients may compute for long.
            true => BodyLimits {
                message_bytes_max: coload_link::GRPC_BYTES_MAX,
                room: None,
                stall_time: None,
            },
            false => BodyLimits {
                message_bytes_max: self.message_bytes_max,
                room: Some(self.room.clone()),
                stall_time: Some(self.stall_time),
            },
        }
    }
}

impl<S: NamedService> NamedService for Gate<S> {
    const NAME: &'static str = S::NAME;
}

type Answer<E> = Result<http::Response<Body>, E>;

impl<S> Service<http::Request<Body>> for Gate<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Answer<S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let (mut inner, gate) = (self.inner.clone(), Arc::clone(&self.gate));
        Box::pin(async move {
            let Some(visit) = request.extensions().get::<Arc<Visit>>().cloned() else {
                return Ok(Status::internal("a call without a connection").into_http());
            };
            if request.uri().path().ends_with("/Handshake") {
                let limits = BodyLimits {
                    message_bytes_max: MESSAGE_OF_STRANGER_MAX,
                    room: None,
                    stall_time: Some(HANDSHAKE_TIME),
                };
                return inner.call(request.map(|body| limited(body, limits))).await;
            }
            let (rights, counted) = match gate.enter(&visit, request.headers()).await {
                Ok(entered) => entered,
                Err(status) => return Ok(status.into_http()),
            };
            let limits = gate.body_limits(request.uri().path());
            request.extensions_mut().insert(rights);
            let answer = inner.call(request.map(|body| limited(body, limits))).await?;
            // The call lasts until its answer has gone.
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = &counted;
                    frame
                }))
            }))
        })
    }
}
