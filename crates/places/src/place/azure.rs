//! Azure Blob Storage: the account comes from the environment, by the names of the library and of Azure's own program.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use super::direct::Direct;
use super::{Place, PlaceOptions};
use crate::address::Address;

/// What Azure's program is told by, where the library has another name.
const VARIABLES: [(&str, AzureConfigKey); 3] = [
    ("AZURE_STORAGE_ACCOUNT", AzureConfigKey::AccountName),
    ("AZURE_STORAGE_KEY", AzureConfigKey::AccessKey),
    ("AZURE_STORAGE_SERVICE_ENDPOINT", AzureConfigKey::Endpoint),
];
/// The same of a whole account, as `AccountName=...;AccountKey=...`.
const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";
const CONNECTION_PARTS: [(&str, AzureConfigKey); 4] = [
    ("AccountName", AzureConfigKey::AccountName),
    ("AccountKey", AzureConfigKey::AccessKey),
    ("SharedAccessSignature", AzureConfigKey::SasKey),
    ("BlobEndpoint", AzureConfigKey::Endpoint),
];

/// What is told where none of them is there.
const NO_ACCOUNT: &str = "whose account is it? (AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or \
    AZURE_STORAGE_CONNECTION_STRING, in the environment)";

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
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut builder = MicrosoftAzureBuilder::from_env();
        let named = VARIABLES.into_iter().filter_map(|(name, key)| Some((key, environment(name)?)));
        let whole = environment(CONNECTION_STRING).unwrap_or_default();
        for (key, value) in named.chain(connection(&whole)) {
            if builder.get_config_value(&key).is_none() {
                builder = builder.with_config(key, value);
            }
        }
        let is_emulated = builder.get_config_value(&AzureConfigKey::UseEmulator);
        if builder.get_config_value(&AzureConfigKey::AccountName).is_none()
            && is_emulated.as_deref() != Some("true")
        {
            return Err(object_store::Error::Generic { store: "Azure", source: NO_ACCOUNT.into() });
        }
        // Who gives an endpoint without TLS means it.
        let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
        if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
            builder = builder.with_allow_http(true);
        }
        builder = builder
            .with_container_name(address.authority)
            .with_retry(options.retry())
            .with_client_options(options.client());
        if !options.follows_redirects {
            builder = builder.with_http_connector(Direct);
        }
        Ok(Arc::new(builder.build()?))
    }
}

/// What a connection string says of blobs; values may contain `=`.
fn connection(whole: &str) -> impl Iterator<Item = (AzureConfigKey, String)> {
    let parts = whole.split(';').filter_map(|part| part.split_once('='));
    parts.filter_map(|(name, value)| {
        let known =
            CONNECTION_PARTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        known.map(|(_, key)| (*key, value.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_is_cut_at_its_first_equals() {
        let whole = "DefaultEndpointsProtocol=https; accountname=a;AccountKey=k==;BlobEndpoint=http://x/a;;odd";
        let found: Vec<_> =
            connection(whole).map(|(key, value)| (key.as_ref().to_owned(), value)).collect();
        let expected = [
            ("azure_storage_account_name", "a"),
            ("azure_storage_account_key", "k=="),
            ("azure_storage_endpoint", "http://x/a"),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
