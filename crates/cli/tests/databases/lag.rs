//! Replicas that fall behind while a load runs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::rows::numbered;
use crate::servers::{Engine, Server};

/// Waits until a statement answers so.
fn wait(server: &Server, sql: &str, expected: &str) {
    let began = Instant::now();
    while server.sql(sql) != expected {
        assert!(began.elapsed() < Duration::from_secs(60), "{sql}: {}", server.sql(sql));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A load takes connections away, or pauses, when a replica of the server is far behind.
#[test]
fn a_replica_of_mariadb_that_falls_behind_slows_a_load_down() {
    let flags = |id: u16| {
        move |port: u16| {
            let numbers = [format!("--server-id={id}"), format!("--report-port={port}")];
            let flags = ["--log-bin=log", "--report-host=127.0.0.1"].map(str::to_owned);
            flags.into_iter().chain(numbers).collect()
        }
    };
    let source = Server::start_with(Engine::Mariadb, flags(1));
    let replica = Server::start_with(Engine::Mariadb, flags(2));
    source.sql("CREATE TABLE marks (id int PRIMARY KEY); CREATE TABLE slow (id bigint PRIMARY KEY, v int, t text)");
    let at = source.sql("SHOW MASTER STATUS");
    let (log, position) = at.split_once('|').unwrap();
    let position = position.split('|').next().unwrap();
    // What the replica has to do is behind this place; the tables are made by hand.
    replica.sql("CREATE TABLE marks (id int PRIMARY KEY); CREATE TABLE slow (id bigint PRIMARY KEY, v int, t text)");
    replica.sql(&format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'u', MASTER_PASSWORD = 'p w', \
         MASTER_LOG_FILE = '{log}', MASTER_LOG_POS = {position}; START SLAVE",
        source.port()
    ));
    source.sql("INSERT INTO marks VALUES (1)");
    wait(&replica, "SELECT count(*) FROM marks", "1");
    // What comes now waits at the replica.
    replica.sql("STOP SLAVE SQL_THREAD");
    source.sql("INSERT INTO marks VALUES (2)");
    std::thread::sleep(Duration::from_secs(12));
    // Nobody who copies nothing says how far he is behind: that is known when the load has begun.
    let file = source.file("slow.csv", &numbered(60_000));
    let flags = "--table slow --resumable --method insert --chunk-size 16KiB";
    let mut command = source.load_command(&file, flags);
    let load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let chunks = "SELECT count(*) > 3 FROM slow";
    wait(&source, chunks, "1");
    std::thread::sleep(Duration::from_millis(1500));
    let mut blocker = replica
        .client_command("LOCK TABLES marks WRITE; START SLAVE SQL_THREAD; DO SLEEP(60)")
        .spawn()
        .unwrap();
    let output = load.wait_with_output().unwrap();
    let _ = blocker.kill();
    let _ = blocker.wait();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("a replica is"), "{text}");
    assert_eq!(source.sql("SELECT count(*) FROM slow"), "60000");
}
