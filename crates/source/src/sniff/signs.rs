//! Signs that may delimit fields besides the usual ones.

use super::attempt::SURE_SHARE;
use super::delimiter::DELIMITERS;
use super::quotes::ODD_QUOTES;

/// Control characters that set fields apart in exports of Hive and others.
const SEPARATORS: [char; 5] = ['\x01', '\x02', '\x1e', '\x1f', '\x07'];
/// Lines in which unusual delimiters are sought.
const LINES_LOOKED_AT: usize = 64;
/// How often a run of signs delimits the only line of a text, at least.
const SINGLE_LINE_MIN: usize = 3;
/// Unusual delimiters that are tried, the most frequent first.
const UNUSUAL_MAX: usize = 6;

/// Characters that stand in most lines and are no part of words and numbers, the most frequent
/// first.
pub(super) fn unusual_delimiters(head: &[u8]) -> Vec<Vec<u8>> {
    let lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).take(LINES_LOOKED_AT).collect();
    // Character, lines that have it, how often it stands.
    let mut found: Vec<(char, usize, usize)> = Vec::new();
    for line in &lines {
        let mut seen: Vec<char> = Vec::new();
        for c in String::from_utf8_lossy(line).chars().filter(|c| may_delimit(*c)) {
            let index = found.iter().position(|(known, ..)| *known == c).unwrap_or_else(|| {
                found.push((c, 0, 0));
                found.len() - 1
            });
            found[index].2 += 1;
            if !seen.contains(&c) {
                seen.push(c);
                found[index].1 += 1;
            }
        }
    }
    found.retain(|(_, count, _)| *count as f64 >= SURE_SHARE * lines.len() as f64);
    found.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    found.truncate(UNUSUAL_MAX);
    found.into_iter().map(|(c, ..)| c.to_string().into_bytes()).collect()
}

/// Signs that stand beside odd quotes several times.
pub(super) fn delimiters_beside_odd_quotes(head: &[u8]) -> Vec<u8> {
    let mut counts = [0_usize; 256];
    for window in head.windows(2) {
        let &[one, other] = window else { continue };
        for (quote, delimiter) in [(one, other), (other, one)] {
            let sign = delimiter.is_ascii_punctuation() && !b"\"'".contains(&delimiter)
                || delimiter == b'\t';
            if sign && delimiter != quote && ODD_QUOTES.contains(&quote) {
                counts[usize::from(delimiter)] += 1;
            }
        }
    }
    let mut found: Vec<u8> = (0..=255).filter(|byte| counts[usize::from(*byte)] > 1).collect();
    found.sort_by_key(|byte| std::cmp::Reverse(counts[usize::from(*byte)]));
    found.truncate(2);
    found
}

/// Runs of two to four signs that stand in nearly all lines: `::`, `~^~`, `<tab>|<tab>`; not what is a usual delimiter
/// with a space, or twice.
pub(super) fn runs_of_signs(head: &[u8]) -> Vec<Vec<u8>> {
    let lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).take(LINES_LOOKED_AT).collect();
    let sign = |byte: &u8| {
        byte.is_ascii_punctuation() && !b"\\\"'._-/()[]{}".contains(byte) || *byte == b'\t'
    };
    let mut found: Vec<(Vec<u8>, usize)> = Vec::new();
    for line in &lines {
        let mut runs: Vec<&[u8]> = line.split(|byte| !sign(byte)).collect();
        runs.sort_unstable();
        runs.dedup();
        for run in runs.into_iter().filter(|run| (2..=4).contains(&run.len())) {
            let several = run.iter().any(|byte| *byte != run[0])
                || matches!(run, b"::" | b"@@" | b"##" | b"~~" | b"&&");
            if several && !found.iter().any(|(known, _)| known == run) {
                found.push((run.to_vec(), 0));
            }
        }
    }
    // A field without characters makes one run of two.
    for (run, count) in &mut found {
        *count = lines.iter().filter(|line| memchr::memmem::find(line, run).is_some()).count();
    }
    found.retain(|(run, count)| {
        let quotes = run.iter().any(|byte| matches!(byte, b',' | b';')) || run.starts_with(b"\t\t");
        // In a single line it stands several times.
        let several = match lines[..] {
            [line] => memchr::memmem::find_iter(line, run).count() >= SINGLE_LINE_MIN,
            _ => true,
        };
        *count as f64 >= SURE_SHARE * lines.len() as f64 && several && !quotes
    });
    found.sort_by_key(|(run, count)| std::cmp::Reverse((*count, run.len())));
    found.into_iter().map(|(run, _)| run).take(2).collect()
}

fn may_delimit(c: char) -> bool {
    let in_words = |c: char| "\"'`\\.-_/+()@$%?!".contains(c) || c == char::REPLACEMENT_CHARACTER;
    !c.is_alphanumeric()
        && (!c.is_control() || SEPARATORS.contains(&c))
        && !in_words(c)
        && !DELIMITERS.iter().any(|d| char::from(*d) == c)
}
