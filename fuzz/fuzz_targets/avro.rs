//! Files of Avro, of any bytes behind their magic: all columns of all blocks, and every other column of them.
#![no_main]

use coload_avro::{
    BlockHead, Decompressor, Head, Header, MAGIC, MARKER_BYTES, decode_header, read_rows,
};
use libfuzzer_sys::fuzz_target;

/// Bytes that anything may take.
const BYTES_MAX: u64 = 16 << 20;

fuzz_target!(|input: &[u8]| {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(input);
    let Ok(Head::Whole(header)) = decode_header(&file) else { return };
    let mut decompressor = Decompressor::default();
    let mut rest = &file[header.bytes..];
    while let Ok(Some(head)) = BlockHead::decode(rest) {
        let Some((block, behind)) = rest[head.head_bytes..].split_at_checked(head.bytes as usize)
        else {
            return;
        };
        read_block(&header, &head, block, &mut decompressor);
        let Some(next) = behind.get(MARKER_BYTES..) else { return };
        rest = next;
    }
});

fn read_block(header: &Header, head: &BlockHead, block: &[u8], decompressor: &mut Decompressor) {
    let Ok(raw) = decompressor.decompress(header.codec, block, BYTES_MAX) else { return };
    let count = header.layout.fields.len();
    let all: Vec<bool> = vec![true; count];
    let some: Vec<bool> = (0..count).map(|field| field % 2 == 0).collect();
    let read = |is_read: &[bool]| read_rows(&header.layout, is_read, (raw, head.rows), BYTES_MAX);
    for columns in [read(&all), read(&some)].into_iter().flatten() {
        for column in columns.into_iter().flatten() {
            assert_eq!(column.slice.rows as u64, head.rows);
        }
    }
}
