//! Servers that refuse, end early, are silent, or have another version.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coload_object_server::{Fault, ObjectServer, Request};
use coload_places::{ObjectRef, PlaceOptions, find_objects};
use coload_types::{Error, Result};

use super::{find, first, numbered};

const BYTES: usize = 3 << 20;

/// A server with one object, which was found, and what it holds.
fn server() -> (ObjectServer, ObjectRef, Vec<u8>) {
    let server = ObjectServer::start().unwrap();
    let bytes = numbered(BYTES);
    server.put("bucket/o.csv", bytes.clone());
    let object = first(&server, "s3://bucket/o.csv");
    (server, object, bytes)
}

/// All bytes, read ahead.
fn read_all(object: &ObjectRef) -> Result<Vec<u8>> {
    object.all().read_ahead(16 << 20);
    let mut bytes = vec![0; object.bytes() as usize];
    for (n, part) in bytes.chunks_mut(300_000).enumerate() {
        object.read_at(part, n as u64 * 300_000)?;
    }
    Ok(bytes)
}

/// A fault of the first so many requests for parts.
fn first_gets(count: usize, fault: Fault) -> impl Fn(&Request) -> Option<Fault> {
    let so_far = AtomicUsize::new(0);
    move |request| {
        let is_get = request.method == "GET";
        (is_get && so_far.fetch_add(1, Ordering::Relaxed) < count).then(|| fault.clone())
    }
}

#[test]
fn what_a_server_refuses_for_the_moment_is_asked_for_again() {
    for fault in [Fault::Status(503), Fault::Status(500), Fault::Status(429), Fault::Cut(50)] {
        let (server, object, bytes) = server();
        server.faults().set(first_gets(5, fault.clone()));
        assert!(read_all(&object).unwrap() == bytes, "{fault:?}");
    }
    let (server, object, bytes) = server();
    server.faults().set(first_gets(1, Fault::Silent(Duration::from_secs(1))));
    assert!(read_all(&object).unwrap() == bytes);
    let (server, object, bytes) = server_slow();
    assert!(read_all(&object).unwrap() == bytes);
    drop(server);
}

fn server_slow() -> (ObjectServer, ObjectRef, Vec<u8>) {
    let (server, object, bytes) = server();
    server.faults().set(first_gets(100, Fault::Slow(Duration::from_millis(200))));
    (server, object, bytes)
}

#[test]
fn a_server_that_never_gives_all_is_told() {
    for (fault, what) in [
        (Fault::Status(503), "503"),
        (Fault::Cut(0), "the server's answers end before all is there"),
        (Fault::Silent(Duration::from_secs(4)), "the server has sent nothing for 0.4 s"),
        (Fault::Status(403), "the server denies it"),
        (Fault::Status(401), "the server wants credentials"),
        (Fault::NoParts, "gives no parts of it"),
    ] {
        let (server, object, _) = server();
        server.faults().set(first_gets(usize::MAX, fault.clone()));
        let error = read_all(&object).unwrap_err().to_string();
        assert!(error.contains(what), "{fault:?}: {error}");
        assert!(error.contains("s3://bucket/o.csv"), "{error}");
    }
}

#[test]
fn an_object_that_changes_is_told_with_both_versions() {
    let (server, object, _) = server();
    let mut head = [0; 10];
    object.read_at(&mut head, 0).unwrap();
    server.put("bucket/o.csv", numbered(BYTES));
    let error = read_all(&object).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let error = error.to_string();
    for part in ["s3://bucket/o.csv", "changed", "\"v1\"", "\"v2\"", "nothing was loaded"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// A server that knows nothing of conditions would give the bytes of another version.
#[test]
fn a_change_is_told_where_the_server_does_not_look_at_conditions() {
    let (server, object, _) = server();
    server.put("bucket/o.csv", numbered(BYTES));
    server.faults().set(|_| Some(Fault::NoConditions));
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("\"v1\"") && error.contains("\"v2\""), "{error}");
    // Without versions there is the length.
    let server = ObjectServer::start().unwrap();
    server.without_etags();
    server.put("bucket/o.csv", numbered(BYTES));
    let object = first(&server, &format!("{}/bucket/o.csv", server.url()));
    assert_eq!(object.etag(), None);
    server.put("bucket/o.csv", numbered(BYTES + 1));
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("changed") && error.contains(&(BYTES + 1).to_string()), "{error}");
}

#[test]
fn an_object_that_changes_while_it_is_read_is_not_mixed() {
    let (server, object, _) = server();
    let server = Arc::new(server);
    let changing = Arc::downgrade(&server);
    let so_far = AtomicUsize::new(0);
    server.faults().set(move |_| {
        (so_far.fetch_add(1, Ordering::Relaxed) == 1).then(|| {
            let changing = changing.clone();
            Fault::Then(Arc::new(move || {
                if let Some(server) = changing.upgrade() {
                    server.put("bucket/o.csv", vec![7; BYTES]);
                }
            }))
        })
    });
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("\"v1\"") && error.contains("\"v2\""), "{error}");
}

#[test]
fn an_object_that_is_gone_or_shorter_is_told() {
    let (server, object, _) = server();
    server.remove("bucket/o.csv");
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("is gone") && error.contains("s3://bucket/o.csv"), "{error}");
    let (server, object, _) = server_without_etags();
    server.put("bucket/o.csv", numbered(5));
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("changed") && error.contains("5 bytes"), "{error}");
}

fn server_without_etags() -> (ObjectServer, ObjectRef, Vec<u8>) {
    let server = ObjectServer::start().unwrap();
    server.without_etags();
    let bytes = numbered(BYTES);
    server.put("bucket/o.csv", bytes.clone());
    let object = first(&server, &format!("{}/bucket/o.csv", server.url()));
    (server, object, bytes)
}

#[test]
fn lists_that_are_denied_or_do_not_come_are_told() {
    for (fault, what) in [
        (Fault::Status(403), "the server denies it"),
        (Fault::Status(503), "503"),
        (Fault::Status(404), "there is no such object or bucket"),
    ] {
        let (server, ..) = server();
        server.faults().set(move |_| Some(fault.clone()));
        for address in ["s3://bucket/*.csv", "s3://bucket/o.csv"] {
            let error = find(&server, address).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(address), "{error}");
        }
    }
}

/// Nobody listens there.
#[test]
fn a_server_that_is_not_there_is_told() {
    let server = ObjectServer::start().unwrap();
    let options = super::options(&server);
    let address = format!("{}/o.csv", server.url());
    drop(server);
    let error = find_objects(&[&address], &options).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("/o.csv"), "{error}");
}

/// Symptom: all objects of a server whose lists have no ETags had changed. Cause: answers have them, and times in whole
/// seconds.
#[test]
fn objects_that_are_listed_without_etags_are_pinned_by_their_first_answer() {
    let server = ObjectServer::start().unwrap();
    server.without_etags_in_lists();
    let bytes = numbered(BYTES);
    server.put("bucket/o.csv", bytes.clone());
    let object = first(&server, "s3://bucket/*.csv");
    assert_eq!(object.etag(), None);
    assert!(read_all(&object).unwrap() == bytes);
    server.put("bucket/o.csv", bytes);
    let error = read_all(&object).unwrap_err().to_string();
    assert!(error.contains("\"v1\"") && error.contains("\"v2\""), "{error}");
}

/// Symptom: who may read one server read another through it.
#[test]
fn who_may_not_be_sent_on_stays() {
    let (here, elsewhere) = (ObjectServer::start().unwrap(), ObjectServer::start().unwrap());
    elsewhere.put("secret/o.csv", numbered(BYTES));
    let moved = Fault::Moved(format!("{}/secret/o.csv", elsewhere.url()));
    here.faults().set(move |_| Some(moved.clone()));
    let find = |follows_redirects| {
        let options = PlaceOptions { follows_redirects, ..super::options(&here) };
        let addresses = [format!("{}/open/o.csv", here.url()), "s3://open/o.csv".to_owned()];
        addresses.map(|address| find_objects(&[&address], &options).map(|(objects, _)| objects))
    };
    for found in find(false) {
        let Err(Error::Invalid(text)) = found else { panic!("{found:?}") };
        assert!(text.contains("another address, to which a server does not follow"), "{text}");
    }
    assert!(elsewhere.seen().is_empty());
    assert_eq!(find(true)[0].as_ref().unwrap().at(0).bytes(), BYTES as u64);
}

/// Symptom: a server that was not there was waited for in silence for a minute.
#[test]
fn who_waits_is_told_why() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = PlaceOptions {
        s3_endpoint: Some(format!("http://{nobody}")),
        on_wait: Some(|text| TOLD.lock().unwrap().push(text.to_owned())),
        ..super::options(&ObjectServer::start().unwrap())
    };
    let found = find_objects(&["s3://bucket/o.csv"], &options).map(|_| ());
    assert!(matches!(found, Err(Error::Unavailable(_))), "{found:?}");
    let told = TOLD.lock().unwrap();
    assert!(told.len() == 1 && told[0].starts_with("trying again for up to 1 s: "), "{told:?}");
}
