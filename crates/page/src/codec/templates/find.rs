//! The template of some strings.

use super::{DECIMAL_MAX, HEX_MAX, Part, STRING_MAX, Template, digits::count_digits};
use coload_types::Strings;

/// Strings of a sample that need not be of the template, of so many.
const OTHERS: usize = 20;

/// A template of which nearly all strings are; `None` if there is none.
pub(super) fn template_of(strings: &Strings) -> Option<Template> {
    let mut lengths: Vec<usize> = strings.iter().map(<[u8]>::len).collect();
    lengths.sort_unstable();
    let common = *lengths.get(lengths.len() / 2)?;
    let like: Vec<&[u8]> = strings.iter().filter(|s| s.len() == common).collect();
    let template = if like.len() * OTHERS >= strings.len() * (OTHERS - 1) {
        fixed_template(&like, common)
    } else {
        None
    };
    let template = template.or_else(|| number_template(strings))?;
    let mut numbers = [0; super::GROUPS_MAX];
    let others = strings.iter().filter(|s| !template.parse(s, &mut numbers)).count();
    (others * OTHERS <= strings.len()).then_some(template)
}

/// What stands at a place of strings of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Same(u8),
    Digit,
    HexSmall,
    HexCapital,
}

/// How often a kind of byte stands at a place.
#[derive(Default, Clone)]
struct Seen {
    digits: usize,
    small: usize,
    capital: usize,
}

/// The template of strings that are all of one length.
fn fixed_template(strings: &[&[u8]], length: usize) -> Option<Template> {
    if !(1..=STRING_MAX).contains(&length) {
        return None;
    }
    let places = (0..length).map(|at| place_of(strings, at)).collect::<Option<Vec<_>>>()?;
    let mut parts = Vec::new();
    for same in places.chunk_by(|a, b| match (a, b) {
        (Place::Same(_), Place::Same(_)) => true,
        (a, b) => a == b,
    }) {
        match same[0] {
            Place::Same(_) => {
                let byte =
                    |place: &Place| if let Place::Same(byte) = place { Some(*byte) } else { None };
                let literal: Vec<u8> = same.iter().filter_map(byte).collect();
                // The length of a part is a byte.
                parts.extend(literal.chunks(255).map(|part| Part::Literal(part.to_vec())));
            }
            Place::Digit => groups(same.len(), DECIMAL_MAX, Part::Digits, &mut parts),
            Place::HexSmall => groups(same.len(), HEX_MAX, Part::HexSmall, &mut parts),
            Place::HexCapital => groups(same.len(), HEX_MAX, Part::HexCapital, &mut parts),
        }
    }
    Template::new(parts).filter(|template| template.groups > 0)
}

/// Appends groups of digits, together so many.
fn groups(mut count: usize, most: u8, part: impl Fn(u8) -> Part, parts: &mut Vec<Part>) {
    while count > 0 {
        let digits = count.min(usize::from(most));
        parts.push(part(digits as u8));
        count -= digits;
    }
}

/// What nearly all strings have at a place; `None` if it is no digit of one kind.
fn place_of(strings: &[&[u8]], at: usize) -> Option<Place> {
    let first = strings.first()?[at];
    let others = strings.iter().filter(|s| s[at] != first).count();
    if others == 0 {
        return Some(Place::Same(first));
    }
    let mut seen = Seen::default();
    for string in strings {
        match string[at] {
            b'0'..=b'9' => seen.digits += 1,
            b'a'..=b'f' => seen.small += 1,
            b'A'..=b'F' => seen.capital += 1,
            _ => {}
        }
    }
    let enough = |count: usize| count * OTHERS >= strings.len() * (OTHERS - 1);
    match seen {
        Seen { digits, .. } if enough(digits) => Some(Place::Digit),
        Seen { digits, small, .. } if enough(digits + small) => Some(Place::HexSmall),
        Seen { digits, capital, .. } if enough(digits + capital) => Some(Place::HexCapital),
        _ => None,
    }
}

/// The template of strings that differ in one decimal number without leading zeros.
fn number_template(strings: &Strings) -> Option<Template> {
    let first = strings.iter().find(|s| !s.is_empty())?;
    let like: Vec<&[u8]> = strings.iter().filter(|s| s.first() == first.first()).collect();
    let (mut before, mut after) = (first.len(), first.len());
    for string in &like {
        let same = |(a, b): &(&u8, &u8)| a == b;
        before = before.min(first.iter().zip(string.iter()).take_while(same).count());
        let (a, b) = (first.iter().rev(), string.iter().rev());
        after = after.min(a.zip(b).take_while(same).count());
    }
    // Digits that all have in common belong to the number.
    let prefix = &first[..before];
    let prefix = &prefix[..prefix.iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |at| at + 1)];
    let suffix = &first[first.len() - after.min(first.len() - prefix.len())..];
    let suffix = &suffix[count_digits(suffix)..];
    if prefix.len().max(suffix.len()) > 255 {
        return None;
    }
    let parts =
        [Part::Literal(prefix.to_vec()), Part::Number(DECIMAL_MAX), Part::Literal(suffix.to_vec())];
    Template::new(parts.into_iter().filter(|part| part.length() > 0).collect())
}
