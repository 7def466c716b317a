//! Serves a folder, whose folders are buckets: `object-server 127.0.0.1:9000 FOLDER [MILLISECONDS]`; each answer takes so
//! long.

use std::path::PathBuf;
use std::time::Duration;

use coload_object_server::{Fault, ObjectServer};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:9000".to_owned());
    let server = ObjectServer::start_at(&address, args.next().map(PathBuf::from))?;
    if let Some(wait) = args.next().and_then(|text| text.parse().ok()).map(Duration::from_millis) {
        server.faults().set(move |_| Some(Fault::Slow(wait)));
    }
    loop {
        std::thread::park();
    }
}
