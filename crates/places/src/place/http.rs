//! Servers of HTTP: an address is an object, and nothing is listed.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use url::Url;

use super::direct::Direct;
use super::{Place, PlaceOptions};
use crate::address::Address;

/// `http://host/path` and `https://host/path`.
pub struct Http;

impl Place for Http {
    fn schemes(&self) -> &'static [&'static str] {
        &["https", "http"]
    }

    fn lists(&self) -> bool {
        false
    }

    /// The store has the query of the address, and all of the address but its path.
    fn open(
        &self,
        address: &Address<'_>,
        options: &PlaceOptions,
    ) -> object_store::Result<Arc<dyn ObjectStore>> {
        let fail = |source: url::ParseError| object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(source),
        };
        let mut root = Url::parse(address.text).map_err(fail)?;
        root.set_path("/");
        root.set_fragment(None);
        let client = options.client().with_allow_http(root.scheme() == "http");
        let mut builder = HttpBuilder::new()
            .with_url(root)
            .with_retry(options.retry())
            .with_client_options(client);
        if !options.follows_redirects {
            builder = builder.with_http_connector(Direct);
        }
        Ok(Arc::new(builder.build()?))
    }

    fn key(&self, address: &Address<'_>) -> Result<Path, String> {
        let url = Url::parse(address.text).map_err(|e| e.to_string())?;
        Path::from_url_path(url.path()).map_err(|e| e.to_string())
    }
}
