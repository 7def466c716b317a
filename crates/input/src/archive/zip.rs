//! The directory of a zip file.
//!
//! It stands at the end, and tells of each member where it lies and how it is stored; the headers
//! before the members only repeat it. With zip64, where sizes are over 4 GiB.
//!
//! Source: APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3 and 4.5.3.

use coload_types::{Error, Place, Result};

use super::{Check, Member, Stored};
use crate::compression::Compression;
use crate::raw::RawFile;

/// The record at the end, and the comment that may follow it.
const END_BYTES: usize = 22;
const COMMENT_BYTES_MAX: usize = 0xffff;
/// The record that tells where the end record of zip64 is.
const LOCATOR_BYTES: usize = 20;
const END64_BYTES: usize = 56;
/// An entry of the directory without name, extra field and comment.
const ENTRY_BYTES: usize = 46;
/// The header before a member, without name and extra field.
const HEADER_BYTES: usize = 30;
/// Most bytes of a directory: some 500,000 members.
const DIRECTORY_BYTES_MAX: u64 = 64 << 20;
/// Extra field with 64-bit sizes.
const ZIP64: u16 = 1;

/// The members that are files, in the order of the directory.
pub fn members(file: &RawFile) -> Result<Vec<Member>> {
    let (start, bytes) = find_directory(file)?;
    if bytes > DIRECTORY_BYTES_MAX {
        return Err(Error::Limit(format!(
            "{}: its directory has {bytes} bytes; at most {DIRECTORY_BYTES_MAX} are read",
            file.name()
        )));
    }
    if start.checked_add(bytes).is_none_or(|end| end > file.bytes()) {
        return Err(damaged(file, start, "the directory is not within the file"));
    }
    let mut directory = vec![0; bytes as usize];
    file.read_at(&mut directory, start)?;
    let mut entries = Vec::new();
    let mut rest = &directory[..];
    while !rest.is_empty() {
        let at = start + bytes - rest.len() as u64;
        let entry = Entry::read(rest).ok_or_else(|| damaged(file, at, "an entry is cut"))?;
        rest = &rest[entry.length..];
        if !entry.name.ends_with('/') {
            entries.push(entry);
        }
    }
    // Of a file that is far away, all headers are fetched at once.
    let header = |entry: &Entry| entry.header..entry.header.saturating_add(HEADER_BYTES as u64);
    file.look_at(entries.iter().map(header));
    entries.iter().map(|entry| member(file, entry)).collect()
}

/// First byte and length of the directory.
fn find_directory(file: &RawFile) -> Result<(u64, u64)> {
    let tail_bytes = file.bytes().min((LOCATOR_BYTES + END_BYTES + COMMENT_BYTES_MAX) as u64);
    let tail_start = file.bytes() - tail_bytes;
    let mut tail = vec![0; tail_bytes as usize];
    file.read_at(&mut tail, tail_start)?;
    let end = memchr::memmem::rfind_iter(&tail, b"PK\x05\x06")
        .find(|at| tail.len() - at >= END_BYTES)
        .ok_or_else(|| damaged(file, file.bytes(), "it has no directory: the file is truncated"))?;
    let record = &tail[end..];
    let (bytes, start) = (number(record, 12), number(record, 16));
    if start != u64::from(u32::MAX) && bytes != u64::from(u32::MAX) {
        return Ok((start, bytes));
    }
    let cut = || damaged(file, tail_start + end as u64, "the directory of zip64 is not found");
    let locator = end.checked_sub(LOCATOR_BYTES).map(|at| &tail[at..end]).ok_or_else(cut)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok((start, bytes));
    }
    let at = long(locator, 8);
    let mut record = [0; END64_BYTES];
    if file.read_at(&mut record, at)? < END64_BYTES || !record.starts_with(b"PK\x06\x06") {
        return Err(cut());
    }
    Ok((long(&record, 48), long(&record, 40)))
}

/// An entry of the directory.
struct Entry {
    length: usize,
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    stored_bytes: u64,
    bytes: u64,
    header: u64,
}

impl Entry {
    fn read(text: &[u8]) -> Option<Self> {
        let fixed = text.get(..ENTRY_BYTES).filter(|e| e.starts_with(b"PK\x01\x02"))?;
        let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(short(fixed, at)));
        let length = ENTRY_BYTES + name + extra + comment;
        let rest = text.get(ENTRY_BYTES..length)?;
        let mut entry = Entry {
            length,
            name: String::from_utf8_lossy(&rest[..name]).into_owned(),
            flags: short(fixed, 8),
            method: short(fixed, 10),
            crc: number(fixed, 16) as u32,
            stored_bytes: number(fixed, 20),
            bytes: number(fixed, 24),
            header: number(fixed, 42),
        };
        entry.read_zip64(&rest[name..name + extra]);
        Some(entry)
    }

    /// Sizes and places that do not fit in 32 bits stand in an extra field, in this order.
    fn read_zip64(&mut self, mut extra: &[u8]) {
        while let Some((head, rest)) = extra.split_at_checked(4) {
            let length = usize::from(short(head, 2));
            let Some((mut field, rest)) = rest.split_at_checked(length) else { return };
            if short(head, 0) == ZIP64 {
                for value in [&mut self.bytes, &mut self.stored_bytes, &mut self.header] {
                    if *value == u64::from(u32::MAX)
                        && let Some((first, rest)) = field.split_first_chunk::<8>()
                    {
                        *value = u64::from_le_bytes(*first);
                        field = rest;
                    }
                }
            }
            extra = rest;
        }
    }
}

fn member(file: &RawFile, entry: &Entry) -> Result<Member> {
    let name = &entry.name;
    if entry.flags & 1 != 0 {
        return Err(Error::Invalid(format!(
            "{}: {name} is encrypted; decrypt it into a pipe: ... | coload load -",
            file.name()
        )));
    }
    let format = match entry.method {
        0 => None,
        8 => Some(Compression::Deflate),
        12 => Some(Compression::Bzip2),
        93 => Some(Compression::Zstd),
        95 => Some(Compression::Xz),
        other => {
            return Err(Error::Invalid(format!(
                "{}: {name} is compressed by method {other}, which is not known; decompress it into a \
                 pipe: unzip -p ... | coload load -",
                file.name()
            )));
        }
    };
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(&mut header, entry.header)?;
    if read < HEADER_BYTES || !header.starts_with(b"PK\x03\x04") {
        return Err(damaged(file, entry.header, &format!("the header of {name} is not there")));
    }
    let before =
        HEADER_BYTES as u64 + u64::from(short(&header, 26)) + u64::from(short(&header, 28));
    let start = entry.header + before;
    if start.checked_add(entry.stored_bytes).is_none_or(|end| end > file.bytes()) {
        return Err(damaged(file, start, &format!("{name} is not within the file")));
    }
    let check = Check { bytes: entry.bytes, crc: entry.crc };
    let stored = Stored::Zip { format, check };
    Ok(Member { name: name.clone(), start, bytes: entry.stored_bytes, stored })
}

fn damaged(file: &RawFile, byte: u64, text: &str) -> Error {
    let place = Place { file: file.name().to_owned(), line: 0, byte, field: 0 };
    Error::Input { place: Box::new(place), text: format!("not a valid zip file: {text}") }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_le_bytes(*b))
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from(u32::from_le_bytes(*b)))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}
