//! A folder with files and a store, and the command run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Columns of most tests.
pub const COLUMNS: &str = "id BIGINT NOT NULL, price DECIMAL(8,2), day DATE, name VARCHAR(10)";

/// A folder of one test.
pub struct Sandbox {
    folder: TempDir,
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Sandbox { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The command, to run in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// Runs with text on standard input.
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Run {
        use std::io::Write;
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // The command may end before it has read all of it.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Run::of(output)
    }

    /// Loads a file with [`COLUMNS`] and more flags.
    pub fn load(&self, file: &str, flags: &[&str]) -> Run {
        let mut args = vec!["load", file, "--into", "store", "--table", "t", "--columns", COLUMNS];
        args.extend(flags);
        self.run(&args)
    }

    /// The answer to a query as lines of CSV, without the header.
    pub fn query(&self, sql: &str) -> Vec<String> {
        let run = self.run(&["sql", "--store", "store", "-c", sql, "--output", "csv"]);
        assert_eq!(run.status, Some(0), "{sql}: {run:?}");
        run.out.lines().skip(1).map(str::to_owned).collect()
    }

    /// All that a store shows, to compare.
    pub fn image(&self) -> String {
        if !self.path("store/format").exists() {
            return "no store".to_owned();
        }
        let listed = self.run(&["inspect", "store"]);
        assert_eq!(listed.status, Some(0), "{listed:?}");
        // Removes what crashes left, as any opening does; then no file may be left that is not named.
        let files = |dir: &str| files_below(&self.path("store").join(dir));
        format!("{}\n{:?}\n{:?}", listed.out, files("segments"), files("tmp"))
    }
}

impl Run {
    pub fn of(output: Output) -> Self {
        Run {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }

    /// Asserts a failure whose message has all these parts.
    #[track_caller]
    pub fn fails(self, status: i32, parts: &[&str]) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

/// Names of the files below a directory, sorted.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            match entry.path().is_dir() {
                true => dirs.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    files
}

/// `count` rows of [`COLUMNS`]; each `id` once, so that loads can be told by their sums.
pub fn rows(first: u64, count: u64) -> String {
    let mut text = String::new();
    for id in first..first + count {
        let (day, price) = (id % 28 + 1, id % 1000);
        text.push_str(&format!("{id},{price}.50,2024-02-{day:02},name {}\n", id % 100));
    }
    text
}
