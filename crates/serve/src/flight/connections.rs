//! Connections, counted and at most so many.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::metrics::Metrics;

/// A connection, which leaves room for another when it ends.
pub(crate) struct Connection {
    stream: TcpStream,
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

/// Takes connections; closes at once those over `count_max`.
pub(crate) fn accept(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    count_max: usize,
) -> impl Stream<Item = io::Result<Connection>> {
    let permits = Arc::new(Semaphore::new(count_max));
    futures::stream::unfold((listener, metrics, permits), |(listener, metrics, permits)| async {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => return Some((Err(error), (listener, metrics, permits))),
            };
            // The option of tonic is for sockets that it accepts itself.
            let _ = stream.set_nodelay(true);
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                metrics.connections_refused.inc();
                tracing::warn!("a connection over --max-connections was closed");
                continue;
            };
            metrics.connections.inc();
            let connection = Connection { stream, metrics: Arc::clone(&metrics), _permit: permit };
            return Some((Ok(connection), (listener, metrics, permits)));
        }
    })
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
