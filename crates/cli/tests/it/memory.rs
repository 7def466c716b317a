//! `--memory` bounds what a load holds: the small sister of `bench/run memory`.

use std::fmt::Write;

use crate::support::Sandbox;

/// What `--memory` is given.
pub const MEMORY: &str = "64MiB";
/// Most KiB that the process may have held: the budget, what the program takes by itself, and a quarter more.
pub const PEAK_KIB_MAX: u64 = (64 + 64) << 10;

/// Runs a load under a shell that reads how much the child held at most.
fn load(sandbox: &Sandbox, file: &str, flags: &[&str]) -> u64 {
    let mut args = vec!["load", file, "--into", "store", "--table", "t", "--memory", MEMORY];
    args.extend(["--replace", "--report", "json", "--no-header"]);
    args.extend(flags);
    let run = sandbox.run(&args).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    report["peak_memory_bytes"].as_u64().unwrap() >> 10
}

/// A number that no other row of its column has.
pub fn mix(row: usize, column: usize) -> u64 {
    let x = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (column as u64) << 17;
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// 1,500 columns of many numbers took 3.7 GB of a budget of 512 MiB: a dictionary for each column, each worker and each
/// partition, which nothing counted. Two and three partitions of fragments came on top.
#[test]
fn wide_tables_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    for (columns, rows, text) in [(700, 1_500, false), (700, 800, true), (2_000, 400, false)] {
        let mut file = String::new();
        for row in 0..rows {
            for column in 0..columns {
                let comma = if column == 0 { "" } else { "," };
                let value = mix(row, column);
                let _ = if text {
                    write!(file, "{comma}x{value:x}")
                } else {
                    write!(file, "{comma}{value}")
                };
            }
            file.push('\n');
        }
        sandbox.write("t.csv", file);
        for threads in ["1", "4"] {
            let peak = load(&sandbox, "t.csv", &["--threads", threads]);
            assert!(peak < PEAK_KIB_MAX, "{columns} columns, {threads} threads: {peak} KiB");
            assert_eq!(sandbox.query("SELECT count(*) FROM t"), [rows.to_string()]);
        }
    }
}

/// Records of a number and a text of so many bytes, which end in `end`. The first is short: types are told by whole records of
/// the sample.
pub fn long_values(count: usize, bytes: usize, end: &str) -> String {
    let mut file = String::new();
    for row in 0..count {
        let start = file.len();
        let _ = write!(file, "{row},");
        while row > 0 && file.len() < start + bytes {
            let _ = write!(file, "{:x} ", mix(row, file.len()));
        }
        file.push_str(end);
    }
    file
}

/// 300 texts of 1 MB took 1.96 GB of 256 MiB: few values, so they went into dictionaries, and twice.
#[test]
fn long_values_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    for (count, bytes) in [(60, 1 << 20), (3, 12 << 20)] {
        sandbox.write("t.csv", long_values(count, bytes, "\n"));
        for threads in ["1", "2"] {
            let peak = load(&sandbox, "t.csv", &["--threads", threads]);
            assert!(peak < PEAK_KIB_MAX, "{count} texts of {bytes}: {peak} KiB");
            assert_eq!(sandbox.query("SELECT count(*) FROM t"), [count.to_string()]);
        }
    }
}

#[test]
fn a_record_that_does_not_fit_is_refused_with_its_place_and_the_flag() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", format!("1,a\n2,{}\n3,c\n", "x".repeat(40 << 20)));
    let columns = ["--no-header", "--columns", "a INT, b VARCHAR"];
    let args = ["load", "t.csv", "--into", "store", "--memory", MEMORY];
    sandbox
        .run(&[&args[..], &columns].concat())
        .fails(1, &["t.csv:2 (byte 4)", "a record is over", "--memory"]);
    let mut child =
        sandbox.command(&["load", "-", "--into", "store", "--table", "t", "--memory", MEMORY]);
    child.stdin(std::fs::File::open(sandbox.path("t.csv")).unwrap());
    let output = child.args(columns).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--memory"), "{output:?}");
}

/// What is stored follows from the input and the options, the memory among them, and not from the threads.
#[test]
fn a_small_budget_gives_the_same_segments_for_any_number_of_threads() {
    let sandbox = Sandbox::new();
    let mut file = String::new();
    for row in 0..30_000usize {
        let _ = writeln!(file, "{row},{},x{:x},{}", row % 7, mix(row, 1), mix(row / 3, 2) % 1_000);
    }
    sandbox.write("t.csv", file);
    let stored = |threads: &str| {
        let store = format!("store{threads}");
        let args = ["load", "t.csv", "--into", &store, "--memory", "16MiB", "--threads", threads];
        sandbox.run(&[&args[..], &["--no-header"]].concat()).ok();
        let export = sandbox.run(&["export", &store, "t"]).ok();
        let inspect = sandbox.run(&["inspect", &store, "t"]).ok();
        let shown: String = inspect.out.lines().filter(|line| line.contains('%')).collect();
        (export.out, shown)
    };
    let one = stored("1");
    assert!(stored("2") == one && stored("5") == one);
}

/// 400 texts of 1.4 MB took 1.6 GiB of 512 MiB when their rows were put in order: all of them stood in one page, which was there
/// several times, and in the files that are mapped.
#[test]
fn long_values_in_the_order_of_a_key_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    for (count, bytes) in [(120, 1 << 20), (12_000, 10 << 10)] {
        let file = long_values(count, bytes, "\n");
        let mut lines: Vec<(usize, &str)> = file.lines().enumerate().collect();
        // The first line stays, as types are told by it.
        lines[1..].sort_by_key(|(row, _)| mix(*row, 5));
        let lines: Vec<&str> = lines.into_iter().map(|(_, line)| line).collect();
        sandbox.write("t.csv", lines.join("\n") + "\n");
        for threads in ["1", "2"] {
            let columns = ["--columns", "a BIGINT, t VARCHAR, PRIMARY KEY (a)"];
            let peak = load(&sandbox, "t.csv", &[&columns[..], &["--threads", threads]].concat());
            assert!(peak < PEAK_KIB_MAX, "{count} texts of {bytes}: {peak} KiB");
            assert_eq!(
                sandbox.query("SELECT count(*), max(a) FROM t"),
                [format!("{count},{}", count - 1)]
            );
        }
    }
}

/// 1.5 million keys of text took 124 MiB of 100: all keys of a segment were there three times while they were sorted.
#[test]
fn keys_of_text_are_sorted_within_the_budget() {
    let sandbox = Sandbox::new();
    let rows = 700_000;
    let mut file = String::new();
    for row in 0..rows {
        let _ = writeln!(file, "customer-{:016x}-{row:08},{row}", mix(row, 3));
    }
    sandbox.write("t.csv", file);
    for threads in ["1", "2"] {
        let columns = ["--columns", "k VARCHAR, a BIGINT, PRIMARY KEY (k)", "--threads", threads];
        let peak = load(&sandbox, "t.csv", &columns);
        assert!(peak < PEAK_KIB_MAX, "{threads} threads: {peak} KiB");
        assert_eq!(sandbox.query("SELECT count(*) FROM t"), [rows.to_string()]);
    }
}

/// Rows of many columns in the order of a text: buckets of keys left as much memory as they took, and pages of keys that trees were
/// built of stayed in the memory of the process.
#[test]
fn wide_rows_in_the_order_of_a_text_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    let rows = 250_000;
    let mut file = String::new();
    for row in 0..rows {
        let x = mix(row, 3);
        let _ = write!(file, "order-{x:016x}-{row:08},{row},{},{}", x % 200_000, x % 7);
        let _ =
            write!(file, ",{}.{:02},199{}-0{}-1{}", x % 90_000, x % 100, x % 9, x % 8 + 1, x % 9);
        let _ = writeln!(file, ",mode {},comment {:x} of {}", x % 7, x >> 9, x % 1_000);
    }
    sandbox.write("t.csv", file);
    let columns = "k VARCHAR, a BIGINT, b BIGINT, c INTEGER, d DECIMAL(15,2), e DATE, f VARCHAR, g VARCHAR, PRIMARY KEY (k)";
    for threads in ["1", "2"] {
        let peak = load(&sandbox, "t.csv", &["--columns", columns, "--threads", threads]);
        assert!(peak < PEAK_KIB_MAX, "{threads} threads: {peak} KiB");
        assert_eq!(sandbox.query("SELECT count(*) FROM t"), [rows.to_string()]);
    }
}

/// Keys of long texts are compared with those of the table within the budget.
#[test]
fn long_keys_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    let lines = long_values(600, 40 << 10, "\n");
    let mut lines: Vec<&str> = lines.lines().collect();
    let text_of = |line: &str| line.split_once(',').map(|(_, text)| text.to_owned());
    lines.sort_by_key(|line| text_of(line));
    sandbox.write("t.csv", lines.join("\n") + "\n");
    let columns = ["--columns", "a BIGINT, t VARCHAR, PRIMARY KEY (t, a)", "--threads", "2"];
    let peak = load(&sandbox, "t.csv", &columns);
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
    let args = ["load", "t.csv", "--into", "store", "--table", "t", "--memory", MEMORY];
    let more = ["--no-header", "--report", "json", "--on-conflict", "replace"];
    let run = sandbox.run(&[&args[..], &more].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["keys"]["replaced"], 600);
    let peak = report["peak_memory_bytes"].as_u64().unwrap() >> 10;
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB when keys are there already");
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["600"]);
}
