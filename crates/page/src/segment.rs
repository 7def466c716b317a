//! The bytes of a segment file besides its pages: column indexes and footer.
//!
//! ```text
//!   magic (8)
//!   pages, dictionaries        each at a multiple of 8
//!   column indexes             one a column
//!   B+ tree of the key         from a multiple of 64 on, if there is one
//!   footer                     whose it is, rows of each page, where each column index stands
//!   footer bytes u32, footer checksum u64, magic (8)
//! ```
//!
//! All columns of a segment share the boundaries of their pages. A column index is read when its
//! column is first used; opening a segment reads the footer only. The footer has the checksums of the column
//! indexes and these those of the pages, so that the checksum of the footer, the segment's **seal**, stands for all
//! that is read of it.

use coload_types::bytes::{ByteReader, checksum, put_bytes, put_varint};
use coload_types::{CODES_MAX, Error, Physical, Result};

use crate::page::{PAGE_ROWS_MAX, PageDetail, PageMeta};

/// First and last bytes of a segment file that is written now; the last byte is the version of the format. Format 2 had
/// pages of codecs 0 to 3 only.
pub const SEGMENT_MAGIC: [u8; 8] = *b"COLOSEG\x03";
/// Those of format 4, which is format 3 with a B+ tree.
pub const SEGMENT_MAGIC_4: [u8; 8] = *b"COLOSEG\x04";
/// Those of format 1, whose footer does not say whose the segment is.
const SEGMENT_MAGIC_1: [u8; 8] = *b"COLOSEG\x01";
/// Bytes after the footer.
const TAIL_BYTES: usize = 4 + 8 + 8;

/// Where one column's parts stand, and what its pages hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnIndex {
    /// The dictionary, encoded as a plain page, and absent when no page holds codes.
    pub dictionary: Option<PageMeta>,
    /// Symbol tables of `Text` pages.
    pub symbols: Vec<Vec<u8>>,
    /// Pages in row order.
    pub pages: Vec<PageMeta>,
}

impl ColumnIndex {
    /// The index as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.pages.len() * 32);
        match &self.dictionary {
            None => out.push(0),
            Some(page) => {
                out.push(1);
                page.put(&mut out);
            }
        }
        put_varint(&mut out, self.symbols.len() as u64);
        for table in &self.symbols {
            put_bytes(&mut out, table);
        }
        put_varint(&mut out, self.pages.len() as u64);
        for page in &self.pages {
            page.put(&mut out);
        }
        out
    }

    /// Reads what [`Self::encode`] wrote and checks it against the column's shape and the page rows.
    pub fn decode(bytes: &[u8], physical: Physical, page_rows: &[u32]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let dictionary = match reader.u8()? {
            0 => None,
            1 => Some(PageMeta::read(&mut reader)?),
            other => return Err(Error::Corrupt(format!("dictionary mark {other}"))),
        };
        let mut symbols = Vec::new();
        for _ in 0..reader.count(1)? {
            symbols.push(reader.bytes()?.to_vec());
        }
        let mut pages = Vec::with_capacity(reader.count(13)?.min(page_rows.len()));
        for rows in page_rows {
            let page = PageMeta::read(&mut reader)?;
            if page.rows != *rows {
                return Err(Error::Corrupt("page has other rows than its neighbours".into()));
            }
            pages.push(page);
        }
        reader.finish()?;
        let index = ColumnIndex { dictionary, symbols, pages };
        index.check(physical)?;
        Ok(index)
    }

    fn check(&self, physical: Physical) -> Result<()> {
        let fits = |detail: &PageDetail| detail.physical() == Some(physical);
        // Values that all differ take a byte each at least, which bounds what is decoded.
        let too_many = |d: &PageMeta| d.rows as usize > CODES_MAX || u64::from(d.rows) > d.bytes;
        let values = match &self.dictionary {
            Some(d) if !fits(&d.detail) || d.nulls > 0 || d.runs.is_some() || too_many(d) => {
                return Err(Error::Corrupt("dictionary of another type".into()));
            }
            Some(d) => d.rows,
            None => 0,
        };
        for page in &self.pages {
            let good = match page.detail {
                PageDetail::Codes { base, max, width } => {
                    self.dictionary.is_some()
                        && base <= max
                        && (max < values || page.nulls == page.rows && max == values)
                        && (width == 32 || u64::from(base) + (1u64 << width) > u64::from(max))
                }
                PageDetail::Text { symbols } => {
                    physical == Physical::Bytes && symbols as usize <= self.symbols.len()
                }
                _ => fits(&page.detail),
            };
            if !good {
                return Err(Error::Corrupt("page does not fit its column".into()));
            }
        }
        Ok(())
    }

    /// NULL rows of the column.
    pub fn nulls(&self) -> u64 {
        self.pages.iter().map(|p| u64::from(p.nulls)).sum()
    }

    /// Bytes of pages and dictionary.
    pub fn data_bytes(&self) -> u64 {
        self.pages.iter().chain(&self.dictionary).map(|p| p.bytes).sum::<u64>()
            + self.symbols.iter().map(|s| s.len() as u64).sum::<u64>()
    }
}

/// A column in the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnEntry {
    /// Shape of the values.
    pub physical: Physical,
    /// Where the column index stands.
    pub offset: u64,
    /// Bytes of the column index.
    pub bytes: u64,
    /// Checksum of the column index.
    pub checksum: u64,
}

/// Which segment of which load or merge a segment was written as; zeros if it was written under another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentId {
    /// The load or merge, 128 bits.
    pub load: u128,
    /// Which of its segments.
    pub number: u32,
}

/// The B+ tree of a segment's key, in the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Where it stands.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The checksum that it is opened with.
    pub seal: u64,
    /// Columns of the key, the most significant first.
    pub parts: Vec<KeyPart>,
}

/// A column of a key, and how its values became bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Number of the column.
    pub column: u32,
    /// How its values became bytes.
    pub form: KeyForm,
}

/// How values of a key became bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The distance of a number from the least one, in so many bytes.
    Number {
        /// The least number of the segment.
        least: i128,
        /// Bytes of the distance, at most 16.
        width: u8,
    },
    /// Text.
    Text,
}

/// Most columns of a key.
const KEY_PARTS_MAX: usize = 16;
/// Most bytes of a number of a key.
const KEY_NUMBER_BYTES_MAX: u8 = 16;

impl TreeEntry {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
        out.extend(self.seal.to_le_bytes());
        put_varint(out, self.parts.len() as u64);
        for part in &self.parts {
            put_varint(out, u64::from(part.column));
            match part.form {
                KeyForm::Number { least, width } => {
                    out.push(width);
                    out.extend(least.to_le_bytes());
                }
                KeyForm::Text => out.push(u8::MAX),
            }
        }
    }

    /// Reads one of a footer that stands at byte `start`.
    fn read(reader: &mut ByteReader<'_>, start: u64, columns: &[ColumnEntry]) -> Result<Self> {
        let (offset, bytes, seal) = (reader.varint()?, reader.varint()?, reader.u64()?);
        if offset.checked_add(bytes).is_none_or(|end| end > start) {
            return Err(wrong("B+ tree out of the file"));
        }
        let count = reader.count(2)?;
        if count == 0 || count > KEY_PARTS_MAX {
            return Err(wrong("columns of a B+ tree"));
        }
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            let column = reader.varint_u32()?;
            let is_text = match columns.get(column as usize).map(|column| column.physical) {
                Some(physical) => physical == Physical::Bytes,
                None => return Err(wrong("columns of a B+ tree")),
            };
            let form = match reader.u8()? {
                u8::MAX if is_text => KeyForm::Text,
                width if !is_text && width <= KEY_NUMBER_BYTES_MAX => {
                    KeyForm::Number { least: reader.i128()?, width }
                }
                _ => return Err(wrong("columns of a B+ tree")),
            };
            parts.push(KeyPart { column, form });
        }
        Ok(TreeEntry { offset, bytes, seal, parts })
    }
}

/// What is read when a segment is opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentFooter {
    /// Which segment it is; `None` in format 1.
    pub id: Option<SegmentId>,
    /// Rows of each page, the same in all columns.
    pub page_rows: Vec<u32>,
    /// Columns in table order.
    pub columns: Vec<ColumnEntry>,
    /// The B+ tree of the key; `None` in formats before 4.
    pub tree: Option<TreeEntry>,
}

impl SegmentFooter {
    /// Rows of the segment.
    pub fn rows(&self) -> u64 {
        self.page_rows.iter().map(|r| u64::from(*r)).sum()
    }

    /// First and last bytes of the file.
    pub fn magic(&self) -> [u8; 8] {
        match (self.id, &self.tree) {
            (None, _) => SEGMENT_MAGIC_1,
            (Some(_), None) => SEGMENT_MAGIC,
            (Some(_), Some(_)) => SEGMENT_MAGIC_4,
        }
    }

    /// The end of a segment file: footer, length, checksum, magic.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_sealed().0
    }

    /// The bytes that [`Self::encode`] gives, and the seal of the segment.
    pub fn encode_sealed(&self) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(84 + self.page_rows.len() * 3 + self.columns.len() * 20);
        if let Some(id) = self.id {
            out.extend(id.load.to_le_bytes());
            put_varint(&mut out, u64::from(id.number));
        }
        put_varint(&mut out, self.page_rows.len() as u64);
        for rows in &self.page_rows {
            put_varint(&mut out, u64::from(*rows));
        }
        put_varint(&mut out, self.columns.len() as u64);
        for column in &self.columns {
            out.push(column.physical as u8);
            put_varint(&mut out, column.offset);
            put_varint(&mut out, column.bytes);
            out.extend(column.checksum.to_le_bytes());
        }
        if let (Some(_), Some(tree)) = (self.id, &self.tree) {
            tree.put(&mut out);
        }
        let (bytes, seal) = (out.len() as u32, checksum(&out));
        out.extend(bytes.to_le_bytes());
        out.extend(seal.to_le_bytes());
        out.extend(self.magic());
        (out, seal)
    }

    /// Reads the footer of a whole segment file.
    ///
    /// # Errors
    /// `Corrupt` when it is no segment, is cut, or its footer was changed; `Invalid` when it is of a newer format.
    pub fn decode(file: &[u8]) -> Result<Self> {
        Self::decode_sealed(file).map(|(footer, _)| footer)
    }

    /// As [`Self::decode`], and the seal.
    ///
    /// # Errors
    /// As those of [`Self::decode`].
    pub fn decode_sealed(file: &[u8]) -> Result<(Self, u64)> {
        if file.len() < SEGMENT_MAGIC.len() + TAIL_BYTES || file[..7] != SEGMENT_MAGIC[..7] {
            return Err(wrong("not a segment"));
        }
        let (has_id, has_tree) = match file[7] {
            4 => (true, true),
            2 | 3 => (true, false),
            1 => (false, false),
            // A version that both ends agree on is a later one; else a bit is wrong.
            later if file.last() == Some(&later) => {
                return Err(Error::Invalid(format!(
                    "segment format {later} is not known to this version (update it)"
                )));
            }
            _ => return Err(wrong("first bytes")),
        };
        let (body, tail) = file.split_at(file.len() - TAIL_BYTES);
        let mut reader = ByteReader::new(tail);
        let (bytes, seal) = (reader.u32()? as usize, reader.u64()?);
        if reader.take(8)? != &file[..8] {
            return Err(wrong("segment has no end: it is cut, or longer than it was written"));
        }
        let start = body.len().checked_sub(bytes).ok_or_else(|| wrong("footer length"))?;
        let footer = &body[start..];
        if checksum(footer) != seal {
            return Err(wrong("footer checksum does not agree"));
        }
        Ok((Self::read(footer, start as u64, (has_id, has_tree))?, seal))
    }

    /// Reads a footer that stands at byte `start`.
    fn read(footer: &[u8], start: u64, (has_id, has_tree): (bool, bool)) -> Result<Self> {
        let mut reader = ByteReader::new(footer);
        let id = match has_id {
            true => Some(SegmentId {
                load: u128::from_le_bytes(reader.array()?),
                number: reader.varint_u32()?,
            }),
            false => None,
        };
        let mut page_rows = Vec::with_capacity(reader.clone().count(1)?);
        for _ in 0..reader.count(1)? {
            let rows = reader.varint_u32()?;
            if rows > PAGE_ROWS_MAX {
                return Err(wrong("rows of a page"));
            }
            page_rows.push(rows);
        }
        let mut columns = Vec::with_capacity(reader.clone().count(11)?);
        for _ in 0..reader.count(11)? {
            let physical = match reader.u8()? {
                0 => Physical::Int,
                1 => Physical::Wide,
                2 => Physical::Bytes,
                _ => return Err(wrong("column shape")),
            };
            let entry = ColumnEntry {
                physical,
                offset: reader.varint()?,
                bytes: reader.varint()?,
                checksum: reader.u64()?,
            };
            if entry.offset.checked_add(entry.bytes).is_none_or(|end| end > start) {
                return Err(wrong("column index out of the file"));
            }
            columns.push(entry);
        }
        let tree = match has_tree {
            true => Some(TreeEntry::read(&mut reader, start, &columns)?),
            false => None,
        };
        reader.finish()?;
        Ok(SegmentFooter { id, page_rows, columns, tree })
    }
}

fn wrong(what: &str) -> Error {
    Error::Corrupt(what.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::codec::CodecId;

    fn is_corrupt<T>(result: Result<T>) -> bool {
        matches!(result, Err(Error::Corrupt(_)))
    }

    #[test]
    fn pages_of_too_many_rows_are_refused() {
        let decode = |rows| {
            let id = Some(SegmentId::default());
            let page_rows = vec![rows];
            let footer = SegmentFooter { id, page_rows, ..SegmentFooter::default() };
            SegmentFooter::decode(&[&SEGMENT_MAGIC[..], &footer.encode()].concat())
        };
        assert_eq!(decode(PAGE_ROWS_MAX).unwrap().page_rows, [PAGE_ROWS_MAX]);
        assert!(is_corrupt(decode(PAGE_ROWS_MAX + 1)));
    }

    #[test]
    fn dictionaries_of_more_values_than_bytes_are_refused() {
        let decode = |rows, bytes| {
            let detail = PageDetail::Int { min: 0, max: i64::MAX };
            let (offset, checksum) = (8, 0);
            let codec = CodecId::FRAMES;
            let page =
                PageMeta { codec, detail, rows, nulls: 0, offset, bytes, checksum, runs: None };
            let index = ColumnIndex { dictionary: Some(page), ..ColumnIndex::default() };
            ColumnIndex::decode(&index.encode(), Physical::Int, &[])
        };
        assert!(decode(1_000, 1_000).is_ok());
        assert!(is_corrupt(decode(1_001, 1_000)));
    }
}
