//! PostgreSQL's protocol, by a client of PostgreSQL that is not ours, and by hand-made bytes.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use coload_serve::{
    ServeLimits, ServeOptions, TlsFiles, Users, hash_password, hash_password_with_verifier,
};
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

use crate::flight::{Running, here};

fn served(options: ServeOptions) -> Running {
    Running::start_with(ServeOptions { postgres: Some(here()), ..options })
}

pub fn start() -> Running {
    served(ServeOptions::new(here()))
}

/// A client on a runtime of its own, and the notices that it gets.
pub struct Guest {
    pub runtime: Runtime,
    pub client: Client,
    notices: std::sync::mpsc::Receiver<String>,
}

impl Guest {
    fn of(running: &Running, user: &str, password: &str) -> Result<Self, tokio_postgres::Error> {
        let runtime = Runtime::new().unwrap();
        let address = running.postgres.unwrap();
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(address.port())
            .user(user)
            .password(password)
            .dbname("coload");
        let (client, mut connection) = runtime.block_on(config.connect(NoTls))?;
        let (sender, notices) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notice(notice) = message {
                    let _ = sender.send(notice.message().to_owned());
                }
            }
        });
        Ok(Guest { runtime, client, notices })
    }

    pub fn new(running: &Running) -> Self {
        Guest::of(running, "anybody", "").unwrap()
    }

    /// Rows of a text of statements, each as its values with bars between them.
    pub fn simple(&self, text: &str) -> Vec<String> {
        let messages = self.runtime.block_on(self.client.simple_query(text)).unwrap();
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                let values = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL").to_owned());
                Some(values.collect::<Vec<_>>().join("|"))
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }

    fn fails(&self, text: &str) -> SqlState {
        let error = self.runtime.block_on(self.client.simple_query(text)).unwrap_err();
        error.code().unwrap().clone()
    }

    fn execute(&self, text: &str) -> u64 {
        self.runtime.block_on(self.client.execute(text, &[])).unwrap()
    }
}

/// A value as it was sent in binary.
struct Sent(Vec<u8>);

impl<'a> FromSql<'a> for Sent {
    fn from_sql(
        _: &Type,
        bytes: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Sent(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

const TYPES: &str = "CREATE TABLE types (b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, d DECIMAL(12,4), r REAL, f DOUBLE, \
    day DATE, t TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, v VARCHAR, bin BINARY, u UUID)";
const VALUES: &str = "INSERT INTO types VALUES (true, -7, 70000, 5000000000, -12.3450, 1.5, 1e300, DATE '2024-02-29', \
    TIME '12:34:56.5', TIMESTAMP '2024-02-29 12:34:56.000001', TIMESTAMP WITH TIME ZONE '1999-12-31 23:00:00+00:00', 'é', X'00ff', \
    '00112233-4455-6677-8899-aabbccddeeff')";

#[test]
fn values_of_all_types_come_as_text_and_in_binary() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple(&format!("{TYPES}; {VALUES}; INSERT INTO types (s) VALUES (NULL)"));
    let expected = "t|-7|70000|5000000000|-12.3450|1.5|1e+300|2024-02-29|12:34:56.500|2024-02-29 12:34:56.000001|\
        1999-12-31 23:00:00+00|é|\\x00ff|00112233-4455-6677-8899-aabbccddeeff";
    assert_eq!(guest.simple("SELECT * FROM types WHERE i IS NOT NULL"), [expected]);
    let rows =
        guest.runtime.block_on(guest.client.query("SELECT * FROM types ORDER BY i", &[])).unwrap();
    let names: Vec<&str> = rows[0].columns().iter().map(|column| column.type_().name()).collect();
    let types =
        "bool int2 int4 int8 numeric float4 float8 date time timestamp timestamptz text bytea text";
    assert_eq!(names.join(" "), types);
    let row = &rows[0];
    assert!(row.get::<_, bool>(0));
    assert_eq!(
        (row.get::<_, i16>(1), row.get::<_, i32>(2), row.get::<_, i64>(3)),
        (-7, 70_000, 5_000_000_000)
    );
    // Two groups before the point and after it, negative, four digits behind the point.
    assert_eq!(row.get::<_, Sent>(4).0, [0, 2, 0, 0, 0x40, 0, 0, 4, 0, 12, 0x0d, 0x7a]);
    assert_eq!((row.get::<_, f32>(5), row.get::<_, f64>(6)), (1.5, 1e300));
    assert_eq!(row.get::<_, Sent>(7).0, 8_825_i32.to_be_bytes());
    assert_eq!(row.get::<_, Sent>(8).0, 45_296_500_000_i64.to_be_bytes());
    assert_eq!(
        row.get::<_, Sent>(9).0,
        (8_825 * 86_400_000_000 + 45_296_000_001_i64).to_be_bytes()
    );
    assert_eq!(row.get::<_, Sent>(10).0, (-3_600_000_000_i64).to_be_bytes());
    assert_eq!((row.get::<_, &str>(11), row.get::<_, Vec<u8>>(12)), ("é", vec![0, 255]));
    assert!((0..14).all(|column| rows[1].get::<_, Option<Sent>>(column).is_none()));
}

#[test]
fn parameters_are_taken_in_binary_and_as_text() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i INTEGER, v VARCHAR, f DOUBLE, bin BINARY, ok BOOLEAN)");
    let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5)";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&7_i32, &"it's", &0.5_f64, &vec![1_u8, 2], &true];
    assert_eq!(guest.runtime.block_on(guest.client.execute(insert, &values)).unwrap(), 1);
    let nothing: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&None::<i32>, &None::<&str>, &None::<f64>, &None::<Vec<u8>>, &None::<bool>];
    guest.runtime.block_on(guest.client.execute(insert, &nothing)).unwrap();
    let select = "SELECT v, f, bin, ok FROM t WHERE i = $1";
    let row = guest.runtime.block_on(guest.client.query_one(select, &[&7_i32])).unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, f64>(1)), ("it's", 0.5));
    assert_eq!((row.get::<_, Vec<u8>>(2), row.get::<_, bool>(3)), (vec![1, 2], true));
    // A type that the client says, and not the one that the statement asks for.
    let typed = guest.client.prepare_typed("SELECT count(*) FROM t WHERE i = $1", &[Type::INT8]);
    let typed = guest.runtime.block_on(typed).unwrap();
    let row = guest.runtime.block_on(guest.client.query_one(&typed, &[&7_i64])).unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[test]
fn errors_have_the_codes_that_clients_look_for_and_the_session_goes_on() {
    let running = start();
    let guest = Guest::new(&running);
    assert_eq!(guest.fails("SELECT * FROM nowhere"), SqlState::UNDEFINED_TABLE);
    assert_eq!(guest.fails("SELEC 1"), SqlState::SYNTAX_ERROR);
    guest.simple("CREATE TABLE t (i INTEGER)");
    assert_eq!(guest.fails("CREATE TABLE t (i INTEGER)"), SqlState::DUPLICATE_TABLE);
    assert_eq!(guest.fails("SELECT j FROM t"), SqlState::UNDEFINED_COLUMN);
    guest.simple("CREATE TABLE keyed (id INTEGER PRIMARY KEY); INSERT INTO keyed VALUES (1)");
    assert_eq!(guest.fails("INSERT INTO keyed VALUES (1)"), SqlState::UNIQUE_VIOLATION);
    assert_eq!(guest.fails("INSERT INTO keyed VALUES (2), (2)"), SqlState::UNIQUE_VIOLATION);
    assert_eq!(guest.fails("SET client_encoding = 'LATIN1'"), SqlState::INVALID_PARAMETER_VALUE);
    assert_eq!(guest.fails("LISTEN a"), SqlState::FEATURE_NOT_SUPPORTED);
    // What stands before an error in a text has run, what stands behind it has not.
    assert_eq!(
        guest.fails("INSERT INTO t VALUES (1); SELECT x; INSERT INTO t VALUES (2)"),
        SqlState::UNDEFINED_COLUMN
    );
    assert_eq!(guest.simple("SELECT i FROM t"), ["1"]);
    let prepared = guest.runtime.block_on(guest.client.prepare("SELECT nothing FROM t"));
    assert_eq!(prepared.unwrap_err().code(), Some(&SqlState::UNDEFINED_COLUMN));
    assert_eq!(guest.execute("INSERT INTO t VALUES (3)"), 1);
    assert!(guest.simple("").is_empty() && guest.simple(" ; -- nothing").is_empty());
}

#[test]
fn nobody_is_told_that_something_is_undone_which_is_not() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i INTEGER)");
    // Reading only, as drivers do.
    assert_eq!(guest.simple("BEGIN; SELECT count(*) FROM t; ROLLBACK"), ["0"]);
    assert!(guest.notices.try_recv().is_err());
    guest.simple("BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)");
    let notice = guest.notices.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(notice.contains("transaction of its own"), "{notice}");
    assert!(guest.notices.try_recv().is_err());
    assert_eq!(guest.fails("ROLLBACK"), SqlState::INVALID_TRANSACTION_TERMINATION);
    assert_eq!(guest.simple("SELECT count(*) FROM t"), ["2"]);
    guest.simple("BEGIN; INSERT INTO t VALUES (3); COMMIT");
    guest.simple("BEGIN");
    assert_eq!(guest.fails("SELECT x"), SqlState::UNDEFINED_COLUMN);
    assert_eq!(guest.fails("SELECT 1"), SqlState::IN_FAILED_SQL_TRANSACTION);
    guest.simple("ROLLBACK");
    assert_eq!(
        guest.fails("BEGIN READ ONLY; INSERT INTO t VALUES (4)"),
        SqlState::READ_ONLY_SQL_TRANSACTION
    );
    guest.simple("ROLLBACK");
    assert_eq!(guest.simple("SELECT count(*) FROM t"), ["3"]);
    // Savepoints, as drivers make them around what may fail.
    assert_eq!(guest.fails("SAVEPOINT a"), SqlState::NO_ACTIVE_SQL_TRANSACTION);
    guest.simple("BEGIN; SAVEPOINT a");
    assert_eq!(guest.fails("SELECT x"), SqlState::UNDEFINED_COLUMN);
    guest.simple("ROLLBACK TO a; RELEASE SAVEPOINT a; SAVEPOINT b; INSERT INTO t VALUES (5)");
    assert_eq!(guest.fails("ROLLBACK TO SAVEPOINT b"), SqlState::INVALID_TRANSACTION_TERMINATION);
    assert_eq!(guest.fails("COMMIT"), SqlState::INVALID_TRANSACTION_TERMINATION);
}

/// Rows of a batch are one INSERT: a version of the table for each would take a thousand times as long.
#[test]
fn rows_between_two_syncs_are_written_together() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i INTEGER, v VARCHAR)");
    let insert =
        guest.runtime.block_on(guest.client.prepare("INSERT INTO t VALUES ($1, $2)")).unwrap();
    let version = || running.scratch.database.store().snapshot().unwrap().version();
    let before = version();
    // Each call has its own Sync.
    guest.runtime.block_on(async {
        for i in 0..20_i32 {
            guest.client.execute(&insert, &[&i, &"x"]).await.unwrap();
        }
    });
    assert_eq!(guest.simple("SELECT count(*), sum(i) FROM t"), ["20|190"]);
    assert!(version() - before >= 20);
    let before = version();
    // One Sync behind them all, by hand.
    let mut wire = HandMade::connect(running.postgres.unwrap());
    wire.send(b'P', b"s\0INSERT INTO t VALUES ($1, $2)\0\0\x02\0\0\0\x17\0\0\0\x19");
    for i in 0..1_000_u32 {
        let text = i.to_string();
        let mut bind = b"\0s\0\0\0\0\x02".to_vec();
        bind.extend((text.len() as u32).to_be_bytes());
        bind.extend(text.as_bytes());
        bind.extend(b"\0\0\0\x01y\0\0");
        wire.send(b'B', &bind);
        wire.send(b'E', b"\0\0\0\0\0");
    }
    wire.send(b'S', b"");
    let kinds = wire.until_ready();
    assert_eq!(kinds.iter().filter(|kind| **kind == b'C').count(), 1_000);
    // Merges of small segments are versions too.
    assert!(version() - before < 10);
    // One of them that is no number takes all back.
    for text in ["1", "x", "3"] {
        let bind = [b"\0s\0\0\0\0\x02\0\0\0\x01", text.as_bytes(), b"\0\0\0\x01z\0\0"].concat();
        wire.send(b'B', &bind);
        wire.send(b'E', b"\0\0\0\0\0");
    }
    wire.send(b'S', b"");
    assert!(wire.until_ready().contains(&b'E'));
    assert_eq!(guest.simple("SELECT count(*) FROM t WHERE v = 'z'"), ["0"]);
    assert_eq!(guest.simple("SELECT count(*) FROM t WHERE v = 'y'"), ["1000"]);
}

#[test]
fn rows_come_some_at_a_time_by_portals_and_cursors() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i BIGINT)");
    guest.simple("INSERT INTO t SELECT * FROM generate_series(1, 1000)");
    let query = "SELECT i FROM t ORDER BY i";
    guest.simple(&format!("BEGIN; DECLARE c CURSOR FOR {query}"));
    assert_eq!(guest.simple("FETCH 2 FROM c"), ["1", "2"]);
    assert_eq!(guest.simple("MOVE 996 FROM c; FETCH ALL c"), ["999", "1000"]);
    assert!(guest.simple("FETCH c").is_empty());
    guest.simple("CLOSE c; COMMIT");
    assert_eq!(guest.fails("FETCH c"), SqlState::INVALID_CURSOR_NAME);
    assert_eq!(
        guest.fails(&format!("DECLARE c CURSOR FOR {query}")),
        SqlState::NO_ACTIVE_SQL_TRANSACTION
    );
    let mut wire = HandMade::connect(running.postgres.unwrap());
    wire.send(b'P', format!("\0{query}\0\0\0").as_bytes());
    wire.send(b'B', b"\0\0\0\0\0\0\0\0");
    wire.send(b'E', b"\0\0\0\0\x03");
    wire.send(b'E', b"\0\0\0\x03\xe7");
    wire.send(b'S', b"");
    let kinds = wire.until_ready();
    assert_eq!(kinds.iter().filter(|kind| **kind == b'D').count(), 1_000);
    assert_eq!(kinds.iter().filter(|kind| **kind == b's').count(), 1);
}

#[test]
fn a_statement_is_cancelled_by_its_key_only() {
    let running = start();
    let guest = Guest::new(&running);
    let long = "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 100000) b";
    let token = guest.client.cancel_token();
    let cancelled = guest.runtime.block_on(async {
        let statement = guest.client.simple_query(long);
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            token.cancel_query(NoTls).await.unwrap();
        };
        tokio::join!(statement, cancel).0
    });
    assert_eq!(cancelled.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    guest.simple("SET statement_timeout = '200ms'");
    assert_eq!(guest.fails(long), SqlState::QUERY_CANCELED);
    assert_eq!(guest.simple("SET statement_timeout = 0; SELECT 1"), ["1"]);
}

#[test]
fn users_log_in_by_their_password_or_by_a_proof_of_it() {
    let line = |name: &str, hash: String, rights: &str| format!("{name} {hash} {rights}\n");
    let lines = [
        line("ada", hash_password_with_verifier("lovelace").unwrap(), "admin:*"),
        line("rob", hash_password("robot").unwrap(), "read:people"),
    ];
    let users = Users::parse(&lines.concat(), "users").unwrap();
    let running = served(ServeOptions { users, ..ServeOptions::new(here()) });
    let ada = Guest::of(&running, "ada", "lovelace").unwrap();
    ada.simple("CREATE TABLE people (name VARCHAR); INSERT INTO people VALUES ('Ada')");
    assert_eq!(ada.simple("SHOW session_authorization"), ["ada"]);
    let rob = Guest::of(&running, "rob", "robot").unwrap();
    assert_eq!(rob.simple("SELECT name FROM people"), ["Ada"]);
    assert_eq!(rob.fails("INSERT INTO people VALUES ('Rob')"), SqlState::INSUFFICIENT_PRIVILEGE);
    for (user, password) in [("ada", "wrong"), ("rob", "wrong"), ("eve", "")] {
        let Err(error) = Guest::of(&running, user, password) else { panic!("{user} came in") };
        let code = error.code().cloned();
        assert!(code.is_none() || code == Some(SqlState::INVALID_PASSWORD), "{user}: {error:?}");
    }
}

/// A connection by hand.
pub struct HandMade(TcpStream);

impl HandMade {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        HandMade(stream)
    }

    /// One that has logged in.
    pub fn connect(address: SocketAddr) -> Self {
        let mut made = HandMade::new(address);
        made.first(196_608, b"user\0anybody\0\0");
        made.until_ready();
        made
    }

    fn first(&mut self, number: u32, body: &[u8]) {
        let length = (body.len() + 8) as u32;
        self.0
            .write_all(&[&length.to_be_bytes()[..], &number.to_be_bytes(), body].concat())
            .unwrap();
    }

    pub fn send(&mut self, kind: u8, body: &[u8]) {
        let length = (body.len() + 4) as u32;
        self.0.write_all(&[&[kind][..], &length.to_be_bytes(), body].concat()).unwrap();
    }

    pub fn read(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).unwrap();
        (head[0], body)
    }

    /// The kinds of messages up to the next that says that the server is ready.
    fn until_ready(&mut self) -> Vec<u8> {
        let mut kinds = Vec::new();
        while kinds.last() != Some(&b'Z') {
            kinds.push(self.read().0);
        }
        kinds
    }

    /// Whether the server ends the connection, whatever it says before.
    fn ends(mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn bytes_that_are_no_messages_end_their_connection_and_no_other() {
    let running = served(ServeOptions {
        limits: ServeLimits { login_time: Duration::from_secs(2), ..ServeLimits::default() },
        ..ServeOptions::new(here())
    });
    let address = running.postgres.unwrap();
    let guest = Guest::new(&running);
    let raw = |bytes: &[u8]| {
        let mut made = HandMade::new(address);
        let _ = made.0.write_all(bytes);
        made.ends()
    };
    assert!(raw(b"GET / HTTP/1.1\r\n\r\n"));
    assert!(raw(&[0, 0, 0, 0, 0, 3, 0, 0]));
    assert!(raw(&[0xff; 64]));
    assert!(raw(b"\x16\x03\x01\x02\x00\x01"));
    assert!(raw(b""), "who says nothing is not waited for");
    // Parameters without an end, another version, a message before the login.
    for (version, body) in [
        (196_608, &b"user"[..]),
        (131_072, b"user\0a\0\0"),
        (196_608, b"user\0a\0\0more"),
        (196_608, b"\0"),
    ] {
        let mut made = HandMade::new(address);
        made.first(version, body);
        assert!(made.ends(), "{body:?}");
    }
    for (kind, body) in [
        (b'Q', &b"SELECT 1"[..]),
        (b'B', b"\0\0\xff\xff"),
        (b'P', b"a\0b\0\xff\xff"),
        (b'?', b""),
        (b'p', b"x\0"),
        (b'F', b""),
    ] {
        let mut made = HandMade::connect(address);
        made.send(kind, body);
        assert!(made.ends(), "{kind}");
    }
    for length in [0_u32, 3, 0x7fff_ffff, 0xffff_ffff] {
        let mut made = HandMade::connect(address);
        made.0.write_all(&[&b"Q"[..], &length.to_be_bytes()].concat()).unwrap();
        assert!(made.ends(), "{length}");
    }
    // More values than parameters, a statement that is not there, a second one of a name: the session goes on.
    let mut made = HandMade::connect(address);
    for (kind, body) in [
        (b'B', &b"\0nothing\0\0\0\0\0\0\0"[..]),
        (b'P', b"s\0SELECT $1::int\0\0\0"),
        (b'E', b"nothing\0\0\0\0\0"),
        (b'D', b"Pnothing\0"),
    ] {
        made.send(kind, body);
        made.send(b'S', b"");
        made.until_ready();
    }
    made.send(b'P', b"s\0SELECT 1\0\0\0");
    made.send(b'S', b"");
    assert!(made.until_ready().contains(&b'E'));
    made.send(b'Q', b"SELECT 1\0");
    assert!(made.until_ready().contains(&b'D'));
    assert_eq!(guest.simple("SELECT 1"), ["1"]);
}

/// Who takes certificates of clients would let anybody in who leaves TLS out.
#[test]
fn a_server_with_tls_lets_nobody_in_without() {
    let folder = tempfile::tempdir().unwrap();
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, signed.cert.pem()).unwrap();
    std::fs::write(&key, signed.signing_key.serialize_pem()).unwrap();
    for client_ca in [None, Some(certificate.clone())] {
        let tls = TlsFiles { certificate: certificate.clone(), key: key.clone(), client_ca };
        let running = served(ServeOptions { tls: Some(tls), ..ServeOptions::new(here()) });
        let mut made = HandMade::new(running.postgres.unwrap());
        made.first(196_608, b"user\0anybody\0\0");
        let (kind, body) = made.read();
        assert!(kind == b'E' && String::from_utf8_lossy(&body).contains("TLS only"));
        assert!(made.ends());
        let mut made = HandMade::new(running.postgres.unwrap());
        made.first(80_877_103, b"");
        let mut answer = [0];
        made.0.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"S");
        // What is sent before TLS has begun is never read as if it came within it.
        made.first(196_608, b"user\0anybody\0\0");
        let mut rest = Vec::new();
        let _ = made.0.read_to_end(&mut rest);
        assert!(!rest.windows(5).any(|bytes| bytes == b"Z\0\0\0\x05"));
    }
}

#[test]
fn a_server_that_stops_lets_a_statement_finish_and_says_so_to_others() {
    let mut running = start();
    let mut idle = HandMade::connect(running.postgres.unwrap());
    let mut busy = HandMade::connect(running.postgres.unwrap());
    busy.send(b'Q', b"SELECT count(*) FROM generate_series(1, 30000000)\0");
    std::thread::sleep(Duration::from_millis(300));
    running.ask_to_stop();
    let (kind, body) = idle.read();
    assert!(kind == b'E' && String::from_utf8_lossy(&body).contains("57P01"));
    assert!(busy.until_ready().contains(&b'D'));
    running.wait();
}
