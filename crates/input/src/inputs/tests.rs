#![allow(clippy::unwrap_used)]

use std::io::Write;

use super::*;

/// A folder with `a.csv`, `b.csv`, `c d.txt`, `x[1].csv` and a folder `sub.csv`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.csv", "1\n"), ("b.csv", "22\n"), ("c d.txt", ""), ("x[1].csv", "x")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("sub.csv")).unwrap();
    folder
}

fn expand(folder: &tempfile::TempDir, args: &[&str]) -> Result<Inputs> {
    let path = |arg: &&str| match *arg {
        "-" => "-".to_owned(),
        arg => folder.path().join(arg).to_string_lossy().into_owned(),
    };
    expand_inputs(&args.iter().map(path).collect::<Vec<_>>())
}

fn names(inputs: &Inputs) -> Vec<String> {
    inputs.iter().map(|input| input.name.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn files_globs_and_standard_input_keep_their_order() {
    let folder = folder();
    let inputs = expand(&folder, &["c d.txt", "-", "?.csv"]).unwrap();
    assert_eq!(names(&inputs), ["c d.txt", "-", "a.csv", "b.csv"]);
    let bytes: Vec<Option<u64>> = inputs.iter().map(|input| input.bytes()).collect();
    assert_eq!(bytes, [Some(0), None, Some(2), Some(3)]);
}

#[test]
fn a_name_with_brackets_is_a_file_if_there_is_one() {
    let folder = folder();
    assert_eq!(names(&expand(&folder, &["x[1].csv"]).unwrap()), ["x[1].csv"]);
    assert_eq!(names(&expand(&folder, &["[a]*.csv"]).unwrap()), ["a.csv"]);
}

#[test]
fn what_cannot_be_read_is_told() {
    let folder = folder();
    for (args, expected) in [
        (&["none.csv"][..], "cannot open"),
        (&["a.csv/b"], "cannot open"),
        (&["*.json"], "no file matches"),
        (&["sub.csv"], "is a directory: name its files"),
        (&["a.csv", "*.csv"], "is named twice"),
        (&["-", "-"], "- is named twice, as - and as -"),
        (&["[.csv"], "is no glob"),
    ] {
        let error = expand(&folder, args).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(expand_inputs(&[]).unwrap_err().to_string().starts_with("no input"));
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("a.csv");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything; then there is nothing to tell.
    if fs::File::open(&path).is_err() {
        let error = expand(&folder, &["a.csv"]).unwrap_err();
        assert!(error.to_string().contains("cannot open"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn links_to_one_file_are_one_input() {
    let folder = folder();
    std::os::unix::fs::symlink(folder.path().join("a.csv"), folder.path().join("l.csv")).unwrap();
    let error = expand(&folder, &["a.csv", "l.csv"]).unwrap_err();
    assert!(error.to_string().contains("is named twice"), "{error}");
}

#[test]
fn a_file_that_changes_is_told() {
    let folder = folder();
    let input = expand(&folder, &["a.csv"]).unwrap().at(0);
    input.check_unchanged().unwrap();
    let path = folder.path().join("a.csv");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"2\n").unwrap();
    let error = input.check_unchanged().unwrap_err();
    assert!(error.to_string().contains("it had 2 bytes and has 4"), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(input.check_unchanged().is_err());
}

#[test]
fn table_names_come_from_file_names() {
    let name = |path: &str| {
        let source = InputSource::Stream { path: path.into() };
        InputFile { name: path.to_owned(), source }.table_name()
    };
    assert_eq!(name("/data/lineitem.tbl"), "lineitem");
    assert_eq!(name("sales 2024-01.csv"), "sales_2024_01");
    assert_eq!(name("2024.csv"), "t2024");
    assert_eq!(name("orders.csv.GZ"), "orders");
    assert_eq!(name("orders.zst"), "orders");
}
