//! Azure Blob Storage: the account comes from the environment.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::azure::MicrosoftAzureBuilder;

use super::{Place, PlaceOptions};
use crate::address::Address;

/// `az://container/key`.
pub struct Azure;

impl Place for Azure {
    fn schemes(&self) -> &'static [&'static str] {
        &["az"]
    }

    fn lists(&self) -> bool {
        true
    }

    fn open(
        &self,
        address: &Address<'_>,
        options: &PlaceOptions,
    ) -> object_store::Result<Arc<dyn ObjectStore>> {
        let builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(address.authority)
            .with_retry(options.retry())
            .with_client_options(options.client());
        Ok(Arc::new(builder.build()?))
    }
}
