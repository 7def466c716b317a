//! Who may call: users, their passwords, and the tokens that stand for them.
//!
//! ```text
//!   # name  hash of the password                   rights
//!   ada     $argon2id$v=19$m=19456,t=2,p=1$..$..   admin:*
//!   ci      $argon2id$v=19$m=19456,t=2,p=1$..$..   read:* load:staging_*
//! ```
//!
//! A client says its name and password once, in a handshake, and gets a token for the calls after it. A
//! program that cannot do so sends them with each call, as `Basic` or as `Bearer NAME.PASSWORD`.
//!
//! Cost: a password takes some 20 ms and 19 MiB to check, see [`super::logins`]. What was right is remembered by the
//! digest of its header: who has logged in once is not held up by others who guess.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, phc::PasswordHash};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use blake2::{Blake2s256, Digest};
use coload_threads::lock;
use coload_types::{Error, Result};
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::door::Peer;
use super::kept::{Kept, KeptLimits, WhenFull, random_bytes};
use super::limits::UserCount;
use super::logins::{Logins, Place};
use crate::postgres::{MECHANISM, Verifier};
use crate::rights::{Grant, Rights};

/// Most tokens given out.
const SESSIONS_MAX: usize = 16_384;
/// A token that nobody uses for so long is forgotten.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Most checked passwords remembered.
const CHECKED_MAX: usize = 4_096;
/// The token of a server that asks nobody who he is.
const TOKEN_OF_ANYBODY: &str = "anybody";
/// What a client without token or with a wrong one is told.
const WHO_ARE_YOU: &str = "log in with a user and password, or send a token";

/// The users of a server.
#[derive(Debug)]
pub struct Users {
    /// `None` when nobody is asked who he is.
    by_name: Option<HashMap<String, User>>,
    sessions: Kept<Rights>,
    checked: Mutex<HashMap<[u8; 32], Rights>>,
    logins: Logins,
    /// Of which users that are not there get verifiers; `None` where the system has no random numbers, and nobody can log in by a
    /// proof.
    secret: Option<[u8; 32]>,
}

#[derive(Debug, Clone)]
struct User {
    hash: String,
    /// What proves the password to clients that do not send it.
    verifier: Option<Verifier>,
    rights: Rights,
}

/// How the password of a user is checked by PostgreSQL's protocol.
#[derive(Debug)]
pub(crate) enum PasswordCheck {
    /// Nobody is asked who he is.
    None,
    /// The client sends it.
    Hash,
    /// The client proves that it knows it.
    Scram(Verifier),
}

impl Users {
    /// Anybody may do everything.
    pub fn anybody() -> Self {
        Self::of(None)
    }

    fn of(by_name: Option<HashMap<String, User>>) -> Self {
        Users {
            by_name,
            sessions: sessions(SESSIONS_MAX),
            checked: Mutex::default(),
            logins: Logins::new(),
            secret: random_bytes().ok(),
        }
    }

    /// How the password of a user is checked. One that is not there is asked as others are.
    pub(crate) fn password_check(&self, name: &str) -> PasswordCheck {
        let Some(by_name) = &self.by_name else { return PasswordCheck::None };
        match by_name.get(name) {
            Some(User { verifier: Some(verifier), .. }) => PasswordCheck::Scram(verifier.clone()),
            Some(_) => PasswordCheck::Hash,
            None => match self.secret {
                Some(secret) if by_name.values().any(|user| user.verifier.is_some()) => {
                    PasswordCheck::Scram(Verifier::of_nobody(&secret, name))
                }
                _ => PasswordCheck::Hash,
            },
        }
    }

    /// Checks a name and password.
    pub(crate) async fn log_in_with(
        &self,
        peer: Peer,
        name: &str,
        password: &str,
    ) -> std::result::Result<Rights, Status> {
        let header =
            format!("Basic {}", BASE64_STANDARD_NO_PAD.encode(format!("{name}:{password}")));
        self.remember(peer, &header, name.to_owned(), password.to_owned()).await
    }

    /// Waits until a peer may try to prove a password.
    pub(crate) async fn may_try(&self, peer: Peer) -> std::result::Result<Place, Status> {
        self.logins.place(peer).await
    }

    /// Notes that a proof was wrong.
    pub(crate) fn failed(&self, place: &Place, name: &str) {
        tracing::warn!(user = cut(name), "wrong user or password");
        self.logins.failed(place);
    }

    /// What a user may do whose password was proved.
    pub(crate) fn rights_of(&self, name: &str) -> Option<Rights> {
        self.by_name.as_ref()?.get(name).map(|user| user.rights.clone())
    }

    /// Gives each user so many tokens.
    pub(crate) fn limit_tokens(&mut self, per_user: usize) {
        self.sessions = sessions(per_user);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> UserCount {
        match &self.by_name {
            Some(by_name) if by_name.len() > 1 => UserCount::Several,
            _ => UserCount::One,
        }
    }

    /// Reads lines of name, hash and rights; `origin` is where they are from.
    ///
    /// # Errors
    /// `Invalid` for a line that is none of these; names the line, never the hash.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let mut by_name = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, user) = parse_line(line)
                .map_err(|e| Error::Invalid(format!("{origin}:{}: {e}", index + 1)))?;
            if by_name.insert(name.clone(), user).is_some() {
                return Err(Error::Invalid(format!(
                    "{origin}:{}: user {name:?} is there twice",
                    index + 1
                )));
            }
        }
        if by_name.is_empty() {
            return Err(Error::Invalid(format!("{origin} has no user")));
        }
        Ok(Self::of(Some(by_name)))
    }

    /// Whether nobody is asked who he is.
    pub fn is_open(&self) -> bool {
        self.by_name.is_none()
    }

    /// Checks the name and password of a handshake and gives out a token.
    pub(crate) async fn log_in(
        &self,
        peer: Peer,
        header: Option<&str>,
    ) -> std::result::Result<String, Status> {
        if self.is_open() {
            return Ok(TOKEN_OF_ANYBODY.into());
        }
        let unknown = || Status::unauthenticated(WHO_ARE_YOU);
        let header = header.ok_or_else(unknown)?;
        let (name, password) = name_and_password(header).ok_or_else(unknown)?;
        let rights = self.remember(peer, header, name, password).await?;
        self.new_token(rights)
    }

    fn new_token(&self, rights: Rights) -> std::result::Result<String, Status> {
        let user = rights.user().to_owned();
        match self.sessions.put(&user, rights) {
            Ok(Ok(handle)) => Ok(BASE64_URL_SAFE_NO_PAD.encode(handle)),
            Ok(Err(_)) => Err(Status::resource_exhausted("too many clients are logged in")),
            Err(e) => Err(super::status::status(e)),
        }
    }

    /// Who calls, by the headers of a call.
    pub(crate) async fn caller(
        &self,
        peer: Peer,
        headers: &MetadataMap,
    ) -> std::result::Result<Rights, Status> {
        if self.is_open() {
            return Ok(Rights::all());
        }
        let header = headers
            .get("authorization")
            .and_then(|h| h.to_str().ok())
            .ok_or_else(|| Status::unauthenticated(WHO_ARE_YOU))?;
        let (name, password) = match header.strip_prefix("Bearer ") {
            Some(token) => {
                if let Ok(handle) = BASE64_URL_SAFE_NO_PAD.decode(token)
                    && let Some(rights) = self.sessions.with(&handle, |rights| rights.clone())
                {
                    return Ok(rights);
                }
                let parts = token.split_once('.').ok_or_else(|| {
                    Status::unauthenticated("the token is unknown or too old; log in again")
                })?;
                (parts.0.to_owned(), parts.1.to_owned())
            }
            None => {
                name_and_password(header).ok_or_else(|| Status::unauthenticated(WHO_ARE_YOU))?
            }
        };
        self.remember(peer, header, name, password).await
    }

    /// Checks a name and password, unless the same header was right before.
    async fn remember(
        &self,
        peer: Peer,
        header: &str,
        name: String,
        password: String,
    ) -> std::result::Result<Rights, Status> {
        let digest: [u8; 32] = Blake2s256::digest(header.as_bytes()).into();
        let checked = || lock(&self.checked);
        if let Some(rights) = checked().get(&digest) {
            return Ok(rights.clone());
        }
        let place = self.logins.place(peer).await?;
        // Another connection of the same client may have been checked meanwhile.
        if let Some(rights) = checked().get(&digest) {
            return Ok(rights.clone());
        }
        let rights = self.check(&place, &name, password).await?;
        let mut checked = checked();
        if checked.len() >= CHECKED_MAX {
            checked.clear();
        }
        checked.insert(digest, rights.clone());
        Ok(rights)
    }

    /// Compares a password with its hash; an unknown name takes as long as a wrong password.
    async fn check(
        &self,
        place: &Place,
        name: &str,
        password: String,
    ) -> std::result::Result<Rights, Status> {
        let wrong = || Status::unauthenticated("wrong user or password");
        let by_name = self.by_name.as_ref().ok_or_else(wrong)?;
        let known = by_name.get(name);
        // The hash of any other user serves for the time it takes.
        let Some(user) = known.or_else(|| by_name.values().next()) else { return Err(wrong()) };
        let password = match known {
            Some(_) => password,
            // Nor may the other user's password count as right.
            None => format!("{password}\0"),
        };
        match (self.logins.check(place, user.hash.clone(), password).await?, known) {
            (true, Some(user)) => Ok(user.rights.clone()),
            _ => {
                tracing::warn!(user = cut(name), "wrong user or password");
                Err(wrong())
            }
        }
    }

    /// Whether a header says a password that was right before.
    #[cfg(test)]
    fn remembers(&self) -> usize {
        lock(&self.checked).len()
    }

    /// Forgets tokens that nobody uses.
    pub(crate) fn sweep(&self) {
        self.sessions.sweep();
        self.logins.sweep();
    }
}

fn sessions(per_user: usize) -> Kept<Rights> {
    Kept::new(KeptLimits {
        total: SESSIONS_MAX,
        per_user,
        idle_max: SESSION_IDLE_MAX,
        full: WhenFull::DropOldest,
    })
}

/// The start of a name that anybody may have made up, for the log.
fn cut(name: &str) -> String {
    const SHOWN_MAX: usize = 64;
    name.chars().take(SHOWN_MAX).collect()
}

/// What a header of the kind Basic says.
fn name_and_password(header: &str) -> Option<(String, String)> {
    // Drivers written in Go leave out what fills the last group.
    let coded = header.strip_prefix("Basic ")?.trim().trim_end_matches('=');
    let bytes = BASE64_STANDARD_NO_PAD.decode(coded).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    text.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

fn parse_line(line: &str) -> Result<(String, User)> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    if name.contains(['.', ':']) {
        return Err(Error::Invalid(format!("user {name:?} has a point or colon in its name")));
    }
    let hash = words.next().unwrap_or_default().to_owned();
    let is_argon2 =
        PasswordHash::new(&hash).is_ok_and(|h| h.algorithm.as_str().starts_with("argon2"));
    if !is_argon2 {
        return Err(Error::Invalid(format!(
            "user {name:?} has no argon2 hash after its name (`coload hash-password` makes one)"
        )));
    }
    let mut words = words.peekable();
    let verifier = words.next_if(|word| word.starts_with(MECHANISM));
    let verifier = verifier.map(|text| {
        let wrong =
            || Error::Invalid(format!("user {name:?} has a {MECHANISM} verifier that is none"));
        Verifier::parse(text).ok_or_else(wrong)
    });
    let verifier = verifier.transpose()?;
    let grants: Vec<Grant> = words.map(str::parse).collect::<Result<_>>()?;
    if grants.is_empty() {
        return Err(Error::Invalid(format!("user {name:?} has no rights, such as read:*")));
    }
    let rights = Rights::of(&name, grants);
    Ok((name, User { hash, verifier, rights }))
}

/// The hash of a password and what proves it to clients of PostgreSQL, as [`Users::parse`] reads them.
///
/// # Errors
/// `Invalid` when it is empty, `Unavailable` when the system has no random numbers.
pub fn hash_password_with_verifier(password: &str) -> Result<String> {
    let hash = hash_password(password)?;
    Ok(format!("{hash} {}", Verifier::of_password(password)?))
}

/// The hash of a password, as [`Users::parse`] reads it.
///
/// # Errors
/// `Invalid` when it is empty, `Unavailable` when the system has no random numbers.
pub fn hash_password(password: &str) -> Result<String> {
    if password.is_empty() {
        return Err(Error::Invalid("the password is empty".into()));
    }
    let hash: std::result::Result<PasswordHash, _> =
        Argon2::default().hash_password(password.as_bytes());
    hash.map(|h| h.to_string())
        .map_err(|e| Error::Unavailable(format!("cannot hash the password: {e}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tonic::Code;

    use base64::prelude::BASE64_STANDARD;

    use super::*;
    use crate::rights::Role;

    /// A hash that is quick to make.
    fn quick_hash(password: &str) -> String {
        let params = argon2::Params::new(argon2::Params::MIN_M_COST, 1, 1, None).unwrap();
        let argon2 = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let hash: PasswordHash = argon2.hash_password(password.as_bytes()).unwrap();
        hash.to_string()
    }

    fn users() -> Users {
        let text = format!(
            "# people\nada {} admin:*\n\n ci {} read:* load:stage_*\n",
            quick_hash("loves engines"),
            quick_hash("robot")
        );
        Users::parse(&text, "users").unwrap()
    }

    fn here() -> Peer {
        std::net::IpAddr::from([127, 0, 0, 1]).into()
    }

    fn bearer(token: &str) -> MetadataMap {
        let mut headers = MetadataMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        headers
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(text))
    }

    /// Symptom: ADBC, whose driver is written in Go, could not log in, unless name and password had a multiple of three bytes.
    #[tokio::test]
    async fn a_password_may_come_without_what_fills_its_last_group() {
        let users = users();
        for text in ["ci:robot", "ada:loves engines"] {
            let header = basic(text).trim_end_matches('=').to_owned();
            assert!(users.log_in(here(), Some(&header)).await.is_ok(), "{header}");
        }
    }

    #[tokio::test]
    async fn a_token_of_a_handshake_stands_for_its_user() {
        let users = users();
        let token = users.log_in(here(), Some(&basic("ci:robot"))).await.unwrap();
        let rights = users.caller(here(), &bearer(&token)).await.unwrap();
        assert_eq!(rights.user(), "ci");
        assert_eq!(rights.on("stage_1"), Some(Role::Load));
        assert_eq!(rights.on("t"), Some(Role::Read));
    }

    #[tokio::test]
    async fn a_name_and_password_are_a_token_too() {
        let users = users();
        for _ in 0..2 {
            let rights = users.caller(here(), &bearer("ada.loves engines")).await.unwrap();
            assert_eq!(rights.on("t"), Some(Role::Admin));
        }
        assert_eq!(users.remembers(), 1);
    }

    #[tokio::test]
    async fn who_is_unknown_is_told_nothing() {
        let users = users();
        for text in ["ada:robot", "eve:robot", "ada:", ":", "ada"] {
            let refused = users.log_in(here(), Some(&basic(text))).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{text}");
        }
        assert!(users.log_in(here(), None).await.is_err());
        assert!(users.log_in(here(), Some("Basic \u{1}")).await.is_err());
        // Five wrong passwords make a peer wait: these come to a server that has not seen them.
        let users = self::users();
        for token in ["", "x", "ada.robot", "eve.robot", "AAAAAAAAAAAAAAAAAAAAAA"] {
            let refused = users.caller(here(), &bearer(token)).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{token}");
        }
        assert!(users.caller(here(), &MetadataMap::new()).await.is_err());
        assert_eq!(Users::anybody().caller(here(), &MetadataMap::new()).await.unwrap().user(), "");
    }

    #[test]
    fn lines_that_are_wrong_are_named_without_their_hash() {
        let hash = quick_hash("p");
        for (text, part) in [
            ("ada secret read:*".to_owned(), "users:1: user \"ada\" has no argon2 hash"),
            (format!("\nada {hash}"), "users:2: user \"ada\" has no rights"),
            (format!("ada {hash} write:*"), "\"write:*\" is no right"),
            (
                format!("ada {hash} read:*\nada {hash} read:*"),
                "users:2: user \"ada\" is there twice",
            ),
            (format!("a.b {hash} read:*"), "has a point"),
            ("# nobody".to_owned(), "users has no user"),
        ] {
            let error = Users::parse(&text, "users").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("secret") && !error.contains(&hash), "{error}");
        }
    }

    #[test]
    fn a_hash_is_read_back() {
        let hash = hash_password("x").unwrap();
        assert!(Users::parse(&format!("u {hash} read:*"), "users").is_ok());
        assert!(hash_password("").is_err());
    }
}
