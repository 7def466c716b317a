//! Loads of keys that are there already, beside a map: the order of the input decides, for any number of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coload_ddl::{Key, KeyKind};
use coload_load::{LoadReport, SharedLoad, SplitRules, plan_splits};
use coload_source::{Dialect, Reject};
use coload_store::{
    KeyCounts, LoadId, OnConflict, SettledShares, ShareOf, SharesAre, SharesReady, SortWith, Store,
};
use coload_types::{Error, Plain, Result, Value};
use coload_wire::{PlanPrint, RejectLimit};
use proptest::prelude::*;

use crate::support::*;

const COLUMNS: &str = "k VARCHAR NOT NULL, v BIGINT, t VARCHAR";

type Given = (String, Option<i64>);

/// What happens to keys that are there, and the value of records that delete.
type Rule = (OnConflict, Option<i64>);

fn load_rows(
    store: &Store,
    dir: &tempfile::TempDir,
    inputs: &[Vec<Given>],
    rule: Rule,
    threads: usize,
) -> Result<LoadReport> {
    load(store, &options_of(dir, inputs, rule, threads))
}

fn options_of(
    dir: &tempfile::TempDir,
    inputs: &[Vec<Given>],
    (on_conflict, deletes): Rule,
    threads: usize,
) -> Options {
    let line = |(k, v): &Given| match v {
        Some(v) => format!("{k},{v},text {v}\n"),
        None => format!("{k},,\n"),
    };
    let paths: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(number, rows)| {
            let text: String = rows.iter().map(line).collect();
            write(dir, &format!("{number}.csv"), text.as_bytes())
        })
        .collect();
    let mut options = options(&paths, COLUMNS, Dialect::default());
    let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
    options.request.schema = options.request.schema.clone().with_key(Some(key)).unwrap();
    options.request.on_conflict = on_conflict;
    options.request.rejects_file = Some(dir.path().join("rejects.csv"));
    options.request.delete_where = deletes.map(|value| (1, value.to_string()));
    options.resources.threads = threads;
    options.resources.chunk_bytes = 64;
    options.resources.fragments_per_partition = 2;
    options
}

/// The rows that are not deleted, by their keys.
fn live_rows(store: &Store) -> BTreeMap<String, Option<i64>> {
    let snapshot = store.snapshot().unwrap();
    let mut rows = BTreeMap::new();
    let Some(table) = snapshot.table("t") else { return rows };
    for entry in &table.segments {
        let file = snapshot.segment(table, entry).unwrap();
        let deleted = snapshot.deleted_rows(entry).unwrap();
        let columns = [0, 1].map(|column| {
            let mut plain = Plain::empty(file.physical(column));
            (0..file.page_rows().len())
                .for_each(|page| file.decode_page(column, page, &mut plain).unwrap());
            plain
        });
        for row in (0..entry.rows).filter(|row| !deleted.as_ref().is_some_and(|d| d.contains(*row)))
        {
            let Some(Value::Bytes(key)) = columns[0].get(row as usize) else { panic!("no key") };
            let value = columns[1].get(row as usize).map(|v| match v {
                Value::Int(v) => v,
                other => panic!("{other:?}"),
            });
            let before = rows.insert(String::from_utf8(key.to_vec()).unwrap(), value);
            assert_eq!(before, None, "a key is there twice");
        }
    }
    assert_eq!(table.rows(), rows.len() as u64);
    rows
}

/// What a load makes of a map; `None` when it fails.
fn model(
    there: &BTreeMap<String, Option<i64>>,
    given: &[Given],
    (on_conflict, deletes): Rule,
) -> Option<(BTreeMap<String, Option<i64>>, KeyCounts)> {
    let (mut own, mut counts) = (BTreeMap::new(), KeyCounts::default());
    // Of the row that is there and the one that comes the latter wins.
    let wins = |there: &Option<i64>, comes: &Option<i64>| match on_conflict {
        OnConflict::Error | OnConflict::IgnoreUnique(_) => None,
        OnConflict::Ignore | OnConflict::IgnoreKey | OnConflict::Reject => Some(false),
        OnConflict::Replace | OnConflict::ReplaceOnce => Some(true),
        OnConflict::Newest(_) => Some(comes >= there),
    };
    for (key, value) in given {
        let Some(before) = own.get(key) else {
            own.insert(key.clone(), *value);
            continue;
        };
        counts.twice += 1;
        if wins(before, value)? {
            own.insert(key.clone(), *value);
        }
    }
    let mut next = there.clone();
    for (key, value) in own {
        let goes = deletes.is_some() && value == deletes;
        match next.get(&key).map(|there| wins(there, &value)) {
            None | Some(Some(true)) if goes => {
                counts.deleting += 1;
                counts.deleted += u64::from(next.remove(&key).is_some());
                continue;
            }
            None => counts.added += 1,
            Some(None) => return None,
            Some(Some(true)) => counts.replaced += 1,
            Some(Some(false)) => {
                counts.ignored += 1;
                continue;
            }
        }
        next.insert(key, value);
    }
    if on_conflict == OnConflict::Reject {
        counts.rejected = counts.ignored + counts.twice;
        (counts.ignored, counts.twice) = (0, 0);
    }
    Some((next, counts))
}

/// A record that is set aside: input, line, key and reason.
type Told = (String, u64, String, String);

/// The records of inputs that are rejects, in their order.
fn rejected(there: &BTreeMap<String, Option<i64>>, inputs: &[Vec<Given>]) -> Vec<Told> {
    let mut came = BTreeSet::new();
    let mut told = Vec::new();
    for (number, rows) in inputs.iter().enumerate() {
        for (line, (key, _)) in rows.iter().enumerate() {
            let what = match (came.insert(key), there.contains_key(key)) {
                (false, _) => "that came before in the load",
                (true, true) => "that is in the table already",
                (true, false) => continue,
            };
            let reason = format!("is a key of PRIMARY KEY (k) {what}");
            told.push((format!("{number}.csv"), line as u64 + 1, key.clone(), reason));
        }
    }
    told
}

/// The inputs and lines of all rejects, as their file has them.
fn rejected_places(dir: &tempfile::TempDir) -> Vec<(String, u64)> {
    let file = std::fs::read_to_string(dir.path().join("rejects.csv")).unwrap();
    let place = |line: &str| {
        let mut fields = line.split(',');
        let name = fields.next().unwrap().rsplit('/').next().unwrap().to_owned();
        (name, fields.next().unwrap().parse().unwrap())
    };
    file.lines().skip(1).map(place).collect()
}

/// The first rejects of a load.
fn told(report: &LoadReport) -> Vec<Told> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = |reject: &Reject| {
        let name = reject.place.file.rsplit('/').next().unwrap().to_owned();
        assert_eq!(reject.column.as_deref(), Some("k"));
        assert!(reject.raw.starts_with(reject.value()), "{reject:?}");
        (name, reject.place.line, text(reject.value()), reject.reason.clone())
    };
    report.rejects.iter().map(told).collect()
}

fn drawn_inputs() -> impl Strategy<Value = Vec<Vec<Given>>> {
    let key = prop_oneof![Just(String::new()), "[ab]{1,3}", Just("x".repeat(40))];
    let value = proptest::option::of(0..9i64);
    let rows = proptest::collection::vec((key, value), 1..25);
    proptest::collection::vec(rows, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_order_of_the_input_decides(
        loads in proptest::collection::vec(
            (drawn_inputs(), prop_oneof![
                Just((OnConflict::Error, None)), Just((OnConflict::Ignore, None)),
                Just((OnConflict::Replace, None)), Just((OnConflict::Newest(1), None)),
                Just((OnConflict::Reject, None)),
                Just((OnConflict::Replace, Some(4))), Just((OnConflict::Newest(1), Some(4))),
            ], 1..4usize),
            1..6,
        ),
    ) {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut there = BTreeMap::new();
        for (inputs, rule, threads) in &loads {
            let given: Vec<Given> = inputs.concat();
            let loaded = load_rows(&store, &dir, inputs, *rule, *threads);
            match (model(&there, &given, *rule), loaded) {
                (Some((next, counts)), Ok(report)) => {
                    prop_assert_eq!(report.keys, Some(counts));
                    prop_assert_eq!(report.rows(), counts.kept());
                    let wanted = match rule.0 {
                        OnConflict::Reject => rejected(&there, inputs),
                        _ => Vec::new(),
                    };
                    let places: Vec<(String, u64)> =
                        wanted.iter().map(|(name, line, ..)| (name.clone(), *line)).collect();
                    prop_assert_eq!(rejected_places(&dir), places);
                    let first = &wanted[..wanted.len().min(10)];
                    prop_assert_eq!(&told(&report)[..], first);
                    prop_assert_eq!(report.reject_count(), counts.rejected);
                    let snapshot = store.snapshot().unwrap();
                    let remembered = snapshot.table("t").unwrap().loads.last().unwrap().clone();
                    prop_assert_eq!(remembered.rejects, counts.rejected);
                    prop_assert_eq!(report.records(), given.len() as u64);
                    there = next;
                }
                (None, Err(error)) => prop_assert!(error.to_string().contains("PRIMARY KEY (k)"), "{error}"),
                (wanted, loaded) => prop_assert!(false, "{wanted:?} {loaded:?}"),
            }
            prop_assert_eq!(&live_rows(&store), &there);
        }
    }
}

/// Loads all shares of a load, beginning with the one behind `first`; what the last told.
fn load_shares(
    store: &Store,
    dir: &tempfile::TempDir,
    options: &Options,
    (workers, first, id): (usize, usize, u128),
) -> Result<LoadReport> {
    let rules = SplitRules { explicit_max: 100, split_bytes_min: 1 };
    let plan = plan_splits(&options.request, workers, rules).unwrap();
    let mut last = Err(Error::Invalid("no workers".into()));
    for number in (0..workers).map(|n| (n + first) % workers + 1) {
        let mut request = options.request.clone();
        request.rejects_file = Some(dir.path().join(format!("rejects-{number}.csv")));
        let print = PlanPrint::default();
        let shared = SharedLoad::new(request, plan.clone(), print, LoadId::from_u128(id)).unwrap();
        last = shared.load(number as u32, &options.resources, &options.hooks, store);
        if last.is_err() {
            break;
        }
        // As the file of one process.
        let of_load = dir.path().join(format!("rejects-{number}.csv.load"));
        if of_load.exists() {
            std::fs::rename(of_load, dir.path().join("rejects.csv")).unwrap();
        }
    }
    last
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_order_of_the_inputs_decides_for_any_number_of_workers(
        loads in proptest::collection::vec(
            (drawn_inputs(), prop_oneof![
                Just((OnConflict::Ignore, None)), Just((OnConflict::Replace, None)), Just((OnConflict::Newest(1), None)),
                Just((OnConflict::Reject, None)), Just((OnConflict::Reject, None)), Just((OnConflict::Replace, Some(4))),
            ], 1..5usize, 0..5usize),
            1..5,
        ),
    ) {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut there = BTreeMap::new();
        for (number, (inputs, rule, workers, first)) in loads.iter().enumerate() {
            let given: Vec<Given> = inputs.concat();
            let _ = std::fs::remove_file(dir.path().join("rejects.csv"));
            let options = options_of(&dir, inputs, *rule, 2);
            let how = (*workers, *first, number as u128 + 1);
            let report = load_shares(&store, &dir, &options, how).unwrap();
            let (next, counts) = model(&there, &given, *rule).unwrap();
            let shares = report.shares.as_ref().unwrap();
            prop_assert_eq!(shares.keys, Some(counts));
            prop_assert_eq!((shares.rows, shares.rejects), (counts.kept(), counts.rejected));
            if counts.rejected > 0 {
                let wanted = rejected(&there, inputs);
                let places: Vec<(String, u64)> =
                    wanted.iter().map(|(name, line, ..)| (name.clone(), *line)).collect();
                prop_assert_eq!(rejected_places(&dir), places);
                prop_assert_eq!(&told(&report)[..], &wanted[..wanted.len().min(10)]);
            } else {
                prop_assert!(!dir.path().join("rejects.csv").exists());
            }
            let remembered = store.snapshot().unwrap().table("t").unwrap().loads.last().unwrap().clone();
            prop_assert_eq!(remembered.rejects, counts.rejected);
            there = next;
            prop_assert_eq!(&live_rows(&store), &there);
        }
        prop_assert!(store.list_journals().unwrap().is_empty());
    }
}

/// Another writer comes while records of shares are told, and shares are dropped meanwhile.
#[test]
fn shares_that_meet_another_writer_are_told_once_more() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let given = |keys: &[&str]| keys.iter().map(|k| ((*k).to_owned(), Some(1))).collect::<Vec<_>>();
    let reject = (OnConflict::Reject, None);
    load_rows(&store, &dir, &[given(&["a", "b"])], reject, 2).unwrap();
    let mut options = options_of(&dir, &[given(&["c", "a", "d", "c", "e"])], reject, 2);
    options.request.max_rejects = RejectLimit::Count(1);
    // All are complete, and the records are over the limit: nothing is published.
    let refused = load_shares(&store, &dir, &options, (2, 0, 9)).unwrap_err().to_string();
    assert!(refused.contains("one over --max-rejects 1"), "{refused}");
    let of = ShareOf { load: LoadId::from_u128(9), number: 2, count: 2 };
    let ready = || {
        let with = SortWith { threads: 2, memory: 64 << 20 };
        match store.ready_shares(of, "t", with, |_| Ok(())).unwrap() {
            SharesReady::Ready(ready) => *ready,
            SharesReady::Are(are) => panic!("{are:?}"),
        }
    };
    let numbers = |ready: &mut coload_store::ReadyShare| -> Vec<u64> {
        ready.find_rejects().unwrap().iter().map(|row| row.number).collect()
    };
    let (mut first, mut second) = (ready(), ready());
    assert_eq!((numbers(&mut first), numbers(&mut second)), (vec![1, 3], vec![1, 3]));
    load_rows(&store, &scratch(), &[given(&["d"])], reject, 1).unwrap();
    let SettledShares::Moved(mut first) = store.publish_told(of, "t", first).unwrap() else {
        panic!("published without a word of \"d\"");
    };
    assert_eq!(numbers(&mut first), [1, 2, 3]);
    // Without having been told of it nobody publishes.
    let with = SortWith { threads: 1, memory: 64 << 20 };
    let untold = store.publish_shares(of, "t", with, |_| Ok(())).unwrap_err().to_string();
    assert!(untold.contains("nothing was loaded"), "{untold}");
    let published = store.publish_told(of, "t", *first).unwrap();
    let SettledShares::Are(SharesAre::Published(all)) = published else { panic!("{published:?}") };
    assert_eq!((all.rows, all.rejects, all.keys.unwrap().rejected), (2, 3, 3));
    // Who comes second has published nothing.
    let known = store.publish_told(of, "t", second).unwrap();
    assert!(matches!(known, SettledShares::Are(SharesAre::Known(_))), "{known:?}");
    assert_eq!(live_rows(&store).len(), 5);
}

#[test]
fn conflicts_are_settled_alike_by_any_number_of_threads() {
    let rows =
        |seed: i64| (0..1500).map(move |i| (format!("k{}", i * 7919 % 700), Some(i * seed % 97)));
    let first: Vec<Given> = rows(3).step_by(2).collect();
    let second: Vec<Given> = rows(5).collect();
    for rule in [
        (OnConflict::Ignore, None),
        (OnConflict::Reject, None),
        (OnConflict::Replace, None),
        (OnConflict::Newest(1), None),
        (OnConflict::Replace, Some(4)),
    ] {
        let made = [1, 2, 5].map(|threads| {
            let dir = scratch();
            let store = Store::create_or_open(dir.path().join("s")).unwrap();
            load_rows(&store, &dir, std::slice::from_ref(&first), rule, threads).unwrap();
            let report =
                load_rows(&store, &dir, std::slice::from_ref(&second), rule, threads).unwrap();
            (live_rows(&store), report.keys, rejected_places(&dir), segment_bytes(&store, "t"))
        });
        assert!(made[1..].iter().all(|other| *other == made[0]), "{rule:?}");
    }
}

/// The bits of -0 and of NaNs of either sign were compared, so that `--delete-where v=0` left the record of -0 a row of the table.
#[test]
fn floats_that_delete_are_compared_as_sql_does() {
    for (value, gone) in [("0", ["a", "b"]), ("-0", ["a", "b"]), ("nan", ["d", "e"])] {
        for columns in ["k VARCHAR NOT NULL, v DOUBLE", "k VARCHAR NOT NULL, v REAL"] {
            let dir = tempfile::tempdir().unwrap();
            let input = write(&dir, "a.csv", b"a,-0\nb,0\nc,1\nd,nan\ne,-nan\nf,\n");
            let store = Store::create_or_open(dir.path().join("store")).unwrap();
            let mut options = options(&[input], columns, Dialect::default());
            let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
            options.request.schema = options.request.schema.clone().with_key(Some(key)).unwrap();
            options.request.on_conflict = OnConflict::Replace;
            options.request.delete_where = Some((1, value.to_owned()));
            load(&store, &options).unwrap();
            let snapshot = store.snapshot().unwrap();
            let table = snapshot.table("t").unwrap();
            let mut left = Vec::new();
            for entry in &table.segments {
                let file = snapshot.segment(table, entry).unwrap();
                let deleted = snapshot.deleted_rows(entry).unwrap();
                let mut keys = Plain::empty(file.physical(0));
                (0..file.page_rows().len())
                    .for_each(|page| file.decode_page(0, page, &mut keys).unwrap());
                let is_left = |row: &u64| !deleted.as_ref().is_some_and(|d| d.contains(*row));
                for row in (0..entry.rows).filter(is_left) {
                    let Some(Value::Bytes(key)) = keys.get(row as usize) else { panic!("no key") };
                    left.push(String::from_utf8(key.to_vec()).unwrap());
                }
            }
            left.sort();
            let expected: Vec<_> =
                ["a", "b", "c", "d", "e", "f"].into_iter().filter(|k| !gone.contains(k)).collect();
            assert_eq!(left, expected, "{columns}: {value}");
        }
    }
}

#[test]
fn records_that_meet_another_writer_are_told_once_more() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let given = |keys: &[&str]| keys.iter().map(|k| ((*k).to_owned(), Some(1))).collect::<Vec<_>>();
    let reject = (OnConflict::Reject, None);
    load_rows(&store, &dir, &[given(&["a", "b"])], reject, 2).unwrap();
    let mut options = options_of(&dir, &[given(&["c", "a", "d", "c", "e"])], reject, 2);
    let (other_store, asked) = (store.clone(), Arc::new(AtomicUsize::new(0)));
    let times = Arc::clone(&asked);
    options.hooks.confirm = Some(Arc::new(move || {
        times.fetch_add(1, Ordering::SeqCst);
        // The other writer has "d" when the records were told already, and the load is about to be published.
        let other = scratch();
        load_rows(&other_store, &other, &[given(&["d"])], reject, 1).map(|_| ())
    }));
    let report = load(&store, &options).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let places: Vec<(u64, String)> =
        told(&report).into_iter().map(|(_, line, key, _)| (line, key)).collect();
    assert_eq!(places, [(2, "a".into()), (3, "d".into()), (4, "c".into())]);
    assert_eq!(rejected_places(&dir).len(), 3);
    assert_eq!(report.keys.map(|keys| (keys.added, keys.rejected)), Some((2, 3)));
    assert_eq!(live_rows(&store).len(), 5);
}

#[test]
fn keys_at_the_edges_are_told_whole_or_as_far_as_messages_go() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let long = "y".repeat(64 << 10);
    let mut given: Vec<Given> = vec![(String::new(), Some(1)), (long.clone(), None)];
    // One value many times: of these the first is added.
    given.extend((0..100_000).map(|i| ("same".to_owned(), Some(i))));
    given.extend([(long.clone(), Some(2)), (String::new(), None)]);
    let mut options = options_of(&dir, &[given], (OnConflict::Reject, None), 3);
    options.resources.chunk_bytes = 64 << 10;
    let report = load(&store, &options).unwrap();
    assert_eq!(report.keys.map(|keys| (keys.added, keys.rejected)), Some((3, 100_001)));
    let places = rejected_places(&dir);
    assert_eq!((places[0].1, places.len()), (4, 100_001));
    assert_eq!(
        places[99_998..].iter().map(|(_, line)| *line).collect::<Vec<_>>(),
        [100_002, 100_003, 100_004]
    );
    assert_eq!(live_rows(&store).keys().map(String::len).collect::<Vec<_>>(), [0, 4, 64 << 10]);
}
