//! What is chosen for a load: method, connections, rows a statement; what was measured of a server, and what changes while
//! rows go.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::rows::numbered;
use crate::servers::{Engine, Server};

#[test]
fn loads_into_postgresql_are_sent_as_is_cheapest() {
    let server = &Server::start(Engine::Postgres);
    few_rows_go_over_one_connection(server);
    what_is_given_is_taken(server, "unnest");
    a_server_that_was_measured_is_known(server, "copy-binary");
    connections_change_while_rows_go_and_others_are_minded(server);
}

#[test]
fn loads_into_mariadb_are_sent_as_is_cheapest() {
    let server = &Server::start(Engine::Mariadb);
    few_rows_go_over_one_connection(server);
    what_is_given_is_taken(server, "values");
    a_server_that_was_measured_is_known(server, "load-data");
    a_method_that_is_turned_off_gives_way_to_the_next(server);
}

/// What the report says of the database.
fn database(report: &str) -> Value {
    let start = report.find('{').unwrap_or_else(|| panic!("{report}"));
    let mut values = serde_json::Deserializer::from_str(&report[start..]).into_iter::<Value>();
    values.next().unwrap().unwrap()["database"].clone()
}

fn text(value: &Value) -> String {
    value.to_string()
}

fn few_rows_go_over_one_connection(server: &Server) {
    for rows in [1, 100] {
        let file = server.file("few.csv", &numbered(rows));
        let told = database(&server.load(&file, &format!("--table few{rows} --create")));
        assert_eq!(told["connections"], 1, "{told}");
        let estimates = told["estimates"].as_array().unwrap();
        assert!(estimates.len() >= 5, "{told}");
        let chosen: Vec<&Value> = estimates.iter().filter(|e| e["chosen"] == true).collect();
        assert_eq!(chosen.len(), 1, "{told}");
        assert_eq!(chosen[0]["method"], told["method"]);
        let least = estimates
            .iter()
            .filter(|e| e["method"] != "insert-autocommit")
            .map(|e| e["ms"].as_f64().unwrap())
            .fold(f64::MAX, f64::min);
        assert!(chosen[0]["ms"].as_f64().unwrap() <= least * 1.04 + 0.2, "{told}");
        assert_eq!(server.sql(&format!("SELECT count(*) FROM few{rows}")), rows.to_string());
    }
    // A pipe that ends at once is known to be short.
    let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
    command.args(["load", "-", "--into", &server.url(), "--table", "piped", "--report", "json"]);
    let pipe = std::fs::File::open(server.file("piped.csv", &numbered(20))).unwrap();
    let output = command.stdin(pipe).output().unwrap();
    let told = database(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(told["connections"], 1, "{told}");
    assert!(text(&told["because"]).contains("rows of"), "{told}");
    let file = server.file("explained.csv", &numbered(10));
    let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
    command.arg("load").arg(&file).args(["--into", &server.url(), "--explain"]);
    let output = command.args(["--table", "explained"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("estimated ms") && told.contains("* "), "{told}");
}

fn what_is_given_is_taken(server: &Server, method: &str) {
    let file = server.file("given.csv", &numbered(3000));
    let flags = "--connections 3 --batch-rows 7 --chunk-size 16KiB --table given --create";
    let told = database(&server.load(&file, &format!("--method {method} {flags}")));
    assert_eq!(told["method"], method, "{told}");
    assert_eq!((&told["connections"], &told["batch_rows"]), (&3.into(), &7.into()), "{told}");
    assert_eq!(told["changes"].as_array().unwrap().len(), 0, "{told}");
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT id) FROM given"), "3000|3000");
}

fn a_server_that_was_measured_is_known(server: &Server, best: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuning.json");
    let tune = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
        command.args(["tune", &server.url(), "--rows", "100", "--times", "1"]).args(flags);
        command.env("XDG_CONFIG_HOME", folder.path());
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &told
    };
    let told = tune(&["-o", path.to_str().unwrap(), "--connections", "1,2", "--method", best]);
    assert!(told.contains("estimated ms") && told.contains("to connect"), "{told}");
    let file = server.file("tuned.csv", &numbered(50));
    let flags = format!("--table tuned --tuning {}", path.display());
    let told = database(&server.load(&file, &flags));
    assert_eq!(told["method"], best, "{told}");
    assert!(text(&told["because"]).contains("tuning of"), "{told}");
    // Of a server that has a file of its own, it is found.
    tune(&["--connections", "1", "--method", best]);
    let mut load = server.load_command(&file, "--table tuned");
    let output = load.env("XDG_CONFIG_HOME", folder.path()).output().unwrap();
    let told = database(&String::from_utf8_lossy(&output.stdout));
    assert!(text(&told["because"]).contains("tuning of"), "{told}");
    std::fs::write(&path, "{}").unwrap();
    assert!(server.fail(&file, &flags).contains("no tuning of a server"));
    let left = "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '%coload!_%' ESCAPE '!'";
    // The journal.
    assert_eq!(server.sql(left), "1");
}

fn a_method_that_is_turned_off_gives_way_to_the_next(server: &Server) {
    server.sql("SET GLOBAL local_infile = 0");
    let file = server.file("next.csv", &numbered(5000));
    let told = database(&server.load(&file, "--table next_best --create"));
    assert_ne!(told["method"], "load-data", "{told}");
    assert!(text(&told["because"]).contains("local_infile is off"), "{told}");
    assert_eq!(server.sql("SELECT count(*) FROM next_best"), "5000");
    server.sql("SET GLOBAL local_infile = 1");
}

/// Loads by a slow method, so that there is time for changes; others come while the second runs.
fn connections_change_while_rows_go_and_others_are_minded(server: &Server) {
    // Each row takes a while, however fast the machine is, until others have come and were seen: so no load ends before.
    server.sql(
        "CREATE TABLE seen (others int);
         CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           PERFORM pg_sleep(0.001) WHERE NOT EXISTS (SELECT FROM seen); RETURN NEW;
         END $$",
    );
    let table = |name: &str| {
        server.sql(&format!(
            "CREATE TABLE {name} (id bigint PRIMARY KEY, v bigint, t text);
             CREATE TRIGGER lingers BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION linger()"
        ));
        format!("--table {name} --append --resumable --method insert --chunk-size 2KiB")
    };
    let alone = server.file("alone.csv", &numbered(30_000));
    let told = database(&server.load(&alone, &table("alone")));
    assert!(text(&told["changes"]).contains("is tried"), "{told}");
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT id) FROM alone"), "30000|30000");
    let rows = 60_000;
    let file = server.file("slow.csv", &numbered(rows));
    let mut child = server.load_command(&file, &table("slow"));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let has_begun = || server.try_sql("SELECT 1 / count(*) FROM slow");
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        has_begun()
    }));
    // A moment, so that it has seen the server without others.
    std::thread::sleep(Duration::from_millis(700));
    let others: Vec<_> = (0..12)
        .map(|_| {
            let mut other = server.client_command("SELECT pg_sleep(600)");
            other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    // Long enough for two looks at them by a load that looks once a second.
    std::thread::sleep(Duration::from_secs(4));
    server.sql("INSERT INTO seen VALUES (12)");
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()",
    );
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for mut other in others {
        other.wait().unwrap();
    }
    let told = database(&String::from_utf8_lossy(&output.stdout));
    assert!(text(&told["changes"]).contains("statements of others run"), "{told}");
    assert!(!text(&told["because"]).contains("cannot be read"), "{told}");
    let whole = format!("{rows}|{rows}");
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT id) FROM slow"), whole);
}
