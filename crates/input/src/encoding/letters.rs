//! How well bytes over 127 read as the characters of an encoding of one byte each.
//!
//! Each such byte is looked at between its neighbours: `£` stands before a digit and `Ł` before a letter, a small letter inside a word
//! and a capital at its start. Letters count by how usual they are in the language that gives the most; what no text has counts for
//! little. The score of an encoding is a sum of logarithms, so that a difference of 3 is odds of 20 to 1.

use std::collections::HashMap;

use super::Encoding;

/// Bytes over 127 that are looked at: more tell nothing new.
pub(super) const EVIDENCE_BYTES_MAX: usize = 1 << 17;

/// A letter that the language does not have, but names from elsewhere do.
const FOREIGN: f64 = -5.0;
/// A letter that is in hardly any word of the language.
const STRANGE: f64 = -7.5;
/// A sign where it hardly ever stands.
const MISPLACED: f64 = -8.0;
/// A character that hardly any text has.
const NEARLY_NO_TEXT: f64 = -10.0;
/// A character that no text has.
const NO_TEXT: f64 = -14.0;

/// Letters of a language over 127, the most frequent first.
pub(super) struct Language {
    letters: &'static str,
    script: Script,
}

/// Where words of a language mix with ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Most letters of a word are ASCII.
    Latin,
    /// No letter of a word is ASCII.
    Other,
}

const fn latin(letters: &'static str) -> Language {
    Language { letters, script: Script::Latin }
}

const fn other(letters: &'static str) -> Language {
    Language { letters, script: Script::Other }
}

/// Of western Europe: one of names from everywhere, then those of a language.
const WESTERN: [Language; 12] = [
    latin("éüöäáíóñèçãêåøúàôæßâîëïõòûìùý"),
    latin("üäöß"),
    latin("éèàêçôîâûëùïœæ"),
    latin("óíáéñúü"),
    latin("ãçáéíóêõâàúôü"),
    latin("àèùòéì"),
    latin("ëéïèöüê"),
    latin("äöåé"),
    latin("øåæéöäü"),
    latin("íáðéöóþúæý"),
    latin("àéíòçèóúïü"),
    latin("áéíóú"),
];
const CENTRAL: [Language; 8] = [
    latin("łąęóżśćźń"),
    latin("íáéěřšžčýůúťďňó"),
    latin("áíéčšžýúľťôäďňóĺŕ"),
    latin("áéöíóüőúű"),
    latin("ăîâşţ"),
    latin("čšžćđ"),
    latin("čšž"),
    latin("üäöß"),
];
const TURKISH: [Language; 1] = [latin("ışüçöğâî")];
const BALTIC: [Language; 3] = [latin("ėšųžįąčęū"), latin("āīēšūņļžčķģ"), latin("äõüöšž")];
const CYRILLIC: [Language; 4] = [
    other("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    other("оанивіетрслкмудпзьягбчйхцїюжєщшфґ"),
    other("аоиетнрсвлкдпмзубгчщяйшжхцюьъф"),
    other("аоиенрјстукдвлмпгзбчњљћшђжцхфџ"),
];
const GREEK: [Language; 1] = [other("αοιεσντρηςκπμλυίόάέωήγδχύθφβξώζψϊϋ")];
const HEBREW: [Language; 1] = [other("יוהלאמתרבשנדםעקחפגכטסןזצךףץ")];
const ARABIC: [Language; 1] = [other("اليمنوترهبفعدسةكقحجشصخىطذزأثإئغضءظؤآ")];
const THAI: [Language; 1] = [other("านรอกเงยลมวตสทด่ี้ัิบปคะชแขใุพห์จไึซูถณโผธภฟฉญศษฐฎฏฝฆฒฌฬฮๆ")];

/// Encodings of one byte a character that are tried: how much less usual each is than the first, and its languages.
pub(super) fn candidates() -> [(Encoding, f64, &'static [&'static [Language]]); 18] {
    use super::DosPage::{Cp437, Cp850, Cp852};
    use encoding_rs as rs;
    let standard = Encoding::Standard;
    [
        (standard(rs::WINDOWS_1252), 0.0, &[&WESTERN]),
        (standard(rs::ISO_8859_15), -2.0, &[&WESTERN]),
        (standard(rs::WINDOWS_1250), -3.5, &[&CENTRAL]),
        (standard(rs::WINDOWS_1251), -3.0, &[&CYRILLIC]),
        (standard(rs::WINDOWS_1253), -3.5, &[&GREEK]),
        (standard(rs::WINDOWS_1254), -4.0, &[&TURKISH]),
        (standard(rs::MACINTOSH), -4.0, &[&WESTERN]),
        (standard(rs::ISO_8859_2), -4.0, &[&CENTRAL]),
        (standard(rs::WINDOWS_1257), -4.5, &[&BALTIC]),
        (standard(rs::KOI8_U), -4.0, &[&CYRILLIC]),
        (standard(rs::WINDOWS_1255), -4.5, &[&HEBREW]),
        (standard(rs::WINDOWS_1256), -4.5, &[&ARABIC]),
        (standard(rs::WINDOWS_874), -4.5, &[&THAI]),
        (Encoding::Dos(Cp850), -5.0, &[&WESTERN]),
        (Encoding::Dos(Cp437), -5.5, &[&WESTERN]),
        (Encoding::Dos(Cp852), -6.0, &[&CENTRAL]),
        (standard(rs::IBM866), -5.0, &[&CYRILLIC]),
        (standard(rs::ISO_8859_7), -5.0, &[&GREEK]),
    ]
}

/// Bytes over 127 with the bytes around them, and how often each stands so. A newline stands for the start and the end.
pub(super) struct Contexts(Vec<([u8; 3], f64)>);

impl Contexts {
    /// Those of a sample.
    pub(super) fn of(sample: &[u8]) -> Self {
        let mut counts: HashMap<[u8; 3], usize> = HashMap::new();
        let high = sample.iter().enumerate().filter(|(_, byte)| **byte >= 0x80);
        for (at, byte) in high.take(EVIDENCE_BYTES_MAX) {
            let before = at.checked_sub(1).map_or(b'\n', |before| sample[before]);
            let after = sample.get(at + 1).copied().unwrap_or(b'\n');
            *counts.entry([before, *byte, after]).or_default() += 1;
        }
        let mut contexts: Vec<_> =
            counts.into_iter().map(|(context, count)| (context, count as f64)).collect();
        // The sum of numbers that are not exact depends on their order.
        contexts.sort_unstable_by_key(|(context, _)| *context);
        Contexts(contexts)
    }

    /// How many there are, alike ones once.
    pub(super) fn distinct(&self) -> usize {
        self.0.len()
    }

    /// The score of the language that explains the most, if the bytes are characters of `upper`.
    pub(super) fn score(&self, upper: &[char; 128], languages: &[&[Language]]) -> f64 {
        let scores = languages.iter().flat_map(|group| group.iter()).map(|language| {
            let known = frequencies(language);
            let one = |(context, count): &([u8; 3], f64)| {
                count * score_of(context.map(|byte| character(upper, byte)), language, &known)
            };
            self.0.iter().map(one).sum::<f64>()
        });
        scores.fold(f64::NEG_INFINITY, f64::max)
    }
}

fn character(upper: &[char; 128], byte: u8) -> char {
    match byte.checked_sub(0x80) {
        None => char::from(byte),
        Some(index) => upper[usize::from(index)],
    }
}

/// The characters of the bytes from 0x80 on; U+FFFD where there is none. `None` if a character may have several bytes.
pub(super) fn upper_half(encoding: Encoding) -> Option<[char; 128]> {
    let mut upper = upper_of(encoding)?;
    // A space that no program wrote: this byte is what programs put that are at a loss.
    if upper[127] == '\u{a0}' {
        upper[127] = char::REPLACEMENT_CHARACTER;
    }
    Some(upper)
}

fn upper_of(encoding: Encoding) -> Option<[char; 128]> {
    match encoding {
        Encoding::Dos(page) => Some(*page.upper()),
        Encoding::Standard(standard) if standard.is_single_byte() => {
            let mut upper = [char::REPLACEMENT_CHARACTER; 128];
            for (index, character) in upper.iter_mut().enumerate() {
                let byte = [0x80 + index as u8];
                let (text, _) = standard.decode_without_bom_handling(&byte);
                *character = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            Some(upper)
        }
        _ => None,
    }
}

/// The logarithm of how often each letter stands among the letters of a language over 127: as Zipf's law has it, by its rank.
fn frequencies(language: &Language) -> HashMap<char, f64> {
    let weight = |rank: usize| 1.0 / (rank as f64 + 2.0);
    let all: f64 = (0..language.letters.chars().count()).map(weight).sum();
    let letters = language.letters.chars().enumerate();
    letters.map(|(rank, letter)| (letter, (weight(rank) / all).ln())).collect()
}

/// The score of a character between two others.
fn score_of(
    [before, this, after]: [char; 3],
    language: &Language,
    known: &HashMap<char, f64>,
) -> f64 {
    match this {
        // Combining vowels of Thai are marks, not letters.
        _ if this.is_alphabetic() && !"ªºµƒ".contains(this) || known.contains_key(&this) => {
            letter_score([before, this, after], language, known)
        }
        _ => sign_score([before, this, after]),
    }
}

fn letter_score(
    [before, this, after]: [char; 3],
    language: &Language,
    known: &HashMap<char, f64>,
) -> f64 {
    let small = this.to_lowercase().next().unwrap_or(this);
    let western = |c: char| "éüöäáíóñèçêàôæåøãúšž".contains(c);
    let usual = known.get(&small).copied();
    let elsewhere = match language.script {
        Script::Latin if western(small) => FOREIGN,
        _ => STRANGE,
    };
    // The byte 0xff is what programs put that are at a loss; hardly a word of any language has the letter.
    let elsewhere = if this == 'ÿ' { NEARLY_NO_TEXT } else { elsewhere };
    let mut score = usual.unwrap_or(elsewhere);
    let digit = |c: char| c.is_ascii_digit();
    if digit(before) || digit(after) {
        score -= 3.0;
    }
    if language.script == Script::Other {
        let alone = !before.is_alphabetic() && !after.is_alphabetic();
        let mixed = before.is_ascii_alphabetic() || after.is_ascii_alphabetic();
        score -= if mixed { 5.0 } else { 0.0 };
        score -= if alone { 2.0 } else { 0.0 };
    } else {
        let over = |c: char| !c.is_ascii() && c.is_alphabetic();
        score -= 1.5 * f64::from(u8::from(over(before)) + u8::from(over(after)));
        let inside = before.is_alphabetic() || after.is_alphabetic();
        score -= if inside { 0.0 } else { 2.5 };
    }
    score + case_score([before, this, after]) + followed_score(small, after)
}

/// A letter before one that it hardly ever stands before: `São` is Portuguese, and `Săo` nothing; `Gdańsk` is Polish, and `Gdañsk` nothing.
fn followed_score(small: char, after: char) -> f64 {
    let after = after.to_lowercase().next().unwrap_or(after);
    let vowel = "aeiou".contains(after);
    let consonant = after.is_ascii_alphabetic() && !vowel;
    let hardly = match small {
        'ă' => "aoe".contains(after),
        'ã' => consonant && after != 's',
        'ń' => vowel,
        'ñ' => !vowel && !"áéíóú".contains(after),
        _ => false,
    };
    if hardly { -3.0 } else { 0.0 }
}

/// A capital after a small letter, and a small letter before a capital, are hardly ever written.
fn case_score([before, this, after]: [char; 3]) -> f64 {
    match () {
        () if this.is_uppercase() && before.is_lowercase() => -6.0,
        () if this.is_uppercase() && (before.is_uppercase() || after.is_uppercase()) => -0.8,
        () if this.is_uppercase() && !after.is_alphabetic() => -3.0,
        () if this.is_uppercase() => -1.2,
        () if this.is_lowercase() && after.is_uppercase() => -5.0,
        () => 0.0,
    }
}

/// The score of what is no letter: the usual signs count where they usually stand.
fn sign_score([before, this, after]: [char; 3]) -> f64 {
    let letter = char::is_alphabetic;
    let digit = |c: char| c.is_ascii_digit();
    let word = |c: char| letter(c) || digit(c);
    let open = |c: char| !word(c);
    let amount = |c: char| digit(c) || c == '.' || c == '-' || c == ' ';
    let placed = |well: bool, score: f64| if well { score } else { MISPLACED };
    match this {
        '\u{a0}' => -2.0,
        '’' => match (letter(before), letter(after)) {
            (true, true) => -0.7,
            (true, false) => -1.5,
            _ => -4.0,
        },
        '‘' | '“' | '„' | '«' | '‚' => {
            placed(open(before) && !open(after) || this == '«', -2.0)
        }
        '”' | '»' => placed(open(after), -2.0),
        '–' | '—' => placed(letter(before) == letter(after) || open(before), -2.0),
        '…' => placed(!digit(after), -2.5),
        '€' | '£' => placed(
            amount(after) && !letter(before) || digit(before) || open(before) && open(after),
            -1.8,
        ),
        '¥' | '¢' => placed(digit(after) && !letter(before) || digit(before), -3.0),
        '°' => placed(
            (digit(before) || open(before)) && (open(after) || "CFEWNSK".contains(after)),
            -1.8,
        ),
        'º' | 'ª' => placed((digit(before) || "nN".contains(before)) && open(after), -2.5),
        '²' | '³' => placed(word(before) && !letter(after), -2.2),
        '½' | '¼' | '¾' => placed(!letter(before) && !letter(after), -2.5),
        '®' | '™' | '©' => placed(!letter(after) || this == '©', -2.5),
        '•' | '·' | '§' => placed(open(before) || this == '·', -3.0),
        '×' | '±' => placed(!letter(before) || open(after), -3.5),
        '¿' | '¡' => placed(open(before) && letter(after), -2.5),
        'µ' | 'μ' => placed(open(before) && letter(after) || digit(before), -2.5),
        '´' | '`' => placed(letter(before) && letter(after), -4.5),
        '†' | '‡' | '¹' | '‹' | '›' | '¶' | '÷' | '№' | '≤' | '≥' | '≈' => {
            placed(!letter(before) || !letter(after), -5.0)
        }
        char::REPLACEMENT_CHARACTER => NO_TEXT,
        control if control.is_control() => NO_TEXT,
        private if ('\u{e000}'..='\u{f8ff}').contains(&private) => NO_TEXT,
        _ => MISPLACED,
    }
}
