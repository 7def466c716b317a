//! Amazon S3, and what speaks it.
//!
//! As with Amazon's tools, the environment comes before profiles, and profiles before the roles of containers and machines.

mod profile;
mod program;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use super::direct::Direct;
use super::{Place, PlaceOptions};
use crate::address::Address;
use profile::{Credentials, Profile};
use program::ProgramCredentials;

/// Where the tools of Amazon are told of an endpoint, beside what the library reads.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// And of a region.
const REGION_VARIABLES: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
/// What says that credentials come from the environment.
const CREDENTIAL_VARIABLES: [&str; 3] =
    ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/// `s3://bucket/key`.
pub struct S3;

impl Place for S3 {
    fn schemes(&self) -> &'static [&'static str] {
        &["s3", "s3a"]
    }

    fn lists(&self) -> bool {
        true
    }

    fn open(
        &self,
        address: &Address<'_>,
        options: &PlaceOptions,
    ) -> object_store::Result<Arc<dyn ObjectStore>> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(address.authority)
            .with_retry(options.retry())
            .with_client_options(options.client());
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let profile = Profile::find(&environment).map_err(wrong)?.unwrap_or_default();
        if REGION_VARIABLES.into_iter().find_map(environment).is_none()
            && let Some(region) = profile.region()
        {
            builder = builder.with_region(region);
        }
        let of_profile = || match environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
            Some(ignores) if ignores.eq_ignore_ascii_case("true") => None,
            _ => profile.endpoint().map(str::to_owned),
        };
        let given = options.s3_endpoint.clone();
        let given = given.or_else(|| ENDPOINT_VARIABLES.into_iter().find_map(environment));
        if let Some(endpoint) = given.or_else(of_profile) {
            builder = builder.with_endpoint(endpoint);
        }
        if options.signs && CREDENTIAL_VARIABLES.into_iter().find_map(environment).is_none() {
            builder = match profile.credentials().map_err(wrong)? {
                Some(Credentials::Keys { id, secret, token }) => {
                    let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                    token.into_iter().fold(builder, AmazonS3Builder::with_token)
                }
                Some(Credentials::Program(words)) => {
                    builder.with_credentials(Arc::new(ProgramCredentials::new(words)))
                }
                None => builder,
            };
        }
        // Who gives an endpoint without TLS means it.
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
            builder = builder.with_allow_http(true);
        }
        if !options.signs {
            builder = builder.with_skip_signature(true);
        }
        if !options.follows_redirects {
            builder = builder.with_http_connector(Direct);
        }
        Ok(Arc::new(builder.build()?))
    }
}

/// What is wrong with a profile.
fn wrong(what: String) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: what.into() }
}
