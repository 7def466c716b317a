//! Statements keep to their memory: what goes to disk, and what is refused.

use coload_serve::arrow::array::AsArray;
use coload_serve::arrow::datatypes::Int64Type;
use coload_serve::{Database, DatabaseOptions, SpillOptions};
use coload_store::Store;
use coload_types::Error;
use tempfile::TempDir;

/// A database with so much memory.
fn with_memory(memory: usize) -> (Database, TempDir) {
    let dir = TempDir::new().unwrap();
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let spill = SpillOptions { folder: Some(dir.path().join("spill")), ..SpillOptions::default() };
    let options = DatabaseOptions { threads: 2, memory, spill, ..DatabaseOptions::default() };
    (Database::open(store, options).unwrap(), dir)
}

#[track_caller]
fn number(database: &Database, text: &str) -> i64 {
    let batches = database.query(text).unwrap();
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// A join failed when its table did not fit: `Failed to allocate .. HashJoinInput`.
#[test]
fn a_join_larger_than_memory_runs_on_sorted_inputs() {
    let (database, _dir) = with_memory(24 << 20);
    let series = "generate_series(1, 1000000)";
    let join = format!("SELECT count(*) FROM {series} a JOIN {series} b ON a.value = b.value");
    assert_eq!(number(&database, &join), 1_000_000);
    let outer = format!(
        "SELECT count(*) FROM {series} a LEFT JOIN {series} b ON a.value = b.value + 10 \
         WHERE b.value IS NULL"
    );
    assert_eq!(number(&database, &outer), 10);
}

#[test]
fn a_sort_and_groups_larger_than_memory_go_to_disk() {
    let (database, _dir) = with_memory(32 << 20);
    let series = "generate_series(1, 3000000)";
    let sort = format!(
        "SELECT max(cast(r AS BIGINT)) FROM (SELECT row_number() OVER (ORDER BY value % 1000, value) AS r \
         FROM {series})"
    );
    assert_eq!(number(&database, &sort), 3_000_000);
    let groups =
        format!("SELECT count(*) FROM (SELECT value % 1000000 AS g FROM {series} GROUP BY 1)");
    assert_eq!(number(&database, &groups), 1_000_000);
}

/// What a window or a second merge kept of the sorted rows had views into the texts of every part of the sort, which was not
/// reserved: 270 MB of 64. And the first half of the rows is no work for a heap.
#[test]
fn sorted_texts_are_together_and_many_first_rows_go_to_disk() {
    let (database, _dir) = with_memory(32 << 20);
    let texts = "(SELECT value AS v, CAST(100000 + value * 7919 % 400009 AS VARCHAR) || repeat('-', 94) AS t FROM range(400000))";
    let rows = database.query(&format!("SELECT v, t FROM {texts} ORDER BY t")).unwrap();
    let sizes = rows.iter().map(|batch| batch.column(1).as_string_view());
    let (mut held, mut used) = (0, 0);
    for texts in sizes {
        held += texts.data_buffers().iter().map(|buffer| buffer.capacity()).sum::<usize>();
        used += texts.total_bytes_len();
    }
    assert_eq!(used, 400_000 * 100);
    assert!(held <= 3 * used, "{used} bytes of texts hold {held}");
    let middle =
        format!("SELECT v FROM (SELECT v, t FROM {texts} ORDER BY t, v LIMIT 1 OFFSET 200000)");
    let all = format!(
        "SELECT v FROM (SELECT v, row_number() OVER (ORDER BY t, v) AS n FROM {texts}) WHERE n = 200001"
    );
    assert_eq!(number(&database, &middle), number(&database, &all));
}

/// A window kept views into the texts of all rows that it had seen: 300 MB of 32 MiB, and an error.
#[test]
fn windows_keep_no_texts_of_rows_that_are_gone() {
    let (database, _dir) = with_memory(32 << 20);
    let rows = 200_000;
    let texts = format!(
        "(SELECT value AS v, value % 1000 AS g, \
         CAST(100000 + value * 7919 % 400009 AS VARCHAR) || repeat('-', 294) AS t FROM range({rows}))"
    );
    for (columns, expected) in [
        ("t, row_number() OVER (ORDER BY t) AS n", rows),
        ("t, lag(t) OVER (ORDER BY t) AS p, row_number() OVER (ORDER BY t) AS n", rows),
        ("t, rank() OVER (PARTITION BY g ORDER BY t) AS n", 200),
        ("t, count(*) OVER (ORDER BY t ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS n", 7),
        ("t, count(t) OVER (PARTITION BY g ORDER BY t) AS n, min(t) OVER (ORDER BY t) AS m", 200),
    ] {
        let sql = format!(
            "SELECT CAST(max(n) AS BIGINT) FROM (SELECT {columns} FROM {texts}) q WHERE length(t) = 300"
        );
        assert_eq!(number(&database, &sql), expected, "{columns}");
    }
    let right = format!(
        "SELECT count(*) FROM (SELECT t, lag(t) OVER (ORDER BY t) AS p FROM {texts}) q WHERE p < t"
    );
    assert_eq!(number(&database, &right), rows - 1);
}

/// What an index takes while it is built was not counted: the keys of a segment twice, and the whole of the tree.
#[test]
fn an_index_is_built_within_memory_or_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store");
    let open = |memory: usize| {
        let store = Store::create_or_open(&path).unwrap();
        let options = DatabaseOptions { threads: 2, memory, ..DatabaseOptions::default() };
        Database::open(store, options).unwrap()
    };
    let rows = 1_000_000;
    let database = open(1 << 30);
    let made = format!(
        "CREATE TABLE t AS SELECT value AS v, value * 7919 % {rows} AS k, \
         'a text of ' || (value * 31 % {rows}) AS t FROM range({rows})"
    );
    database.query(&made).unwrap();
    drop(database);
    // The numbers of rows alone are 12 MB.
    let database = open(8 << 20);
    let error = database.query("CREATE INDEX i ON t (k)").unwrap_err();
    let says = |t: &str| t.contains("an index that is built") && t.contains("--memory");
    assert!(matches!(&error, Error::Limit(t) if says(t)), "{error}");
    drop(database);
    let database = open(24 << 20);
    for (sql, refused) in [
        ("CREATE INDEX i ON t (k)", None),
        ("CREATE UNIQUE INDEX u ON t (t, v)", None),
        ("CREATE UNIQUE INDEX w ON t (k)", None),
        ("INSERT INTO t VALUES (1, 77, 'x')", Some("there twice")),
    ] {
        match (database.query(sql), refused) {
            (Ok(_), None) => {}
            (Err(Error::Invalid(told)), Some(refused)) if told.contains(refused) => {}
            (other, _) => panic!("{sql}: {other:?}"),
        }
    }
    for (wanted, predicate) in [
        (1, "k = 31337"),
        (10, "k BETWEEN 500000 AND 500009"),
        (1, "t = 'a text of 4711'"),
        (0, "t = 'a text of x'"),
    ] {
        assert_eq!(number(&database, &format!("SELECT count(*) FROM t WHERE {predicate}")), wanted);
    }
}

/// `repeat('x', 2000000000)` took 2 GB of a server with 256 MiB.
#[test]
fn functions_make_no_more_than_memory_allows() {
    let (database, _dir) = with_memory(64 << 20);
    for text in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 2000000000))",
        "SELECT length(rpad(cast(value AS VARCHAR), 2000000000, 'y')) FROM generate_series(1, 2)",
        "SELECT sum(length(repeat('x', value))) FROM generate_series(900000, 900009)",
        "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 1000)))",
        "SELECT length(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000), 'g'))",
        "SELECT length(concat(a, a, a, a, a)) FROM (SELECT repeat('x', 1000000) AS a)",
        "SELECT sum(length(a || a || a || a || a)) FROM (SELECT repeat('x', 100000 + value) AS a FROM range(100))",
    ] {
        let error = database.query(text).unwrap_err();
        assert!(matches!(&error, Error::Limit(t) if t.contains("--memory")), "{text}: {error}");
    }
    // What fits is as before, also where the worst case would not.
    for (text, length) in [
        ("SELECT cast(length(repeat('x', 1000000)) AS BIGINT)", 1_000_000),
        ("SELECT cast(length(replace(repeat('a', 1000), 'a', 'bb')) AS BIGINT)", 2_000),
        ("SELECT cast(length(concat('a', 'b', NULL)) AS BIGINT)", 2),
        (
            "SELECT cast(sum(length(replace(repeat('a', 3000), 'b', repeat('c', 100)))) AS BIGINT) \
             FROM generate_series(1, 1000)",
            3_000_000,
        ),
        (
            "SELECT cast(sum(length(replace(concat(repeat('a', 3000), value), 'b', repeat('c', 100)))) AS BIGINT) \
             FROM generate_series(10, 99)",
            90 * 3_002,
        ),
    ] {
        assert_eq!(number(&database, text), length, "{text}");
    }
}

/// A literal was copied for each of 8,192 rows: 500 KB became 4 GB, which was a panic, and 100 KB became 800 MB.
#[test]
fn long_texts_in_many_rows_take_few_at_once() {
    let (database, _dir) = with_memory(64 << 20);
    let long = "x".repeat(500_000);
    let joined = format!(
        "SELECT cast(sum(length('{long}' || (value + 1000))) AS BIGINT) FROM generate_series(1, 300)"
    );
    assert_eq!(number(&database, &joined), 300 * 500_004);
    let upper = format!(
        "SELECT cast(sum(length(upper(concat('{long}', value + 1000)))) AS BIGINT) FROM generate_series(1, 100)"
    );
    assert_eq!(number(&database, &upper), 100 * 500_004);
    let one = "(SELECT repeat(cast(value AS VARCHAR), 100000) AS s FROM generate_series(1, 1))";
    let crossed = format!(
        "SELECT cast(sum(length(a.s || (b.value + 10000))) AS BIGINT) FROM {one} a, generate_series(1, 5000) b"
    );
    assert_eq!(number(&database, &crossed), 5_000 * 100_005);
    let null = "SELECT count(*) FROM (SELECT 'a' || NULL AS s) WHERE s IS NULL";
    assert_eq!(number(&database, null), 1);
}

/// 20,000 columns of 8,192 rows are 1.3 GB.
#[test]
fn many_columns_come_in_few_rows() {
    let (database, _dir) = with_memory(64 << 20);
    let columns: Vec<String> = (0..500).map(|i| format!("value + {i} AS c{i}")).collect();
    let wide = format!("SELECT {} FROM generate_series(1, 3000)", columns.join(", "));
    let batches = database.query(&wide).unwrap();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 3_000);
    let most = batches.iter().map(|b| b.num_rows()).max().unwrap();
    assert!(most * 500 * 8 <= 1 << 20, "{most} rows at once");
}

/// A list of 8 MB was copied for each of 8,192 rows that it was joined with.
#[test]
fn lists_that_are_joined_are_copied_into_few_rows_or_refused() {
    let (database, _dir) = with_memory(64 << 20);
    let joined = |aggregate: &str, count: usize| {
        format!(
            "SELECT l.a, s.value FROM (SELECT {aggregate} AS a FROM generate_series(1, {count})) l, \
             generate_series(1, 600) s"
        )
    };
    for aggregate in ["array_agg(value)", "string_agg(cast(value AS VARCHAR), ',')"] {
        let batches = database.query(&joined(aggregate, 1_000)).unwrap();
        assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 600);
        let error = database.query(&joined(aggregate, 1_000_000)).unwrap_err();
        assert!(
            matches!(&error, Error::Limit(t) if t.contains("--memory")),
            "{aggregate}: {error}"
        );
    }
}
