//! Writes small segment files for tests and benchmarks, in the plainest way.

use std::path::Path;

use coload_page::bitpack::{BLOCK, pack_block, width_of};
use coload_page::{
    CodecId, ColumnEntry, ColumnIndex, EncodedStrings, Page, PageDetail, SEGMENT_MAGIC,
    SOURCE_PADDING, SegmentFooter, SegmentId, SymbolEncoder, encode_plain, encode_symbols,
};
use coload_store::SegmentFile;
use coload_types::bytes::checksum;
use coload_types::{Bitmap, Dictionary, Plain, Strings, Values};

/// How a test column is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// All pages hold codes.
    Codes,
    /// No page holds codes.
    Plain,
    /// Plain, text through a symbol table.
    Symbols,
    /// Every second page holds codes.
    Mixed,
    /// Plain, each page in another of the codecs for its values.
    Codecs,
}

/// Writes columns of equal length as a segment with pages of `page_rows` rows, and opens it.
pub fn write_segment(path: &Path, columns: &[(Plain, Encoding)], page_rows: usize) -> SegmentFile {
    let rows = columns[0].0.len();
    let mut file = SEGMENT_MAGIC.to_vec();
    let mut footer = SegmentFooter {
        id: Some(SegmentId::default()),
        page_rows: (0..rows)
            .step_by(page_rows)
            .map(|at| (rows - at).min(page_rows) as u32)
            .collect(),
        columns: Vec::new(),
        tree: None,
    };
    let mut indexes = Vec::new();
    for (plain, encoding) in columns {
        indexes.push(write_column(&mut file, plain, *encoding, page_rows));
    }
    for ((plain, _), index) in columns.iter().zip(indexes) {
        let bytes = index.encode();
        footer.columns.push(ColumnEntry {
            physical: plain.values.physical(),
            offset: file.len() as u64,
            bytes: bytes.len() as u64,
            checksum: checksum(&bytes),
        });
        file.extend(bytes);
    }
    file.extend(footer.encode());
    std::fs::write(path, file).unwrap();
    SegmentFile::open(path).unwrap()
}

fn write_column(
    file: &mut Vec<u8>,
    plain: &Plain,
    encoding: Encoding,
    page_rows: usize,
) -> ColumnIndex {
    let mut index = ColumnIndex::default();
    let dictionary = dictionary_of(plain);
    if matches!(encoding, Encoding::Codes | Encoding::Mixed) {
        let values = Plain { values: dictionary.values().clone(), nulls: None };
        index.dictionary = Some(put_page(file, &encode_plain(&values).unwrap()));
    }
    let encoder = match (&plain.values, encoding) {
        (Values::Bytes(strings), Encoding::Symbols) => {
            let encoder = SymbolEncoder::train_symbols(strings.len(), |i| strings.get(i));
            index.symbols.push(encoder.table());
            Some(encoder)
        }
        _ => None,
    };
    for (number, start) in (0..plain.len()).step_by(page_rows).enumerate() {
        let part = part_of(plain, start, (start + page_rows).min(plain.len()));
        let page = match (encoding, &encoder) {
            (Encoding::Codes, _) => codes_page(&part, &dictionary),
            (Encoding::Mixed, _) if number % 2 == 0 => codes_page(&part, &dictionary),
            (_, Some(encoder)) => symbols_page(&part, encoder),
            (Encoding::Codecs, _) => in_some_codec(encode_plain(&part).unwrap(), number),
            _ => encode_plain(&part).unwrap(),
        };
        let meta = put_page(file, &page);
        index.pages.push(meta);
    }
    index
}

/// The page in a codec that can hold it, whether or not it is worth it.
fn in_some_codec(page: Page, number: usize) -> Page {
    let codecs: &[CodecId] = match page.detail {
        PageDetail::Int { .. } => {
            &[CodecId::DELTAS, CodecId::HALVES, CodecId::DECIMALS, CodecId::MULTIPLES]
        }
        PageDetail::Wide { .. } => &[CodecId::MASKED],
        PageDetail::Text { .. } => &[CodecId::ZSTANDARD, CodecId::TEMPLATES],
        _ => return page,
    };
    let encoded = |codec: &CodecId| {
        let bytes = codec.codec().unwrap().encode(&page.view().unwrap()).unwrap()?;
        Some(Page { codec: *codec, bytes, ..page.clone() })
    };
    let from = codecs.iter().cycle().skip(number).take(codecs.len());
    from.filter_map(encoded).next().unwrap_or(page.clone())
}

fn put_page(file: &mut Vec<u8>, page: &Page) -> coload_page::PageMeta {
    file.resize(file.len().next_multiple_of(8), 0);
    let meta = page.meta(file.len() as u64);
    file.extend(&page.bytes);
    meta
}

fn part_of(plain: &Plain, start: usize, end: usize) -> Plain {
    let values = match &plain.values {
        Values::Int(v) => Values::Int(v[start..end].to_vec()),
        Values::Wide(v) => Values::Wide(v[start..end].to_vec()),
        Values::Bytes(v) => {
            let mut part = Strings::default();
            (start..end).for_each(|i| part.push(v.get(i)));
            Values::Bytes(part)
        }
    };
    let nulls = plain.nulls.as_ref().map(|nulls| {
        let mut part = Bitmap::default();
        (start..end).for_each(|i| part.push(nulls.get(i)));
        part
    });
    Plain { values, nulls }
}

fn dictionary_of(plain: &Plain) -> Dictionary {
    let valid = (0..plain.len()).filter(|i| !plain.is_null(*i));
    let values = match &plain.values {
        Values::Int(v) => {
            let mut values: Vec<_> = valid.map(|i| v[i]).collect();
            values.sort_unstable();
            values.dedup();
            Values::Int(values)
        }
        Values::Wide(v) => {
            let mut values: Vec<_> = valid.map(|i| v[i]).collect();
            values.sort_unstable();
            values.dedup();
            Values::Wide(values)
        }
        Values::Bytes(v) => {
            let mut values: Vec<_> = valid.map(|i| v.get(i)).collect();
            values.sort_unstable();
            values.dedup();
            let mut strings = Strings::default();
            values.iter().for_each(|s| strings.push(s));
            Values::Bytes(strings)
        }
    };
    Dictionary::new(values).unwrap()
}

fn codes_page(part: &Plain, dictionary: &Dictionary) -> Page {
    let code = |i: usize| match part.is_null(i) {
        true => dictionary.null_code().0,
        false => match (&part.values, dictionary.values()) {
            (Values::Int(v), Values::Int(d)) => d.binary_search(&v[i]).unwrap() as u32,
            _ => dictionary.find(&part.values.get(i)).unwrap().0,
        },
    };
    let codes: Vec<u32> = (0..part.len()).map(code).collect();
    let base = *codes.iter().min().unwrap();
    let top = *codes.iter().max().unwrap();
    let valid = codes.iter().filter(|c| **c != dictionary.null_code().0);
    let max = valid.max().copied().unwrap_or(base);
    let width = width_of(u64::from(top - base));
    let mut bytes = Vec::new();
    for block in codes.chunks(BLOCK) {
        let offsets: Vec<u64> = block.iter().map(|c| u64::from(c - base)).collect();
        pack_block(&offsets, width, &mut bytes);
    }
    let detail = PageDetail::Codes { base, max, width };
    let (rows, nulls) = (part.len() as u32, part.null_count() as u32);
    Page { codec: CodecId::CODES, detail, rows, nulls, bytes, runs: None }
}

fn symbols_page(part: &Plain, encoder: &SymbolEncoder) -> Page {
    let Values::Bytes(strings) = &part.values else { panic!("symbols are for text") };
    let mut source = strings.bytes.clone();
    source.resize(source.len() + SOURCE_PADDING, 0);
    let lengths: Vec<u32> = strings.iter().map(|s| s.len() as u32).collect();
    let starts: Vec<u32> = strings.ends.iter().zip(&lengths).map(|(end, len)| end - len).collect();
    let mut encoded = EncodedStrings::default();
    encoder.encode(&source, &starts, &lengths, &mut encoded);
    encode_symbols(&encoded, part.nulls.as_ref(), encoder).unwrap()
}
