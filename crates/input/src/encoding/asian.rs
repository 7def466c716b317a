//! How well bytes over 127 read as characters of two bytes, of Chinese, Japanese and Korean.
//!
//! Those encodings share bytes, and much that is text in one is text in another; so what counts is which characters come out: kana, the
//! syllables and signs that every text has, those of the first level of the standard, or rare ones.

use encoding_rs::DecoderResult;

use super::Encoding;
use super::letters::EVIDENCE_BYTES_MAX;

/// Characters that a text has in nearly every line.
const JAPANESE: &str = "日本東京大阪市区町村県都府年月人口名前番号住所株式会社山田中小川木林藤鈴佐高子郎一二三四五六七八九十上下北南西新合計数";
const SIMPLIFIED: &str = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年市省县区公司月日号名王李张刘陈杨赵黄周吴编姓性别电话路北京海广州深圳东南西江湖山安成合计数二三四五六七八九十男女学生";
const TRADITIONAL: &str = "的一是不了人我在有他這中大來上國個到說們為子和你地出道也時年市省縣區公司月日號名王李張劉陳楊趙黃周吳編姓性別電話路臺台北中南高雄新東西合計數二三四五六七八九十男女學生";
const KOREAN: &str =
    "이다는에의가을를은하고서한로사기지자시도구동군김박최정수인대전부산울경남북상주성명원영민현준";

/// Encodings that are tried: how much less usual each is than windows-1252.
pub(super) fn candidates() -> [(Encoding, f64); 5] {
    use encoding_rs as rs;
    [rs::SHIFT_JIS, rs::EUC_JP, rs::GBK, rs::BIG5, rs::EUC_KR]
        .map(|encoding| (Encoding::Standard(encoding), -3.0))
}

/// The score of a sample in an encoding, as that of one byte a character; `None` where one byte in
/// four hundred is malformed.
pub(super) fn score(sample: &[u8], encoding: Encoding) -> Option<f64> {
    let Encoding::Standard(standard) = encoding else { return None };
    let mut decoder = standard.new_decoder_without_bom_handling();
    let (mut rest, mut score) = (sample, 0.0);
    let (mut high, mut malformed) = (0, 0);
    let mut text = vec![0; 4096];
    let mut before = ' ';
    while !rest.is_empty() && high < EVIDENCE_BYTES_MAX {
        let step = &rest[..rest.len().min(1024)];
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(step, &mut text, false);
        high += step[..read].iter().filter(|byte| **byte >= 0x80).count();
        rest = &rest[read..];
        for character in String::from_utf8_lossy(&text[..written]).chars() {
            if !character.is_ascii() {
                score += score_of(before, character, encoding);
            }
            before = character;
        }
        if matches!(result, DecoderResult::Malformed(..)) {
            malformed += 1;
            score -= 15.0;
        }
        if read == 0 && result == DecoderResult::InputEmpty {
            break;
        }
    }
    (malformed * 400 <= high).then_some(score)
}

/// Whether a text is whole in an encoding of two bytes a character: nothing in it is malformed, but for what the end cuts.
pub(super) fn is_whole(sample: &[u8], encoding: Encoding) -> bool {
    let Encoding::Standard(standard) = encoding else { return false };
    let of_two = candidates().iter().any(|(candidate, _)| *candidate == encoding);
    let head = &sample[..sample.len().min(EVIDENCE_BYTES_MAX)];
    let mut decoder = standard.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(head.len() * 3);
    let (result, _) = decoder.decode_to_string_without_replacement(head, &mut text, false);
    of_two && result == DecoderResult::InputEmpty
}

fn score_of(before: char, this: char, encoding: Encoding) -> f64 {
    use encoding_rs as rs;
    let is = |other: &'static encoding_rs::Encoding| encoding == Encoding::Standard(other);
    let japanese = is(rs::SHIFT_JIS) || is(rs::EUC_JP);
    // Latin letters between characters of two bytes are none of those letters, but Latin text.
    let torn = if before.is_ascii_lowercase() { 2.5 } else { 0.0 };
    let base = match this {
        'ぁ'..='ん' if japanese => -3.2,
        'ァ'..='ー' if japanese => -4.0,
        'ぁ'..='ー' => -8.0,
        '\u{ff61}'..='\u{ff9f}' => -6.5,
        '、' | '。' | '「' | '」' | '（' | '）' | '　' | '，' | '：' | '！' | '？' | '々'
        | '〜' => -4.5,
        '０'..='９' | 'Ａ'..='Ｚ' => -5.0,
        '가'..='힣' if KOREAN.contains(this) => -4.0,
        '가'..='힣' if is_first_level(this, encoding) => -5.7,
        _ if japanese && JAPANESE.contains(this) => -4.5,
        _ if is(rs::GBK) && SIMPLIFIED.contains(this) => -4.3,
        _ if is(rs::BIG5) && TRADITIONAL.contains(this) => -4.3,
        '\u{4e00}'..='\u{9fff}' if is_first_level(this, encoding) && !is(rs::EUC_KR) => -6.5,
        '\u{4e00}'..='\u{9fff}' | '가'..='힣' => -10.0,
        _ => -12.0,
    };
    base - torn
}

/// Whether a character is among the usual ones of the standard, which stand together.
fn is_first_level(character: char, encoding: Encoding) -> bool {
    use encoding_rs as rs;
    let Encoding::Standard(standard) = encoding else { return false };
    let mut room = [0; 4];
    let (bytes, _, lost) = standard.encode(character.encode_utf8(&mut room));
    let [lead, trail] = bytes[..] else { return false };
    let of = |other: &'static encoding_rs::Encoding| standard == other;
    !lost
        && match lead {
            0x88..=0x97 => of(rs::SHIFT_JIS),
            0xa4..=0xc6 if of(rs::BIG5) => true,
            0xb0..=0xcf if of(rs::EUC_JP) => true,
            0xb0..=0xd7 if of(rs::GBK) => trail >= 0xa1,
            0xb0..=0xc8 if of(rs::EUC_KR) => trail >= 0xa1,
            _ => false,
        }
}
