//! Flags of inputs in object stores.

use std::time::Duration;

use clap::Args;
use coload::PlaceOptions;

use crate::output::say;

/// Flags of inputs that are objects; credentials come from the environment.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Server that speaks S3, such as http://127.0.0.1:9000 [default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon]
    #[arg(long, value_name = "URL", help_heading = "Object stores")]
    pub s3_endpoint: Option<String>,
    /// Sends no credentials to S3, for what everybody may read
    #[arg(long, help_heading = "Object stores")]
    pub no_sign_request: bool,
    /// Seconds after which a server that sends nothing is taken to be gone
    #[arg(long, value_name = "SECONDS", default_value = "30", help_heading = "Object stores")]
    pub silence: u64,
    /// Seconds to try again while nothing comes
    #[arg(long, value_name = "SECONDS", default_value = "60", help_heading = "Object stores")]
    pub retry: u64,
}

impl PlaceArgs {
    /// What they say.
    pub fn options(&self) -> PlaceOptions {
        PlaceOptions {
            s3_endpoint: self.s3_endpoint.clone(),
            signs: !self.no_sign_request,
            follows_redirects: true,
            on_wait: Some(say),
            silence_max: Duration::from_secs(self.silence),
            retry_max: Duration::from_secs(self.retry),
        }
    }
}
