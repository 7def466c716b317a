//! Connections to other leaves, and the rows that come over them.
//!
//! A connection is made when it is needed first, and kept. One that breaks is made anew by the next question. Who drops
//! the rows of a question ends it at the leaf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_flight::Ticket;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::Any;
use coload_threads::lock;
use coload_types::{Error, Result};
use datafusion::arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use prost::Message;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tonic::Request;
use tonic::transport::Channel;

use super::question::{QUESTION_TYPE, Question};
use crate::database::Owned;
use crate::flight::status::error;
use crate::remote::{Credentials, connect};

/// Batches of a leaf that wait for their reader.
const BATCHES_WAITING: usize = 2;

type Link = (FlightServiceClient<Channel>, Option<String>);

/// Connections to nodes, by their addresses.
pub(super) struct Links {
    credentials: Credentials,
    open: Mutex<HashMap<String, Link>>,
}

/// The rows that a leaf gives, and what brings them.
pub(super) struct LeafRows {
    batches: mpsc::Receiver<Result<RecordBatch>>,
    /// Ends with the rows.
    _task: Owned<()>,
}

impl LeafRows {
    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.batches.recv().await
    }
}

impl Links {
    pub fn new(credentials: Credentials) -> Self {
        Links { credentials, open: Mutex::default() }
    }

    async fn link(&self, address: &str) -> Result<Link> {
        if let Some(link) = lock(&self.open).get(address) {
            return Ok(link.clone());
        }
        let link = connect(&address.parse()?, &self.credentials).await?;
        lock(&self.open).insert(address.to_owned(), link.clone());
        Ok(link)
    }

    fn forget(&self, address: &str) {
        lock(&self.open).remove(address);
    }

    /// Asks a leaf. Its rows come over a connection that lives on `handle`.
    pub fn ask(self: &Arc<Self>, handle: &Handle, address: &str, question: Question) -> LeafRows {
        let (sender, batches) = mpsc::channel(BATCHES_WAITING);
        let (links, address) = (Arc::clone(self), address.to_owned());
        let task = handle.spawn(async move {
            if let Err(error) = links.give(&address, &question, &sender).await {
                if matches!(error, Error::Unavailable(_) | Error::Refused(_)) {
                    links.forget(&address);
                }
                // Whoever asked may have gone.
                let _ = sender.send(Err(named(error, &address))).await;
            }
        });
        LeafRows { batches, _task: Owned::of(task) }
    }

    async fn give(
        &self,
        address: &str,
        question: &Question,
        to: &mpsc::Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let (mut client, token) = self.link(address).await?;
        let any = Any { type_url: QUESTION_TYPE.into(), value: question.encode()?.into() };
        let mut request = Request::new(Ticket::new(any.encode_to_vec()));
        if let Some(token) = token {
            let header = format!("Bearer {token}").parse();
            let header = header.map_err(|_| Error::Invalid("a token that is no header".into()))?;
            request.metadata_mut().insert("authorization", header);
        }
        let answer = client.do_get(request).await.map_err(|status| error(&status))?;
        let messages = answer.into_inner().map_err(FlightError::from);
        let mut messages = FlightDataDecoder::new(messages);
        while let Some(message) = messages.try_next().await.map_err(from_flight)? {
            let DecodedPayload::RecordBatch(batch) = message.payload else { continue };
            if to.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn from_flight(failed: FlightError) -> Error {
    match failed {
        FlightError::Tonic(status) => error(&status),
        other => Error::Unavailable(other.to_string()),
    }
}

/// The error with the leaf that it is of.
fn named(error: Error, address: &str) -> Error {
    let of = |text: String| format!("leaf {address}: {text}");
    match error {
        Error::Invalid(text) => Error::Invalid(of(text)),
        Error::Limit(text) => Error::Limit(of(text)),
        Error::Unavailable(text) => Error::Unavailable(of(text)),
        Error::Refused(text) => Error::Refused(of(text)),
        Error::Corrupt(text) => Error::Corrupt(of(text)),
        input @ Error::Input { .. } => input,
    }
}
