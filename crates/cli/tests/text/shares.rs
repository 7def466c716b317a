//! Shares of a load of objects, by a server in this process.

use coload_object_server::ObjectServer;

use crate::support::{Run, Sandbox};

const ID: &str = "6f1ed002ab5595859014ebf0951522d9";

fn share(
    sandbox: &Sandbox,
    server: &ObjectServer,
    input: &str,
    worker: &str,
    more: &[&str],
) -> Run {
    let url = server.url();
    let mut args = vec!["load", input, "--into", "store", "--table", "t", "--report", "json"];
    args.extend(["--worker", worker, "--load-id", ID, "--s3-endpoint", &url]);
    args.extend(["--no-sign-request", "--columns", "id BIGINT, name VARCHAR, price DECIMAL(8,2)"]);
    args.extend(more);
    sandbox.run(&args).ok()
}

/// Bytes of an object that were asked for.
fn fetched(server: &ObjectServer, path: &str, bytes: u64) -> u64 {
    let gets = server.seen();
    let gets = gets.iter().filter(|request| request.method == "GET" && request.path == path);
    gets.map(|get| get.range(bytes).map_or(bytes, |range| range.end - range.start)).sum()
}

/// What is read ahead was all objects of a load, whoever reads them.
#[test]
fn a_worker_fetches_what_it_reads() {
    let (sandbox, server) = (Sandbox::new(), ObjectServer::start().unwrap());
    let row = |n: usize| format!("{n},\"name of a thing {}\",{}.25\n", n % 97, n % 1000);
    let text: String = (0..500_000).map(row).collect();
    let bytes = text.len() as u64;
    server.put("bucket/data/t.csv", format!("id,name,price\n{text}").as_bytes());
    let mut last = String::new();
    for worker in 1..=3 {
        let before = fetched(&server, "bucket/data/t.csv", bytes);
        let input = "s3://bucket/data/t.csv";
        let more = ["--split-min", "1MiB"];
        last = share(&sandbox, &server, input, &format!("{worker}/3"), &more).out;
        let own = fetched(&server, "bucket/data/t.csv", bytes) - before;
        // Beside its third: the sample, twice, and what is looked at for each part.
        assert!(own < bytes / 3 + (7 << 20), "worker {worker} fetched {own} of {bytes} bytes");
    }
    assert!(last.contains("\"load_rows\": 500000"), "{last}");
}

/// Where quotes have newlines, what is before the parts of a worker was read for each of them.
#[test]
fn what_is_before_parts_is_read_once_for_all() {
    let (sandbox, server) = (Sandbox::new(), ObjectServer::start().unwrap());
    let row = |n: usize| format!("{n},\"name of a thing {}\nand more\",{}.25\n", n % 97, n % 1000);
    let text: String = (0..300_000).map(row).collect();
    let bytes = text.len() as u64;
    server.put("bucket/data/t.csv", format!("id,name,price\n{text}").as_bytes());
    let mut last = String::new();
    for worker in 1..=3 {
        let before = fetched(&server, "bucket/data/t.csv", bytes);
        let input = "s3://bucket/data/t.csv";
        let more = ["--split-min", "256KiB"];
        last = share(&sandbox, &server, input, &format!("{worker}/3"), &more).out;
        let own = fetched(&server, "bucket/data/t.csv", bytes) - before;
        assert!(own < bytes * 4, "worker {worker} fetched {own} of {bytes} bytes");
    }
    assert!(last.contains("\"load_rows\": 300000"), "{last}");
}

#[test]
fn many_objects_are_met_page_by_page() {
    let (sandbox, server) = (Sandbox::new(), ObjectServer::start().unwrap());
    for number in 0..2_500 {
        let text = format!("id,name,price\n{number},a,1.5\n");
        server.put(&format!("bucket/many/{number:05}.csv"), text.as_bytes());
    }
    server.put("bucket/many/below/not.csv", b"id,name,price\n1,a,1\n".as_slice());
    let url = server.url();
    let plan = ["plan", "s3://bucket/many/*.csv", "--workers", "3", "--explicit-max", "100"];
    let places = ["--s3-endpoint", &url, "--no-sign-request"];
    let plan = sandbox.run(&[&plan[..], &places].concat()).ok().out;
    assert!(plan.contains("2,500 inputs") && plan.contains("hash"), "{plan}");
    let mut last = String::new();
    for worker in ["3/3", "1/3", "2/3"] {
        let more = ["--explicit-max", "100"];
        last = share(&sandbox, &server, "s3://bucket/many/*.csv", worker, &more).out;
    }
    assert!(last.contains("\"load_rows\": 2500"), "{last}");
    let other =
        sandbox.run(&["plan", "s3://bucket/none/*.csv", "--workers", "3", "--s3-endpoint", &url]);
    assert_ne!(other.status, Some(0));
}
