//! MariaDB.

use crate::rows::{numbered, with_bad};
use crate::servers::{Engine, Server};

const METHODS: [&str; 4] = ["load-data", "values", "prepared", "insert"];

#[test]
fn a_server_of_mariadb_gets_what_files_hold() {
    let server = &Server::start(Engine::Mariadb);
    every_type_keeps_its_edges_by_every_method(server);
    what_the_server_refuses_is_a_reject_and_the_others_load(server);
    a_table_is_made_replaced_or_left_as_it_is(server);
    nothing_is_rounded_or_cut_without_a_word(server);
}

const TYPES: &str = "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, d DECIMAL(15,2), w DECIMAL(38,10), r REAL, f DOUBLE, \
                     da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, c CHAR(3), v VARCHAR(5), t VARCHAR, \
                     x BINARY, u UUID";
const EDGES: &str = "\
true;-32768;-2147483648;-9223372036854775808;-9999999999999.99;-9999999999999999999999999999.9999999999;-0.5;-1.7976931348623157e308;0001-01-01;00:00:00;0001-01-01 00:00:00;0001-01-01 00:00:00+00;a  ;héllo;tab\tand \\\\N;\\x00ff10;00000000-0000-0000-0000-000000000000
false;32767;2147483647;9223372036854775807;9999999999999.99;9999999999999999999999999999.9999999999;0.25;1.5e-300;9999-12-31;23:59:59.999999;9999-12-31 23:59:59.999999;9999-12-31 23:59:59.999999+00;\"\";\"\";\"\";\"\";ffffffff-ffff-ffff-ffff-ffffffffffff
;;;;;;;;;;;;;;;;
true;0;0;0;0.01;0.0000000001;1;2;2000-01-01;12:00:00.000001;1999-12-31 23:59:59.999999;2000-01-01 00:00:00+00;x;😀;'quoted';\\x61;12345678-9abc-def0-1234-56789abcdef0
";
const EDGES_READ: &str = "\
1|-32768|-2147483648|-9223372036854775808|-9999999999999.99|-9999999999999999999999999999.9999999999|-0.5|-1.7976931348623157e308|0001-01-01|00:00:00.000000|0001-01-01 00:00:00.000000|0001-01-01 00:00:00.000000|a  |héllo|tab_and \\\\\\\\N|00FF10|00000000-0000-0000-0000-000000000000
0|32767|2147483647|9223372036854775807|9999999999999.99|9999999999999999999999999999.9999999999|0.25|1.5e-300|9999-12-31|23:59:59.999999|9999-12-31 23:59:59.999999|9999-12-31 23:59:59.999999|||||ffffffff-ffff-ffff-ffff-ffffffffffff
N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N|N
1|0|0|0|0.01|0.0000000001|1|2|2000-01-01|12:00:00.000001|1999-12-31 23:59:59.999999|2000-01-01 00:00:00.000000|x|😀|'quoted'|61|12345678-9abc-def0-1234-56789abcdef0";

fn every_type_keeps_its_edges_by_every_method(server: &Server) {
    let file = server.file("types.csv", EDGES);
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
        let cells = "b s i l d w r f da ti ts tz c v t x u".split(' ').map(|c| match c {
            "x" => "coalesce(hex(x), 'N')".to_owned(),
            "t" => "coalesce(replace(t, char(9), '_'), 'N')".to_owned(),
            _ => format!("coalesce({c}, 'N')"),
        });
        let cells = cells.collect::<Vec<_>>().join(", ");
        let rows = server.sql(&format!("SELECT {cells} FROM `types_{method}`"));
        let mut found: Vec<&str> = rows.lines().collect();
        let mut expected: Vec<&str> = EDGES_READ.lines().collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{method}");
    }
}

fn what_the_server_refuses_is_a_reject_and_the_others_load(server: &Server) {
    let (text, bad) = with_bad(4_000, 500);
    let file = server.file("bad_rows.csv", &text);
    for method in METHODS {
        for (guarantee, table) in [("--atomic", "uq_a"), ("--resumable", "uq_r")] {
            server.sql(&format!(
                "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id bigint PRIMARY KEY, v int CHECK (v < 100), t text)"
            ));
            let flags =
                format!("--table {table} --method {method} --chunk-size 64KiB {guarantee} --again");
            let text = server.fail(&file, &flags);
            assert!(text.contains("bad_rows.csv:9 (byte"), "{text}");
            let text = server.load(&file, &format!("{flags} --max-rejects 1000"));
            assert!(text.contains(&format!("\"rejects\": {bad},")), "{method} {guarantee}: {text}");
            let found = server.sql(&format!("SELECT count(*), count(DISTINCT id) FROM {table}"));
            assert_eq!(found, format!("{0}|{0}", 4_000 - bad), "{method} {guarantee}");
        }
    }
}

fn a_table_is_made_replaced_or_left_as_it_is(server: &Server) {
    let (one, two) = (server.file("one.csv", &numbered(10)), server.file("two.csv", &numbered(25)));
    let count = || server.sql("SELECT count(*) FROM modes");
    server.load(&one, "--table modes --create");
    assert!(server.fail(&one, "--table modes --create").contains("--create"));
    server.load(&two, "--table modes");
    server.load(&two, "--table modes --connections 2");
    assert_eq!(count(), "60");
    server.load(&one, "--table modes --replace");
    assert_eq!(count(), "10");
    let bad = server.file("bad_end.csv", &(numbered(5000) + "x,1,2\n"));
    for flags in ["--replace", "--append", "--append --connections 2"] {
        server.fail(&bad, &format!("--table modes {flags} --chunk-size 64KiB"));
        assert_eq!(count(), "10", "{flags}");
    }
    assert_eq!(server.sql("SHOW TABLES LIKE '\\_coload\\_%'"), "");
    server.sql("SET GLOBAL local_infile = 0");
    let text = server.fail(&one, "--table modes --method load-data");
    assert!(text.contains("local_infile"), "{text}");
    server.sql("SET GLOBAL local_infile = 1");
    server.sql("CREATE TABLE aria (id bigint, v bigint, t text) ENGINE = Aria");
    assert!(server.fail(&one, "--table aria").contains("no transactions"));
}

fn nothing_is_rounded_or_cut_without_a_word(server: &Server) {
    server.sql(
        "CREATE TABLE rough (a datetime); \
         CREATE TABLE narrow (n tinyint unsigned, v varchar(3), e enum('a', 'b'), c varchar(9) CHARACTER SET utf8mb3)",
    );
    let file = server.file("rough.csv", "2000-01-01 00:00:00.7\n");
    assert!(server.fail(&file, "--no-header --table rough").contains("datetime"));
    let text = "1,abc,a,x\n-1,abc,a,x\n256,abc,a,x\n1,abcd,a,x\n1,abc  ,a,x\n1,abc,c,x\n1,abc,a,😀\n255,abc,b,é\n";
    let file = server.file("narrow.csv", text);
    for method in METHODS {
        server.sql("DELETE FROM narrow");
        let text = server
            .load(&file, &format!("--no-header --table narrow --max-rejects 6 --method {method}"));
        let found = server.sql("SELECT n, v, e, c FROM narrow ORDER BY n, v");
        assert!(
            found.starts_with("1|abc|a|x") && found.ends_with("255|abc|b|é"),
            "{method}: {found}\n{text}"
        );
        let rows = found.lines().count();
        // Blanks over the length of a column are cut by the standard's leave, with a warning: a row that is committed stays.
        assert_eq!(rows, if method == "insert-autocommit" { 3 } else { 2 }, "{method}: {found}");
    }
}
