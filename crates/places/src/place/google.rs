//! Google Cloud Storage.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::gcp::GoogleCloudStorageBuilder;

use super::direct::Direct;
use super::{Place, PlaceOptions};
use crate::address::Address;

/// `gs://bucket/key`.
pub struct Google;

impl Place for Google {
    fn schemes(&self) -> &'static [&'static str] {
        &["gs"]
    }

    fn lists(&self) -> bool {
        true
    }

    fn open(
        &self,
        address: &Address<'_>,
        options: &PlaceOptions,
    ) -> object_store::Result<Arc<dyn ObjectStore>> {
        let mut builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(address.authority)
            .with_skip_signature(!options.signs)
            .with_retry(options.retry())
            .with_client_options(options.client());
        if !options.follows_redirects {
            builder = builder.with_http_connector(Direct);
        }
        Ok(Arc::new(builder.build()?))
    }
}
