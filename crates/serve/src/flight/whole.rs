//! Streams of a client that went away end with an error.
//!
//! tonic takes the reset of a request for its regular end, so that half an ingest would be published
//! as a whole one. Here the reset keeps being an error.

use std::task::{Context, Poll};

use http_body_util::BodyExt;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::{Code, Status};

/// A service that is told when a client cancels its request.
#[derive(Debug, Clone)]
pub(super) struct WholeRequests<S>(pub(super) S);

impl<S: NamedService> NamedService for WholeRequests<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for WholeRequests<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> S::Future {
        self.0.call(request.map(|body| Body::new(body.map_err(keep_cancelled))))
    }
}

/// Any code but `Cancelled` reaches who reads the stream.
fn keep_cancelled(status: Status) -> Status {
    match status.code() {
        Code::Cancelled => Status::aborted("the client went away before the end of its stream"),
        _ => status,
    }
}
