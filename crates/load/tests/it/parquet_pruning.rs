//! What bounds, page indexes and Bloom filters leave out is what no row passes, and no more.

use std::ops::Bound;
use std::sync::Arc;

use ::parquet::basic::Compression;
use coload_ddl::{CheckedColumn, Schema};
use coload_load::{RowProgram, RowsMade, WantedRows};
use coload_scan::{Predicate, Test};
use coload_source::FilePart;
use coload_store::Store;
use coload_types::{Result, Value};
use coload_wire::RowSql;
use proptest::prelude::*;

use crate::model::Row;
use crate::parquet_files::{KINDS, Shape, bytes};
use crate::parquet_input::parquet_options;
use crate::support::{load, rows, scratch, write};
use crate::text::Random;
use crate::typed_values::{Seeds, seeds};

/// The types whose values are those of the kinds of files.
const TYPES: [&str; 20] = [
    "BIGINT",
    "SMALLINT",
    "DECIMAL(20,0)",
    "BOOLEAN",
    "DOUBLE",
    "DECIMAL(12,3)",
    "DECIMAL(9,3)",
    "DECIMAL(20,3)",
    "DECIMAL(25,3)",
    "VARCHAR",
    "VARCHAR",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP",
    "TIMESTAMP",
    "TIMESTAMP",
    "UUID",
    "REAL",
    "BIGINT",
    "TIME",
];

/// Whether a row passes all tests.
fn passes(tests: &[Predicate], row: &Row) -> bool {
    tests.iter().all(|p| p.test.matches(row[p.column].as_ref()))
}

/// A test of a column of rows, by values that these have.
fn draw_test(column: usize, all: &[Row], random: &mut Random) -> Option<Predicate> {
    let values: Vec<&Value> = all.iter().filter_map(|row| row[column].as_ref()).collect();
    let value = |random: &mut Random| (*values[random.below(values.len())]).clone();
    if values.is_empty() {
        return None;
    }
    let test = match random.below(6) {
        0 | 1 => Test::In(vec![value(random)]),
        2 => Test::In(vec![value(random), value(random)]),
        3 => Test::Range { low: Bound::Included(value(random)), high: Bound::Unbounded },
        4 => Test::Range { low: Bound::Unbounded, high: Bound::Excluded(value(random)) },
        _ => match value(random) {
            Value::Bytes(text) => Test::Prefix(text[..text.len().min(2)].into()),
            value => Test::NotIn(vec![value]),
        },
    };
    Some(Predicate { column, test })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn rows_that_pass_are_read(seed: u64) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds: Vec<usize> = (0..random.below(3) + 1).map(|_| random.below(KINDS.len())).collect();
        let columns: Vec<String> =
            kinds.iter().enumerate().map(|(n, kind)| format!("c{n} {}", TYPES[*kind])).collect();
        let mut groups: Vec<Vec<Seeds>> = Vec::new();
        for _ in 0..random.below(3) + 1 {
            let count = random.below(80);
            let mut group: Vec<Seeds> = kinds.iter().map(|_| seeds(count, &mut random)).collect();
            // Where values rise, pages differ.
            if random.one_in(2) {
                group.iter_mut().for_each(|seeds| seeds.sort_unstable());
            }
            groups.push(group);
        }
        let shape = Shape::draw(&mut random);
        let file = write(&dir, "in.parquet", &bytes(&kinds, &groups, shape, &mut random));
        let mut options = parquet_options(&[file], &columns.join(", "));
        options.resources.chunk_bytes = 1000;
        let store = |name: &str| Store::create_or_open(dir.path().join(name)).unwrap();
        let whole = store("whole");
        load(&whole, &options).unwrap();
        let all = rows(&whole, "t");
        let drawn = (0..kinds.len()).filter_map(|column| draw_test(column, &all, &mut random));
        let tests: Vec<Predicate> = drawn.collect();
        let expected: Vec<&Row> = all.iter().filter(|row| passes(&tests, row)).collect();
        options.wanted = WantedRows::new(&tests).map(Arc::new);
        let some = store("some");
        let report = load(&some, &options).unwrap();
        let read = rows(&some, "t");
        let found: Vec<&Row> = read.iter().filter(|row| passes(&tests, row)).collect();
        prop_assert_eq!(&found, &expected);
        // What was not read is counted.
        prop_assert_eq!(read.len() as u64 + report.filtered(), all.len() as u64);

        // A filter of the load itself keeps nothing else.
        options.wanted = None;
        options.program = Some(Arc::new(Filter::new(options.read_schema(), tests)));
        let kept = store("kept");
        let report = load(&kept, &options).unwrap();
        let found = rows(&kept, "t");
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        prop_assert_eq!(report.rows() + report.filtered(), all.len() as u64);
        prop_assert_eq!(report.records(), all.len() as u64);
    }
}

/// Keeps the rows that pass some tests.
#[derive(Debug)]
struct Filter {
    sql: RowSql,
    schema: Schema,
    sources: Vec<Option<usize>>,
    uses: Vec<usize>,
    tests: Vec<Predicate>,
}

impl Filter {
    fn new(read: &Schema, tests: Vec<Predicate>) -> Self {
        Filter {
            sql: RowSql { filter: Some("tests".to_owned()), select: None },
            schema: read.clone(),
            sources: (0..read.len()).map(Some).collect(),
            uses: (0..read.len()).collect(),
            tests,
        }
    }
}

impl RowProgram for Filter {
    fn sql(&self) -> &RowSql {
        &self.sql
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    fn uses(&self) -> &[usize] {
        &self.uses
    }

    fn tests(&self) -> &[Predicate] {
        &self.tests
    }

    fn for_load(&self, read: &Schema, _began_us: i64) -> Result<Arc<dyn RowProgram>> {
        Ok(Arc::new(Filter::new(read, self.tests.clone())))
    }

    fn run(&self, columns: &[Option<CheckedColumn<'_>>], rows: usize) -> Result<RowsMade> {
        let row = |row: &u32| -> Row {
            columns.iter().map(|column| column.unwrap().get(*row as usize)).collect()
        };
        let kept = (0..rows as u32).filter(|number| passes(&self.tests, &row(number))).collect();
        let columns = vec![None; self.sources.len()];
        Ok(RowsMade { kept: Some(kept), columns, failed: Vec::new() })
    }
}

/// Row groups that no row of a filter is in are not read, and are counted: rejects behind them have the line and the part that they
/// have in the file, and what is in them is no reject.
#[test]
fn rejects_behind_row_groups_that_are_not_read_have_their_places() {
    let dir = scratch();
    let shape = Shape {
        version: 1,
        compression: Compression::SNAPPY,
        page_rows: 1000,
        dictionary_bytes: 1 << 20,
    };
    let group = |first: u32, nulls: [bool; 2]| -> Vec<Seeds> {
        let of =
            |is_null: bool| (0..10).map(move |row| (!is_null || row > 2).then_some(first + row));
        nulls.map(|is_null| of(is_null).collect()).to_vec()
    };
    // The second column has NULL in some rows of each.
    let groups = [0, 100, 200].map(|first| group(36_000 + first, [false, true]));
    let columns = "c0 BIGINT, c1 BIGINT NOT NULL";
    let mut rejected = Vec::new();
    for seed in 0..24 {
        let file = bytes(&[0, 0], &groups, shape, &mut Random::new(seed));
        let file = write(&dir, &format!("in{seed}.parquet"), &file);
        let mut options = parquet_options(&[file], columns);
        let test = Test::Range { low: Bound::Included(Value::Int(1_200)), high: Bound::Unbounded };
        let tests = vec![Predicate { column: 0, test }];
        options.program = Some(Arc::new(Filter::new(options.read_schema(), tests)));
        let store = Store::create_or_open(dir.path().join(format!("{seed}"))).unwrap();
        let report = load(&store, &options).unwrap();
        assert_eq!((report.rows(), report.records()), (7, 30));
        assert_eq!(report.reject_count() + report.filtered(), 23);
        let last = &report.rejects[report.rejects.len() - 3..];
        let lines: Vec<u64> = last.iter().map(|reject| reject.place.line).collect();
        assert_eq!(lines, [21, 22, 23]);
        assert!(last.iter().all(|reject| reject.part == Some(FilePart::RowGroup(3))));
        rejected.push(report.reject_count());
    }
    // The writer draws what it tells: of many files some tell all of it.
    assert!(rejected.contains(&3) && rejected.contains(&9), "{rejected:?}");
}

/// Values rise by row, and each page has some of them: the rows that are read are those of the pages that may have some.
#[test]
fn only_pages_that_may_have_rows_are_read() {
    let dir = scratch();
    let shape = Shape {
        version: 1,
        compression: Compression::SNAPPY,
        page_rows: 10,
        dictionary_bytes: 1 << 20,
    };
    // The kinds BIGINT and TIMESTAMP of 64 bits, and texts that differ.
    let kinds = [0, 9];
    let seeds: Seeds = (0..1_000).map(|row| Some(row * 7 + 6)).collect();
    let group = vec![seeds.clone(), seeds];
    let columns = "c0 BIGINT, c1 VARCHAR";
    let read = |tests: Vec<Predicate>, seed: u64| {
        let mut random = Random::new(seed);
        let file = bytes(&kinds, std::slice::from_ref(&group), shape, &mut random);
        let file = write(&dir, &format!("in{seed}.parquet"), &file);
        let mut options = parquet_options(&[file], columns);
        options.wanted = WantedRows::new(&tests).map(Arc::new);
        let store = Store::create_or_open(dir.path().join(format!("{seed}"))).unwrap();
        load(&store, &options).unwrap();
        rows(&store, "t").len()
    };
    // The writer draws what it tells: of many files some tell all of it.
    let equal = |value: i64| vec![Predicate { column: 0, test: Test::equal(Value::Int(value)) }];
    let few: Vec<usize> = (0..24).map(|seed| read(equal(6 + 7 * 500 - 35_000), seed)).collect();
    // Rows of one page.
    assert!(few.contains(&14) && few.contains(&1_000), "{few:?}");
    let none: Vec<usize> = (100..124).map(|seed| read(equal(7 * 500 - 35_000), seed)).collect();
    assert!(none.contains(&0) && none.contains(&1_000), "{none:?}");
}
