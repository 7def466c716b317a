//! One column of one fragment, or what the client made of a column of a partition.

use coload_page::{Page, PageMeta};
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Bitmap, Error, Physical, Plain, Result, Strings, Values};

use crate::FRAGMENTS_MAX;

/// Most rows of a fragment: what is announced must not make the reader take memory.
pub const FRAGMENT_ROWS_MAX: usize = 1 << 26;
/// Most symbol tables in a block.
const TABLES_MAX: usize = 64;

/// A block: where it belongs, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Number of the partition in the load.
    pub partition: u32,
    /// Column of the table.
    pub column: u32,
    /// Values of the column: of one fragment, or of the partition.
    pub content: BlockContent,
}

/// Values, placed on the server or on the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockContent {
    /// Plain values of one fragment: the server transforms them.
    Plain {
        /// Number of the fragment in its partition.
        fragment: u32,
        /// A value for each row.
        values: Plain,
    },
    /// Pages as they go into the segment.
    Pages {
        /// What `Codes` pages point into, as a plain page.
        dictionary: Option<Page>,
        /// Symbol tables of `Text` pages, 1-based there.
        symbols: Vec<Vec<u8>>,
        /// Pages with the numbers of their fragments.
        pages: Vec<(u32, Page)>,
    },
}

/// At least the bytes of a block's head, and of a page's.
const HEAD_BYTES: usize = 96;

impl BlockContent {
    /// At least as many bytes as the block has when it is encoded, so that its buffer need not grow.
    fn bytes_at_most(&self) -> usize {
        let page_bytes = |page: &Page| HEAD_BYTES + page.bytes.len();
        let bytes = match self {
            BlockContent::Plain { values: Plain { values, nulls }, .. } => {
                let null_bytes = nulls.as_ref().map_or(0, |_| values.len() / 8 + 1);
                null_bytes
                    + match values {
                        Values::Int(v) => v.len() * 8,
                        Values::Wide(v) => v.len() * 16,
                        Values::Bytes(v) => v.ends.len() * 4 + v.bytes.len(),
                    }
            }
            BlockContent::Pages { dictionary, symbols, pages } => {
                dictionary.as_ref().map_or(0, page_bytes)
                    + symbols.iter().map(|table| 10 + table.len()).sum::<usize>()
                    + pages.iter().map(|(_, page)| 10 + page_bytes(page)).sum::<usize>()
            }
        };
        HEAD_BYTES + bytes
    }
}

impl Block {
    /// The block as bytes: partition, column, kind u8, then the content.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.content.bytes_at_most());
        put_varint(&mut out, u64::from(self.partition));
        put_varint(&mut out, u64::from(self.column));
        match &self.content {
            BlockContent::Plain { fragment, values } => {
                out.push(0);
                put_varint(&mut out, u64::from(*fragment));
                put_plain(&mut out, values);
            }
            BlockContent::Pages { dictionary, symbols, pages } => {
                out.push(1);
                out.push(u8::from(dictionary.is_some()));
                if let Some(dictionary) = dictionary {
                    put_page(&mut out, dictionary);
                }
                put_varint(&mut out, symbols.len() as u64);
                for table in symbols {
                    put_bytes(&mut out, table);
                }
                put_varint(&mut out, pages.len() as u64);
                for (fragment, page) in pages {
                    put_varint(&mut out, u64::from(*fragment));
                    put_page(&mut out, page);
                }
            }
        }
        out
    }

    /// Reads what [`Self::encode`] wrote; `physical` gives the shape of a column's values, `None` for
    /// one that the table does not have.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are no block.
    pub fn decode(bytes: &[u8], physical: impl Fn(u32) -> Option<Physical>) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (partition, column) = (reader.varint_u32()?, reader.varint_u32()?);
        let physical = physical(column)
            .ok_or_else(|| Error::Corrupt(format!("a block of column {column}")))?;
        let content = match reader.u8()? {
            0 => BlockContent::Plain {
                fragment: fragment_number(&mut reader)?,
                values: read_plain(&mut reader, physical)?,
            },
            1 => read_pages(&mut reader)?,
            other => return Err(Error::Corrupt(format!("a block of kind {other}"))),
        };
        reader.finish()?;
        Ok(Block { partition, column, content })
    }
}

fn fragment_number(reader: &mut ByteReader<'_>) -> Result<u32> {
    let number = reader.varint_u32()?;
    if number as usize >= FRAGMENTS_MAX {
        return Err(Error::Corrupt(format!("fragment {number} of a partition")));
    }
    Ok(number)
}

fn read_pages(reader: &mut ByteReader<'_>) -> Result<BlockContent> {
    let dictionary = match reader.u8()? {
        0 => None,
        _ => Some(read_page(reader)?),
    };
    let count = reader.count(1)?;
    if count > TABLES_MAX {
        return Err(Error::Corrupt(format!("{count} symbol tables in a block")));
    }
    let symbols =
        (0..count).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect::<Result<Vec<_>>>()?;
    let count = reader.count(14)?;
    let mut pages = Vec::with_capacity(count.min(FRAGMENTS_MAX));
    for _ in 0..count {
        pages.push((fragment_number(reader)?, read_page(reader)?));
    }
    Ok(BlockContent::Pages { dictionary, symbols, pages })
}

/// The page's entry in an index, without a place and a checksum, and its bytes.
fn put_page(out: &mut Vec<u8>, page: &Page) {
    // The frame has a checksum.
    page.unplaced().put(out);
    out.extend_from_slice(&page.bytes);
}

fn read_page(reader: &mut ByteReader<'_>) -> Result<Page> {
    let meta = PageMeta::read(reader)?;
    if meta.rows as usize > FRAGMENT_ROWS_MAX {
        return Err(Error::Corrupt(format!("a page of {} rows", meta.rows)));
    }
    let bytes = usize::try_from(meta.bytes)
        .map_err(|_| Error::Corrupt("a page over the address space".into()))?;
    Ok(Page::of(meta, reader.take(bytes)?.to_vec()))
}

/// rows; null bits u8 and, if 1, `ceil(rows / 8)` bytes; values little-endian, for text lengths u32
/// and the bytes.
fn put_plain(out: &mut Vec<u8>, plain: &Plain) {
    put_varint(out, plain.len() as u64);
    let nulls = plain.nulls.as_ref().filter(|n| n.count_ones() > 0);
    out.push(u8::from(nulls.is_some()));
    if let Some(nulls) = nulls {
        nulls.put_bytes(out);
    }
    match &plain.values {
        Values::Int(v) => v.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
        Values::Wide(v) => v.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
        Values::Bytes(v) => {
            let mut start = 0;
            for end in &v.ends {
                out.extend_from_slice(&(end - start).to_le_bytes());
                start = *end;
            }
            out.extend_from_slice(&v.bytes);
        }
    }
}

fn read_plain(reader: &mut ByteReader<'_>, physical: Physical) -> Result<Plain> {
    let rows = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if rows > FRAGMENT_ROWS_MAX {
        return Err(Error::Corrupt(format!("a fragment of {rows} rows")));
    }
    let nulls = match reader.u8()? {
        0 => None,
        _ => {
            let bits = reader.take(rows.div_ceil(8))?;
            let mut nulls = Bitmap::zeros(0);
            nulls.extend_from_bytes(bits, rows);
            // Without a NULL there are none, as when they are written.
            Some(nulls).filter(|nulls| nulls.count_ones() > 0)
        }
    };
    let values = match physical {
        Physical::Int => {
            let bytes = reader.take(rows * 8)?;
            let (numbers, _) = bytes.as_chunks::<8>();
            Values::Int(numbers.iter().map(|n| i64::from_le_bytes(*n)).collect())
        }
        Physical::Wide => {
            let bytes = reader.take(rows * 16)?;
            let (numbers, _) = bytes.as_chunks::<16>();
            Values::Wide(numbers.iter().map(|n| i128::from_le_bytes(*n)).collect())
        }
        Physical::Bytes => Values::Bytes(read_strings(reader, rows)?),
    };
    check_null_rows(&values, nulls.as_ref())?;
    Ok(Plain { values, nulls })
}

fn read_strings(reader: &mut ByteReader<'_>, rows: usize) -> Result<Strings> {
    let lengths = reader.take(rows * 4)?;
    let (lengths, _) = lengths.as_chunks::<4>();
    let mut ends = Vec::with_capacity(rows);
    let mut end = 0u64;
    for length in lengths {
        end += u64::from(u32::from_le_bytes(*length));
        let end = u32::try_from(end)
            .map_err(|_| Error::Corrupt("text of one fragment over 4 GiB".into()))?;
        ends.push(end);
    }
    Ok(Strings { bytes: reader.take(end as usize)?.to_vec(), ends })
}

/// A NULL row holds 0 or the empty text; the transformation relies on it.
fn check_null_rows(values: &Values, nulls: Option<&Bitmap>) -> Result<()> {
    let Some(nulls) = nulls else { return Ok(()) };
    let empty = |row: usize| match values {
        Values::Int(v) => v[row] == 0,
        Values::Wide(v) => v[row] == 0,
        Values::Bytes(v) => v.get(row).is_empty(),
    };
    match (0..nulls.len()).find(|row| nulls.get(*row) && !empty(*row)) {
        None => Ok(()),
        Some(row) => Err(Error::Corrupt(format!("row {row} is NULL and has a value"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_page::{encode_codes_u32, encode_int};
    use coload_types::Value;
    use proptest::prelude::*;

    fn blocks() -> Vec<(Block, Physical)> {
        let mut strings = Plain::empty(Physical::Bytes);
        let mut ints = Plain::empty(Physical::Int);
        let mut wides = Plain::empty(Physical::Wide);
        for i in 0..50i64 {
            let null = i % 7 == 3;
            let text = Value::Bytes(format!("v{i}").into_bytes().into());
            strings.push((!null).then_some(&text));
            ints.push((!null).then_some(&Value::Int(i - 20)));
            wides.push(Some(&Value::Wide(i128::from(i) << 90)));
        }
        let plain = |values: Plain| {
            let physical = values.values.physical();
            let content = BlockContent::Plain { fragment: 3, values };
            (Block { partition: 2, column: 1, content }, physical)
        };
        let content = BlockContent::Pages {
            dictionary: Some(encode_int(&[1, 5], None)),
            symbols: vec![vec![0]],
            pages: vec![(0, encode_codes_u32(&[0, 1, 2], 2)), (4, encode_int(&[7], None))],
        };
        let pages = (Block { partition: 0, column: 0, content }, Physical::Int);
        vec![plain(strings), plain(ints), plain(wides), pages]
    }

    #[test]
    fn blocks_come_back() {
        for (block, physical) in blocks() {
            assert_eq!(Block::decode(&block.encode(), |_| Some(physical)).unwrap(), block);
            assert!(Block::decode(&block.encode(), |_| None).is_err());
            assert!(block.encode().len() <= block.content.bytes_at_most());
        }
    }

    proptest! {
        #[test]
        fn damaged_blocks_are_refused_or_other_blocks(
            which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0usize..5,
        ) {
            let (block, physical) = blocks().swap_remove(which);
            let mut bytes = block.encode();
            let index = at.index(bytes.len());
            bytes[index] = byte;
            let length = bytes.len() - cut;
            let _ = Block::decode(&bytes[..length], |_| Some(physical));
        }

        #[test]
        fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for physical in [Physical::Int, Physical::Wide, Physical::Bytes] {
                let _ = Block::decode(&bytes, |_| Some(physical));
            }
        }
    }
}
