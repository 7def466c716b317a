//! Loads over loopback: client and server in one process.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod adversity;
mod arrow;
mod faults;
mod filters;
mod hostile;
mod identity;
mod keyed;
mod placements;
mod raw;
mod requests;
mod setup;
mod widen;
