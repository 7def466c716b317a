//! Listening, TLS, health, metrics, limits, and an end that lets running statements finish.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_flight::flight_service_server::FlightServiceServer;
use coload_receive::{Loads, QueryGauge, ReceiveOptions};
use coload_threads::drop_elsewhere;
use coload_types::{Error, Result};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tonic::transport::server::{Router, ServerTlsConfig};
use tonic::transport::{Certificate, Identity, Server as Grpc};

use super::body::Room;
use super::connections::accept;
use super::door::{Door, DoorLimits};
use super::gate::Gate;
use super::limits::ServeLimits;
use super::metrics::Metrics;
use super::metrics_port::serve_metrics;
use super::schemas::WithSchemas;
use super::service::Service;
use super::users::Users;
use crate::database::Database;
use crate::postgres::PostgresDoor;

/// Threads of the network. They encode and decode; statements run elsewhere.
const NETWORK_THREADS: usize = 2;
/// A connection that says nothing for so long is asked, and dropped when it does not answer in time.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Calls at once on one connection.
const STREAMS_MAX: u32 = 128;
/// HTTP/2 windows: what a client may send before it is read. The largest lets one connection fill
/// 10 Gbit/s over 50 ms.
const WINDOW_BYTES: std::ops::RangeInclusive<usize> = 256 << 10..=64 << 20;
/// Largest HTTP/2 frame; no larger than a window.
const FRAME_BYTES: u32 = 256 << 10;
/// Bytes of the headers of a call.
const HEADER_BYTES_MAX: u32 = 8 << 10;
/// Share of the memory for messages that clients are sending.
const MESSAGES_SHARE: usize = 4;
/// Descriptors for files of the store, the spill folder and the like: what connections leave.
const DESCRIPTORS_KEPT: u64 = 256;
/// How often what nobody uses is looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// How a server listens.
#[derive(Debug)]
pub struct ServeOptions {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Users who may call, with their rights.
    pub users: Users,
    /// Certificate and key; without them the connection is open to read.
    pub tls: Option<TlsFiles>,
    /// Serves other machines even without users or TLS.
    pub insecure: bool,
    /// Where clients of PostgreSQL are served; nowhere if `None`.
    pub postgres: Option<SocketAddr>,
    /// Where Prometheus reads; nowhere if `None`.
    pub metrics: Option<SocketAddr>,
    /// What clients may have.
    pub limits: ServeLimits,
    /// What loads of our own client get. How queries do is told them by the server.
    pub loads: ReceiveOptions,
    /// How long running statements may take after the server was asked to stop.
    pub grace: Duration,
}

impl ServeOptions {
    /// The defaults, for one address: nobody is asked who he is.
    pub fn new(listen: SocketAddr) -> Self {
        ServeOptions {
            listen,
            users: Users::anybody(),
            tls: None,
            insecure: false,
            postgres: None,
            metrics: None,
            limits: ServeLimits::default(),
            loads: ReceiveOptions::default(),
            grace: Duration::from_secs(30),
        }
    }
}

/// Files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the server, and those between it and the root.
    pub certificate: PathBuf,
    /// Private key of the server's certificate, PEM.
    pub key: PathBuf,
    /// Root of the certificates that clients must have; without it they need none.
    pub client_ca: Option<PathBuf>,
}

/// A server that listens and does not serve yet.
pub struct Server {
    runtime: Runtime,
    router: Router,
    service: Service,
    listener: TcpListener,
    postgres: Option<PostgresDoor>,
    metrics_listener: Option<TcpListener>,
    metrics: Arc<Metrics>,
    health: tonic_health::server::HealthReporter,
    door: Arc<Door>,
    grace: Duration,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Server {
    /// Takes the address and reads the certificates.
    ///
    /// # Errors
    /// `Invalid` when other machines could use it without users or TLS, or a certificate cannot be
    /// read; `Unavailable` when the address is taken.
    pub fn bind(database: Database, options: ServeOptions) -> Result<Self> {
        check_open(&options)?;
        let limits = within_descriptors(options.limits);
        let runtime = Builder::new_multi_thread()
            .worker_threads(NETWORK_THREADS)
            .thread_name("coload-net")
            .enable_all()
            .build()
            .map_err(|e| {
                Error::Unavailable(format!("cannot start {NETWORK_THREADS} threads: {e}"))
            })?;
        let listen = |address: SocketAddr| {
            runtime.block_on(TcpListener::bind(address)).map_err(|e| {
                Error::Unavailable(format!(
                    "cannot listen on {address}: {e} (see --listen, --postgres and --metrics)"
                ))
            })
        };
        let listener = listen(options.listen)?;
        let postgres_listener = options.postgres.map(listen).transpose()?;
        let metrics_listener = options.metrics.map(listen).transpose()?;
        let memory = database.options().memory;
        let metrics = Arc::new(Metrics::default());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        metrics.started.set(now.map_or(0.0, |d| d.as_secs_f64()));
        let gauge = Arc::clone(&metrics);
        let queries: QueryGauge = Arc::new(move || gauge.query_load());
        let loads = ReceiveOptions { queries: Some(queries), ..options.loads };
        let loads = Loads::open(database.store().clone(), loads)?;
        // Loads have a budget of their own, and statements are not ended for what they take.
        let taken = loads.clone();
        database.allow_elsewhere(Box::new(move || taken.memory()));
        let mut users = options.users;
        users.limit_tokens(limits.tokens_per_user);
        let service = Service::new(database, users, Arc::clone(&metrics), limits, loads);
        let flight = FlightServiceServer::new(WithSchemas(service.clone()))
            .max_decoding_message_size(limits.message_bytes)
            .max_encoding_message_size(usize::MAX);
        let room = Room::new(memory / MESSAGES_SHARE);
        let postgres = postgres_listener.map(|listener| {
            PostgresDoor::new(listener, options.tls.as_ref(), &service, room.clone())
        });
        let postgres = postgres.transpose()?;
        let flight = Gate::new(flight, service.clone(), limits.message_bytes, room);
        let (health, health_service) = {
            let _entered = runtime.enter();
            tonic_health::server::health_reporter()
        };
        runtime.block_on(health.set_serving::<FlightServiceServer<WithSchemas>>());
        let mut grpc = grpc(memory / MESSAGES_SHARE / limits.connections.max(1));
        if let Some(tls) = &options.tls {
            grpc = grpc
                .tls_config(tls_config(tls)?)
                .map_err(|e| Error::Invalid(format!("the certificate or key is wrong: {e}")))?;
        }
        let router = grpc.add_service(flight).add_service(health_service);
        let door = Door::new(
            DoorLimits {
                inside_max: limits.connections,
                per_peer_max: limits.of_peer(),
                login_time: limits.login_time,
                idle_time: limits.idle_time,
            },
            Arc::clone(&metrics),
        );
        Ok(Server {
            runtime,
            router,
            service,
            listener,
            postgres,
            metrics_listener,
            metrics,
            health,
            door,
            grace: options.grace,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// `Unavailable` when the system does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        local_address(&self.listener)
    }

    /// Where clients of PostgreSQL are served.
    ///
    /// # Errors
    /// As [`Self::address`].
    pub fn postgres_address(&self) -> Result<Option<SocketAddr>> {
        self.postgres.as_ref().map(|door| local_address(&door.listener)).transpose()
    }

    /// Where Prometheus reads.
    ///
    /// # Errors
    /// As [`Self::address`].
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>> {
        self.metrics_listener.as_ref().map(local_address).transpose()
    }

    /// Serves until `stop` is done; then takes no more calls, waits for those that run, and cuts those
    /// that take longer than the grace. An INSERT or ingest that is cut leaves nothing.
    ///
    /// # Errors
    /// `Unavailable` when the network fails.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Server {
            runtime,
            router,
            service,
            listener,
            postgres,
            metrics,
            health,
            door,
            grace,
            ..
        } = self;
        let (told, mut asked) = watch::channel(false);
        let sessions = {
            let (door, service, stop) = (Arc::clone(&door), service.clone(), asked.clone());
            async move {
                if let Some(postgres) = postgres {
                    postgres.serve(door, service, stop).await;
                }
            }
        };
        let sessions = runtime.spawn(sessions);
        if let Some(listener) = self.metrics_listener {
            runtime.spawn(serve_metrics(listener, metrics));
        }
        runtime.spawn(async move {
            let mut interval = tokio::time::interval(SWEEP_INTERVAL);
            loop {
                interval.tick().await;
                service.sweep();
            }
        });
        let incoming = accept(listener, door);
        let served = runtime.block_on(async move {
            let stopping = async move {
                stop.await;
                tracing::info!("asked to stop; statements that run may finish");
                health.set_not_serving::<FlightServiceServer<WithSchemas>>().await;
                let _ = told.send(true);
            };
            let serve = async {
                let served = router.serve_with_incoming_shutdown(incoming, stopping).await;
                let _ = sessions.await;
                served
            };
            let too_long = async move {
                let _ = asked.wait_for(|stop| *stop).await;
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                served = serve => served.map_err(|e| Error::Unavailable(format!("cannot serve: {e}"))),
                () = too_long => {
                    tracing::warn!(grace_s = grace.as_secs(), "calls that took longer were cut");
                    Ok(())
                }
            }
        });
        // What was cut may wait for seconds.
        drop_elsewhere(runtime);
        served
    }
}

/// Without a word about users or TLS, only this machine is served.
fn check_open(options: &ServeOptions) -> Result<()> {
    if options.insecure {
        return Ok(());
    }
    let is_here = |address: &SocketAddr| address.ip().is_loopback();
    let mut open = [Some(options.listen), options.postgres].into_iter().flatten();
    let Some(address) = open.find(|address| !is_here(address)) else { return Ok(()) };
    if options.users.is_open() {
        let mutual = options.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        return if mutual {
            Ok(())
        } else {
            Err(Error::Invalid(format!(
                "{address} is open to other machines, and nobody would be asked who he is: give \
                 --users FILE, or --tls-client-ca FILE, or --insecure, or listen on 127.0.0.1"
            )))
        };
    }
    match &options.tls {
        Some(_) => Ok(()),
        None => Err(Error::Invalid(format!(
            "{address} is open to other machines, and passwords would be open to read: give \
             --tls-certificate FILE and --tls-key FILE, or --insecure, or listen on 127.0.0.1"
        ))),
    }
}

fn grpc(window_bytes: usize) -> Grpc {
    let window = window_bytes.clamp(*WINDOW_BYTES.start(), *WINDOW_BYTES.end()) as u32;
    Grpc::builder()
        .tcp_nodelay(true)
        .initial_connection_window_size(window)
        .initial_stream_window_size(window)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
}

fn tls_config(files: &TlsFiles) -> Result<ServerTlsConfig> {
    let certificate = read_pem(&files.certificate)?;
    let mut config =
        ServerTlsConfig::new().identity(Identity::from_pem(certificate, read_pem(&files.key)?));
    if let Some(ca) = &files.client_ca {
        config = config.client_ca_root(Certificate::from_pem(read_pem(ca)?));
    }
    Ok(config)
}

/// A file with at least one block of PEM: rustls would take one without for no certificate at all.
pub(crate) fn read_pem(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, &e))?;
    let begins = b"-----BEGIN ";
    match bytes.windows(begins.len()).any(|window| window == begins) {
        true => Ok(bytes),
        false => Err(Error::Invalid(format!("{} is not a PEM file", path.display()))),
    }
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|e| Error::Unavailable(format!("no address: {e}")))
}

/// Takes as many descriptors as the system gives, and lowers the connections to what these are enough for.
fn within_descriptors(mut limits: ServeLimits) -> ServeLimits {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let given = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: given.maximum, ..given };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => given.maximum,
        Err(_) => given.current,
    };
    // None is no limit.
    let Some(descriptors) = current else { return limits };
    let connections = descriptors.saturating_sub(DESCRIPTORS_KEPT).max(descriptors / 2);
    // Those outside are as many as a quarter of those inside, at most.
    let inside = usize::try_from(connections).unwrap_or(usize::MAX) / 5 * 4;
    if inside < limits.connections {
        tracing::warn!(
            descriptors,
            connections = inside,
            "fewer connections than --max-connections are served: more would leave no descriptors for files \
             (raise ulimit -n)"
        );
        limits.connections = inside.max(1);
    }
    limits
}
