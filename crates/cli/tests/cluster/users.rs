//! Nodes with users, rights and TLS: a node believes another no more than a client.

use std::io::Write;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::nodes::{Nodes, Run};

/// The line of a user, whose password is "secret" and his name.
fn line(nodes: &Nodes, user: &str, rights: &str) -> String {
    let mut command = nodes.command(&["hash-password"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "secret{user}").unwrap();
    let hash = Run::of(child.wait_with_output().unwrap()).done().out;
    format!("{user} {} {rights}\n", hash.trim())
}

/// A root, a certificate of this machine and its key, as files.
fn certificates(nodes: &Nodes) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "a root");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    nodes.write("ca.pem", issuer.pem());
    nodes.write("server.pem", certificate.pem());
    nodes.write("server.key", key.serialize_pem());
}

fn start(token: &str) -> Nodes {
    Nodes::start_with(3, |nodes| {
        certificates(nodes);
        let users =
            [("ada", "admin:*"), ("nodes", "read:* load:*"), ("eve", "read:other load:other")];
        let lines = users.map(|(user, rights)| line(nodes, user, rights)).concat();
        nodes.write("users.txt", lines);
        let flags =
            ["--users", "users.txt", "--tls-certificate", "server.pem", "--tls-key", "server.key"];
        let ca = nodes.path("ca.pem").display().to_string();
        let variables = vec![("COLOAD_TLS_CA", ca), ("COLOAD_TOKEN", token.to_owned())];
        (flags.map(str::to_owned).to_vec(), variables)
    })
}

fn sql(nodes: &Nodes, user: &str, node: usize, text: &str) -> Run {
    let address = nodes.address_of(user, node);
    let mut command = nodes.command(&["sql", "--store", &address, "--output", "csv", "-c", text]);
    command.env("COLOAD_PASSWORD", format!("secret{user}")).env_remove("COLOAD_TOKEN");
    Run::of(command.output().unwrap())
}

fn load(nodes: &Nodes, user: &str, node: usize, table: &str) -> Run {
    let into = format!("{}/{table}", nodes.address_of(user, node));
    let mut command =
        nodes.command(&["load", "a.csv", "--no-header", "--columns", "k BIGINT", "--into", &into]);
    command.env("COLOAD_PASSWORD", format!("secret{user}")).env_remove("COLOAD_TOKEN");
    Run::of(command.output().unwrap())
}

#[test]
fn nodes_log_in_at_each_other_and_rights_are_those_of_who_asks() {
    let nodes = start("nodes.secretnodes");
    nodes.write("a.csv", (0..500).map(|k| format!("{k}\n")).collect::<String>());
    sql(&nodes, "ada", 0, "CREATE TABLE t (k BIGINT) SHARD BY (k) SHARDS 6").done();
    let refused = sql(&nodes, "eve", 1, "CREATE TABLE u (k BIGINT)");
    assert!(refused.status != Some(0), "{refused:?}");
    load(&nodes, "ada", 1, "t").done();
    for user in ["ada", "nodes"] {
        let answer = sql(&nodes, user, 2, "SELECT count(*), sum(k) FROM t").done();
        assert!(answer.out.contains("500,124750"), "{answer:?}");
    }
    // Who may add rows does so at any node, which calls the leaves as the user of nodes; others do not.
    sql(&nodes, "ada", 2, "INSERT INTO t VALUES (1000), (2000)").done();
    let refused = sql(&nodes, "eve", 2, "INSERT INTO t VALUES (1000)");
    assert!(refused.status != Some(0), "{refused:?}");
    let answer = sql(&nodes, "ada", 1, "SELECT count(*), sum(k) FROM t").done();
    assert!(answer.out.contains("502,127750"), "{answer:?}");
    let refused = sql(&nodes, "eve", 0, "ALTER CLUSTER REBALANCE");
    assert!(refused.status != Some(0), "{refused:?}");
    sql(&nodes, "ada", 0, "ALTER CLUSTER REBALANCE").done();
    // Who may not see it does not: no rows, no name in the map, and no load.
    assert!(sql(&nodes, "eve", 0, "SELECT count(*) FROM t").status != Some(0));
    assert!(load(&nodes, "eve", 0, "t").status != Some(0));
    let address = nodes.address_of("eve", 0);
    let mut status = nodes.command(&["cluster", "status", &address]);
    status.env("COLOAD_PASSWORD", "secreteve").env_remove("COLOAD_TOKEN");
    let status = Run::of(status.output().unwrap()).done().out;
    assert!(!status.contains(" t ") && !status.contains("\nt "), "{status}");
    let answer = sql(&nodes, "ada", 0, "SELECT count(*) FROM t").done();
    assert!(answer.out.contains("502"), "{answer:?}");
}

#[test]
fn a_node_without_the_right_to_read_gets_nothing_of_others() {
    let nodes = start("eve.secreteve");
    nodes.write("a.csv", (0..500).map(|k| format!("{k}\n")).collect::<String>());
    sql(&nodes, "ada", 0, "CREATE TABLE t (k BIGINT) SHARD BY (k) SHARDS 6").done();
    load(&nodes, "ada", 0, "t").done();
    let failed = sql(&nodes, "ada", 0, "SELECT count(*) FROM t");
    assert!(failed.status != Some(0) && failed.err.contains("leaf coloads://"), "{failed:?}");
}

#[test]
fn rows_are_changed_by_who_may_if_the_user_of_nodes_may_too() {
    for (token, works) in [("nodes.secretnodes", false), ("ada.secretada", true)] {
        let nodes = start(token);
        sql(&nodes, "ada", 0, "CREATE TABLE t (k BIGINT) SHARD BY (k) SHARDS 6").done();
        sql(&nodes, "ada", 0, "INSERT INTO t VALUES (1), (2), (3), (4), (5), (6)").done();
        // Who only adds rows takes none away, at whatever node.
        let refused = sql(&nodes, "nodes", 1, "DELETE FROM t WHERE k > 2");
        assert!(refused.status != Some(0) && refused.err.contains("admin"), "{refused:?}");
        let told = sql(&nodes, "ada", 1, "DELETE FROM t WHERE k > 2");
        assert_eq!(told.status == Some(0), works, "{told:?}");
        assert!(works || told.err.contains("admin"), "{told:?}");
        let left = if works { "2" } else { "6" };
        let answer = sql(&nodes, "ada", 2, "SELECT count(*) AS n FROM t").done().out;
        assert_eq!(answer.lines().last(), Some(left));
    }
}
