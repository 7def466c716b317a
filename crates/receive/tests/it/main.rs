//! Loads over loopback: client and server in one process.
#![allow(clippy::unwrap_used, missing_docs)]

mod placements;
mod setup;
