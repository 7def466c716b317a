//! Encodings of text other than UTF-8: how they are known, and their conversion.
//!
//! What is UTF-8 is never converted, and not looked at here but for its first bytes. Text that is
//! malformed in its encoding becomes a byte 0xff, which is malformed in UTF-8 too: whoever reads the
//! records sets them aside, or replaces it, as he is told.
//!
//! Source: the Encoding Standard of WHATWG for labels and decoders (crate `encoding_rs`), which has no
//! UTF-32 and no pages of DOS.

mod asian;
mod detect;
mod labels;
mod letters;
mod pages;
mod utf32;

use std::fmt;

use coload_types::{Error, Result};
use encoding_rs::DecoderResult;

pub use detect::detect_encoding;
pub use pages::DosPage;
use pages::decode_page;
use utf32::Utf32Decoder;

/// Stands for what is malformed.
const MALFORMED: u8 = 0xff;
/// Bytes of the longest mark.
pub const MARK_BYTES_MAX: usize = 4;
/// Room for a character, at least.
const CHARACTER_BYTES_MAX: usize = 16;

/// How characters are written as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8, of which ASCII is a part; nothing is converted.
    #[default]
    Utf8,
    /// An encoding of the standard, but not UTF-8.
    Standard(&'static encoding_rs::Encoding),
    /// A code page of DOS.
    Dos(DosPage),
    /// UTF-32 in the order of bytes.
    Utf32(ByteOrder),
    /// UTF-16, in the order that its mark tells; little-endian without one.
    Utf16ByMark,
    /// UTF-32, in the order that its mark tells; little-endian without one.
    Utf32ByMark,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte comes first.
    Little,
    /// The highest byte comes first.
    Big,
}

impl fmt::Display for Encoding {
    /// As the flag takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Utf8 => f.write_str("utf-8"),
            Encoding::Standard(encoding) => f.write_str(&encoding.name().to_lowercase()),
            Encoding::Dos(page) => f.write_str(page.name()),
            Encoding::Utf32(ByteOrder::Little) => f.write_str("utf-32le"),
            Encoding::Utf32(ByteOrder::Big) => f.write_str("utf-32be"),
            Encoding::Utf16ByMark => f.write_str("utf-16"),
            Encoding::Utf32ByMark => f.write_str("utf-32"),
        }
    }
}

impl TextEncoding {
    /// Whether a text that begins so is UTF-8.
    pub fn is_utf8(self, start: &[u8]) -> bool {
        self.encoding.of_text(start, self.said).0 == Encoding::Utf8
    }
}

impl Encoding {
    /// The encoding that a label of the standard names, in any case, or `utf-32`, `utf-32le`,
    /// `utf-32be`.
    ///
    /// # Errors
    /// `Invalid` when nothing has that label.
    pub fn from_label(label: &str) -> Result<Self> {
        let lower = label.trim().to_ascii_lowercase();
        Ok(match lower.as_str() {
            "utf-16" | "utf16" => Encoding::Utf16ByMark,
            "utf-32" | "utf32" => Encoding::Utf32ByMark,
            "utf-32le" => Encoding::Utf32(ByteOrder::Little),
            "utf-32be" => Encoding::Utf32(ByteOrder::Big),
            _ => {
                let standard = encoding_rs::Encoding::for_label_no_replacement(lower.as_bytes());
                let page = || DosPage::of_label(&lower).map(Encoding::Dos);
                let spelt = || labels::other_spelling(&lower);
                let known = standard.or_else(spelt).map(Encoding::of_standard).or_else(page);
                return known.ok_or_else(|| {
                    Error::Invalid(format!(
                        "--encoding \"{label}\": not an encoding that is known (utf-8, utf-16, utf-32, \
                         windows-1252, iso-8859-2, shift_jis, gb18030, ...: the labels of the Encoding \
                         Standard; and cp437, cp850, cp852)"
                    ))
                });
            }
        })
    }

    fn of_standard(encoding: &'static encoding_rs::Encoding) -> Self {
        match encoding == encoding_rs::UTF_8 {
            true => Encoding::Utf8,
            false => Encoding::Standard(encoding),
        }
    }

    /// The encoding that a mark at the start of a text tells, and the bytes of the mark.
    pub fn of_mark(text: &[u8]) -> Option<(Self, usize)> {
        Some(match text {
            [0xff, 0xfe, 0, 0, ..] => (Encoding::Utf32(ByteOrder::Little), 4),
            [0, 0, 0xfe, 0xff, ..] => (Encoding::Utf32(ByteOrder::Big), 4),
            [0xff, 0xfe, ..] => (Encoding::Standard(encoding_rs::UTF_16LE), 2),
            [0xfe, 0xff, ..] => (Encoding::Standard(encoding_rs::UTF_16BE), 2),
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            _ => return None,
        })
    }

    /// The encoding of a text that begins so, and the bytes of its mark. A mark counts where it is of
    /// this encoding, or where nobody `said` the encoding.
    pub fn of_text(self, text: &[u8], said: Said) -> (Self, usize) {
        use Encoding::{Standard, Utf16ByMark, Utf32, Utf32ByMark};
        let mark = Encoding::of_mark(text);
        match (self, mark) {
            (Utf16ByMark, Some((marked @ Standard(_), bytes))) => (marked, bytes),
            // In UTF-16 these four bytes are a mark and a NUL.
            (Utf16ByMark, Some((Utf32(ByteOrder::Little), _))) => {
                (Standard(encoding_rs::UTF_16LE), 2)
            }
            (Utf16ByMark, _) => (Standard(encoding_rs::UTF_16LE), 0),
            (Utf32ByMark, Some((marked @ Utf32(_), bytes))) => (marked, bytes),
            (Utf32ByMark, _) => (Utf32(ByteOrder::Little), 0),
            // The mark of UTF-8 is read over where its lines are.
            (Encoding::Utf8, Some((Encoding::Utf8, _)) | None) => (Encoding::Utf8, 0),
            (_, Some((marked, bytes))) if marked == self || said == Said::Nobody => {
                (marked, if marked == Encoding::Utf8 { 0 } else { bytes })
            }
            _ => (self, 0),
        }
    }
}

/// Who said what the encoding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Said {
    /// It was found out.
    #[default]
    Nobody,
    /// The user said so.
    User,
}

/// An encoding, and who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextEncoding {
    /// How the characters of the text are written.
    pub encoding: Encoding,
    /// Who said so, which the report tells.
    pub said: Said,
}

/// One input's bytes, appended to a text in UTF-8.
pub struct ToUtf8 {
    encoding: TextEncoding,
    conversion: Conversion,
}

enum Conversion {
    /// The first bytes, too few to tell a mark.
    Start(Vec<u8>),
    /// UTF-8 already, which is passed on.
    AsItIs,
    Converting(Converter),
}

impl ToUtf8 {
    /// At the start of an input.
    pub fn new(encoding: TextEncoding) -> Self {
        ToUtf8 { encoding, conversion: Conversion::Start(Vec::new()) }
    }

    /// Appends the next bytes; `end` tells whether they are the last.
    pub fn append(&mut self, bytes: &[u8], end: End, text: &mut Vec<u8>) {
        match &mut self.conversion {
            Conversion::AsItIs => text.extend_from_slice(bytes),
            Conversion::Converting(converter) => converter.convert(bytes, end, text),
            Conversion::Start(start) => {
                start.extend_from_slice(bytes);
                if start.len() < MARK_BYTES_MAX && end == End::NotYet {
                    return;
                }
                let start = std::mem::take(start);
                let TextEncoding { encoding, said } = self.encoding;
                let (encoding, mark) = encoding.of_text(&start, said);
                self.conversion =
                    Converter::new(encoding).map_or(Conversion::AsItIs, Conversion::Converting);
                self.append(&start[mark..], end, text);
            }
        }
    }
}

/// Converts a text to UTF-8, piece by piece.
pub struct Converter(Kind);

enum Kind {
    Standard(encoding_rs::Decoder),
    Dos(DosPage),
    Utf32(Utf32Decoder),
}

impl Converter {
    /// A converter of what follows the mark; `None` for UTF-8.
    pub fn new(encoding: Encoding) -> Option<Self> {
        Some(Converter(match encoding {
            Encoding::Utf8 => return None,
            Encoding::Standard(encoding) => {
                Kind::Standard(encoding.new_decoder_without_bom_handling())
            }
            Encoding::Dos(page) => Kind::Dos(page),
            Encoding::Utf16ByMark => {
                Kind::Standard(encoding_rs::UTF_16LE.new_decoder_without_bom_handling())
            }
            Encoding::Utf32(order) => Kind::Utf32(Utf32Decoder::new(order)),
            Encoding::Utf32ByMark => Kind::Utf32(Utf32Decoder::new(ByteOrder::Little)),
        }))
    }

    /// Appends the text of the next bytes; `end` tells whether they are the last.
    pub fn convert(&mut self, bytes: &[u8], end: End, text: &mut Vec<u8>) {
        match &mut self.0 {
            Kind::Utf32(decoder) => decoder.decode(bytes, end, text),
            Kind::Dos(page) => decode_page(*page, bytes, text),
            Kind::Standard(decoder) => decode_standard(decoder, bytes, end, text),
        }
    }
}

/// Whether more bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// More bytes may follow.
    NotYet,
    /// The input ends here.
    Here,
}

fn decode_standard(
    decoder: &mut encoding_rs::Decoder,
    mut bytes: &[u8],
    end: End,
    text: &mut Vec<u8>,
) {
    loop {
        let from = text.len();
        let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
        // As large as the bytes at first: most text is nearly ASCII, and what is not gets another turn.
        let room = room.unwrap_or(usize::MAX).min(bytes.len() + CHARACTER_BYTES_MAX);
        text.resize(from + room, 0);
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(bytes, &mut text[from..], end == End::Here);
        text.truncate(from + written);
        bytes = &bytes[read..];
        match result {
            DecoderResult::InputEmpty => return,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => text.push(MALFORMED),
        }
    }
}

/// All of a text in UTF-8; `bytes` begin after the mark.
pub fn convert_all(encoding: Encoding, bytes: &[u8], end: End) -> Vec<u8> {
    let mut text = Vec::new();
    match Converter::new(encoding) {
        Some(mut converter) => converter.convert(bytes, end, &mut text),
        None => text.extend_from_slice(bytes),
    }
    text
}

#[cfg(test)]
mod tests;
