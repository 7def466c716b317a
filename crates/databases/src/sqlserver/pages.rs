//! Code pages of texts that are not Unicode.

use encoding_rs::Encoding;

/// Big5, as a code page.
pub const BIG5: u32 = 950;
/// UTF-8, as a code page.
pub const UTF8: u32 = 65_001;

/// The encoding of a code page.
pub fn encoding_of(page: u32) -> Option<&'static Encoding> {
    use encoding_rs as e;
    Some(match page {
        874 => e::WINDOWS_874,
        932 => e::SHIFT_JIS,
        936 => e::GBK,
        949 => e::EUC_KR,
        950 => e::BIG5,
        1250 => e::WINDOWS_1250,
        1251 => e::WINDOWS_1251,
        1252 => e::WINDOWS_1252,
        1253 => e::WINDOWS_1253,
        1254 => e::WINDOWS_1254,
        1255 => e::WINDOWS_1255,
        1256 => e::WINDOWS_1256,
        1257 => e::WINDOWS_1257,
        1258 => e::WINDOWS_1258,
        UTF8 => e::UTF_8,
        _ => return None,
    })
}
