//! Serves a folder, whose folders are buckets: `object-server 127.0.0.1:9000 FOLDER`.

use std::path::PathBuf;

use coload_object_server::ObjectServer;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:9000".to_owned());
    let _server = ObjectServer::start_at(&address, args.next().map(PathBuf::from))?;
    loop {
        std::thread::park();
    }
}
