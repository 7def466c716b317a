#![allow(clippy::unwrap_used)]
use std::path::Path;

use coload_ddl::parse_columns;
use proptest::prelude::*;

use super::*;
use crate::map::{Node, NodeId, ShardBy};
use crate::{Folder, Hold, Prepared};

fn maps(folder: &Path) -> Maps {
    Maps::new(Arc::new(Folder::open(folder).unwrap()))
}

fn add_node(maps: &Maps, id: u128) {
    maps.change(|map| {
        let (id, joined) = (NodeId::from_u128(id), map.version);
        map.nodes.push(Node { id, address: format!("coload://n{}", id.as_u128()), joined });
        Ok(Change::Changed(()))
    })
    .unwrap();
}

fn with_table(folder: &Path, nodes: u128) -> (Maps, u64) {
    let maps = maps(folder);
    maps.open_or_create().unwrap();
    (1..=nodes).for_each(|id| add_node(&maps, id));
    let schema = parse_columns("a BIGINT").unwrap();
    let add = |map: &mut Map| {
        map.add_table("t", schema.clone(), ShardBy::Columns(vec![0]), 8).map(Change::Changed)
    };
    let (_, table) = maps.change(add).unwrap();
    (maps, table)
}

fn prepare(maps: &Maps, load: LoadId, node: u128, table: u64) {
    let version = maps.current().unwrap().version;
    let mark = Prepared { version, table, rows: 10, fits: Fits::Always };
    maps.put_prepared(load, NodeId::from_u128(node), mark).unwrap();
}

#[test]
fn two_that_change_the_map_at_once_both_do() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("place");
    let first = maps(&root);
    std::thread::scope(|scope| {
        for thread in 0..4_u128 {
            let root = &root;
            scope.spawn(move || {
                // As other processes do, each reads for itself.
                let maps = maps(root);
                maps.open_or_create().unwrap();
                (0..20).for_each(|n| add_node(&maps, thread * 100 + n));
            });
        }
    });
    let map = first.current().unwrap();
    assert_eq!((map.version, map.nodes.len()), (81, 80));
    let mut ids: Vec<NodeId> = map.nodes.iter().map(|node| node.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 80);
    // Each was told the version that has its change.
    let mut joined: Vec<u64> = map.nodes.iter().map(|node| node.joined).collect();
    joined.sort_unstable();
    assert!(joined.iter().copied().eq(2..=81));
}

#[test]
fn a_load_is_committed_when_all_leaves_have_prepared_it_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let (maps, table) = with_table(folder.path(), 3);
    let load = LoadId::from_u128(9);
    for node in 1..=3 {
        assert!(
            matches!(maps.commit(load, table, Tried::Again), Err(Error::Unavailable(_))),
            "{node}"
        );
        prepare(&maps, load, node, table);
    }
    let done = maps.commit(load, table, Tried::Again).unwrap();
    assert_eq!((done.rows, done.already), (30, false));
    let again = maps.commit(load, table, Tried::Again).unwrap();
    assert_eq!((again.version, again.already), (done.version, true));
    assert!(matches!(maps.abort(load, None), Err(Error::Refused(_))));
    assert!(maps.commit(load, table + 1, Tried::Again).is_err(), "another table");
}

#[test]
fn a_load_that_was_given_up_is_not_committed_by_what_was_prepared_before() {
    let folder = tempfile::tempdir().unwrap();
    let (maps, table) = with_table(folder.path(), 2);
    let load = LoadId::from_u128(9);
    prepare(&maps, load, 1, table);
    prepare(&maps, load, 2, table);
    maps.abort(load, None).unwrap();
    assert!(maps.commit(load, table, Tried::Again).is_err());
    // Leaf 2 prepares it anew; leaf 1 has not heard of it.
    prepare(&maps, load, 2, table);
    assert!(maps.commit(load, table, Tried::Again).is_err());
    prepare(&maps, load, 1, table);
    assert!(maps.commit(load, table, Tried::Again).is_ok());
}

#[test]
fn a_commit_and_an_abort_at_once_decide_one_thing() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let (own, table) = with_table(folder.path(), 2);
        let load = LoadId::from_u128(round);
        (1..=2).for_each(|node| prepare(&own, load, node, table));
        let (committed, aborted) = std::thread::scope(|scope| {
            let commit = scope.spawn(|| maps(folder.path()).commit(load, table, Tried::Again));
            let abort = scope.spawn(|| maps(folder.path()).abort(load, None));
            (commit.join().unwrap(), abort.join().unwrap())
        });
        assert_ne!(committed.is_ok(), aborted.is_ok(), "{committed:?} {aborted:?}");
        let map = own.current().unwrap();
        assert_eq!(map.loaded(load, table).is_some(), committed.is_ok());
        assert_eq!(map.aborted(load).is_some(), aborted.is_ok());
    }
}

#[test]
fn events_that_all_nodes_have_done_are_forgotten_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let (maps, _) = with_table(folder.path(), 2);
    let begun = maps.current().unwrap().version;
    for n in 0..40 {
        maps.abort(LoadId::from_u128(n), None).unwrap();
    }
    // One of two has done them.
    maps.put_applied(NodeId::from_u128(1), begun + 40).unwrap();
    maps.abort(LoadId::from_u128(40), None).unwrap();
    assert_eq!(maps.current().unwrap().events.len(), 41);
    maps.put_applied(NodeId::from_u128(2), begun + 30).unwrap();
    maps.abort(LoadId::from_u128(41), None).unwrap();
    let map = maps.current().unwrap();
    assert_eq!((map.events.len(), map.horizon), (12, begun + 30));
    assert!(map.events.iter().all(|event| event.version > map.horizon));
}

#[test]
fn a_version_that_was_removed_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (sleeper, _) = with_table(folder.path(), 1);
    let asleep = sleeper.current().unwrap();
    let others = maps(folder.path());
    for n in 0..(VERSIONS_KEPT + 200) {
        others.abort(LoadId::from_u128(n.into()), None).unwrap();
        if n % 100 == 0 {
            others.put_applied(NodeId::from_u128(1), others.current().unwrap().version).unwrap();
        }
    }
    assert!(!others.place().exists(&name_of(asleep.version + 1)).unwrap(), "it was removed");
    // The sleeper made its version from what it read long ago.
    let mut stale = Map::clone(&asleep);
    stale.version += 1;
    let name = name_of(stale.version);
    assert_eq!(sleeper.place().create(&name, &stale.encode()).unwrap(), Created::Now);
    assert!(matches!(sleeper.check_newly_made(stale.version), Err(Error::Unavailable(_))));
    // Awake, it reads the newest one.
    assert_eq!(sleeper.current().unwrap().version, others.current().unwrap().version);
}

#[test]
fn a_name_that_is_no_version_is_not_read() {
    assert_eq!(version_of("00000000000000000007.map"), Some(7));
    for other in [
        "7.map",
        "0000000000000000007x.map",
        "00000000000000000007.map.tmp",
        "99999999999999999999.map",
    ] {
        assert_eq!(version_of(other), None, "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Loads, nodes that come back, and aborts in any order: a load is decided once, and only when all had prepared it.
    #[test]
    fn what_is_decided_stays_and_needs_all_leaves(steps in proptest::collection::vec((0_u8..3, 0_u128..3, 1_u128..3), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (maps, table) = with_table(folder.path(), 2);
        // For each load: which leaves hold it since it was given up last, and whether it is committed.
        let mut model = [([false; 2], false); 3];
        for (step, load, node) in steps {
            let (held, committed) = &mut model[load as usize];
            let id = LoadId::from_u128(load);
            match step {
                0 if !*committed => {
                    prepare(&maps, id, node, table);
                    held[node as usize - 1] = true;
                }
                1 => {
                    let done = maps.commit(id, table, Tried::Again);
                    prop_assert_eq!(done.is_ok(), *committed || held.iter().all(|h| *h), "{:?}", done);
                    *committed |= done.is_ok();
                }
                2 => {
                    let given_up = maps.abort(id, None);
                    prop_assert_eq!(given_up.is_err(), *committed);
                    *held = [false; 2];
                }
                _ => {}
            }
        }
        let map = maps.current().unwrap();
        for (load, (_, committed)) in model.iter().enumerate() {
            let of = What::Loaded { load: LoadId::from_u128(load as u128), table };
            prop_assert_eq!(map.events.iter().filter(|e| e.what == of).count(), usize::from(*committed));
        }
    }
}

#[test]
fn a_table_that_a_load_makes_is_there_with_its_rows_or_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (maps, _) = with_table(&folder.path().join("place"), 2);
    let schema = parse_columns("a BIGINT").unwrap();
    let make = |name: &str, node| {
        let make = |map: &mut Map| {
            let id = map.add_table(name, schema.clone(), ShardBy::InTurn, 4)?;
            map.tables.last_mut().unwrap().making = Some(NodeId::from_u128(node));
            Ok(Change::Changed(id))
        };
        maps.change(make).unwrap().1
    };
    let (kept, gone, left) = (make("kept", 1), make("gone", 1), make("left", 2));
    let map = maps.current().unwrap();
    assert!(map.table("kept").is_none() && map.table_of(kept).is_some());
    let again = maps.change(|map| {
        map.add_table("KEPT", schema.clone(), ShardBy::InTurn, 4).map(Change::Changed)
    });
    assert!(again.unwrap_err().to_string().contains("being made"));
    let (load, other) = (LoadId::from_u128(1), LoadId::from_u128(2));
    (1..3).for_each(|node| prepare(&maps, load, node, kept));
    maps.commit(load, kept, Tried::Again).unwrap();
    maps.abort(other, Some(gone)).unwrap();
    // The node that made it has started again.
    maps.drop_unmade(|table| table.making == Some(NodeId::from_u128(2))).unwrap();
    let map = maps.current().unwrap();
    assert!(map.table("kept").is_some());
    assert!(map.table_of(gone).is_none() && map.table_of(left).is_none());
    let late = maps.commit(other, gone, Tried::Again);
    assert!(matches!(late, Err(Error::Invalid(_))), "{late:?}");
    // What is made is not dropped with a load.
    maps.abort(LoadId::from_u128(3), Some(kept)).unwrap();
    assert!(maps.current().unwrap().table("kept").is_some());
}

#[test]
fn an_object_store_is_a_place_that_a_lost_answer_does_not_confuse() {
    let server = coload_object_server::ObjectServer::start().unwrap();
    let options = coload_places::PlaceOptions {
        s3_endpoint: Some(server.url()),
        signs: false,
        ..coload_places::PlaceOptions::default()
    };
    let open = || {
        let place = crate::Objects::open("s3://bucket/some/cluster", &options);
        Maps::new(Arc::new(place.unwrap()))
    };
    let first = open();
    std::thread::scope(|scope| {
        for thread in 0..3_u128 {
            let open = &open;
            scope.spawn(move || {
                let maps = open();
                maps.open_or_create().unwrap();
                (0..10).for_each(|n| add_node(&maps, thread * 100 + n));
            });
        }
    });
    let map = first.current().unwrap();
    assert_eq!((map.version, map.nodes.len()), (31, 30));
    let schema = parse_columns("a BIGINT").unwrap();
    let add =
        |map: &mut Map| map.add_table("t", schema.clone(), ShardBy::InTurn, 8).map(Change::Changed);
    let (_, table) = first.change(add).unwrap();
    let load = LoadId::from_u128(5);
    map.nodes.iter().for_each(|node| prepare(&first, load, node.id.as_u128(), table));
    // The version is made, and nobody hears of it: it is found to be made.
    let has_lost = std::sync::atomic::AtomicBool::new(false);
    server.faults().set(move |request| {
        let is_map = request.method == "PUT" && request.path.ends_with(".map");
        let first = is_map && !has_lost.swap(true, std::sync::atomic::Ordering::AcqRel);
        first.then_some(coload_object_server::Fault::Cut(0))
    });
    let done = first.commit(load, table, Tried::Again).unwrap();
    assert!(!done.already && done.rows == 300);
    assert_eq!(first.current().unwrap().loaded(load, table), Some(done.version));
    let names = first.place().list("prepared").unwrap();
    assert_eq!(names.len(), 30);
    first.forget_prepared(load, map.nodes[0].id).unwrap();
    first.forget_prepared(load, map.nodes[0].id).unwrap();
    assert_eq!(first.place().list("prepared").unwrap().len(), 29);
    drop(server);
    assert!(matches!(first.current(), Err(Error::Unavailable(_))));
}

#[test]
fn a_table_that_is_held_for_a_load_takes_no_other_and_the_load_only_while_it_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let (maps, table) = with_table(&folder.path().join("place"), 2);
    let (held, other) = (LoadId::from_u128(5), LoadId::from_u128(6));
    let node = NodeId::from_u128;
    let prepare_held = |leaf: u128| {
        let version = maps.current().unwrap().version;
        let mark = Prepared { version, table, rows: 10, fits: Fits::IfHeld };
        maps.put_prepared(held, node(leaf), mark).unwrap();
    };
    let say = |leaf: u128, since: u64, refused: Option<&str>| {
        let refused = refused.map(str::to_owned);
        maps.put_verdict(held, node(leaf), &Verdict { since, refused }).unwrap();
    };
    let unavailable = |done: Result<Commit>| matches!(done, Err(Error::Unavailable(_)));
    (1..=2).for_each(prepare_held);
    (1..=2).for_each(|leaf| prepare(&maps, other, leaf, table));
    assert!(unavailable(maps.commit(held, table, Tried::Again)), "it is not held");
    let Hold::Held(since) = maps.hold(table, held, node(1)).unwrap() else { panic!("held") };
    assert_eq!(maps.hold(table, held, node(1)).unwrap(), Hold::Held(since));
    assert!(matches!(maps.hold(table, other, node(2)).unwrap(), Hold::By(by) if by.load == held));
    assert!(unavailable(maps.commit(other, table, Tried::Again)));
    assert!(matches!(maps.begin_move((other, node(1)), &[node(2)]), Err(Error::Unavailable(_))));
    say(1, since, None);
    assert!(unavailable(maps.commit(held, table, Tried::Again)), "a leaf has said nothing");
    say(2, since, Some("a key is there"));
    assert!(matches!(maps.commit(held, table, Tried::Again), Err(Error::Invalid(_))));
    // What was said of a hold that is over does not count for the next.
    say(2, since, None);
    maps.let_go(|_, holder| holder.load == held).unwrap();
    assert!(!maps.commit(other, table, Tried::Again).unwrap().already);
    let Hold::Held(again) = maps.hold(table, held, node(2)).unwrap() else { panic!("held") };
    assert!(again > since && unavailable(maps.commit(held, table, Tried::Again)));
    (1..=2).for_each(|leaf| say(leaf, again, None));
    assert_eq!(maps.commit(held, table, Tried::Again).unwrap().rows, 20);
    assert_eq!(maps.current().unwrap().table_of(table).unwrap().holder, None);
    // Another is held, and given up.
    let gone = LoadId::from_u128(7);
    assert!(matches!(maps.hold(table, gone, node(1)).unwrap(), Hold::Held(_)));
    maps.abort(gone, None).unwrap();
    assert_eq!(maps.current().unwrap().table_of(table).unwrap().holder, None);
}
