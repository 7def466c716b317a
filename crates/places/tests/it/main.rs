//! Objects of a server in this process: found, read, and what is told when something goes wrong.
#![allow(clippy::unwrap_used)]

mod faults;
mod finding;
mod folder;
mod reading;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use coload_object_server::ObjectServer;
use coload_places::{ObjectRef, Objects, PlaceOptions, find_objects};

/// Options for a server in this process. Requests are tried again for a short time only.
pub fn options(server: &ObjectServer) -> PlaceOptions {
    PlaceOptions {
        s3_endpoint: Some(server.url()),
        signs: false,
        silence_max: Duration::from_millis(400),
        retry_max: Duration::from_secs(2),
        ..PlaceOptions::default()
    }
}

/// The objects of an address.
pub fn find(server: &ObjectServer, address: &str) -> coload_types::Result<Arc<Objects>> {
    find_objects(&[address], &options(server)).map(|(objects, _)| objects)
}

/// The first object of an address.
pub fn first(server: &ObjectServer, address: &str) -> ObjectRef {
    find(server, address).unwrap().at(0)
}

/// Bytes that tell their places.
pub fn numbered(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect()
}
