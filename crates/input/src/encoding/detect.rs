//! The encoding of a text that nothing declares, by evidence.
//!
//! 1. A mark at the start tells, and the escapes of ISO-2022-JP do.
//! 2. Characters of UTF-16 and UTF-32 that are ASCII have zeros at fixed places.
//! 3. What is valid UTF-8 is UTF-8: text in another encoding hardly ever is.
//! 4. If more characters are valid UTF-8 than not, it is UTF-8 with bytes that are wrong.
//! 5. Else each encoding is scored by the characters that come out, and where they stand (`letters`, `asian`); the guess of `chardetng`, which
//!    Firefox has, is one vote. What nothing speaks for is windows-1252, which is the most usual, and it is said that little spoke for it.
//! 6. What is text in none of them is UTF-8 with bytes that are wrong.

use std::collections::HashSet;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use super::letters::{Contexts, upper_half};
use super::{ByteOrder, Encoding, End, asian, convert_all, letters};

/// What the guess of `chardetng` counts.
const VOTE: f64 = 2.0;
/// A lead over windows-1252, or over the next encoding, that is hardly one: odds of 50 to 1.
const THIN_LEAD: f64 = 4.0;
/// Fewer places than this say little, however much they agree.
const FEW_PLACES: usize = 3;
/// A mean score of a byte below which it is no text of the encoding.
const NO_TEXT_MEAN: f64 = -9.0;
/// One wrong place among so many characters of UTF-8 is dirt.
const DIRTY_SHARE: usize = 10;
/// Words that are shown as evidence.
const WORDS_SHOWN: usize = 3;
/// Words by which it is told whether two encodings read a sample alike.
const WORDS_COMPARED: usize = 1000;
/// Longest word that is shown, in bytes.
const WORD_BYTES_MAX: usize = 24;

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
        return by_escapes(sample).unwrap_or((Encoding::Utf8, None));
    }
    let distinct = distinct_words(sample);
    // Characters of two bytes may look like those of UTF-8 by chance, but not as many as are whole in their own encoding.
    let ranked = match characters >= wrong {
        true if wrong * DIRTY_SHARE < characters => Vec::new(),
        true => rank(&distinct).into_iter().filter(|(e, ..)| asian::is_whole(sample, *e)).collect(),
        false => rank(&distinct),
    };
    if characters >= wrong && ranked.is_empty() {
        return (Encoding::Utf8, Some(dirty_utf8(characters + wrong, wrong)));
    }
    let sample = &distinct[..];
    let Some(((best, score, _), others)) = ranked.split_first() else {
        return (Encoding::Utf8, Some(dirty_utf8(characters + wrong, wrong)));
    };
    let high =
        sample.iter().filter(|byte| **byte >= 0x80).take(letters::EVIDENCE_BYTES_MAX).count();
    if (score - VOTE) / (high as f64) < NO_TEXT_MEAN {
        return (Encoding::Utf8, Some(dirty_utf8(characters + wrong, wrong)));
    }
    (*best, Some(reason(sample, wrong, (*best, *score), others.first())))
}

/// Encodings with their scores and the places that they rest on, the likeliest first; of those that read the sample alike the first.
fn rank(sample: &[u8]) -> Vec<(Encoding, f64, Vec<u8>)> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    let vote = Encoding::of_standard(detector.guess(None, Utf8Detection::Deny));
    let contexts = Contexts::of(sample);
    let single = letters::candidates().into_iter().filter_map(|(encoding, prior, languages)| {
        let upper = upper_half(encoding)?;
        Some((encoding, prior + contexts.score(&upper, languages)))
    });
    let double = asian::candidates()
        .into_iter()
        .filter_map(|(encoding, prior)| Some((encoding, prior + asian::score(sample, encoding)?)));
    let voted = |(encoding, score)| (encoding, score + if encoding == vote { VOTE } else { 0.0 });
    let mut scores: Vec<(Encoding, f64)> = single.chain(double).map(voted).collect();
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut ranked: Vec<(Encoding, f64, Vec<u8>)> = Vec::new();
    for (encoding, score) in scores.into_iter().take(8) {
        let text = high_text(sample, encoding);
        if ranked.iter().all(|(.., known)| *known != text) {
            ranked.push((encoding, score, text));
        }
    }
    ranked
}
/// Why an encoding was taken; and that it is a guess, where little speaks for it.
fn reason(
    sample: &[u8],
    wrong: usize,
    (best, score): (Encoding, f64),
    next: Option<&(Encoding, f64, Vec<u8>)>,
) -> String {
    let words = high_words(sample, WORDS_SHOWN);
    let shown = |encoding: Encoding| {
        let text = |word: &&[u8]| {
            let word = convert_all(encoding, &word[..word.len().min(WORD_BYTES_MAX)], End::Here);
            String::from_utf8_lossy(&word).into_owned()
        };
        words.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    let characters = match wrong {
        1 => "1 character is not UTF-8".to_owned(),
        many => format!("{many} characters are not UTF-8"),
    };
    let few = Contexts::of(sample).distinct() < FEW_PLACES;
    match next.filter(|(_, next_score, _)| few || score - next_score < THIN_LEAD) {
        None => format!(
            "encoding {best}: {characters}, and they look like it, as in {} (--encoding says otherwise)",
            shown(best)
        ),
        Some((next, ..)) => format!(
            "encoding {best} is a guess from little: {characters}, as in {}; with --encoding {next} they would be {}",
            shown(best),
            shown(*next)
        ),
    }
}

/// Words with bytes over 127, each once, a line each: what is repeated in each row tells no more than once. No word ends at a byte that is
/// the second of a character in some encoding.
fn distinct_words(sample: &[u8]) -> Vec<u8> {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;\"".contains(byte);
    let mut known = HashSet::new();
    let mut distinct = Vec::new();
    for word in sample.split(ends).filter(|word| !word.is_ascii()) {
        if known.insert(word) {
            distinct.extend_from_slice(word);
            distinct.push(b'\n');
        }
    }
    distinct
}

/// Words with bytes over 127, each once.
fn high_words(sample: &[u8], most: usize) -> Vec<&[u8]> {
    let parts = |byte: &u8| byte.is_ascii_whitespace() || b",;|\"".contains(byte);
    let mut words: Vec<&[u8]> = Vec::new();
    for word in sample.split(parts).filter(|word| !word.is_ascii()) {
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() == most {
            break;
        }
    }
    words
}

/// What an encoding makes of the words with bytes over 127.
fn high_text(sample: &[u8], encoding: Encoding) -> Vec<u8> {
    convert_all(encoding, &high_words(sample, WORDS_COMPARED).join(&b'\n'), End::Here)
}

fn dirty_utf8(characters: usize, wrong: usize) -> String {
    format!(
        "encoding utf-8: of {characters} characters that are not ASCII {wrong} are not UTF-8 \
         (--encoding, --invalid-bytes say otherwise)"
    )
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

/// ISO-2022-JP: ASCII, and escapes before and after what is not.
fn by_escapes(sample: &[u8]) -> Option<(Encoding, Option<String>)> {
    let has = |escape: &[u8]| memchr::memmem::find(sample, escape).is_some();
    let known = (has(b"\x1b$B") || has(b"\x1b$@")) && (has(b"\x1b(B") || has(b"\x1b(J"));
    let why = "encoding iso-2022-jp: the text has its escapes (--encoding says otherwise)";
    known.then(|| (Encoding::Standard(encoding_rs::ISO_2022_JP), Some(why.to_owned())))
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
    // The low byte of a character of another script may be zero too, but seldom.
    let mostly = |high: [f64; 2], low: [f64; 2]| {
        high.iter().all(|share| *share > many)
            && low.iter().sum::<f64>() * 4.0 < high.iter().sum::<f64>()
    };
    match () {
        () if a < few && b > many && c > 0.98 && d > 0.98 => {
            Some(Encoding::Utf32(ByteOrder::Little))
        }
        () if d < few && c > many && b > 0.98 && a > 0.98 => Some(Encoding::Utf32(ByteOrder::Big)),
        () if mostly([b, d], [a, c]) => Some(Encoding::Standard(encoding_rs::UTF_16LE)),
        () if mostly([a, c], [b, d]) => Some(Encoding::Standard(encoding_rs::UTF_16BE)),
        () => None,
    }
}
