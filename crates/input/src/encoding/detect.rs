//! The encoding of a text that nothing declares, by evidence.
//!
//! 1. A mark at the start tells.
//! 2. Characters of UTF-16 and UTF-32 that are ASCII have zeros at fixed places.
//! 3. What is valid UTF-8 is UTF-8: text in another encoding hardly ever is.
//! 4. If more characters are valid UTF-8 than not, it is UTF-8 with bytes that are wrong.
//! 5. Else it is what Firefox would take it for (`chardetng`), if that has those bytes at all.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use super::{ByteOrder, Encoding};

/// Bytes that mean nothing, or nothing that a text has, in windows-1252.
const NOT_IN_WINDOWS_1252: [u8; 6] = [0x81, 0x8d, 0x8f, 0x90, 0x9d, 0xff];

/// Units of four bytes that tell something.
const UNITS_MIN: usize = 3;

/// The encoding of a text that begins with `sample`, and why; no reason for UTF-8 without anything to
/// say.
pub fn detect_encoding(sample: &[u8]) -> (Encoding, Option<String>) {
    if let Some((encoding, _)) = Encoding::of_mark(sample) {
        let why = format!("encoding {encoding}: the text begins with its byte order mark");
        return (encoding, (encoding != Encoding::Utf8).then_some(why));
    }
    if let Some(encoding) = by_zeros(sample) {
        let zeros = memchr::memchr_iter(0, sample).count();
        let why = format!(
            "encoding {encoding}: {zeros} of the first {} bytes are zeros where it has them \
             (--encoding says otherwise)",
            sample.len()
        );
        return (encoding, Some(why));
    }
    let (characters, wrong) = count_characters(sample);
    if wrong == 0 {
        return (Encoding::Utf8, None);
    }
    if characters >= wrong {
        return (Encoding::Utf8, Some(dirty_utf8(characters + wrong, wrong)));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, false);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let windows = guess == encoding_rs::WINDOWS_1252;
    if windows && memchr_any(&NOT_IN_WINDOWS_1252, sample) {
        return (Encoding::Utf8, Some(dirty_utf8(characters + wrong, wrong)));
    }
    let encoding = Encoding::of_standard(guess);
    let why = format!(
        "encoding {encoding}: {wrong} characters are not UTF-8, and they look like it (--encoding says \
         otherwise)"
    );
    (encoding, Some(why))
}

fn dirty_utf8(characters: usize, wrong: usize) -> String {
    format!(
        "encoding utf-8: of {characters} characters that are not ASCII {wrong} are not UTF-8 \
         (--encoding, --invalid-bytes say otherwise)"
    )
}

fn memchr_any(bytes: &[u8], sample: &[u8]) -> bool {
    bytes.iter().any(|byte| memchr::memchr(*byte, sample).is_some())
}

/// Characters of more than a byte, and places that are not UTF-8. A character that the end of the
/// sample cuts is neither.
fn count_characters(sample: &[u8]) -> (usize, usize) {
    if std::str::from_utf8(sample).is_ok() {
        return (0, 0);
    }
    let (mut characters, mut wrong) = (0, 0);
    let mut at = 0;
    for chunk in sample.utf8_chunks() {
        characters += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        at += chunk.valid().len() + chunk.invalid().len();
        let cut = at == sample.len()
            && std::str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
        wrong += usize::from(!chunk.invalid().is_empty() && !cut);
    }
    (characters, wrong)
}

/// UTF-16 or UTF-32 without a mark: of characters that are ASCII all bytes but one are zero.
fn by_zeros(sample: &[u8]) -> Option<Encoding> {
    let (units, _) = sample.as_chunks::<4>();
    if units.len() < UNITS_MIN {
        return None;
    }
    let share = |place: usize| {
        units.iter().filter(|unit| unit[place] == 0).count() as f64 / units.len() as f64
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(share);
    // Delimiters, digits and newlines are ASCII whatever the language, and no text has NULs.
    let (many, few) = (0.05, 0.01);
    match () {
        () if a < few && b > many && c > 0.98 && d > 0.98 => {
            Some(Encoding::Utf32(ByteOrder::Little))
        }
        () if d < few && c > many && b > 0.98 && a > 0.98 => Some(Encoding::Utf32(ByteOrder::Big)),
        () if a < few && c < few && b > many && d > many => {
            Some(Encoding::Standard(encoding_rs::UTF_16LE))
        }
        () if b < few && d < few && a > many && c > many => {
            Some(Encoding::Standard(encoding_rs::UTF_16BE))
        }
        () => None,
    }
}
