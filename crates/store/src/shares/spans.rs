//! What shares read of an input that is cut at any byte, compared.
//!
//! ```text
//!   from      |0          |10         |20          the plan cuts here
//!   records   aaaaa bbbbbbbb cccc ddddd eee
//!   read      [0       14)[14    20)[20   ...      each begins where the one before ended
//! ```

/// What was read of a split of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitSpan {
    /// Number of the input in the plan.
    pub input: u32,
    /// Where the split begins.
    pub from: u64,
    /// Where it ends: records that start before are read.
    pub to: u64,
    /// Where the first record that was read starts.
    pub start: u64,
    /// Where the last one ends; `start` when there is none.
    pub end: u64,
}

/// The share, by its number, with the first split that does not begin where the records before it end.
///
/// A split without records says nothing: no line ends in it. What comes behind it begins where the last record before
/// it ended.
pub(super) fn first_that_began_elsewhere<'a>(
    shares: impl Iterator<Item = (u32, &'a [SplitSpan])>,
) -> Option<u32> {
    let mut spans: Vec<(SplitSpan, u32)> =
        shares.flat_map(|(number, spans)| spans.iter().map(move |span| (*span, number))).collect();
    spans.sort_by_key(|(span, _)| (span.input, span.from));
    let mut before: Option<(u32, u64)> = None;
    for (span, number) in spans {
        let is_first = span.from == 0;
        if span.start == span.end && !is_first {
            continue;
        }
        match before {
            Some((input, end)) if input == span.input && end != span.start => return Some(number),
            _ => before = Some((span.input, span.end)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64, start: u64, end: u64) -> SplitSpan {
        SplitSpan { input: 0, from, to, start, end }
    }

    fn misread(shares: &[&[SplitSpan]]) -> Option<u32> {
        first_that_began_elsewhere((1..).zip(shares.iter().copied()))
    }

    #[test]
    fn each_split_begins_where_the_one_before_ended() {
        let last = [span(20, 30, 24, 30)];
        assert_eq!(misread(&[&[span(0, 10, 3, 12)], &last, &[span(10, 20, 12, 24)]]), None);
        assert_eq!(misread(&[&[span(0, 10, 3, 14)], &last, &[span(10, 20, 12, 24)]]), Some(3));
        // Of another input nothing is known.
        let other = [SplitSpan { input: 1, ..span(0, 10, 2, 10) }];
        assert_eq!(misread(&[&[span(0, 10, 3, 12)], &other]), None);
    }

    #[test]
    fn a_split_within_a_record_is_passed_over() {
        let spans = [span(0, 10, 0, 25), span(10, 20, 25, 25), span(20, 30, 25, 30)];
        assert_eq!(misread(&[&spans]), None);
        // It took a line of a field for a record.
        let spans = [span(0, 10, 0, 25), span(10, 20, 12, 20), span(20, 30, 25, 30)];
        assert_eq!(misread(&[&spans[..1], &spans[1..2], &spans[2..]]), Some(2));
        // A header that is longer than the first split.
        assert_eq!(misread(&[&[span(0, 10, 15, 15)], &[span(10, 20, 12, 20)]]), Some(2));
    }
}
