//! How tables are written as delimited text, so that it can be read again as it was.
//!
//! Texts are in quotes, other values are bare, NULL is nothing. A name is in quotes where its column is text; where that
//! would leave all names alike, all but one are in quotes. So quotes tell texts and names apart from all else. Where they
//! cannot, the line of names alone ends with CRLF, and all names are in quotes (decision 0027).

mod names;

pub use names::{NamesLine, tells_nothing};

/// What begins files of other formats that a name could begin with.
const MAGIC: [&[u8]; 4] = [b"PAR1", b"BZ", b"Obj", b"ORC"];

/// Words that other programs write bare for truth values, NULL and numbers, in small letters: bare, they are values and no names.
const WORDS_OF_VALUES: [&str; 9] =
    ["true", "false", "null", "none", "na", "nan", "inf", "infinity", "nil"];

/// Whether a name needs no quotes: it is a word of ASCII, no value, and no file of another format begins so.
pub fn is_plain_name(name: &[u8]) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.first().is_some_and(|first| !first.is_ascii_digit())
        && name.iter().all(word)
        && !MAGIC.iter().any(|magic| name.starts_with(magic))
        && !WORDS_OF_VALUES.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a name can stand without quotes among names of which none is plain: it is a letter and what is neither a
/// delimiter nor a quote, as `max-temp`, `größe` or `Unit price`.
fn is_odd_name(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let special = |c: char| c.is_control() || ",;|:\"'`^~".contains(c);
    name.starts_with(char::is_alphabetic)
        && !name.ends_with(char::is_whitespace)
        && !name.contains(special)
        && !is_plain_name(name.as_bytes())
        && !MAGIC.iter().any(|magic| name.as_bytes().starts_with(magic))
        && !WORDS_OF_VALUES.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// The one name that is bare where all others are in quotes: the first that is plain, or else that may be.
pub fn bare_name<'a>(names: impl Iterator<Item = &'a [u8]> + Clone) -> Option<usize> {
    names.clone().position(is_plain_name).or_else(|| names.clone().position(is_odd_name))
}

/// For each column, given as its name and whether it is text, whether the name is written in quotes.
pub fn names_in_quotes<'a>(columns: impl Iterator<Item = (&'a str, bool)> + Clone) -> Vec<bool> {
    let bare = bare_name(columns.clone().map(|(name, _)| name.as_bytes()));
    let texts = columns.clone().filter(|(_, is_text)| *is_text).count();
    let count = columns.clone().count();
    let bare_value = |(name, is_text): (&str, bool)| !is_text && is_plain_name(name.as_bytes());
    if texts == 0 && count == 1 {
        return vec![true];
    }
    let one = texts == 0 || !columns.clone().any(bare_value);
    let in_quotes = |(index, column)| if one { Some(index) != bare } else { !bare_value(column) };
    columns.enumerate().map(in_quotes).collect()
}

/// Appends a text in quotes; those in it are doubled.
pub fn push_quoted(out: &mut Vec<u8>, text: &[u8], quote: u8) {
    out.push(quote);
    let mut rest = text;
    while let Some(at) = memchr::memchr(quote, rest) {
        out.extend_from_slice(&rest[..=at]);
        out.push(quote);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_quotes_where_that_tells_something() {
        for (columns, expected) in [
            (&[("id", false), ("a b", false), ("t", true)][..], &[false, true, true][..]),
            (&[("id", false), ("n", false)], &[false, true]),
            (&[("id", false)], &[true]),
            (&[("1", false), ("n", true)], &[true, false]),
            (&[("1", false), ("max-temp", true)], &[true, false]),
            (&[("größe", false), ("max-temp", true)], &[false, true]),
            (&[("größe", true), ("x y", true)], &[false, true]),
            (&[("a,b", true), ("'", true), ("2", true)], &[true, true, true]),
            (&[("a b", true), ("t", true), ("u", true)], &[true, false, true]),
            (&[("t", true)], &[false]),
            (&[("PAR1x", true), ("1", true)], &[true, true]),
        ] {
            assert_eq!(names_in_quotes(columns.iter().copied()), expected, "{columns:?}");
        }
    }
}
