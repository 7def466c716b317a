//! Windows of decoders are bounded: xz and Zstandard may ask for hundreds of MiB.

use std::io::Write;

use coload_input::{RawFile, TextInput, TextQueue};
use coload_types::{Error, Result};
use liblzma::stream::{Check, Filters, LzmaOptions, Stream};

use crate::support::{read_queue, text};

const MIB: usize = 1 << 20;

/// Text as xz with a dictionary of so many bytes, a power of two: others are told as larger.
fn xz(text: &[u8], dictionary: usize) -> Vec<u8> {
    let mut options = LzmaOptions::new_preset(0).unwrap();
    let mut filters = Filters::new();
    filters.lzma2(options.dict_size(dictionary as u32));
    let stream = Stream::new_stream_encoder(&filters, Check::Crc32).unwrap();
    let mut out = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

/// Text as a Zstandard frame with a window of 2 to this power, which does not tell how long it is.
fn zstd(text: &[u8], window_log: u32) -> Vec<u8> {
    use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};
    let mut context = CCtx::create();
    context.set_parameter(CParameter::WindowLog(window_log)).unwrap();
    let mut bytes = vec![0; zstd_safe::compress_bound(text.len()) + 64];
    let mut out = OutBuffer::around(&mut bytes[..]);
    context.compress_stream(&mut out, &mut InBuffer::around(text)).unwrap();
    assert_eq!(context.end_stream(&mut out).unwrap(), 0);
    let length = out.pos();
    bytes.truncate(length);
    bytes
}

fn read(files: &[Vec<u8>], windows: usize) -> Result<Vec<Vec<u8>>> {
    let folder = tempfile::tempdir().unwrap();
    let inputs = files.iter().enumerate().map(|(number, bytes)| {
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, bytes).unwrap();
        TextInput::of_file(RawFile::open("data", &path).unwrap()).unwrap()
    });
    let inputs: Vec<TextInput> = inputs.collect();
    let texts = vec![Vec::new(); inputs.len()];
    read_queue(TextQueue::new(inputs, 8 * MIB, 3).with_windows(windows), texts, 3, 8 * MIB)
}

#[test]
fn windows_that_fit_one_by_one_are_read_one_by_one() {
    let texts: Vec<Vec<u8>> = (0..4).map(|seed| text(seed, 3 * MIB)).collect();
    let xz: Vec<Vec<u8>> = texts.iter().map(|text| xz(text, 32 * MIB)).collect();
    let zstd: Vec<Vec<u8>> = texts.iter().map(|text| zstd(text, 25)).collect();
    for windows in [40 * MIB, 400 * MIB] {
        assert!(read(&xz, windows).unwrap() == texts);
        assert!(read(&zstd, windows).unwrap() == texts);
    }
}

#[test]
fn a_window_that_does_not_fit_is_refused_with_the_flag() {
    let text = text(1, 100_000);
    for stored in [xz(&text, 32 * MIB), zstd(&text, 26)] {
        let error = read(&[stored], 20 * MIB).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, Error::Limit(_)), "{said}");
        assert!(said.contains("data") && said.contains("--memory"), "{said}");
    }
}
