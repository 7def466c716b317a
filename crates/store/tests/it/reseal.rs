//! Checksums that fit changed bytes, so that what lies behind them is reached.
//!
//! Also part of the fuzz targets.

use coload_page::{ColumnIndex, SegmentFooter};
use coload_types::bytes::checksum;

/// Bytes after a segment's footer: length, checksum, magic.
const TAIL_BYTES: usize = 4 + 8 + 8;

/// The segment with all checksums made to fit; `None` where its footer cannot be read.
pub fn segment(file: &[u8]) -> Option<Vec<u8>> {
    let mut file = file.to_vec();
    let tail = file.len().checked_sub(TAIL_BYTES)?;
    let length = u32::from_le_bytes(file[tail..tail + 4].try_into().ok()?);
    let start = tail.checked_sub(length as usize)?;
    let sum = checksum(&file[start..tail]);
    file[tail + 4..tail + 12].copy_from_slice(&sum.to_le_bytes());
    let mut footer = SegmentFooter::decode(&file).ok()?;
    // Indexes are written anew behind the old ones: their lengths may have changed.
    let mut out = file[..start].to_vec();
    for column in &mut footer.columns {
        let bytes = &file[column.offset as usize..(column.offset + column.bytes) as usize];
        let mut bytes = bytes.to_vec();
        if let Ok(mut index) = ColumnIndex::decode(&bytes, column.physical, &footer.page_rows) {
            for page in index.pages.iter_mut().chain(&mut index.dictionary) {
                let end = page.offset.checked_add(page.bytes).filter(|e| *e <= start as u64);
                if let Some(end) = end {
                    page.checksum = checksum(&file[page.offset as usize..end as usize]);
                }
            }
            bytes = index.encode();
        }
        (column.offset, column.bytes) = (out.len() as u64, bytes.len() as u64);
        column.checksum = checksum(&bytes);
        out.extend(bytes);
    }
    out.extend(footer.encode());
    Some(out)
}

/// The manifest with a checksum that fits.
pub fn manifest(file: &[u8]) -> Vec<u8> {
    let content = &file[..file.len().saturating_sub(8)];
    [content, &checksum(content).to_le_bytes()].concat()
}
