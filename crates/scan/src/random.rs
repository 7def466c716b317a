//! Random small tables and predicates for tests: tiny value spaces, so that collisions happen.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use coload_store::{DeletedRows, SegmentFile};
use coload_types::{Physical, Plain, Value};

use crate::test_segment::{Encoding, write_segment};
use crate::{Predicate, Test};

/// A generator that only has to be the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((u128::from(self.0) * u128::from(below)) >> 64) as u64
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// A table in memory, and the same as a segment.
pub struct Table {
    pub columns: Vec<Plain>,
    pub segment: SegmentFile,
    /// Rows that are deleted.
    pub deleted: Option<Arc<DeletedRows>>,
    _directory: tempfile::TempDir,
}

impl Table {
    pub fn rows(&self) -> usize {
        self.columns[0].len()
    }

    pub fn get(&self, column: usize, row: usize) -> Option<Value> {
        self.columns[column].get(row)
    }

    pub fn passes(&self, predicates: &[Predicate], row: usize) -> bool {
        let is_deleted = self.deleted.as_ref().is_some_and(|d| d.contains(row as u64));
        !is_deleted && predicates.iter().all(|p| p.test.matches(self.get(p.column, row).as_ref()))
    }
}

fn values(random: &mut Random, physical: Physical) -> Vec<Value> {
    let count = 1 + random.below(12);
    (0..count)
        .map(|_| match physical {
            Physical::Int => {
                let scale = random.pick(&[1, 1, 1, 100, 1 << 33]);
                let offset = random.pick(&[0, 0, -5, 1000]);
                Value::Int((random.below(9) as i64 + offset) * scale)
            }
            Physical::Wide => Value::Wide((random.below(9) as i128 - 4) << random.pick(&[0, 60])),
            Physical::Bytes => {
                let length = random.below(4) as usize;
                Value::Bytes((0..length).map(|_| random.pick(b"ab\xff")).collect())
            }
        })
        .collect()
}

fn column(random: &mut Random, rows: usize, physical: Physical) -> (Plain, Encoding) {
    let mut values = values(random, physical);
    if physical == Physical::Int && random.below(3) == 0 {
        // A sequence without holes, as dates have.
        values = (0..1 + random.below(300) as i64).map(|i| Value::Int(8000 + i)).collect();
    }
    let nulls = random.pick(&[0, 0, 1, 9, 10]);
    let mut plain = Plain::empty(physical);
    for _ in 0..rows {
        let value = random.pick(&values);
        plain.push((random.below(10) >= nulls).then_some(&value));
    }
    let encoding = match physical {
        Physical::Bytes => {
            use Encoding::{Codecs, Codes, Mixed, Plain, Symbols};
            random.pick(&[Codes, Plain, Symbols, Mixed, Codecs])
        }
        _ => random.pick(&[Encoding::Codes, Encoding::Plain, Encoding::Mixed, Encoding::Codecs]),
    };
    (plain, encoding)
}

/// A table with these shapes of columns; those past the first `coded` may have any encoding.
pub fn table(random: &mut Random, shapes: &[Physical], coded: usize) -> Table {
    let rows = random.pick(&[1, 60, 1024, 1500, 5000]) + random.below(70) as usize;
    let mut columns: Vec<_> = shapes.iter().map(|s| column(random, rows, *s)).collect();
    columns.iter_mut().take(coded).for_each(|c| c.1 = Encoding::Codes);
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("t.seg");
    let page_rows = random.pick(&[700, 1024, 2500, 10_000]);
    let segment = write_segment(&path, &columns, page_rows);
    let columns = columns.into_iter().map(|c| c.0).collect();
    let deleted = deleted(random, rows);
    Table { columns, segment, deleted, _directory: directory }
}

/// None, some here and there, or a stretch that may be all of a page.
fn deleted(random: &mut Random, rows: usize) -> Option<Arc<DeletedRows>> {
    let of = random.pick(&[0, 0, 2, 100, 1_000]);
    let first = random.below(rows as u64) as u32;
    let stretch = first..(first + random.pick(&[0, 5, 2_000])).min(rows as u32);
    let scattered: Vec<u32> =
        (0..rows as u32).filter(|_| of > 0 && random.below(of) == 0).collect();
    let rows = DeletedRows::of(scattered.into_iter().chain(stretch));
    (rows.count() > 0).then(|| Arc::new(rows))
}

/// A predicate on a column of this shape.
pub fn predicate(random: &mut Random, column: usize, physical: Physical) -> Predicate {
    let mut some = values(random, physical);
    if physical == Physical::Int && random.below(2) == 0 {
        some = (0..6).map(|_| Value::Int(7990 + random.below(320) as i64)).collect();
    }
    let bound = |random: &mut Random| match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(random.pick(&some)),
        _ => Bound::Excluded(random.pick(&some)),
    };
    let test = match random.below(8) {
        0..3 => Test::Range { low: bound(random), high: bound(random) },
        3 => Test::In(some),
        4 => Test::NotIn(some),
        5 => Test::IsNull,
        6 if physical == Physical::Bytes => match random.below(2) {
            0 => Test::Accepts(Arc::new(|b: &[u8]| b.contains(&b'b'))),
            _ => Test::Prefix(random.pick(&[&b""[..], b"a", b"a\xff", b"\xff", b"ba"]).into()),
        },
        _ => Test::IsNotNull,
    };
    Predicate { column, test }
}
