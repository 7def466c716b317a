//! SCRAM-SHA-256, the server's side: the client proves that it knows a password which the server does not.
//!
//! ```text
//!   client: n,,n=,r=NONCE          server: r=NONCE+MORE,s=SALT,i=ROUNDS
//!   client: c=biws,r=..,p=PROOF    server: v=PROOF OF THE SERVER
//! ```
//!
//! Binding to the channel of TLS is not offered. Source: RFC 5802, RFC 7677.

use std::num::NonZeroU32;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use coload_types::Result;
use ring::{digest, hmac, pbkdf2};

use crate::flight::random_bytes;

/// Rounds of a verifier that is made here, as many as PostgreSQL takes.
const ROUNDS: u32 = 4_096;
/// Most rounds of a verifier: the client does them, and is not to be kept busy.
const ROUNDS_MAX: u32 = 10_000_000;
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 18;
/// What a verifier begins with; also the name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";

/// What a server knows of a password: enough to check a proof, and not to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verifier {
    rounds: u32,
    salt: Vec<u8>,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
}

fn sign(key: &[u8], text: &[u8]) -> [u8; KEY_BYTES] {
    let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(signed.as_ref());
    bytes
}

fn hash(bytes: &[u8]) -> [u8; KEY_BYTES] {
    let hashed = digest::digest(&digest::SHA256, bytes);
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(hashed.as_ref());
    bytes
}

impl Verifier {
    /// Of a password, with a salt of its own.
    ///
    /// # Errors
    /// `Unavailable` when the system has no random numbers.
    pub fn of_password(password: &str) -> Result<Self> {
        Ok(Self::with_salt(password, &random_bytes::<SALT_BYTES>()?, ROUNDS))
    }

    fn with_salt(password: &str, salt: &[u8], rounds: u32) -> Self {
        let mut salted = [0; KEY_BYTES];
        let count = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, count, salt, password.as_bytes(), &mut salted);
        let stored_key = hash(&sign(&salted, b"Client Key"));
        let server_key = sign(&salted, b"Server Key");
        Verifier { rounds, salt: salt.to_vec(), stored_key, server_key }
    }

    /// One that no password fits, the same for a name each time: who asks for a user that is not there is not told so.
    pub fn of_nobody(secret: &[u8], name: &str) -> Self {
        let keyed = |what: &str| sign(secret, format!("{what} {name}").as_bytes());
        Verifier {
            rounds: ROUNDS,
            salt: keyed("salt")[..SALT_BYTES].to_vec(),
            stored_key: keyed("stored"),
            server_key: keyed("server"),
        }
    }

    /// Reads one as PostgreSQL writes it: `SCRAM-SHA-256$4096:SALT$STORED:SERVER`, each in Base64.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (head, keys) = rest.split_once('$')?;
        let (rounds, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let rounds = rounds.parse().ok().filter(|rounds| (1..=ROUNDS_MAX).contains(rounds))?;
        let key = |text: &str| <[u8; KEY_BYTES]>::try_from(BASE64_STANDARD.decode(text).ok()?).ok();
        let salt = BASE64_STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?;
        Some(Verifier { rounds, salt, stored_key: key(stored)?, server_key: key(server)? })
    }
}

impl std::fmt::Display for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let coded = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        let Verifier { rounds, salt, stored_key, server_key } = self;
        write!(
            f,
            "{MECHANISM}${rounds}:{}${}:{}",
            coded(salt),
            coded(stored_key),
            coded(server_key)
        )
    }
}

/// A login whose first message has come.
pub(super) struct Exchange {
    verifier: Verifier,
    /// What the client said of channels, which it says again.
    channel: String,
    client_first: String,
    server_first: String,
    nonce: String,
}

impl Exchange {
    /// Takes the first message of a client; the second is what it is answered. `None` when the message is none.
    ///
    /// # Errors
    /// `Unavailable` when the system has no random numbers.
    pub fn begin(verifier: Verifier, message: &str) -> Result<Option<(Self, String)>> {
        let more = BASE64_STANDARD.encode(random_bytes::<NONCE_BYTES>()?);
        Ok(Self::begin_with(verifier, message, &more))
    }

    fn begin_with(verifier: Verifier, message: &str, more: &str) -> Option<(Self, String)> {
        // `y`: the client could bind to the channel, and has seen that the server does not offer it.
        let rest = message.strip_prefix("n,").or_else(|| message.strip_prefix("y,"))?;
        // Another name to act as is not taken.
        let bare = rest.strip_prefix(',')?;
        let channel = message[..message.len() - bare.len()].to_owned();
        // The name is the one that the connection began with; clients leave it empty here.
        let nonce = bare.strip_prefix("n=")?.split_once(",r=")?.1.split(',').next()?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let nonce = format!("{nonce}{more}");
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.rounds);
        let exchange = Exchange {
            verifier,
            channel,
            client_first: bare.to_owned(),
            server_first: answer.clone(),
            nonce,
        };
        Some((exchange, answer))
    }

    /// Takes the last message of a client; its answer if the client knows the password.
    pub fn finish(self, message: &str) -> Option<String> {
        let (unproved, proof) = message.rsplit_once(",p=")?;
        let channel = BASE64_STANDARD.encode(&self.channel);
        let expected = format!("c={channel},r={}", self.nonce);
        if unproved != expected {
            return None;
        }
        let proof = <[u8; KEY_BYTES]>::try_from(BASE64_STANDARD.decode(proof).ok()?).ok()?;
        let signed = format!("{},{},{unproved}", self.client_first, self.server_first);
        let signature = sign(&self.verifier.stored_key, signed.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(byte, with)| *byte ^= with);
        // Compared in a time that does not tell how much of it is right.
        let is_right = constant_time_eq(&hash(&client_key), &self.verifier.stored_key);
        let server = sign(&self.verifier.server_key, signed.as_bytes());
        is_right.then(|| format!("v={}", BASE64_STANDARD.encode(server)))
    }
}

fn constant_time_eq(a: &[u8; KEY_BYTES], b: &[u8; KEY_BYTES]) -> bool {
    a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The exchange of RFC 7677, section 3; its client gives a name.
    #[test]
    fn the_example_of_the_standard_is_answered_as_there() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", &salt, 4_096);
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let more = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let (exchange, answer) = Exchange::begin_with(verifier, first, more).unwrap();
        assert_eq!(
            answer,
            format!("r=rOprNGfwEbeRWgbNEkqO{more},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        );
        let last = format!(
            "c=biws,r=rOprNGfwEbeRWgbNEkqO{more},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(
            exchange.finish(&last).unwrap(),
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn who_does_not_know_the_password_or_answers_for_another_channel_is_not_let_in() {
        let begun = || {
            let verifier = Verifier::of_password("right").unwrap();
            Exchange::begin_with(verifier, "n,,n=,r=abc", "def").unwrap().0
        };
        let proof = BASE64_STANDARD.encode([0; KEY_BYTES]);
        for last in [
            format!("c=biws,r=abcdef,p={proof}"),
            format!("c=eSws,r=abcdef,p={proof}"),
            format!("c=biws,r=abc,p={proof}"),
            "c=biws,r=abcdef,p=".to_owned(),
            "c=biws,r=abcdef".to_owned(),
        ] {
            assert_eq!(begun().finish(&last), None, "{last}");
        }
        for first in
            ["", "n,,n=", "p=tls-unique,,n=,r=a", "n,a=b,n=,r=a", "n,,n=,r=", "n,,m=x,n=,r=a"]
        {
            assert!(
                Exchange::begin_with(Verifier::of_nobody(b"s", "n"), first, "x").is_none(),
                "{first}"
            );
        }
    }

    #[test]
    fn a_verifier_is_read_back() {
        let verifier = Verifier::of_password("x").unwrap();
        assert_eq!(Verifier::parse(&verifier.to_string()), Some(verifier));
        assert_eq!(Verifier::parse("SCRAM-SHA-256$0:AA==$AA==:AA=="), None);
    }
}
