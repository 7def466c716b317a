//! The command line.

#[cfg(feature = "sql")]
mod answers;
#[cfg(feature = "sql")]
mod limits;
mod load;
mod values;

#[cfg(feature = "sql")]
use std::ffi::OsStr;
use std::ffi::OsString;
#[cfg(feature = "sql")]
use std::net::SocketAddr;
#[cfg(feature = "sql")]
use std::path::Path;
use std::path::PathBuf;

#[cfg(feature = "sql")]
use clap::CommandFactory;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use coload::Method;

#[cfg(feature = "sql")]
pub use answers::AnswerArgs;
#[cfg(feature = "sql")]
pub use limits::{LimitArgs, SpillArgs};
pub use load::{DialectArgs, LoadArgs, ModeArgs};
pub use values::{
    BytesPolicy, Delimiter, Dictionaries, Encoding, EscapesForm, ExportQuotes, FormatName,
    KeysPolicy, LineEndForm, ManualForm, QuotesPolicy, RaggedPolicy, RejectsTo, ReportForm,
    SniffForm,
};
#[cfg(feature = "sql")]
pub use values::{LogForm, LogLevel, PriorityName};
pub use values::{at_least_one, sample_size};
#[cfg(feature = "sql")]
use values::{cores, no_secret, scale};

use crate::conflict_rule::ConflictRule;
use crate::database_args::methods;
use crate::examples;
use crate::place_args::PlaceArgs;
use crate::share_args::SplitArgs;
use crate::sheet_args::SheetArgs;
use crate::size::parse_size;

/// Loads delimited text into a compressed, read-optimised store, and queries it with SQL.
#[derive(Debug, Parser)]
#[command(name = "coload", version = env!("COLOAD_VERSION"), max_term_width = 100)]
pub struct Cli {
    /// The command that was given, with its flags.
    #[command(subcommand)]
    pub command: Command,
}

/// A command of `coload`; the comment of each is its help.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load files into a table of a store.
    ///
    /// Exit status: 0 loaded, 1 failed and the store is as it was, 2 wrong usage.
    #[command(after_help = examples::LOAD)]
    Load(Box<LoadArgs>),
    #[cfg(feature = "sql")]
    /// Query a store or a server: statements, a script on standard input, or a shell.
    #[command(after_help = examples::SQL)]
    Sql(Box<SqlArgs>),
    #[cfg(feature = "sql")]
    /// Serve a store to other programs: Arrow Flight SQL, for ADBC, JDBC and `coload sql`; PostgreSQL's protocol with --postgres.
    ///
    /// Ends at Ctrl-C or SIGTERM, when the statements that run are done; at the second one, at once.
    #[command(after_help = examples::SERVE)]
    Serve(Box<ServeArgs>),
    #[cfg(feature = "sql")]
    /// Print the hash of a password, which is read from standard input, for `serve --users`.
    HashPassword(HashPasswordArgs),
    /// Find out dialect and columns of a file, and say why.
    #[command(after_help = examples::SNIFF)]
    Sniff(Box<SniffArgs>),
    /// Show how several workers would share the inputs of a load: which reads what, and why.
    #[command(after_help = examples::PLAN)]
    Plan(Box<PlanArgs>),
    /// Show tables, versions, segments, columns, codecs, sizes and loads of a store.
    #[command(after_help = examples::INSPECT)]
    Inspect(InspectArgs),
    /// Read everything that a store holds, and say what is wrong; repair it with --repair.
    ///
    /// Exit status: 0 nothing is wrong, 1 something was, whether it was repaired or not, 2 wrong usage.
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Show the loads of a server, finished or not, or drop one.
    #[command(after_help = examples::LOADS)]
    Loads(LoadsArgs),
    /// Show a cluster: its nodes, its tables, and which leaf has how many shards of each; or move shards.
    #[command(subcommand, after_help = examples::CLUSTER)]
    Cluster(ClusterCommand),
    /// Measure a database server: methods, connections and rows, for later loads into it.
    ///
    /// Makes tables of its own, named _coload_ and an id, and removes them.
    #[command(after_help = examples::TUNE)]
    Tune(TuneArgs),
    /// Write a table as a file that loads as the same table: CSV, or what the ending of --output says.
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    #[cfg(feature = "sql")]
    /// Make TPC-H lineitem in a temporary folder, load it and query it.
    Demo(DemoArgs),
    /// Print the completions of a shell: coload completions bash > ~/.local/share/bash-completion/completions/coload
    Completions(CompletionsArgs),
    /// Write the pages of the manual, one for each command, such as into ~/.local/share/man/man1
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
}

/// Arguments of `coload completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell for which they are
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// A command of `coload cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Show nodes, tables and shards, and how far each node has come.
    Status(ClusterStatusArgs),
    /// Move shards so that all nodes have their share; loads into a table wait for moments, statements do not.
    #[cfg(feature = "sql")]
    Rebalance(ClusterMoveArgs),
    /// Wait until a node is in the cluster, and give it its share of all shards.
    #[cfg(feature = "sql")]
    Add(ClusterNodeArgs),
    /// Move the shards of a node to the others, and take it out of the cluster.
    #[cfg(feature = "sql")]
    Remove(ClusterNodeArgs),
}

/// Arguments of `coload cluster rebalance`.
#[cfg(feature = "sql")]
#[derive(Debug, Args)]
pub struct ClusterMoveArgs {
    /// A node of the cluster, which does the work: coload://[user@]host:port
    #[arg(value_name = "NODE")]
    pub asked: String,
    /// Megabytes of rows a second that are moved at most; 0 for as many as go
    #[arg(long, value_name = "MB", default_value = "64")]
    pub bandwidth: u64,
}

/// Arguments of `coload cluster add` and `remove`.
#[cfg(feature = "sql")]
#[derive(Debug, Args)]
pub struct ClusterNodeArgs {
    #[command(flatten)]
    pub moves: ClusterMoveArgs,
    /// The node that is added or removed, by its address in the cluster or its id (coload cluster status shows both)
    #[arg(value_name = "WHICH")]
    pub which: String,
}

/// Arguments of `coload cluster status`.
#[derive(Debug, Args)]
pub struct ClusterStatusArgs {
    /// Directory with the map of the cluster, or a node of it: coload://[user@]host:port
    #[arg(value_name = "PLACE")]
    pub place: String,
}

/// Arguments of `coload man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory of the pages, made if absent
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Form of the pages
    #[arg(long, value_name = "FORM", value_enum, default_value_t = ManualForm::Roff)]
    pub form: ManualForm,
}

/// Flags and arguments of `coload verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// Set aside what cannot be read, publish a version without it, and say which rows are lost
    #[arg(long)]
    pub repair: bool,
    /// The version to go back to when the newest cannot be read; what came after it is lost
    #[arg(long, value_name = "VERSION")]
    pub to_version: Option<u64>,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
    /// Form of the report on standard output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub report: ReportForm,
}

/// Flags and arguments of `coload loads`.
#[derive(Debug, Args)]
pub struct LoadsArgs {
    /// The server that has the loads: coload://[user@]host[:port]
    #[arg(long, value_name = "SERVER", required_unless_present = "store")]
    pub server: Option<String>,
    /// The directory of a store of this machine whose loads of several workers are shown
    #[arg(long, value_name = "STORE", conflicts_with = "server")]
    pub store: Option<PathBuf>,
    /// Drop the unfinished load of this id, all shares of it
    #[arg(long, value_name = "ID")]
    pub abort: Option<String>,
}

/// Flags and arguments of `coload tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// The database in which it is measured: postgres://[user@]host[:port]/database, mysql://..., sqlserver://...
    #[arg(value_name = "URL")]
    pub url: String,
    /// File for what was measured [default: one for the server, in ~/.config/coload/tuning, which loads into it find]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Methods that are measured [default: all of the engine]
    #[arg(long, value_name = "METHOD,..", value_delimiter = ',', value_parser = methods())]
    pub method: Vec<Method>,
    /// Numbers of connections [default: 1,2,4,8]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = at_least_one)]
    pub connections: Vec<usize>,
    /// Most rows of a load that is measured [default: 20000]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub rows: Option<usize>,
    /// How often each load is measured, of which the least time counts [default: 3]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub times: Option<usize>,
}

#[cfg(feature = "sql")]
/// Flags and arguments of `coload sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// Directory of the store, or a server: coload://[user@]host:port, coloads:// with TLS [default: store of the file of
    /// settings, or one that is gone at the end, to query files]
    #[arg(long, env = "COLOAD_STORE", value_name = "STORE")]
    pub store: Option<String>,
    /// Who asks a server.
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Statements to run; may be given several times
    #[arg(short, long = "command", value_name = "QUERY")]
    pub commands: Vec<String>,
    /// Scripts to run behind them, or - for standard input; may be given several times
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How answers are shown.
    #[command(flatten)]
    pub answers: AnswerArgs,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
    /// Most memory of a statement, such as 1GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<usize>,
    /// Where statements go that memory does not hold.
    #[command(flatten)]
    pub spill: SpillArgs,
    /// Where objects are that statements read.
    #[command(flatten)]
    pub places: PlaceArgs,
}

/// Flags and arguments of `coload plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Inputs as those of load
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// How many workers there are
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: usize,
    /// How the inputs are shared.
    #[command(flatten)]
    pub splits: SplitArgs,
    /// What load is told of keys: but for error, workers have the inputs in their order
    #[arg(long, value_name = "RULE", value_parser = ConflictRule::parse)]
    pub on_conflict: Option<ConflictRule>,
    /// Where objects are.
    #[command(flatten)]
    pub places: PlaceArgs,
    /// Which cells of books.
    #[command(flatten)]
    pub sheets: SheetArgs,
    /// What is known of how the text is written.
    #[command(flatten)]
    pub dialect: DialectArgs,
    /// Form of the answer
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub output: ReportForm,
}

/// Flags and arguments of `coload sniff`.
#[derive(Debug, Args)]
pub struct SniffArgs {
    /// File, s3://bucket/key, https://host/path, URL of a database's table, or - for standard input
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// Statement whose answer is looked at, from the database that the input is the URL of
    #[arg(long, value_name = "SQL")]
    pub query: Option<String>,
    /// Where objects are.
    #[command(flatten)]
    pub places: PlaceArgs,
    /// Which cells of books.
    #[command(flatten)]
    pub sheets: SheetArgs,
    /// What is known of how the text is written.
    #[command(flatten)]
    pub dialect: DialectArgs,
    /// Bytes that are looked at, such as 16MiB, or all
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = sample_size)]
    pub sample: usize,
    /// Form of the answer
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub output: SniffForm,
}

#[cfg(feature = "sql")]
/// Who a client of a server is, and whom it trusts.
#[derive(Debug, Args)]
pub struct CredentialArgs {
    /// File with the password of the user in the address [default: COLOAD_PASSWORD, or asked for]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub password_file: Option<PathBuf>,
    /// File with a token in place of a user and password [default: COLOAD_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub token_file: Option<PathBuf>,
    /// Refused: the list of processes would show it
    #[arg(long, hide = true, value_name = "TEXT", value_parser = no_secret)]
    pub password: Option<String>,
    /// Refused: the list of processes would show it
    #[arg(long, hide = true, value_name = "TEXT", value_parser = no_secret)]
    pub token: Option<String>,
    /// Root of the server's certificate, PEM [default: those of the system]
    #[arg(long, env = "COLOAD_TLS_CA", value_name = "FILE", help_heading = "Server")]
    pub tls_ca: Option<PathBuf>,
    /// Certificate of this client, PEM
    #[arg(long, env = "COLOAD_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    #[arg(help_heading = "Server")]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of that certificate, PEM
    #[arg(long, env = "COLOAD_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    #[arg(help_heading = "Server")]
    pub tls_key: Option<PathBuf>,
}

#[cfg(feature = "sql")]
/// Flags of `coload hash-password`.
#[derive(Debug, Args)]
pub struct HashPasswordArgs {
    /// Print with it what proves the password to clients of PostgreSQL, which then do not send it (SCRAM-SHA-256)
    #[arg(long)]
    pub postgres: bool,
}

#[cfg(feature = "sql")]
/// Flags and arguments of `coload serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory of the store; made if absent
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Address and port; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8470")]
    pub listen: SocketAddr,
    /// File of users: lines of name, hash of the password, rights such as read:* load:orders.
    /// COLOAD_USERS may hold the lines themselves
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Certificate of the server, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "TLS")]
    pub tls_certificate: Option<PathBuf>,
    /// Private key of the server's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "TLS")]
    pub tls_key: Option<PathBuf>,
    /// Root of the certificates that clients must have, PEM; without it they need none
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "TLS")]
    pub tls_client_ca: Option<PathBuf>,
    /// Serve other machines without users or TLS
    #[arg(long)]
    pub insecure: bool,
    /// Days for which a load that its table holds is a no-op when it comes again; kept in the store [default: as it was
    /// set last, or 90]
    #[arg(long, value_name = "DAYS")]
    pub remember_loads: Option<u32>,
    /// Address and port for clients of PostgreSQL, such as psql (same users, TLS and limits)
    #[arg(long, value_name = "ADDR")]
    pub postgres: Option<SocketAddr>,
    /// Address and port where Prometheus reads /metrics
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    /// Form of the log on standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub log: LogForm,
    /// Least severe lines of the log
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
    /// Threads of statements [default: all of the machine]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Limits")]
    pub threads: Option<usize>,
    /// Most memory of all statements, such as 1GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub memory: Option<usize>,
    /// What clients may have.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where statements go that memory does not hold.
    #[command(flatten)]
    pub spill: SpillArgs,
    /// A directory, a file, or the beginning of an address such as s3://bucket/public, whose files and objects statements may
    /// read in place, of users with the right external:PLACE or external:*; may be given several times [default: none]
    #[arg(long, value_name = "PLACE")]
    pub external: Vec<String>,
    /// Where objects are.
    #[command(flatten)]
    pub places: PlaceArgs,
    /// Cores that loads from other machines may use, a part of one too [default: all]
    #[arg(long, value_name = "CORES", value_parser = cores, help_heading = "Loads")]
    pub load_cpu: Option<f64>,
    /// Priority of these loads beside statements
    #[arg(long, value_name = "PRIORITY", default_value = "low", help_heading = "Loads")]
    pub load_priority: PriorityName,
    /// Most memory of these loads [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Loads")]
    pub load_memory: Option<usize>,
    /// Columns that one of them merges at once [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Loads")]
    pub merge_columns: Option<usize>,
    /// Verify what loads send, and drop it: to measure the rest
    #[arg(long, help_heading = "Loads")]
    pub discard: bool,
    /// Directory that all nodes of a cluster share, which holds its map: the store becomes a node of it. Other nodes are called with
    /// COLOAD_TOKEN (NAME.PASSWORD), and with TLS if this server has it
    #[arg(long, value_name = "PLACE", help_heading = "Cluster")]
    pub cluster: Option<String>,
    /// Host and port where clients and other nodes reach this one [default: that of --listen]
    #[arg(long, value_name = "HOST:PORT", requires = "cluster", help_heading = "Cluster")]
    pub advertise: Option<String>,
    /// Seconds that statements may take after the server was asked to stop
    #[arg(long, value_name = "SECONDS", default_value = "30", help_heading = "Limits")]
    pub grace: u64,
}

/// Flags and arguments of `coload inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// Table to show in detail
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,
}

/// Flags and arguments of `coload export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// Table of which the file is made
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// File to write, which has its name only when it is whole [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave out the line of names
    #[arg(long)]
    pub no_header: bool,
    /// What is in quotes
    #[arg(long, value_name = "FIELDS", default_value = "texts")]
    pub quote: ExportQuotes,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
    /// Most memory, such as 1GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<usize>,
}

#[cfg(feature = "sql")]
/// Flags and arguments of `coload demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// TPC-H scale factor; 1 is 6 million rows, 760 MB
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale)]
    pub scale: f64,
    /// Keep the temporary folder with the data and the store
    #[arg(long)]
    pub keep: bool,
}

/// The words of the command line; `coload STORE` is `coload sql --store STORE`.
pub fn words_of(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    #[cfg(feature = "sql")]
    if words.get(1).is_some_and(|first| names_a_store(first)) {
        let (program, rest) = words.split_at(1);
        return [program, &["sql".into(), "--store".into()], rest].concat();
    }
    words
}

/// Whether a word is no command, and names a store or a server.
#[cfg(feature = "sql")]
fn names_a_store(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    let is_command = Cli::command().get_subcommands().any(|command| command.get_name() == text);
    let is_other = is_command || text == "help" || text.starts_with('-');
    !is_other && (coload_serve::Address::is_meant(&text) || Path::new(word).is_dir())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}
