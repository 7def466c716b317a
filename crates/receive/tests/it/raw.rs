//! Fragments that go as text, among others: the rows, the rejects and the accounts are those of a load without them.

use std::fmt::Write;
use std::path::Path;

use coload_ddl::parse_columns;
use coload_load::RemoteWork;
use coload_receive::{Keep, ReceiveOptions};
use coload_source::{Policies, Ragged};
use coload_store::Store;
use coload_transform::DictionaryPolicy;
use coload_types::Error;
use coload_wire::RejectLimit;
use proptest::prelude::*;

use crate::setup::{
    ADAPTIVE, ALL, NONE, Options, RemoteReport, SIZE, Server, load, load_remote, mix, options,
    records, rows,
};

/// Records without quotes, so that every line is one; each of `bad` has a field that is no value.
fn lines(count: u64, bad: &[u64]) -> String {
    let mut text = String::new();
    for i in 0..count {
        let r = mix(i);
        let price =
            if bad.contains(&i) { "12,5x".replace(',', ";") } else { format!("{}.25", r % 999) };
        let city = ["Rom", "Köln", "Oslo", ""][(r % 4) as usize];
        let u = format!("{:08x}-0000-4000-8000-{:012x}", r as u32, r >> 20);
        let _ = writeln!(
            text,
            "{i},{city},{price},2024-0{}-11,n {:x},{}.5,true,{u}",
            r % 9 + 1,
            r % 9999,
            r
        );
    }
    text
}

/// Loads a file into a table of a server, a share of the fragments as text.
fn load_with(
    server: &Server,
    options: &Options,
    placement: RemoteWork,
    share: f64,
) -> RemoteReport {
    let mut remote = server.remote();
    remote.work = placement;
    remote.text_share = Some(share);
    load_remote(options, &remote).unwrap()
}

fn embedded(folder: &Path, options: &Options) -> Store {
    let store = Store::create_or_open(folder.join("embedded")).unwrap();
    load(&store, options).unwrap();
    store
}

#[test]
fn rows_are_the_same_whatever_share_goes_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (name, text) in [("lines", lines(6_000, &[])), ("quoted", records(6_000))] {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let expected = rows(&embedded(folder.path(), &options(&file, name)), name);
        let policies = [ALL, NONE, SIZE, ADAPTIVE];
        for (number, placement) in policies.into_iter().enumerate() {
            for encoding in [DictionaryPolicy::Auto, DictionaryPolicy::Always] {
                let share = [0.3, 0.5, 0.8, 1.0][number];
                let table = format!("{name}{number}{encoding:?}");
                let mut options = options(&file, &table);
                options.resources.dictionaries = encoding;
                let report = load_with(&server, &options, placement, share);
                assert_eq!((report.rows, report.rejects, report.attempts), (6_000, 0, 1));
                assert!(rows(&server.store, &table) == expected, "{table} {placement:?} {share}");
                let raw = report.raw;
                // Chunks that a quoted newline misled are counted twice, and sent parsed.
                let sent = raw.sent as f64 / raw.fragments as f64;
                assert!(sent > share * 0.7 && sent < share * 1.1, "{table}: {raw:?}");
                assert_eq!(raw.handed_back, 0, "{table}: {raw:?}");
            }
        }
    }
}

#[test]
fn records_that_are_no_rows_are_told_as_without_texts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let file = folder.path().join("t.csv");
    // Rejects in the first and the last fragment, two in one, and whole fragments without.
    let bad = [0, 1, 700, 2_500, 2_501, 5_999];
    let mut text = lines(6_000, &bad);
    text = text.replacen("\n100,", "\n\n100,", 1).replacen("\n3000,Rom", "\n3000,Rom,more", 1);
    std::fs::write(&file, text).unwrap();
    let told = |share: f64| {
        let table = format!("t{share}");
        let mut options = options(&file, &table);
        options.max_rejects = RejectLimit::Count(100);
        let rejects = folder.path().join(&table);
        options.rejects_file = Some(rejects.clone());
        let report = load_with(&server, &options, ALL, share);
        let files: Vec<_> = report.files.iter().map(|f| (f.records, f.rows, f.rejects)).collect();
        let rejects = std::fs::read_to_string(rejects).unwrap();
        (report.raw, (files, report.first_rejects, rejects, rows(&server.store, &table)))
    };
    let (none, expected) = told(0.0);
    assert_eq!((none.sent, expected.0.len()), (0, 1));
    assert!(expected.0[0].2 >= 6, "{:?}", expected.0);
    for share in [0.5, 1.0] {
        let (raw, found) = told(share);
        // Of a share, those with such records may all be parsed here.
        let some = share < 1.0 || raw.handed_back > 0;
        assert!(some && raw.handed_back < raw.sent, "{share}: {raw:?}");
        assert!(found == expected, "{share}: {:?} {:?}", found.0, found.1);
    }
}

#[test]
fn a_fragment_of_which_nothing_is_left_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let file = folder.path().join("t.csv");
    let bad: Vec<u64> = (500..1_500).collect();
    std::fs::write(&file, lines(3_000, &bad)).unwrap();
    let mut options = options(&file, "t");
    options.max_rejects = RejectLimit::Count(1_000);
    let report = load_with(&server, &options, ALL, 1.0);
    assert_eq!((report.rows, report.rejects), (2_000, 1_000));
    assert!(report.raw.handed_back > 1, "{:?}", report.raw);
    let ids = &rows(&server.store, "t")[0];
    assert_eq!(ids.len(), 2_000);
    assert!(ids.iter().map(|v| v.clone().unwrap()).is_sorted_by_key(|v| format!("{v:?}").len()));
}

#[test]
fn the_first_reject_over_the_limit_is_the_first_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let file = folder.path().join("t.csv");
    std::fs::write(&file, lines(6_000, &[4_321, 5_000])).unwrap();
    let mut remote = server.remote();
    for share in [0.0, 0.5, 1.0] {
        remote.text_share = Some(share);
        let error = load_remote(&options(&file, "t"), &remote).unwrap_err();
        let Error::Input { place, .. } = &error else { panic!("{error}") };
        assert_eq!((place.line, place.field), (4_322, 3), "{error}");
        assert!(server.store.snapshot().unwrap().table("t").is_none());
    }
}

#[test]
fn records_that_are_mended_are_told_as_without_texts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let file = folder.path().join("t.csv");
    let text =
        lines(3_000, &[]).replacen("\n1000,Rom", "\n1000", 1).replace("\n2000,", "\n2000\n2000,");
    std::fs::write(&file, text).unwrap();
    let told = |share: f64| {
        let table = format!("t{share}");
        let mut options = options(&file, &table);
        options.max_rejects = RejectLimit::Count(10);
        options.dialect.policies = Policies { ragged: Ragged::Pad, ..Policies::default() };
        let report = load_with(&server, &options, NONE, share);
        let mended: Vec<_> = report.files.iter().map(|f| format!("{:?}", f.mended)).collect();
        (mended, report.rows, report.rejects, rows(&server.store, &table))
    };
    let expected = told(0.0);
    assert!(told(1.0) == expected, "{:?}", expected.0);
}

#[test]
fn many_small_files_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let text = lines(2_000, &[]);
    let all: Vec<&str> = text.lines().collect();
    for (number, part) in all.chunks(30).enumerate() {
        // The last record of a file may lack its newline.
        std::fs::write(folder.path().join(format!("p{number:03}.csv")), part.join("\n")).unwrap();
    }
    let pattern = folder.path().join("p*.csv");
    let expected = rows(&embedded(folder.path(), &options(&pattern, "t")), "t");
    let report = load_with(&server, &options(&pattern, "t"), SIZE, 0.7);
    assert!(report.raw.sent > 0 && report.raw.handed_back == 0, "{:?}", report.raw);
    assert_eq!((report.files.len(), report.rows), (67, 2_000));
    assert!(rows(&server.store, "t") == expected);
}

#[test]
fn a_server_that_discards_takes_texts_too() {
    let folder = tempfile::tempdir().unwrap();
    let discard = ReceiveOptions { keep: Keep::Nothing, ..ReceiveOptions::default() };
    let server = Server::start(&folder.path().join("server"), discard);
    let file = folder.path().join("t.csv");
    std::fs::write(&file, lines(2_000, &[])).unwrap();
    let report = load_with(&server, &options(&file, "t"), ALL, 0.5);
    assert_eq!((report.rows, report.raw.handed_back), (2_000, 0));
    assert!(report.raw.sent > 0, "{:?}", report.raw);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_mix_of_texts_and_columns_has_the_segments_and_rows_of_columns(
        count in 1u64..3_000, share in 0.0f64..1.0, placement in 0usize..4, chunk in 1usize..40,
        fragments in 1usize..6, threads in 1usize..4, quoted in any::<bool>(), distinct in 1u64..500,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
        let file = folder.path().join("t.csv");
        let mut text = String::new();
        for i in 0..count {
            let r = mix(i) % distinct;
            let word = if quoted && r.is_multiple_of(7) { "\"a\n,b\"".to_owned() } else { format!("w{r}") };
            let _ = writeln!(text, "{},{word},{}", i % distinct, mix(r));
        }
        std::fs::write(&file, text).unwrap();
        let load = |table: &str| {
            let mut options = options(&file, table);
            options.schema = parse_columns("a INTEGER, b VARCHAR NOT NULL, c DECIMAL(20)").unwrap();
            options.resources.chunk_bytes = chunk << 8;
            options.resources.fragments_per_partition = fragments;
            options.resources.threads = threads;
            options
        };
        let placement = [
            ALL, NONE, SIZE, ADAPTIVE,
        ][placement];
        let without = load_with(&server, &load("all"), ALL, 0.0);
        let with = load_with(&server, &load("mixed"), placement, share);
        prop_assert_eq!((with.rows, with.segments, with.partitions), (count, without.segments, without.partitions));
        prop_assert!(rows(&server.store, "mixed") == rows(&server.store, "all"));
        let pages = |table: &str| {
            let snapshot = server.store.snapshot().unwrap();
            let entry = snapshot.table(table).unwrap();
            let segment = |s| snapshot.segment(entry, s).unwrap().page_rows().to_vec();
            entry.segments.iter().map(segment).collect::<Vec<_>>()
        };
        prop_assert_eq!(pages("mixed"), pages("all"));
    }
}
