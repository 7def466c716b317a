//! Servers in folders of their own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest start of a server, where the machine is busy.
const START_MAX: Duration = Duration::from_secs(120);

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Mariadb,
}

/// A server, ended when it is dropped.
pub struct Server {
    pub engine: Engine,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
    /// Flags of the program besides.
    flags: Vec<String>,
}

/// Only one test installs packages at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

fn install(packages: &[&str], is_there: impl Fn() -> bool) {
    let _guard = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if is_there() {
        return;
    }
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    apt(&["update", "-q"]);
    let installed = apt(&[&["install", "-y", "-q", "--no-install-recommends"], packages].concat());
    assert!(
        installed && is_there(),
        "{packages:?} of Debian cannot be installed (as root: apt-get install)"
    );
}

/// A program of PostgreSQL, of the newest version there is.
fn postgres_program(name: &str) -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|version| version.join("bin").join(name))
        .find(|path| path.exists())
}

/// A command that does not run as root, which PostgreSQL refuses to.
fn as_nobody(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
    command
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Starts one with an empty database.
    pub fn start(engine: Engine) -> Self {
        Self::start_with(engine, |_| Vec::new())
    }

    /// The same, with flags of the program, which may name its port.
    pub fn start_with(engine: Engine, flags: impl Fn(u16) -> Vec<String>) -> Self {
        match engine {
            Engine::Postgres => install(&["postgresql", "postgresql-client"], || {
                postgres_program("postgres").is_some() && Path::new("/usr/bin/psql").exists()
            }),
            Engine::Mariadb => install(&["mariadb-server", "mariadb-client"], || {
                Path::new("/usr/sbin/mariadbd").exists() && Path::new("/usr/bin/mariadb").exists()
            }),
        }
        let folder = tempfile::Builder::new().prefix("coload-db").tempdir_in("/tmp").unwrap();
        succeed(Command::new("chmod").arg("0777").arg(folder.path()));
        let port = free_port();
        let mut server = Server { engine, folder, port, child: None, flags: flags(port) };
        let data = server.folder.path().join("data");
        match engine {
            Engine::Postgres => succeed(
                as_nobody(&postgres_program("initdb").unwrap())
                    .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
                    .arg(&data)
                    .current_dir(server.folder.path()),
            ),
            Engine::Mariadb => succeed(
                as_nobody(Path::new("/usr/bin/mariadb-install-db"))
                    .args([
                        "--no-defaults",
                        "--auth-root-authentication-method=normal",
                        "--skip-test-db",
                    ])
                    .arg(format!("--datadir={}", data.display()))
                    // A server that starts removes temporary tables, whose names are those of others that start too.
                    .env("TMPDIR", server.folder.path())
                    .current_dir(server.folder.path()),
            ),
        };
        server.run();
        if engine == Engine::Mariadb {
            server.sql_in("mysql", "CREATE DATABASE d; CREATE USER u@'%' IDENTIFIED BY 'p w'; GRANT ALL ON *.* TO u@'%'");
        }
        server
    }

    /// Runs the program on the folder that is there, and waits until it answers.
    pub fn run(&mut self) {
        let data = self.folder.path().join("data");
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let port = self.port.to_string();
        let mut command = match self.engine {
            Engine::Postgres => {
                let mut command = as_nobody(&postgres_program("postgres").unwrap());
                command.arg("-D").arg(&data).args(["-p", &port, "-k"]).arg(self.folder.path());
                command.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=40"]);
                // So that what keeps locks is found with few rows.
                command.args(["-c", "max_locks_per_transaction=10"]);
                command
            }
            Engine::Mariadb => {
                let mut command = as_nobody(Path::new("/usr/sbin/mariadbd"));
                let socket = self.folder.path().join("socket");
                command.env("TMPDIR", self.folder.path());
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--port", &port]);
                command.arg(format!("--datadir={}", data.display()));
                command.arg(format!("--socket={}", socket.display()));
                command.arg(format!("--pid-file={}", self.folder.path().join("pid").display()));
                command
            }
        };
        command.args(&self.flags);
        let errors = log.try_clone().unwrap();
        self.child = Some(command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap());
        let began = Instant::now();
        while !self.client("", "SELECT 1").output().is_ok_and(|output| output.status.success()) {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < START_MAX, "the server does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it as a machine does that loses its power.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn client(&self, database: &str, sql: &str) -> Command {
        let port = self.port.to_string();
        match self.engine {
            Engine::Postgres => {
                let mut command = Command::new("psql");
                command.args([
                    "-X",
                    "-q",
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &port,
                    "-U",
                    "postgres",
                    "-A",
                    "-t",
                ]);
                command.args(["-v", "ON_ERROR_STOP=1", "-c", "SET timezone = 'UTC'", "-c", sql]);
                command.env("PGOPTIONS", "-c client_min_messages=warning");
                command
            }
            Engine::Mariadb => {
                let mut command = Command::new("mariadb");
                command.args([
                    "--no-defaults",
                    "-h",
                    "127.0.0.1",
                    "-P",
                    &port,
                    "-u",
                    "root",
                    "-N",
                    "-B",
                ]);
                command.args(["--default-character-set=utf8mb4", "-e", sql]);
                if !database.is_empty() {
                    command.arg(database);
                }
                command
            }
        }
    }

    fn sql_in(&self, database: &str, sql: &str) -> String {
        succeed(&mut self.client(database, sql)).trim_end_matches('\n').to_owned()
    }

    /// What a statement answers, cells with bars between them.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in("d", sql).replace('\t', "|")
    }

    /// A client that runs a statement.
    pub fn client_command(&self, sql: &str) -> Command {
        self.client("d", sql)
    }

    /// Whether a statement is done.
    pub fn try_sql(&self, sql: &str) -> bool {
        self.client("d", sql).output().is_ok_and(|output| output.status.success())
    }

    /// URL of its database.
    pub fn url(&self) -> String {
        match self.engine {
            Engine::Postgres => {
                format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
            }
            Engine::Mariadb => format!("mysql://u:p%20w@127.0.0.1:{}/d", self.port),
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file beside its data.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A load of a file, with flags that spaces divide.
    pub fn load_command(&self, file: &Path, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
        command.arg("load").arg(file).arg("--into").arg(self.url()).args(flags.split_whitespace());
        command.args(["--report", "json"]).env("TMPDIR", self.folder.path());
        command
    }

    /// Loads a file; what was said, and whether it succeeded.
    pub fn try_load(&self, file: &Path, flags: &str) -> (bool, String) {
        let Output { status, stdout, stderr } = self.load_command(file, flags).output().unwrap();
        let text =
            String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        (status.success(), text)
    }

    /// Loads a file that can be loaded.
    pub fn load(&self, file: &Path, flags: &str) -> String {
        let (loaded, text) = self.try_load(file, flags);
        assert!(loaded, "{flags}: {text}");
        text
    }

    /// Loads a file that cannot; what was said.
    pub fn fail(&self, file: &Path, flags: &str) -> String {
        let (loaded, text) = self.try_load(file, flags);
        assert!(!loaded, "{flags}: {text}");
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if rustix::process::geteuid().is_root() {
            // The folder has files of another user.
            let _ = std::fs::remove_dir_all(self.folder.path());
        }
    }
}
