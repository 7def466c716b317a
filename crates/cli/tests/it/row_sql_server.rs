//! `--where`, `--select` and `--set c=@load-time` of loads into a server, as programs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::serve::Server;
use crate::support::{Run, Sandbox};

/// Rows of the input.
const ROWS: u64 = 60_000;

fn write_input(sandbox: &Sandbox) {
    let record = |i: u64| format!("{i},{}.25,name {},2024-02-{:02}\n", i % 90, i % 7, i % 28 + 1);
    let text: String = (0..ROWS).map(record).collect();
    sandbox.write("a.csv", format!("id,price,name,day\n{text}"));
}

const EXPRESSIONS: [&str; 6] = [
    "--where",
    "id % 3 <> 1 AND day < now()",
    "--select",
    "id, price * 2 AS twice, name, name AS again, upper(name) AS loud, now() AS n",
    "--set",
    "t=@load-time",
];

fn load(sandbox: &Sandbox, into: &str, flags: &[&str]) -> Run {
    let base = ["load", "a.csv", "--into", into, "--table", "t", "--report", "json"];
    sandbox.run(&[&base[..], flags].concat())
}

fn count(json: &str, name: &str) -> u64 {
    let at = json.find(&format!("\n  \"{name}\": ")).unwrap_or_else(|| panic!("{name}: {json}"));
    let value = json[at + name.len() + 7..].split([',', '\n']).next().unwrap();
    value.parse().unwrap_or_else(|e| panic!("{name} {value}: {e}"))
}

const COLUMNS: &str = "id, twice, name, again, loud";

#[test]
fn a_filter_gives_the_same_rows_whoever_transforms_them() {
    let (embedded, served) = (Sandbox::new(), Sandbox::new());
    write_input(&embedded);
    write_input(&served);
    let small = ["--chunk-size", "50000", "--fragments-per-partition", "5", "--replace"];
    let flags = [&EXPRESSIONS[..], &small].concat();
    let json = load(&embedded, "store", &flags).ok().out;
    let rows = format!("SELECT {COLUMNS} FROM t ORDER BY id");
    let expected = embedded.query(&rows);
    assert_eq!((expected.len() as u64, count(&json, "filtered")), (ROWS / 3 * 2, ROWS / 3));
    let server = Server::start(&served, &[]);
    for placement in ["all", "none", "size", "adaptive"] {
        let flags = [&flags[..], &["--placement", placement, "--again"]].concat();
        let json = load(&served, &server.url(), &flags).ok().out;
        assert_eq!(count(&json, "records"), ROWS, "{json}");
        assert_eq!((count(&json, "rows"), count(&json, "filtered")), (ROWS / 3 * 2, ROWS / 3));
        assert!(served.query(&rows) == expected, "{placement}");
        let times = "SELECT count(DISTINCT n), count(DISTINCT t), max(t) = max(n) FROM t";
        assert_eq!(served.query(times), ["1,1,true"], "{placement}");
    }
    for placement in ["pipe", "seq"] {
        let flags = ["--where", "id > 1", "--placement", placement];
        load(&served, &server.url(), &flags).fails(1, &["take --placement adaptive"]);
        let flags = [&EXPRESSIONS[4..], &["--placement", placement, "--replace"]].concat();
        load(&served, &server.url(), &flags).ok();
        assert_eq!(served.query("SELECT count(*), count(DISTINCT t) FROM t"), ["60000,1"]);
    }
}

#[test]
fn a_killed_load_goes_on_with_its_filter_and_its_time() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let flags =
        [&EXPRESSIONS[..], &["--chunk-size", "20000", "--fragments-per-partition", "1"]].concat();
    for kill in 1..=3 {
        let url = server.url();
        let args = [&["load", "a.csv", "--into", &url, "--table", "t"][..], &flags].concat();
        let mut child = sandbox
            .command(&args)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(sandbox.path("client")).unwrap())
            .spawn()
            .unwrap();
        let patience = Instant::now();
        // The last may be there and not yet told to be whole.
        while durable(&sandbox) <= kill {
            assert!(patience.elapsed() < Duration::from_secs(60), "kill {kill}");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "kill {kill}: it was too fast");
    }
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_name = 't'";
    assert!(sandbox.query(tables).is_empty());
    let changed = [&["--where", "id % 3 <> 2"], &flags[2..]].concat();
    load(&sandbox, &server.url(), &changed)
        .fails(1, &["--where is \"id % 3 <> 2\" and was \"id % 3 <> 1 AND"]);
    let json = load(&sandbox, &server.url(), &flags).ok().out;
    assert!(count(&json, "partitions_known") >= 3, "{json}");
    assert_eq!(count(&json, "records"), ROWS, "{json}");
    assert_eq!(count(&json, "rows") + count(&json, "filtered"), ROWS, "{json}");
    // Rows of four attempts: each is there once, and all have one time.
    let sums = "SELECT count(*), count(DISTINCT id), count(DISTINCT n), count(DISTINCT t), \
                max(t) = max(n) FROM t";
    assert_eq!(sandbox.query(sums), ["40000,40000,1,1,true"]);
}

/// Partitions of unfinished loads that are durable.
fn durable(sandbox: &Sandbox) -> usize {
    let files = crate::support::files_below(&sandbox.path("store/loads"));
    files.iter().filter(|path| path.extension().is_some_and(|end| end == "part")).count()
}

#[test]
fn rules_of_a_table_at_a_server_reject_also_when_columns_are_given() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "id\n1\n9\n2\n");
    let server = Server::start(&sandbox, &[]);
    let create = "CREATE TABLE t (id BIGINT CHECK (id < 5))";
    sandbox.run(&["sql", "--store", &server.url(), "-c", create]).ok();
    let flags = ["--columns", "id BIGINT"];
    load(&sandbox, &server.url(), &flags).fails(1, &["a.csv:3", "breaks CHECK (id < 5)"]);
    load(&sandbox, &server.url(), &[&flags[..], &["--max-rejects", "1"]].concat()).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["2"]);
}
