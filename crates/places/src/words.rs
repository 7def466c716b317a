//! What is told of objects: with their addresses, and what to do.

use std::error::Error as _;

use coload_types::Error;
use object_store::Error as StoreError;

/// Where machines of Amazon ask for credentials.
const ROLES: &str = "169.254.169.254";
/// Where machines of Google do.
const GOOGLE_ROLES: &str = "metadata.google.internal";

/// Whether credentials were asked of a machine, for nothing else has some.
fn asks_a_machine(cause: &str) -> bool {
    [ROLES, GOOGLE_ROLES].iter().any(|host| cause.contains(host))
}

/// What went wrong with a request for an object or a list of them.
pub fn request_error(address: &str, error: &StoreError) -> Error {
    let cause = without_query(&cause(error));
    if asks_a_machine(&cause) {
        return no_credentials(address, &cause);
    }
    match (error, status(&cause)) {
        (StoreError::NotFound { .. }, _) | (_, Some(404)) => {
            Error::Invalid(format!("{address}: there is no such object or bucket"))
        }
        (StoreError::PermissionDenied { .. }, _) | (_, Some(403)) => Error::Invalid(format!(
            "{address}: the server denies it (are the credentials in the environment those of somebody who may read it?): \
             {cause}"
        )),
        (StoreError::Unauthenticated { .. }, _) | (_, Some(401)) => no_credentials(address, &cause),
        (StoreError::InvalidPath { .. }, _) => Error::Invalid(format!(
            "{address}: {error} (names with empty parts, as in a//b, are not read)"
        )),
        (_, Some(301 | 302 | 303 | 307 | 308)) => Error::Invalid(format!(
            "{address}: it is at another address, to which a server does not follow (name that one; it has to be one of those \
             that the server may read, --external): {cause}"
        )),
        _ if WITHOUT_PARTS.iter().any(|text| cause.contains(text)) => Error::Invalid(format!(
            "{address}: the server gives no parts of it, only all (fetch it, or load it from a pipe: curl -s URL | \
             coload load -)"
        )),
        _ => Error::Unavailable(format!("cannot read {address}: {cause}")),
    }
}

/// What the library says of servers that do not know `Range`.
const WITHOUT_PARTS: [&str; 2] = ["non-partial response", "Range request not supported"];

fn no_credentials(address: &str, cause: &str) -> Error {
    let how = match address.split_once("://") {
        Some(("gs", _)) => {
            "the path of a key file in GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS, or that of `gcloud auth \
             application-default login`; --no-sign-request if everybody may read it"
        }
        Some(("s3", _)) => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or a profile in ~/.aws/credentials; \
             --no-sign-request if everybody may read it"
        }
        Some(("az", _)) => {
            "AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_CONNECTION_STRING, in \
             the environment"
        }
        _ => "of an address of HTTP, those that are part of it, as in a URL that was signed",
    };
    Error::Invalid(format!("{address}: the server wants credentials ({how}): {cause}"))
}

/// Whether a request may go well later: the server says so, or was not reached.
pub fn may_pass(error: &StoreError) -> bool {
    let cause = cause(error);
    let is_final = asks_a_machine(&cause) || WITHOUT_PARTS.iter().any(|text| cause.contains(text));
    match status(&cause) {
        Some(status) => status >= 500 || matches!(status, 408 | 425 | 429),
        None => matches!(error, StoreError::Generic { .. }) && !is_final,
    }
}

/// The status of an answer, which the library gives as text only.
fn status(cause: &str) -> Option<u16> {
    let (_, after) = cause.split_once("status code: ")?;
    after.split_whitespace().next()?.parse().ok()
}

/// The object that was found is not there any more.
pub fn gone(address: &str) -> Error {
    Error::Unavailable(format!(
        "{address}: the object was there when the load was planned and is gone; nothing was loaded"
    ))
}

/// The object is another than the one that was found.
pub fn changed(address: &str, before: &str, now: &str) -> Error {
    Error::Unavailable(format!(
        "{address}: the object changed while it was read: it was {before} when the load was planned and is {now}; \
         nothing was loaded, load it again when it is whole"
    ))
}

/// A server does not answer.
pub fn silent(address: &str, seconds: f64) -> Error {
    Error::Unavailable(format!(
        "{address}: the server has sent nothing for {seconds} s, again and again; nothing was loaded"
    ))
}

/// A server ends its answers early.
pub fn cut(address: &str) -> Error {
    Error::Unavailable(format!(
        "{address}: the server's answers end before all is there, again and again; nothing was loaded"
    ))
}

/// What is told while a request is made again and again.
pub fn waiting(error: &StoreError, seconds: u64) -> String {
    format!("trying again for up to {seconds} s: {}", without_query(&cause(error)))
}

/// The innermost text: those around it name the same address again.
fn cause(error: &StoreError) -> String {
    let Some(mut source) = error.source() else { return error.to_string() };
    let mut text = source.to_string();
    while let Some(inner) = source.source() {
        let told = inner.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        source = inner;
    }
    text
}

/// A text whose addresses have no queries: they may be signatures.
fn without_query(text: &str) -> String {
    let word = |word: &str| match (word.contains("://"), word.split_once('?')) {
        (true, Some((address, _))) => format!("{address}?..."),
        _ => word.to_owned(),
    };
    let text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_are_missing_are_those_of_the_place() {
        let told = |address: &str| no_credentials(address, "cause").to_string();
        for (address, hint) in [
            ("gs://b/k", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("s3://b/k", "AWS_ACCESS_KEY_ID"),
            ("az://b/k", "AZURE_STORAGE_KEY"),
            ("https://h/k", "signed"),
        ] {
            let text = told(address);
            assert!(text.starts_with(address) && text.contains(hint), "{text}");
            assert!(text.matches("_KEY").count() < 3 || address.starts_with("s3"), "{text}");
        }
        let error = StoreError::Generic {
            store: "GCS",
            source: "error sending request for http://metadata.google.internal/computeMetadata"
                .into(),
        };
        let text = request_error("gs://b/k", &error).to_string();
        assert!(text.contains("gcloud auth"), "{text}");
        assert!(!may_pass(&error));
    }

    #[test]
    fn signatures_are_not_shown() {
        let text = "Error performing GET https://h/a.csv?X-Amz-Signature=abc in 2s\n  - status 503";
        let shown = without_query(text);
        assert_eq!(shown, "Error performing GET https://h/a.csv?... in 2s - status 503");
    }
}
