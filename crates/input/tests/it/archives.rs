//! Members of archives.

use std::path::Path;

use coload_input::{Compression, TextInput, expand_inputs};

use crate::support::{compress, read_inputs, text};

const HEADER_BYTES: usize = 512;

/// A zip file of members with their method.
pub fn zip(members: &[(&str, &[u8], Option<Compression>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, text, format) in members {
        let stored = format.map_or(text.to_vec(), |format| compress(format, text));
        let method: u16 = match format {
            None => 0,
            Some(Compression::Deflate) => 8,
            Some(Compression::Bzip2) => 12,
            Some(Compression::Zstd) => 93,
            Some(_) => 95,
        };
        let mut crc = flate2::Crc::new();
        crc.update(text);
        let mut common = vec![20, 0, 0, 0];
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        for number in [crc.sum(), stored.len() as u32, text.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        let at = out.len() as u32;
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend([3, 0]);
        out.extend(name.as_bytes());
        out.extend([0; 3]);
        out.extend(&stored);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 12]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([members.len() as u8, 0, members.len() as u8, 0]);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([2, 0]);
    out.extend(b"PK");
    out
}

/// A tar file of members with their type.
fn tar(members: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, kind, text) in members {
        let mut header = [0; HEADER_BYTES];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        header[156] = *kind;
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend(header);
        out.extend(*text);
        out.resize(out.len().div_ceil(HEADER_BYTES) * HEADER_BYTES, 0);
    }
    out.resize(out.len() + 2 * HEADER_BYTES, 0);
    out
}

/// Names and texts of what an argument names.
fn read(folder: &Path, argument: &str) -> coload_types::Result<Vec<(String, Vec<u8>)>> {
    let inputs = expand_inputs(&[format!("{}/{argument}", folder.display())])?;
    let names: Vec<String> = inputs.iter().map(|input| input.table_name()).collect();
    let opened = inputs
        .iter()
        .map(|input| TextInput::open(&input))
        .collect::<coload_types::Result<Vec<_>>>()?;
    Ok(names.into_iter().zip(read_inputs(opened, 2, 8 << 20)?).collect())
}

#[test]
fn members_of_zip_files_are_read_by_name_and_by_glob() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (text(1, 3_000_000), text(2, 5_000));
    let inner = compress(Compression::Gzip, &second);
    let members = [
        ("data/a.csv", &first[..], Some(Compression::Deflate)),
        ("b.csv", &second[..], None),
        ("c.csv", &second[..], Some(Compression::Zstd)),
        ("d.csv", &first[..], Some(Compression::Bzip2)),
        ("e.csv", &second[..], Some(Compression::Xz)),
        ("f.csv.gz", &inner[..], None),
        ("empty/", b"", None),
    ];
    std::fs::write(folder.path().join("all.zip"), zip(&members)).unwrap();
    let one = |name: &str, table: &str, text: &[u8]| {
        let read = read(folder.path(), &format!("all.zip!{name}")).unwrap();
        assert!(read == [(table.to_owned(), text.to_vec())], "{name}");
    };
    one("data/a.csv", "a", &first);
    one("b.csv", "b", &second);
    one("c.csv", "c", &second);
    one("d.csv", "d", &first);
    one("e.csv", "e", &second);
    one("f.csv.gz", "f", &second);
    let names: Vec<String> =
        read(folder.path(), "all.zip!*.csv").unwrap().into_iter().map(|(name, _)| name).collect();
    // In the order of their names: a point comes before `a`.
    assert_eq!(names, ["b", "c", "d", "a", "e"]);
    let error = read(folder.path(), "all.zip!none.csv").unwrap_err().to_string();
    assert!(error.contains("all.zip has no member none.csv; it has data/a.csv, b.csv"), "{error}");
    let error = read(folder.path(), "all.zip").unwrap_err().to_string();
    assert!(error.contains("has 6 members: name one"), "{error}");
}

#[test]
fn an_archive_with_one_member_is_that_member() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(3, 100_000);
    let packed = tar(&[("orders.csv", b'0', &text)]);
    for (name, bytes) in [
        ("one.zip", zip(&[("orders.csv", &text, Some(Compression::Deflate))])),
        ("one.tar", packed.clone()),
        ("one.tar.gz", compress(Compression::Gzip, &packed)),
        ("one.tgz", compress(Compression::Gzip, &packed)),
        ("one.tar.zst", compress(Compression::Zstd, &packed)),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let read = read(folder.path(), name).unwrap();
        assert!(read == [("orders".to_owned(), text.clone())], "{name}");
    }
}

/// Symptom: a zip file that macOS made of one file was refused. Cause: what file managers leave counted as members.
#[test]
fn what_file_managers_leave_is_no_member() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(5, 900);
    let members: [(&str, &[u8], _); 5] = [
        ("data/a.csv", &text, Some(Compression::Deflate)),
        ("__MACOSX/data/._a.csv", b"\0\x05\x16\x07", None),
        ("data/.DS_Store", b"Bud1", None),
        ("Thumbs.db", b"x", None),
        ("data/._b.csv", b"x", None),
    ];
    std::fs::write(folder.path().join("a.zip"), zip(&members)).unwrap();
    for argument in ["a.zip", "a.zip!*", "a.zip!*.csv"] {
        let read = read(folder.path(), argument).unwrap();
        assert_eq!(read.len(), 1, "{argument}");
        assert!(read[0].1 == text, "{argument}");
    }
    // One that is named is read.
    assert_eq!(read(folder.path(), "a.zip!Thumbs.db").unwrap()[0].1, b"x");
}

#[test]
fn documents_that_are_zip_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let members: [(&str, &[u8], _); 2] =
        [("[Content_Types].xml", b"x", None), ("xl/workbook.bin", b"x", None)];
    std::fs::write(folder.path().join("a.xlsb"), zip(&members)).unwrap();
    let error = read(folder.path(), "a.xlsb").unwrap_err().to_string();
    assert!(
        error.contains("looks like a binary Excel workbook (.xlsb), which is not read: save"),
        "{error}"
    );
}

#[test]
fn members_of_tar_files_may_have_long_names() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (text(4, 1_000_000), text(5, 1_000));
    let long = format!("{}/long.csv", "x".repeat(300));
    let gnu = [long.as_bytes(), b"\0"].concat();
    let packed = tar(&[
        ("dir/", b'5', b""),
        ("plain.csv", b'0', &first),
        ("././@LongLink", b'L', &gnu),
        ("cut", b'0', &second),
        ("pax", b'x', b"18 path=pax/e.csv\n13 size=1000\n"),
        ("cut", b'0', &second),
    ]);
    for name in ["all.tar", "all.tar.xz"] {
        let bytes =
            if name == "all.tar" { packed.clone() } else { compress(Compression::Xz, &packed) };
        std::fs::write(folder.path().join(name), bytes).unwrap();
        for (member, expected) in
            [("plain.csv", &first), (&long[..], &second), ("pax/e.csv", &second)]
        {
            let read = read(folder.path(), &format!("{name}!{member}")).unwrap();
            assert!(read[0].1 == *expected, "{name} {member}");
        }
    }
}

#[test]
fn damaged_archives_are_errors_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(6, 100_000);
    let stored = zip(&[("a.csv", &text, None)]);
    let path = folder.path().join("a.zip");
    let check = |bytes: &[u8], expected: &str| {
        std::fs::write(&path, bytes).unwrap();
        let error = read(folder.path(), "a.zip!a.csv").unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("(byte "), "{error}");
    };
    check(&stored[..stored.len() - 30], "the file is truncated");
    let mut flipped = stored.clone();
    flipped[5_000] ^= 1;
    check(&flipped, "its checksum is not what the archive tells");
    // Any cut or flip is an error or the text, and never a panic.
    for at in (0..stored.len()).rev().take(150).chain(0..100) {
        for change in [1, 0x80, 0xff] {
            let mut bytes = stored.clone();
            bytes[at] ^= change;
            std::fs::write(&path, bytes).unwrap();
            if let Ok(read) = read(folder.path(), "a.zip!a.csv") {
                assert!(read[0].1 == text);
            }
        }
    }
    let packed = tar(&[("a.csv", b'0', &text)]);
    let path = folder.path().join("a.tar");
    std::fs::write(&path, &packed[..50_000]).unwrap();
    let error = read(folder.path(), "a.tar!a.csv").unwrap_err().to_string();
    assert!(error.contains("the archive is truncated"), "{error}");
}
