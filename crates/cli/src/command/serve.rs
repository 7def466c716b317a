//! `coload serve`: a store for other programs.

use std::io::{BufRead, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use coload::{Coload, Error, PlaceOptions};
use coload_cluster::{Maps, open_place};
use coload_receive::Member;
use coload_serve::{
    Address, Allowed, Cluster, Credentials, Database, DatabaseOptions, ExternalPlace,
    ExternalPlaces, Keep, LoadPriority, ReceiveOptions, ServeLimits, ServeOptions, Server,
    TlsFiles, Users,
};
use coload_store::Store;
use tracing_subscriber::filter::LevelFilter;

use crate::args::{HashPasswordArgs, LimitArgs, LogForm, LogLevel, PriorityName, ServeArgs};
use crate::in_place::InPlace;
use crate::interrupt::on_signals;
use crate::output::{Done, Failure, print, say};
use crate::remote_args::{Identity, remote_options};

/// Environment variable with the lines of a file of users.
const USERS_VARIABLE: &str = "COLOAD_USERS";

/// Serves until it is told to stop.
///
/// # Errors
/// `Usage` when other machines could use it without users or TLS; `Failed` when the address is taken,
/// or a file cannot be read.
pub fn run(args: &ServeArgs) -> Done {
    start_log(args.log, args.log_level);
    let users = users(args)?;
    let store = Coload::create_or_open(&args.store)?;
    if let Some(days) = args.remember_loads {
        store.store().set_remember_days(days)?;
    }
    let mut options =
        DatabaseOptions { memory: coload_load::default_memory(), ..Default::default() };
    options.threads = args.threads.unwrap_or(options.threads);
    options.memory = args.memory.unwrap_or(options.memory);
    options.spill = args.spill.options();
    options.statements = args.limits.statements();
    let places = args.external.iter().map(|place| ExternalPlace::parse(place));
    let places = places.collect::<coload::Result<Vec<_>>>();
    let in_flag = |e| Failure::Usage(Error::Invalid(format!("--external: {e}")));
    options.external = Some(ExternalPlaces {
        inputs: Arc::new(InPlace {
            places: PlaceOptions {
                follows_redirects: false,
                on_wait: None,
                ..args.places.options()
            },
        }),
        allowed: Allowed::Within(places.map_err(in_flag)?),
    });
    let tls = args.tls_certificate.clone().zip(args.tls_key.clone());
    let scheme = if tls.is_some() { "coloads" } else { "coload" };
    let mut loads = loads(args);
    if let Some(place) = &args.cluster {
        let cluster = join(args, place, scheme, (store.store(), &loads))?;
        loads.cluster = Some(Arc::clone(cluster.member()));
        options.cluster = Some(cluster);
    }
    let database = Database::open(store.store().clone(), options)?;
    let open_to_all = users.is_open();
    let tls = tls.map(|(certificate, key)| TlsFiles {
        certificate,
        key,
        client_ca: args.tls_client_ca.clone(),
    });
    let server = Server::bind(
        database,
        ServeOptions {
            users,
            tls,
            insecure: args.insecure,
            postgres: args.postgres,
            metrics: args.metrics,
            limits: limits(&args.limits),
            loads,
            grace: Duration::from_secs(args.grace),
            ..ServeOptions::new(args.listen)
        },
    )
    .map_err(|error| match error {
        Error::Invalid(_) => Failure::Usage(error),
        other => Failure::Failed(other),
    })?;
    let address = server.address()?;
    print(&format!("serving {} at {scheme}://{address}\n", args.store.display()))?;
    if let Some(postgres) = server.postgres_address()? {
        print(&format!("PostgreSQL's protocol at postgres://{postgres}\n"))?;
    }
    if let Some(metrics) = server.metrics_address()? {
        print(&format!("metrics at http://{metrics}/metrics\n"))?;
    }
    if open_to_all {
        let who = if address.ip().is_loopback() { "this machine" } else { "any machine" };
        say(&format!("anybody on {who} may do everything: give --users FILE to ask for passwords"));
    }
    server.run(told_to_stop()?)?;
    Ok(())
}

/// Joins a cluster.
fn join(
    args: &ServeArgs,
    place: &str,
    scheme: &str,
    (store, loads): (&Store, &ReceiveOptions),
) -> Done<Cluster> {
    let wrong = |text: String| Failure::Usage(Error::Invalid(text));
    if args.discard {
        return Err(wrong(
            "--discard keeps no rows, and a node of a cluster has to keep its own".into(),
        ));
    }
    let address = match &args.advertise {
        Some(address) => format!("{scheme}://{address}"),
        None if args.listen.port() == 0 || args.listen.ip().is_unspecified() => {
            return Err(wrong(format!(
                "--listen {}: other nodes cannot reach that; give --advertise HOST:PORT",
                args.listen
            )));
        }
        None => format!("{scheme}://{}", args.listen),
    };
    let parsed: Address = address.parse().map_err(Failure::Usage)?;
    if parsed.user.is_some() || parsed.table.is_some() {
        return Err(wrong(format!("--advertise {address}: a host and a port")));
    }
    let identity = Identity::of_environment();
    let calls = remote_options(&parsed, &identity)?;
    let Identity { password, token, ca, certificate } = identity;
    let maps = Maps::new(open_place(place).map_err(Failure::Usage)?);
    let address = parsed.to_string();
    let member = Member::join(store.clone(), maps, (&address, calls), loads.sort_with())?;
    Ok(Cluster::new(member, Credentials { password, token, ca, certificate }))
}

fn limits(args: &LimitArgs) -> ServeLimits {
    let seconds = Duration::from_secs;
    let unless_zero = |limit: u64| (limit > 0).then_some(limit);
    ServeLimits {
        connections: args.max_connections,
        connections_per_peer: args.max_connections_per_peer,
        login_time: seconds(args.login_time),
        idle_time: seconds(args.idle_time),
        message_bytes: args.max_message,
        statements: args.max_statements,
        statements_per_user: args.max_statements_per_user,
        queue_time: seconds(args.queue_time),
        stall_time: seconds(args.stall_time),
        statement_time: unless_zero(args.statement_time).map(seconds),
        answer_rows: unless_zero(args.max_answer_rows),
        answer_bytes: args.max_answer.map(|bytes| bytes as u64),
        prepared_per_user: args.max_prepared,
        tokens_per_user: args.max_tokens,
    }
}

fn loads(args: &ServeArgs) -> ReceiveOptions {
    let mut loads = ReceiveOptions::default();
    loads.load_cpu = args.load_cpu.unwrap_or(loads.load_cpu);
    loads.priority = match args.load_priority {
        PriorityName::Low => LoadPriority::Low,
        PriorityName::Normal => LoadPriority::Normal,
    };
    loads.load_memory = args.load_memory.unwrap_or(loads.load_memory);
    loads.merge_columns = args.merge_columns.unwrap_or(loads.merge_columns);
    loads.keep = if args.discard { Keep::Nothing } else { Keep::All };
    loads
}

fn users(args: &ServeArgs) -> Done<Users> {
    let given = std::env::var(USERS_VARIABLE).ok();
    let users = match (&args.users, given) {
        (Some(_), Some(_)) => {
            return Err(Failure::Usage(Error::Invalid(format!(
                "users are given by --users and by {USERS_VARIABLE}; give one of them"
            ))));
        }
        (Some(path), None) => {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
            Users::parse(&text, &path.display().to_string())?
        }
        (None, Some(text)) => Users::parse(&text, USERS_VARIABLE)?,
        (None, None) => Users::anybody(),
    };
    Ok(users)
}

/// Done at the first SIGINT or SIGTERM; at the second the process ends at once.
fn told_to_stop() -> Done<impl Future<Output = ()> + Send + 'static> {
    let (told, asked) = tokio::sync::oneshot::channel();
    on_signals(|mut signals| async move {
        signals.next().await;
        let _ = told.send(());
        signals.next().await;
        say("error: stopped at once; what was being written is not in the store");
        std::process::exit(1);
    })?;
    Ok(async move {
        let _ = asked.await;
    })
}

fn start_log(form: LogForm, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(level);
    // Fails only when there is a log already.
    let _ = match form {
        LogForm::Text => log.try_init(),
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
}

/// Reads a password and prints its hash.
///
/// # Errors
/// `Failed` when there is none.
pub fn hash_password(args: &HashPasswordArgs) -> Done {
    let term = console::Term::stderr();
    let failed = |e| Error::Unavailable(format!("cannot read the password: {e}"));
    let password = if std::io::stdin().is_terminal() {
        say("password:");
        term.read_secure_line().map_err(failed)?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(failed)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    let hash = match args.postgres {
        true => coload_serve::hash_password_with_verifier(&password)?,
        false => coload_serve::hash_password(&password)?,
    };
    print(&format!("{hash}\n"))
}
