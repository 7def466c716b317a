//! Serves a folder, whose folders are buckets: `object-server 127.0.0.1:9000 FOLDER [MILLISECONDS [BITS]]`, over a line with a
//! round trip of so long and so many bits a second.

use std::path::PathBuf;
use std::time::Duration;

use coload_object_server::{Line, ObjectServer};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:9000".to_owned());
    let server = ObjectServer::start_at(&address, args.next().map(PathBuf::from))?;
    if let Some(milliseconds) = args.next() {
        let number = |text: &str| text.parse::<f64>().map_err(std::io::Error::other);
        let bits = args.next().map_or(Ok(0.0), |bits| number(&bits))?;
        let round_trip = Duration::try_from_secs_f64(number(&milliseconds)? / 1000.0);
        server.answer_over(Line::new(bits, round_trip.map_err(std::io::Error::other)?));
    }
    loop {
        std::thread::park();
    }
}
