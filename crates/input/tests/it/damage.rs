//! Damaged inputs are errors, whatever the damage; they never give other text, and never much memory.

use coload_input::{BLOCK_BYTES, Compression, RawFile, Taken, TextInput, TextQueue, Who};

use crate::support::{FORMATS, bgzf_member, compress, read, read_files, text};

#[test]
fn a_file_cut_at_any_byte_is_an_error() {
    for format in FORMATS {
        let text = text(1, 900);
        let stored = compress(format, &text);
        for length in 10..stored.len() {
            let result = read_files(&[&stored[..length]], 1, 0);
            // Snappy has no end: after a whole chunk it may be the end.
            if format == Compression::Snappy && length == 10 {
                assert!(result.unwrap().concat().is_empty());
                continue;
            }
            let error = result.expect_err(&format!("{format} cut at {length}")).to_string();
            assert!(error.contains("is truncated"), "{format} {length}: {error}");
            assert!(
                error.contains(&format!("after {length} compressed bytes")),
                "{format}: {error}"
            );
        }
    }
}

#[test]
fn a_name_tells_of_a_file_cut_within_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [
        ("a.csv.gz", Compression::Gzip),
        ("a.csv.ZST", Compression::Zstd),
        ("a.bz2", Compression::Bzip2),
        ("a.xz", Compression::Xz),
        ("a.lz4", Compression::Lz4),
        ("a.sz", Compression::Snappy),
    ] {
        let stored = compress(format, b"1,2\n");
        for length in 0..10 {
            let path = folder.path().join(name);
            std::fs::write(&path, &stored[..length]).unwrap();
            let input = TextInput::of_file(RawFile::open(name, &path).unwrap()).unwrap();
            let error = crate::support::read_inputs(vec![input], 1, 0).unwrap_err();
            assert!(error.to_string().contains("is truncated"), "{name} {length}: {error}");
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_means_nothing() {
    // A Snappy chunk may become one that is read over: its format has nothing to tell that from.
    for format in FORMATS.into_iter().filter(|f| *f != Compression::Snappy) {
        let text = text(1, 120);
        let mut stored = compress(format, &text);
        // Each bit of a byte has its turn, a fifth of all.
        for bit in (0..stored.len() * 8).step_by(5) {
            stored[bit / 8] ^= 1 << (bit % 8);
            // Without its magic bytes it is another format, or none.
            if Compression::detect(&stored) == Some(format)
                && let Ok(read) = read_files(&[&stored], 1, 0)
            {
                assert!(read.concat() == text, "{format}: bit {bit} changed the text");
            }
            stored[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn damage_in_a_later_member_is_told_with_its_place() {
    for format in FORMATS {
        let member = compress(format, &text(3, 2_000_000));
        let mut stored = member.repeat(4);
        let damaged = member.len() * 2 + member.len() / 2;
        stored[damaged] ^= 0x55;
        stored[damaged + 1] ^= 0x55;
        let error = read(&stored).unwrap_err().to_string();
        assert!(error.starts_with("data (byte "), "{format}: {error}");
        assert!(error.contains(&format!("not valid {format} data")), "{error}");
    }
}

#[test]
fn what_follows_the_last_member_is_an_error_but_for_zeros() {
    for format in FORMATS {
        let stored = compress(format, b"1,2\n");
        let error = read(&[&stored[..], b"garbage"].concat()).unwrap_err().to_string();
        assert!(error.contains(&format!("not valid {format} data")), "{error}");
        let cut = [&stored[..], &stored[..3]].concat();
        let error = read(&cut).unwrap_err().to_string();
        assert!(error.contains("is truncated"), "{format}: {error}");
    }
    let padded = [&compress(Compression::Gzip, b"1,2\n")[..], &[0; 100_000]].concat();
    assert!(read(&padded).unwrap() == b"1,2\n");
    assert!(read(&[&padded[..], b"x"].concat()).is_err());
    let xz = compress(Compression::Xz, b"1,2\n");
    assert!(read(&[&xz[..], &[0; 8], &xz].concat()).unwrap() == b"1,2\n1,2\n");
}

/// Symptom: zeros behind a file of over a MiB were an error. Cause: who went on behind the last member took them
/// for the start of one.
#[test]
fn zeros_after_many_members_mean_nothing() {
    let mut random = 1u64;
    let mut noise = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    let text: Vec<u8> = (0..1_500_000).map(|_| noise()).collect();
    let members: Vec<u8> =
        text.chunks(400_000).flat_map(|part| compress(Compression::Gzip, part)).collect();
    let padding = [0; 1 << 20];
    assert!(read(&[&members[..], &padding].concat()).unwrap() == text);
    let error = read(&[&members[..], &padding, b"x"].concat()).unwrap_err().to_string();
    assert!(error.contains("after the last member comes something else"), "{error}");
}

#[test]
fn a_bgzf_member_whose_size_lies_is_read_as_any_other() {
    let mut stored = bgzf_member(b"1,2\n");
    stored[16] ^= 4;
    stored.extend(bgzf_member(b"3,4\n"));
    assert!(read(&stored).unwrap() == b"1,2\n3,4\n");
}

#[test]
fn a_bomb_takes_no_memory() {
    let zeros = vec![0; 16 << 20];
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let stored = compress(format, &zeros).repeat(3);
        let path = folder.path().join("bomb");
        std::fs::write(&path, &stored).unwrap();
        let input = TextInput::of_file(RawFile::open("bomb", &path).unwrap()).unwrap();
        let ahead = 4 << 20;
        let queue = TextQueue::new(vec![input], ahead, 4);
        // Nobody takes anything: work ends when the room is full.
        let mut jobs = 0;
        while let Some(job) = queue.claim(Who::Worker).unwrap() {
            queue.run(job);
            jobs += 1;
        }
        assert!(jobs <= 12, "{format}: {jobs}");
        let mut held = 0;
        while let Taken::Block(block) = queue.take().unwrap() {
            held += block.text.len();
        }
        assert!(held <= 2 * ahead + BLOCK_BYTES, "{format}: {held}");
    }
}
