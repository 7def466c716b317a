//! Random text of few values, with everything that may stand in it.

use coload_source::{Dialect, Header, Said, TextEncoding, Trailing};

/// Numbers from a seed (xorshift).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// SQL types, and texts of which most are values of the type.
pub const TYPES: [(&str, &[&str]); 19] = [
    ("BOOLEAN", &["true", "false", "t", "F", "1", "0", "yes", "maybe"]),
    ("SMALLINT", &["1", "-5", "32767", "-32768", "007", "+3", "32768", "1.5", " 4"]),
    ("INTEGER", &["0", "12", "2147483647", "-2147483648", "2147483648", "1e3"]),
    ("BIGINT", &["0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808"]),
    ("DECIMAL(6,2)", &["1.5", "1.50", "-0.01", "9999.99", "10000", "1.005", ".5", "3.", "-"]),
    ("DECIMAL(18,0)", &["1", "-999999999999999999", "999999999999999999", "1000000000000000000"]),
    ("DECIMAL(30,10)", &["1.5", "12345678901234567890.5", "-0.0000000001", "0.00000000001"]),
    ("DECIMAL(38,38)", &["0.5", "-.00000000000000000000000000000000000001", "1"]),
    ("REAL", &["1.5", "-0", "1e10", "nan", "inf", "1e40", "x"]),
    ("DOUBLE", &["1.5", "-0.0", "0.0", "1e308", "-1e-308", "NaN", "-inf", "0x1p3"]),
    ("DATE", &["1970-01-01", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "24-1-1"]),
    ("TIME", &["00:00:00", "23:59:59.999999", "12:30", "24:00:00", "1:2:3"]),
    (
        "TIMESTAMP",
        &["2024-02-29 12:00:00", "1969-12-31T23:59:59.5", "2024-01-01", "2024-13-01 00:00:00"],
    ),
    (
        "TIMESTAMP WITH TIME ZONE",
        &["2024-02-29 12:00:00Z", "2024-02-29T12:00:00+02:00", "2024-02-29 12:00:00-05"],
    ),
    ("CHAR(3)", &["abc", "a", "ab ", "\u{e9}\u{e9}\u{e9}", "abcd"]),
    ("VARCHAR(5)", &["abcde", "", "a b", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "toolong"]),
    (
        "VARCHAR",
        &[
            "a",
            "b",
            "carefully final deposits detect",
            "carefully final deposits detecu",
            "\u{20ac}",
        ],
    ),
    ("BINARY(4)", &["\\x00ff", "\\xDEADBEEF", "\\xdeadbeef", "00ff", "\\x0102030405", "ab"]),
    (
        "UUID",
        &["00000000-0000-0000-0000-000000000000", "ffffffff-FFFF-ffff-ffff-ffffffffffff", "0-0"],
    ),
];

/// Field texts that any column may meet.
const NOISE: [&[u8]; 14] = [
    b"",
    b"",
    b"",
    b"",
    b"NULL",
    b"\\N",
    b"x",
    b"a,b",
    b"two\nlines",
    b"say \"hi\"",
    b"a|b;c",
    b"\xff\xfe",
    b"nul\0byte",
    b"\r",
];

/// Columns with their types, and the texts of each.
#[derive(Debug, Clone)]
pub struct Columns {
    pub sql: String,
    texts: Vec<Vec<Vec<u8>>>,
}

pub fn columns(random: &mut Random) -> Columns {
    let count = random.of(&[1, 1, 2, 3, 3, 5, 8]);
    let (mut parts, mut texts) = (Vec::new(), Vec::new());
    // Columns without bad texts let whole windows be regular.
    let clean = random.one_in(3);
    for i in 0..count {
        let (data_type, values) = random.of(&TYPES);
        let not_null = if random.one_in(3) { " NOT NULL" } else { "" };
        parts.push(format!("c{i} {data_type}{not_null}"));
        let mut values: Vec<Vec<u8>> = values.iter().map(|v| v.as_bytes().to_vec()).collect();
        if clean {
            values.truncate(1 + random.below(3));
        }
        if !clean || random.one_in(2) {
            values.push(Vec::new());
        }
        if !clean {
            values.extend((0..3).map(|_| random.of(&NOISE).to_vec()));
        }
        texts.push(values);
    }
    Columns { sql: parts.join(", "), texts }
}

pub fn dialect(random: &mut Random) -> Dialect {
    let delimiter = random.of(b",|;\t");
    let quote = random.of(&[Some(b'"'), Some(b'"'), Some(b'\''), None]);
    let nulls: [&[&[u8]]; 4] = [&[b""], &[b"", b"NULL"], &[b"\\N"], &[]];
    Dialect {
        // A field may begin with what looks like a mark of UTF-16.
        encoding: TextEncoding { said: Said::User, ..TextEncoding::default() },
        delimiter,
        quote,
        escape: quote.and(random.of(&[None, None, Some(b'\\')])),
        header: random.of(&[Header::Absent, Header::Present]),
        nulls: random.of(&nulls).iter().map(|n| n.to_vec()).collect(),
        skip: random.of(&[0, 0, 0, 2]),
        comment: random.of(&[None, None, Some(b'#')]),
        trailing: random.of(&[Trailing::Newline, Trailing::Newline, Trailing::Delimiter]),
        ..Dialect::default()
    }
}

/// A text of about `count` records.
pub fn text(random: &mut Random, dialect: &Dialect, columns: &Columns, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if random.one_in(5) {
        out.extend(b"\xef\xbb\xbf");
    }
    for _ in 0..dialect.skip {
        out.extend(random.of::<&[u8]>(&[b"title\n", b"\n", b"\"open\n"]));
    }
    if dialect.header == Header::Present {
        if random.one_in(4) {
            out.extend(random.of::<&[u8]>(&[b"\n", b"\r\n", b"#\"note\n"]));
        }
        let name = |i: usize| format!("c{i}").into_bytes();
        let names: Vec<_> = (0..columns.texts.len()).map(name).collect();
        put_record(random, dialect, &names, &mut out);
    }
    // Most texts are well formed: these are the ones that whole windows are read of at once.
    let faults = random.of(&[0, 0, 40, 8]);
    // Fields of real life repeat from record to record.
    let repeats = random.of(&[1, 1, 3, 20]);
    let mut previous: Vec<Vec<u8>> = columns.texts.iter().map(|t| random.of(t)).collect();
    for _ in 0..count {
        for (field, texts) in previous.iter_mut().zip(&columns.texts) {
            if random.one_in(repeats) {
                *field = random.of(texts);
            }
        }
        let mut record = previous.clone();
        if faults > 0 && random.one_in(faults) {
            match random.below(6) {
                0 => drop(record.pop()),
                1 => record.push(b"more".to_vec()),
                2 => record.clear(),
                3 => out.extend(random.of::<&[u8]>(&[b"# a comment, perhaps\n", b"#,\"|\"\n"])),
                4 => out.extend(random.of::<&[u8]>(&[b"\n", b"\r\n", b"a\"b,c\n", b"\"a\"b\n"])),
                _ => out.extend(random.of::<&[u8]>(&[b"\"", b",", b"\r", b"'"])),
            }
        }
        put_record(random, dialect, &record, &mut out);
    }
    if random.one_in(3) && out.last() == Some(&b'\n') {
        out.pop();
    }
    if random.one_in(15) {
        out.extend(b"\n\"left open,\n\n");
    }
    out
}

fn put_record(random: &mut Random, dialect: &Dialect, fields: &[Vec<u8>], out: &mut Vec<u8>) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push(dialect.delimiter);
        }
        put_field(random, dialect, field, out);
    }
    if dialect.trailing == Trailing::Delimiter && !random.one_in(20) {
        out.push(dialect.delimiter);
    }
    out.extend(if random.one_in(6) { &b"\r\n"[..] } else { b"\n" });
}

fn put_field(random: &mut Random, dialect: &Dialect, field: &[u8], out: &mut Vec<u8>) {
    let special =
        |b: &u8| *b == dialect.delimiter || matches!(b, b'\n' | b'\r') || Some(*b) == dialect.quote;
    let needs = field.iter().any(special);
    match dialect.quote {
        Some(quote) if needs && !random.one_in(12) || random.one_in(9) => {
            out.push(quote);
            for b in field {
                if *b == quote {
                    out.push(dialect.escape.unwrap_or(quote));
                } else if Some(*b) == dialect.escape {
                    out.push(*b);
                }
                out.push(*b);
            }
            out.push(quote);
        }
        _ => out.extend_from_slice(field),
    }
}
