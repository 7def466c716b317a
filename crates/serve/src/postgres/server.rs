//! Listening for clients of PostgreSQL.

use std::sync::Arc;

use coload_types::{Error, Result};
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

use super::session::Session;
use super::startup::{Wanted, begin, log_in};
use super::wire::{Ended, WireLimits};
use crate::flight::{Connection, Door, Room, Service, TlsFiles, accept, random_bytes, read_pem};

/// A port for clients of PostgreSQL.
pub(crate) struct PostgresDoor {
    pub listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: WireLimits,
}

impl PostgresDoor {
    /// Reads the certificates.
    ///
    /// # Errors
    /// `Invalid` when they cannot be read.
    pub fn new(
        listener: TcpListener,
        tls: Option<&TlsFiles>,
        service: &Service,
        room: Room,
    ) -> Result<Self> {
        let tls = tls.map(acceptor).transpose()?;
        let limits = service.limits();
        let limits = WireLimits {
            message_bytes_max: limits.message_bytes,
            room,
            stall_time: limits.stall_time,
        };
        Ok(PostgresDoor { listener, tls, limits })
    }

    /// Serves until it is told to stop, and then until those have ended that run a statement.
    pub async fn serve(self, door: Arc<Door>, service: Service, mut stop: watch::Receiver<bool>) {
        let PostgresDoor { listener, tls, limits } = self;
        let mut incoming = Box::pin(accept(listener, door));
        let mut sessions = JoinSet::new();
        loop {
            let connection = tokio::select! {
                next = incoming.next() => next,
                _ = stop.wait_for(|stop| *stop) => break,
                // Those that ended are forgotten.
                Some(_) = sessions.join_next() => continue,
            };
            let Some(Ok(connection)) = connection else { continue };
            let (tls, limits, service) = (tls.clone(), limits.clone(), service.clone());
            sessions.spawn(one(connection, tls, limits, service, stop.clone()));
        }
        drop(incoming);
        while sessions.join_next().await.is_some() {}
    }
}

/// Serves one connection to its end.
async fn one(
    connection: Connection,
    tls: Option<TlsAcceptor>,
    limits: WireLimits,
    service: Service,
    stop: watch::Receiver<bool>,
) {
    let visit = connection.visit();
    let (mut wire, parameters, version) = match begin(connection, tls, limits).await {
        Ok(Wanted::Session(wire, parameters, version)) => (wire, parameters, version),
        Ok(Wanted::Cancel(key)) => return service.cancel_key(&key),
        Err(_) => return,
    };
    let logged_in = log_in(&mut wire, service.users(), &visit, parameters, version).await;
    let key = new_key();
    match (logged_in, key) {
        (Ok((rights, settings)), Ok(key)) => {
            Session::new(wire, service, rights, settings, visit, key).run(stop).await;
        }
        (Err(Ended::Told(fault)), _) => {
            service.call_refused();
            wire.replies.fault(&fault);
            wire.close().await;
        }
        (Err(Ended::Gone), _) => {}
        (Ok(_), Err(error)) => tracing::error!(%error, "a client was not served"),
    }
}

/// What a client cancels its statements with: nobody else can guess it.
fn new_key() -> Result<[u8; 8]> {
    let mut key = random_bytes::<8>()?;
    // The first half is shown as the number of a process, which is above 0.
    key[0] &= 0x7f;
    Ok(key)
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let wrong = |what: &dyn std::fmt::Display| {
        Error::Invalid(format!("the certificate or key is wrong: {what}"))
    };
    let certificates = |path| -> Result<Vec<CertificateDer<'static>>> {
        let pem = read_pem(path)?;
        CertificateDer::pem_slice_iter(&pem)
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| wrong(&e))
    };
    let key = PrivateKeyDer::from_pem_slice(&read_pem(&files.key)?).map_err(|e| wrong(&e))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(&e))?;
    let config = match &files.client_ca {
        None => config.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(ca)? {
                roots.add(root).map_err(|e| wrong(&e))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().map_err(|e| wrong(&e))?)
        }
    };
    let config = config.with_single_cert(certificates(&files.certificate)?, key);
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|e| wrong(&e))?)))
}
