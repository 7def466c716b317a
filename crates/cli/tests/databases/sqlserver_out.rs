//! Rows out of SQL Server.

use std::process::Command;

use crate::rows::numbered;
use crate::sqlserver::{EDGES, TYPES, Target};

#[test]
fn rows_come_out_of_sql_server() {
    for target in &Target::all() {
        every_type_comes_out(target);
        one_moment_is_read_over_all_connections(target);
        queries_are_read_and_mistakes_told(target);
    }
}

/// Runs the command; what it said, and whether it succeeded.
fn coload(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_coload")).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

fn succeed(arguments: &[&str]) -> String {
    let (succeeded, text) = coload(arguments);
    assert!(succeeded, "{arguments:?}: {text}");
    text
}

/// What a store answers, as lines of cells with commas between them, without names.
fn ask(store: &str, sql: &str) -> String {
    let text = succeed(&["sql", "--store", store, "-c", sql, "--output", "csv"]);
    text.split_once('\n').map_or("", |(_, rows)| rows).trim_end().to_owned()
}

impl Target {
    /// The URL of a table.
    fn table_url(&self, table: &str) -> String {
        match self.url.split_once('?') {
            Some((place, parameters)) => format!("{place}/{table}?{parameters}"),
            None => format!("{}/{table}", self.url),
        }
    }

    fn store(&self) -> String {
        self.folder.path().join("store").display().to_string()
    }
}

fn every_type_comes_out(target: &Target) {
    let file = target.file("out.csv", EDGES);
    for table in ["out_types", "out_copy"] {
        target.drop_table(table);
    }
    let output = target
        .command(&file, "--no-header --delimiter ; --table out_types")
        .args(["--columns", TYPES, "--null", ""])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let url = target.table_url("dbo.out_types");
    // Into another table of the same server: what comes out is what goes in.
    succeed(&["load", &url, "--into", &target.url, "--table", "out_copy"]);
    let all = "b, s, i, l, d, w, r, f, da, ti, ts, tz, c, v, t, x, u";
    let rows = |table: &str| {
        let rows = target.sql(&format!("SELECT {all} FROM {table}"));
        let mut lines: Vec<String> = rows.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(rows("out_copy"), rows("out_types"));
    let store = &target.store();
    succeed(&["load", &url, "--into", store, "--table", "every"]);
    assert_eq!(
        ask(store, "SELECT l, d, w, da, ts, v, x, u FROM every WHERE b AND i < 0"),
        "-9223372036854775808,-9999999999999.99,-9999999999999999999999999999.9999999999,0001-01-01,0001-01-01 00:00:00,héllo,\
         \\x00ff10,00000000-0000-0000-0000-000000000000"
    );
    assert_eq!(ask(store, "SELECT count(*) FROM every WHERE t LIKE '%😀'"), "1");
    let sniffed = succeed(&["sniff", &url]);
    assert!(sniffed.contains("SQL Server") && sniffed.contains("d DECIMAL(15,2)"), "{sniffed}");
    // Only some columns, in another order; and types that are none of ours.
    succeed(&[
        "load",
        &url,
        "--into",
        store,
        "--table",
        "some",
        "--by-name",
        "--columns",
        "u UUID, i BIGINT",
    ]);
    assert_eq!(ask(store, "SELECT i FROM some WHERE u < '1'"), "-2147483648");
    target.drop_table("others");
    target.sql("CREATE TABLE others (y tinyint, m money, d datetime, p varchar(9), k nchar(3), z time(7), j datetime2(3))");
    target.sql(
        "INSERT INTO others VALUES (255, -1.2345, '2000-01-02 03:04:05.007', 'café €', N'é', '01:02:03.1234560', \
         '2000-01-01 00:00:00.125')",
    );
    succeed(&["load", &target.table_url("others"), "--into", store, "--table", "others"]);
    assert_eq!(
        ask(store, "SELECT * FROM others"),
        "255,-1.2345,2000-01-02 03:04:05.007,café €,é  ,01:02:03.123456,2000-01-01 00:00:00.125"
    );
    target.sql("DELETE FROM others");
    target.sql("INSERT INTO others (y, z) VALUES (1, '01:02:03.1234567')");
    let (succeeded, text) =
        coload(&["load", &target.table_url("others"), "--into", store, "--table", "no"]);
    assert!(!succeeded && text.contains("01:02:03.1234567"), "{text}");
}

fn one_moment_is_read_over_all_connections(target: &Target) {
    let file = target.file("many_rows.csv", &numbered(30_000));
    target.drop_table("many_rows");
    target.sql("CREATE TABLE many_rows (id bigint PRIMARY KEY, v int, t nvarchar(100))");
    target.load(&file, "--table many_rows");
    let (url, store) = (target.table_url("many_rows"), target.store());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..6 {
                target.sql("DELETE FROM many_rows WHERE id < 100; INSERT INTO many_rows VALUES (1, 1, N'x')");
                target.sql("DELETE FROM many_rows WHERE id = 1");
            }
        });
        for number in 0..3 {
            let table = format!("many{number}");
            let flags = ["--connections", "3", "--threads", "3", "--chunk-size", "64KiB"];
            let said = succeed(
                &[&["load", &url, "--into", &store, "--table", &table], &flags[..]].concat(),
            );
            // A real database may not allow them, and then it is said.
            if said.contains("snapshots") && target.server.is_none() {
                continue;
            }
            assert!(!said.contains("snapshots"), "{said}");
            let found = ask(
                &store,
                &format!("SELECT count(*) - count(DISTINCT id), count(*) - min(id) FROM {table}"),
            );
            let whole = ["0,30000", "0,29900", "0,29800"];
            assert!(
                found.starts_with("0,") && (whole.contains(&found.as_str()) || found == "0,29900"),
                "{found}"
            );
        }
        writer.join().unwrap();
    });
    if let Some(server) = &target.server {
        server.shared.db.lock().unwrap().no_snapshots = true;
        let said = succeed(&["load", &url, "--into", &store, "--table", "unsafe"]);
        assert!(said.contains("does not allow snapshots"), "{said}");
        server.shared.db.lock().unwrap().no_snapshots = false;
    }
}

fn queries_are_read_and_mistakes_told(target: &Target) {
    let store = &target.store();
    let query = "SELECT id, v, t FROM many_rows WHERE id >= 29990";
    succeed(&["load", &target.url, "--query", query, "--into", store, "--table", "asked"]);
    assert_eq!(ask(store, "SELECT count(*), min(id), max(t) FROM asked"), "10,29990,text 29999");
    for (arguments, why) in [
        (vec!["load", &target.table_url("nothing")], "there is no table nothing"),
        (vec!["load", &target.url, "--query", "SELECT 1 FROM nothing"], "208"),
        (vec!["load", &target.url], "names no table"),
    ] {
        let (succeeded, text) = coload(&[&arguments[..], &["--into", store]].concat());
        assert!(!succeeded && text.contains(why), "{arguments:?}: {text}");
    }
}
