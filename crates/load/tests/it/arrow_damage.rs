//! Files and streams of Arrow that are damaged or cut off: an error, or the rows that they say; never a panic.

use arrow_array::ArrayRef;
use coload_load::InputForm;
use proptest::prelude::*;

use crate::arrow_files::{Form, KINDS, batch, bytes, column};
use crate::support::{load, scratch, write};
use crate::text::Random;
use crate::typed_loads::{store, typed_options};

/// All kinds of columns, in some batches; dictionaries in the first only where another would take their place.
fn damaged(form: Form, random: &mut Random) -> Vec<u8> {
    let count = if form == Form::Stream { 3 } else { 1 };
    let made = (0..count).map(|_| {
        let rows = random.below(30);
        let columns: Vec<ArrayRef> = (0..KINDS).map(|kind| column(kind, rows, random).0).collect();
        batch(columns)
    });
    let batches: Vec<_> = made.collect();
    bytes(form, &batches)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
    ) })]

    #[test]
    fn damage_is_told(
        seed: u64,
        form in prop::sample::select(&[Form::File, Form::Stream, Form::Bare][..]),
        is_piped: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let dir = scratch();
        let mut bytes = damaged(form, &mut Random::new(seed));
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let path = write(&dir, "in.arrow", &bytes);
        let columns: Vec<String> = (0..KINDS).map(|n| format!("c{n} VARCHAR")).collect();
        let mut options = typed_options(InputForm::Arrow, &[path], &columns.join(", "));
        options.resources.memory = 64 << 20;
        if is_piped {
            let bytes = bytes.clone();
            options.streams =
                Some(std::sync::Arc::new(move |_| Box::new(std::io::Cursor::new(bytes.clone()))));
        }
        let store = store(&dir, "s");
        match load(&store, &options) {
            Ok(report) => prop_assert!(report.rows() < 1 << 24),
            Err(error) => {
                let text = error.to_string();
                prop_assert!(text.contains("in.arrow") && !text.contains("panicked"), "{text}");
                prop_assert!(store.snapshot().unwrap().tables().is_empty());
            }
        }
    }
}
