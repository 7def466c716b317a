//! The server, by our own client and by hand-made messages.

mod cancel;
mod certificates;
mod faults;
mod hostile;
mod ingest;
mod limits;
mod logins;
mod requests;
mod rights;
mod statements;

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use coload_serve::{
    Address, Credentials, Remote, ServeLimits, ServeOptions, Server, hash_password,
};
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use crate::support::Scratch;

/// A free port of this machine.
pub fn here() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A connection for hand-made calls.
pub async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A connection that the server may close at once.
pub async fn try_channel(address: SocketAddr) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await
}

/// A server on a scratch database.
pub struct Running {
    pub scratch: Scratch,
    pub address: SocketAddr,
    pub postgres: Option<SocketAddr>,
    pub metrics: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<coload_types::Result<()>>>,
}

impl Running {
    pub fn start() -> Self {
        Self::start_with(ServeOptions::new(here()))
    }

    pub fn start_with(options: ServeOptions) -> Self {
        let scratch = Scratch::new();
        let server = Server::bind(scratch.database.clone(), options).unwrap();
        let address = server.address().unwrap();
        let postgres = server.postgres_address().unwrap();
        let metrics = server.metrics_address().unwrap();
        let (stop, asked) = oneshot::channel();
        let thread = std::thread::spawn(move || server.run(async { drop(asked.await) }));
        Running { scratch, address, postgres, metrics, stop: Some(stop), thread: Some(thread) }
    }

    /// The address as a client writes it.
    pub fn url(&self) -> Address {
        format!("coload://{}", self.address).parse().unwrap()
    }

    /// A client that does not say who it is.
    pub fn client(&self) -> Remote {
        Remote::connect(self.url(), &Credentials::default()).unwrap()
    }

    /// A client of a user.
    pub fn client_of(&self, user: &str, password: &str) -> coload_types::Result<Remote> {
        let address = Address { user: Some(user.into()), ..self.url() };
        let password = Some(password.to_owned());
        Remote::connect(address, &Credentials { password, ..Credentials::default() })
    }

    /// Asks it to stop.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        if !std::thread::panicking() {
            self.wait();
        }
    }
}

/// A server with limits, without users, with metrics.
pub fn limited(limits: ServeLimits) -> Running {
    let options = ServeOptions { limits, metrics: Some(here()), ..ServeOptions::new(here()) };
    Running::start_with(options)
}

/// A server with limits and the users of [`users`].
pub fn limited_users(limits: ServeLimits) -> Running {
    let options = ServeOptions { limits, metrics: Some(here()), ..ServeOptions::new(here()) };
    Running::start_with(ServeOptions { users: users(), ..options })
}

/// Users `ada`, who may do everything, `rob`, who may read, and `lou`, who may load `stage_*`; their
/// password is their name.
pub fn users() -> coload_serve::Users {
    let line =
        |name: &str, rights: &str| format!("{name} {} {rights}\n", hash_password(name).unwrap());
    let lines = [line("ada", "admin:*"), line("rob", "read:people"), line("lou", "load:stage_*")];
    coload_serve::Users::parse(&lines.concat(), "users").unwrap()
}
