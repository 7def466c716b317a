//! Times the scan on columns like lineitem's: `cargo run --release -p coload-scan --example kernels`.
//!
//! Each line is the fastest and the median of 21 runs, in milliseconds, on one and on two threads.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[allow(dead_code)]
#[path = "../src/test_segment.rs"]
mod test_segment;

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use coload_scan::aggregate::{
    Aggregate, Expr, GroupRow, Grouped, Program, Query, SegmentScan, State,
};
use coload_scan::{PageQueue, Predicate, Test, run};
use coload_store::SegmentFile;
use coload_types::{Plain, Strings, Value, Values};
use test_segment::{Encoding, write_segment};

const ROWS: usize = 6_001_215;
const PAGE_ROWS: usize = 83_000;
const QUANTITY: usize = 0;
const PRICE: usize = 1;
const DISCOUNT: usize = 2;
const TAX: usize = 3;
const FLAG: usize = 4;
const STATUS: usize = 5;
const SHIPDATE: usize = 6;
const SUPPLIER: usize = 7;

/// Kept between runs of this program, so that a profile shows queries only.
fn lineitem() -> SegmentFile {
    let path = std::env::temp_dir().join("coload-scan-kernels.seg");
    match SegmentFile::open(&path) {
        Ok(segment) if segment.rows() == ROWS as u64 => segment,
        _ => write_lineitem(&path),
    }
}

fn write_lineitem(path: &Path) -> SegmentFile {
    let mut state = 42u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((u128::from(state >> 11 << 11) * u128::from(below)) >> 64) as i64
    };
    let mut ints: Vec<Vec<i64>> = (0..8).map(|_| Vec::with_capacity(ROWS)).collect();
    let mut texts = [Strings::default(), Strings::default()];
    for _ in 0..ROWS {
        let quantity = 1 + random(50);
        ints[QUANTITY].push(quantity * 100);
        ints[PRICE].push(quantity * (90_000 + random(120_000)));
        ints[DISCOUNT].push(random(11));
        ints[TAX].push(random(9));
        let ship = 8036 + random(2526);
        ints[SHIPDATE].push(ship);
        ints[SUPPLIER].push(1 + random(10_000));
        let flag: &[u8] = if ship > 9298 {
            b"N"
        } else if random(2) == 0 {
            b"A"
        } else {
            b"R"
        };
        texts[0].push(flag);
        texts[1].push(if ship > 9298 { b"O" } else { b"F" });
    }
    let [flag, status] = texts;
    let columns: Vec<(Plain, Encoding)> = (0..8)
        .map(|c| {
            let values = match c {
                FLAG => Values::Bytes(flag.clone()),
                STATUS => Values::Bytes(status.clone()),
                _ => Values::Int(std::mem::take(&mut ints[c])),
            };
            let encoding = if c == PRICE { Encoding::Plain } else { Encoding::Codes };
            (Plain { values, nulls: None }, encoding)
        })
        .collect();
    write_segment(path, &columns, PAGE_ROWS)
}

fn column(column: usize) -> Expr {
    Expr::Column(column)
}

fn between(column: usize, low: i64, high: i64) -> Predicate {
    let (low, high) = (Bound::Included(Value::Int(low)), Bound::Included(Value::Int(high)));
    Predicate { column, test: Test::Range { low, high } }
}

fn queries() -> Vec<(&'static str, Query)> {
    let discounted = column(PRICE).times(Expr::Literal(100).minus(column(DISCOUNT)));
    let charged = discounted.clone().times(Expr::Literal(100).plus(column(TAX)));
    let q1 = vec![
        Aggregate::Sum(column(QUANTITY)),
        Aggregate::Sum(column(PRICE)),
        Aggregate::Sum(discounted),
        Aggregate::Sum(charged),
        Aggregate::Sum(column(DISCOUNT)),
        Aggregate::CountRows,
    ];
    vec![
        (
            "sum(price)",
            Query { aggregates: vec![Aggregate::Sum(column(PRICE))], ..Query::default() },
        ),
        (
            "count between",
            Query {
                aggregates: vec![Aggregate::CountRows],
                predicates: vec![between(SHIPDATE, 8400, 8764)],
                ..Query::default()
            },
        ),
        (
            "Q1",
            Query {
                groups: vec![FLAG, STATUS],
                aggregates: q1.clone(),
                predicates: vec![between(SHIPDATE, 0, 10471)],
            },
        ),
        (
            "Q6",
            Query {
                groups: Vec::new(),
                aggregates: vec![Aggregate::Sum(column(PRICE).times(column(DISCOUNT)))],
                predicates: vec![
                    between(SHIPDATE, 8766, 9130),
                    between(DISCOUNT, 5, 7),
                    between(QUANTITY, 0, 2399),
                ],
            },
        ),
        (
            "count of Q6",
            Query {
                aggregates: vec![Aggregate::CountRows],
                predicates: vec![
                    between(SHIPDATE, 8766, 9130),
                    between(DISCOUNT, 5, 7),
                    between(QUANTITY, 0, 2399),
                ],
                ..Query::default()
            },
        ),
        (
            "by supplier",
            Query {
                groups: vec![SUPPLIER],
                aggregates: vec![Aggregate::Sum(column(PRICE)), Aggregate::CountRows],
                predicates: Vec::new(),
            },
        ),
        (
            "by date, Q1's sums",
            Query { groups: vec![SHIPDATE], aggregates: q1, predicates: Vec::new() },
        ),
        (
            "min, max",
            Query {
                aggregates: vec![Aggregate::Min(column(PRICE)), Aggregate::Max(column(PRICE))],
                ..Query::default()
            },
        ),
    ]
}

fn execute(segment: &SegmentFile, query: &Query, threads: usize) -> Vec<GroupRow> {
    let program = Arc::new(Program::new(&query.aggregates).unwrap());
    let scan = SegmentScan::new(segment, None, query, program.clone()).unwrap();
    let queue = PageQueue::new([segment.page_rows().len()]);
    let states = run(threads, || {
        let mut state = State::default();
        while let Some(page) = queue.take() {
            scan.aggregate_page(segment, page.page, page.segment, &mut state)?;
        }
        Ok(state)
    })
    .unwrap();
    let mut states = states.into_iter();
    let mut all = states.next().unwrap();
    states.for_each(|state| all.merge(state).unwrap());
    let grouped = if query.groups.is_empty() { Grouped::No } else { Grouped::Yes };
    all.finish(&program, grouped, &[(segment, &scan)]).unwrap()
}

fn main() {
    let segment = lineitem();
    let only = std::env::args().nth(1);
    for (name, query) in queries() {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        print!("{name:20}");
        for threads in [1, 2] {
            let groups = execute(&segment, &query, threads);
            let mut times: Vec<f64> = (0..21)
                .map(|_| {
                    let start = Instant::now();
                    assert_eq!(execute(&segment, &query, threads).len(), groups.len());
                    start.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            print!("  {threads}: {:7.2} {:7.2}", times[0], times[10]);
        }
        let rows: u64 = execute(&segment, &query, 1).iter().map(|g| g.rows).sum();
        println!("  rows {rows}");
    }
}
