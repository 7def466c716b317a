//! Tables of one kind of column each, from which a sweep over shapes is made: each is the worst case of some fast path.
//!
//! All are about 100 MB as they are; `--rows` makes them longer or shorter.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use crate::blocks::write_file;
use crate::warehouse::random::{Random, mix};
use crate::warehouse::values::{code, date};
use crate::warehouse::words::{COMMENT_WORDS, THINGS};

/// Part of the cache key; raise it when any byte of a shape changes.
pub const VERSION: &str = "shapes 2";

/// Any number: it names this one data set.
const SEED: u64 = 1_915;

/// Rows per block, and fewer where rows are long.
const BLOCK_ROWS: u64 = 8192;
const BLOCK_ROWS_LONG: u64 = 32;

/// A table of one kind of column, the worst case of some fast path.
pub struct Shape {
    /// Name, as `coload-bench generate shape` takes it.
    pub name: &'static str,
    /// Rows of about 100 MB.
    pub rows: u64,
    /// Kinds of columns, and how many of each stand after each other.
    columns: &'static [(Field, u64)],
    /// How many in a thousand fields have no value.
    empty_permille: u32,
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Field {
    /// An integer below a limit.
    Integer(u32),
    /// An integer of 62 bits.
    Bits62,
    /// The number of the row.
    Counter,
    /// The number of the row, divided by this.
    Run(u64),
    Double,
    /// A number below a limit, with two decimal places.
    Decimal(u32),
    Date,
    /// A random time with microseconds.
    Timestamp,
    Uuid,
    /// One of so many short words.
    Word(u32),
    /// One of so many codes of 10 characters.
    Code(u32),
    /// One of so many texts of 24 to 56 bytes.
    LongCode(u32),
    /// So many words of a list.
    Words(u32),
    /// Words in quotes, with quotes, delimiters and newlines among them.
    Quoted,
    /// So many bytes of words.
    Bytes(usize),
    /// Some words of Greek, Cyrillic, Han, Devanagari, Thai.
    Scripts,
    /// One value in this many rows, then any of 62 bits: what the start of a file does not tell.
    FewThenMany(u64),
}

use Field::*;

const fn shape(name: &'static str, rows: u64, columns: &'static [(Field, u64)]) -> Shape {
    Shape { name, rows, columns, empty_permille: 0 }
}

/// All shapes that there are, as `coload-bench shapes` lists them.
// One line a shape, so that it reads as a table.
#[rustfmt::skip]
pub const SHAPES: &[Shape] = &[
    shape("wide-integers", 40_000, &[(Integer(1_000_000), 1_500)]),
    Shape { empty_permille: 980, ..shape("sparse", 1_500_000, &[(Integer(100_000), 10), (Word(5_000), 10), (Date, 10), (Decimal(100_000), 10)]) },
    shape("quoted", 500_000, &[(Counter, 1), (Quoted, 3)]),
    shape("counter-runs", 4_000_000, &[(Counter, 1), (Run(100), 1), (Decimal(10_000_000), 3)]),
    shape("doubles", 600_000, &[(Double, 10)]),
    shape("integers-62-bits", 5_000_000, &[(Bits62, 1)]),
    shape("uuids", 600_000, &[(Uuid, 5)]),
    shape("words-40", 250_000, &[(Words(40), 2)]),
    shape("dates", 1_500_000, &[(Date, 6)]),
    shape("timestamps", 1_000_000, &[(Timestamp, 4)]),
    shape("decimals", 1_500_000, &[(Decimal(10_000_000), 8)]),
    shape("integers-1000", 1_500_000, &[(Integer(1_000), 16)]),
    shape("words-of-50000", 700_000, &[(Word(50_000), 15)]),
    shape("codes-of-100000", 800_000, &[(Code(100_000), 10)]),
    shape("long-codes", 250_000, &[(LongCode(5_000), 10)]),
    shape("values-of-1mb", 108, &[(Counter, 1), (Bytes(1_000_000), 1)]),
    shape("scripts", 400_000, &[(Counter, 1), (Scripts, 3)]),
    shape("few-then-many", 1_000_000, &[(FewThenMany(200_000), 6)]),
];

/// Words of other scripts, three bytes a letter but for the first two.
const SCRIPT_WORDS: &[&str] = &[
    "ποσότητα",
    "πελάτης",
    "παράδοση",
    "накладная",
    "поставщик",
    "количество",
    "возврат",
    "订单",
    "客户",
    "发票号码",
    "数量",
    "交货",
    "भुगतान",
    "ग्राहक",
    "मात्रा",
    "ลูกค้า",
    "ใบแจ้งหนี้",
    "จำนวน",
];

impl Shape {
    /// The shape of a name.
    pub fn of_name(name: &str) -> Option<&'static Shape> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        self.columns.iter().flat_map(|(field, count)| (0..*count).map(|_| *field))
    }

    /// The `CREATE TABLE` of the shape.
    pub fn schema(&self) -> String {
        let mut text = "CREATE TABLE shape (\n".to_owned();
        let count = self.fields().count();
        let not_null = if self.empty_permille > 0 { "" } else { " NOT NULL" };
        for (at, field) in self.fields().enumerate() {
            let comma = if at + 1 < count { "," } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  c{at} {}{not_null}{comma}", field.sql());
        }
        text + ");\n"
    }

    /// Writes `rows` rows to `out`.
    ///
    /// # Errors
    /// Those of [`write_file`].
    pub fn generate(&'static self, rows: u64, out: &Path) -> io::Result<()> {
        let block_rows = if self.rows < BLOCK_ROWS { BLOCK_ROWS_LONG } else { BLOCK_ROWS };
        write_file(out, rows.div_ceil(block_rows), |block, buffer| {
            let mut random = Random::new(SEED ^ mix(self.rows), block);
            for row in block * block_rows..rows.min((block + 1) * block_rows) {
                for (at, field) in self.fields().enumerate() {
                    if !random.one_in(self.empty_permille) {
                        field.write(row, at, &mut random, buffer);
                    }
                    buffer.push(b'|');
                }
                buffer.push(b'\n');
            }
        })
    }
}

impl Field {
    fn sql(self) -> &'static str {
        match self {
            Integer(_) => "INTEGER",
            Bits62 | Counter | Run(_) | FewThenMany(_) => "BIGINT",
            Double => "DOUBLE",
            Decimal(_) => "DECIMAL(15,2)",
            Date => "DATE",
            Timestamp => "TIMESTAMP",
            Uuid | Word(_) | Code(_) | LongCode(_) | Words(_) | Quoted | Bytes(_) | Scripts => {
                "VARCHAR"
            }
        }
    }

    /// Appends the field of column `at`.
    fn write(self, row: u64, at: usize, random: &mut Random, buffer: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Integer(below) => write!(buffer, "{}", random.below(below)),
            Bits62 => write!(buffer, "{}", random.bits() >> 2),
            Counter => write!(buffer, "{row}"),
            Run(rows) => write!(buffer, "{}", 1_000_000 + row / rows),
            Double => {
                let bits = random.bits() >> 12 | 0x3ff0_0000_0000_0000;
                write!(buffer, "{}", (f64::from_bits(bits) - 1.0) * 1000.0)
            }
            Decimal(below) => {
                write!(buffer, "{}.{:02}", random.below(below / 100), random.below(100))
            }
            Date => write!(buffer, "{}", date(10_000 + random.below(7_000) as i32)),
            Timestamp => timestamp(random, buffer),
            Uuid => {
                let (a, b) = (random.bits(), random.bits());
                let (first, second, third) = (a >> 32, a >> 16 & 0xffff, a & 0xffff);
                let (fourth, last) = (b >> 48, b & 0xffff_ffff_ffff);
                write!(buffer, "{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{last:012x}")
            }
            Word(count) => word(random.below(count), at, buffer),
            Code(count) => write!(buffer, "{}", code("AA99-99999", random.below(count), at)),
            LongCode(count) => long_code(random.below(count), buffer),
            Words(count) => words(count, random, buffer),
            Quoted => quoted(random, buffer),
            Bytes(bytes) => {
                // The start of the file tells the dialect.
                let bytes = if row < 8 { 100 } else { bytes };
                let end = buffer.len() + bytes;
                while buffer.len() < end {
                    let _ = words(20, random, buffer);
                    buffer.push(b' ');
                }
                buffer.truncate(end);
                Ok(())
            }
            Scripts => (0..2 + random.below(5)).try_for_each(|n| {
                let gap = if n > 0 { " " } else { "" };
                write!(buffer, "{gap}{}", random.pick(SCRIPT_WORDS))
            }),
            FewThenMany(rows) if row < rows => write!(buffer, "1{at:05}"),
            FewThenMany(_) => write!(buffer, "{}", random.bits() >> 2),
        };
    }
}

/// Word number `id` of a column, of seven to fifteen letters.
fn word(id: u32, at: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    const SYLLABLES: &[&str] = &[
        "ba", "der", "fi", "gon", "hul", "ke", "lor", "mi", "nat", "po", "rus", "se", "tim", "vo",
    ];
    let mut left = mix(u64::from(id) << 8 | at as u64);
    for _ in 0..3 + left % 3 {
        left /= 3;
        write!(buffer, "{}", SYLLABLES[(left % 14) as usize])?;
        left /= 14;
    }
    Ok(())
}

fn long_code(id: u32, buffer: &mut Vec<u8>) -> io::Result<()> {
    let spread = mix(u64::from(id));
    let thing = THINGS[(spread % THINGS.len() as u64) as usize];
    write!(
        buffer,
        "{thing}/{:016x}/{}",
        spread,
        &"abcdefghijklmnopqrstuvwxyz"[..(id % 24) as usize]
    )
}

fn timestamp(random: &mut Random, buffer: &mut Vec<u8>) -> io::Result<()> {
    let day = date(15_000 + random.below(5_000) as i32);
    let second = random.below(86_400);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    write!(buffer, "{day} {hour:02}:{minute:02}:{:02}.{:06}", second % 60, random.below(1_000_000))
}

fn words(count: u32, random: &mut Random, buffer: &mut Vec<u8>) -> io::Result<()> {
    (0..count).try_for_each(|n| {
        let gap = if n > 0 { " " } else { "" };
        write!(buffer, "{gap}{}", random.pick(COMMENT_WORDS))
    })
}

fn quoted(random: &mut Random, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.push(b'"');
    for n in 0..4 + random.below(8) {
        let gap = match random.below(12) {
            _ if n == 0 => "",
            0 => "\n",
            1 => "|",
            2 => " \"\"",
            3 => "\"\" ",
            _ => " ",
        };
        write!(buffer, "{gap}{}", random.pick(COMMENT_WORDS))?;
    }
    buffer.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_the_fields_of_their_schemas() {
        let directory = tempfile::tempdir().expect("a directory");
        for shape in SHAPES.iter().filter(|shape| shape.name != "quoted") {
            let path = directory.path().join(shape.name);
            shape.generate(3, &path).expect("writable");
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            let columns = shape.schema().lines().count() - 2;
            assert_eq!(text.lines().count(), 3, "{}", shape.name);
            for line in text.lines() {
                assert_eq!(line.split('|').count(), columns + 1, "{}", shape.name);
            }
        }
    }

    #[test]
    fn quotes_are_doubled_and_closed() {
        let mut text = Vec::new();
        quoted(&mut Random::new(1, 1), &mut text).expect("a vector");
        assert_eq!(text.iter().filter(|byte| **byte == b'"').count() % 2, 0);
        assert!(text.starts_with(b"\"") && text.ends_with(b"\""));
    }
}
