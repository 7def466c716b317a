//! Places: what opens the store that an address leads to. One file each.

mod azure;
mod direct;
mod google;
mod http;
mod s3;

use std::sync::Arc;
use std::time::Duration;

use coload_types::{Error, Result};
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use crate::address::Address;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections to one host that are kept while nobody uses them.
const IDLE_CONNECTIONS_MAX: usize = 32;

/// What a user says of places. Credentials come from the environment.
#[derive(Debug, Clone)]
pub struct PlaceOptions {
    /// Address of the server that speaks S3, in place of Amazon's.
    pub s3_endpoint: Option<String>,
    /// Whether requests to S3 bear a signature: not for what everybody may read, where there are no credentials.
    pub signs: bool,
    /// Whether to go where a server sends on to.
    pub follows_redirects: bool,
    /// Is told what is waited for, when that takes long.
    pub on_wait: Option<fn(&str)>,
    /// A server that sends nothing for so long is taken to be gone.
    pub silence_max: Duration,
    /// How long a request is tried again though nothing comes.
    pub retry_max: Duration,
}

impl Default for PlaceOptions {
    fn default() -> Self {
        PlaceOptions {
            s3_endpoint: None,
            signs: true,
            follows_redirects: true,
            on_wait: None,
            silence_max: Duration::from_secs(30),
            retry_max: Duration::from_secs(60),
        }
    }
}

impl PlaceOptions {
    /// Who asks tries again by himself, so that he knows what went wrong.
    fn retry(&self) -> RetryConfig {
        RetryConfig { max_retries: 0, ..RetryConfig::default() }
    }

    /// A request takes as long as its bytes come: how long none may come is told by who reads them.
    fn client(&self) -> ClientOptions {
        ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
    }
}

/// A kind of place.
pub trait Place: Sync {
    /// The schemes of its addresses.
    fn schemes(&self) -> &'static [&'static str];

    /// Whether it tells which objects there are.
    fn lists(&self) -> bool;

    /// Opens the store that an address leads to; no request is made.
    ///
    /// # Errors
    /// What is wrong with the address or the environment.
    fn open(
        &self,
        address: &Address<'_>,
        options: &PlaceOptions,
    ) -> object_store::Result<Arc<dyn ObjectStore>>;

    /// The key of an address, as its store has it.
    ///
    /// # Errors
    /// What is wrong with the key.
    fn key(&self, address: &Address<'_>) -> std::result::Result<object_store::path::Path, String> {
        object_store::path::Path::parse(address.key).map_err(|e| e.to_string())
    }
}

/// All kinds of places.
pub static PLACES: [&dyn Place; 4] = [&s3::S3, &http::Http, &google::Google, &azure::Azure];

/// Opens the store that an address leads to.
///
/// # Errors
/// `Invalid` when the address or the environment is wrong.
pub fn open(address: &Address<'_>, options: &PlaceOptions) -> Result<Arc<dyn ObjectStore>> {
    let wrong = |error| {
        let error: Box<dyn std::error::Error> = match error {
            object_store::Error::Generic { source, .. } => source,
            error => error.into(),
        };
        Error::Invalid(format!("{}: {error}", address.shown()))
    };
    address.place.open(address, options).map_err(wrong)
}
