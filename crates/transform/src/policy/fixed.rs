//! All columns on one side.
//!
//! Source: seed 000, section 5.1 (SLa and SLn).

use super::{Estimates, Policy, placed};
use crate::{Mix, Placement};

/// Places all columns on the client.
#[derive(Debug, Clone, Copy)]
pub struct OnClient;

/// All on the server; the client parses.
#[derive(Debug, Clone, Copy)]
pub struct OnServer;

impl Policy for OnClient {
    fn name(&self) -> &'static str {
        "all"
    }

    fn about(&self) -> &'static str {
        "The client"
    }

    fn choose(&self, estimates: &Estimates<'_>) -> Mix {
        placed(vec![Placement::Client; estimates.columns.len()])
    }
}

impl Policy for OnServer {
    fn name(&self) -> &'static str {
        "none"
    }

    fn about(&self) -> &'static str {
        "The server; the client parses"
    }

    fn choose(&self, estimates: &Estimates<'_>) -> Mix {
        placed(vec![Placement::Server; estimates.columns.len()])
    }
}
