//! Compressed formats and their magic bytes. The first bytes decide, never the name of the file.

use std::ffi::OsStr;
use std::fmt;

/// A compressed format that is told by the first bytes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, one or more members; BGZF too.
    Gzip,
    /// RFC 8878, one or more frames.
    Zstd,
    /// One or more streams.
    Bzip2,
    /// One or more streams.
    Xz,
    /// LZ4 in frames; legacy frames are refused.
    Lz4,
    /// The Snappy framing format.
    Snappy,
    /// Deflate without header or trailer, as zip members have it.
    Deflate,
}

const BZIP2_BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const BZIP2_END: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const LZ4: &[u8] = b"\x04\x22\x4d\x18";
const LZ4_LEGACY: &[u8] = b"\x02\x21\x4c\x18";
const SNAPPY: &[u8] = b"\xff\x06\0\0sNaPpY";
/// Bytes 2 to 4 of a frame that Zstandard reads over; the first is 0x50 to 0x5f.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
/// Extensions of files; a file of that name that ends within its magic bytes is truncated.
const EXTENSIONS: [(&str, Compression, &[u8]); 9] = [
    ("gz", Compression::Gzip, b"\x1f\x8b\x08"),
    ("bgz", Compression::Gzip, b"\x1f\x8b\x08"),
    ("tgz", Compression::Gzip, b"\x1f\x8b\x08"),
    ("zst", Compression::Zstd, ZSTD),
    ("bz2", Compression::Bzip2, b"BZh"),
    ("xz", Compression::Xz, XZ),
    ("lz4", Compression::Lz4, LZ4),
    ("sz", Compression::Snappy, SNAPPY),
    ("snappy", Compression::Snappy, SNAPPY),
];

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "Zstandard",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Lz4 => "LZ4",
            Compression::Snappy => "Snappy",
            Compression::Deflate => "deflate",
        })
    }
}

impl Compression {
    /// The format of an input from its first bytes.
    pub fn detect(head: &[u8]) -> Option<Self> {
        let head = after_skippable(head);
        let all = [
            Compression::Gzip,
            Compression::Zstd,
            Compression::Bzip2,
            Compression::Xz,
            Compression::Lz4,
            Compression::Snappy,
        ];
        // A file of nothing but frames that are read over has no text in either.
        all.into_iter().find(|format| format.starts(head))
    }

    /// Whether the name of a compressed file may end so.
    pub fn is_extension(extension: &OsStr) -> bool {
        EXTENSIONS.iter().any(|(known, ..)| extension.eq_ignore_ascii_case(known))
    }

    /// The format of an input that is all of `head`, and so short that its magic bytes are cut.
    pub fn of_cut_head(name: &str, head: &[u8]) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        EXTENSIONS
            .iter()
            .find(|(known, _, magic)| {
                let cut = magic.starts_with(head) || (head.starts_with(magic) && head.len() < 10);
                *known == extension && cut
            })
            .map(|(_, format, _)| *format)
    }

    /// Whether a member, frame or stream of the format may start here.
    pub fn starts(self, text: &[u8]) -> bool {
        match self {
            // Of the flags, the upper three are reserved and 0.
            Compression::Gzip => {
                text.starts_with(b"\x1f\x8b\x08")
                    && text.get(3).is_none_or(|flags| flags & 0xe0 == 0)
            }
            Compression::Zstd => text.starts_with(ZSTD) || is_skippable(text),
            Compression::Bzip2 => {
                text.len() >= 10
                    && text.starts_with(b"BZh")
                    && (b'1'..=b'9').contains(&text[3])
                    && [BZIP2_BLOCK, BZIP2_END].contains(&&text[4..10])
            }
            Compression::Xz => text.starts_with(XZ),
            Compression::Lz4 => {
                text.starts_with(LZ4) || text.starts_with(LZ4_LEGACY) || is_skippable(text)
            }
            Compression::Snappy => text.starts_with(SNAPPY),
            Compression::Deflate => false,
        }
    }

    /// Whether members are sought from the middle of a file, to be decompressed at once.
    pub fn has_members(self) -> bool {
        matches!(self, Compression::Gzip | Compression::Zstd | Compression::Bzip2 | Compression::Xz)
    }

    /// The first place at `from` or later, and before `end`, where a member may start.
    pub fn find_start(self, text: &[u8], from: usize, end: usize) -> Option<usize> {
        let mut at = from;
        while at < end {
            // The rarest bytes of the magic, and how far they stand behind its start.
            let (needle, before): (&[u8], usize) = match self {
                Compression::Gzip => (b"\x1f\x8b\x08", 0),
                Compression::Zstd => return find_zstd(text, at, end),
                Compression::Bzip2 => (b"BZh", 0),
                Compression::Xz => (XZ, 0),
                _ => return None,
            };
            at += memchr::memmem::find(&text[at..], needle)? - before;
            if at < end && self.starts(&text[at..]) {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

fn is_skippable(text: &[u8]) -> bool {
    text.len() >= 4 && text[0] & 0xf0 == 0x50 && text[1..4] == *SKIPPABLE
}

/// Frames that are read over are frames too: what follows one is found by its magic only.
fn find_zstd(text: &[u8], from: usize, end: usize) -> Option<usize> {
    let starts = |at: &usize| *at < end && Compression::Zstd.starts(&text[*at..]);
    let frame = memchr::memmem::find_iter(&text[from..], ZSTD).map(|p| from + p).find(starts);
    let before = &text[..frame.map_or(text.len(), |f| f)];
    let skippable = memchr::memmem::find_iter(&before[from..], SKIPPABLE)
        .filter_map(|p| (from + p).checked_sub(1))
        .filter(|p| *p >= from)
        .find(starts);
    skippable.or(frame)
}

/// The bytes after the frames that are read over, of Zstandard or LZ4, at the start of an input.
fn after_skippable(mut head: &[u8]) -> &[u8] {
    while let [first, 0x2a, 0x4d, 0x18, a, b, c, d, rest @ ..] = head
        && first & 0xf0 == 0x50
    {
        match rest.get(u32::from_le_bytes([*a, *b, *c, *d]) as usize..) {
            Some(after) if !after.is_empty() => head = after,
            _ => return head,
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for (head, format) in [
            (&b"\x1f\x8b\x08\x00rest"[..], Some(Compression::Gzip)),
            (b"\x1f\x8b\x08\xe0rest", None),
            (b"\x28\xb5\x2f\xfd", Some(Compression::Zstd)),
            (b"\x50\x2a\x4d\x18\x02\0\0\0xx\x28\xb5\x2f\xfd", Some(Compression::Zstd)),
            (b"\x50\x2a\x4d\x18\x02\0\0\0xx\x04\x22\x4d\x18", Some(Compression::Lz4)),
            (b"BZh91AY&SY", Some(Compression::Bzip2)),
            (b"BZh9,text,of,a,table", None),
            (b"\xfd7zXZ\0", Some(Compression::Xz)),
            (b"\xff\x06\0\0sNaPpY", Some(Compression::Snappy)),
            (b"a,b\n", None),
            (b"", None),
        ] {
            assert_eq!(Compression::detect(head), format, "{head:?}");
        }
        assert_eq!(Compression::of_cut_head("a.csv.gz", b"\x1f"), Some(Compression::Gzip));
        assert_eq!(Compression::of_cut_head("a.csv.gz", b"a"), None);
        assert_eq!(Compression::of_cut_head("a.csv", b""), None);
    }

    #[test]
    fn starts_are_found_from_a_place_on() {
        let text = b"..\x1f\x8b\x08\xff..\x1f\x8b\x08\x04..";
        assert_eq!(Compression::Gzip.find_start(text, 0, text.len()), Some(8));
        assert_eq!(Compression::Gzip.find_start(text, 8, text.len()), Some(8));
        assert_eq!(Compression::Gzip.find_start(text, 9, text.len()), None);
        assert_eq!(Compression::Gzip.find_start(text, 0, 8), None);
        let text = b"..\x28\xb5\x2f\xfd..\x5a\x2a\x4d\x18..\x28\xb5\x2f\xfd";
        for (from, expected) in [(0, Some(2)), (3, Some(8)), (9, Some(14)), (15, None)] {
            assert_eq!(Compression::Zstd.find_start(text, from, text.len()), expected);
        }
    }
}
