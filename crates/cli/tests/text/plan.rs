//! `coload plan`.

use crate::support::Sandbox;

fn text(rows: usize) -> String {
    let row = |n: usize| format!("{n},name of a thing with number {n},{}.25\n", n % 1000);
    let rows: String = (0..rows).map(row).collect();
    format!("id,name,price\n{rows}")
}

/// Bytes of the workers, and all lines of the plan.
fn planned(sandbox: &Sandbox, args: &[&str]) -> (Vec<u64>, String) {
    let run = sandbox.run(&[&["plan", "--output", "json"], args].concat()).ok();
    // The shares come last, after the splits: "bytes": N, "splits": N, "worker": N.
    let shares = run.out.split("\"workers\": [").nth(1).unwrap();
    let bytes = shares.lines().filter_map(|line| line.trim().strip_prefix("\"bytes\": "));
    (bytes.map(|text| text.trim_end_matches(',').parse().unwrap()).collect(), run.out)
}

#[test]
fn a_large_file_is_shared_and_small_ones_fill_up() {
    let sandbox = Sandbox::new();
    let large = text(700_000);
    sandbox.write("large.csv", &large);
    sandbox.write("a.csv", text(1000));
    sandbox.write("b.csv", text(2000));
    let (bytes, plan) = planned(&sandbox, &["large.csv", "a.csv", "b.csv", "--workers", "3"]);
    assert_eq!(bytes.len(), 3, "{plan}");
    let all: u64 = bytes.iter().sum();
    let files =
        ["large.csv", "a.csv", "b.csv"].map(|name| sandbox.path(name).metadata().unwrap().len());
    assert_eq!(all, files.iter().sum::<u64>());
    let most = *bytes.iter().max().unwrap() as f64;
    assert!(most <= all as f64 / 3.0 * 1.05 + f64::from(4 << 20), "{plan}");
    assert!(plan.contains("\"method\": \"explicit\"") && plan.contains("byte_range"), "{plan}");
    // One after the other, the ranges are the file.
    let run = sandbox.run(&["plan", "large.csv", "--workers", "2"]).ok();
    let mut ranges: Vec<(u64, u64)> = run
        .out
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "bytes").filter(|at| *at == 2)?;
            Some((words.get(at + 1)?.parse().ok()?, words.get(at + 3)?.parse().ok()?))
        })
        .collect();
    ranges.sort_unstable();
    assert!(ranges.len() > 2, "{}", run.out);
    assert_eq!((ranges[0].0, ranges.last().unwrap().1), (0, large.len() as u64));
    assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
}

#[test]
fn many_files_are_told_by_their_names() {
    let sandbox = Sandbox::new();
    (0..200).for_each(|n| drop(sandbox.write(&format!("d/{n}.csv"), "a\n1\n")));
    let args = ["d/*.csv", "--workers", "4", "--explicit-max", "100"];
    let (bytes, plan) = planned(&sandbox, &args);
    assert!(plan.contains("\"method\": \"hashed\"") && plan.contains("\"splits\": null"), "{plan}");
    assert_eq!((bytes.len(), bytes.iter().sum::<u64>()), (4, 800));
    assert!(bytes.iter().all(|bytes| *bytes > 0), "{plan}");
    assert_eq!(planned(&sandbox, &args).1, plan);
}

#[test]
fn row_groups_are_shared_and_what_cannot_be_cut_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", text(700_000));
    let small = ["--fragments-per-partition", "1", "--chunk-size", "4MiB"];
    let into = ["load", "t.csv", "--into", "parquet:pq"];
    sandbox.run(&[&into[..], &small].concat()).ok();
    let run = sandbox.run(&["plan", "pq/*.parquet", "--workers", "2"]).ok();
    assert!(run.out.contains("row groups 1 to ") || run.out.contains("all"), "{}", run.out);
    let packed = std::process::Command::new("gzip")
        .args(["-1", "-c", "t.csv"])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    sandbox.write("t.csv.gz", &packed.stdout);
    assert!(packed.stdout.len() > 4 << 20);
    let run = sandbox.run(&["plan", "t.csv.gz", "--workers", "2"]).ok();
    assert!(run.out.contains("1 larger inputs cannot be cut"), "{}", run.out);
    sandbox.run_with_input(&["plan", "-", "--workers", "2"], b"a\n1\n").fails(1, &["one worker"]);
    sandbox.run(&["plan", "t.csv", "--workers", "0"]).fails(2, &["--workers"]);
}
