#![allow(clippy::unwrap_used)]

use std::io::Write;

use proptest::prelude::*;

use super::*;

fn deflate(text: &[u8], level: u32) -> Vec<u8> {
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(level));
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

/// Decodes in steps of the given sizes of input and room, one after the other.
fn inflate(stored: &[u8], inputs: &[usize], rooms: &[usize]) -> Result<Vec<u8>, &'static str> {
    let mut decoder = Inflate::new();
    let (mut text, mut at, mut turn, mut more) = (Vec::new(), 0, 0, 0);
    loop {
        let end = (at + inputs[turn % inputs.len()] + more).min(stored.len());
        let mut room = vec![0xaa; rooms[turn % rooms.len()]];
        let step = decoder.step(&stored[at..end], &mut room)?;
        text.extend_from_slice(&room[..step.produced]);
        at += step.consumed;
        turn += 1;
        if step.ended {
            return if at == stored.len() { Ok(text) } else { Err("bytes are left") };
        }
        if step.consumed == 0 && step.produced == 0 {
            if end == stored.len() {
                return Err("cut");
            }
            more += 64;
        } else {
            more = 0;
        }
    }
}

/// Texts of few values repeat, those of many do not.
fn text(values: u8, bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut text: Vec<u8> = Vec::new();
    while text.len() < bytes {
        let old = text.len().min(40_000);
        if old > 0 && next() % 3 > 0 {
            // A match, near or far, short or long.
            let distance = 1 + next() % old.min(if next() % 2 == 0 { 20 } else { old });
            let length = 3 + next() % if next() % 4 == 0 { 600 } else { 12 };
            (0..length).for_each(|_| text.push(text[text.len() - distance]));
        } else {
            (0..next() % 20).for_each(|_| text.push((next() % (usize::from(values) + 1)) as u8));
        }
    }
    text.truncate(bytes);
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_another_library_deflates_is_inflated_in_any_steps(
        values: u8, bytes in 0usize..200_000, seed: u64, level in 0u32..10,
        inputs in prop::collection::vec(1usize..3000, 1..5),
        rooms in prop::collection::vec(1usize..5000, 1..5),
    ) {
        let text = text(values, bytes, seed);
        let stored = deflate(&text, level);
        prop_assert!(inflate(&stored, &[stored.len()], &[bytes + 1]).unwrap() == text);
        prop_assert!(inflate(&stored, &inputs, &rooms).unwrap() == text);
    }

    #[test]
    fn damaged_data_give_an_error_or_what_another_library_makes_of_them(
        values: u8, bytes in 0usize..3000, seed: u64, level in 0u32..10,
        at: prop::sample::Index, flip in 1u8..,
    ) {
        let mut stored = deflate(&text(values, bytes, seed), level);
        let at = at.index(stored.len());
        stored[at] ^= flip;
        let ours = inflate(&stored, &[100], &[700]);
        let whole = inflate(&stored, &[stored.len()], &[1 << 20]);
        if let (Ok(ours), Ok(whole)) = (&ours, &whole) {
            prop_assert!(ours == whole);
        }
        let mut theirs = Vec::with_capacity(1 << 20);
        let mut decoder = flate2::Decompress::new(false);
        let status = decoder.decompress_vec(&stored, &mut theirs, flate2::FlushDecompress::Finish);
        let ended = matches!(status, Ok(flate2::Status::StreamEnd));
        prop_assert_eq!(whole.is_ok(), ended && decoder.total_in() == stored.len() as u64);
        if ended && let Ok(whole) = whole {
            prop_assert!(whole == theirs);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_decoded_without_a_panic(
        stored in prop::collection::vec(any::<u8>(), 0..2000), room in 1usize..2000,
    ) {
        let mut decoder = Inflate::new();
        let mut out = vec![0; room];
        let mut at = 0;
        for _ in 0..100 {
            match decoder.step(&stored[at..], &mut out) {
                Ok(step) if step.consumed > 0 || step.produced > 0 => at += step.consumed,
                _ => break,
            }
        }
    }
}
