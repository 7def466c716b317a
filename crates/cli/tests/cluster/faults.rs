//! Processes that end at every step of a load: its rows are on all leaves or on none, and each is there once.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::nodes::Nodes;
use crate::random::{Random, seed};

const ROWS: u64 = 3_000;

fn with_table(count: usize) -> Nodes {
    let nodes = Nodes::start(count);
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 16").done();
    nodes
}

fn write(nodes: &Nodes, load: u64) -> String {
    let name = format!("{load}.csv");
    let rows = (0..ROWS).map(|k| format!("{load},{k},value {}\n", k % 97));
    nodes.write(&name, rows.collect::<String>());
    name
}

/// Several partitions of several fragments.
const SIZES: [&str; 8] = [
    "--no-header",
    "--columns",
    "load BIGINT, k BIGINT, v VARCHAR",
    "--chunk-size",
    "5000",
    "--fragments-per-partition",
    "3",
    "--patience",
];

fn spawn(nodes: &Nodes, node: usize, file: &str, failpoint: Option<&str>, patience: &str) -> Child {
    let mut command = nodes.load_command(node, "t", &[&SIZES[..], &[patience, file]].concat());
    if let Some(point) = failpoint {
        command.env("FAILPOINTS", format!("{point}=return(abort)"));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn load(nodes: &Nodes, node: usize, file: &str) {
    nodes.load(node, "t", &[&SIZES[..], &["60", file]].concat()).done();
}

/// Checks what all nodes see: whole loads, each row once. Gives the numbers of the loads.
fn seen(nodes: &Nodes, at: &str) -> Vec<u64> {
    let query =
        "SELECT load, count(*), count(DISTINCT k), sum(k) FROM t GROUP BY load ORDER BY load";
    let mut first: Option<Vec<String>> = None;
    for node in 0..nodes.count() {
        let answer = nodes.query(node, query);
        for line in &answer {
            let (_, rest) = line.split_once(',').unwrap();
            let expected = format!("{ROWS},{ROWS},{}", ROWS * (ROWS - 1) / 2);
            assert_eq!(rest, expected, "{at}: part of a load, or a row twice: {answer:?}");
        }
        assert_eq!(
            *first.get_or_insert_with(|| answer.clone()),
            answer,
            "{at}: nodes see different loads"
        );
    }
    let number = |line: &String| line.split(',').next().unwrap().parse().unwrap();
    first.unwrap_or_default().iter().map(number).collect()
}

#[test]
fn a_client_that_ends_at_any_step_leaves_all_or_nothing() {
    let nodes = with_table(4);
    for (number, point) in ["begun", "sent", "prepared"].into_iter().enumerate() {
        let (load_number, point) = (number as u64, format!("cluster::client::{point}"));
        let file = write(&nodes, load_number);
        let status = spawn(&nodes, number, &file, Some(&point), "60").wait().unwrap();
        assert!(!status.success(), "{point} was not passed");
        assert_eq!(seen(&nodes, &point).len(), number, "{point}: nobody committed it");
        // The same load goes on where it ended, asked of another node.
        load(&nodes, number + 1, &file);
        assert_eq!(seen(&nodes, &point).len(), number + 1);
        load(&nodes, number, &file);
        assert_eq!(seen(&nodes, &point).len(), number + 1, "{point}: it was loaded twice");
    }
}

#[test]
fn a_leaf_that_ends_at_any_step_loses_nothing() {
    let mut nodes = with_table(4);
    let points =
        ["leaf::finished", "leaf::prepared", "leaf::published", "commit::before", "commit::after"];
    for (number, point) in points.into_iter().enumerate() {
        let point = format!("cluster::{point}");
        let file = write(&nodes, number as u64);
        // The client asks this node to commit; others end as leaves.
        let asked = 1;
        let ends = if point.contains("commit") { asked } else { 2 };
        nodes.kill(ends);
        nodes.serve(ends, Some(&point));
        let mut client = spawn(&nodes, asked, &file, None, "60");
        assert!(nodes.has_ended(ends, Duration::from_secs(60)), "{point} was not passed");
        nodes.serve(ends, None);
        assert!(client.wait().unwrap().success(), "{point}");
        assert_eq!(seen(&nodes, &point).len(), number + 1, "{point}");
        load(&nodes, 3, &file);
        assert_eq!(seen(&nodes, &point).len(), number + 1, "{point}: it was loaded twice");
    }
}

#[test]
fn a_leaf_that_was_away_publishes_when_it_is_back() {
    let mut nodes = with_table(3);
    let file = write(&nodes, 0);
    nodes.kill(2);
    nodes.serve(2, Some("cluster::leaf::published"));
    // It ends while it publishes what is committed: the load is done all the same.
    let mut client = spawn(&nodes, 0, &file, None, "60");
    assert!(nodes.has_ended(2, Duration::from_secs(60)));
    assert!(client.wait().unwrap().success());
    // Nobody reads a part of it: the error names the leaf.
    let answer = nodes.sql(0, "SELECT count(*) FROM t");
    assert!(answer.status != Some(0) && answer.err.contains("shards of table t"), "{answer:?}");
    nodes.serve(2, None);
    assert_eq!(seen(&nodes, "back"), [0]);
}

#[test]
fn a_load_that_is_given_up_is_dropped_everywhere_and_can_be_loaded_again() {
    let nodes = with_table(3);
    let file = write(&nodes, 0);
    let mut client = spawn(&nodes, 0, &file, Some("cluster::client::prepared"), "60");
    assert!(!client.wait().unwrap().success());
    let listed = nodes.run(&["loads", "--server", &nodes.address(1)]).done().out;
    let id = listed.lines().find(|line| line.contains("complete")).unwrap();
    let id = id.split_whitespace().next().unwrap();
    nodes.run(&["loads", "--server", &nodes.address(1), "--abort", id]).done();
    let until = Instant::now() + Duration::from_secs(10);
    for node in 0..3 {
        while nodes.run(&["loads", "--server", &nodes.address(node)]).done().out.contains(id) {
            assert!(Instant::now() < until, "node {node} keeps the load");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert!(seen(&nodes, "given up").is_empty());
    load(&nodes, 2, &file);
    assert_eq!(seen(&nodes, "loaded again"), [0]);
}

#[test]
fn while_the_place_is_away_loads_wait_and_statements_go_on() {
    let nodes = with_table(3);
    let file = write(&nodes, 0);
    load(&nodes, 0, &file);
    assert_eq!(seen(&nodes, "before"), [0]);
    std::fs::rename(nodes.path("place"), nodes.path("elsewhere")).unwrap();
    assert_eq!(seen(&nodes, "away"), [0]);
    let file = write(&nodes, 1);
    let failed = nodes.load(1, "t", &[&SIZES[..], &["1", &file]].concat());
    assert!(failed.status == Some(1) && failed.err.contains("of the cluster"), "{failed:?}");
    // One that waits goes on by itself.
    let mut client = spawn(&nodes, 1, &file, None, "60");
    std::thread::sleep(Duration::from_millis(700));
    assert!(client.try_wait().unwrap().is_none());
    std::fs::rename(nodes.path("elsewhere"), nodes.path("place")).unwrap();
    assert!(client.wait().unwrap().success());
    assert_eq!(seen(&nodes, "back"), [0, 1]);
}

#[test]
fn a_map_in_an_object_store_commits_once_whoever_ends_and_whatever_is_lost() {
    let server = coload_object_server::ObjectServer::start().unwrap();
    let variables = vec![
        ("AWS_ENDPOINT_URL", server.url()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let place = "s3://bucket/some/cluster";
    let mut nodes = Nodes::start_in(3, place, variables);
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 16").done();
    // Each third answer to a put is lost, and each fifth request refused for the moment; none again and again, whoever asks
    // meanwhile: that is a place which is away.
    let count = std::sync::atomic::AtomicU64::new(0);
    let missed = std::sync::Mutex::new(std::collections::HashMap::new());
    server.faults().set(move |request| {
        let count = count.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        let fault = match request.method.as_str() {
            "PUT" if count.is_multiple_of(3) => coload_object_server::Fault::Cut(0),
            _ if count.is_multiple_of(5) => coload_object_server::Fault::Status(503),
            _ => return None,
        };
        let mut missed = missed.lock().unwrap();
        let times: &mut u64 =
            missed.entry((request.method.clone(), request.path.clone())).or_default();
        *times += 1;
        (!times.is_multiple_of(2)).then_some(fault)
    });
    for load_number in 0..3 {
        let file = write(&nodes, load_number);
        load(&nodes, load_number as usize, &file);
    }
    assert_eq!(seen(&nodes, "lost answers"), [0, 1, 2]);
    for (number, point) in (3..).zip(["commit::before", "commit::after", "leaf::prepared"]) {
        let file = write(&nodes, number);
        nodes.kill(1);
        nodes.serve(1, Some(&format!("cluster::{point}")));
        let mut client = spawn(&nodes, 1, &file, None, "60");
        assert!(nodes.has_ended(1, Duration::from_secs(60)), "{point} was not passed");
        nodes.serve(1, None);
        assert!(client.wait().unwrap().success(), "{point}");
        assert_eq!(seen(&nodes, point), (0..=number).collect::<Vec<_>>());
    }
    let status = nodes.run(&["cluster", "status", place]).done().out;
    assert_eq!(status.matches("coload://").count(), 6, "{status}");
    // While it is away, statements read what their nodes know.
    server.faults().set(|_| Some(coload_object_server::Fault::Status(503)));
    assert_eq!(nodes.query(0, "SELECT count(*) FROM t"), [(6 * ROWS).to_string()]);
}

/// Kills in one run of the test; more with `COLOAD_KILLS`.
const KILLS: u64 = 25;

#[test]
fn random_kills_of_nodes_and_clients_leave_all_or_nothing() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let kills = std::env::var("COLOAD_KILLS").ok().and_then(|s| s.parse().ok()).unwrap_or(KILLS);
    let mut nodes = with_table(4);
    let file = write(&nodes, 0);
    let started = Instant::now();
    assert!(spawn(&nodes, 0, &file, None, "60").wait().unwrap().success());
    let longest = started.elapsed().as_micros() as u64 * 5 / 4;
    let mut loads = 1;
    for kill in 0..kills {
        let file = write(&nodes, loads);
        let mut client = spawn(&nodes, random.below(4) as usize, &file, None, "30");
        std::thread::sleep(Duration::from_micros(random.below(longest)));
        // The client, a node, or several at once.
        let mut down = Vec::new();
        let what = random.below(4);
        if what != 1 {
            down.push(random.below(4) as usize);
        }
        if what == 2 {
            down.push(random.below(4) as usize);
        }
        if what == 1 || what == 3 {
            let _ = client.kill();
        }
        for node in &down {
            nodes.kill(*node);
        }
        std::thread::sleep(Duration::from_millis(random.below(300)));
        down.sort_unstable();
        down.dedup();
        down.into_iter().for_each(|node| nodes.serve(node, None));
        let told = client.wait().unwrap().success();
        let at = format!("kill {kill} of COLOAD_SEED={seed}");
        let found = seen(&nodes, &at);
        assert!(!told || found.contains(&loads), "{at}: a load that succeeded is gone");
        assert!((0..loads).all(|load| found.contains(&load)), "{at}: an earlier load is gone");
        load(&nodes, random.below(4) as usize, &file);
        loads += 1;
        assert_eq!(seen(&nodes, &at).len() as u64, loads, "{at}");
    }
    // Nothing is left of what is done.
    let left = std::fs::read_dir(nodes.path("place/prepared")).unwrap().count();
    assert_eq!(left, 0, "marks are left");
}

/// Symptom: a thread of a load into a cluster panicked, and its client waited for ever.
#[test]
fn a_client_whose_thread_panics_ends_with_an_error() {
    use std::sync::Arc;

    use coload_load::{Hooks, LoadRequest, RemoteOptions, Resources};

    let nodes = with_table(3);
    let file = write(&nodes, 0);
    let inputs = coload_input::expand_inputs(&[nodes.path(&file).display().to_string()]).unwrap();
    let schema = coload_ddl::parse_columns("load BIGINT, k BIGINT, v VARCHAR").unwrap();
    let dialect = coload_source::Dialect::default();
    let request = LoadRequest::new(inputs, "t".to_owned(), schema, dialect);
    let resources = Resources { chunk_bytes: 5_000, threads: 2, ..Resources::default() };
    let hooks =
        Hooks { after_task: Some(Arc::new(|_| panic!("a test wants it"))), ..Hooks::default() };
    let mut remote = RemoteOptions::new(format!("127.0.0.1:{}", nodes.port(0)));
    remote.patience = Duration::from_secs(5);
    let error = coload_load::load(&request, &resources, &hooks, &remote).unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error:?}");
    assert!(seen(&nodes, "a panic").is_empty());
    load(&nodes, 1, &file);
    assert_eq!(seen(&nodes, "again"), [0]);
}
