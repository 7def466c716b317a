//! The start of a connection: TLS, who the client is, and what it is told.
//!
//! ```text
//!   request of TLS or GSS --yes or no--> parameters --password--> settings, key to cancel with, ready
//!   request to cancel     --> done
//! ```
//!
//! Bytes that a client sends before TLS begins are never taken for bytes within it: nothing is read ahead until then.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::fault::{Fault, code};
use super::message::{Body, Message};
use super::scram::{Exchange, MECHANISM};
use super::settings::Settings;
use super::wire::{Ended, Stream, Wire, WireLimits};
use crate::flight::{Connection, PasswordCheck, Users, Visit};
use crate::rights::Rights;

/// Bytes of the first message.
const FIRST_BYTES_MAX: usize = 10_000;
/// Numbers in the place of a version.
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;
/// Version 3.0.
const VERSION: u32 = 3 << 16;
/// Requests of TLS and GSS before the parameters.
const REQUESTS_MAX: usize = 4;

/// What a client wants.
pub(super) enum Wanted {
    /// A session, with these parameters.
    Session(Wire, BTreeMap<String, String>, u32),
    /// That what runs with this key ends.
    Cancel([u8; 8]),
}

/// Reads what a client wants, and puts TLS around it if it asks for that.
pub(super) async fn begin(
    connection: Connection,
    tls: Option<TlsAcceptor>,
    limits: WireLimits,
) -> Result<Wanted, Ended> {
    let mut stream: Box<dyn Stream> = Box::new(connection);
    let mut acceptor = tls;
    for _ in 0..REQUESTS_MAX {
        let (number, body) = first_message(&mut stream).await?;
        match number {
            TLS | GSS => match acceptor.take().filter(|_| number == TLS) {
                Some(tls) => {
                    stream.write_all(b"S").await?;
                    stream.flush().await?;
                    stream = Box::new(tls.accept(stream).await?);
                }
                None => {
                    stream.write_all(b"N").await?;
                    stream.flush().await?;
                }
            },
            CANCEL => {
                let key = <[u8; 8]>::try_from(&body[..]).map_err(|_| Ended::Gone)?;
                return Ok(Wanted::Cancel(key));
            }
            version => {
                let mut wire = Wire::new(stream, limits);
                // Who takes certificates of clients, or passwords, takes them by TLS only.
                if acceptor.is_some() {
                    wire.replies.fault(&Fault::fatal(
                        code::NO_TLS,
                        "this server is reached by TLS only: sslmode=require, or verify-full with its root",
                    ));
                    wire.close().await;
                    return Err(Ended::Gone);
                }
                return parameters(wire, version, body).await;
            }
        }
    }
    Err(Ended::Gone)
}

/// A message without a kind: its first number, and what follows.
async fn first_message(stream: &mut Box<dyn Stream>) -> Result<(u32, Bytes), Ended> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).await?;
    let [length, number] =
        [0, 4].map(|at| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let rest = (length as usize).checked_sub(8).filter(|rest| *rest <= FIRST_BYTES_MAX);
    let mut body = vec![0; rest.ok_or(Ended::Gone)?];
    stream.read_exact(&mut body).await?;
    Ok((number, body.into()))
}

async fn parameters(mut wire: Wire, version: u32, body: Bytes) -> Result<Wanted, Ended> {
    let read = read_parameters(version, body);
    match read {
        Ok(parameters) => Ok(Wanted::Session(wire, parameters, version)),
        Err(fault) => {
            wire.replies.fault(&fault);
            wire.close().await;
            Err(Ended::Gone)
        }
    }
}

fn read_parameters(version: u32, body: Bytes) -> Result<BTreeMap<String, String>, Fault> {
    if version >> 16 != VERSION >> 16 {
        let text = format!(
            "version {}.{} of the protocol: this server speaks 3.0",
            version >> 16,
            version & 0xffff
        );
        return Err(Fault::fatal(code::UNSUPPORTED, text));
    }
    let mut body = Body::new(body);
    let mut parameters = BTreeMap::new();
    loop {
        let name = body.text().map_err(Fault::ending)?;
        if name.is_empty() {
            break;
        }
        parameters.insert(name, body.text().map_err(Fault::ending)?);
    }
    match body.is_empty() {
        true => Ok(parameters),
        false => Err(Fault::fatal(code::PROTOCOL, "bytes behind the parameters")),
    }
}

/// Finds out who the client is, and keeps the settings that it begins with.
pub(super) async fn log_in(
    wire: &mut Wire,
    users: &Users,
    visit: &Arc<Visit>,
    mut parameters: BTreeMap<String, String>,
    version: u32,
) -> Result<(Rights, Settings), Ended> {
    negotiate(wire, &parameters, version);
    parameters.retain(|name, _| !name.starts_with("_pq_."));
    let user = parameters.remove("user").unwrap_or_default();
    if user.is_empty() {
        return Err(Fault::fatal(code::LOGIN, "no user is named").into());
    }
    let rights = match who(wire, users, visit, &user).await {
        Ok(rights) => rights,
        Err(Ended::Told(fault)) => {
            visit.was_refused();
            return Err(fault.ending().into());
        }
        Err(gone) => return Err(gone),
    };
    visit.admit().map_err(|status| Fault::fatal(code::TOO_MANY, status.message()))?;
    wire.is_known();
    let mut settings = Settings::default();
    settings.set_user(&user);
    // The database has the name of the only catalog, or any: there is one.
    parameters.remove("database");
    if parameters
        .remove("replication")
        .is_some_and(|value| !matches!(&*value, "false" | "off" | "no" | "0"))
    {
        return Err(Fault::fatal(code::UNSUPPORTED, "replication is not supported").into());
    }
    for (name, value) in with_options(parameters)? {
        settings.begin(&name, &value).map_err(Fault::ending)?;
    }
    Ok((rights, settings))
}

/// Says which version holds when the client asks for a newer one, and which of its wishes are not known.
fn negotiate(wire: &mut Wire, parameters: &BTreeMap<String, String>, version: u32) {
    let wishes = parameters.keys().filter(|name| name.starts_with("_pq_."));
    let unknown: Vec<String> = wishes.cloned().collect();
    if version != VERSION || !unknown.is_empty() {
        wire.replies.negotiate_version(0, &unknown);
    }
}

/// The parameters with those of `options`, which are written as flags of a command: `-c name=value`.
fn with_options(
    mut parameters: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Fault> {
    let Some(options) = parameters.remove("options") else { return Ok(parameters) };
    let mut words = options.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let pair = match word {
            "-c" => words.next().unwrap_or_default(),
            _ => word.strip_prefix("-c").or_else(|| word.strip_prefix("--")).unwrap_or_default(),
        };
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Fault::fatal(code::PARAMETER, format!("options {options:?}: write -c name=value"))
        })?;
        parameters.insert(name.replace('-', "_"), value.to_owned());
    }
    Ok(parameters)
}

async fn who(
    wire: &mut Wire,
    users: &Users,
    visit: &Arc<Visit>,
    user: &str,
) -> Result<Rights, Ended> {
    match users.password_check(user) {
        PasswordCheck::None => {
            wire.replies.authentication(0, &[]);
            Ok(Rights::all())
        }
        PasswordCheck::Hash => {
            wire.replies.authentication(3, &[]);
            let password = password(wire).await?;
            let password = Body::new(password).text()?;
            let rights =
                users.log_in_with(visit.peer(), user, &password).await.map_err(Fault::from)?;
            wire.replies.authentication(0, &[]);
            Ok(rights)
        }
        PasswordCheck::Scram(verifier) => {
            let wrong = || Ended::from(Fault::error(code::LOGIN, "wrong user or password"));
            let mechanisms = [MECHANISM.as_bytes(), &[0, 0]].concat();
            wire.replies.authentication(10, &mechanisms);
            let exchange = first_of_scram(wire, verifier).await?;
            let last = password(wire).await?;
            let last = std::str::from_utf8(&last).map_err(|_| wrong())?;
            // A client that is slow holds no place of its peer's meanwhile.
            let place = users.may_try(visit.peer()).await.map_err(Fault::from)?;
            let Some(proof) = exchange.finish(last) else {
                users.failed(&place, user);
                return Err(wrong());
            };
            wire.replies.authentication(12, proof.as_bytes());
            wire.replies.authentication(0, &[]);
            // Nobody is not a user, and no proof fits it.
            users.rights_of(user).ok_or_else(wrong)
        }
    }
}

/// The first round of SCRAM.
async fn first_of_scram(
    wire: &mut Wire,
    verifier: super::scram::Verifier,
) -> Result<Exchange, Ended> {
    let broken = || Fault::fatal(code::PROTOCOL, "no message of SCRAM-SHA-256");
    let mut first = Body::new(password(wire).await?);
    if first.text()? != MECHANISM {
        return Err(broken().into());
    }
    let message = first.value()?.ok_or_else(broken)?;
    let message = std::str::from_utf8(&message).map_err(|_| broken())?;
    let begun = Exchange::begin(verifier, message).map_err(Fault::from)?;
    let (exchange, answer) = begun.ok_or_else(broken)?;
    wire.replies.authentication(11, answer.as_bytes());
    Ok(exchange)
}

/// What a client answers when it is asked for a password.
async fn password(wire: &mut Wire) -> Result<Bytes, Ended> {
    wire.send().await?;
    match wire.read().await? {
        Message::Password(bytes) => Ok(bytes),
        Message::Terminate => Err(Ended::Gone),
        _ => Err(Fault::fatal(code::PROTOCOL, "a password was asked for").into()),
    }
}
