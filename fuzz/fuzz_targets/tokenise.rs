//! The tokenisers of this machine against the plain state machine.
#![no_main]

use coload_source::{Separators, TEXT_PADDING, tokenise, tokenise_slowly};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [options, start, text @ ..] = input else { return };
    let separators = Separators {
        delimiter: [b',', b'|', b'\t', b';'][*options as usize % 4],
        quote: (options & 4 == 0).then_some(b'"'),
        escape: (options & 24 == 24).then_some(b'\\'),
    };
    // The text stands at any place of its 64 bytes, as it does in a window.
    let start = usize::from(start % 64) + 1;
    let mut padded = vec![b'\n'; start];
    padded.extend_from_slice(text);
    let end = padded.len();
    padded.extend([b','; TEXT_PADDING]);
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    let seen = tokenise(&padded, start, end, separators, &mut fast);
    let expected = tokenise_slowly(&padded, start, end, separators, &mut slow);
    assert_eq!(fast, slow);
    assert_eq!((seen.newlines, seen.open_quote), (expected.newlines, expected.open_quote));
    // The fast ones may see more than they must, never less: what they see decides on short cuts.
    assert!(seen.quote >= expected.quote);
    assert!(seen.doubtful_utf8 >= expected.doubtful_utf8 && seen.nul >= expected.nul);
});
