//! Runs and packed numbers, one after the other: how Parquet writes codes and levels.
//!
//! ```text
//!   run      length << 1           | the number, in whole bytes
//!   packed   groups of 8 << 1 | 1  | 8 numbers of the width each, lowest bit first
//! ```
//!
//! Source: parquet.apache.org, encodings, RLE and bit packing.

/// Numbers of a group of packed ones.
const GROUP: usize = 8;
/// Equal numbers that are worth a run; up to seven of them may be needed to fill a group before it.
const RUN_MIN: usize = 16;

/// Bits of a number; none for 0.
pub(crate) fn bits_of(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}

/// Appends numbers that have at most `width` bits.
pub(crate) fn push_hybrid(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while let Some(number) = numbers.get(at) {
        let mut run = 1;
        while numbers.get(at + run) == Some(number) {
            run += 1;
        }
        if run < RUN_MIN {
            at += run;
            continue;
        }
        let to_fill = (GROUP - (at - packed) % GROUP) % GROUP;
        at += to_fill;
        run -= to_fill;
        push_packed(&numbers[packed..at], width, out);
        push_varint((run as u64) << 1, out);
        out.extend_from_slice(&number.to_le_bytes()[..usize::from(width).div_ceil(8)]);
        at += run;
        packed = at;
    }
    push_packed(&numbers[packed..], width, out);
}

/// Appends groups; the last is filled with zeros.
fn push_packed(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(GROUP);
    push_varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * usize::from(width);
    out.reserve(end + size_of::<u64>() - out.len());
    let (mut bits, mut count) = (0_u64, 0);
    for number in numbers {
        bits |= u64::from(*number) << count;
        count += u32::from(width);
        if count >= u32::BITS {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= u32::BITS;
            count -= u32::BITS;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.resize(end, 0);
}

fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow model: a reader that takes bit after bit.
    fn read(bytes: &[u8], width: u8, count: usize) -> Vec<u32> {
        let (mut at, mut numbers) = (0, Vec::new());
        while numbers.len() < count {
            let (mut head, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                head |= u64::from(byte & 127) << shift;
                shift += 7;
                if byte < 128 {
                    break;
                }
            }
            let bit = |index: usize| u32::from(bytes[at + index / 8] >> (index % 8) & 1);
            let number =
                |from: usize| (0..usize::from(width)).map(|b| bit(from + b) << b).sum::<u32>();
            let length = (head >> 1) as usize;
            if head & 1 == 0 {
                numbers.extend(vec![number(0); length]);
                at += usize::from(width).div_ceil(8);
            } else {
                numbers.extend((0..length * GROUP).map(|n| number(n * usize::from(width))));
                at += length * usize::from(width);
            }
        }
        assert_eq!(at, bytes.len());
        numbers.truncate(count);
        numbers
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            runs in prop::collection::vec((any::<u32>(), 1_usize..40), 0..30),
            width in 0_u8..=32,
        ) {
            let mask = if width == 0 { 0 } else { u32::MAX >> (32 - width) };
            let numbers: Vec<u32> =
                runs.iter().flat_map(|(n, count)| vec![n & mask; *count]).collect();
            let mut out = Vec::new();
            push_hybrid(&numbers, width, &mut out);
            prop_assert_eq!(read(&out, width, numbers.len()), numbers);
        }
    }
}
