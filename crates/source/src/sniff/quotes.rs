//! The quotes that go with a delimiter.

use super::attempt::{SURE_SHARE, share_of_usual};
use crate::aligned::Aligned;
use crate::dialect::GivenDialect;
use crate::sample::{Field, Records, SampleEnd, Split, split_records};

/// What encloses text in files of some makers, besides quotes.
pub(super) const ODD_QUOTES: [u8; 3] = *b"~|^";

/// Whether what quotes enclose is nothing but parts of several records, as where two titles begin and end with one in text with tabs:
/// a text has newlines, but hardly tabs too.
fn is_strayed(records: &Records<'_>, base: Split) -> bool {
    let mut quoted = records.records.iter().flatten().filter(|field| field.quoted).peekable();
    let is_part = |field: &Field<'_>| {
        field.text.contains(&b'\t') && memchr::memchr(b'\n', &field.text).is_some()
    };
    base.delimiter_bytes() == b"\t"
        && records.faults == 0
        && quoted.peek().is_some()
        && quoted.all(is_part)
}

/// The quotes that enclose fields if they are cut as `base` says.
pub(super) fn choose_quote<'a>(
    head: &'a [u8],
    end: SampleEnd,
    base: Split,
    given: &GivenDialect,
) -> (Split, Records<'a>) {
    let given_escape = given.escape.flatten();
    let base = if base.aligned.is_some() { Split { delimiter: u8::MAX, ..base } } else { base };
    let attempt = |quote: Option<u8>, escape: Option<u8>| {
        let split = Split { quote, escape, ..base };
        (split, split_records(head, end, split, usize::MAX))
    };
    if let Some(quote) = given.quote {
        return attempt(quote, given_escape);
    }
    let bars = base.aligned.is_some_and(Aligned::has_bars);
    if bars || base.delimiter_bytes().contains(&b'"') {
        return attempt(None, given_escape);
    }
    let double = attempt(Some(b'"'), given_escape);
    let may_be_single = double.1.quoted == 0 && !base.delimiter_bytes().contains(&b'\'');
    if may_be_single && memchr::memchr(b'\'', head).is_some() {
        let mut single = attempt(Some(b'\''), given_escape);
        if single.1.faults > 0
            && given.escape.is_none()
            && memchr::memmem::find(head, b"\\'").is_some()
        {
            let escaped = attempt(Some(b'\''), Some(b'\\'));
            if escaped.1.faults == 0 {
                single = escaped;
            }
        }
        let many = single.1.quoted + single.1.faults >= single.1.records.len().max(1);
        let better = share_of_usual(&single.1.records, 2) > share_of_usual(&double.1.records, 2);
        // A few that enclose delimiters, and make the records agree, are quotes too.
        let few = single.1.faults == 0 && better && single.1.quoted > 0;
        if many && (single.1.faults == 0 || better) || few {
            return single;
        }
    }
    if given.escape.is_none() && memchr::memmem::find(head, b"\\\"").is_some() {
        let escaped = attempt(Some(b'"'), Some(b'\\'));
        // A quote inside that a delimiter follows ends the field, and no fault tells.
        let alike = |way: &(Split, Records<'_>)| share_of_usual(&way.1.records, 2);
        if escaped.1.faults == 0 && (double.1.faults > 0 || alike(&escaped) > alike(&double)) {
            return escaped;
        }
    }
    if is_strayed(&double.1, base) {
        let bare = attempt(None, given_escape);
        if share_of_usual(&bare.1.records, 2) >= 1.0 {
            return bare;
        }
    }
    if double.1.faults > 0 {
        // Quotes that enclose nothing, as in inches, are text.
        return if double.1.faults > double.1.quoted {
            attempt(None, given_escape)
        } else {
            double
        };
    }
    if double.1.quoted == 0 && base.aligned.is_none() {
        for quote in ODD_QUOTES.into_iter().filter(|quote| !base.delimiter_bytes().contains(quote))
        {
            if memchr::memchr(quote, head).is_none() {
                continue;
            }
            let odd = attempt(Some(quote), given_escape);
            let names = odd.1.records.first().is_some_and(|first| first.iter().all(|f| f.quoted));
            let many = odd.1.quoted > 1 && (names || odd.1.quoted * 2 >= odd.1.records.len());
            let delimiter = base.delimiter_bytes();
            let whole = |field: &Field<'_>| {
                let inside = field.text.starts_with(delimiter) || field.text.ends_with(delimiter);
                !field.quoted || !inside
            };
            let sound = odd.1.faults == 0 && odd.1.records.iter().flatten().all(whole);
            if many && sound && share_of_usual(&odd.1.records, 2) >= SURE_SHARE {
                return odd;
            }
        }
    }
    double
}
