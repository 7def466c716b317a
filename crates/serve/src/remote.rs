//! A server, seen from a client: statements there, rows here.

use std::path::PathBuf;
use std::time::Duration;

use arrow_flight::HandshakeRequest;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use coload_types::{Error, Result};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use tokio::runtime::{Builder, Runtime};
use tonic::Request;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::flight::read_pem;
use crate::flight::status::error;

pub use coload_load::Address;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that says nothing for so long is asked, and given up when it does not answer in time.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Largest message that is taken from a server.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// HTTP/2 windows: what a server may send before it is read.
const WINDOW_BYTES: u32 = 16 << 20;

/// Who the client is, and whom it trusts.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Password of the address's user.
    pub password: Option<String>,
    /// A token, in place of a user and password.
    pub token: Option<String>,
    /// Root of the server's certificate, a PEM file; without it those of the system.
    pub ca: Option<PathBuf>,
    /// The client's own certificate and key, PEM files.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Remote {
    runtime: Runtime,
    client: FlightSqlServiceClient<Channel>,
    address: Address,
}

impl Remote {
    /// Connects, and logs in if the address names a user.
    ///
    /// # Errors
    /// `Unavailable` when nobody answers, `Refused` when the password is wrong, `Invalid` when a
    /// certificate cannot be read.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn connect(address: Address, credentials: &Credentials) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("coload-net")
            .enable_all()
            .build()
            .map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        let client = runtime.block_on(connect(&address, credentials))?;
        Ok(Remote { runtime, client, address })
    }

    /// Address of the server, as it was given.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Runs one statement and waits for all rows.
    ///
    /// # Errors
    /// Those of the server, and `Unavailable` when the connection breaks.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn query(&mut self, text: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut batches = Vec::new();
        let schema = self.stream(text, |_, batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok((schema, batches))
    }

    /// Runs one statement and hands its rows over as they come, with their columns, which it gives back.
    ///
    /// # Errors
    /// As [`Self::query`], and those of `each`.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn stream(
        &mut self,
        text: &str,
        each: impl FnMut(&SchemaRef, RecordBatch) -> Result<()>,
    ) -> Result<SchemaRef> {
        let Remote { runtime, client, .. } = self;
        runtime.block_on(stream(client, text, each))
    }

    /// The names of a column of text that a statement answers.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn names(&mut self, text: &str) -> Result<Vec<String>> {
        let (_, batches) = self.query(text)?;
        let columns = batches.iter().filter_map(|b| b.columns().first()?.as_string_opt::<i32>());
        Ok(columns.flatten().flatten().map(str::to_owned).collect())
    }
}

async fn connect(
    address: &Address,
    credentials: &Credentials,
) -> Result<FlightSqlServiceClient<Channel>> {
    let endpoint = endpoint(address, credentials)?;
    let channel = endpoint
        .connect()
        .await
        .map_err(|e| Error::Unavailable(format!("cannot connect to {address}: {}", causes(&e))))?;
    let mut flight = FlightServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let token = match (&credentials.token, &address.user) {
        (Some(token), _) => Some(token.clone()),
        (None, Some(user)) => {
            let password = credentials.password.as_deref().ok_or_else(|| {
                Error::Invalid(format!("user {user} has no password (set COLOAD_PASSWORD)"))
            })?;
            Some(log_in(&mut flight, user, password).await?)
        }
        (None, None) => None,
    };
    let mut client = FlightSqlServiceClient::new_from_inner(flight);
    if let Some(token) = token {
        client.set_token(token);
    }
    Ok(client)
}

/// Says user and password, and gets a token. The driver's own handshake drops the kind of an error.
async fn log_in(
    flight: &mut FlightServiceClient<Channel>,
    user: &str,
    password: &str,
) -> Result<String> {
    let none = HandshakeRequest { protocol_version: 0, payload: Bytes::new() };
    let mut request = Request::new(futures::stream::iter([none]));
    let header = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
    let header = header.parse().map_err(|_| Error::Invalid("not a user and password".into()))?;
    request.metadata_mut().insert("authorization", header);
    let answer = flight.handshake(request).await.map_err(|s| error(&s))?;
    let first = answer.into_inner().try_next().await.map_err(|s| error(&s))?;
    let token = first.and_then(|answer| String::from_utf8(answer.payload.to_vec()).ok());
    token.ok_or_else(|| Error::Refused("the server gave no token".into()))
}

fn endpoint(address: &Address, credentials: &Credentials) -> Result<Endpoint> {
    let scheme = if address.tls { "https" } else { "http" };
    let uri = format!("{scheme}://{}", address.authority());
    let wrong = |e: tonic::transport::Error| {
        Error::Invalid(format!("cannot connect to {address}: {}", causes(&e)))
    };
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(wrong)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .tcp_nodelay(true)
        .initial_connection_window_size(WINDOW_BYTES)
        .initial_stream_window_size(WINDOW_BYTES);
    if address.tls {
        let mut tls = match &credentials.ca {
            Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read_pem(ca)?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some((certificate, key)) = &credentials.certificate {
            tls = tls.identity(Identity::from_pem(read_pem(certificate)?, read_pem(key)?));
        }
        endpoint = endpoint.tls_config(tls).map_err(wrong)?;
    }
    Ok(endpoint)
}

async fn stream(
    client: &mut FlightSqlServiceClient<Channel>,
    text: &str,
    mut each: impl FnMut(&SchemaRef, RecordBatch) -> Result<()>,
) -> Result<SchemaRef> {
    let info = client.execute(text.to_owned(), None).await.map_err(from_flight)?;
    let mut schema = None;
    for endpoint in info.endpoint.clone() {
        let Some(ticket) = endpoint.ticket else {
            return Err(Error::Refused("the server gave an answer without a ticket".into()));
        };
        let mut rows = client.do_get(ticket).await.map_err(from_flight)?;
        while let Some(batch) = rows.try_next().await.map_err(from_flight)? {
            each(schema.get_or_insert_with(|| batch.schema()), batch)?;
        }
        schema = schema.or_else(|| rows.schema().cloned());
    }
    match schema {
        Some(schema) => Ok(schema),
        None => Ok(info.try_decode_schema().map_err(|e| from_flight(e.into()))?.into()),
    }
}

fn from_flight(failed: FlightError) -> Error {
    match failed {
        FlightError::Tonic(status) => error(&status),
        other => Error::Unavailable(other.to_string()),
    }
}

/// An error and what caused it: the transport's own text says only that something failed.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(at) = cause {
        let said = at.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = at.source();
    }
    text
}
