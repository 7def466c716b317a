//! When a load is one that was done before.

use coload_load::RemoteWork;
use coload_receive::ReceiveOptions;
use coload_store::{LoadMode, OnMissing};

use crate::setup::{ALL, Options, Server, load_remote, options, records, rows};

/// Symptom: after load, TRUNCATE and load the table was empty; after three replacing loads it held the second. Cause: a load
/// was a no-op because it had been done, and not because the table held what it brought.
#[test]
fn a_load_is_a_no_op_while_its_table_holds_what_it_brought() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let files = ["a", "b"].map(|name| folder.path().join(format!("{name}.csv")));
    std::fs::write(&files[0], records(700)).unwrap();
    std::fs::write(&files[1], records(900)).unwrap();
    for (number, placement) in [ALL, RemoteWork::Pipe, RemoteWork::Seq].into_iter().enumerate() {
        let table = format!("t{number}");
        let mut remote = server.remote();
        remote.work = placement;
        let load = |file: usize, mode| {
            let mut options = options(&files[file], &table);
            options.mode = mode;
            let report = load_remote(&options, &remote).unwrap();
            (report.already, rows(&server.store, &table)[0].len(), report)
        };
        let append = || load(0, LoadMode::Append);
        let first = append();
        assert_eq!((first.0, first.1), (false, 700));
        let again = append();
        assert_eq!((again.0, again.1), (true, 700));
        assert_eq!(again.2.id, first.2.id);
        let held = &again.2.held;
        let version = format!("as version {}", first.2.version);
        assert!(held.contains(&version) && held.contains("700 rows"), "{held}");
        // An older version is read meanwhile, which has segments of the same load.
        let reader = server.store.snapshot().unwrap();
        server.store.truncate_table(&table).unwrap().unwrap();
        let third = append();
        assert_eq!((third.0, third.1), (false, 700), "{placement:?}");
        assert_ne!(third.2.id, first.2.id);
        assert!(append().0);
        server.store.drop_table(&table, OnMissing::Fail).unwrap();
        assert_eq!((append().0, append().0), (false, true));
        let replace = |file| {
            let (already, count, _) = load(file, LoadMode::Replace);
            (already, count)
        };
        assert_eq!(replace(0), (false, 700));
        assert_eq!(replace(1), (false, 900));
        assert_eq!(replace(0), (false, 700), "{placement:?}");
        assert_eq!(replace(0), (true, 700));
        assert_eq!(append().1, 1_400, "the appended rows were replaced before");
        drop(reader);
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// A load whose one input has this name, as its user wrote it.
fn named(mut load: Options, name: &str) -> Options {
    let mut inputs = load.inputs.iter().collect::<Vec<_>>();
    inputs[0].name = name.into();
    load.inputs = inputs.into();
    load
}

/// Symptom: a file of the same name in another folder was refused for seven days while the first load was unfinished.
#[test]
fn a_file_of_the_same_name_in_another_folder_is_another_load() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let place = |dir: &str, count| {
        let dir = folder.path().join(dir);
        std::fs::create_dir(&dir).unwrap();
        let file = dir.join("t.csv");
        std::fs::write(&file, records(count)).unwrap();
        // As both users name it.
        named(options(&file, "t"), "t.csv")
    };
    let remote = server.remote();
    let mut first = place("a", 4_000);
    first.hooks.confirm = None;
    let cancel = std::sync::Arc::clone(&first.hooks.cancel);
    first.hooks.progress = Some(std::sync::Arc::new(move |progress| {
        if progress.rows() > 1_000 {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    load_remote(&first, &remote).unwrap_err();
    if server.store.list_journals().unwrap().is_empty() {
        panic!("the first load left nothing");
    }
    let second = place("b", 500);
    assert_eq!(load_remote(&second, &remote).unwrap().rows, 500);
    // One that was changed where it lies is not: what is there already would be of another file.
    std::fs::write(folder.path().join("a/t.csv"), records(300)).unwrap();
    let changed = named(options(&folder.path().join("a/t.csv"), "t"), "t.csv");
    let error = load_remote(&changed, &remote).unwrap_err().to_string();
    assert!(error.contains("is unfinished") && error.contains("--abort"), "{error}");
}
