//! `coload load` from a server of S3 that others wrote and that checks signatures: s3s-fs, which cargo installs into the
//! target folder if it is missing.
#![allow(clippy::unwrap_used)]

#[path = "../it/support.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use support::{Run, Sandbox};

const VERSION: &str = "=0.14.1";
const KEYS: [&str; 2] = ["some-key", "some-secret"];

/// The program. It is installed once: tests that run side by side wait for the first.
fn s3s_fs() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let root = folder.join("s3s");
        let program = root.join("bin/s3s-fs");
        if !program.exists() {
            // In folders of its own: neither the settings of this workspace are meant nor where its crates are built.
            let status = Command::new(env!("CARGO"))
                .args(["install", "s3s-fs", "--locked", "--version", VERSION])
                .args(["--features", "binary", "--debug"])
                .arg("--root")
                .arg(&root)
                .arg("--target-dir")
                .arg(root.join("target"))
                .current_dir(folder)
                .status()
                .unwrap();
            assert!(status.success(), "cargo install s3s-fs: {status}");
            // Only the program is needed on.
            drop(fs::remove_dir_all(root.join("target")));
        }
        program
    });
    &PROGRAM
}

/// A server of the files of a folder.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let program = s3s_fs();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let [key, secret] = KEYS;
        let child = Command::new(program)
            .args(["--access-key", key, "--secret-key", secret, "--host", "127.0.0.1"])
            .args(["--port", &port.to_string()])
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "s3s-fs does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { child, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn run(sandbox: &Sandbox, server: &Server, secret: &str, args: &[&str]) -> Run {
    let mut command = sandbox.command(args);
    command.env("AWS_ACCESS_KEY_ID", KEYS[0]).env("AWS_SECRET_ACCESS_KEY", secret);
    command.env("AWS_ENDPOINT_URL_S3", &server.url);
    Run::of(command.output().unwrap())
}

#[test]
fn tables_of_a_real_server_are_those_of_the_files() {
    let sandbox = Sandbox::new();
    let row = |n: usize| format!("{n},\"näme {}\",{}.25\n", n % 97, n % 1000);
    for file in 0..3 {
        let rows: String = (file * 50_000..(file + 1) * 50_000).map(row).collect();
        let text = format!("id,name,price\n{rows}");
        sandbox.write(&format!("root/bucket/data/f {file}+é.csv"), text);
    }
    sandbox.run(&["load", "root/bucket/data/*.csv", "--into", "parquet:root/bucket/pq"]).ok();
    sandbox.run(&["load", "root/bucket/data/*.csv", "--into", "store", "--table", "files"]).ok();
    let server = Server::start(&sandbox.path("root"));
    let exported = |table: &str| sandbox.run(&["export", "store", table]).ok().out;
    let expected = exported("files");
    for (number, input) in
        ["s3://bucket/data/*.csv", "s3://bucket/data/", "s3://bucket/pq/*.parquet"]
            .iter()
            .enumerate()
    {
        let table = format!("t{number}");
        let args = ["load", input, "--into", "store", "--table", &table];
        run(&sandbox, &server, KEYS[1], &args).ok();
        assert!(exported(&table) == expected, "{input}");
    }
    let one = ["load", "s3://bucket/data/f 0+é.csv", "--into", "store", "--table", "one"];
    run(&sandbox, &server, KEYS[1], &one).ok();
    assert_eq!(exported("one").lines().count(), 50_001);
    run(&sandbox, &server, "another secret", &one).fails(1, &["the server denies it", "f 0+é.csv"]);
    let none = ["load", "s3://bucket/none.csv", "--into", "store"];
    run(&sandbox, &server, KEYS[1], &none).fails(1, &["there is no such object"]);
}

#[test]
fn an_object_that_is_written_over_fails_the_load() {
    let sandbox = Sandbox::new();
    let rows: String = (0..1_500_000).map(|n| format!("{n},{}\n", n % 7)).collect();
    let file = sandbox.write("root/bucket/large.csv", format!("a,b\n{rows}"));
    let server = Server::start(&sandbox.path("root"));
    let args = ["load", "s3://bucket/large.csv", "--into", "store", "--memory", "32MiB"];
    let mut command = sandbox.command(&args);
    command.env("AWS_ACCESS_KEY_ID", KEYS[0]).env("AWS_SECRET_ACCESS_KEY", KEYS[1]);
    command.env("AWS_ENDPOINT_URL_S3", &server.url);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Some of it was read, and most was not.
    std::thread::sleep(Duration::from_millis(500));
    fs::write(file, format!("a,b\n{}", rows.replace('5', "6"))).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    if run.status == Some(0) {
        // The machine was faster: all rows are of one version.
        let rows = sandbox.run(&["export", "store", "large"]).ok().out.lines().count();
        assert_eq!(rows, 1_500_001);
        return;
    }
    run.fails(1, &["s3://bucket/large.csv", "changed", "nothing was loaded"]);
}

#[test]
fn credentials_come_from_a_profile_or_from_a_program() {
    let sandbox = Sandbox::new();
    sandbox.write("root/bucket/a.csv", "a,b\n1,2\n");
    let server = Server::start(&sandbox.path("root"));
    let [key, secret] = KEYS;
    let told =
        format!(r#"{{"Version": 1, "AccessKeyId": "{key}", "SecretAccessKey": "{secret}"}}"#);
    let told = sandbox.write("told.json", told);
    let config = format!(
        "[default]\nendpoint_url = {0}\n[profile keys]\nendpoint_url = {0}\n[profile program]\n\
         credential_process = cat \"{1}\"\nservices = here\n[services here]\ns3 =\n  endpoint_url = {0}\n\
         [profile role]\nrole_arn = arn:aws:iam::1:role/x\nendpoint_url = {0}\n",
        server.url,
        told.display()
    );
    sandbox.write(".aws/config", config);
    let wrong = "[default]\naws_access_key_id = no\naws_secret_access_key = no\n";
    let keys = format!("[keys]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    sandbox.write(".aws/credentials", format!("{wrong}{keys}"));
    let run = |variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&["sniff", "s3://bucket/a.csv"]);
        command.env("HOME", sandbox.path("."));
        command.envs(variables.iter().copied());
        Run::of(command.output().unwrap())
    };
    run(&[("AWS_PROFILE", "keys")]).ok();
    run(&[("AWS_PROFILE", "program")]).ok();
    // What the environment has is before what a profile has.
    run(&[("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)]).ok();
    run(&[]).fails(1, &["the server denies it"]);
    run(&[("AWS_PROFILE", "other")]).fails(1, &["AWS_PROFILE is other, which is not in"]);
    let without = [("AWS_PROFILE", "role"), ("PATH", "/nowhere")];
    run(&without)
        .fails(1, &["s3://bucket/a.csv", "`aws`, which the profile takes credentials from"]);
}
