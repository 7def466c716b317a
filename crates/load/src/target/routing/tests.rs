#![allow(clippy::unwrap_used)]
use coload_cluster::{NodeId, hash_row, shard_of};
use coload_ddl::parse_columns;
use coload_page::{SymbolDecoder, runs::expand_runs};
use coload_threads::StepClock;
use coload_transform::DictionaryLimit;
use coload_types::{Bitmap, Plain, Value, Values};
use proptest::prelude::*;

use super::*;
use crate::target::{FragmentRows, RowNumbers};

type Row = (Option<i64>, Option<String>);

fn table(leaves: u128, shards: u32, shard_by: ShardBy) -> Table {
    let leaves: Vec<NodeId> = (1..=leaves).map(NodeId::from_u128).collect();
    Table {
        id: 1,
        name: "t".into(),
        schema: parse_columns("a BIGINT, b VARCHAR").unwrap(),
        shard_by,
        shards: coload_cluster::assign_shards(1, shards, &leaves),
        leaves,
        making: None,
        moving: None,
        holder: None,
        since: 0,
    }
}

fn nulls_of<T>(values: impl ExactSizeIterator<Item = Option<T>>) -> Bitmap {
    let mut nulls = Bitmap::zeros(values.len());
    values.enumerate().filter(|(_, v)| v.is_none()).for_each(|(row, _)| nulls.set(row));
    nulls
}

/// Rows as a parser has them: numbers plain, texts with codes.
fn columns(rows: &[Row]) -> (Plain, Vec<u16>, Values) {
    let values = Values::Int(rows.iter().map(|row| row.0.unwrap_or(0)).collect());
    let plain = Plain { values, nulls: Some(nulls_of(rows.iter().map(|row| row.0))) };
    let mut known: Vec<&String> = Vec::new();
    let mut texts = Values::empty(Physical::Bytes);
    let code = |row: &'_ Row| row.1.clone();
    let mut codes = Vec::new();
    for row in rows {
        let Some(text) = code(row) else {
            codes.push(u16::MAX);
            continue;
        };
        let at = known.iter().position(|known| **known == text).unwrap_or_else(|| {
            known.push(row.1.as_ref().unwrap());
            texts.push(&Value::Bytes(text.as_bytes().into()));
            known.len() - 1
        });
        codes.push(at as u16);
    }
    (plain, codes, texts)
}

/// What leaves get of partitions of fragments, decoded.
fn route(table: &Table, fragments: &[Vec<Row>]) -> Vec<Vec<Row>> {
    let (routing, outs) = Routing::new(table, DictionaryPolicy::Auto, DictionaryLimit::default());
    let receive = |out: Receiver<Out>| std::thread::spawn(move || out.iter().collect::<Vec<Out>>());
    let threads: Vec<_> = outs.into_iter().map(receive).collect();
    let clock = StepClock::default();
    let mut works = Works::new();
    let mut page_rows = Vec::new();
    // The last comes first: order is that of the numbers.
    for (number, rows) in fragments.iter().enumerate().rev() {
        let (plain, codes, texts) = columns(rows);
        let columns =
            [CheckedColumn::Plain(&plain), CheckedColumn::Coded { codes: &codes, values: &texts }];
        let made = routing.make_rows_of(number, &columns, rows.len()).unwrap();
        page_rows.insert(0, rows.len() as u32);
        let rows = FragmentRows { chunk: number, rows: made, numbers: RowNumbers::default() };
        let columns = vec![AheadColumn::Rows(rows)];
        let ahead = Ahead { partition: 0, fragment: number as u32, columns };
        works.append(&mut routing.take_ahead(ahead).unwrap());
    }
    let rows = page_rows.iter().map(|rows| u64::from(*rows)).sum();
    let mut account = PartitionAccount::default();
    account.add(InputShare { file: 3, rows, filtered: 2, lines: rows + 2, end: 99, rejects: 0 });
    works.append(&mut routing.seal(Seal { page_rows, account, ..Seal::default() }).unwrap());
    while let Some(work) = works.pop() {
        works.append(&mut work.run(&clock).unwrap());
    }
    assert_eq!(routing.rows(), rows);
    let of_leaves = routing.rows_of_leaves();
    drop(routing);
    let outs: Vec<Vec<Out>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let seals = outs.iter().map(|outs| match outs.last() {
        Some(Out::Seal(seal)) => seal.clone(),
        other => panic!("{other:?}"),
    });
    // Each is one that a server takes, and all together are the partition.
    let seals: Vec<Seal> = seals.map(|seal| Seal::decode(&seal.encode()).unwrap()).collect();
    let found: Vec<u64> = seals.iter().map(|seal| seal.account.rows()).collect();
    assert_eq!(found, of_leaves);
    assert_eq!(seals.iter().map(|seal| seal.account.filtered()).sum::<u64>(), 2);
    for (outs, seal) in outs.iter().zip(&seals) {
        assert_eq!(outs.len() as u64, seal.blocks + 1);
    }
    outs.into_iter().zip(&seals).map(|(outs, seal)| rows_of(outs, &seal.page_rows)).collect()
}

fn rows_of(outs: Vec<Out>, page_rows: &[u32]) -> Vec<Row> {
    let mut found: [Vec<Option<Option<Value>>>; 2] = Default::default();
    let total: u32 = page_rows.iter().sum();
    found.iter_mut().for_each(|column| column.resize(total as usize, None));
    for out in outs {
        let Out::Column { column, fragments, pages, .. } = out else { continue };
        let dictionary = pages.dictionary.as_ref();
        let decoders: Vec<SymbolDecoder> =
            pages.symbols.iter().map(|table| SymbolDecoder::open(table).unwrap()).collect();
        let decoder = |page: &Page| {
            let page = expand_runs(page).unwrap();
            let view = page.view().unwrap();
            let physical = [Physical::Int, Physical::Bytes][column];
            let mut plain = Plain { nulls: Some(Bitmap::zeros(0)), ..Plain::empty(physical) };
            coload_store::append_page(&view, dictionary, &decoders, &mut plain).unwrap();
            plain
        };
        for (fragment, page) in fragments.iter().zip(&pages.pages) {
            let start: u32 = page_rows[..*fragment as usize].iter().sum();
            let values = decoder(page);
            assert_eq!(values.len() as u32, page_rows[*fragment as usize]);
            for row in 0..values.len() {
                found[column][start as usize + row] = Some(values.get(row));
            }
        }
    }
    let text = |value: Option<Value>| match value {
        Some(Value::Bytes(bytes)) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        None => None,
        other => panic!("{other:?}"),
    };
    let number = |value: Option<Value>| match value {
        Some(Value::Int(value)) => Some(value),
        None => None,
        other => panic!("{other:?}"),
    };
    let [numbers, texts] = found;
    let pairs = numbers.into_iter().zip(texts);
    pairs.map(|(a, b)| (number(a.unwrap()), text(b.unwrap()))).collect()
}

fn rows() -> impl Strategy<Value = Vec<Vec<Row>>> {
    let text = proptest::option::of("[a-c]{0,2}");
    let row = (proptest::option::of(-2_i64..3), text);
    proptest::collection::vec(proptest::collection::vec(row, 1..40), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn each_row_is_at_the_leaf_of_its_shard_in_the_order_of_the_input(
        fragments in rows(), leaves in 1_u128..5, shards in 1_u32..20, by_text: bool,
    ) {
        let columns = if by_text { vec![1, 0] } else { vec![0] };
        let table = table(leaves, shards, ShardBy::Columns(columns.clone()));
        let mut expected: Vec<Vec<Row>> = vec![Vec::new(); leaves as usize];
        for row in fragments.iter().flatten() {
            let values = [row.0.map(Value::Int), row.1.as_ref().map(|t| Value::Bytes(t.as_bytes().into()))];
            let typed = columns.iter().map(|c| (values[*c].as_ref(), table.schema.columns()[*c].data_type));
            let shard = shard_of(hash_row(typed), shards);
            expected[usize::from(table.shards[shard as usize])].push(row.clone());
        }
        prop_assert_eq!(route(&table, &fragments), expected);
    }

    #[test]
    fn rows_that_are_dealt_in_turn_go_to_the_same_leaves_each_time(fragments in rows(), leaves in 1_u128..5) {
        let table = table(leaves, 64, ShardBy::InTurn);
        let (once, again) = (route(&table, &fragments), route(&table, &fragments));
        prop_assert_eq!(&once, &again);
        let mut found: Vec<Row> = once.into_iter().flatten().collect();
        let mut all: Vec<Row> = fragments.into_iter().flatten().collect();
        found.sort();
        all.sort();
        prop_assert_eq!(found, all);
    }
}

#[test]
fn each_leaf_of_a_table_that_is_everywhere_gets_all_rows() {
    let mut everywhere = table(3, 1, ShardBy::Everywhere);
    everywhere.shards = vec![0];
    let fragments: Vec<Vec<Row>> = (0..3)
        .map(|n| (0..30).map(|k| (Some(n * 30 + k), Some(format!("{}", k % 4)))).collect())
        .collect();
    let all: Vec<Row> = fragments.iter().flatten().cloned().collect();
    assert_eq!(route(&everywhere, &fragments), vec![all; 3]);
}

#[test]
fn a_leaf_without_rows_gets_an_end_all_the_same() {
    let table = table(4, 8, ShardBy::Columns(vec![0]));
    let found = route(&table, &[vec![(Some(1), None); 5]]);
    assert_eq!(found.iter().filter(|rows| rows.is_empty()).count(), 3);
}
