//! How many waits for a server a load of many objects costs.

use std::time::{Duration, Instant};

use coload_object_server::{Fault, ObjectServer};

use super::{find, numbered};

const WAIT: Duration = Duration::from_millis(20);
const OBJECTS: usize = 200;

/// Symptom: 500 small objects took 10 s of a server at 20 ms, one after the other.
#[test]
fn small_objects_are_not_waited_for_one_by_one() {
    let server = ObjectServer::start().unwrap();
    let bytes = numbered(1000);
    (0..OBJECTS).for_each(|n| server.put(&format!("bucket/{n:04}"), bytes.clone()));
    let objects = find(&server, "s3://bucket/").unwrap();
    server.faults().set(|_| Some(Fault::Slow(WAIT)));
    let read_all = || {
        let started = Instant::now();
        let mut buffer = vec![0; 1000];
        for number in 0..OBJECTS {
            objects.at(number).read_at(&mut buffer, 0).unwrap();
            assert!(buffer == bytes, "{number}");
        }
        started.elapsed()
    };
    let looked = read_all();
    objects.read_ahead(8 << 20);
    let (read, again) = (read_all(), read_all());
    let one_by_one = WAIT * OBJECTS as u32;
    for time in [looked, read, again] {
        assert!(time < one_by_one / 3, "{looked:?}, {read:?}, {again:?}");
    }
    // They are so few bytes that they are kept.
    assert_eq!(server.seen().len(), 1 + OBJECTS);
}

/// As text that is measured before it is parsed.
#[test]
fn objects_that_are_read_twice_are_not_waited_for_one_by_one() {
    let server = ObjectServer::start().unwrap();
    let bytes = numbered(300_000);
    (0..OBJECTS).for_each(|n| server.put(&format!("bucket/{n:04}"), bytes.clone()));
    let objects = find(&server, "s3://bucket/").unwrap();
    server.faults().set(|_| Some(Fault::Slow(WAIT)));
    objects.read_ahead(16 << 20);
    let started = Instant::now();
    let mut buffer = vec![0; bytes.len()];
    for number in (0..OBJECTS).chain(0..OBJECTS) {
        objects.at(number).read_at(&mut buffer, 0).unwrap();
        assert!(buffer == bytes, "{number}");
    }
    let time = started.elapsed();
    assert!(time < WAIT * OBJECTS as u32 / 2, "{time:?}");
    assert!(server.seen().len() < 2 * OBJECTS + 40, "{}", server.seen().len());
}
