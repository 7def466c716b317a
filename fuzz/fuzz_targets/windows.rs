//! Dirty text in chunks and windows of any size, against the careful reader, which has all of it.
//!
//! Each chunk is parsed from where a record is guessed to start, as workers do it, and again where the
//! guess was wrong.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{DataType, Physical};
use coload_source::{
    ChunkParser, ColumnParser, ColumnPlan, ColumnRules, Dialect, InvalidBytes, LastWindow, Lexicon,
    LineEnd, LongDelimiter, Mending, Policies, Quotes, Ragged, TEXT_PADDING, Trailing, TypeOrigin,
    Window,
};
use coload_transform::FragmentColumn;
use dirty_model::{Expected, Row};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/load/tests/it/dirty_model.rs"]
mod dirty_model;

/// Bytes tried so far; told every 10^8.
static TRIED: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|input: &[u8]| {
    let before = TRIED.fetch_add(input.len() as u64, Ordering::Relaxed);
    if before / 100_000_000 != (before + input.len() as u64) / 100_000_000 {
        eprintln!("{before} bytes tried");
    }
    let [a, b, c, d, text @ ..] = input else { return };
    let columns = 1 + *a as usize % 5;
    let dialect = dialect(*a, *b);
    let rules = dialect.record_rules(columns);
    let expected = Expected::read(text, &dialect, columns);
    let mut load = Load {
        text,
        dialect: &dialect,
        columns,
        window: 16 << (d % 8),
        found: Expected { record_bytes_max: expected.record_bytes_max, ..Expected::default() },
    };
    let chunk_bytes = [1, 7, 16, 64, 100, 1000, 4096, 1 << 20][*c as usize % 8];
    let (mut end, mut lines) = (0, 0);
    for start in (0..text.len()).step_by(chunk_bytes) {
        let limit = (start + chunk_bytes).min(text.len());
        if end >= limit {
            continue;
        }
        let guess = if start == 0 { 0 } else { guess(text, start, rules.line_end) };
        let mut part = (guess < limit).then(|| load.parse(guess, limit));
        if guess != end || part.is_none() {
            part = Some(load.parse(end, limit));
        }
        let part = part.expect("parsed just now");
        load.add(&part, lines);
        (end, lines) = (part.end, lines + part.lines);
    }
    assert_eq!(load.found, expected);
});

fn dialect(a: u8, b: u8) -> Dialect {
    let bit = |n: u8| b >> n & 1 == 1;
    let mut dialect = Dialect {
        long_delimiter: if a & 32 == 0 { None } else { LongDelimiter::new(b", ") },
        quote: (a & 64 == 0).then_some(b'"'),
        escape: (a & 128 != 0).then_some(b'\\'),
        nulls: Vec::new(),
        comment: bit(0).then_some(b'#'),
        trailing: if bit(1) { Trailing::Delimiter } else { Trailing::Newline },
        line_end: if bit(2) { LineEnd::Any } else { LineEnd::Newline },
        policies: Policies {
            ragged: [Ragged::Reject, Ragged::Pad, Ragged::Truncate, Ragged::Truncate]
                [b as usize >> 3 & 3],
            quotes: if bit(5) { Quotes::Lenient } else { Quotes::Strict },
            invalid_bytes: if bit(6) { InvalidBytes::Replace } else { InvalidBytes::Reject },
        },
        ..Dialect::default()
    };
    let rules = dialect.record_rules(1);
    if !rules.is_exotic() && !rules.is_forgiving() {
        // There a quote in a comment takes records with it; the target `load` has that.
        dialect.comment = None;
    }
    dialect
}

/// Where the first record of a chunk may start.
fn guess(text: &[u8], start: usize, line_end: LineEnd) -> usize {
    let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r' && line_end == LineEnd::Any;
    match text[start - 1..].iter().position(ends).map(|at| start - 1 + at) {
        Some(at) if text[at] == b'\r' && text.get(at + 1) == Some(&b'\n') => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    }
}

struct Load<'a> {
    text: &'a [u8],
    dialect: &'a Dialect,
    columns: usize,
    window: usize,
    found: Expected,
}

struct Part {
    end: usize,
    lines: u64,
    rows: Vec<Row>,
    rejects: Vec<(u64, u64)>,
    mended: Vec<u64>,
}

impl Load<'_> {
    /// The records that start before `limit`, the first at `start`.
    fn parse(&self, start: usize, limit: usize) -> Part {
        let mut parser = self.parser();
        let (mut at, mut window) = (start, self.window);
        while at < limit {
            let mut have = window.min(self.text.len() - at);
            let last = at + have == self.text.len();
            let mut buffer = vec![b'\n'];
            buffer.extend_from_slice(&self.text[at..at + have]);
            if last && buffer[have] != b'\n' {
                buffer.push(b'\n');
                have += 1;
            }
            buffer.extend([b','; TEXT_PADDING]);
            let consumed = parser.parse_window(&Window {
                text: &buffer,
                start: 1,
                end: 1 + have,
                offset: at as u64,
                limit: limit - at + 1,
                last: if last { LastWindow::Yes } else { LastWindow::No },
            });
            at = (at + consumed.end - 1).min(self.text.len());
            if consumed.done {
                break;
            }
            if consumed.short {
                assert!(!last, "stuck at {at}");
                window *= 2;
            }
        }
        let mended = parser.take_mended();
        let (rejects, lines) = parser.end_piece();
        let fragment = parser.finish(0).expect("a small text");
        let column = |c: &FragmentColumn| match c {
            FragmentColumn::Plain(plain) => (0..plain.len()).map(|row| plain.get(row)).collect(),
            other => panic!("{other:?} is not plain"),
        };
        let columns: Vec<Vec<_>> = fragment.columns.iter().map(column).collect();
        let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
        Part {
            end: at,
            lines,
            rows: (0..fragment.rows as usize).map(row).collect(),
            rejects: rejects.iter().map(|r| (r.line, r.offset)).collect(),
            mended: Mending::ALL.iter().map(|m| mended.count(*m)).collect(),
        }
    }

    fn parser(&self) -> ChunkParser {
        let rules = ColumnRules {
            data_type: DataType::Varchar(None),
            nullable: false,
            empties_are_null: self.dialect.json.is_some(),
            fields: self.dialect.field_rules(),
            origin: TypeOrigin::Declared,
            field: Some(0),
            absent: None,
        };
        let column = |field| {
            let lexicon = Lexicon::new(Physical::Bytes);
            let rules = ColumnRules { field: Some(field), ..rules.clone() };
            ColumnParser::new(rules, ColumnPlan::PlainText, lexicon)
        };
        let columns = (0..self.columns).map(column).collect();
        ChunkParser::new(self.dialect.record_rules(self.columns), columns, || 0)
    }

    fn add(&mut self, part: &Part, lines: u64) {
        self.found.rows.extend(part.rows.iter().cloned());
        self.found.rejects.extend(part.rejects.iter().map(|(line, at)| (line + lines + 1, *at)));
        for (sum, count) in self.found.mended.iter_mut().zip(&part.mended) {
            *sum += count;
        }
    }
}
