//! A Flight service that takes loads and nothing else: for tests, benchmarks, and servers without SQL.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use coload_link::{
    CONNECTION_WINDOW_BYTES, GRPC_BYTES_MAX, HTTP2_FRAME_BYTES, KEEP_ALIVE_TIMEOUT, LOAD_COMMAND,
    STREAM_WINDOW_BYTES,
};
use coload_types::{Error, Result};
use futures::{Stream, StreamExt};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::{Loads, Permission};

type Answers<T> = Pin<Box<dyn Stream<Item = std::result::Result<T, Status>> + Send>>;

struct LoadService {
    loads: Loads,
    permission: Permission,
}

/// Takes loads on a listener until the future is dropped. There is no login: `permission` is asked for
/// each table, whoever comes.
///
/// # Errors
/// `Unavailable` when the listener fails.
pub async fn serve_loads(
    listener: TcpListener,
    loads: Loads,
    permission: Permission,
) -> Result<()> {
    let service = FlightServiceServer::new(LoadService { loads, permission })
        .max_decoding_message_size(GRPC_BYTES_MAX)
        .max_encoding_message_size(GRPC_BYTES_MAX);
    Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(HTTP2_FRAME_BYTES)
        .http2_keepalive_interval(Some(std::time::Duration::from_secs(20)))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .add_service(service)
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await
        .map_err(|e| Error::Unavailable(format!("the server failed: {e}")))
}

/// Opens a listener.
///
/// # Errors
/// `Invalid` when the address cannot be listened on.
pub async fn listen(address: &str) -> Result<(TcpListener, SocketAddr)> {
    let fail = |e| Error::Invalid(format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

fn no(what: &str) -> Status {
    Status::unimplemented(format!("this server takes loads only, no {what}"))
}

#[tonic::async_trait]
impl FlightService for LoadService {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;
    type DoExchangeStream = Answers<FlightData>;

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> std::result::Result<Response<Self::DoExchangeStream>, Status> {
        let mut stream = request.into_inner().peekable();
        let command = match Pin::new(&mut stream).peek().await {
            Some(Ok(data)) => {
                data.flight_descriptor.as_ref().map(|d| d.cmd.clone()).unwrap_or_default()
            }
            Some(Err(status)) => return Err(status.clone()),
            None => return Err(Status::invalid_argument("an exchange without messages")),
        };
        if !command.starts_with(LOAD_COMMAND.as_bytes()) {
            return Err(no("other exchange"));
        }
        Ok(Response::new(self.loads.exchange(stream, Arc::clone(&self.permission))))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> std::result::Result<Response<Self::HandshakeStream>, Status> {
        Err(no("handshake"))
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> std::result::Result<Response<Self::ListFlightsStream>, Status> {
        Err(no("flights"))
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> std::result::Result<Response<FlightInfo>, Status> {
        Err(no("queries"))
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> std::result::Result<Response<PollInfo>, Status> {
        Err(no("queries"))
    }

    async fn get_schema(
        &self,
        _: Request<FlightDescriptor>,
    ) -> std::result::Result<Response<SchemaResult>, Status> {
        Err(no("schemas"))
    }

    async fn do_get(
        &self,
        _: Request<Ticket>,
    ) -> std::result::Result<Response<Self::DoGetStream>, Status> {
        Err(no("queries"))
    }

    async fn do_put(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> std::result::Result<Response<Self::DoPutStream>, Status> {
        Err(no("put"))
    }

    async fn do_action(
        &self,
        _: Request<Action>,
    ) -> std::result::Result<Response<Self::DoActionStream>, Status> {
        Err(no("actions"))
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> std::result::Result<Response<Self::ListActionsStream>, Status> {
        Err(no("actions"))
    }
}
