//! How much speaks for it that a record names the columns of those below it.
//!
//! Each column is asked by itself: whether the field is of the column's type, comes again below, is as long, and is made of the same
//! kinds of characters as the others. Each answer counts as much as it is seldom among the column's own fields: what a column of
//! few values never has is no value, what is new in each row anyway tells nothing. The sum is the logarithm of the odds.
//!
//! Cost: one pass over at most [`ROWS_LOOKED_AT`] records.
//!
//! Source: van den Burg, Nazábal and Sutton, "Wrangling messy CSV files by detecting row and type patterns", 2019, for patterns of
//! characters; Good and Turing for what was not seen.

use std::collections::HashMap;

use coload_types::{DataType, parse_value};

use crate::field::FieldRules;
use crate::infer::{ColumnForms, has_form, has_form_in, is_null};
use crate::sample::{Field, SampleEnd};
use crate::sniff::is_marker;

/// Records below the names that are looked at.
const ROWS_LOOKED_AT: usize = 1000;
/// Most that one column counts for text, so that none decides alone.
const COLUMN_MAX: f64 = 3.5;
/// A field that is, or is not, of a type that all others of its column have.
const TYPE: f64 = 4.0;
/// Most tables have names.
const PRIOR: f64 = 1.0;
/// A text of one column is a list more often.
const PRIOR_OF_ONE: f64 = -2.0;
/// A word that names columns everywhere.
const KNOWN_WORD: f64 = 2.0;
/// A code has as many bytes at least: `Q1` may name the column of `A3`.
const CODE_BYTES_MIN: usize = 4;
/// Longest name, in characters; longer ones are sentences.
const NAME_MAX: usize = 64;
/// Share of names that are shorter or longer than all values of their column.
const OUTSIDE: f64 = 0.6;
/// Years that may name columns.
const YEARS: std::ops::RangeInclusive<i64> = 1900..=2100;

/// Words of names, in lower case, of which one tells.
const WORDS: &str = " id ids name names first last firstname lastname surname fullname title date time timestamp datetime day month year years \
age sex gender code codes key value values type types category class label state status country region city town county province \
district address street zip zipcode postcode postal email mail phone telephone fax url link website web description desc text note \
notes comment comments message subject author user username owner company organisation organization department team amount price \
cost total sum count number num no nr qty quantity rate ratio percent percentage score rank index position size length width height \
weight lat latitude lon lng long longitude x y z start end begin from to min max mean avg average median std unit units currency \
source target question answer question_id response result party vote votes candidate group level parent order item product brand model color colour \
language lang version file filename path host ip port method gene symbol species genus family sample_id ref reference abbreviation \
nom prénom prenom ville pays adresse prix montant libellé libelle commune département departement région numéro annee année mois jour \
datum betrag menge preis anzahl ort stadt land straße strasse plz vorname nachname bezeichnung beschreibung art nummer kunde konto währung \
nombre apellido fecha ciudad país pais dirección direccion precio cantidad código codigo estado provincia municipio año valor tipo \
nome cognome città citta data indirizzo prezzo comune sobrenome cidade endereço preço município naam plaats stad bedrag namn ort kommun \
navn by belop nimi kunta imię imie nazwisko miasto kod cena ilość data jméno město név város \
имя фамилия город дата адрес цена сумма код название количество год номер тип область район \
名前 氏名 名称 番号 住所 日付 価格 金額 数量 年 月 日 都道府県 人口 编号 姓名 名称 日期 地址 价格 数量 城市 省份 인구 번호 이름 주소 날짜 도시 지역 ";

/// What speaks for names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NameScore {
    /// The logarithm of the odds that it names the columns.
    pub total: f64,
    /// Columns of numbers and dates whose name is none.
    pub misfits: usize,
    /// Those whose name would be one.
    pub fits: usize,
    /// Whether a field comes again in its column.
    pub recurs: bool,
}

/// Scores the first record above others.
pub(crate) fn score_names(
    first: &[Field<'_>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> NameScore {
    let rows = &rows[..rows.len().min(ROWS_LOOKED_AT)];
    let mut score = NameScore {
        total: if columns == 1 { PRIOR_OF_ONE } else { PRIOR },
        misfits: 0,
        fits: 0,
        recurs: false,
    };
    let years = first.iter().filter(|field| year(&field.text).is_some()).count();
    for index in 0..columns {
        let Some(name) = first.get(index) else { break };
        let column: Vec<&Field<'_>> = rows
            .iter()
            .filter(|row| row.len() <= columns + 1)
            .filter_map(|row| row.get(index))
            .filter(|field| !is_null(field, rules))
            .collect();
        score.add_column(name, &column, rules, end, years);
    }
    score.total += twins(first);
    score
}

impl NameScore {
    fn add_column(
        &mut self,
        name: &Field<'_>,
        column: &[&Field<'_>],
        rules: &FieldRules,
        end: SampleEnd,
        years: usize,
    ) {
        let text = String::from_utf8_lossy(&name.text);
        let text = text.trim();
        self.total += how_named(text);
        if column.is_empty() || is_null(name, rules) {
            return;
        }
        let mut forms = ColumnForms::trying(rules.types);
        column.iter().for_each(|field| forms.add(&field.text, &rules.formats));
        let data_type = forms.data_type(end);
        if !matches!(data_type, DataType::Varchar(_)) {
            self.add_typed(name, column, data_type, rules, years);
            return;
        }
        // An address above addresses is one of them.
        let addresses = || column.iter().filter(|field| is_address(&field.text)).count();
        if is_address(&name.text) && addresses() * 2 > column.len() {
            self.total -= TYPE;
            return;
        }
        if is_code_among(&name.text, column) {
            self.total -= TYPE;
            return;
        }
        self.recurs |= column.iter().any(|field| field.text == name.text);
        let quotes = quote_evidence(name, column);
        let texts: Vec<_> =
            column.iter().map(|field| String::from_utf8_lossy(&field.text)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
        let sum = recurrence(name, column) + shapes(text, &texts) + lengths(text, &texts) + quotes;
        self.total += sum.clamp(-COLUMN_MAX, COLUMN_MAX);
    }

    /// A column of numbers, dates or truth values.
    fn add_typed(
        &mut self,
        name: &Field<'_>,
        column: &[&Field<'_>],
        data_type: DataType,
        rules: &FieldRules,
        years: usize,
    ) {
        // 1.5 in a column of integers is no name, though it does not fit.
        let plain = rules.formats.rewrite(&name.text, data_type);
        let fits = plain.is_some_and(|plain| parse_value(&plain, data_type).is_ok())
            || has_form_in(&name.text, &rules.formats)
            || is_marker(&name.text);
        if !fits || is_quoted_for_itself(name, column) {
            self.misfits += 1;
            self.total += TYPE;
            return;
        }
        let among = column.iter().filter(|field| year(&field.text).is_some()).count();
        if year(&name.text).is_some() && among * 10 < column.len() {
            // Years name columns whose fields are no years; one alone may be a number.
            self.total += if years > 1 { 1.5 } else { -0.5 };
            return;
        }
        self.fits += 1;
        self.total -= TYPE;
    }
}

/// Whether a number is in quotes that it does not need, and those below it are not: who quotes texts alone says that it is one.
fn is_quoted_for_itself(name: &Field<'_>, column: &[&Field<'_>]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
    name.quoted
        && name.text.iter().all(inner)
        && column.len() > 1
        && column.iter().all(|field| !field.quoted)
}

/// Whether a text is an address of mail or of a page.
fn is_address(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let inside = |mark: &[u8]| memchr::memmem::find(text, mark).is_some_and(|at| at > 0);
    !text.contains(&b' ') && (inside(b"@") && inside(b".") || inside(b"://"))
}

/// Whether a text has digits and letters at the same places as all those below it: it is a code as they are.
fn is_code_among(text: &[u8], column: &[&Field<'_>]) -> bool {
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => b'9',
        b'A'..=b'Z' => b'A',
        b'a'..=b'z' => b'a',
        other => *other,
    };
    let same = |field: &&Field<'_>| {
        field.text.len() == text.len() && field.text.iter().map(kind).eq(text.iter().map(kind))
    };
    text.len() >= CODE_BYTES_MIN
        && text.iter().any(u8::is_ascii_digit)
        && column.len() > 1
        && column.iter().all(same)
}

fn year(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    text.parse().ok().filter(|year| text.len() == 4 && YEARS.contains(year))
}

/// Names are unlike each other.
fn twins(first: &[Field<'_>]) -> f64 {
    let mut names: Vec<&[u8]> =
        first.iter().map(|field| field.text.trim_ascii()).filter(|name| !name.is_empty()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    let twins = all - names.len();
    -1.5 * (twins.min(3) as f64)
}

/// How much a text looks like a name by itself.
fn how_named(text: &str) -> f64 {
    if text.is_empty() {
        return -0.3;
    }
    if has_form(text.as_bytes()) {
        return -1.0;
    }
    let lower = text.to_lowercase();
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    let known = |word: &str| word.len() > 1 && WORDS.contains(&format!(" {word} "));
    let mut parts = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    let joined = text.contains('_') && text.chars().all(inner) && !text.contains("__");
    let camel = text.chars().all(char::is_alphanumeric)
        && text
            .chars()
            .zip(text.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let words = lower.split_whitespace().count();
    let mut score = 0.0;
    if parts.any(known) && words <= 4 || camel_words(text).iter().any(|word| known(word)) {
        score += KNOWN_WORD;
    } else if joined && text.chars().any(char::is_alphabetic) || camel {
        score += 1.0;
    }
    let odd = text.contains('@')
        || text.contains("://")
        || text.starts_with(|c: char| c.is_ascii_digit());
    if odd || text.ends_with(['!', ';', ',']) {
        score -= 1.5;
    }
    if text.chars().count() > NAME_MAX && !text.ends_with(['?', ':', ')']) {
        score -= 0.5;
    }
    score
}

/// The words that capitals set apart, in lower case: `firstName`, `CustomerID`.
fn camel_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() || before.is_lowercase() && c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// How much the odds change by a trait that `same` of `all` values have: by as much as it is seldom among them, if names have it
/// with the probability `in_names`. What few values do not have may yet come.
fn seldom(same: usize, all: usize, in_names: f64) -> f64 {
    let among = (same as f64 + 1.0) / (all as f64 + 2.0);
    (in_names / among).ln()
}

/// Whether the name is a value of the column. In a column of few values a new one is seldom; in one of unlike values it is not.
fn recurrence(name: &Field<'_>, column: &[&Field<'_>]) -> f64 {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for field in column {
        *counts.entry(field.text.trim_ascii()).or_default() += 1;
    }
    if let Some(count) = counts.get(name.text.trim_ascii()) {
        // A header may come again; a value does often.
        return if *count * 2 > column.len() { -1.0 } else { -COLUMN_MAX };
    }
    let once = counts.values().filter(|count| **count == 1).count();
    seldom(once, column.len(), 1.0).max(0.0)
}

/// Whether the name is made of the kinds of characters that the column's fields are made of.
fn shapes(name: &str, column: &[&str]) -> f64 {
    let own = shape(name);
    let mut kinds: Vec<String> = column.iter().map(|text| shape(text)).collect();
    let same = kinds.iter().filter(|kind| **kind == own).count();
    kinds.sort_unstable();
    kinds.dedup();
    // Where each field has a shape of its own, another one tells nothing.
    let varied = kinds.len() as f64 / column.len() as f64;
    let in_names = if same > 0 { 0.35 } else { 0.65 };
    let told = seldom(same, column.len(), in_names);
    (told * (1.0 - varied)).clamp(-1.2, 2.5)
}

/// The kinds of characters of a text, each run once: `W` for a word with a capital, `w` for one without, `A` for capitals, `9` for
/// digits. Several words of a kind are as one.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    // Where the word begins that is read, and the last kind of it.
    let (mut word, mut last) = (0, ' ');
    for c in text.chars().chain([' ']) {
        let kind = match c {
            c if c.is_numeric() => '9',
            c if c.is_uppercase() => 'A',
            c if c.is_alphabetic() => 'a',
            c if c.is_whitespace() => ' ',
            c => c,
        };
        match kind {
            ' ' => {
                let (before, of_word) = shape.split_at(word);
                if before.ends_with(of_word) {
                    shape.truncate(word);
                }
                word = shape.len();
            }
            kind if kind == last => {}
            'a' if last == 'A' => {
                shape.pop();
                shape.push('W');
            }
            'a' => shape.push('w'),
            kind => shape.push(kind),
        }
        last = kind;
    }
    shape
}

/// Whether the name is shorter or longer than the column's fields are.
fn lengths(name: &str, column: &[&str]) -> f64 {
    let own = name.chars().count();
    let lengths = || column.iter().map(|text| text.chars().count());
    let (least, most) = (lengths().min(), lengths().max());
    let (Some(least), Some(most)) = (least, most) else { return 0.0 };
    let outside = own < least || own > most;
    let far = own * 2 < least || own > most * 2;
    // All as long as each other, and the name too: codes.
    let codes = least == most && own == least && column.len() > 2;
    match () {
        () if codes => -0.7,
        () if far => seldom(0, column.len(), 0.4).clamp(0.0, 2.0),
        // One more value lies outside the range of the others with 2 of their number and one.
        () if outside => (OUTSIDE * (column.len() + 1) as f64 / 2.0).ln().clamp(0.0, 1.0),
        () => -0.3,
    }
}

/// Whether names are quoted and values not, or the other way round.
fn quote_evidence(name: &Field<'_>, column: &[&Field<'_>]) -> f64 {
    let quoted = column.iter().filter(|field| field.quoted).count();
    match name.quoted {
        true if quoted == 0 => 0.7,
        false if quoted == column.len() && column.len() > 1 => 1.5,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_kinds_of_characters() {
        for (text, expected) in [
            ("Ann Lee", "W"),
            ("Ann", "W"),
            ("R+27", "A+9"),
            ("2018", "9"),
            ("two words", "w"),
            ("A1b", "A9w"),
            ("ABc De", "W"),
            ("AbC", "WA"),
            ("Anna 7  8", "W9"),
            ("a_b, c", "w_w,w"),
            ("12 12 x", "9w"),
            ("", ""),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }
}
