//! Inputs with different fields, joined by name: a server has of them what an embedded store has.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::serve::Server;
use crate::support::{Run, Sandbox, files_below};

/// Rows of each of the larger inputs.
const ROWS: u64 = 12_000;
const PLACEMENTS: [&str; 6] = ["all", "none", "size", "adaptive", "pipe", "seq"];
const INPUTS: [&str; 6] = ["load", "a.csv", "b.csv", "c.csv", "empty.csv", "d.csv"];
const COLUMNS: &str =
    "id BIGINT NOT NULL, name VARCHAR, price DECIMAL(9,3) DEFAULT 0.5, note VARCHAR, day DATE";

fn write_inputs(sandbox: &Sandbox) {
    let (mut a, mut b) = ("id,name\n".to_owned(), "note,ID,price\n".to_owned());
    let mut c = "price,day,other,id\n".to_owned();
    for i in 0..ROWS {
        a.push_str(&format!("{i},name {}\n", i % 90));
        b.push_str(&format!("\"note, {i}\",{i},{}.25\n", i % 7));
        c.push_str(&format!("{}.125,2024-02-{:02},x,{i}\n", i % 9, i % 28 + 1));
    }
    sandbox.write("a.csv", a);
    sandbox.write("b.csv", b);
    sandbox.write("c.csv", c);
    sandbox.write("empty.csv", "");
    sandbox.write("d.csv", "id,name\n1,last\n");
}

fn load(sandbox: &Sandbox, into: &str, flags: &[&str]) -> Run {
    let base = ["--into", into, "--table", "t", "--union-by-name", "--chunk-size", "20000"];
    let grain = ["--fragments-per-partition", "3"];
    sandbox.run(&[&INPUTS[..], &base, &grain, flags].concat())
}

/// All rows, to compare.
fn rows(sandbox: &Sandbox) -> Vec<String> {
    let mut lines: Vec<String> =
        sandbox.run(&["export", "store", "t"]).ok().out.lines().map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

#[test]
fn a_server_has_the_same_rows_in_all_placements() {
    let (embedded, served) = (Sandbox::new(), Sandbox::new());
    write_inputs(&embedded);
    write_inputs(&served);
    let server = Server::start(&served, &[]);
    for flags in
        [&["--columns", COLUMNS][..], &[], &["--types", "note VARCHAR, price DECIMAL(12,4)"]]
    {
        // The table of before would give its columns.
        for sandbox in [&embedded, &served] {
            let there = sandbox.path("store/format").exists();
            if there {
                sandbox.run(&["sql", "--store", "store", "-c", "DROP TABLE IF EXISTS t"]).ok();
            }
        }
        load(&embedded, "store", &[&["--replace"], flags].concat()).ok();
        let expected = rows(&embedded);
        assert_eq!(expected.len() as u64, 3 * ROWS + 2, "{flags:?}");
        for placement in PLACEMENTS {
            let more = ["--placement", placement, "--replace", "--again"];
            let run = load(&served, &server.url(), &[&more[..], flags].concat()).ok();
            assert!(rows(&served) == expected, "{placement} {flags:?}: {}", run.err);
        }
    }
}

#[test]
fn records_of_any_input_are_rejects_with_their_places() {
    let (embedded, served) = (Sandbox::new(), Sandbox::new());
    for sandbox in [&embedded, &served] {
        write_inputs(sandbox);
        sandbox.write("d.csv", "id,name\nx,bad\n2,good\n3,much,more\n");
        sandbox.write("c.csv", "price,id\n1.5,y\n0.25,7\n");
    }
    let server = Server::start(&served, &[]);
    let flags = ["--columns", COLUMNS, "--max-rejects", "10", "--rejects", "r.csv", "--replace"];
    load(&embedded, "store", &flags).ok();
    let told = |sandbox: &Sandbox| {
        let text = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let (expected, rejects) = (rows(&embedded), told(&embedded));
    assert!(rejects.iter().any(|line| line.contains("d.csv")), "{rejects:?}");
    assert!(rejects.iter().any(|line| line.contains("c.csv")), "{rejects:?}");
    for placement in PLACEMENTS {
        let more = ["--placement", placement, "--again"];
        load(&served, &server.url(), &[&more[..], &flags].concat()).ok();
        assert!(rows(&served) == expected, "{placement}");
        assert_eq!(told(&served), rejects, "{placement}");
    }
}

#[test]
fn types_that_become_wider_behind_the_sample_do_so_at_a_server() {
    let (embedded, served) = (Sandbox::new(), Sandbox::new());
    for sandbox in [&embedded, &served] {
        write_inputs(sandbox);
        let text = std::fs::read_to_string(sandbox.path("a.csv")).unwrap();
        sandbox.write("a.csv", text.replace("\n9000,", "\nn/a 9000,"));
        let text = std::fs::read_to_string(sandbox.path("b.csv")).unwrap();
        sandbox.write("b.csv", text.replace(",8000,6.25\n", ",8000,6.12345\n"));
    }
    let sample = ["--sample", "1000"];
    load(&embedded, "store", &sample).ok();
    let expected = rows(&embedded);
    let server = Server::start(&served, &[]);
    for placement in ["all", "none", "size", "adaptive"] {
        let more = ["--placement", placement, "--replace", "--again"];
        load(&served, &server.url(), &[&sample[..], &more].concat()).ok();
        assert!(rows(&served) == expected, "{placement}");
        served.run(&["sql", "--store", "store", "-c", "DROP TABLE t"]).ok();
    }
}

#[test]
fn a_killed_load_goes_on_with_its_inputs() {
    let sandbox = Sandbox::new();
    write_inputs(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let url = server.url();
    let base = ["--into", &url, "--table", "t", "--union-by-name", "--chunk-size", "1500"];
    let grain = ["--fragments-per-partition", "1", "--columns", COLUMNS];
    let args = [&INPUTS[..], &base, &grain].concat();
    let mut child =
        sandbox.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let patience = Instant::now();
    let is_part = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "part");
    while files_below(&sandbox.path("store/loads")).iter().filter(|path| is_part(path)).count() < 2
    {
        assert!(patience.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was too fast");
    sandbox.run(&args).ok();
    let sums = "SELECT count(*), count(name), count(price), count(note), count(day) FROM t";
    let (rows, prices) = (3 * ROWS + 1, 3 * ROWS + 1);
    assert_eq!(sandbox.query(sums), [format!("{rows},{},{prices},{ROWS},{ROWS}", ROWS + 1)]);
}
