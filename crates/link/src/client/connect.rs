//! Makes a connection: an HTTP/2 channel, with TLS or without, and the exchange on it.

use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::flight_service_client::FlightServiceClient;
use coload_types::{Error, Result};
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Streaming};

use crate::status::error_from_status;
use crate::{CONNECTION_WINDOW_BYTES, GRPC_BYTES_MAX, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW_BYTES};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that says nothing for so long is asked, and given up when it does not answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// TLS of a client; all in PEM form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// Root of the server's certificate; without it those of the system.
    pub ca: Option<Vec<u8>>,
    /// The client's own certificate and key.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// Connects.
///
/// # Errors
/// `Invalid` for an address or certificate that is none, `Unavailable` when nobody answers.
pub async fn connect(address: &str, tls: Option<&ClientTls>) -> Result<Channel> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|e| Error::Invalid(format!("{address} is no address (host:port): {e}")))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    if let Some(tls) = tls {
        let mut config = match &tls.ca {
            Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some((certificate, key)) = &tls.certificate {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint = endpoint
            .tls_config(config)
            .map_err(|e| Error::Invalid(format!("a certificate or key is wrong: {}", why(&e))))?;
    }
    endpoint
        .connect()
        .await
        .map_err(|e| Error::Unavailable(format!("cannot connect to {address}: {}", why(&e))))
}

/// What the transport's error comes from: its own text says only that something failed.
fn why(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Begins an exchange: `frames` go out, what the server says comes back.
///
/// # Errors
/// `Refused` when the server does not want it, `Unavailable` when it is gone.
pub async fn exchange(
    channel: Channel,
    frames: tokio::sync::mpsc::Receiver<FlightData>,
    authorization: Option<&str>,
    address: &str,
) -> Result<Streaming<FlightData>> {
    let mut client = FlightServiceClient::new(channel)
        .max_decoding_message_size(GRPC_BYTES_MAX)
        .max_encoding_message_size(GRPC_BYTES_MAX);
    let stream = futures::stream::unfold(frames, |mut frames| async move {
        frames.recv().await.map(|frame| (frame, frames))
    });
    let mut request = Request::new(stream);
    if let Some(authorization) = authorization {
        let value = MetadataValue::try_from(authorization)
            .map_err(|_| Error::Invalid("the password or token holds control characters".into()))?;
        request.metadata_mut().insert("authorization", value);
    }
    let answer = client.do_exchange(request).await;
    Ok(answer.map_err(|s| error_from_status(address, &s))?.into_inner())
}
