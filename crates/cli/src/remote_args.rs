//! Flags of loads into a server, and how to reach it.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use coload::{Error, Result};
use coload_load::{Address, ClientTls, RemoteOptions, RemoteWork, WireCompression};
use coload_transform::POLICIES;
use coload_wire::Again;

/// Environment variable with the file of the root of the server's certificate.
const TLS_CA: &str = "COLOAD_TLS_CA";
/// Environment variables with the files of the client's certificate and key.
const TLS_CERTIFICATE: [&str; 2] = ["COLOAD_TLS_CERTIFICATE", "COLOAD_TLS_KEY"];
/// Environment variable with the password of the user in a server's name.
const PASSWORD: &str = "COLOAD_PASSWORD";
/// Environment variable with a token.
const TOKEN: &str = "COLOAD_TOKEN";

/// Flags of a load into a server.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// Who transforms the columns, when loading into a server
    #[arg(
        long,
        value_name = "POLICY",
        value_parser = placements(),
        default_value = POLICIES[0].name(),
        help_heading = "Server"
    )]
    pub placement: RemoteWork,
    /// What is compressed on the wire
    #[arg(long, value_name = "HOW", default_value = "adaptive", help_heading = "Server")]
    pub wire_compression: WireCompressionArg,
    /// Connections to the server [default: 4; to a database, as many as pay]
    #[arg(long, value_name = "N", help_heading = "Server")]
    pub connections: Option<usize>,
    /// Load again what was loaded already
    #[arg(long, help_heading = "Server")]
    pub again: bool,
    /// Print the columns, what was estimated of them, and where they were placed
    #[arg(long, help_heading = "Server")]
    pub explain: bool,
    /// Seconds to try again without getting on, before giving up
    #[arg(long, value_name = "SECONDS", default_value = "120", help_heading = "Server")]
    pub patience: u64,
}

/// Names of those who do the work: policies, and the server alone.
fn placements() -> impl TypedValueParser<Value = RemoteWork> {
    let shared = POLICIES.iter().map(|policy| (policy.name(), policy.about()));
    let names = shared.chain(SERVER_ALONE.map(|(name, about, _)| (name, about)));
    let values = names.map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).map(|name| placement(&name))
}

fn placement(name: &str) -> RemoteWork {
    let alone = SERVER_ALONE.into_iter().find(|(known, ..)| *known == name);
    let shared = || POLICIES.into_iter().find(|policy| policy.name() == name);
    match alone {
        Some((.., work)) => work,
        None => shared().map_or_else(RemoteWork::default, RemoteWork::Shared),
    }
}

/// Work that is not shared.
const SERVER_ALONE: [(&str, &str, RemoteWork); 3] = [
    ("pipe", "The server, which parses too, while the inputs arrive", RemoteWork::Pipe),
    (
        "aggregator",
        "The same: of a cluster, the node that is asked routes the rows",
        RemoteWork::Pipe,
    ),
    ("seq", "The server, when the inputs have arrived", RemoteWork::Seq),
];

/// What is compressed on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WireCompressionArg {
    /// What waits because the network is slow
    Adaptive,
    /// Nothing is compressed
    None,
    /// Every frame, with LZ4
    Lz4,
    /// Every frame, with Zstandard
    Zstd,
}

/// Who asks a server, and whom he trusts.
#[derive(Clone, Default)]
pub struct Identity {
    /// Password of the user in the server's address.
    pub password: Option<String>,
    /// A token, in place of a user and password.
    pub token: Option<String>,
    /// File with the root of the server's certificate; without it those of the system.
    pub ca: Option<PathBuf>,
    /// Files with the client's own certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// What the environment says.
    pub fn of_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let [certificate, key] = TLS_CERTIFICATE.map(|name| variable(name).map(PathBuf::from));
        Identity {
            password: variable(PASSWORD),
            token: variable(TOKEN),
            ca: variable(TLS_CA).map(PathBuf::from),
            certificate: certificate.zip(key),
        }
    }
}

/// How to reach a server.
///
/// # Errors
/// `Invalid` when a certificate cannot be read.
pub fn remote_options(server: &Address, identity: &Identity) -> Result<RemoteOptions> {
    let mut options = RemoteOptions::new(server.authority());
    options.authorization = match (&identity.token, &server.user) {
        (Some(token), _) => Some(format!("Bearer {token}")),
        (None, Some(user)) => {
            let password = identity.password.clone().unwrap_or_default();
            Some(format!("Basic {}", base64(format!("{user}:{password}").as_bytes())))
        }
        (None, None) => None,
    };
    if server.tls {
        let ca = identity.ca.as_deref().map(read).transpose()?;
        let pair = identity.certificate.as_ref();
        let certificate = pair.map(|(certificate, key)| Ok((read(certificate)?, read(key)?)));
        options.tls = Some(ClientTls { ca, certificate: certificate.transpose()? });
    }
    Ok(options)
}

impl RemoteArgs {
    /// Puts the flags into the options of a server.
    pub fn apply(&self, options: &mut RemoteOptions) {
        options.work = self.placement;
        options.compression = match self.wire_compression {
            WireCompressionArg::Adaptive => WireCompression::Adaptive,
            WireCompressionArg::None => WireCompression::None,
            WireCompressionArg::Lz4 => WireCompression::Lz4,
            WireCompressionArg::Zstd => WireCompression::Zstd,
        };
        options.connections = self.connections.unwrap_or(options.connections).max(1);
        options.again = if self.again { Again::Yes } else { Again::No };
        options.patience = std::time::Duration::from_secs(self.patience);
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::io("read", path, &e))
}

/// Base64 with padding (RFC 4648), for the header of Basic.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut word = [0; 3];
        word[..group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for digit in 0..4 {
            let index = (word >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit <= group.len() { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
