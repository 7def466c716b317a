//! A folder of an object store that is written.

use coload_object_server::{Fault, ObjectServer};
use coload_places::{ObjectFolder, PlaceOptions};
use coload_types::Error;

fn folder(server: &ObjectServer) -> ObjectFolder {
    let options =
        PlaceOptions { s3_endpoint: Some(server.url()), signs: false, ..PlaceOptions::default() };
    ObjectFolder::open("s3://bucket/some/folder/", &options).unwrap()
}

#[test]
fn a_name_is_taken_once_and_keeps_its_bytes() {
    let server = ObjectServer::start().unwrap();
    let folder = folder(&server);
    assert_eq!(folder.read("map/1").unwrap(), None);
    assert!(!folder.exists("map/1").unwrap());
    assert!(folder.create("map/1", b"one").unwrap());
    assert!(!folder.create("map/1", b"two").unwrap());
    // As if the answer had been lost.
    assert!(folder.create("map/1", b"one").unwrap());
    assert_eq!(folder.read("map/1").unwrap().unwrap(), b"one");
    folder.replace("marks/a", b"1").unwrap();
    folder.replace("marks/a", b"2").unwrap();
    assert_eq!(folder.read("marks/a").unwrap().unwrap(), b"2");
    assert_eq!(folder.list("map").unwrap(), ["1"]);
    assert_eq!(folder.list("marks").unwrap(), ["a"]);
    assert!(folder.list("none").unwrap().is_empty());
    folder.remove("map/1").unwrap();
    folder.remove("map/1").unwrap();
    assert!(!folder.exists("map/1").unwrap());
}

#[test]
fn a_store_that_is_away_is_no_empty_store() {
    let server = ObjectServer::start().unwrap();
    let folder = folder(&server);
    server.faults().set(|_| Some(Fault::Status(503)));
    assert!(matches!(folder.read("map/1"), Err(Error::Unavailable(_))));
    assert!(matches!(folder.list("map"), Err(Error::Unavailable(_))));
    assert!(matches!(folder.create("map/1", b"x"), Err(Error::Unavailable(_))));
    for address in ["https://host/folder", "s3://bucket/*.map", "s3://"] {
        assert!(ObjectFolder::open(address, &PlaceOptions::default()).is_err(), "{address}");
    }
}
