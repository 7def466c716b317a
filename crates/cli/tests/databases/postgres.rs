//! PostgreSQL.

use crate::rows::{numbered, with_bad};
use crate::servers::{Engine, Server};

const METHODS: [&str; 7] =
    ["copy-binary", "copy-text", "unnest", "values", "prepared", "insert", "insert-autocommit"];

#[test]
fn a_server_of_postgresql_gets_what_files_hold() {
    let server = &Server::start(Engine::Postgres);
    every_type_keeps_its_edges_by_every_method(server);
    lists_are_arrays(server);
    a_table_that_is_there_is_matched_by_name(server);
    types_of_the_server_are_read_as_it_reads_them(server);
    what_the_server_refuses_is_a_reject_and_the_others_load(server);
    many_refusals_in_one_transaction_keep_no_locks(server);
    a_table_is_made_replaced_or_left_as_it_is(server);
    a_resumable_load_goes_on_and_is_done_once(server);
    nothing_is_rounded_or_cut_without_a_word(server);
}

/// Columns of all types, and values at their ends.
const TYPES: &str = "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, d DECIMAL(15,2), w DECIMAL(38,10), r REAL, f DOUBLE, \
                     da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, c CHAR(3), v VARCHAR(5), t VARCHAR, \
                     x BINARY, u UUID";
const EDGES: &str = "\
true;-32768;-2147483648;-9223372036854775808;-9999999999999.99;-9999999999999999999999999999.9999999999;-3.4028235e38;-1.7976931348623157e308;0001-01-01;00:00:00;0001-01-01 00:00:00;0001-01-01 00:00:00+00;a  ;héllo;tab\\tand \\\\N;\\x00ff10;00000000-0000-0000-0000-000000000000
false;32767;2147483647;9223372036854775807;9999999999999.99;9999999999999999999999999999.9999999999;1e-45;5e-324;9999-12-31;23:59:59.999999;9999-12-31 23:59:59.999999;9999-12-31 23:59:59.999999+00;;;;;ffffffff-ffff-ffff-ffff-ffffffffffff
;;;;;;;;;;;;;;;;
true;0;0;0;0.01;0.0000000001;NaN;Infinity;2000-01-01;12:00:00.000001;1999-12-31 23:59:59.999999;2000-01-01 00:00:00+00;x;😀;'quoted';\\x61;12345678-9abc-def0-1234-56789abcdef0
";
const EDGES_READ: &str = "\
true|-32768|-2147483648|-9223372036854775808|-9999999999999.99|-9999999999999999999999999999.9999999999|-3.4028235e+38|-1.7976931348623157e+308|0001-01-01|00:00:00|0001-01-01 00:00:00|0001-01-01 00:00:00+00|a  |héllo|tab\\tand \\\\N|\\x00ff10|00000000-0000-0000-0000-000000000000
false|32767|2147483647|9223372036854775807|9999999999999.99|9999999999999999999999999999.9999999999|1e-45|5e-324|9999-12-31|23:59:59.999999|9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999+00||||\\x|ffffffff-ffff-ffff-ffff-ffffffffffff
N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N
true|0|0|0|0.01|0.0000000001|NaN|Infinity|2000-01-01|12:00:00.000001|1999-12-31 23:59:59.999999|2000-01-01 00:00:00+00|x|😀|'quoted'|\\x61|12345678-9abc-def0-1234-56789abcdef0";

/// A table's rows with `N` for NULL.
fn read(server: &Server, table: &str) -> String {
    let columns = "b s i l d w r f da ti ts tz c v t x u".split(' ');
    let cells = columns.map(|c| format!("coalesce({c}::text, 'N')")).collect::<Vec<_>>();
    server.sql(&format!(
        "SELECT {} FROM \"{table}\" ORDER BY b NULLS LAST, s DESC, i",
        cells.join(", ")
    ))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn every_type_keeps_its_edges_by_every_method(server: &Server) {
    // Empty unquoted fields are NULL; the second row has empty texts in quotes.
    let text = EDGES.replace("+00;;;;;ffff", "+00;\"\";\"\";\"\";\"\";ffff");
    let file = server.file("types.csv", &text);
    for method in METHODS {
        let output = server
            .load_command(
                &file,
                &format!("--no-header --delimiter ; --table types_{method} --method {method}"),
            )
            .args(["--columns", TYPES, "--null", ""])
            .output()
            .unwrap();
        assert!(output.status.success(), "{method}: {}", String::from_utf8_lossy(&output.stderr));
        let table = read(server, &format!("types_{method}"));
        assert_eq!(sorted(&table), sorted(EDGES_READ), "{method}");
    }
    let types = "SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute \
                 WHERE attrelid = '\"types_copy-binary\"'::regclass AND attnum > 0";
    assert_eq!(
        server.sql(types),
        "boolean,smallint,integer,bigint,numeric(15,2),numeric(38,10),real,double precision,date,\
         time without time zone,timestamp without time zone,timestamp with time zone,\
         character varying(3),character varying(5),text,bytea,uuid"
    );
    // The table that was made is one that takes the same again.
    let again = "--no-header --delimiter ; --table types_copy-binary";
    let output = server.load_command(&file, again).args(["--null", ""]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.sql("SELECT count(*), count(DISTINCT b) FROM \"types_copy-binary\""), "8|2");
}

/// Lists go by the method that has text, which is chosen, and into a table that is there.
fn lists_are_arrays(server: &Server) {
    let text = "{\"id\":1,\"n\":[1,null],\"t\":[\"a b\",\"\\\"q\\\"\",\"NULL\",\"\"],\"d\":[\"2024-02-29\"]}\n\
                {\"id\":2,\"n\":[],\"t\":null,\"d\":[]}\n";
    let file = server.file("lists.jsonl", text);
    for rows in [2, 4] {
        let output = server.load_command(&file, "--table lists").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(server.sql("SELECT count(*) FROM lists"), rows.to_string());
    }
    assert_eq!(
        server.sql("SELECT DISTINCT id, n, t, d FROM lists ORDER BY id"),
        "1|{1,NULL}|{\"a b\",\"\\\"q\\\"\",\"NULL\",\"\"}|{2024-02-29}\n2|{}||{}"
    );
    assert_eq!(
        server.sql("SELECT pg_typeof(n), pg_typeof(t), pg_typeof(d) FROM lists LIMIT 1"),
        "bigint[]|text[]|date[]"
    );
    let error = server.fail(&file, "--table lists --method copy-binary");
    assert!(error.contains("only goes as text (--method copy-text)"), "{error}");
}

fn a_table_that_is_there_is_matched_by_name(server: &Server) {
    server.sql(
        "CREATE SCHEMA \"Sales dept\"; CREATE TABLE \"Sales dept\".\"Order\" (\"select\" int, \"Id\" bigint GENERATED ALWAYS \
         AS IDENTITY, \"a\"\"b\" text, twice int GENERATED ALWAYS AS (\"select\" * 2) STORED, at timestamptz DEFAULT now())",
    );
    let file = server.file("order.csv", "a\"b|SELECT\n'; DROP TABLE x; --|1\nzwei|2\n");
    let output = server
        .load_command(&file, "--by-name --header --delimiter | --quote none --set at=@null")
        .args(["--table", "\"Sales dept\".Order"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        server.sql("SELECT \"Id\", \"select\", twice, \"a\"\"b\", at FROM \"Sales dept\".\"Order\" ORDER BY 1"),
        "1|1|2|'; DROP TABLE x; --|\n2|2|4|zwei|"
    );
    let wrong = server.file("wrong.csv", "nothing\n1\n");
    let text = server.fail(&wrong, "--columns nothing\u{a0}INT --table uq_none.x");
    assert!(text.contains("error"), "{text}");
}

fn types_of_the_server_are_read_as_it_reads_them(server: &Server) {
    server.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 10); \
         CREATE TABLE odd (n numeric, j json, jb jsonb, m mood, s small, a int[], ip inet, iv interval, c char(4))",
    );
    let row = |n: &str, jb: &str, mood: &str, small: &str| {
        format!("{n};[1, 2];{jb};{mood};{small};{{1,2}};10.0.0.1;1 day;ab\n")
    };
    let many = "123456789012345678901234567890123456789012345678901234567890.5";
    let good = row(many, "{\"b\": 1, \"a\": [true]}", "ok", "9");
    let file = server.file("odd.csv", &(good.clone() + &row("NaN", "null", "sad", "1")));
    let flags = "--no-header --delimiter ; --quote none --table odd";
    server.load(&file, flags);
    let rows = server.sql("SELECT n, j, jb, m, s, a, ip, iv, c FROM odd ORDER BY s DESC");
    let expected =
        format!("{many}|[1, 2]|{{\"a\": [true], \"b\": 1}}|ok|9|{{1,2}}|10.0.0.1|1 day|ab  \n");
    assert!(rows.starts_with(&expected), "{rows}");
    for bad in [
        row("1", "{", "ok", "1"),
        row("1", "1", "angry", "1"),
        row("x", "1", "ok", "1"),
        row("1", "1", "ok", "10"),
    ] {
        let file = server.file("bad.csv", &(good.clone() + &bad + &good));
        let text = server.fail(&file, flags);
        assert!(text.contains("bad.csv:2"), "{text}");
        let text = server.load(&file, &format!("{flags} --max-rejects 1"));
        assert!(text.contains("\"rows\": 2") && text.contains("\"line\": 2"), "{text}");
    }
    let text = server.fail(&file, &format!("{flags} --method copy-binary"));
    assert!(text.contains("copy-text"), "{text}");
}

fn what_the_server_refuses_is_a_reject_and_the_others_load(server: &Server) {
    let (text, bad) = with_bad(4_000, 500);
    let file = server.file("bad_rows.csv", &text);
    for method in METHODS {
        // Both kinds of transaction: that of the load, and that of a chunk.
        for (guarantee, table) in [("--atomic", "uq_a"), ("--resumable", "uq_r")] {
            // Each row alone is slow, and the same in both.
            if method == "insert-autocommit" || (method == "insert" && guarantee == "--resumable") {
                continue;
            }
            server.sql(&format!(
                "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, \
                 v int CHECK (v < 100), t text)"
            ));
            let flags =
                format!("--table {table} --method {method} --chunk-size 64KiB {guarantee} --again");
            let text = server.fail(&file, &flags);
            // Chunks of a resumable load are refused in any order.
            let place =
                if guarantee == "--atomic" { "bad_rows.csv:9 (byte" } else { "bad_rows.csv:" };
            assert!(text.contains(place), "{text}");
            if guarantee == "--atomic" {
                assert_eq!(server.sql(&format!("SELECT count(*) FROM {table}")), "0");
            }
            let text = server.load(&file, &format!("{flags} --max-rejects 1000"));
            assert!(text.contains(&format!("\"rejects\": {bad},")), "{method} {guarantee}: {text}");
            assert!(text.contains("23505") && text.contains("23514"), "{text}");
            let found = server.sql(&format!("SELECT count(*), count(DISTINCT id) FROM {table}"));
            assert_eq!(found, format!("{0}|{0}", 4_000 - bad), "{method} {guarantee}");
        }
    }
    let nul = server.file("nul.csv", "id,t\n1,a\n2,b\0c\n3,d\n");
    for method in ["copy-binary", "copy-text", "values"] {
        let flags = format!(
            "--table nul_{method} --method {method} --columns id\u{a0}BIGINT,t\u{a0}VARCHAR"
        );
        let flags = flags.replace('\u{a0}', " ");
        let (columns, flags) = (
            flags.split("--columns ").nth(1).unwrap().to_owned(),
            flags.split(" --columns").next().unwrap().to_owned(),
        );
        let output = server
            .load_command(&nul, &format!("{flags} --header --max-rejects 1"))
            .args(["--columns", &columns])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{method}: {text}");
        assert_eq!(
            server.sql(&format!("SELECT string_agg(t, '') FROM \"nul_{method}\"")),
            "ad",
            "{text}"
        );
        assert!(text.contains("\"line\": 3"), "{text}");
    }
}

/// Symptom: out of shared memory after some thousands of refusals. A savepoint stays open when it is rolled back to, and those
/// that followed were within it.
fn many_refusals_in_one_transaction_keep_no_locks(server: &Server) {
    let (text, bad) = with_bad(6_000, 6);
    let file = server.file("many.csv", &text);
    server.sql("CREATE TABLE many (id bigint PRIMARY KEY, v int CHECK (v < 100), t text)");
    let text = server.load(&file, "--table many --max-rejects 50%");
    assert!(bad == 1_000 && text.contains("\"rejects\": 1000,"), "{bad}: {text}");
    assert_eq!(server.sql("SELECT count(*) FROM many"), "5000");
}

fn a_table_is_made_replaced_or_left_as_it_is(server: &Server) {
    let (one, two) = (server.file("one.csv", &numbered(10)), server.file("two.csv", &numbered(25)));
    let count = || server.sql("SELECT count(*) FROM modes");
    server.load(&one, "--table modes --create");
    assert!(server.fail(&one, "--table modes --create").contains("--create"));
    server.load(&two, "--table modes");
    assert_eq!(count(), "35");
    server.load(&two, "--table modes --connections 3");
    assert_eq!(count(), "60");
    server.load(&one, "--table modes --replace");
    assert_eq!(count(), "10");
    server.load(&two, "--table modes --replace --connections 2");
    assert_eq!(count(), "25");
    let bad = server.file("bad_end.csv", &(numbered(5000) + "x,1,2\n"));
    for flags in ["--replace", "--append", "--append --connections 2"] {
        server.fail(&bad, &format!("--table modes {flags} --chunk-size 64KiB"));
        assert_eq!(count(), "25", "{flags}");
    }
    // Types become wider while the load runs.
    let widens = server.file("widens.csv", &(numbered(50_000) + "50000,1.5,x\n"));
    server.load(&widens, "--table widens --sample 1KiB --chunk-size 64KiB");
    assert_eq!(server.sql("SELECT count(*), round(max(v), 1) FROM widens"), "50001|96.0");
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE '\\_coload\\_%'";
    assert_eq!(server.sql(left), "0");
    server.sql("CREATE TABLE \"_coload_00000000000000000000000000000001\" (a int)");
    server.load(&one, "--table after_dead");
    assert_eq!(server.sql(left), "0");
}

fn a_resumable_load_goes_on_and_is_done_once(server: &Server) {
    let file = server.file("resumed.csv", &numbered(30_000));
    let flags = "--table resumed --resumable --chunk-size 64KiB";
    server.load(&file, flags);
    let text = server.load(&file, flags);
    assert!(text.contains("--again"), "{text}");
    let count = || server.sql("SELECT count(*), count(DISTINCT id) FROM resumed");
    assert_eq!(count(), "30000|30000");
    // As if the load had been killed after some chunks.
    server.sql(
        "DELETE FROM coload_loads WHERE table_name = 'resumed' AND chunk IN (-1, 2, 4); \
         DELETE FROM resumed WHERE ctid IN (SELECT ctid FROM resumed ORDER BY id LIMIT 0)",
    );
    let text =
        server.fail(&server.file("resumed.csv", &numbered(29_999)), &format!("{flags} --create"));
    assert!(text.contains("--create"), "{text}");
    server.load(&file, &format!("{flags} --again"));
    let stream = server.load_command(std::path::Path::new("-"), flags).output().unwrap();
    assert!(!stream.status.success());
}

fn nothing_is_rounded_or_cut_without_a_word(server: &Server) {
    server.sql(
        "CREATE TABLE rough (a timestamp(0)); CREATE TABLE short (v varchar(3), n numeric(4,1))",
    );
    let file = server.file("rough.csv", "2000-01-01 00:00:00.7\n");
    assert!(server.fail(&file, "--no-header --table rough").contains("timestamp(0)"));
    let file = server.file("short.csv", "abc,1.5\nabcd,1.5\nabc,1.55\nabc,9999.5\n");
    let text = server.load(&file, "--no-header --table short --max-rejects 3");
    assert!(text.contains("\"rows\": 1"), "{text}");
    assert_eq!(server.sql("SELECT v, n FROM short"), "abc|1.5");
}
