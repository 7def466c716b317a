//! Inputs that are cut, changed or broken: a message with its place, and a store as it was.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_load::{LoadReport, check_reject_table};
use coload_source::{Dialect, Header};
use coload_store::Store;
use coload_types::{Error, Value};
use coload_wire::RejectLimit;
use tempfile::TempDir;

use crate::support::{Options, load, options, rows, scratch, write};

const COLUMNS: &str = "a INTEGER NOT NULL, b VARCHAR(9)";

/// Loads strictly what `text` holds, in chunks of 64 bytes.
fn strict(
    dir: &TempDir,
    text: &[u8],
    change: impl FnOnce(&mut Options),
) -> coload_types::Result<LoadReport> {
    let path = write(dir, "in.csv", text);
    let mut options = options(&[path], COLUMNS, Dialect::default());
    options.max_rejects = RejectLimit::Count(0);
    options.resources.chunk_bytes = 64;
    change(&mut options);
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, &options)
}

#[test]
fn messages_name_place_value_rule_and_flag() {
    let good = "1,ok\n".repeat(40);
    for (record, place, says) in [
        ("x,y", ":41:1 (byte 200)", "\"x\" is not INTEGER: not a number (column a; try"),
        ("99999999999,y", ":41:1 (byte 200)", "is not INTEGER: out of range"),
        ("1", ":41 (byte 200)", "the record has 1 field and the table 2 columns (try --delimiter"),
        ("1,2,3", ":41 (byte 200)", "the record has 3 fields and the table 2 columns"),
        (",y", ":41:1 (byte 200)", "NULL in a NOT NULL column"),
        ("1,\u{1}0123456789", ":41:2 (byte 200)", "is not VARCHAR(9): too long"),
        (
            "1,\"open",
            ":41 (byte 200)",
            "a quote is opened in the record and not closed (try --quote none",
        ),
        ("1,\"a\"b", ":41:2 (byte 200)", "its quotes do not enclose it"),
    ] {
        let dir = scratch();
        let text = format!("{good}{record}\n{good}");
        let error = strict(&dir, text.as_bytes(), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Input { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains(&format!("in.csv{place}: ")) && error.contains(says), "{error}");
        let store = Store::open(dir.path().join("s")).unwrap();
        assert!(store.snapshot().unwrap().tables().is_empty());
        assert_eq!(std::fs::read_dir(dir.path().join("s/segments")).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(dir.path().join("s/tmp")).unwrap().count(), 0);
    }
    for bytes in [&b"1,\xff\n"[..], b"1,a\0b\n"] {
        let error = strict(&scratch(), bytes, |_| ()).unwrap_err().to_string();
        assert!(error.contains("in.csv:1:2 (byte 0)"), "{error}");
    }
}

/// Symptom: records behind a comment with a quote were missing, and nothing said so.
#[test]
fn a_comment_with_a_quote_does_not_swallow_records() {
    let text = b"1,a\n# a note,\"\n2,b\n3,\"c\"\n";
    let comments = |o: &mut Options| o.dialect.comment = Some(b'#');
    let error = strict(&scratch(), text, comments).unwrap_err().to_string();
    assert!(error.contains("in.csv:2 (byte 4): a quote is opened"), "{error}");
}

#[test]
fn empty_inputs_are_loads_of_no_rows() {
    for (text, header) in [
        (&b""[..], Header::Absent),
        (b"", Header::Present),
        (b"a,b", Header::Present),
        (b"a,b\n", Header::Present),
        (b"\xef\xbb\xbf", Header::Absent),
        (b"\xef\xbb\xbfa,b\r\n", Header::Present),
        (b"\n\n\r\n", Header::Absent),
    ] {
        let dir = scratch();
        let report = strict(&dir, text, |o| o.dialect.header = header).unwrap();
        let segments = report.published.as_ref().unwrap().segments;
        assert_eq!((report.rows(), segments), (0, 0), "{text:?}");
        let store = Store::open(dir.path().join("s")).unwrap();
        assert_eq!(store.snapshot().unwrap().table("t").unwrap().rows(), 0);
    }
}

#[test]
fn records_longer_than_chunks_and_windows_are_read() {
    let long = "x".repeat(2 << 20);
    let lines = "a line\n".repeat(150_000);
    let text = format!("1,a\n2,{long}\n3,b\n4,\"{lines}\"\n5,c\n");
    for chunk_bytes in [1_000, 100_000, 10 << 20] {
        let dir = scratch();
        let path = write(&dir, "in.csv", text.as_bytes());
        let mut options = options(&[path], "a INTEGER, b VARCHAR", Dialect::default());
        options.resources.chunk_bytes = chunk_bytes;
        options.resources.threads = 3;
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        load(&store, &options).unwrap();
        let text = |s: &str| Some(Value::Bytes(s.as_bytes().into()));
        let found: Vec<_> = rows(&store, "t").into_iter().map(|r| r[1].clone()).collect();
        assert!(found == [text("a"), text(&long), text("b"), text(&lines), text("c")]);
    }
}

/// Symptom: a chunk whose speculated start lay in a quoted field read on for the closing quote to the
/// end of the input, or failed the load for a record that was too long.
#[test]
fn a_wrong_speculation_does_not_read_the_rest_of_the_input() {
    let (head, tail) = ("2,b,d\n".repeat(666), "2,b,d\n".repeat(300_000));
    // The first newline after 4,000 bytes is inside quotes, and the closing quote opens the next line.
    let text = format!("{head}1,\"aaaaaaaa\n\",c\n{tail}");
    let dir = scratch();
    let path = write(&dir, "in.csv", text.as_bytes());
    let columns = "a INTEGER, b VARCHAR, c VARCHAR";
    let mut options = options(&[path], columns, Dialect::default());
    options.max_rejects = RejectLimit::Count(0);
    options.resources.chunk_bytes = 4_000;
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    assert_eq!(load(&store, &options).unwrap().rows(), 300_667);
}

/// Calls `change` while the file is read: the progress callback comes from the thread that waits.
fn changed_while_read(change: impl Fn(&PathBuf) + Send + Sync + 'static) -> (TempDir, String) {
    let dir = scratch();
    let path = write(&dir, "in.csv", "1,some text\n".repeat(200_000).as_bytes());
    let mut options = options(std::slice::from_ref(&path), COLUMNS, Dialect::default());
    options.resources.chunk_bytes = 4_096;
    let done = AtomicBool::new(false);
    options.hooks.progress = Some(Arc::new(move |progress| {
        if progress.bytes() > 0 && !done.swap(true, Ordering::SeqCst) {
            change(&path);
        }
    }));
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let error = load(&store, &options).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(store.snapshot().unwrap().tables().is_empty());
    (dir, error.to_string())
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_loaded() {
    let (_dir, error) = changed_while_read(|path| {
        OpenOptions::new().write(true).open(path).unwrap().set_len(100_000).unwrap();
    });
    assert!(error.contains("in.csv: the file") && error.contains("2400000 bytes"), "{error}");
    let (_dir, error) = changed_while_read(|path| {
        OpenOptions::new().append(true).open(path).unwrap().write_all(b"2,more\n").unwrap();
    });
    assert!(error.contains("it had 2400000 bytes and has 2400007"), "{error}");
    let (_dir, error) = changed_while_read(|path| {
        OpenOptions::new().write(true).open(path).unwrap().write_all(b"9").unwrap();
    });
    assert!(error.contains("in.csv: the file was written to while it was read"), "{error}");
}

#[test]
fn a_load_that_is_stopped_leaves_the_store_as_it_was() {
    let dir = scratch();
    let path = write(&dir, "in.csv", "1,some text\n".repeat(100_000).as_bytes());
    let mut options = options(&[path], COLUMNS, Dialect::default());
    options.resources.chunk_bytes = 4_096;
    let cancel = Arc::clone(&options.hooks.cancel);
    options.hooks.progress = Some(Arc::new(move |_| cancel.store(true, Ordering::SeqCst)));
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("the load was stopped"), "{error}");
    assert!(store.snapshot().unwrap().tables().is_empty());
    assert_eq!(std::fs::read_dir(dir.path().join("s/tmp")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let dir = scratch();
    let path = write(&dir, "in.csv", b"1,a\n");
    let mut options = options(std::slice::from_ref(&path), COLUMNS, Dialect::default());
    options.rejects_file = Some(dir.path().join("absent/rejects.csv"));
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("absent/rejects.csv"), "{error}");
    options.rejects_file = None;
    std::fs::remove_file(&path).unwrap();
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("in.csv"), "{error}");
    if !rustix::process::geteuid().is_root() {
        write(&dir, "in.csv", b"1,a\n");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        let error = load(&store, &options).unwrap_err().to_string();
        assert!(error.contains("in.csv"), "{error}");
    }
}

#[test]
fn rejects_become_rows_of_a_table() {
    let dir = scratch();
    let path = write(&dir, "in.csv", b"1,a\nx,b\n2,\xff\n3\n4,a\0b\n");
    let mut options = options(&[path], "a INTEGER, b VARCHAR", Dialect::default());
    let file = dir.path().join("rejects.csv");
    options.rejects_file = Some(file);
    options.rejects_table = Some("bad".to_owned());
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    for times in 1..=2 {
        check_reject_table(&store, "bad").unwrap();
        let before = store.snapshot().unwrap().version();
        let report = load(&store, &options).unwrap();
        assert_eq!((report.rows(), report.reject_count(), report.reject_kinds.len()), (1, 4, 4));
        let version = report.published.as_ref().unwrap().version;
        assert_eq!((version, rows(&store, "bad").len()), (before + 1, 4 * times));
    }
    let text = |value: &Option<Value>| match value {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::Int(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let found: Vec<Vec<String>> =
        rows(&store, "bad")[..4].iter().map(|row| row.iter().map(text).collect()).collect();
    assert_eq!(found[0][1..5], ["2", "4", "a", "x"]);
    assert_eq!(found[1][1..5], ["3", "8", "b", "\u{fffd}"]);
    assert_eq!(found[2][1..5], ["4", "12", "None", "None"]);
    assert_eq!((found[3][4].as_str(), found[3][6].as_str()), ("a\u{fffd}b", "4,a\u{fffd}b"));
    let error = check_reject_table(&store, "t").unwrap_err().to_string();
    assert!(error.contains("other columns"), "{error}");
}
