//! The bytes of a column: pages, their encodings, and the index and footer of a segment.
//!
//! Invariant: nothing here does I/O, and decoding untrusted bytes never panics.

pub mod bitpack;
mod symbols;

mod codec;
mod page;
pub mod runs;
mod view;

mod segment;

pub use codec::{
    Codec, CodecId, CodesPage, Content, Sample, encode_codes_u16, encode_codes_u32, encode_int,
    encode_plain, encode_symbols, encode_text, encode_wide, shrink_page,
};
pub use page::{
    PAGE_ROWS_MAX, Page, PageDetail, PageMeta, PageRules, block_rows, verify_dictionary,
    verify_page, verify_values_of,
};
pub use segment::{
    ColumnEntry, ColumnIndex, KeyForm, KeyPart, SEGMENT_MAGIC, SEGMENT_MAGIC_4, SegmentFooter,
    SegmentId, TreeEntry,
};
pub use symbols::{EncodedStrings, SOURCE_PADDING, SymbolDecoder, SymbolEncoder};
pub use view::{
    Frame, IntBlocks, IntPage, PageView, TextBlock, TextBlocks, TextPage, TextScratch, ValuesPage,
    WideBlocks, WidePage,
};
