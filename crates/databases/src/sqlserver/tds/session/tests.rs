//! Answers as bytes, and servers that say this and that.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use proptest::prelude::*;
use tokio_rustls::rustls::version::TLS12;

use super::super::login::Encryption;
use super::super::wire::Stream;
use super::*;
use crate::tls::{Certificates, Checked, client_config};

/// A session to whose next request these bytes are the answer.
fn answered(bytes: Vec<u8>) -> Session {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = TcpStream::connect(address).expect("a connection");
    let (mut server, _) = listener.accept().expect("a client");
    std::thread::spawn(move || {
        let parts = bytes.chunks(100).collect::<Vec<_>>();
        for (at, part) in parts.iter().enumerate() {
            let length = (part.len() as u16 + 8).to_be_bytes();
            let status = u8::from(at + 1 == parts.len());
            let header = [message::ANSWER, status, length[0], length[1], 0, 0, 1, 0];
            let _ = server.write_all(&[&header, *part].concat());
        }
    });
    let mut wire = Wire::new(Stream::Plain(client), 4096);
    wire.await_answer();
    Session::new(wire)
}

/// Tokens of answers more often than other bytes.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        any::<u8>(),
        proptest::sample::select(vec![
            0, 1, 2, 4, 8, 0x26, 0x62, 0x6a, 0x81, 0xa5, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xd1, 0xd2,
            0xe3, 0xe7, 0xf0, 0xf1, 0xfd, 0xfe, 0xff,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_of_a_server_lead_to_a_panic(bytes in proptest::collection::vec(byte(), 0..300)) {
        let _ = answered(bytes).read_all();
    }
}

#[test]
fn a_value_that_says_it_is_huge_takes_no_memory() {
    // A column of nvarchar(max), and a row of a value whose part has 4 GiB.
    let mut bytes = vec![0x81, 1, 0, 0, 0, 0, 0, 9, 0, 0xe7, 0xff, 0xff, 9, 4, 0, 0, 0, 0, 0xd1];
    bytes.extend_from_slice(&(u64::MAX - 1).to_le_bytes());
    bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    let error = answered(bytes).read_all().expect_err("it is cut off");
    assert!(matches!(error, Error::Limit(_)), "{error}");
}

#[test]
fn an_error_is_told_with_its_number_and_the_transaction_is_over() {
    let mut bytes = vec![0xe3, 11, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    bytes.extend_from_slice(&[
        0xaa, 18, 0, 0xb5, 4, 0, 0, 1, 13, 2, 0, b'n', 0, b'o', 0, 0, 0, 1, 0, 0, 0,
    ]);
    bytes.extend_from_slice(&[0xfd, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut session = answered(bytes);
    session.transaction = 5;
    let (_, error) = session.read_all().expect("an answer");
    assert_eq!(error, Some(ServerError { number: 1205, class: 13, text: "no".to_owned() }));
    assert_eq!(session.transaction, 0);
}

/// An error, as a token.
fn error(number: i32, class: u8, text: &str) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend_from_slice(&[1, class]);
    body.extend_from_slice(&(text.len() as u16).to_le_bytes());
    body.extend(text.bytes().flat_map(|byte| [byte, 0]));
    // No server, no procedure, no line.
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    let kind = if class > 10 { token::ERROR } else { token::INFO };
    [vec![kind], (body.len() as u16).to_le_bytes().to_vec(), body].concat()
}

/// The end of a part, of so many rows.
fn done(kind: u8, status: u16, count: u64) -> Vec<u8> {
    [&[kind][..], &status.to_le_bytes(), &[0, 0], &count.to_le_bytes()].concat()
}

/// A duplicate that was left out is known of however much else the server says.
#[test]
fn what_the_server_says_does_not_hide_a_duplicate_that_was_left_out() {
    let mut bytes = Vec::new();
    for number in 0..200 {
        bytes.extend(error(50_000 + number, 0, "print"));
    }
    bytes.extend(error(LEFT_OUT, 0, "Duplicate key was ignored."));
    bytes.extend(done(token::DONE, 0, 0));
    let mut session = answered(bytes);
    assert_eq!(session.read_all().expect("an answer").1, None);
    assert!(session.has_left_out());
    let mut session = answered([error(5701, 0, "d"), done(token::DONE, 0, 0)].concat());
    session.read_all().expect("an answer");
    assert!(!session.has_left_out());
}

#[test]
fn the_error_that_says_what_became_of_a_statement_is_kept() {
    let kept = |errors: &[(i32, u8)]| {
        let mut bytes: Vec<u8> =
            errors.iter().flat_map(|(number, class)| error(*number, *class, "e")).collect();
        bytes.extend(done(token::DONE, status::ERROR, 0));
        answered(bytes).read_all().expect("an answer").1.map(|error| error.number)
    };
    assert_eq!(kept(&[(2627, 14), (3609, 16)]), Some(2627), "the first says why");
    assert_eq!(kept(&[(547, 16), (1205, 13), (3616, 16)]), Some(1205), "a deadlock");
    assert_eq!(kept(&[(547, 16), (9002, 17), (596, 21)]), Some(596), "the worst");
    assert_eq!(kept(&[]), Some(0), "one that was not told");
}

/// Millions of parts of an answer leave two counts in memory.
#[test]
fn counts_of_an_answer_are_those_of_its_end() {
    let mut bytes = Vec::new();
    for count in 0..1000 {
        bytes.extend(done(token::DONE_IN_PROC, status::MORE | status::COUNT, count));
    }
    bytes.extend(done(token::DONE, status::MORE | status::COUNT, 7));
    bytes.extend(done(token::DONE_IN_PROC, status::COUNT, 9));
    let (counts, _) = answered(bytes).read_all().expect("an answer");
    assert_eq!(counts, Counts { last: Some(9), of_batch: Some(7) });
}

/// A row whose NULL are told before it, and one behind it that has none.
#[test]
fn bits_of_null_are_those_of_their_row() {
    let mut bytes = vec![token::COLUMNS, 2, 0];
    for name in *b"ab" {
        bytes.extend_from_slice(&[0, 0, 0, 0, 9, 0, 0x26, 4, 1, name, 0]);
    }
    bytes.extend_from_slice(&[token::SPARSE_ROW, 0b10, 4, 1, 0, 0, 0]);
    bytes.extend_from_slice(&[token::ROW, 4, 2, 0, 0, 0, 4, 3, 0, 0, 0]);
    bytes.extend(done(token::DONE, 0, 0));
    let mut session = answered(bytes);
    let Token::Columns(columns) = session.next().expect("columns") else { panic!("no columns") };
    let mut value = Vec::new();
    let mut found = Vec::new();
    while session.next().expect("a token") == Token::Row {
        for (at, column) in columns.iter().enumerate() {
            let is_given = session.value(&column.type_info, at, (&mut value, 9)).expect("a value");
            found.push(is_given.then(|| value[0]));
        }
    }
    assert_eq!(found, [Some(1), None, Some(2), Some(3)]);
}

/// A server without TLS that says of encryption what it is told to, and answers a login so. What it got as login comes back.
fn server(told: u8, answer: Vec<u8>) -> (Login, JoinHandle<Option<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().ok()?;
        let mut read = || {
            let mut header = [0; 8];
            stream.read_exact(&mut header).ok()?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])) - 8;
            let mut bytes = vec![0; length];
            stream.read_exact(&mut bytes).ok()?;
            Some((bytes, stream.try_clone().ok()?))
        };
        let write = |stream: &mut TcpStream, bytes: &[u8]| {
            let length = (bytes.len() as u16 + 8).to_be_bytes();
            let header = [message::ANSWER, 1, length[0], length[1], 0, 0, 1, 0];
            stream.write_all(&[&header, bytes].concat()).ok()
        };
        let (_, mut back) = read()?;
        write(&mut back, &[1, 0, 6, 0, 1, 0xff, told])?;
        let (login, mut back) = read()?;
        write(&mut back, &answer)?;
        Some(login)
    });
    let tls = client_config(Checked::Nothing, &Certificates::default(), &[&TLS12]).expect("TLS");
    let login = Login {
        host: "127.0.0.1".to_owned(),
        port,
        certificate_name: None,
        encryption: Encryption::Login,
        tls: Arc::clone(&tls),
        user: "u".to_owned(),
        password: "secret".to_owned(),
        database: String::new(),
        program: "p".to_owned(),
        reads_only: false,
        patience: Duration::from_secs(5),
    };
    (login, served)
}

fn fails_to_open(login: &Login) -> Error {
    let world = |error: &ServerError| Error::Refused(error.text.clone());
    match Session::open(login, world) {
        Ok(_) => panic!("it is open"),
        Err(error) => error,
    }
}

#[test]
fn a_password_is_not_sent_as_it_is_unless_the_user_says_so() {
    const CANNOT: u8 = 2;
    for encryption in [Encryption::All, Encryption::Login] {
        let (login, served) = server(CANNOT, Vec::new());
        let error = fails_to_open(&Login { encryption, ..login });
        assert!(matches!(error, Error::Refused(_)), "{error}");
        assert!(error.to_string().contains("encrypt=disable"), "{error}");
        assert_eq!(served.join().expect("a thread"), None, "no login came");
    }
    let answer = error(18_456, 14, "Login failed.");
    let (login, served) = server(CANNOT, [answer, done(token::DONE, status::ERROR, 0)].concat());
    let error = fails_to_open(&Login { encryption: Encryption::Nothing, ..login });
    assert!(error.to_string().contains("Login failed."), "{error}");
    assert!(served.join().expect("a thread").is_some());
}

/// The server sends the client on to another host.
fn routed(protocol: u8, port: u16, host: &str) -> Vec<u8> {
    let mut value = vec![protocol];
    value.extend_from_slice(&port.to_le_bytes());
    value.extend_from_slice(&(host.encode_utf16().count() as u16).to_le_bytes());
    value.extend(host.encode_utf16().flat_map(u16::to_le_bytes));
    let length = (value.len() as u16).to_le_bytes();
    let body = [&[20], &length[..], &value, &[0, 0]].concat();
    let change = [&[token::CHANGE], &(body.len() as u16).to_le_bytes()[..], &body].concat();
    [change, done(token::DONE, 0, 0)].concat()
}

#[test]
fn nobody_is_sent_on_by_an_answer_that_is_not_encrypted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (login, served) = server(2, routed(0, port, "127.0.0.1"));
    let error = fails_to_open(&Login { encryption: Encryption::Nothing, ..login });
    assert!(error.to_string().contains("sends us to 127.0.0.1"), "{error}");
    served.join().expect("a thread");
    listener.set_nonblocking(true).expect("a socket");
    assert!(listener.accept().is_err(), "nobody came");
}

#[test]
fn a_host_that_is_none_is_no_place_to_be_sent_to() {
    for (protocol, port, host) in [
        (1, 1433, "h"),
        (0, 0, "h"),
        (0, 1433, ""),
        (0, 1433, "h/d"),
        (0, 1433, "h\u{7}"),
        (0, 1433, &"h".repeat(254) as &str),
    ] {
        let error = answered(routed(protocol, port, host)).read_all().expect_err(host);
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
    }
    let mut session = answered(routed(0, 11_000, "a.worker.example.net\\b.c"));
    session.read_all().expect("an answer");
    assert_eq!(session.route, Some(("a.worker.example.net".to_owned(), 11_000)));
}
