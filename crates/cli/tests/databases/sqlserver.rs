//! SQL Server: the small server of the tests, and the real one that `COLOAD_TEST_SQLSERVER` gives the URL of.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::drivers::{passes, python};
use crate::rows::{numbered, with_bad};
use crate::tds_server::TdsServer;

#[allow(dead_code)]
#[path = "../../examples/rows_into_sql_server.rs"]
mod rows_into_sql_server;

const METHODS: [&str; 4] = ["insert-bulk", "values", "prepared", "insert"];

/// A server that is loaded into.
pub struct Target {
    pub url: String,
    pub server: Option<TdsServer>,
    pub folder: TempDir,
}

impl Target {
    /// The small one.
    fn small() -> Self {
        let server = TdsServer::start(true);
        // User and password as the server has them, with what is no letter written as % and two digits.
        let url = format!(
            "sqlserver://loader:p%7Bw%7DD%20%C3%A9%3B1@127.0.0.1:{}/d?trustServerCertificate=true",
            server.port
        );
        Target { url, server: Some(server), folder: tempfile::tempdir().unwrap() }
    }

    /// The small one, without encryption.
    pub fn plain() -> Self {
        let server = TdsServer::start(false);
        let url = Self::plain_url(server.port);
        Target { url, server: Some(server), folder: tempfile::tempdir().unwrap() }
    }

    pub fn plain_url(port: u16) -> String {
        format!("sqlserver://loader:p%7Bw%7DD%20%C3%A9%3B1@127.0.0.1:{port}/d?encrypt=disable")
    }

    /// The small one, and a real one if there is one.
    pub fn all() -> Vec<Self> {
        let real = std::env::var("COLOAD_TEST_SQLSERVER").ok().filter(|url| !url.is_empty());
        match &real {
            Some(_) => println!("with the server of COLOAD_TEST_SQLSERVER"),
            None => println!("COLOAD_TEST_SQLSERVER is not set: not tried on a real SQL Server"),
        }
        let real =
            real.map(|url| Target { url, server: None, folder: tempfile::tempdir().unwrap() });
        std::iter::once(Target::small()).chain(real).collect()
    }

    pub fn sql(&self, sql: &str) -> String {
        let output = python("sqlserver.py").args([&self.url, sql]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{sql}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, file: &std::path::Path, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
        command.arg("load").arg(file).args(["--into", &self.url]).args(flags.split_whitespace());
        command.args(["--report", "json"]).env("TMPDIR", self.folder.path());
        command
    }

    fn try_load(&self, file: &std::path::Path, flags: &str) -> (bool, String) {
        let Output { status, stdout, stderr } = self.command(file, flags).output().unwrap();
        let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        (status.success(), text.into_owned())
    }

    pub fn load(&self, file: &std::path::Path, flags: &str) -> String {
        let (loaded, text) = self.try_load(file, flags);
        assert!(loaded, "{flags}: {text}");
        text
    }

    fn fail(&self, file: &std::path::Path, flags: &str) -> String {
        let (loaded, text) = self.try_load(file, flags);
        assert!(!loaded, "{flags}: {text}");
        text
    }

    pub fn drop_table(&self, table: &str) {
        self.sql(&format!("DROP TABLE IF EXISTS {table}"));
    }
}

#[test]
fn clients_of_others_prove_the_small_server() {
    let server = TdsServer::start(false);
    let url = format!("sqlserver://loader:p%7Bw%7DD%20%C3%A9%3B1@127.0.0.1:{}/d", server.port);
    passes(python("sqlserver_clients.py").arg(url));
}

#[test]
fn a_server_of_sql_server_gets_what_files_hold() {
    for target in &Target::all() {
        every_type_keeps_its_edges_by_every_method(target);
        what_the_server_refuses_is_a_reject_and_the_others_load(target);
        rules_are_asked_where_rows_wait(target);
        a_table_is_made_replaced_or_left_as_it_is(target);
        nothing_is_narrowed_without_a_word(target);
        columns_of_the_server_are_left_to_it(target);
        columns_that_must_have_a_value_are_told_as_such(target);
        indexes_are_built_after_the_rows(target);
        programs_write_rows(target);
    }
}

fn programs_write_rows(target: &Target) {
    target.drop_table("people");
    rows_into_sql_server::write(&target.url).unwrap();
    let found = target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM people");
    assert_eq!(found, "4000|4000");
    assert_eq!(target.sql("SELECT name, born FROM people WHERE id = 3999"), "Ada 🧮|1815-12-10");
}

#[test]
fn every_row_is_there_once_in_sql_server_whoever_is_killed() {
    for target in &Target::all() {
        clients_are_killed(target);
        if let Some(server) = &target.server {
            connections_are_killed(target, server);
        }
    }
}

pub const TYPES: &str = "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, d DECIMAL(15,2), w DECIMAL(38,10), r REAL, f DOUBLE, \
                     da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, c CHAR(3), v VARCHAR(5), t VARCHAR, \
                     x BINARY, u UUID";
pub const EDGES: &str = "\
true;-32768;-2147483648;-9223372036854775808;-9999999999999.99;-9999999999999999999999999999.9999999999;-0.5;-1.7976931348623157e308;0001-01-01;00:00:00;0001-01-01 00:00:00;0001-01-01 00:00:00+00;a  ;héllo;tab\tand \\\\N;\\x00ff10;00000000-0000-0000-0000-000000000000
false;32767;2147483647;9223372036854775807;9999999999999.99;9999999999999999999999999999.9999999999;0.25;1.5e-300;9999-12-31;23:59:59.999999;9999-12-31 23:59:59.999999;9999-12-31 23:59:59.999999+00;\"\";\"\";\"\";\"\";ffffffff-ffff-ffff-ffff-ffffffffffff
;;;;;;;;;;;;;;;;
true;0;0;0;0.01;0.0000000001;1;2;2000-01-01;12:00:00.000001;1999-12-31 23:59:59.999999;2000-01-01 00:00:00+00;x;😀é;'quoted' 😀;\\x61;12345678-9abc-def0-1234-56789abcdef0
";
const EDGES_READ: [&str; 4] = [
    "1|-32768|-2147483648|-9223372036854775808|-9999999999999.99|-9999999999999999999999999999.9999999999|-0.5|\
     -1.7976931348623157e+308|0001-01-01|00:00:00|0001-01-01 00:00:00|0001-01-01 00:00:00+00:00|a  |héllo|tab_and \\\\N|00ff10|\
     00000000-0000-0000-0000-000000000000",
    "0|32767|2147483647|9223372036854775807|9999999999999.99|9999999999999999999999999999.9999999999|0.25|1.5e-300|9999-12-31|\
     23:59:59.999999|9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999+00:00|||||ffffffff-ffff-ffff-ffff-ffffffffffff",
    "N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N",
    "1|0|0|0|0.01|1E-10|1.0|2.0|2000-01-01|12:00:00.000001|1999-12-31 23:59:59.999999|2000-01-01 00:00:00+00:00|x|😀é|\
     'quoted' 😀|61|12345678-9abc-def0-1234-56789abcdef0",
];

fn every_type_keeps_its_edges_by_every_method(target: &Target) {
    let file = target.file("types.csv", EDGES);
    for method in METHODS {
        let table = format!("types_{}", method.replace('-', "_"));
        target.drop_table(&table);
        let output = target
            .command(&file, &format!("--no-header --delimiter ; --table {table} --method {method}"))
            .args(["--columns", TYPES, "--null", ""])
            .output()
            .unwrap();
        assert!(output.status.success(), "{method}: {}", String::from_utf8_lossy(&output.stderr));
        let rows = target.sql(&format!(
            "SELECT b, s, i, l, d, w, r, f, da, ti, ts, tz, c, v, t, x, u FROM {table}"
        ));
        let mut found: Vec<&str> = rows.lines().collect();
        let mut expected = EDGES_READ.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{method}");
    }
    // Longer than what does not go in parts, and more than a packet.
    let long = "é😀".repeat(30_000);
    let file = target.file("long.csv", &format!("id,t\n1,{long}\n2,\n"));
    for method in METHODS {
        target.drop_table("long_text");
        target.load(&file, &format!("--table long_text --method {method}"));
        let found = target.sql("SELECT t FROM long_text WHERE id = 1");
        assert!(found == long, "{method}: {} characters", found.chars().count());
    }
}

fn what_the_server_refuses_is_a_reject_and_the_others_load(target: &Target) {
    let (text, bad) = with_bad(2_000, 500);
    let file = target.file("bad_rows.csv", &text);
    for method in METHODS {
        for (guarantee, table) in [("--atomic", "uq_a"), ("--resumable", "uq_r")] {
            target.drop_table(table);
            target.sql(&format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY, v int CHECK (v < 100), t nvarchar(100))"
            ));
            let flags =
                format!("--table {table} --method {method} --chunk-size 16KiB {guarantee} --again");
            let text = target.fail(&file, &flags);
            assert!(text.contains("bad_rows.csv:9 (byte"), "{text}");
            target.sql(&format!("DELETE FROM {table}"));
            target.sql("DELETE FROM coload_loads");
            let text = target.load(&file, &format!("{flags} --max-rejects 1000"));
            assert!(text.contains(&format!("\"rejects\": {bad},")), "{method} {guarantee}: {text}");
            assert!(text.contains("547") && text.contains("2627"), "{text}");
            let found = target.sql(&format!("SELECT COUNT(*), COUNT(DISTINCT id) FROM {table}"));
            assert_eq!(found, format!("{0}|{0}", 2_000 - bad), "{method} {guarantee}");
        }
    }
}

/// Rules go with the table beside the table, and what an index leaves out without an error is a reject all the same.
fn rules_are_asked_where_rows_wait(target: &Target) {
    let (text, bad) = with_bad(2_000, 500);
    let file = target.file("beside.csv", &text);
    target.drop_table("uq_l");
    target.sql("CREATE TABLE uq_l (id bigint PRIMARY KEY, v int CHECK (v < 100), t nvarchar(100))");
    let flags = "--table uq_l --connections 2 --chunk-size 16KiB --max-rejects 100";
    let text = target.load(&file, flags);
    assert!(text.contains(&format!("\"rejects\": {bad},")), "{text}");
    let whole = format!("{0}|{0}", 2_000 - bad);
    assert_eq!(target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM uq_l"), whole);
    for method in ["insert-bulk", "values"] {
        target.drop_table("ignoring");
        target.sql(
            "CREATE TABLE ignoring (id bigint NOT NULL, v int CHECK (v < 100), t nvarchar(100))",
        );
        target.sql("CREATE UNIQUE INDEX one ON ignoring (id) WITH (IGNORE_DUP_KEY = ON)");
        let text =
            target.load(&file, &format!("--table ignoring --method {method} --max-rejects 100"));
        assert!(text.contains(&format!("\"rejects\": {bad},")), "{method}: {text}");
        assert_eq!(target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM ignoring"), whole);
    }
}

fn a_table_is_made_replaced_or_left_as_it_is(target: &Target) {
    let (one, two) = (target.file("one.csv", &numbered(10)), target.file("two.csv", &numbered(25)));
    let count = || target.sql("SELECT COUNT(*) FROM modes");
    target.drop_table("modes");
    target.load(&one, "--table modes --create");
    assert!(target.fail(&one, "--table modes --create").contains("--create"));
    target.load(&two, "--table modes");
    target.load(&two, "--table modes --connections 2");
    target.load(&one, "--table modes --method insert-autocommit");
    assert_eq!(count(), "70");
    target.load(&one, "--table modes --replace");
    assert_eq!(count(), "10");
    let bad = target.file("bad_end.csv", &(numbered(5000) + "x,1,2\n"));
    for flags in ["--replace", "--append", "--append --connections 2"] {
        target.fail(&bad, &format!("--table modes {flags} --chunk-size 64KiB"));
        assert_eq!(count(), "10", "{flags}");
    }
    // Many chunks over several connections, under locks of the table that it makes.
    target.drop_table("wide_load");
    let many = target.file("many.csv", &numbered(20_000));
    target.load(&many, "--table dbo.wide_load --chunk-size 16KiB --connections 3");
    assert_eq!(
        target.sql("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM wide_load"),
        "20000|20000|0|19999"
    );
    if let Some(server) = &target.server {
        let seen = server.shared.seen.lock().unwrap();
        assert!(seen.iter().any(|sql| sql.contains("_coload_") && sql.contains("TABLOCK")));
        assert!(
            seen.iter().all(|sql| sql.contains("CHECK_CONSTRAINTS, KEEP_NULLS, FIRE_TRIGGERS"))
        );
        assert!(!seen.iter().any(|sql| sql.contains("[uq_a]") && sql.contains("TABLOCK")));
    }
}

fn nothing_is_narrowed_without_a_word(target: &Target) {
    target.drop_table("narrow");
    target.sql(
        "CREATE TABLE narrow (n tinyint, v nvarchar(3), p varchar(4), d datetime, m smallmoney, k binary(2), f float, \
         e decimal(4,2), z time(0))",
    );
    let good = "255,a😀,café,1753-01-01 00:00:00.003,214748.3647,\\x0102,1.5,12.34,01:02:03";
    let bad = [
        good.replace("255", "256"),
        good.replace("255", "-1"),
        good.replace("a😀", "ab😀"),
        good.replace("café", "caféé"),
        good.replace("café", "ca😀"),
        good.replace("1753", "1752"),
        good.replace(".003", ".004"),
        good.replace("214748", "214749"),
        good.replace("\\x0102", "\\x01"),
        good.replace("\\x0102", "\\x010203"),
        good.replace("1.5", "NaN"),
        good.replace("12.34", "123.45"),
        good.replace("01:02:03", "01:02:03.5"),
    ];
    let text = format!("n,v,p,d,m,k,f,e,z\n{good}\n{}\n{good}\n", bad.join("\n"));
    let file = target.file("narrow.csv", &text);
    for method in METHODS {
        target.sql("DELETE FROM narrow");
        let flags = format!("--table narrow --method {method} --max-rejects {}", bad.len());
        let text = target.load(&file, &flags);
        assert!(text.contains(&format!("\"rejects\": {},", bad.len())), "{method}: {text}");
        let found = target.sql("SELECT n, v, p, d, m, k, f, e, z FROM narrow");
        let line = "255|a😀|café|1753-01-01 00:00:00.003000|214748.3647|0102|1.5|12.34|01:02:03";
        assert_eq!(found, format!("{line}\n{line}"), "{method}");
    }
    let rejects = target.folder.path().join("rejects.csv");
    target.load(&file, &format!("--table narrow --max-rejects 99 --rejects {}", rejects.display()));
    let text = std::fs::read_to_string(rejects).unwrap();
    for why in
        ["tinyint holds 0 to 255", "datetime begins in 1753", "steps of 0, 3 and 7", "no NaN"]
    {
        assert!(text.contains(why), "{why}: {text}");
    }
}

fn columns_of_the_server_are_left_to_it(target: &Target) {
    target.drop_table("[Order ]] by]");
    target.sql(
        "CREATE TABLE [Order ]] by] (id int IDENTITY(1,1), [Select] int NOT NULL, twice AS ([Select] * 2), \
         d int NOT NULL DEFAULT (7), n int NULL DEFAULT (8))",
    );
    let file = target.file("order.csv", "SELECT,n\n1,\n2,5\n");
    for (method, connections) in
        [("insert-bulk", 1), ("values", 1), ("prepared", 2), ("insert-bulk", 2)]
    {
        target.sql("DELETE FROM [Order ]] by]");
        let output = target
            .command(&file, &format!("--method {method} --connections {connections}"))
            .args(["--table", "\"Order ] by\"", "--columns", "\"Select\" INTEGER, n INTEGER"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{method}: {}", String::from_utf8_lossy(&output.stderr));
        let found = target.sql("SELECT [Select], twice, d, n FROM [Order ]] by]");
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["1|2|7|N", "2|4|7|5"], "{method}");
    }
    let file = target.file("id.csv", "id,Select\n1,1\n");
    let output = target
        .command(&file, "")
        .args(["--table", "\"Order ] by\"", "--columns", "id INTEGER, \"Select\" INTEGER"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("the server makes the values of column id"),
        "{text}"
    );
}

fn indexes_are_built_after_the_rows(target: &Target) {
    let (good, twice) = (numbered(3_000), numbered(3_000) + "3001,1,text 7\n");
    let (good, twice) = (target.file("good.csv", &good), target.file("twice.csv", &twice));
    for connections in [1, 2] {
        target.drop_table("built");
        target.sql("CREATE TABLE built (id bigint PRIMARY KEY, v int, t nvarchar(100) NOT NULL)");
        target.sql("CREATE UNIQUE INDEX texts ON built (t)");
        target.sql("CREATE UNIQUE INDEX ignoring ON built (id, t) WITH (IGNORE_DUP_KEY = ON)");
        let flags = format!(
            "--table built --rebuild-indexes --connections {connections} --chunk-size 16KiB"
        );
        let text = target.fail(&twice, &flags);
        assert!(text.contains("1505") && text.contains("nothing was loaded"), "{text}");
        assert_eq!(target.sql("SELECT COUNT(*) FROM built"), "0");
        let text = target.load(&good, &flags);
        assert!(text.contains("built after the rows") && text.contains("texts"), "{text}");
        assert!(text.contains("ignoring stayed, for it leaves duplicates out"), "{text}");
        assert_eq!(target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM built"), "3000|3000");
        // The index is there, and asked.
        let text = target.fail(&target.file("one.csv", "id,v,t\n9000,1,text 7\n"), "--table built");
        assert!(text.contains("'texts'"), "{text}");
        // Rows are there: indexes stay.
        let text = target.load(&target.file("other.csv", "id,v,t\n9000,1,other\n"), &flags);
        assert!(text.contains("the table has rows"), "{text}");
        let text = target.load(&good, &format!("{flags} --replace"));
        assert!(text.contains("built after the rows"), "{text}");
        assert_eq!(target.sql("SELECT COUNT(*) FROM built"), "3000");
    }
}

/// A server compares with the table what INSERT BULK says of NULL.
fn columns_that_must_have_a_value_are_told_as_such(target: &Target) {
    let file =
        target.file("must.csv", "a,b,c,d,e,f\n1,x,1.5,2020-01-02,2,\\x00\n2,y,2.5,2020-01-03,,\n");
    for method in METHODS {
        for connections in [1, 2] {
            target.drop_table("must");
            target.sql(
                "CREATE TABLE must (a int NOT NULL, b nvarchar(9) NOT NULL, c float NOT NULL, d date NOT NULL, \
                 e int NULL, f varbinary(9) NULL)",
            );
            target.load(
                &file,
                &format!("--table must --method {method} --connections {connections}"),
            );
            assert_eq!(
                target.sql("SELECT a, b, c, d FROM must"),
                "1|x|1.5|2020-01-02\n2|y|2.5|2020-01-03"
            );
        }
    }
}

/// The error of a trigger ends the transaction: a resumable load sends what it had again, without the row.
#[test]
fn rows_that_a_trigger_refuses_are_rejects_of_a_resumable_load() {
    // The small server has the trigger by the name of the table.
    let target = &Target::small();
    let rows: String =
        (0..8000).map(|id| format!("{id},{}\n", if id % 400 == 7 { 13 } else { 1 })).collect();
    let file = target.file("triggered.csv", &format!("id,v\n{rows}"));
    for method in METHODS {
        target.drop_table("t_triggered");
        target.sql("CREATE TABLE t_triggered (id bigint PRIMARY KEY, v int)");
        let flags = format!(
            "--table t_triggered --method {method} --max-rejects 100 --again --chunk-size 16KiB"
        );
        let text = target.load(&file, &format!("{flags} --resumable"));
        assert!(
            text.contains("\"rejects\": 20,") && text.contains("The trigger takes no 13."),
            "{text}"
        );
        let found = target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM t_triggered");
        assert_eq!(found, "7980|7980", "{method}");
        target.sql("DELETE FROM t_triggered");
        // One transaction is gone with the row, and says why.
        let text = target.fail(&file, &flags);
        assert!(text.contains("--resumable loads the others"), "{method}: {text}");
        assert_eq!(target.sql("SELECT COUNT(*) FROM t_triggered"), "0", "{method}");
    }
}

const ROWS: usize = 40_000;

/// Clients are killed in the middle of loads, which go on when they are run again.
fn clients_are_killed(target: &Target) {
    let file = target.file("kills.csv", &numbered(ROWS));
    let whole = format!("{ROWS}|{ROWS}");
    let count = || target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM kills");
    target.drop_table("kills");
    target.sql("CREATE TABLE kills (id bigint PRIMARY KEY, v int, t nvarchar(100))");
    for wait in [150, 400, 650] {
        let mut child =
            target.command(&file, "--table kills --replace --chunk-size 64KiB").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        // The server may not have seen yet that the client is gone.
        let found = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            let found = count();
            (found == "0|0" || found == whole).then_some(found)
        });
        assert!(found.is_some(), "{wait}: {}", count());
    }
    target.sql("DELETE FROM kills");
    let flags = "--table kills --resumable --chunk-size 64KiB";
    for wait in [200, 300, 400] {
        let mut child = target.command(&file, flags).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut last = String::new();
    let loaded = (0..50).any(|_| {
        let (loaded, text) = target.try_load(&file, flags);
        last = text;
        std::thread::sleep(Duration::from_millis(100));
        loaded
    });
    assert!(loaded, "{last}");
    assert_eq!(count(), whole);
}

/// Connections break off, and the server makes victims of deadlocks, while a load goes on by itself.
fn connections_are_killed(target: &Target, server: &TdsServer) {
    let file = target.file("lost.csv", &numbered(ROWS));
    target.sql("CREATE TABLE lost (id bigint PRIMARY KEY, v int, t nvarchar(100))");
    *server.shared.trouble.lock().unwrap() = vec![1205; 3];
    let flags = "--table lost --resumable --chunk-size 32KiB --patience 60";
    let mut child = target.command(&file, flags).spawn().unwrap();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(170));
        // The connection that watches over the load is the first.
        server.kill_connections(1);
    }
    let ended = child.wait().unwrap();
    if !ended.success() {
        target.load(&file, flags);
    }
    assert_eq!(
        target.sql("SELECT COUNT(*), COUNT(DISTINCT id) FROM lost"),
        format!("{ROWS}|{ROWS}")
    );
    assert!(server.shared.trouble.lock().unwrap().is_empty(), "no deadlock came");
}

#[test]
fn connections_are_encrypted_as_the_url_says() {
    let target = &Target::small();
    let server = target.server.as_ref().unwrap();
    let certificate = target.file("root.pem", &server.certificate).display().to_string();
    let file = target.file("tls.csv", &numbered(3));
    let place = target.url.split_once('?').unwrap().0.to_owned();
    let load = |place: &str, parameters: &str| {
        let url = format!("{place}?{parameters}");
        let output = Command::new(env!("CARGO_BIN_EXE_coload"))
            .arg("load")
            .arg(&file)
            .args(["--into", &url, "--table", "tls"])
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for parameters in [
        "trustServerCertificate=true",
        "encrypt=false&trustServerCertificate=true",
        "encrypt=disable",
        &format!("serverCertificate={certificate}&hostNameInCertificate=localhost"),
    ] {
        let (loaded, text) = load(&place, parameters);
        assert!(loaded, "{parameters}: {text}");
    }
    for (parameters, why) in [
        ("encrypt=true", "trustServerCertificate=true takes any certificate"),
        (&format!("serverCertificate={certificate}") as &str, "not valid for name"),
        ("encrypt=strict", "strict"),
    ] {
        let (loaded, text) = load(&place, parameters);
        assert!(!loaded && text.contains(why), "{parameters}: {text}");
    }
    let wrong = place.replace("loader:", "nobody:");
    let (loaded, text) = load(&wrong, "trustServerCertificate=true");
    assert!(!loaded && text.contains("Login failed for user 'nobody'. (18456)"), "{text}");
    let plain = TdsServer::start(false);
    let place = format!("{}:{}/d", place.rsplit_once(':').unwrap().0, plain.port);
    let (loaded, text) = load(&place, "");
    assert!(!loaded && text.contains("does not encrypt connections"), "{text}");
    // A server that does not encrypt gets no password unless the user says so.
    let (loaded, text) = load(&place, "encrypt=false");
    assert!(!loaded && text.contains("encrypt=disable"), "{text}");
    let (loaded, text) = load(&place, "encrypt=disable");
    assert!(loaded, "{text}");
    assert_eq!(target.sql("SELECT COUNT(*) FROM tls"), "12");
}
