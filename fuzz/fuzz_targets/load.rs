//! A load of any text with any options against the slow model of the tests.
#![no_main]

use std::cell::RefCell;

use coload_load::load;
use coload_source::{Dialect, Header, Said, TextEncoding, Trailing};
use coload_store::Store;
use libfuzzer_sys::fuzz_target;
use model::Model;

#[allow(dead_code)]
#[path = "../../crates/load/tests/it/model.rs"]
mod model;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/support.rs"]
mod support;

const COLUMNS: [&str; 8] = [
    "a VARCHAR",
    "a INTEGER NOT NULL",
    "a DOUBLE, b VARCHAR(3)",
    "a DECIMAL(5,2), b BOOLEAN",
    "a DECIMAL(30,5), b UUID",
    "a DATE, b TIME, c TIMESTAMP WITH TIME ZONE",
    "a BIGINT, b BINARY, c CHAR(2) NOT NULL, d VARCHAR",
    "a SMALLINT, b REAL, c TIMESTAMP",
];

thread_local! {
    /// Made once: stores are slow to make.
    static STORE: RefCell<Option<(tempfile::TempDir, Store)>> = const { RefCell::new(None) };
}

fuzz_target!(|input: &[u8]| {
    let [a, b, c, text @ ..] = input else { return };
    let bit = |n: u8| b >> n & 1 == 1;
    let quote = (!bit(0)).then_some(b'"');
    let nulls: [&[&[u8]]; 4] = [&[b""], &[], &[b"N", b""], &[b"N"]];
    let dialect = Dialect {
        // A field may begin with what looks like a mark of UTF-16.
        encoding: TextEncoding { said: Said::User, ..TextEncoding::default() },
        delimiter: [b',', b'|'][usize::from(bit(1))],
        quote,
        escape: quote.and(bit(2).then_some(b'\\')),
        header: if bit(3) { Header::Present } else { Header::Absent },
        nulls: nulls[*a as usize / 8 % 4].iter().map(|n| n.to_vec()).collect(),
        skip: u64::from(bit(4)),
        comment: bit(5).then_some(b'#'),
        trailing: if bit(6) { Trailing::Delimiter } else { Trailing::Newline },
        ..Dialect::default()
    };
    STORE.with_borrow_mut(|slot| {
        let (dir, store) = slot.get_or_insert_with(|| {
            let dir = support::scratch();
            let store = Store::create_or_open(dir.path().join("s")).expect("a new store");
            (dir, store)
        });
        let path = support::write(dir, "in.csv", text);
        let mut options = support::options(&[path], COLUMNS[*a as usize % 8], dialect);
        options.mode = coload_store::LoadMode::Replace;
        options.threads = 1 + *c as usize % 3;
        options.chunk_bytes = [16, 21, 64, 1 << 20][*c as usize / 4 % 4];
        options.fragments_per_partition = 1 + *c as usize / 16 % 3;
        options.memory = if c & 64 == 0 { 1 } else { 1 << 30 };
        if c & 128 != 0 {
            options.encoding = coload_transform::EncodingPolicy::Dictionary;
        }
        let model = Model::read(text, &options.dialect, &options.schema);
        let report = load(store, &options).expect("rejects are allowed");
        assert_eq!(support::rows(store, "t"), model.rows);
        let rejects = model::rejects(&[model], &options);
        assert_eq!(report.rejects[..], rejects[..rejects.len().min(10)]);
    });
});
