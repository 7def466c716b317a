//! Bytes of objects: looked at, read ahead, in any order.

use std::sync::Arc;
use std::thread;

use coload_object_server::ObjectServer;
use coload_places::{ObjectRef, Objects};
use proptest::prelude::*;

use super::{find, first, numbered};

fn read(object: &ObjectRef, at: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    object.read_at(&mut buffer, at).unwrap();
    buffer
}

/// Objects of these lengths, and what they hold.
fn objects(server: &ObjectServer, lengths: &[usize]) -> (Arc<Objects>, Vec<Vec<u8>>) {
    let held: Vec<Vec<u8>> = lengths.iter().map(|bytes| numbered(*bytes)).collect();
    for (number, bytes) in held.iter().enumerate() {
        server.put(&format!("bucket/o{number:03}"), bytes.clone());
    }
    (find(server, "s3://bucket/").unwrap(), held)
}

#[test]
fn an_object_that_is_looked_at_is_asked_for_few_times() {
    let server = ObjectServer::start().unwrap();
    let bytes = numbered(5 << 20);
    server.put("bucket/o", bytes.clone());
    let object = first(&server, "s3://bucket/o");
    for at in (0..1 << 20).step_by(4096) {
        assert_eq!(read(&object, at, 4096), bytes[at as usize..][..4096]);
    }
    // The length of a footer, and the footer.
    for at in [bytes.len() - 8, bytes.len() - 5000] {
        assert_eq!(read(&object, at as u64, 8), bytes[at..][..8]);
    }
    let asked: Vec<String> = server.seen().into_iter().map(|request| request.method).collect();
    assert_eq!(asked, ["HEAD", "GET", "GET"]);
}

#[test]
fn all_bytes_are_fetched_once_where_they_are_read_in_order() {
    let server = ObjectServer::start().unwrap();
    let lengths = [3 << 20, 0, 10, 9 << 20, 1 << 20];
    let (objects, held) = objects(&server, &lengths);
    objects.read_ahead(8 << 20);
    for (number, bytes) in held.iter().enumerate() {
        let object = objects.at(number);
        for at in (0..bytes.len()).step_by(384 << 10) {
            let count = (bytes.len() - at).min(384 << 10);
            assert_eq!(read(&object, at as u64, count), bytes[at..][..count], "{number} at {at}");
        }
    }
    let fetched: u64 = server
        .seen()
        .iter()
        .filter_map(|request| request.range(u64::MAX))
        .map(|r| r.end - r.start)
        .sum();
    assert_eq!(fetched, lengths.iter().sum::<usize>() as u64);
}

/// As files of columns are read: heads of pages with some bytes behind them, and then the pages; row groups by two threads, and
/// not all columns.
#[test]
fn pages_whose_heads_are_looked_at_are_fetched_once() {
    const GROUP: u64 = 4 << 20;
    const COLUMN: u64 = GROUP / 16;
    const PAGE: u64 = 50_000;
    let server = ObjectServer::start().unwrap();
    let (objects, held) = objects(&server, &[10 * GROUP as usize]);
    let object = objects.at(0);
    let columns = |group: u64| {
        (0..16).filter(|column| column % 5 != 3).map(move |column| {
            let start = group * GROUP + column * COLUMN;
            start..start + COLUMN
        })
    };
    object.will_read((0..10).flat_map(columns));
    objects.read_ahead(16 << 20);
    thread::scope(|scope| {
        for first in 0..2 {
            let (object, held) = (&object, &held[0]);
            scope.spawn(move || {
                for group in (first..10).step_by(2) {
                    for column in columns(group) {
                        let pages = || column.clone().step_by(PAGE as usize);
                        for page in pages() {
                            read(object, page, 256.min(column.end - page) as usize);
                        }
                        for page in pages() {
                            let count = PAGE.min(column.end - page) as usize;
                            let bytes = read(object, page, count);
                            assert!(bytes == held[page as usize..][..count], "at {page}");
                        }
                    }
                }
            });
        }
    });
    let mut fetched: Vec<_> = server.seen().iter().filter_map(|r| r.range(u64::MAX)).collect();
    fetched.sort_by_key(|range| range.start);
    assert!(fetched.windows(2).all(|two| two[0].end <= two[1].start), "{fetched:?}");
}

#[test]
fn what_is_not_read_is_not_fetched() {
    let server = ObjectServer::start().unwrap();
    let (objects, held) = objects(&server, &[20 << 20]);
    let object = objects.at(0);
    let (a, b) = (0..100_000_u64, 15 << 20..(15 << 20) + 100_000_u64);
    object.will_read([a.clone(), b.clone()]);
    objects.read_ahead(8 << 20);
    for range in [a, b] {
        let bytes = read(&object, range.start, 100_000);
        assert_eq!(bytes, held[0][range.start as usize..range.end as usize]);
    }
    let asked: Vec<_> = server.seen().iter().filter_map(|r| r.range(u64::MAX)).collect();
    assert_eq!(asked.iter().map(|r| r.end - r.start).sum::<u64>(), 200_000, "{asked:?}");
}

#[test]
fn threads_that_read_here_and_there_all_get_their_bytes() {
    let server = ObjectServer::start().unwrap();
    let (objects, held) = objects(&server, &[12 << 20, 700, 5 << 20, 300_000]);
    // Far less than is asked for at once.
    objects.read_ahead(2 << 20);
    thread::scope(|scope| {
        for start in 0..8_u64 {
            let (objects, held) = (&objects, &held);
            scope.spawn(move || {
                let mut at = start * 7919;
                for _ in 0..60 {
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let number = (at >> 33) as usize % held.len();
                    let from = (at >> 20) as usize % held[number].len();
                    let count = (held[number].len() - from).min(200_000);
                    let bytes = read(&objects.at(number), from as u64, count);
                    assert!(bytes == held[number][from..][..count], "{number} at {from}");
                }
            });
        }
    });
}

#[test]
fn who_begins_again_gets_what_there_is() {
    let server = ObjectServer::start().unwrap();
    let (objects, held) = objects(&server, &[6 << 20]);
    for bytes in [4 << 20, 32 << 20, 2 << 20] {
        objects.read_ahead(bytes);
        assert_eq!(read(&objects.at(0), 1 << 20, 4 << 20), held[0][1 << 20..5 << 20]);
        objects.look();
        assert_eq!(read(&objects.at(0), 5 << 20, 100), held[0][5 << 20..][..100]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever is said of what will be read, and whatever is read then.
    #[test]
    fn any_reads_give_the_bytes_of_the_object(
        said in prop::option::of(prop::collection::vec((0_u64..3 << 20, 0_u64..400_000), 0..6)),
        ahead in 1_usize..8 << 20,
        reads in prop::collection::vec((0_usize..3 << 20, 1_usize..600_000), 1..20),
    ) {
        let server = ObjectServer::start().unwrap();
        let (objects, held) = objects(&server, &[3 << 20]);
        let object = objects.at(0);
        if let Some(said) = said {
            object.will_read(said.into_iter().map(|(at, bytes)| at..(at + bytes).min(3 << 20)));
        }
        objects.read_ahead(ahead);
        for (at, bytes) in reads {
            let bytes = bytes.min(held[0].len() - at);
            prop_assert!(read(&object, at as u64, bytes) == held[0][at..][..bytes]);
        }
    }
}
