//! Clients, servers and connections are killed at moments that a seed says: every row is there once, or the table is as
//! before.

use std::time::Duration;

use crate::rows::numbered;
use crate::servers::{Engine, Server};

const ROWS: usize = 150_000;

/// Numbers that a seed says, as good as any.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: u64) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % below)
    }
}

fn count(server: &Server, table: &str) -> String {
    server.sql(&format!("SELECT count(*), count(DISTINCT id) FROM {table}"))
}

/// Kills clients of atomic loads, and of a resumable one until it is done.
fn clients_are_killed(server: &Server, seed: u64) {
    let mut moments = Moments(seed);
    let file = server.file("kills.csv", &numbered(ROWS));
    let whole = format!("{ROWS}|{ROWS}");
    server.sql("CREATE TABLE kills (id bigint PRIMARY KEY, v int, t text)");
    for round in 0..4 {
        let flags = "--table kills --replace --chunk-size 64KiB";
        let mut child = server.load_command(&file, flags).spawn().unwrap();
        std::thread::sleep(moments.next(900));
        child.kill().unwrap();
        child.wait().unwrap();
        // What the server was told before, it may still do.
        let found = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let found = count(server, "kills");
            (found == "0|0" || found == whole).then_some(found)
        });
        assert!(found.is_some(), "round {round} of seed {seed}: {}", count(server, "kills"));
    }
    server.sql("DELETE FROM kills");
    let flags = "--table kills --resumable --chunk-size 64KiB";
    for _ in 0..4 {
        let mut child = server.load_command(&file, flags).spawn().unwrap();
        std::thread::sleep(moments.next(700));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The server may not have seen yet that the last client is gone.
    let mut last = String::new();
    let loaded = (0..50).any(|_| {
        let (loaded, text) = server.try_load(&file, flags);
        last = text;
        std::thread::sleep(Duration::from_millis(100));
        loaded
    });
    assert!(loaded, "{last}");
    assert_eq!(count(server, "kills"), whole, "seed {seed}");
}

/// Connections and the server are killed while a resumable load runs, which goes on by itself.
fn servers_are_killed(server: &mut Server, seed: u64, connections_sql: &str) {
    let mut moments = Moments(seed);
    let file = server.file("lost.csv", &numbered(ROWS));
    server.sql("CREATE TABLE lost (id bigint PRIMARY KEY, v int, t text)");
    let flags = "--table lost --resumable --chunk-size 64KiB";
    let mut child = server.load_command(&file, flags).spawn().unwrap();
    for _ in 0..3 {
        std::thread::sleep(moments.next(250));
        server.try_sql(connections_sql);
    }
    std::thread::sleep(moments.next(300));
    server.kill();
    std::thread::sleep(Duration::from_millis(200));
    server.run();
    // The connection that watches over the load may be the one that was lost: then the load is run again.
    let ended = child.wait().unwrap();
    if !ended.success() {
        server.load(&file, flags);
    }
    assert_eq!(count(server, "lost"), format!("{ROWS}|{ROWS}"), "seed {seed}");
}

/// What a load says is there, is there when the server dies at once: all that it was committed in is durable.
fn what_was_loaded_outlives_the_server(server: &mut Server) {
    let file = server.file("made.csv", &numbered(20_000));
    for (table, flags) in [("made", ""), ("made_by_one", "--connections 1"), ("made", "--replace")]
    {
        server.load(&file, &format!("--table {table} --chunk-size 16KiB {flags}"));
        server.kill();
        server.run();
        assert_eq!(count(server, table), "20000|20000", "{flags}");
    }
}

#[test]
fn every_row_is_there_once_in_postgresql_whoever_is_killed() {
    let mut server = Server::start(Engine::Postgres);
    clients_are_killed(&server, 7);
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'coload' \
                AND query NOT LIKE 'SELECT%' ORDER BY backend_start LIMIT 1";
    servers_are_killed(&mut server, 11, kill);
    what_was_loaded_outlives_the_server(&mut server);
}

#[test]
fn every_row_is_there_once_in_mariadb_whoever_is_killed() {
    let mut server = Server::start(Engine::Mariadb);
    clients_are_killed(&server, 5);
    let kill = "SET @id = (SELECT id FROM information_schema.processlist WHERE user = 'u' ORDER BY id DESC LIMIT 1); \
                EXECUTE IMMEDIATE CONCAT('KILL ', @id)";
    servers_are_killed(&mut server, 13, kill);
    what_was_loaded_outlives_the_server(&mut server);
}
