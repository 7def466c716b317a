//! Lays the package out as it is installed, with the module that cargo has just built, and runs its tests, which are in Python.
//!
//! Python with venv, and PyPI are needed; versions are pinned in `tests/requirements.txt`. `COLOAD_PYTEST` has more arguments for
//! pytest, such as `-k frames`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The module, which is built because this test depends on it.
fn module() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().join("lib_native.so")
}

/// Makes the folder that Python finds the package in.
fn lay_out(folder: &Path, root: &Path) {
    let package = folder.join("coload");
    if package.exists() {
        fs::remove_dir_all(&package).unwrap();
    }
    fs::create_dir_all(&package).unwrap();
    for entry in fs::read_dir(root.join("coload")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    std::os::unix::fs::symlink(module(), package.join("_native.abi3.so")).unwrap();
}

/// Starts a server of a store in a folder, with a user `ada` whose password is `secret`; its address, and that for
/// clients of PostgreSQL.
fn serve(folder: &Path) -> (String, String) {
    let store = coload::Coload::create_or_open(folder).unwrap();
    let database = store.database(coload::DatabaseOptions::default()).unwrap().clone();
    let line = format!("ada {} admin:*\n", coload_serve::hash_password("secret").unwrap());
    let users = coload_serve::Users::parse(&line, "users").unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = coload_serve::ServeOptions {
        users,
        postgres: Some(listen),
        ..coload_serve::ServeOptions::new(listen)
    };
    let server = coload_serve::Server::bind(database, options).unwrap();
    let address = server.address().unwrap();
    let postgres = server.postgres_address().unwrap().unwrap();
    let builder = std::thread::Builder::new().name("server".to_owned());
    coload_threads::spawn(builder, move || server.run(std::future::pending())).unwrap();
    (format!("coload://{address}"), postgres.to_string())
}

#[test]
fn the_package_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let installed = folder.join("venv");
    fs::create_dir_all(&folder).unwrap();
    let setup = root.join("tests/setup.sh");
    let status = Command::new(&setup).arg(&installed).status().unwrap();
    assert!(status.success(), "{} failed (it needs python3 with venv, and PyPI)", setup.display());
    lay_out(&folder, root);
    let store = tempfile::tempdir().unwrap();
    let (server, postgres) = serve(store.path());
    let tests = std::env::var_os("COLOAD_PYTEST").unwrap_or_default();
    let output = Command::new(installed.join("bin/python"))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"])
        .args(tests.to_string_lossy().split_whitespace())
        .arg(root.join("tests"))
        .current_dir(&folder)
        .env("PYTHONPATH", &folder)
        .env("COLOAD_TEST_SERVER", &server)
        .env("COLOAD_TEST_POSTGRES", &postgres)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    println!("{out}");
}
