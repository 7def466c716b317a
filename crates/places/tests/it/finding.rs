//! Which objects an address names.

use coload_object_server::ObjectServer;
use coload_places::find_objects;

use super::{find, options};

fn addresses(server: &ObjectServer, address: &str) -> Vec<String> {
    let (objects, numbers) = find_objects(&[address], &options(server)).unwrap();
    numbers[0].clone().map(|number| objects.at(number).address().to_owned()).collect()
}

fn server() -> ObjectServer {
    let server = ObjectServer::start().unwrap();
    for key in ["a.csv", "b.csv", "x/a.csv", "x/c é.csv", "x/y/a.csv", "x/y/b.json", "x/q?.csv"] {
        server.put(&format!("bucket/{key}"), key);
    }
    server.put("bucket/x/", "");
    server
}

#[test]
fn keys_prefixes_and_globs_name_objects() {
    let server = server();
    for (address, expected) in [
        ("a.csv", &["a.csv"][..]),
        ("*.csv", &["a.csv", "b.csv"]),
        ("x/", &["x/a.csv", "x/c é.csv", "x/q?.csv", "x/y/a.csv", "x/y/b.json"]),
        ("x/*", &["x/a.csv", "x/c é.csv", "x/q?.csv"]),
        ("x/*/a.csv", &["x/y/a.csv"]),
        ("**/a.csv", &["a.csv", "x/a.csv", "x/y/a.csv"]),
        ("[ab].csv", &["a.csv", "b.csv"]),
        // One of that very name comes before a pattern.
        ("x/q?.csv", &["x/q?.csv"]),
        ("x/c é.csv", &["x/c é.csv"]),
    ] {
        let expected: Vec<String> =
            expected.iter().map(|key| format!("s3://bucket/{key}")).collect();
        assert_eq!(addresses(&server, &format!("s3://bucket/{address}")), expected, "{address}");
    }
    // A bucket without a slash is all that it has.
    assert_eq!(addresses(&server, "s3://bucket"), addresses(&server, "s3://bucket/"));
}

#[test]
fn objects_of_http_are_named_one_by_one() {
    let server = server();
    let address = format!("{}/bucket/x/c%20%C3%A9.csv?signature=secret", server.url());
    let shown = format!("{}/bucket/x/c%20%C3%A9.csv", server.url());
    assert_eq!(addresses(&server, &address), [shown]);
    let seen = server.seen();
    assert_eq!(seen[0].query("signature"), Some("secret"), "{seen:?}");
}

#[test]
fn what_is_not_there_is_told() {
    let server = server();
    let gone = format!("{}/bucket/none.csv", server.url());
    for (address, what) in [
        ("s3://bucket/none.csv", "there is no such object"),
        ("s3://bucket/*.parquet", "no object matches it"),
        ("s3://bucket/none/", "there is no object below it"),
        ("s3://bucket/x", "for all below it: s3://bucket/x/"),
        ("s3://bucket/[", "is no glob"),
        ("s3://bucket/a//b.csv", "names no object"),
        ("s3:///a.csv", "no bucket or host"),
        (&gone, "there is no such object"),
    ] {
        let error = find(&server, address).unwrap_err().to_string();
        assert!(error.contains(what), "{address}: {error}");
        assert!(error.contains(address) || error.contains("s3:///"), "{error}");
    }
}

#[test]
fn a_long_list_comes_in_pages() {
    let server = ObjectServer::start().unwrap();
    let keys: Vec<String> = (0..2500).map(|n| format!("bucket/many/{n:05}.csv")).collect();
    keys.iter().for_each(|key| server.put(key, "x"));
    let found = addresses(&server, "s3://bucket/many/*.csv");
    let expected: Vec<String> = keys.iter().map(|key| format!("s3://{key}")).collect();
    assert_eq!(found, expected);
}
