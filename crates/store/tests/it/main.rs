//! Tests of a store as its users see it: through files, processes and crashes.
//!
//! The segments that `support` writes prove by their rows whose they are.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod child;
mod conflicts;
mod corruption;
mod crash;
mod deleted;
mod example;
mod faults;
mod give_way;
mod identity;
mod indexes;
mod loads;
mod processes;
mod readers;
mod remembered;
mod reseal;
mod support;
mod tables;
mod verify;
