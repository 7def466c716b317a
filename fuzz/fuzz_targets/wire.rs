//! Any bytes as each message of the wire, and as frames whose checksums fit.
#![no_main]

use coload_format::Physical;
use coload_format::bytes::ByteReader;
use coload_link::{Ack, Assembler, HEADER_BYTES, decode_frame, error_from_bytes};
use coload_load::wire::{
    Block, Chunk, Done, Finish, Join, LoadDescription, PartitionAccount, Seal, ServerLoad, Welcome,
    read_statuses,
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
    let _ = PartitionAccount::read(&mut ByteReader::new(input));
    if input.len() >= HEADER_BYTES {
        let (header, body) = input.split_at(HEADER_BYTES);
        if let Ok(frame) = decode_frame(header, body.to_vec().into()) {
            let _ = Assembler::default().push(frame);
        }
    }
});
