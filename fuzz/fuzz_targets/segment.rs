//! Any bytes as a segment, with checksums that fit.
#![no_main]

use coload_types::Plain;
use coload_store::SegmentFile;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/store/tests/it/reseal.rs"]
mod reseal;

/// Pages of one value and no bytes may have billions of rows; that is no fault.
const ROWS_MAX: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some(bytes) = reseal::segment(input) else { return };
    let path = std::env::temp_dir().join(format!("coload-fuzz-{}.seg", std::process::id()));
    std::fs::write(&path, bytes).expect("a file in the temporary directory");
    let Ok(segment) = SegmentFile::open(&path) else { return };
    if segment.rows() > ROWS_MAX {
        return;
    }
    for column in 0..segment.column_count() {
        let Ok(open) = segment.column(column) else { continue };
        if open.index().dictionary.as_ref().is_some_and(|d| u64::from(d.rows) > ROWS_MAX) {
            continue;
        }
        for page in 0..segment.page_rows().len() {
            let mut plain = Plain::empty(segment.physical(column));
            if segment.decode_page(column, page, &mut plain).is_ok() {
                assert_eq!(plain.len(), segment.page_rows()[page] as usize);
            }
        }
    }
});
