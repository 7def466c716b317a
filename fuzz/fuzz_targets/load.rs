//! A load of any text with any options against the slow model of the tests.
#![no_main]

use std::cell::RefCell;

use coload_store::Store;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/load/tests/it/drawn.rs"]
mod drawn;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/model.rs"]
mod model;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/options.rs"]
mod options;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/support.rs"]
mod support;

thread_local! {
    /// Made once: stores are slow to make.
    static STORE: RefCell<Option<(tempfile::TempDir, Store)>> = const { RefCell::new(None) };
}

fuzz_target!(|input: &[u8]| {
    STORE.with_borrow_mut(|slot| {
        let (dir, store) = slot.get_or_insert_with(|| {
            let dir = support::scratch();
            let store = Store::create_or_open(dir.path().join("s")).expect("a new store");
            (dir, store)
        });
        drawn::check(dir, store, input);
    });
});
