//! `coload demo`: data, load, queries, each with the command that does it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use coload::{Error, Result};
use tpchgen::generators::LineItemGenerator;

use crate::args::DemoArgs;
use crate::output::{Done, Failure, print};
use crate::size::show_bytes;

/// The table of TPC-H that is loaded.
const SCHEMA: &str = include_str!("demo/lineitem.sql");
/// Parts of the file per unit of scale; each is made by one thread in its memory.
const PARTS_PER_SCALE: f64 = 64.0;

/// What is asked, and the query.
const QUERIES: [(&str, &str); 4] = [
    ("How many rows?", "SELECT count(*) FROM lineitem"),
    (
        "TPC-H query 1: sums by two columns of few values",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, \
         sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS orders FROM lineitem \
         WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus \
         ORDER BY l_returnflag, l_linestatus",
    ),
    (
        "TPC-H query 6: a sum over a narrow filter",
        "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem \
         WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' \
         AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
    (
        "A text search with a limit",
        "SELECT l_orderkey, l_shipmode, l_comment FROM lineitem \
         WHERE l_comment LIKE 'express pinto%' ORDER BY l_orderkey LIMIT 5",
    ),
];

/// Runs the demo.
///
/// # Errors
/// `Failed` when the folder cannot be written, or a command fails.
pub fn run(args: &DemoArgs) -> Done {
    let failed = |e| Error::Unavailable(format!("cannot make a temporary folder: {e}"));
    let folder = tempfile::Builder::new().prefix("coload-demo-").tempdir().map_err(failed)?;
    let path = folder.path().to_owned();
    let shown = run_in(&path, args.scale);
    let keep = args.keep || shown.is_err();
    if keep {
        let _ = folder.keep();
        print(&format!("\nThe folder is kept: {}\n", path.display()))?;
    } else {
        drop(folder);
        print(&format!("\nThe folder {} is removed; --keep keeps it.\n", path.display()))?;
    }
    shown
}

fn run_in(folder: &Path, scale: f64) -> Done {
    let file = folder.join("lineitem.tbl");
    print(&format!("Making TPC-H lineitem, scale factor {scale}, in {}\n", folder.display()))?;
    generate(&file, scale)?;
    let schema = folder.join("lineitem.sql");
    fs::write(&schema, SCHEMA).map_err(|e| Error::io("write", &schema, &e))?;
    let bytes = fs::metadata(&file).map_err(|e| Error::io("look at", &file, &e))?.len();
    print(&format!("{} of text, one record:\n", show_bytes(bytes)))?;
    print(&first_line(&file)?)?;
    let (store, table) = (folder.join("store"), "lineitem");
    let [file, schema, store] = [&file, &schema, &store].map(|p| p.display().to_string());
    step(
        "Load it; --schema gives the types, which would be inferred otherwise",
        &["load", &file, "--into", &store, "--table", table, "--schema", &schema],
    )?;
    for (question, query) in QUERIES {
        step(question, &["sql", "--store", &store, "-c", query])?;
    }
    step("What the store holds", &["inspect", &store])
}

/// Shows a command, and runs it with this program.
fn step(title: &str, args: &[&str]) -> Done {
    let program = std::env::current_exe()
        .map_err(|e| Error::Unavailable(format!("cannot find this program: {e}")))?;
    let shown = program.display().to_string();
    let words: Vec<String> = [shown.as_str()].iter().chain(args).map(|w| shell_word(w)).collect();
    print(&format!("\n# {title}\n{}\n", words.join(" ")))?;
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .status()
        .map_err(|e| Error::Unavailable(format!("cannot start coload: {e}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Failed(Error::Unavailable(format!("the command failed: {status}")))),
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut quoted = String::from('"');
    for c in word.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

fn first_line(file: &Path) -> Result<String> {
    let read = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(File::open(file)?), &mut line)?;
        Ok(line)
    };
    read().map_err(|e: std::io::Error| Error::io("read", file, &e))
}

/// Writes lineitem: threads make parts, which are written in order.
fn generate(file: &Path, scale: f64) -> Result<()> {
    let parts = ((scale * PARTS_PER_SCALE).ceil() as i32).max(1);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed = |e| Error::io("write", file, &e);
    let mut out = File::create(file).map_err(failed)?;
    let numbers: Vec<i32> = (1..=parts).collect();
    for numbers in numbers.chunks(threads) {
        for text in make_parts(numbers, parts, scale)? {
            out.write_all(&text).map_err(failed)?;
        }
    }
    Ok(())
}

/// The text of some parts, a thread each.
fn make_parts(numbers: &[i32], parts: i32, scale: f64) -> Result<Vec<Vec<u8>>> {
    let make = |number: i32| {
        let mut text = Vec::new();
        for row in LineItemGenerator::new(scale, number, parts).iter() {
            // Writing to a Vec cannot fail.
            let _ = writeln!(text, "{row}");
        }
        text
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = numbers.iter().map(|n| scope.spawn(move || make(*n))).collect();
        threads
            .into_iter()
            .map(|t| t.join().map_err(|_| Error::Unavailable("the generator failed".to_owned())))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_takes_them() {
        for (word, quoted) in [
            ("--into", "--into"),
            ("/tmp/a b", "\"/tmp/a b\""),
            ("a LIKE 'x%' $1", "\"a LIKE 'x%' \\$1\""),
            ("", "\"\""),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
