use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use coload_input::expand_inputs;
use coload_load::{ClientTls, Hooks, LoadRequest, RemoteOptions, Resources};
use coload_serve::arrow::array::AsArray;
use coload_serve::arrow::datatypes::Int64Type;
use coload_serve::{Address, Credentials, Remote, ServeOptions, TlsFiles};
use coload_source::Dialect;
use coload_types::Error;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

use super::statements::csv;
use super::{Running, here, users};

/// A root and what it signs, as files.
struct Authority {
    dir: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "a root");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { dir, issuer }
    }

    fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// A certificate for this machine and its key, valid until a year.
    fn sign(&self, name: &str, until: i32) -> (PathBuf, PathBuf) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |ending: &str| self.dir.path().join(format!("{name}.{ending}"));
        std::fs::write(path("pem"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        (path("pem"), path("key"))
    }
}

fn start(authority: &Authority, until: i32, client_ca: Option<PathBuf>) -> Running {
    let (certificate, key) = authority.sign("server", until);
    let tls = Some(TlsFiles { certificate, key, client_ca });
    Running::start_with(ServeOptions { tls, users: users(), ..ServeOptions::new(here()) })
}

fn connect(
    running: &Running,
    ca: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
) -> coload_types::Result<Remote> {
    let address = Address { tls: true, user: Some("ada".into()), ..running.url() };
    let password = Some("ada".to_owned());
    let mut client =
        Remote::connect(address, &Credentials { password, token: None, ca, certificate })?;
    client.query("SELECT 1")?;
    Ok(client)
}

#[track_caller]
fn is_cut(connected: coload_types::Result<Remote>) -> String {
    match connected {
        Err(Error::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tls_hides_what_is_said_from_all_but_the_server() {
    let authority = Authority::new();
    let running = start(&authority, 2100, None);
    let mut client = connect(&running, Some(authority.ca()), None).unwrap();
    assert_eq!(csv(&mut client, "SELECT 'over TLS'"), "over TLS\n");
    // Another root, that of the system, and none.
    is_cut(connect(&running, Some(Authority::new().ca()), None));
    is_cut(connect(&running, None, None));
    let plain = Remote::connect(running.url(), &Credentials::default());
    is_cut(plain.and_then(|mut client| client.query("SELECT 1").map(|_| client)));
}

#[test]
fn loads_go_over_tls_too() {
    let authority = Authority::new();
    let running = start(&authority, 2100, Some(authority.ca()));
    let file = authority.dir.path().join("t.csv");
    std::fs::write(&file, "1,one\n2,two\n").unwrap();
    let inputs = expand_inputs(&[file.to_string_lossy().into_owned()]).unwrap();
    let schema = coload_ddl::parse_columns("id BIGINT, name VARCHAR").unwrap();
    let request = LoadRequest::new(inputs, "t", schema, Dialect::default());
    let load = |remote: &RemoteOptions| {
        coload_load::load(&request, &Resources::default(), &Hooks::default(), remote)
    };
    let read = |path: PathBuf| std::fs::read(path).unwrap();
    let (certificate, key) = authority.sign("client", 2100);
    let mut remote = RemoteOptions::new(running.address.to_string());
    remote.authorization = Some(format!("Basic {}", BASE64_STANDARD.encode("ada:ada")));
    remote.patience = Duration::from_secs(2);
    // Neither without TLS nor without a certificate of the root.
    assert!(load(&remote).is_err());
    remote.tls = Some(ClientTls { ca: Some(read(authority.ca())), certificate: None });
    assert!(load(&remote).is_err());
    let certificate = Some((read(certificate), read(key)));
    remote.tls = Some(ClientTls { ca: Some(read(authority.ca())), certificate });
    load(&remote).unwrap();
    let found = running.scratch.database.query("SELECT count(*) FROM t WHERE id > 0").unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let running = start(&authority, 2021, None);
    let text = is_cut(connect(&running, Some(authority.ca()), None));
    assert!(text.contains("xpired"), "{text}");
}

#[test]
fn with_mutual_tls_a_client_needs_a_certificate_of_the_root() {
    let (authority, other) = (Authority::new(), Authority::new());
    let running = start(&authority, 2100, Some(authority.ca()));
    let ca = || Some(authority.ca());
    assert!(connect(&running, ca(), Some(authority.sign("client", 2100))).is_ok());
    is_cut(connect(&running, ca(), None));
    is_cut(connect(&running, ca(), Some(other.sign("client", 2100))));
    is_cut(connect(&running, ca(), Some(authority.sign("old", 2021))));
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("server", 2100);
    let text = authority.dir.path().join("text");
    std::fs::write(&text, "not a certificate").unwrap();
    for tls in [
        TlsFiles { certificate: text.clone(), key: key.clone(), client_ca: None },
        TlsFiles { certificate: certificate.clone(), key: text.clone(), client_ca: None },
        TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: Some(text.clone()),
        },
        TlsFiles { certificate: key.clone(), key: certificate, client_ca: None },
    ] {
        let options = ServeOptions { tls: Some(tls.clone()), ..ServeOptions::new(here()) };
        let scratch = crate::support::Scratch::new();
        let error = coload_serve::Server::bind(scratch.database.clone(), options).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{tls:?}: {error}");
    }
}
