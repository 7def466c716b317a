use coload_serve::{Credentials, Remote, ServeOptions, TlsFiles, Users};
use coload_types::Error;

use super::statements::csv;
use super::{Running, here, users};

#[track_caller]
fn refuses(client: &mut Remote, text: &str) {
    let error = client.query(text).unwrap_err();
    assert!(matches!(&error, Error::Refused(_)), "{text}: {error}");
}

#[test]
fn users_may_do_what_they_were_granted() {
    let running = Running::start_with(ServeOptions { users: users(), ..ServeOptions::new(here()) });
    let mut ada = running.client_of("ada", "ada").unwrap();
    csv(&mut ada, "CREATE TABLE people AS SELECT 'x' AS name");
    csv(&mut ada, "CREATE TABLE secret AS SELECT 1 AS n");

    let mut rob = running.client_of("rob", "rob").unwrap();
    assert_eq!(csv(&mut rob, "SELECT * FROM people"), "x\n");
    for text in [
        "SELECT * FROM secret",
        "SELECT * FROM nothing_of_that_name",
        "SELECT (SELECT max(n) FROM secret)",
        "WITH s AS (SELECT * FROM secret) SELECT * FROM s",
        "SELECT name FROM people WHERE EXISTS (SELECT 1 FROM secret)",
        "EXPLAIN ANALYZE SELECT * FROM secret",
        "DESCRIBE secret",
        "INSERT INTO people VALUES ('y')",
        "INSERT INTO secret SELECT 1",
        "CREATE TABLE mine (a INT)",
        "CREATE TABLE mine AS SELECT * FROM people",
        "CREATE OR REPLACE TABLE people AS SELECT 1 AS a",
        "DROP TABLE people",
        "DROP TABLE IF EXISTS secret",
        "TRUNCATE TABLE people",
        "COPY people TO '/tmp/never.csv'",
    ] {
        refuses(&mut rob, text);
    }
    let seen = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(csv(&mut rob, seen), "people\n");
    let columns = "SELECT DISTINCT table_name FROM information_schema.columns \
                   WHERE table_schema = 'public'";
    assert_eq!(csv(&mut rob, columns), "people\n");

    let mut lou = running.client_of("lou", "lou").unwrap();
    csv(&mut lou, "CREATE TABLE stage_1 (a BIGINT)");
    assert_eq!(csv(&mut lou, "INSERT INTO stage_1 VALUES (1)"), "1\n");
    assert_eq!(csv(&mut lou, "SELECT * FROM stage_1"), "1\n");
    for text in [
        "TRUNCATE TABLE stage_1",
        "DROP TABLE stage_1",
        "CREATE OR REPLACE TABLE stage_1 (b INT)",
        "INSERT INTO stage_1 SELECT n FROM secret",
        "CREATE TABLE other (a INT)",
    ] {
        refuses(&mut lou, text);
    }
    assert_eq!(csv(&mut ada, "SELECT count(*) FROM stage_1"), "1\n");
}

#[test]
fn who_does_not_say_who_he_is_gets_nothing() {
    let running = Running::start_with(ServeOptions { users: users(), ..ServeOptions::new(here()) });
    refuses(&mut running.client(), "SELECT 1");
    for (user, password) in [("ada", "rob"), ("ada", ""), ("eve", "eve")] {
        let error = running.client_of(user, password).unwrap_err();
        assert!(matches!(&error, Error::Refused(t) if t.contains("wrong user")), "{error}");
    }
    let token = |token: &str| {
        let token = Some(token.to_owned());
        let credentials = Credentials { token, ..Credentials::default() };
        Remote::connect(running.url(), &credentials).unwrap()
    };
    refuses(&mut token("AAAAAAAAAAAAAAAAAAAAAA"), "SELECT 1");
    refuses(&mut token("ada.rob"), "SELECT 1");
    assert_eq!(csv(&mut token("ada.ada"), "SELECT 1"), "1\n");
}

#[test]
fn a_server_for_other_machines_needs_users_and_tls() {
    let scratch = crate::support::Scratch::new();
    let listen = "0.0.0.0:0".parse().unwrap();
    let bind = |options| coload_serve::Server::bind(scratch.database.clone(), options);
    let error = bind(ServeOptions::new(listen)).unwrap_err().to_string();
    assert!(error.contains("--users") && error.contains("--insecure"), "{error}");
    let with_users = ServeOptions { users: users(), ..ServeOptions::new(listen) };
    let error = bind(with_users).unwrap_err().to_string();
    assert!(error.contains("--tls-certificate"), "{error}");
    let nowhere = || "/nonexistent/x.pem".into();
    let tls = TlsFiles { certificate: nowhere(), key: nowhere(), client_ca: None };
    let anybody = ServeOptions { tls: Some(tls), ..ServeOptions::new(listen) };
    assert!(bind(anybody).unwrap_err().to_string().contains("--users"));
    let meant =
        ServeOptions { insecure: true, users: Users::anybody(), ..ServeOptions::new(listen) };
    assert!(bind(meant).is_ok());
}
