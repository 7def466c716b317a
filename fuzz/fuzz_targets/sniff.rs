//! Files made from a seed, as programs write them: what is found out with nothing given is the table that was written, or something is said.
//! And any bytes are sniffed without a panic.

#![no_main]

#[path = "../../crates/source/tests/sniff/judge.rs"]
mod judge;
#[path = "../../crates/source/tests/sniff/made.rs"]
mod made;
#[path = "../../crates/source/tests/sniff/random.rs"]
mod random;
#[path = "../../crates/source/tests/sniff/read.rs"]
mod read;

use libfuzzer_sys::fuzz_target;

use judge::{Outcome, judge};

fuzz_target!(|data: &[u8]| {
    let _ = read::read(data);
    let Some(seed) = data.first_chunk::<8>() else { return };
    let made = made::make(u64::from_le_bytes(*seed));
    if let Outcome::Silent(what) = judge(&made) {
        panic!("{:?} is read wrongly, and nothing says so: {what}", made.writer);
    }
});
