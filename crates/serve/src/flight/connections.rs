//! Connections as they are accepted: each keeps to the times of its [`Visit`].

use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use super::door::{Door, Visit};

/// How long nothing is accepted after an error: one that stays, such as a lack of descriptors, would be met
/// as often as the processor can.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A connection, which leaves room for another when it ends.
pub(crate) struct Connection {
    stream: TcpStream,
    visit: Arc<Visit>,
    timer: Pin<Box<Sleep>>,
    has_spoken: bool,
}

/// Takes connections as far as outside of a door.
pub(crate) fn accept(
    listener: TcpListener,
    door: Arc<Door>,
) -> impl Stream<Item = io::Result<Connection>> {
    let acceptor = Acceptor::new(listener);
    futures::stream::unfold((acceptor, door), |(mut acceptor, door)| async move {
        let (stream, peer) = acceptor.next().await;
        // The option of tonic is for sockets that it accepts itself.
        let _ = stream.set_nodelay(true);
        let visit = door.come(peer.ip().into());
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Some((Ok(Connection { stream, visit, timer, has_spoken: false }), (acceptor, door)))
    })
}

/// A listener that lives through a lack of descriptors.
pub(crate) struct Acceptor {
    listener: TcpListener,
    /// A descriptor that is given free to close a connection which could not be accepted else, and whose client would
    /// wait.
    spare: Option<File>,
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Acceptor {
    pub fn new(listener: TcpListener) -> Self {
        Acceptor { listener, spare: spare() }
    }

    /// Waits for the next connection and takes it.
    pub async fn next(&mut self) -> (TcpStream, std::net::SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    if is_lack_of_descriptors(&error) && self.spare.take().is_some() {
                        drop(self.listener.accept().await);
                        self.spare = spare();
                    }
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }

    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }
}

/// Whether the process or the system has no descriptor left.
fn is_lack_of_descriptors(error: &io::Error) -> bool {
    const LACKS: [i32; 2] =
        [rustix::io::Errno::MFILE.raw_os_error(), rustix::io::Errno::NFILE.raw_os_error()];
    error.raw_os_error().is_some_and(|code| LACKS.contains(&code))
}

impl Connection {
    /// The place that it has.
    pub fn visit(&self) -> Arc<Visit> {
        Arc::clone(&self.visit)
    }

    /// Asks whether the connection may stay, and sees to it that it is asked again.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.visit.waker.register(context.waker());
        loop {
            let until = self
                .visit
                .stays_until()
                .map_err(|why| io::Error::new(io::ErrorKind::TimedOut, why))?;
            if self.timer.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.timer.as_mut().reset(until.into());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.visit.leave();
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<Visit>;

    fn connect_info(&self) -> Arc<Visit> {
        Arc::clone(&self.visit)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            if !self.has_spoken {
                self.has_spoken = true;
                self.visit.has_spoken();
            }
            return read;
        }
        match self.check(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_over(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_over(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.unless_over(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connection {
    /// What a write gave; where it has to wait, the end of the connection's time ends it too.
    fn unless_over<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(written) => Poll::Ready(written),
            Poll::Pending => match self.check(context) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    }
}
