//! Indexes and constraints that are built after the rows, and rows that come frozen.

use std::time::Duration;

use crate::rows::numbered;
use crate::servers::{Engine, Server};

const ROWS: usize = 30_000;
const WHOLE: &str = "30000|30000";
/// What is loaded of a table that has a column more, which the server counts.
const COLUMNS: &str = "id BIGINT, v INTEGER, t VARCHAR(100)";

fn count(server: &Server, table: &str) -> String {
    server.sql(&format!("SELECT count(*), count(DISTINCT id) FROM {table}"))
}

/// All that PostgreSQL tells of what a table has besides rows.
fn described(server: &Server, table: &str) -> String {
    server.sql(&format!(
        "SELECT string_agg(d, E'\\n' ORDER BY d) FROM (\
         SELECT pg_get_indexdef(indexrelid) || ' ' || coalesce(obj_description(indexrelid, 'pg_class'), '') || indisvalid AS d \
         FROM pg_index WHERE indrelid = '{table}'::regclass UNION ALL \
         SELECT conname || ' ' || pg_get_constraintdef(oid) || ' ' || convalidated || coalesce(obj_description(oid, 'pg_constraint'), '') \
         FROM pg_constraint WHERE conrelid = '{table}'::regclass OR confrelid = '{table}'::regclass) AS all_of_it"
    ))
}

#[test]
fn indexes_of_postgresql_are_built_after_the_rows() {
    let server = &Server::start(Engine::Postgres);
    server.sql(
        "CREATE TABLE parent (v int PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 96); \
         CREATE SCHEMA \"S s\"; \
         CREATE TABLE \"S s\".\"T t\" (id bigint CONSTRAINT \"the key\" PRIMARY KEY, v int REFERENCES parent, \
         t text, CONSTRAINT late UNIQUE (t, id) DEFERRABLE INITIALLY DEFERRED, CHECK (id >= 0)); \
         COMMENT ON CONSTRAINT \"the key\" ON \"S s\".\"T t\" IS 'it''s \"one\"'; \
         CREATE INDEX \"low er\" ON \"S s\".\"T t\" (lower(t) DESC NULLS LAST, v) INCLUDE (id) WITH (fillfactor = 70) WHERE v > 3; \
         COMMENT ON INDEX \"S s\".\"low er\" IS 'an index'; \
         CREATE UNIQUE INDEX needed ON \"S s\".\"T t\" (id, v); \
         CREATE TABLE child (id bigint, v int, FOREIGN KEY (id, v) REFERENCES \"S s\".\"T t\" (id, v))",
    );
    let table = "\"S s\".\"T t\"";
    let before = described(server, table);
    let file = server.file("rebuilt.csv", &numbered(ROWS));
    let twice = server.file("twice.csv", &(numbered(ROWS) + "5,6,text\n"));
    server.sql("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'");
    let text = server.load(&file, "--table old --replace --chunk-size 64KiB");
    assert!(!text.contains("COPY FREEZE"), "{text}");
    server.sql("ALTER DATABASE postgres RESET default_transaction_isolation");
    let orphan = server.file("orphan.csv", &(numbered(ROWS) + "30001,500,text\n"));
    let flags = |more: &str| format!("--rebuild-indexes --chunk-size 64KiB {more}");
    let load = |file: &std::path::Path, more: &str| {
        let output =
            server.load_command(file, &flags(more)).args(["--table", table]).output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    };
    for connections in ["--connections 1", "--connections 2"] {
        let (loaded, text) = load(&file, connections);
        assert!(loaded, "{text}");
        assert!(text.contains("built after the rows") && text.contains("low er"), "{text}");
        assert!(text.contains("needed stayed, for something else needs it"), "{text}");
        assert_eq!(count(server, table), WHOLE);
        assert_eq!(described(server, table), before, "{connections}");
        // Rows are there now: the indexes stay.
        let (loaded, text) = load(&twice, connections);
        assert!(!loaded, "{text}");
        let other = server.file("other.csv", "id,v,t\n40000,1,other\n");
        let (loaded, text) = load(&other, connections);
        assert!(loaded && text.contains("the table has rows"), "{text}");
        // What cannot be built with the rows leaves all as it was.
        for bad in [&twice, &orphan] {
            server.sql(&format!("DELETE FROM {table}"));
            let (loaded, text) = load(bad, connections);
            assert!(!loaded && text.contains("nothing was loaded"), "{text}");
            assert_eq!(count(server, table), "0|0");
            assert_eq!(described(server, table), before, "{connections}");
        }
        let beside = "SELECT count(*) FROM pg_class WHERE relname LIKE '\\_coload\\_%'";
        assert_eq!(server.sql(beside), "0", "a table beside it is left");
    }
    // A client that dies takes its transaction with it.
    for wait in [100, 250, 400] {
        let mut child =
            server.load_command(&file, &flags("")).args(["--table", table]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        // The server may still be at what it was told last.
        let found = count(server, table);
        assert!(found == "0|0" || found == WHOLE, "{found}");
        assert_eq!(described(server, table), before);
        server.sql(&format!("DELETE FROM {table}"));
    }
    let text = server.fail(&file, "--table rebuilt --rebuild-indexes --resumable");
    assert!(text.contains("cannot be used with"), "{text}");
    server.sql(
        "CREATE TABLE parts (id bigint PRIMARY KEY, v int, t text) PARTITION BY HASH (id); \
                CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    );
    let text = server.load(&file, "--table parts --rebuild-indexes");
    assert!(text.contains("stayed, for it is no ordinary table"), "{text}");
    assert_eq!(count(server, "parts"), WHOLE);
}

#[test]
fn indexes_of_mariadb_are_built_before_the_table_takes_its_place() {
    let server = &Server::start(Engine::Mariadb);
    server.sql(
        "CREATE TABLE `t``t` (n bigint NOT NULL AUTO_INCREMENT, id bigint PRIMARY KEY, v int, t varchar(100), \
         KEY counted (n), UNIQUE KEY `one``two` (t(20), id DESC) COMMENT 'it''s, `one`', KEY plain (v), FULLTEXT KEY words (t), \
         CONSTRAINT small CHECK (v < 100))",
    );
    let show = || {
        let shown = server.sql("SHOW CREATE TABLE `t``t`");
        // What is counted on is no matter of the table.
        let (before, after) = shown.split_once("AUTO_INCREMENT=").unwrap_or((&shown, ""));
        format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '))
    };
    let load = |file: &std::path::Path, flags: &str| {
        let mut command = server.load_command(file, flags);
        let output = command
            .args(["--rebuild-indexes", "--table", "\"t`t\"", "--columns", COLUMNS])
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    };
    // What was given before is not given again, even if nobody has it any more.
    server.sql("INSERT INTO `t``t` VALUES (999, 1, 1, 'x'); DELETE FROM `t``t`");
    let before = show();
    let file = server.file("rebuilt.csv", &numbered(ROWS));
    let doubled = server.file(
        "twice.csv",
        &(numbered(ROWS) + "30001,5,text 7\n").replace("\n8,8,text 8\n", "\n8,8,text 7\n"),
    );
    server.sql("CREATE UNIQUE INDEX texts ON `t``t` (t)");
    let with_texts = show();
    let (loaded, text) = load(&doubled, "--chunk-size 64KiB");
    assert!(!loaded && text.contains("nothing was loaded"), "{text}");
    assert_eq!((count(server, "`t``t`"), show()), ("0|0".to_owned(), with_texts));
    server.sql("DROP INDEX texts ON `t``t`");
    assert_eq!(show(), before);
    for (flags, expected) in [
        ("--chunk-size 64KiB", WHOLE),
        ("--replace --connections 2 --chunk-size 64KiB", WHOLE),
        ("--replace --method values --batch-rows 500", WHOLE),
    ] {
        let (loaded, text) = load(&file, flags);
        assert!(loaded, "{flags}: {text}");
        assert!(
            text.contains("built after the rows") && text.contains("one`two, plain, words"),
            "{text}"
        );
        assert!(text.contains("counted stayed, for AUTO_INCREMENT needs it"), "{text}");
        assert_eq!(
            (count(server, "`t``t`"), show()),
            (expected.to_owned(), before.clone()),
            "{flags}"
        );
    }
    assert_eq!(server.sql("SHOW TABLES LIKE '\\_coload\\_%'"), "", "a table beside it is left");
    assert_eq!(server.sql("SELECT min(n) >= 1000 FROM `t``t`"), "1");
    for wait in [100, 250, 400] {
        let mut command = server.load_command(&file, "--replace --chunk-size 64KiB");
        let mut child = command
            .args(["--rebuild-indexes", "--table", "\"t`t\"", "--columns", COLUMNS])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((count(server, "`t``t`"), show()), (WHOLE.to_owned(), before.clone()), "{wait}");
    }
    // The next load removes what those left.
    let (loaded, text) = load(&file, "--replace");
    assert!(loaded, "{text}");
    assert_eq!(server.sql("SHOW TABLES LIKE '\\_coload\\_%'"), "");
    // Foreign keys go with a table, and not with its name.
    server.sql(
        "CREATE TABLE parent (v int PRIMARY KEY); INSERT INTO parent SELECT DISTINCT v FROM `t``t`; \
         CREATE TABLE child (id bigint PRIMARY KEY, v int, t varchar(100), KEY v (v), FOREIGN KEY (v) REFERENCES parent (v)); \
         CREATE TABLE watched (id bigint PRIMARY KEY, v int, t varchar(100), KEY v (v)); \
         CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW SET NEW.v = 1",
    );
    for (table, why) in [
        ("child", "it has foreign keys"),
        ("parent", "foreign keys refer to it"),
        ("watched", "it has triggers"),
    ] {
        server.try_sql(&format!("SET FOREIGN_KEY_CHECKS = 0; DELETE FROM {table}"));
        let (loaded, text) = match table {
            "parent" => {
                server.try_load(&server.file("p.csv", "v\n1\n"), "--table parent --rebuild-indexes")
            }
            _ => server.try_load(&file, &format!("--table {table} --rebuild-indexes")),
        };
        // The child has no parents any more when it comes last; what is told of the indexes is told all the same.
        assert!(text.contains(why) || !loaded, "{table}: {text}");
        if table != "child" {
            assert!(loaded && text.contains(why), "{table}: {text}");
        }
    }
}

/// Rows of a table that the transaction of the load made or emptied need no VACUUM to be frozen.
#[test]
fn rows_come_frozen_where_their_transaction_made_or_emptied_the_table() {
    let server = &Server::start(Engine::Postgres);
    server.sql("CREATE EXTENSION pg_visibility; CREATE TABLE old (id bigint PRIMARY KEY, v int, t text); INSERT INTO old VALUES (1, 1, 'x')");
    let file = server.file("frozen.csv", &numbered(ROWS));
    let frozen = |table: &str| {
        let sql = format!(
            "SELECT all_frozen * 8192 >= pg_relation_size('{table}') FROM pg_visibility_map_summary('{table}')"
        );
        server.sql(&sql) == "t"
    };
    let text = server.load(&file, "--table old --replace --chunk-size 64KiB --method copy-binary");
    assert!(text.contains("COPY FREEZE"), "{text}");
    assert_eq!((count(server, "old"), frozen("old")), (WHOLE.to_owned(), true));
    let text =
        server.load(&file, "--table made --connections 1 --chunk-size 64KiB --method copy-text");
    assert!(text.contains("COPY FREEZE"), "{text}");
    assert_eq!((count(server, "made"), frozen("made")), (WHOLE.to_owned(), true));
    // A row that is refused is told with its place, and the table is as before.
    let bad = server.file("bad.csv", &(numbered(ROWS).replace("\n20000,", "\n19999,")));
    let text = server.fail(&bad, "--table old --replace --chunk-size 64KiB");
    assert!(text.contains("bad.csv:20002") && text.contains("23505"), "{text}");
    assert_eq!(count(server, "old"), WHOLE);
    // Rejects need savepoints, rows of others a table as it is, and foreign keys say nothing of their row.
    for flags in ["--table old --replace --max-rejects 5", "--table made --append"] {
        let text = server.load(&file, &format!("{flags} --chunk-size 64KiB"));
        assert!(!text.contains("COPY FREEZE"), "{text}");
    }
    server.sql(
        "CREATE TABLE parent (v int PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 96); \
         CREATE TABLE child (id bigint, v int REFERENCES parent, t text)",
    );
    let text = server.load(&file, "--table child --replace --chunk-size 64KiB");
    assert!(!text.contains("COPY FREEZE"), "{text}");
    let orphan =
        server.file("orphan.csv", &(numbered(ROWS).replace("\n20000,", "\n20000,500,x\n20000,")));
    let text = server.fail(&orphan, "--table child --replace --chunk-size 64KiB");
    assert!(text.contains("orphan.csv:20002"), "{text}");
}
