//! A load whose columns were inferred from fields that the text need not have: it goes on with wider types, from
//! a file or a stream, and gives the rows that the slow model reads with the types it ends with.
#![no_main]

use std::cell::RefCell;
use std::io::Cursor;

use coload_ddl::Schema;
use coload_types::Column;
use coload_load::OpenedStream;
use coload_source::{
    ColumnForms, Dialect, Formats, Header, InputFile, InputSource, Said, SampleEnd, TextEncoding,
};
use coload_store::Store;
use libfuzzer_sys::fuzz_target;
use model::Model;

#[allow(dead_code)]
#[path = "../../crates/load/tests/it/model.rs"]
mod model;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/options.rs"]
mod options;
#[allow(dead_code)]
#[path = "../../crates/load/tests/it/support.rs"]
mod support;

const SAMPLES: [&str; 8] =
    ["1", "1.5", "2024-01-01", "true", "2024-01-01 10:00", "1e5", "99999999999999999999", "a"];

thread_local! {
    /// Made once: stores are slow to make.
    static STORE: RefCell<Option<(tempfile::TempDir, Store)>> = const { RefCell::new(None) };
}

fuzz_target!(|input: &[u8]| {
    let [a, b, c, text @ ..] = input else { return };
    if support::may_be_compressed(text) {
        return;
    }
    let bit = |n: u8| b >> n & 1 == 1;
    let nulls: &[&[u8]] = if bit(0) { &[b""] } else { &[b"N", b""] };
    let dialect = Dialect {
        // A field may begin with what looks like a mark of UTF-16.
        encoding: TextEncoding { said: Said::User, ..TextEncoding::default() },
        quote: (!bit(1)).then_some(b'"'),
        header: if bit(2) { Header::Present } else { Header::Absent },
        nulls: nulls.iter().map(|n| n.to_vec()).collect(),
        typed_nulls: if bit(4) { vec![b"-".to_vec(), b"1".to_vec()] } else { Vec::new() },
        ..Dialect::default()
    };
    // One column to three.
    let samples = [*a & 7, *a >> 3 & 7, *a >> 6 & 3];
    let forms = samples[..1 + usize::from(*b >> 6) % 3].iter().map(|sample| {
        let mut forms = ColumnForms::default();
        forms.add(SAMPLES[usize::from(*sample)].as_bytes(), &Formats::default());
        forms
    });
    let forms: Vec<ColumnForms> = forms.collect();
    let columns = forms.iter().enumerate().map(|(index, forms)| Column {
        name: format!("c{index}"),
        data_type: forms.data_type(SampleEnd::Cut),
        nullable: true,
        ..support::schema("c VARCHAR").columns()[0].clone()
    });
    let schema = Schema::new(columns.collect()).expect("three columns");
    STORE.with_borrow_mut(|slot| {
        let (dir, store) = slot.get_or_insert_with(|| {
            let dir = support::scratch();
            let store = Store::create_or_open(dir.path().join("s")).expect("a new store");
            (dir, store)
        });
        let path = support::write(dir, "in.csv", text);
        let mut options = support::options(&[path], "c VARCHAR", dialect);
        (options.schema, options.inferred) = (schema, Some(forms));
        if bit(3) {
            let text = Cursor::new(text.to_vec());
            let name = options.inputs.name(0);
            options.stream = Some(OpenedStream::new(&*name, Box::new(text)));
            options.inputs = vec![InputFile { name, source: InputSource::Stdin }].into();
        }
        options.mode = coload_store::LoadMode::Replace;
        options.resources.threads = 1 + usize::from(*c) % 3;
        options.resources.chunk_bytes = [16, 21, 64, 1 << 20][usize::from(*c) / 4 % 4];
        options.resources.fragments_per_partition = 1 + usize::from(*c) / 16 % 3;
        options.resources.memory = if c & 64 == 0 { 1 } else { 1 << 30 };
        if c & 128 != 0 {
            options.resources.dictionaries = coload_transform::DictionaryPolicy::Always;
        }
        let report = support::load(store, &options).expect("rejects are allowed");
        let snapshot = store.snapshot().expect("a version");
        let schema = snapshot.table("t").expect("the table").schema.clone();
        let model = Model::read(text, &options.dialect, &schema);
        assert_eq!(support::rows(store, "t"), model.rows, "{schema:?}");
        options.schema = schema;
        let rejects = model::rejects(&[model], &options);
        // The reasons differ: an inferred column takes what looks like the sample.
        let places = |of: &[coload_source::Reject]| -> Vec<_> {
            of.iter().take(10).map(|r| (r.place.clone(), r.raw.clone())).collect()
        };
        assert_eq!(places(&report.rejects), places(&rejects));
    });
});
