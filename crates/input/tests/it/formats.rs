//! What is compressed reads as it was.

use coload_input::Compression;

use crate::support::{FORMATS, bgzf_member, compress, read, read_files, text};

#[test]
fn each_format_reads_as_it_was() {
    for format in FORMATS {
        for bytes in [0, 1, 100_000, 3_000_000] {
            let text = text(1, bytes);
            assert!(read(&compress(format, &text)).unwrap() == text, "{format} {bytes}");
        }
    }
    let plain = text(2, 3_000_000);
    assert!(read(&plain).unwrap() == plain);
}

#[test]
fn members_read_as_one_text_with_empty_ones_among_them() {
    for format in FORMATS {
        let (mut stored, mut expected) = (Vec::new(), Vec::new());
        for (seed, bytes) in
            [700_000, 0, 0, 5, 2_500_000, 1, 900_000, 0, 4_000_000, 30].iter().enumerate()
        {
            let text = text(seed as u64, *bytes);
            stored.extend(compress(format, &text));
            expected.extend(text);
        }
        assert!(read(&stored).unwrap() == expected, "{format}");
    }
}

#[test]
fn thousands_of_small_members_read_as_one_text() {
    for format in [Compression::Gzip, Compression::Zstd, Compression::Lz4] {
        let (mut stored, mut expected) = (Vec::new(), Vec::new());
        for seed in 0..3_500 {
            let text = text(seed, (seed as usize * 7919) % 3000);
            stored.extend(compress(format, &text));
            expected.extend(text);
        }
        assert!(stored.len() > 2 << 20, "{}", stored.len());
        assert!(read(&stored).unwrap() == expected, "{format}");
    }
}

#[test]
fn bgzf_reads_as_one_text() {
    let (mut stored, mut expected) = (Vec::new(), Vec::new());
    for seed in 0..300 {
        let text = text(seed, if seed % 50 == 0 { 0 } else { 65_280 - seed as usize });
        stored.extend(bgzf_member(&text));
        expected.extend(text);
    }
    stored.extend(bgzf_member(b""));
    assert!(stored.len() > 4 << 20);
    assert!(read(&stored).unwrap() == expected);
}

#[test]
fn a_member_that_holds_members_is_not_cut() {
    // Stored, not deflated: the inner file's magic bytes stand in the outer one.
    let inner: Vec<u8> =
        (0..40).flat_map(|s| compress(Compression::Gzip, &text(s, 200_000))).collect();
    assert!(inner.len() > 3 << 20);
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut out, &inner).unwrap();
    let mut stored = out.finish().unwrap();
    stored.extend(compress(Compression::Gzip, b"end\n"));
    let expected = [&inner[..], b"end\n"].concat();
    assert!(read(&stored).unwrap() == expected);
}

#[test]
fn frames_that_mean_nothing_are_read_over() {
    let skippable = |bytes: usize| {
        let mut frame = vec![0x5e, 0x2a, 0x4d, 0x18];
        frame.extend((bytes as u32).to_le_bytes());
        frame.extend(vec![7; bytes]);
        frame
    };
    for format in [Compression::Zstd, Compression::Lz4] {
        let frame = |seed| compress(format, &text(seed, 1_500_000));
        let stored =
            [skippable(4), frame(1), skippable(0), skippable(70_000), frame(2), skippable(9)];
        let expected = [text(1, 1_500_000), text(2, 1_500_000)].concat();
        assert!(read(&stored.concat()).unwrap() == expected, "{format}");
    }
}

#[test]
fn a_gzip_header_may_have_name_comment_extra_field_and_checksum() {
    let mut out = flate2::GzBuilder::new()
        .filename(vec![b'n'; 300_000])
        .comment("a comment")
        .extra(vec![1; 60_000])
        .write(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut out, b"1,2\n").unwrap();
    let mut stored = out.finish().unwrap();
    assert!(read(&stored).unwrap() == b"1,2\n");
    let plain = compress(Compression::Gzip, b"3,4\n");
    let mut with_checksum = plain[..10].to_vec();
    with_checksum[3] |= 2;
    with_checksum.extend([0xab, 0xcd]);
    with_checksum.extend(&plain[10..]);
    stored.extend(with_checksum);
    assert!(read(&stored).unwrap() == b"1,2\n3,4\n");
}

#[test]
fn files_keep_their_order() {
    let texts: Vec<Vec<u8>> =
        (0..12).map(|s| text(s, (s as usize * 479_001) % 3_000_000)).collect();
    let stored: Vec<Vec<u8>> = texts
        .iter()
        .enumerate()
        .map(|(i, text)| match i % 7 {
            6 => text.clone(),
            format => compress(FORMATS[format], text),
        })
        .collect();
    let stored: Vec<&[u8]> = stored.iter().map(Vec::as_slice).collect();
    for (threads, ahead) in [(1, 0), (2, 0), (4, 64 << 20)] {
        assert!(read_files(&stored, threads, ahead).unwrap() == texts, "{threads}");
    }
}
