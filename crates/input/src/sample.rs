//! The first text of an input, to find out how it is written.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_types::Result;

use crate::decoder::{Decoder, Filled};
use crate::inputs::InputFile;
use crate::open::TextInput;

/// Text decompressed at once.
const STEP_BYTES: usize = 64 << 10;
/// Text read at once where it need not be small.
const STEP_BYTES_MAX: usize = 1 << 20;

/// The first text of an input, at most `bytes_max`, and whether there is more.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
pub fn sample_input(input: &InputFile, bytes_max: usize) -> Result<(Vec<u8>, Filled)> {
    let TextInput { name, format, raw, .. } = TextInput::open(input)?;
    let mut decoder = Decoder::new(&name, raw, format, 0, u64::MAX)?;
    let mut text = Vec::new();
    loop {
        let step = STEP_BYTES_MAX.min(bytes_max - text.len());
        if step == 0 {
            return Ok((text, Filled::More));
        }
        if decoder.fill(&mut text, step)? == Filled::Done {
            return Ok((text, Filled::Done));
        }
    }
}

/// The first text of an input whose first stored bytes are `head`; `state` tells whether more of them
/// follow.
///
/// # Errors
/// `Input` when they are damaged.
pub fn sample_head(
    name: &str,
    head: &[u8],
    state: Filled,
    bytes_max: usize,
) -> Result<(Vec<u8>, Filled)> {
    let at_end = Arc::new(AtomicBool::new(false));
    let head = Head { bytes: Cursor::new(head.to_vec()), at_end: Arc::clone(&at_end) };
    let TextInput { name, format, raw, .. } = TextInput::of_stream(name, Box::new(head))?;
    at_end.store(false, Ordering::Relaxed);
    let mut decoder = Decoder::new(&name, raw, format, 0, u64::MAX)?;
    let mut text = Vec::new();
    loop {
        let step = STEP_BYTES.min(bytes_max - text.len());
        if step == 0 {
            return Ok((text, Filled::More));
        }
        // What ends in the middle ends so because it was cut.
        let cut = |at_end: &AtomicBool| state == Filled::More && at_end.load(Ordering::Relaxed);
        match decoder.fill(&mut text, step) {
            Ok(Filled::More) => {}
            Ok(Filled::Done) if cut(&at_end) => return Ok((text, Filled::More)),
            Ok(Filled::Done) => return Ok((text, Filled::Done)),
            Err(_) if cut(&at_end) => return Ok((text, Filled::More)),
            Err(error) => return Err(error),
        }
    }
}

/// Bytes that know when they were read to their end.
struct Head {
    bytes: Cursor<Vec<u8>>,
    at_end: Arc<AtomicBool>,
}

impl Read for Head {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.at_end.store(true, Ordering::Relaxed);
        }
        Ok(read)
    }
}
