//! ListObjectsV2: pages of keys, and of the folders below a prefix.

use std::fmt::Write;

use crate::objects::Objects;
use crate::request::Request;

/// Keys of a page, if nobody asks for fewer.
const KEYS_MAX: usize = 1000;

/// A page of the list of a bucket.
pub fn list(objects: &Objects, bucket: &str, request: &Request) -> String {
    let prefix = request.query("prefix").unwrap_or_default();
    let delimiter = request.query("delimiter").filter(|text| !text.is_empty());
    let after = request.query("continuation-token").or(request.query("start-after"));
    let most = request.query("max-keys").and_then(|text| text.parse().ok()).unwrap_or(KEYS_MAX);
    let in_bucket = format!("{bucket}/");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>");
    let (mut count, mut last, mut folders) = (0, String::new(), Vec::<String>::new());
    let mut is_cut = false;
    for path in objects.paths(&format!("{in_bucket}{prefix}")) {
        let key = &path[in_bucket.len()..];
        if after.is_some_and(|after| key <= after) {
            continue;
        }
        if count == most.min(KEYS_MAX) {
            is_cut = true;
            break;
        }
        last = key.to_owned();
        let below = delimiter.and_then(|text| {
            let rest = &key[prefix.len()..];
            rest.find(text).map(|at| format!("{prefix}{}", &rest[..at + text.len()]))
        });
        if let Some(folder) = below {
            if folders.last() != Some(&folder) {
                folders.push(folder);
                count += 1;
            }
            continue;
        }
        let Some(object) = objects.get(&path) else { continue };
        count += 1;
        let etag = match objects.lists_etags {
            true => format!("<ETag>{}</ETag>", escape(&object.etag)),
            false => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<Contents><Key>{}</Key><LastModified>2026-11-24T00:00:00.250Z</LastModified>{etag}<Size>{}</Size>\
             <StorageClass>STANDARD</StorageClass></Contents>",
            escape(key),
            object.bytes
        );
    }
    for folder in folders {
        let _ =
            write!(out, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(&folder));
    }
    let _ = write!(out, "<KeyCount>{count}</KeyCount><IsTruncated>{is_cut}</IsTruncated>");
    if is_cut {
        let _ = write!(out, "<NextContinuationToken>{}</NextContinuationToken>", escape(&last));
    }
    out + "</ListBucketResult>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
