//! Any bytes as each message of the wire, and as frames whose checksums fit.
#![no_main]

use coload_format::Physical;
use coload_format::bytes::ByteReader;
use coload_link::{
    Ack, Assembler, Compression, Frame, HEADER_BYTES, decode_frame, error_from_bytes,
};
use coload_load::wire::{
    Block, Chunk, Done, Finish, Join, LoadDescription, PartitionAccount, Ranges, Seal, ServerLoad,
    Welcome, Widen, read_statuses,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = Ack::decode(input);
    let _ = error_from_bytes(input);
    for physical in [Physical::Int, Physical::Wide, Physical::Bytes] {
        if let Ok(block) = Block::decode(input, |_| Some(physical)) {
            let again = Block::decode(&block.encode(), |_| Some(physical));
            assert_eq!(again.expect("what was read is written and read again"), block);
        }
    }
    if let Ok(seal) = Seal::decode(input) {
        assert_eq!(Seal::decode(&seal.encode()).expect("what was written can be read"), seal);
    }
    let _ = (Chunk::decode(input), Done::decode(input), Finish::decode(input));
    let _ = (Join::decode(input), Welcome::decode(input), ServerLoad::decode(input));
    let _ = (LoadDescription::decode(input), read_statuses(input));
    let _ = (Ranges::decode(input), Widen::decode(input));
    let _ = PartitionAccount::read(&mut ByteReader::new(input));
    if input.len() >= HEADER_BYTES {
        let (header, body) = input.split_at(HEADER_BYTES);
        let _ = decode_frame(header, body.to_vec().into());
    }
    assemble(input);
});

/// Reads the input as frames, each behind its lengths, and puts them together with checksums that fit.
fn assemble(mut input: &[u8]) {
    const LENGTHS_BYTES: usize = 8;
    let mut assembler = Assembler::default();
    while let Some((lengths, rest)) = input.split_at_checked(LENGTHS_BYTES) {
        let number = |at: usize| u32::from(u16::from_le_bytes([lengths[at], lengths[at + 1]]));
        let (body, rest) = rest.split_at(rest.len().min(number(0) as usize));
        let frame = Frame {
            kind: lengths[6],
            compression: match lengths[7] % 3 {
                0 => Compression::None,
                1 => Compression::Lz4,
                _ => Compression::Zstd(1),
            },
            more: lengths[7] & 0x80 != 0,
            frame_bytes: number(2),
            message_bytes: number(4),
            body: body.to_vec().into(),
        };
        let Ok(read) = decode_frame(&frame.header(), frame.body.clone()) else { return };
        assert_eq!(read.header(), frame.header());
        match assembler.push(read) {
            Ok(Some((message, _))) => assert_eq!(message.bytes.len(), number(4) as usize),
            Ok(None) => {}
            Err(_) => return,
        }
        input = rest;
    }
}
