//! Which ways of drawing a table with blanks a text may have.

use crate::aligned::Aligned;
use crate::careful::CarefulRecord;

/// Lines that are looked at.
const LINES_LOOKED_AT: usize = 200;
/// Lines whose columns must begin alike to be laid out.
const LAID_OUT_MIN: usize = 3;
/// Lines that may be notes around a table.
const NOTES_MAX: usize = 8;

/// The ways that the lines allow, the narrowest first.
pub(super) fn aligned_candidates(head: &[u8]) -> Vec<Aligned> {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let lines: Vec<&[u8]> =
        lines.filter(|line| !line.trim_ascii().is_empty()).take(LINES_LOOKED_AT).collect();
    let mut found = Vec::new();
    let drawn = lines.iter().filter(|line| Aligned::Bars.is_drawn(line)).count();
    let others = || lines.iter().filter(|line| !Aligned::Bars.is_drawn(line));
    let bars = others().filter(|line| line.contains(&b'|')).count();
    let framed = others().filter(|line| is_framed(line.trim_ascii())).count();
    let all = lines.len() - drawn;
    let nearly_all = |count: usize| count > 0 && count + NOTES_MAX.min(all / 2) >= all;
    let padded = others().filter(|line| memchr::memmem::find(line, b" |").is_some()).count();
    let quoted = lines.iter().any(|line| line.contains(&b'"'));
    if nearly_all(framed) && (drawn > 0 || framed > 1) {
        found.push(Aligned::FramedBars);
    } else if nearly_all(bars) && !quoted && (drawn > 0 || nearly_all(padded) && is_padded(&lines))
    {
        found.push(Aligned::Bars);
    }
    let runs = lines.iter().any(|line| {
        let inner = line.trim_ascii();
        memchr::memmem::find(inner, b"  ").is_some()
            || memchr::memmem::find(inner, b" \t").is_some()
    });
    let leading = lines.iter().filter(|line| line.starts_with(b" ")).count();
    if runs {
        found.push(Aligned::WideSpaces);
    }
    if runs || leading * 2 > lines.len() {
        found.push(Aligned::Spaces);
    }
    found
}

/// Whether runs of spaces set columns apart that begin, or end, at the same character in all lines.
pub(super) fn is_laid_out(head: &[u8]) -> bool {
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head, |last| &head[..last]);
    let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let lines = lines.filter(|line| !line.is_empty()).take(LINES_LOOKED_AT);
    let spans = |line: &[u8]| -> Vec<(usize, usize)> {
        let mut record = CarefulRecord::default();
        Aligned::WideSpaces.split(line, 0, line.len(), None, &mut record);
        let characters = |at: usize| String::from_utf8_lossy(&line[..at]).chars().count();
        record.fields.iter().map(|field| (characters(field.start), characters(field.end))).collect()
    };
    let all: Vec<Vec<(usize, usize)>> = lines.map(spans).collect();
    let Some(first) = all.first().filter(|first| first.len() > 1 && all.len() >= LAID_OUT_MIN)
    else {
        return false;
    };
    let same = |column: usize| {
        let starts = all.iter().all(|spans| spans[column].0 == first[column].0);
        starts || all.iter().all(|spans| spans[column].1 == first[column].1)
    };
    all.iter().all(|spans| spans.len() == first.len()) && (0..first.len()).all(same)
}

/// Whether bars stand at both ends of a line.
fn is_framed(line: &[u8]) -> bool {
    line.len() > 2 && line.first() == Some(&b'|') && line.last() == Some(&b'|')
}

/// Whether bars stand at the same places of all lines.
fn is_padded(lines: &[&[u8]]) -> bool {
    let places = |line: &&[u8]| memchr::memchr_iter(b'|', line).collect::<Vec<_>>();
    let mut all = lines.iter().map(places).filter(|places| !places.is_empty());
    let first = all.next().unwrap_or_default();
    lines.len() > 1 && all.all(|places| places == first)
}
