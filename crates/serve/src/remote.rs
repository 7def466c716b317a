//! A server, seen from a client: statements there, rows here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::decode::DecodedPayload;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::{FlightInfo, HandshakeRequest};
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

use crate::answer_rows::{AnswerRows, Teller};
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
    flight: FlightServiceClient<Channel>,
    token: Option<String>,
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
        let (flight, token) = runtime.block_on(connect(&address, credentials))?;
        Ok(Remote { runtime, flight, token, address })
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
        let mut rows = self.start(text);
        let schema = rows.schema()?;
        Ok((schema, rows.collect::<Result<_>>()?))
    }

    /// Starts one statement; its rows are taken as they come. Dropped or cancelled before its end, it ends at the server too.
    pub fn start(&self, text: &str) -> AnswerRows {
        let (mut client, text) = (self.client(), text.to_owned());
        AnswerRows::start(self.runtime.handle(), |teller| async move {
            let info = client.execute(text, None).await.map_err(from_flight)?;
            stream(client, info, teller).await
        })
    }

    /// The same, for a statement with parameters: a column of the batch for each, and one row.
    pub fn start_with(&self, text: &str, parameters: RecordBatch) -> AnswerRows {
        let (mut client, text) = (self.client(), text.to_owned());
        AnswerRows::start(self.runtime.handle(), |teller| async move {
            let mut prepared = client.prepare(text, None).await.map_err(from_flight)?;
            prepared.set_parameters(parameters).map_err(from_flight)?;
            let info = prepared.execute().await.map_err(from_flight)?;
            let streamed = stream(client, info, teller).await;
            let closed = prepared.close().await.map_err(from_flight);
            streamed.and(closed)
        })
    }

    /// Starts an INSERT, UPDATE or DELETE for each row of a batch, whose columns are its parameters; the answer is the number of
    /// rows that were written.
    pub fn start_for_each(&self, text: &str, rows: RecordBatch) -> AnswerRows {
        let (mut client, text) = (self.client(), text.to_owned());
        AnswerRows::start(self.runtime.handle(), |teller| async move {
            let mut prepared = client.prepare(text, None).await.map_err(from_flight)?;
            prepared.set_parameters(rows).map_err(from_flight)?;
            let count = prepared.execute_update().await.map_err(from_flight)?;
            prepared.close().await.map_err(from_flight)?;
            teller.count(u64::try_from(count).unwrap_or(0)).await
        })
    }

    fn client(&self) -> FlightSqlServiceClient<Channel> {
        let mut client = FlightSqlServiceClient::new_from_inner(self.flight.clone());
        if let Some(token) = &self.token {
            client.set_token(token.clone());
        }
        client
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

pub(crate) async fn connect(
    address: &Address,
    credentials: &Credentials,
) -> Result<(FlightServiceClient<Channel>, Option<String>)> {
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
    Ok((flight, token))
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
    mut client: FlightSqlServiceClient<Channel>,
    info: FlightInfo,
    teller: Teller,
) -> Result<()> {
    let mut has_schema = false;
    for endpoint in info.endpoint.clone() {
        let Some(ticket) = endpoint.ticket else {
            return Err(Error::Refused("the server gave an answer without a ticket".into()));
        };
        // The columns come before the first rows, which may take long.
        let mut messages = client.do_get(ticket).await.map_err(from_flight)?.into_inner();
        while let Some(message) = messages.try_next().await.map_err(from_flight)? {
            let heard = match message.payload {
                DecodedPayload::None => Some(()),
                DecodedPayload::Schema(_) if has_schema => Some(()),
                DecodedPayload::Schema(schema) => {
                    has_schema = true;
                    teller.schema(schema).await
                }
                DecodedPayload::RecordBatch(batch) => teller.rows(batch).await,
            };
            if heard.is_none() {
                return Ok(());
            }
        }
    }
    if !has_schema {
        let schema = info.try_decode_schema().map_err(|e| from_flight(e.into()))?;
        teller.schema(Arc::new(schema)).await;
    }
    Ok(())
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
