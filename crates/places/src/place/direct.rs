//! Connections that go where they were sent, and nowhere else: a server that reads for others must not be sent on to
//! addresses that these may not name.

use object_store::client::{ClientConfigKey, ClientOptions, HttpClient, HttpConnector};
use reqwest::Client;
use reqwest::redirect::Policy;

use super::{CONNECT_TIMEOUT, IDLE_CONNECTIONS_MAX};

/// Makes clients that do not follow redirections.
#[derive(Debug)]
pub struct Direct;

impl HttpConnector for Direct {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let client = Client::builder()
            .redirect(Policy::none())
            .https_only(allows_http.as_deref() != Some("true"))
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build();
        let wrong =
            |e: reqwest::Error| object_store::Error::Generic { store: "HTTP", source: e.into() };
        Ok(HttpClient::new(client.map_err(wrong)?))
    }
}
