//! Amazon S3, and what speaks it.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use super::{Place, PlaceOptions};
use crate::address::Address;

/// Where the tools of Amazon are told of an endpoint, beside what the library reads.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

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
        let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let given = options.s3_endpoint.clone();
        if let Some(endpoint) = given.or_else(|| ENDPOINT_VARIABLES.iter().find_map(variable)) {
            builder = builder.with_endpoint(endpoint);
        }
        // Who gives an endpoint without TLS means it.
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
            builder = builder.with_allow_http(true);
        }
        if !options.signs {
            builder = builder.with_skip_signature(true);
        }
        Ok(Arc::new(builder.build()?))
    }
}
