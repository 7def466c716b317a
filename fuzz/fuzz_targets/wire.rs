//! Any bytes as each message of the wire, and as frames whose checksums fit.
#![no_main]

use std::sync::OnceLock;

use coload_ddl::parse_columns;
use coload_link::{Ack, Assembler, Compression, Frame, HEADER_BYTES, decode_frame, error_from_bytes};
use coload_load::{ParsedText, TextFragmentParser, TextFragments};
use coload_source::Dialect;
use coload_store::{LoadMode, OnConflict};
use coload_transform::DictionaryPolicy;
use coload_types::Physical;
use coload_types::bytes::ByteReader;
use coload_wire::{Again, Block, Chunk, ColumnsAre, Conflicts, Done, Finish, Join, LoadDescription, Parsed, PartitionAccount, Ranges, RejectLimit, RowSource, Seal, ServerLoad, TextFragment, Welcome, Widen, Work, read_statuses};
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
    if let Ok(conflicts) = Conflicts::decode(input) {
        let same = Conflicts::decode(&conflicts.encode());
        assert_eq!(same.expect("what was written can be read").count(), conflicts.count());
    }
    if let Ok(seal) = Seal::decode(input) {
        assert_eq!(Seal::decode(&seal.encode()).expect("what was written can be read"), seal);
    }
    let _ = (Chunk::decode(input), Done::decode(input), Finish::decode(input));
    let _ = (Join::decode(input), Welcome::decode(input), ServerLoad::decode(input));
    let _ = read_statuses(input);
    let _ = (Ranges::decode(input), Widen::decode(input), Parsed::decode(input));
    if let Ok(sent) = TextFragment::decode(input) {
        parse(&sent);
    }
    if let Ok(description) = LoadDescription::decode(input) {
        let _ = TextFragmentParser::new(&description);
    }
    let _ = PartitionAccount::read(&mut ByteReader::new(input));
    if input.len() >= HEADER_BYTES {
        let (header, body) = input.split_at(HEADER_BYTES);
        let _ = decode_frame(header, body.to_vec().into());
    }
    assemble(input);
});

/// Parses a text as a server does, and compresses what was kept of it.
fn parse(sent: &TextFragment<'_>) {
    static PARSER: OnceLock<TextFragmentParser> = OnceLock::new();
    let parser = PARSER.get_or_init(|| {
        let schema = parse_columns("a BIGINT NOT NULL, b VARCHAR(9), c DATE, d DECIMAL(30,2)");
        let description = LoadDescription {
            table: "t".into(),
            mode: LoadMode::Append,
            on_conflict: OnConflict::Error,
            delete_where: None,
            schema: schema.expect("these are columns"),
            rows: RowSource::default(),
            began_us: None,
            origin: None,
            columns_are: ColumnsAre::Given,
            inputs: Default::default(),
            dialect: Dialect::default(),
            chunk_bytes: 1 << 20,
            fragments_per_partition: 5,
            dictionaries: DictionaryPolicy::Auto,
            max_rejects: RejectLimit::Count(0),
            work: Work::Partitions,
            salt: 0,
            again: Again::No,
            share: None,
        };
        TextFragmentParser::new(&description).expect("it may have texts")
    });
    let partition = TextFragments::default();
    let again = TextFragment { fragment: sent.fragment ^ 1, ..*sent };
    let mut taken = 0;
    for sent in [sent, &again] {
        if let Ok(ParsedText::Taken(pages, _)) = partition.parse(parser, sent) {
            assert!(pages.iter().all(|page| page.page.rows == sent.rows));
            taken += sent.rows;
        }
    }
    for column in 0..4 {
        if let Ok(Some((_, compressed))) = partition.compress(parser, column) {
            assert_eq!(compressed.pages.iter().map(|page| page.rows).sum::<u32>(), taken);
        }
    }
}

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
