#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Arc;

use coload_types::{Physical, Value, f64_from_ordinal, ordinal_from_f64};
use proptest::prelude::*;

use super::*;
use crate::random::{Random, Table, predicate, table};
use crate::{PageQueue, run};

/// Two grouping columns, then columns of numbers.
const SHAPES: [Physical; 6] =
    [Physical::Bytes, Physical::Int, Physical::Int, Physical::Int, Physical::Int, Physical::Wide];

fn expression(random: &mut Random, depth: u64) -> Expr {
    match random.below(if depth == 0 { 2 } else { 5 }) {
        0 => Expr::Literal(i128::from(random.below(5)) - 2),
        1 => Expr::Column(1 + random.below(5) as usize),
        kind => {
            let (a, b) = (expression(random, depth - 1), expression(random, depth - 1));
            match kind {
                2 => a.plus(b),
                3 => a.minus(b),
                _ => a.times(b),
            }
        }
    }
}

fn aggregate(random: &mut Random) -> Aggregate {
    let number = 1 + random.below(4) as usize;
    match random.below(7) {
        0 => Aggregate::CountRows,
        1 => Aggregate::Count(vec![random.below(6) as usize]),
        2 => Aggregate::Min(expression(random, 1)),
        3 => Aggregate::Max(expression(random, 1)),
        4 => Aggregate::SumFloat(FloatExpr::Mul(
            Box::new(FloatExpr::Integer(number, 4.0)),
            Box::new(FloatExpr::Literal(0.5)),
        )),
        _ => Aggregate::Sum(expression(random, 2)),
    }
}

/// `None` is NULL, an error is a number over 128 bits.
fn evaluate(expr: &Expr, table: &Table, row: usize) -> Result<Option<i128>, ()> {
    let both = |a: &Expr, b: &Expr, f: fn(i128, i128) -> Option<i128>| match (
        evaluate(a, table, row)?,
        evaluate(b, table, row)?,
    ) {
        (Some(a), Some(b)) => f(a, b).map(Some).ok_or(()),
        _ => Ok(None),
    };
    match expr {
        Expr::Literal(value) => Ok(Some(*value)),
        Expr::Column(column) => Ok(table.get(*column, row).map(|v| match v {
            Value::Int(v) => i128::from(v),
            Value::Wide(v) => v,
            Value::Bytes(_) => panic!("no number"),
        })),
        Expr::Add(a, b) => both(a, b, i128::checked_add),
        Expr::Sub(a, b) => both(a, b, i128::checked_sub),
        Expr::Mul(a, b) => both(a, b, i128::checked_mul),
    }
}

fn model(aggregate: &Aggregate, table: &Table, rows: &[usize]) -> Result<AggregateValue, ()> {
    let numbers = |expr: &Expr| -> Result<Vec<i128>, ()> {
        let values: Result<Vec<_>, ()> =
            rows.iter().map(|row| evaluate(expr, table, *row)).collect();
        Ok(values?.into_iter().flatten().collect())
    };
    Ok(match aggregate {
        Aggregate::CountRows => AggregateValue::Count(rows.len() as u64),
        Aggregate::Count(columns) => {
            let valid = |row: &&usize| columns.iter().all(|c| table.get(*c, **row).is_some());
            AggregateValue::Count(rows.iter().filter(valid).count() as u64)
        }
        Aggregate::Min(expr) => AggregateValue::Exact(numbers(expr)?.into_iter().min()),
        Aggregate::Max(expr) => AggregateValue::Exact(numbers(expr)?.into_iter().max()),
        Aggregate::Sum(expr) => {
            let values = numbers(expr)?;
            let sum = values.iter().try_fold(0i128, |s, v| s.checked_add(*v)).ok_or(())?;
            AggregateValue::Exact((!values.is_empty()).then_some(sum))
        }
        Aggregate::SumFloat(FloatExpr::Mul(a, _)) => {
            let FloatExpr::Integer(column, _) = **a else { panic!("not made here") };
            let values: Vec<i128> = numbers(&Expr::Column(column))?;
            let sum = values.iter().map(|v| *v as f64 / 4.0 * 0.5).sum::<f64>();
            AggregateValue::Float((!values.is_empty()).then_some(sum))
        }
        Aggregate::SumFloat(_) => panic!("not made here"),
    })
}

fn execute(
    tables: &[&Table],
    query: &Query,
    threads: usize,
) -> coload_types::Result<Vec<GroupRow>> {
    let program = Arc::new(Program::new(&query.aggregates)?);
    let scans = tables
        .iter()
        .map(|t| SegmentScan::new(&t.segment, t.deleted.as_ref(), query, program.clone()))
        .collect::<coload_types::Result<Vec<_>>>()?;
    let queue = PageQueue::new(tables.iter().map(|t| t.segment.page_rows().len()));
    let states = run(threads, || {
        let mut state = State::default();
        while let Some(page) = queue.take() {
            let (table, scan) = (tables[page.segment], &scans[page.segment]);
            scan.aggregate_page(&table.segment, page.page, page.segment, &mut state)?;
        }
        Ok(state)
    })?;
    let mut all = State::default();
    for state in states {
        all.merge(state)?;
    }
    let grouped = if query.groups.is_empty() { Grouped::No } else { Grouped::Yes };
    let pairs: Vec<_> = tables.iter().map(|t| &t.segment).zip(&scans).collect();
    all.finish(&program, grouped, &pairs)
}

fn same(a: &AggregateValue, b: &AggregateValue) -> bool {
    match (a, b) {
        (AggregateValue::Float(Some(a)), AggregateValue::Float(Some(b))) => {
            (a - b).abs() <= 1e-9 * (1.0 + a.abs() + b.abs()) * 1e3
        }
        _ => a == b,
    }
}

fn check(table: &Table, query: &Query, threads: usize) {
    let mut groups: HashMap<Vec<Option<Value>>, Vec<usize>> = HashMap::new();
    if query.groups.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    for row in (0..table.rows()).filter(|row| table.passes(&query.predicates, *row)) {
        let key = query.groups.iter().map(|c| table.get(*c, row)).collect();
        groups.entry(key).or_default().push(row);
    }
    let overflows =
        groups.values().any(|rows| query.aggregates.iter().any(|a| model(a, table, rows).is_err()));
    let found = match execute(&[table], query, threads) {
        Ok(found) => found,
        // The program may meet an overflow that the model does not (x * big - x * big), not the
        // other way round.
        Err(_) => return,
    };
    assert!(!overflows, "an overflow was missed in {query:?}");
    assert_eq!(found.len(), groups.len(), "{query:?}");
    for group in found {
        let rows = &groups[&group.key];
        assert_eq!(group.rows, rows.len() as u64);
        for (aggregate, value) in query.aggregates.iter().zip(&group.values) {
            let expected = model(aggregate, table, rows).unwrap();
            assert!(same(value, &expected), "{aggregate:?}: {value:?}, not {expected:?}");
        }
    }
}

fn query(random: &mut Random) -> Query {
    let groups = random.pick(&[vec![], vec![], vec![0], vec![1], vec![0, 1], vec![1, 0]]);
    let aggregates = (0..1 + random.below(5)).map(|_| aggregate(random)).collect();
    let predicates = (0..random.below(3))
        .map(|_| {
            let column = random.below(6) as usize;
            predicate(random, column, SHAPES[column])
        })
        .collect();
    Query { groups, aggregates, predicates }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn aggregates_agree_with_adding_row_by_row(seed: u64) {
        let mut random = Random(seed);
        let table = table(&mut random, &SHAPES, 2);
        for _ in 0..5 {
            let threads = 1 + random.below(3) as usize;
            check(&table, &query(&mut random), threads);
        }
    }
}

#[test]
fn several_segments_are_joined_by_the_values_of_their_groups() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let (a, b) = (table(&mut random, &SHAPES, 2), table(&mut random, &SHAPES, 2));
        let query = Query {
            groups: vec![0],
            aggregates: vec![Aggregate::CountRows, Aggregate::Max(Expr::Column(2))],
            predicates: Vec::new(),
        };
        let mut expected: HashMap<Vec<Option<Value>>, (u64, Option<i128>)> = HashMap::new();
        for part in [&a, &b] {
            for row in execute(&[part], &query, 1).unwrap() {
                let AggregateValue::Exact(max) = row.values[1] else { panic!("not exact") };
                let entry = expected.entry(row.key).or_default();
                *entry = (entry.0 + row.rows, entry.1.max(max));
            }
        }
        let joined = execute(&[&a, &b], &query, 2).unwrap();
        assert_eq!(joined.len(), expected.len());
        for row in joined {
            let (rows, max) = expected[&row.key];
            assert_eq!(row.values, [AggregateValue::Count(rows), AggregateValue::Exact(max)]);
        }
    }
}

#[test]
fn a_sum_over_128_bits_is_an_error() {
    let mut random = Random(3);
    let table = loop {
        let table = table(&mut random, &SHAPES, 2);
        if (0..table.rows()).any(|row| table.get(1, row).is_some()) {
            break table;
        }
    };
    let huge = Expr::Literal(i128::MAX / 2);
    let sum = Aggregate::Sum(Expr::Column(1).times(huge.clone()).plus(huge));
    let query = Query { aggregates: vec![sum], ..Query::default() };
    assert!(execute(&[&table], &query, 1).is_err());
}

#[test]
fn floats_are_added_by_value_not_by_ordinal() {
    use crate::test_segment::{Encoding, write_segment};
    use coload_types::{Plain, Values};
    let values = [1.5, -2.25, 1e10, 0.0, -0.0];
    let ordinals = values.iter().map(|v| ordinal_from_f64(*v)).collect();
    assert!(values.iter().all(|v| f64_from_ordinal(ordinal_from_f64(*v)).to_bits() == v.to_bits()));
    let directory = tempfile::tempdir().unwrap();
    let column = Plain { values: Values::Int(ordinals), nulls: None };
    let segment = write_segment(&directory.path().join("f"), &[(column, Encoding::Plain)], 1024);
    let sum = Aggregate::SumFloat(FloatExpr::Column(0, FloatWidth::Double));
    let query = Query { aggregates: vec![sum], ..Query::default() };
    let program = Arc::new(Program::new(&query.aggregates).unwrap());
    let scan = SegmentScan::new(&segment, None, &query, program.clone()).unwrap();
    let mut state = State::default();
    scan.aggregate_page(&segment, 0, 0, &mut state).unwrap();
    let rows = state.finish(&program, Grouped::No, &[(&segment, &scan)]).unwrap();
    assert_eq!(rows[0].values, [AggregateValue::Float(Some(values.iter().sum()))]);
}
