//! A small server of S3 and HTTP on 127.0.0.1, for tests and benches: objects in memory or in a folder, parts of them
//! (`Range`), versions (`ETag`, `If-Match`), puts (`If-None-Match: *`), lists (ListObjectsV2, in pages), faults, and a slow line.
//!
//! It does not look at signatures: what they are is the client library's business.

mod answer;
mod faults;
mod line;
mod list;
mod objects;
mod request;

use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Builder;

use coload_threads::{lock, spawn};

pub use faults::{Fault, Faults};
pub use line::Line;
pub use request::Request;

use objects::Objects;

/// A server that ends when it is dropped.
#[derive(Debug)]
pub struct ObjectServer {
    inner: Arc<Inner>,
    address: SocketAddr,
}

#[derive(Debug, Default)]
struct Inner {
    objects: Mutex<Objects>,
    faults: Faults,
    line: OnceLock<Line>,
    ended: AtomicBool,
    seen: Mutex<Vec<Request>>,
}

impl ObjectServer {
    /// A server without objects.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start() -> io::Result<Self> {
        Self::start_at("127.0.0.1:0", None)
    }

    /// A server at an address; folders of `root` are buckets, if there is one.
    ///
    /// # Errors
    /// When the address is taken.
    pub fn start_at(address: &str, root: Option<PathBuf>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let inner = Arc::new(Inner::default());
        lock(&inner.objects).root = root;
        let serving = Arc::clone(&inner);
        spawn(Builder::new(), move || {
            for stream in listener.incoming().flatten() {
                if serving.ended.load(Ordering::Acquire) {
                    return;
                }
                let inner = Arc::clone(&serving);
                // Who goes away ends the connection; without a thread, it is closed.
                let _ = spawn(Builder::new(), move || drop(serve(&inner, stream)));
            }
        })?;
        Ok(ObjectServer { inner, address })
    }

    /// The address as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts an object, by bucket and key as `bucket/key`; one that was there has another version.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        lock(&self.inner.objects).put(path, bytes.into());
    }

    /// Takes an object away.
    pub fn remove(&self, path: &str) {
        lock(&self.inner.objects).remove(path);
    }

    /// Answers without ETags, as some servers of HTTP do.
    pub fn without_etags(&self) {
        lock(&self.inner.objects).has_etags = false;
    }

    /// Lists without ETags, as some servers of S3 do.
    pub fn without_etags_in_lists(&self) {
        lock(&self.inner.objects).lists_etags = false;
    }

    /// Answers over a line from now on; one that was given before stays.
    pub fn answer_over(&self, line: Line) {
        self.inner.line.get_or_init(|| line);
    }

    /// What goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Request> {
        lock(&self.inner.seen).clone()
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.inner.ended.store(true, Ordering::Release);
        // The listener looks when somebody comes.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers the requests of a connection.
fn serve(inner: &Inner, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = Request::read(&mut reader)? {
        if inner.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let fault = inner.faults.take(&request);
        lock(&inner.seen).push(request.clone());
        if let Some(Fault::Then(change)) = &fault {
            change();
        }
        let line = inner.line.get();
        if !answer::answer(&inner.objects, &request, (fault.as_ref(), line), &mut writer)? {
            return Ok(());
        }
    }
    Ok(())
}
