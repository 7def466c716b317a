//! A server that takes loads and nothing else: what benchmarks and crash tests start.
//!
//! ```text
//!   coload-receive STORE [--listen ADDR] [--load-cpu CORES] [--load-memory BYTES]
//!                  [--load-priority low|normal] [--merge-columns N] [--discard]
//! ```
//!
//! Prints `listening on ADDR` when it is ready. There are no users here: listen on loopback, or in a
//! network of your own.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use coload_receive::{Keep, LoadPriority, Loads, ReceiveOptions, listen, serve_loads};
use coload_store::Store;
use coload_types::{Error, Result};

struct Arguments {
    store: String,
    listen: String,
    options: ReceiveOptions,
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments {
        store: String::new(),
        listen: "127.0.0.1:0".to_owned(),
        options: ReceiveOptions::default(),
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value =
            || given.next().ok_or_else(|| Error::Invalid(format!("{argument} needs a value")));
        match argument.as_str() {
            "--listen" => found.listen = value()?,
            "--load-cpu" => found.options.load_cpu = number(&value()?)?,
            "--load-memory" => found.options.load_memory = number::<usize>(&value()?)?,
            "--load-priority" => {
                found.options.priority = match value()?.as_str() {
                    "low" => LoadPriority::Low,
                    "normal" => LoadPriority::Normal,
                    other => {
                        return Err(Error::Invalid(format!("{other} is neither low nor normal")));
                    }
                }
            }
            "--merge-columns" => found.options.merge_columns = number(&value()?)?,
            "--discard" => found.options.keep = Keep::Nothing,
            other if other.starts_with("--") || !found.store.is_empty() => {
                return Err(Error::Invalid(format!("unknown argument {other}")));
            }
            store => found.store = store.to_owned(),
        }
    }
    if found.store.is_empty() {
        return Err(Error::Invalid("usage: coload-receive STORE [--listen ADDR] ...".into()));
    }
    Ok(found)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::Invalid(format!("{text} is no number")))
}

fn run() -> Result<()> {
    let Arguments { store, listen: address, options } = arguments()?;
    let loads = Loads::open(Store::create_or_open(store)?, options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::Unavailable(format!("cannot start the runtime: {e}")))?;
    runtime.block_on(async {
        let (listener, bound) = listen(&address).await?;
        let mut out = std::io::stdout();
        let told = writeln!(out, "listening on {bound}").and_then(|()| out.flush());
        told.map_err(|e| Error::Unavailable(format!("cannot print: {e}")))?;
        serve_loads(listener, loads, Arc::new(|_, _| Ok(()))).await
    })
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
