//! A cluster of processes of this machine, in a folder that goes with it.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub fn done(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }
}

/// A cluster of processes.
pub struct Nodes {
    folder: TempDir,
    ports: Vec<u16>,
    /// Ports of PostgreSQL's protocol, if nodes have it.
    postgres: Vec<u16>,
    /// More flags of each node, and variables of all processes.
    flags: Vec<String>,
    variables: Vec<(&'static str, String)>,
    scheme: &'static str,
    place: String,
    running: Vec<Option<Child>>,
}

impl Nodes {
    /// A cluster of so many nodes, which all serve.
    pub fn start(count: usize) -> Self {
        let mut nodes = Self::new(count);
        (0..count).for_each(|node| nodes.serve(node, None));
        nodes
    }

    /// A cluster of so many nodes, of which the first ones serve; others come later.
    pub fn start_some(count: usize, serving: usize) -> Self {
        let mut nodes = Self::new(count);
        (0..serving).for_each(|node| nodes.serve(node, None));
        nodes
    }

    /// A cluster of nodes that log in at each other over TLS, with the files and the token that `prepare` makes in its
    /// folder: flags of a node, variables of all.
    pub fn start_with(
        count: usize,
        prepare: impl FnOnce(&Self) -> (Vec<String>, Vec<(&'static str, String)>),
    ) -> Self {
        let mut nodes = Self::new(count);
        (nodes.flags, nodes.variables) = prepare(&nodes);
        nodes.scheme = "coloads";
        (0..count).for_each(|node| nodes.serve(node, None));
        nodes
    }

    /// A cluster of so many nodes whose map lies in this place, with variables of all processes.
    pub fn start_in(count: usize, place: &str, variables: Vec<(&'static str, String)>) -> Self {
        let mut nodes = Self::new(count);
        (nodes.place, nodes.variables) = (place.to_owned(), variables);
        (0..count).for_each(|node| nodes.serve(node, None));
        nodes
    }

    /// A cluster of so many nodes that speak PostgreSQL's protocol as well.
    pub fn start_with_postgres(count: usize) -> Self {
        let mut nodes = Self::new(count);
        nodes.postgres = ports(count);
        (0..count).for_each(|node| nodes.serve(node, None));
        nodes
    }

    fn new(count: usize) -> Self {
        let ports = ports(count);
        let folder = tempfile::tempdir().unwrap();
        let running = (0..count).map(|_| None).collect();
        let (flags, variables, postgres) = (Vec::new(), Vec::new(), Vec::new());
        Nodes {
            folder,
            ports,
            postgres,
            flags,
            variables,
            scheme: "coload",
            place: "place".to_owned(),
            running,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The command, to run in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("FAILPOINTS").envs(self.variables.iter().cloned());
        command
    }

    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// Starts a node, and waits until it serves. It ends at a failpoint, if one is named.
    pub fn serve(&mut self, node: usize, failpoint: Option<&str>) {
        let address = format!("127.0.0.1:{}", self.ports[node]);
        let store = format!("store{node}");
        let log =
            fs::File::options().create(true).append(true).open(self.path(&format!("log{node}")));
        let mut command = self.command(&["serve", "--store", &store, "--listen", &address]);
        command.args(["--cluster", &self.place, "--grace", "1", "--threads", "1"]);
        command.args(&self.flags);
        if let Some(port) = self.postgres.get(node) {
            command.args(["--postgres", &format!("127.0.0.1:{port}")]);
        }
        command.stdout(Stdio::null()).stderr(log.unwrap());
        if let Some(point) = failpoint {
            command.env("FAILPOINTS", format!("{point}=return(abort)"));
        }
        self.running[node] = Some(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < until, "node {node} does not serve: {}", self.log(node));
            let child = self.running[node].as_mut().unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("node {node} ended: {status}, {}", self.log(node));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn log(&self, node: usize) -> String {
        fs::read_to_string(self.path(&format!("log{node}"))).unwrap_or_default()
    }

    /// Ends a node as kill -9 does.
    pub fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.running[node].take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// Whether a node has ended by itself; waits for it.
    pub fn has_ended(&mut self, node: usize, within: Duration) -> bool {
        let until = Instant::now() + within;
        let Some(child) = self.running[node].as_mut() else { return true };
        while Instant::now() < until {
            if child.try_wait().unwrap().is_some() {
                self.running[node] = None;
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub fn port(&self, node: usize) -> u16 {
        self.ports[node]
    }

    pub fn postgres(&self, node: usize) -> u16 {
        self.postgres[node]
    }

    pub fn address(&self, node: usize) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.ports[node])
    }

    /// The address of a node for a user, whose password is "secret" and his name.
    pub fn address_of(&self, user: &str, node: usize) -> String {
        format!("{}://{user}@127.0.0.1:{}", self.scheme, self.ports[node])
    }

    /// Runs a statement at a node.
    pub fn sql(&self, node: usize, text: &str) -> Run {
        self.run(&["sql", "--store", &self.address(node), "--output", "csv", "-c", text])
    }

    /// The answer of a node as lines of CSV, without the header.
    pub fn query(&self, node: usize, text: &str) -> Vec<String> {
        let run = self.sql(node, text).done();
        run.out.lines().skip(1).map(str::to_owned).collect()
    }

    /// A load into a table, asked of a node.
    pub fn load_command(&self, node: usize, table: &str, flags: &[&str]) -> Command {
        let into = format!("{}/{table}", self.address(node));
        let mut command = self.command(&["load"]);
        command.args(flags).args(["--into", &into]);
        command
    }

    pub fn load(&self, node: usize, table: &str, flags: &[&str]) -> Run {
        Run::of(self.load_command(node, table, flags).output().unwrap())
    }

    pub fn count(&self) -> usize {
        self.ports.len()
    }
}

/// Ports that nobody has at the moment.
fn ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|l| l.local_addr().unwrap().port()).collect()
}

impl Drop for Nodes {
    fn drop(&mut self) {
        (0..self.ports.len()).for_each(|node| self.kill(node));
        if std::thread::panicking() {
            for node in 0..self.ports.len() {
                let log = self.log(node);
                let tail: Vec<&str> = log.lines().rev().take(15).collect();
                println!("node {node}:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
    }
}
