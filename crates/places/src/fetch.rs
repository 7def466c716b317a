//! One part of an object: asked for with the version that it must be of, and again where that helps. An answer that ends
//! early goes on where it ended.

use std::ops::Range;

use coload_types::display::write_value;
use coload_types::{DataType, Result, Value};
use futures::StreamExt;
use object_store::{
    Error as StoreError, GetOptions, GetRange, GetResult, ObjectStore, ObjectStoreExt,
};
use tokio::time::timeout;

use crate::again::{Attempts, Trouble, ask};
use crate::object::{Object, ObjectRef, Version};
use crate::words;

/// The bytes of a part, in a buffer that may be another's.
///
/// # Errors
/// `Unavailable` when the object cannot be read, or is another than the one that was found.
pub async fn fetch(of: &ObjectRef, range: Range<u64>, mut buffer: Vec<u8>) -> Result<Vec<u8>> {
    let wanted = (range.end - range.start) as usize;
    buffer.clear();
    buffer.reserve_exact(wanted);
    let mut attempts = Attempts::new(&of.all.options);
    loop {
        let before = buffer.len();
        let from = range.start + before as u64;
        let trouble = match fetch_some(of, from..range.end, &mut buffer).await {
            Ok(()) => return Ok(buffer),
            Err(trouble) => trouble,
        };
        if buffer.len() > before {
            attempts.got_on();
        }
        let is_final = match &trouble {
            Trouble::Is(_) => true,
            Trouble::Refused(error) => !words::may_pass(error),
            Trouble::Cut | Trouble::Silent => false,
        };
        if is_final || !attempts.wait(&trouble).await {
            return Err(told(of, trouble).await);
        }
    }
}

/// Asks once; what comes is behind what is in the buffer.
async fn fetch_some(
    of: &ObjectRef,
    range: Range<u64>,
    buffer: &mut Vec<u8>,
) -> std::result::Result<(), Trouble> {
    let object = of.object();
    let options = &of.all.options;
    let asked = store_of(of).get_opts(&object.key, pinned(object, range.clone()));
    let answer = timeout(options.silence_max, asked).await.map_err(|_| Trouble::Silent)?;
    let answer = answer.map_err(Trouble::Refused)?;
    check_version(object, &answer).map_err(Trouble::Is)?;
    let mut left = (range.end - range.start) as usize;
    let mut body = answer.into_stream();
    while left > 0 {
        match timeout(options.silence_max, body.next()).await {
            Err(_) => return Err(Trouble::Silent),
            Ok(None | Some(Err(_))) => return Err(Trouble::Cut),
            Ok(Some(Ok(bytes))) => {
                let taken = bytes.len().min(left);
                buffer.extend_from_slice(&bytes[..taken]);
                left -= taken;
            }
        }
    }
    Ok(())
}

fn store_of(of: &ObjectRef) -> &dyn ObjectStore {
    &*of.all.stores[of.object().store as usize]
}

/// A request for a part of the version that was found.
fn pinned(object: &Object, range: Range<u64>) -> GetOptions {
    // No weak one is equal to any, as servers compare them here.
    let strong = |etag: &&str| !etag.starts_with("W/");
    let if_match = object.etag().filter(strong).map(str::to_owned);
    GetOptions { if_match, range: Some(GetRange::Bounded(range)), ..GetOptions::default() }
}

/// Servers that know nothing of conditions give what they have.
fn check_version(object: &Object, answer: &GetResult) -> Result<()> {
    let now = Version::of(&answer.meta);
    match object.is(answer.meta.size, &now) {
        true => Ok(()),
        false => Err(changed(object, answer.meta.size, &now)),
    }
}

fn changed(object: &Object, bytes: u64, now: &Version) -> coload_types::Error {
    let shown = |bytes: u64, etag: Option<&str>, version: &Version| match etag {
        Some(etag) => format!("ETag {etag} of {bytes} bytes"),
        None => {
            let mut time = Vec::new();
            let seconds = version.modified_us - version.modified_us.rem_euclid(1_000_000);
            write_value(&Value::Int(seconds), DataType::Timestamp, &mut time);
            format!("{bytes} bytes written at {} UTC", String::from_utf8_lossy(&time))
        }
    };
    let before = shown(object.bytes, object.etag(), &object.version);
    words::changed(&object.address, &before, &shown(bytes, now.etag.as_deref(), now))
}

/// What is told when there is no use to ask again.
async fn told(of: &ObjectRef, trouble: Trouble) -> coload_types::Error {
    let object = of.object();
    match &trouble {
        Trouble::Refused(StoreError::NotFound { .. }) => return words::gone(&object.address),
        // What got shorter has no such part, which servers tell in more ways than one.
        Trouble::Refused(StoreError::Precondition { .. } | StoreError::Generic { .. }) => {
            if let Some(told) = look_again(of).await {
                return told;
            }
        }
        _ => {}
    }
    trouble.told(&object.address, &of.all.options)
}

/// What is told of an object that is not what it was; `None` if it is, or nobody knows.
async fn look_again(of: &ObjectRef) -> Option<coload_types::Error> {
    let object = of.object();
    match ask(&of.all.options, || store_of(of).head(&object.key)).await {
        Err(Trouble::Refused(StoreError::NotFound { .. })) => Some(words::gone(&object.address)),
        Err(_) => None,
        Ok(meta) => {
            let now = Version::of(&meta);
            (!object.is(meta.size, &now)).then(|| changed(object, meta.size, &now))
        }
    }
}
