//! Pages of a mapped segment that were read once and are not needed again soon: sorted loads read their segments whole, and these would
//! count as memory of the process.

use coload_page::PageMeta;

use super::SegmentFile;

impl SegmentFile {
    /// Says that a page was read: it need not be in the memory of the process any more.
    pub(crate) fn leave_page(&self, meta: &PageMeta) {
        if let Some(map) = &self.map {
            map.leave(meta.offset, meta.bytes);
        }
    }
}
