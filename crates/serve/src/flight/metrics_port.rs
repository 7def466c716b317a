//! The page of metrics: few connections, each for a short time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

use super::connections::Acceptor;
use super::door::{Door, DoorLimits, Visit};
use super::metrics::Metrics;

/// How long a connection may take for a request and its answer.
const PAGE_TIME: Duration = Duration::from_secs(10);
/// Bytes that a connection may send: a request, and a few more on the same connection.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Serves the page until the future is dropped.
pub(crate) async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    const FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // Nobody comes inside here: all stay outside, where a new connection takes the place of an old one.
    let limits =
        DoorLimits { inside_max: 0, per_peer_max: 0, login_time: PAGE_TIME, idle_time: PAGE_TIME };
    // Its connections are not those of clients, and are counted nowhere.
    let door = Door::new(limits, Arc::default());
    let page = get(move || {
        let page = metrics.page();
        async move { ([(CONTENT_TYPE, FORM)], page) }
    });
    let listener = Short { acceptor: Acceptor::new(listener), door };
    let served = axum::serve(listener, axum::Router::new().route("/metrics", page)).await;
    if let Err(error) = served {
        tracing::warn!(%error, "metrics are not served any more");
    }
}

/// A listener whose connections last for a short time.
struct Short {
    acceptor: Acceptor,
    door: Arc<Door>,
}

/// A connection that lasts for a short time and takes few bytes.
struct ShortConnection {
    stream: TcpStream,
    visit: Arc<Visit>,
    timer: Pin<Box<Sleep>>,
    bytes_read: usize,
}

impl Listener for Short {
    type Io = ShortConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ShortConnection, SocketAddr) {
        let (stream, address) = self.acceptor.next().await;
        let visit = self.door.come(address.ip().into());
        let timer = Box::pin(tokio::time::sleep(PAGE_TIME));
        (ShortConnection { stream, visit, timer, bytes_read: 0 }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.acceptor.listener().local_addr()
    }
}

impl ShortConnection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.visit.waker.register(context.waker());
        let is_over = self.timer.as_mut().poll(context).is_ready();
        if is_over || self.visit.stays_until().is_err() || self.bytes_read > REQUEST_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no request in time"));
        }
        Ok(())
    }
}

impl Drop for ShortConnection {
    fn drop(&mut self) {
        self.visit.leave();
    }
}

impl AsyncRead for ShortConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Err(error) = self.check(context) {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.bytes_read += buffer.filled().len() - before;
        read
    }
}

impl AsyncWrite for ShortConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.check(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
