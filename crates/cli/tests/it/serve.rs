//! `coload serve` as a program, with the drivers that people use.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::drivers::{passes, python};
use crate::support::{COLUMNS, Sandbox, rows};

/// A server on the sandbox's store.
pub struct Server {
    child: Child,
    /// `host:port`.
    address: String,
    /// The same for clients of PostgreSQL, if they are served.
    postgres: Option<String>,
}

impl Server {
    pub fn start(sandbox: &Sandbox, flags: &[&str]) -> Self {
        let mut args = vec!["serve", "--store", "store", "--listen", "127.0.0.1:0"];
        args.extend(flags);
        Self::start_as(sandbox, sandbox.command(&args))
    }

    /// A server that may have few open files.
    pub fn start_with_few(sandbox: &Sandbox, descriptors: usize) -> Self {
        let args = ["serve", "--store", "store", "--listen", "127.0.0.1:0"];
        let command = sandbox.command(&args);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {descriptors}; exec \"$@\""), "sh"]);
        limited.arg(command.get_program()).args(command.get_args());
        limited.current_dir(sandbox.path(""));
        Self::start_as(sandbox, limited)
    }

    fn start_as(sandbox: &Sandbox, mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(sandbox.path("log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let (_, address) = line.trim().split_once("://").unwrap_or_else(|| panic!("{line:?}"));
            address.to_owned()
        };
        let address = next();
        let postgres = command.get_args().any(|arg| arg == "--postgres").then(next);
        Server { child, address, postgres }
    }

    pub fn url(&self) -> String {
        format!("coload://{}", self.address)
    }

    /// The most KiB that it held.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Whether it soon does nothing any more: its threads take no time of a processor.
    pub fn rests(&self) -> bool {
        let ticks = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
            let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
            fields.map(|field| field.parse::<u64>().unwrap()).sum::<u64>()
        };
        (0..20).any(|_| {
            let before = ticks();
            std::thread::sleep(std::time::Duration::from_millis(250));
            // A tick is 10 ms.
            ticks() - before <= 2
        })
    }

    /// Asks it to stop and gives its exit status.
    fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_store_is_served_to_coload_sql() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", rows(0, 1_000));
    sandbox.load("t.csv", &[]).ok();
    let server = Server::start(&sandbox, &[]);
    let sql = |query: &str| {
        sandbox.run(&["sql", "--store", &server.url(), "-c", query, "--output", "csv"])
    };
    assert_eq!(sql("SELECT count(*), sum(id) FROM t").ok().out.lines().nth(1), Some("1000,499500"));
    assert_eq!(sql("INSERT INTO t (id) VALUES (7)").ok().out, "count\n1\n");
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["1001"]);
    // A load beside the server is seen by its next statement.
    sandbox.load("t.csv", &[]).ok();
    assert_eq!(sql("SELECT count(*) FROM t").ok().out.lines().nth(1), Some("2001"));
    sql("SELECT * FROM nowhere").fails(1, &["nowhere"]);
    let log = std::fs::read_to_string(sandbox.path("log")).unwrap();
    assert!(log.contains("anybody on this machine may do everything"), "{log}");
    assert!(log.contains("statement done") && log.contains("statement refused"), "{log}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_server_asks_for_passwords_when_it_has_users() {
    let sandbox = Sandbox::new();
    let hashed = sandbox.run_with_input(&["hash-password"], b"open sesame\n").ok();
    assert!(!hashed.out.contains("sesame"));
    sandbox.write("users", format!("# users\nada {} admin:*\n", hashed.out.trim()));
    let server = Server::start(&sandbox, &["--users", "users", "--log", "json"]);
    let url = format!("coload://ada@{}", server.address);
    let run = |url: &str, password: Option<&str>| {
        let mut command = sandbox.command(&["sql", "--store", url, "-c", "SELECT 1"]);
        command.env_remove("COLOAD_PASSWORD");
        if let Some(password) = password {
            command.env("COLOAD_PASSWORD", password);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&url, Some("open sesame")).0, Some(0));
    let (status, err) = run(&url, Some("sesame"));
    assert!(status == Some(1) && err.contains("wrong user or password"), "{err}");
    let (status, err) = run(&url, None);
    assert!(status == Some(1) && err.contains("COLOAD_PASSWORD"), "{err}");
    let (status, err) = run(&server.url(), None);
    assert!(status == Some(1) && err.contains("log in"), "{err}");
    let log = std::fs::read_to_string(sandbox.path("log")).unwrap();
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    assert!(!log.contains("sesame"), "{log}");
}

#[test]
fn one_port_serves_loads_and_queries() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", rows(0, 5_000));
    let hashed = sandbox.run_with_input(&["hash-password"], b"x\n").ok();
    let hash = hashed.out.trim();
    sandbox.write("users", format!("lou {hash} load:stage_*\nrob {hash} read:*\n"));
    let server = Server::start(&sandbox, &["--users", "users"]);
    let load = |user: &str, table: &str, mode: &str| {
        let into = format!("coload://{user}@{}/{table}", server.address);
        let args =
            ["load", "t.csv", "--into", &into, "--columns", COLUMNS, mode, "--patience", "5"];
        let output = sandbox.command(&args).env("COLOAD_PASSWORD", "x").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, err) = load("lou", "stage_1", "--create");
    assert_eq!(status, Some(0), "{err}");
    // The right to load is enough, though not to see which rules there are.
    let (status, err) = load("lou", "stage_1", "--append");
    assert_eq!(status, Some(0), "{err}");
    for (user, table, mode, part) in [
        ("lou", "other", "--append", "right load on table other"),
        ("rob", "stage_1", "--append", "right load on table stage_1"),
        ("lou", "stage_1", "--replace", "right admin on table stage_1"),
        ("eve", "stage_1", "--append", "wrong user or password"),
    ] {
        let (status, err) = load(user, table, mode);
        assert!(status == Some(1) && err.contains(part), "{user} {table} {mode}: {err}");
    }
    let url = format!("coload://rob@{}", server.address);
    let sums = "SELECT count(*), sum(id) FROM stage_1";
    let mut query = sandbox.command(&["sql", "--store", &url, "-c", sums, "--output", "csv"]);
    let output = query.env("COLOAD_PASSWORD", "x").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n10000,24995000\n"), "{output:?}");
}

#[test]
fn wrong_usage_of_serve_is_told() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["serve", "--store", "store", "--listen", "0.0.0.0:0"])
        .fails(2, &["--users", "--insecure"]);
    sandbox.write("users", "ada secret read:*\n");
    sandbox
        .run(&["serve", "--store", "store", "--users", "users"])
        .fails(1, &["users:1", "hash-password"]);
    let server = Server::start(&sandbox, &[]);
    sandbox
        .run(&["serve", "--store", "store", "--listen", &server.address])
        .fails(1, &["cannot listen", &server.address]);
    sandbox
        .run(&["sql", "--store", "coload://ada:x@host", "-c", "SELECT 1"])
        .fails(1, &["COLOAD_PASSWORD"]);
    drop(server);
    sandbox
        .run(&["sql", "--store", "coload://127.0.0.1:1", "-c", "SELECT 1"])
        .fails(1, &["cannot connect to coload://127.0.0.1:1"]);
}

/// The folder with the drivers of JDBC at pinned versions; installs them the first time.
fn jdbc() -> PathBuf {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jdbc");
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/setup_jdbc.sh");
    let status = Command::new(&setup).arg(&folder).status().unwrap();
    assert!(
        status.success(),
        "{} failed (it needs Java, Maven and Maven Central)",
        setup.display()
    );
    folder
}

#[test]
fn the_jdbc_driver_works_unchanged() {
    let folder = jdbc();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers");
    let sandbox = Sandbox::new();
    let hashed = sandbox.run_with_input(&["hash-password"], b"loves engines\n").ok();
    sandbox.write("users", format!("ada {} admin:*\n", hashed.out.trim()));
    let server = Server::start(&sandbox, &["--users", "users"]);
    passes(
        Command::new("java")
            .args(["--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp"])
            .arg(folder.join("flight-sql-jdbc-driver-18.3.0.jar"))
            .arg(here.join("Jdbc.java"))
            .args([&server.address, "ada", "loves engines"]),
    );
    // What docs/clients.md shows.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, program) = page.split_once("```java\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let program = program.replace("127.0.0.1:8470", &server.address);
    sandbox.write("Years.java", program.replace("\"secret\"", "\"loves engines\""));
    let output = Command::new("java")
        .args(["--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp"])
        .arg(folder.join("flight-sql-jdbc-driver-18.3.0.jar"))
        .arg(sandbox.path("Years.java"))
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "Ada\n", "{err}");
}

#[test]
fn the_adbc_driver_works_unchanged() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let uri = format!("grpc://{}", server.address);
    passes(python("adbc.py").arg(uri));
}

#[test]
fn drivers_of_postgresql_work_unchanged() {
    let sandbox = Sandbox::new();
    let hashed = sandbox.run_with_input(&["hash-password", "--postgres"], b"analytical\n").ok();
    sandbox.write("users", format!("ada {} admin:*\n", hashed.out.trim()));
    let server = Server::start(&sandbox, &["--users", "users", "--postgres", "127.0.0.1:0"]);
    let address = server.postgres.as_ref().unwrap();
    passes(python("postgres.py").args([address, "ada", "analytical"]));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/Postgres.java");
    passes(
        Command::new("java")
            .arg("-cp")
            .arg(jdbc().join("postgresql-42.7.11.jar"))
            .arg(program)
            .args([address, "ada", "analytical"]),
    );
}

/// The password stood in the list of processes, for everybody on the machine.
#[test]
fn a_password_on_the_command_line_is_refused() {
    let sandbox = Sandbox::new();
    for flag in ["--password", "--token"] {
        let args =
            ["sql", "--store", "coload://ada@127.0.0.1:1", flag, "open sesame", "-c", "SELECT 1"];
        let run = sandbox.run(&args);
        run.fails(2, &["list of processes", "--password-file"]);
    }
    let help = sandbox.run(&["sql", "--help"]).ok();
    assert!(
        help.out.contains("--password-file") && !help.out.contains("--password <"),
        "{}",
        help.out
    );
}

/// It read them from flags only, unlike `coload load`.
#[test]
fn certificates_of_a_client_are_taken_from_the_environment() {
    let sandbox = Sandbox::new();
    let mut command =
        sandbox.command(&["sql", "--store", "coloads://127.0.0.1:1", "-c", "SELECT 1"]);
    command.env("COLOAD_TLS_CERTIFICATE", "no-such.pem").env("COLOAD_TLS_KEY", "no-such.key");
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("no-such.pem"), "{err}");
}
