//! The members of a tar file: headers of 512 bytes, each before its member.
//!
//! Known are the headers of POSIX (ustar and pax) and of GNU (long names, sizes in binary).
//!
//! Source: POSIX.1-2017, pax; the manual of GNU tar, "Basic Tar Format".

use std::io::{self, Read, Take};

use coload_types::{Error, Place, Result};

use super::{Member, Stored};
use crate::raw::read_error;

/// Bytes of a header; members are padded to a multiple.
pub const HEADER_BYTES: usize = 512;
/// Most bytes of a long name or of the records of a pax header.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;
/// Most members of an archive.
const MEMBERS_MAX: usize = 1_000_000;

/// Whether these are a header: its checksum is right.
pub fn is_header(header: &[u8]) -> bool {
    let Some(header) = header.first_chunk::<HEADER_BYTES>() else { return false };
    // The sum counts itself as spaces. A block of zeros, which is the end, is no header.
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    sum > 8 * 32 && size(&header[148..156]) == Some(sum)
}

/// The members that are files.
pub fn members(mut text: impl Read, name: &str, stored: Stored) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    let (mut long_name, mut pax_bytes) = (None, None);
    let mut at = 0;
    loop {
        let mut header = [0; HEADER_BYTES];
        // Two blocks of zeros, or nothing, end an archive.
        if !read_whole(&mut text, &mut header, name, at)? || header == [0; HEADER_BYTES] {
            return Ok(members);
        }
        if !is_header(&header) {
            return Err(damaged(name, at, "the checksum of a header is wrong"));
        }
        at += HEADER_BYTES as u64;
        let bytes = size(&header[124..136]).ok_or_else(|| damaged(name, at, "a size is wrong"))?;
        match header[156] {
            b'L' => long_name = Some(c_string(&extension(&mut text, bytes, name, &mut at)?)),
            b'x' => {
                let records = extension(&mut text, bytes, name, &mut at)?;
                long_name = pax_value(&records, b"path").map(|v| c_string(&v)).or(long_name);
                let pax = pax_value(&records, b"size");
                pax_bytes = pax.and_then(|v| std::str::from_utf8(&v).ok()?.parse().ok());
            }
            kind => {
                let bytes = pax_bytes.take().unwrap_or(bytes);
                let member = long_name.take().unwrap_or_else(|| header_name(&header));
                if matches!(kind, b'0' | 0 | b'7') && !member.ends_with('/') {
                    members.push(Member { name: member, start: at, bytes, stored });
                }
                if members.len() > MEMBERS_MAX {
                    return Err(Error::Limit(format!("{name}: over {MEMBERS_MAX} members")));
                }
                skip(&mut text, padded(bytes), name, &mut at)?;
            }
        }
    }
}

/// The bytes of a member, which are as many as its header says or an error.
pub fn part<R: Read>(mut text: R, name: &str, member: &Member) -> Result<Whole<R>> {
    let mut at = 0;
    skip(&mut text, member.start, name, &mut at)?;
    Ok(Whole { text: text.take(member.bytes) })
}

/// A reader that must have as many bytes as it says.
pub struct Whole<R> {
    text: Take<R>,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.text.limit() > 0 {
            let text = "the member ends in the middle: the archive is truncated";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(read)
    }
}

fn padded(bytes: u64) -> u64 {
    bytes.div_ceil(HEADER_BYTES as u64).saturating_mul(HEADER_BYTES as u64)
}

fn extension(text: &mut impl Read, bytes: u64, name: &str, at: &mut u64) -> Result<Vec<u8>> {
    if bytes > EXTENSION_BYTES_MAX {
        return Err(damaged(name, *at, "a name is over a megabyte long"));
    }
    let mut extension = vec![0; padded(bytes) as usize];
    if !read_whole(text, &mut extension, name, *at)? && bytes > 0 {
        return Err(truncated(name, *at));
    }
    *at += extension.len() as u64;
    extension.truncate(bytes as usize);
    Ok(extension)
}

/// The value of a record `length key=value\n`; of several, the last.
fn pax_value(records: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let mut rest = records;
    while let Some(space) = memchr::memchr(b' ', rest) {
        let length: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        let record = rest.get(space + 1..length.checked_sub(1)?)?;
        if let Some(value) = record.strip_prefix(key).and_then(|r| r.strip_prefix(b"=")) {
            found = Some(value.to_vec());
        }
        rest = rest.get(length..)?;
    }
    found
}

fn header_name(header: &[u8; HEADER_BYTES]) -> String {
    let name = c_string(&header[..100]);
    let prefix = c_string(&header[345..500]);
    match &header[257..263] == b"ustar\0" && !prefix.is_empty() {
        true => format!("{prefix}/{name}"),
        false => name,
    }
}

fn c_string(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A number in octal digits, or in binary after a byte of 0x80.
fn size(field: &[u8]) -> Option<u64> {
    if field[0] == 0x80 {
        let (high, low) = field.split_at(field.len() - 8);
        let whole = high.iter().skip(1).all(|byte| *byte == 0);
        return low.first_chunk().map(|low| u64::from_be_bytes(*low)).filter(|_| whole);
    }
    let digits = field.iter().filter(|byte| !matches!(byte, b' ' | 0));
    digits
        .map(|d| (b'0'..=b'7').contains(d).then(|| u64::from(d - b'0')))
        .try_fold(0u64, |sum, digit| sum.checked_mul(8)?.checked_add(digit?))
}

/// Reads over so many bytes, and counts them in `at`.
fn skip(text: &mut impl Read, bytes: u64, name: &str, at: &mut u64) -> Result<()> {
    let skipped = io::copy(&mut text.by_ref().take(bytes), &mut io::sink());
    let skipped = skipped.map_err(|e| read_error(name, e))?;
    *at += skipped;
    if skipped < bytes { Err(truncated(name, *at)) } else { Ok(()) }
}

/// Fills the buffer; false when the text has ended before it.
fn read_whole(text: &mut impl Read, buffer: &mut [u8], name: &str, at: u64) -> Result<bool> {
    let mut have = 0;
    while have < buffer.len() {
        match text.read(&mut buffer[have..]) {
            Ok(0) if have == 0 => return Ok(false),
            Ok(0) => return Err(truncated(name, at + have as u64)),
            Ok(read) => have += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(name, e)),
        }
    }
    Ok(true)
}

fn truncated(name: &str, at: u64) -> Error {
    damaged(name, at, "the archive is truncated")
}

fn damaged(name: &str, byte: u64, text: &str) -> Error {
    let place = Place { file: name.to_owned(), line: 0, byte, field: 0 };
    Error::Input { place: Box::new(place), text: format!("not a valid tar file: {text}") }
}
