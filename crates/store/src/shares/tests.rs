//! Shares of a load in a store, without inputs.

#![allow(clippy::unwrap_used)]

use coload_ddl::parse_columns;

use super::*;
use crate::{LoadMode, OnConflict};

const SORT_WITH: SortWith = SortWith { threads: 1, memory: 64 << 20 };

fn target() -> LoadTarget {
    let schema = parse_columns("a BIGINT").unwrap();
    LoadTarget { name: "t".into(), schema, mode: LoadMode::Append }
}

fn share(number: u32, count: u32) -> FinishedShare {
    FinishedShare {
        of: ShareOf { load: LoadId::from_u128(77), number, count },
        plan: 5,
        target: target(),
        on_conflict: OnConflict::Error,
        delete_where: None,
        started_us: -4,
        rows: 0,
        rejects: u64::from(number),
        bytes: 10,
        input_count: 1,
        inputs: vec![format!("{number}.csv")],
        segments: Vec::new(),
        spans: vec![SplitSpan { input: 0, from: 5, to: 9, start: 6, end: 9 }],
        gone: Some(Deletions::default()),
    }
}

fn finish(store: &Store, share: &FinishedShare) {
    let id = LoadId::from_u128(u128::from(share.of.number) << 64);
    let journal = store.begin_journal(id, &target(), Vec::new()).unwrap();
    journal.finish_share(share).unwrap();
    assert_eq!(journal.finished_share().unwrap().as_ref(), Some(share));
}

fn publish(store: &Store, share: &FinishedShare) -> Result<SharesAre> {
    store.publish_shares(share.of, "t", SORT_WITH, |_| Ok(()))
}

#[test]
fn shares_are_published_together_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(folder.path().join("s")).unwrap();
    let mut all: Vec<FinishedShare> = (1..=3).map(|number| share(number, 3)).collect();
    // Each in an input of its own.
    (0..).zip(&mut all).for_each(|(input, share)| share.spans[0].input = input);
    for (number, share) in [(2, &all[1]), (3, &all[2])] {
        finish(&store, share);
        let SharesAre::Incomplete(numbers) = publish(&store, share).unwrap() else { panic!() };
        assert!(numbers.contains(&number) && numbers.len() < 3);
    }
    finish(&store, &all[0]);
    let refused = store.publish_shares(all[0].of, "t", SORT_WITH, |total| {
        assert_eq!(total, SharesTotal { rows: 0, rejects: 6 });
        Err(Error::Invalid("too many".into()))
    });
    assert!(refused.is_err() && store.snapshot().unwrap().table("t").is_none());
    let SharesAre::Published(done) = publish(&store, &all[0]).unwrap() else { panic!() };
    assert_eq!((done.rejects, done.segments), (6, 0));
    let snapshot = store.snapshot().unwrap();
    let record = &snapshot.table("t").unwrap().loads[0];
    assert_eq!((record.key, record.inputs.len(), record.bytes), (all[0].of.load, 3, 30));
    assert!(store.list_journals().unwrap().is_empty());
    assert!(matches!(publish(&store, &all[0]).unwrap(), SharesAre::Known(_)));
    // Left by a crash.
    finish(&store, &all[1]);
    assert!(matches!(publish(&store, &all[1]).unwrap(), SharesAre::Known(_)));
    assert!(store.list_journals().unwrap().is_empty());
}

/// Two that begin at the same time do not see each other.
#[test]
fn shares_of_different_plans_are_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(folder.path().join("s")).unwrap();
    let (mut first, mut second) = (share(1, 2), share(2, 2));
    (first.spans[0].input, second.plan) = (1, 6);
    finish(&store, &first);
    finish(&store, &second);
    let refused = publish(&store, &second).unwrap_err().to_string();
    assert!(refused.contains("shares 1 and 2") && refused.contains("--abort"), "{refused}");
    assert!(store.snapshot().unwrap().table("t").is_none());
}

#[test]
fn a_share_that_began_within_a_record_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(folder.path().join("s")).unwrap();
    let (mut first, mut second) = (share(1, 2), share(2, 2));
    first.spans = vec![SplitSpan { input: 0, from: 0, to: 5, start: 0, end: 7 }];
    finish(&store, &first);
    finish(&store, &second);
    assert_eq!(publish(&store, &second).unwrap(), SharesAre::Misread(2));
    assert_eq!(publish(&store, &second).unwrap(), SharesAre::Incomplete(vec![1]));
    second.spans[0].start = 7;
    finish(&store, &second);
    assert!(matches!(publish(&store, &second).unwrap(), SharesAre::Published(_)));
}

#[test]
fn a_cut_file_of_a_share_is_refused() {
    let bytes = share(2, 3).encode().unwrap();
    assert_eq!(FinishedShare::decode(&bytes).unwrap(), share(2, 3));
    for cut in 0..bytes.len() {
        assert!(FinishedShare::decode(&bytes[..cut]).is_err());
    }
}
