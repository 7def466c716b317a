//! Any bytes as a manifest, with a checksum that fits.
#![no_main]

use std::path::Path;

use coload_store::Manifest;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/store/tests/it/reseal.rs"]
mod reseal;

fuzz_target!(|input: &[u8]| {
    let bytes = reseal::manifest(input);
    let path = Path::new("fuzz.manifest");
    if let Ok(manifest) = Manifest::decode(&bytes, path) {
        let again = manifest.encode().expect("what was read can be written");
        assert_eq!(Manifest::decode(&again, path).expect("what was written can be read"), manifest);
    }
});
