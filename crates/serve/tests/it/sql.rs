//! What .slt files cannot say.
#![allow(clippy::print_stdout)]

use coload_serve::output::{OutputFormat, write_answer};

use crate::support::Scratch;

fn text(scratch: &Scratch, sql: &str, format: &OutputFormat) -> String {
    let mut out = Vec::new();
    scratch.database.block_on(async {
        let answer = scratch.database.sql(sql).await.unwrap();
        let schema = answer.schema();
        let batches = answer.collect().await.unwrap();
        write_answer(&schema, &batches, format, &mut out).unwrap();
    });
    String::from_utf8(out).unwrap()
}

#[test]
fn answers_are_tables_csv_and_json() {
    let scratch = Scratch::new();
    let sql = "SELECT 1 AS a, 'x,\"y' AS b, CAST(NULL AS VARCHAR) AS c, '' AS d";
    assert_eq!(
        text(&scratch, sql, OutputFormat::table()),
        "+---+------+------+---+\n| a | b    | c    | d |\n+---+------+------+---+\n\
         | 1 | x,\"y | NULL |   |\n+---+------+------+---+\n(1 row)\n"
    );
    assert_eq!(
        text(&scratch, sql, OutputFormat::of_name("csv").unwrap()),
        "a,b,c,d\n1,\"x,\"\"y\",,\"\"\n"
    );
    let json = text(&scratch, sql, OutputFormat::of_name("json").unwrap());
    assert_eq!(json.trim_end(), r#"[{"a":1,"b":"x,\"y","c":null,"d":""}]"#);
    let none = "SELECT 1 AS a WHERE false";
    assert!(text(&scratch, none, OutputFormat::table()).contains("| a |"));
    assert_eq!(text(&scratch, "CREATE TABLE t (a INT)", OutputFormat::table()), "");
}

#[test]
fn a_statement_keeps_its_snapshot_while_the_table_goes() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t AS SELECT value AS v FROM range(300000)").unwrap();
    database.block_on(async {
        let mut answer = database.sql("SELECT v FROM t").await.unwrap();
        let mut rows = answer.next().await.unwrap().unwrap().num_rows();
        database.sql("DROP TABLE t").await.unwrap();
        assert!(database.sql("SELECT v FROM t").await.is_err());
        while let Some(batch) = answer.next().await.unwrap() {
            rows += batch.num_rows();
        }
        assert_eq!(rows, 300_000);
    });
}

#[test]
fn copied_csv_has_the_rows_as_text() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let path = scratch.dir.path().join("t.csv");
    database.query("CREATE TABLE t (i INT, t VARCHAR, b BINARY, at TIMESTAMPTZ, r REAL)").unwrap();
    database
        .query("INSERT INTO t VALUES (1, '', x'0aff', '2024-01-02T03:04:05.5+01:00', 0.1), (2, NULL, NULL, NULL, NULL)")
        .unwrap();
    database.query(&format!("COPY (SELECT * FROM t ORDER BY i) TO '{}'", path.display())).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "i,\"t\",b,at,r\n1,\"\",\\x0aff,2024-01-02 02:04:05.500+00:00,0.1\n2,,,,\n"
    );
    let files: Vec<_> = std::fs::read_dir(scratch.dir.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "no temporary file is left: {files:?}");
}

#[test]
fn explain_analyze_tells_pages() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t AS SELECT value AS v FROM range(300000)").unwrap();
    let plan = text(
        &scratch,
        "EXPLAIN ANALYZE SELECT sum(v + 1) FROM t WHERE v < 1000",
        OutputFormat::table(),
    );
    for word in ["predicates=[v < 1000]", "pages_scanned=1", "pages_pruned=4", "rows_tested="] {
        assert!(plan.contains(word), "{word} in {plan}");
    }
}

#[test]
fn a_thousand_inserts_leave_few_segments_and_every_row() {
    const INSERTS: u64 = 1_000;
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR)").unwrap();
    for id in 0..INSERTS {
        let rows = format!("({id}, 'name {}'), (-1, NULL)", id % 7);
        database.query(&format!("INSERT INTO t VALUES {rows}")).unwrap();
        let segments = database.store().snapshot().unwrap().table("t").unwrap().segments.len();
        assert!(segments <= 30, "{segments} segments after {id} inserts");
    }
    let sums = "SELECT count(*), count(name), count(DISTINCT name), sum(id) FROM t";
    let sums = text(&scratch, sums, OutputFormat::of_name("csv").unwrap());
    assert_eq!(sums.lines().last(), Some("2000,1000,7,498500"));
    // The order of rows stays.
    let ids =
        text(&scratch, "SELECT id FROM t WHERE id >= 0", OutputFormat::of_name("csv").unwrap());
    assert!(ids.lines().skip(1).eq((0..INSERTS).map(|id| id.to_string())), "{ids}");
}

/// Symptom: `SELECT ? || ?` was refused, as nothing said what its parameters are.
#[test]
fn parameters_that_are_joined_are_texts() {
    use coload_serve::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
    use coload_serve::arrow::datatypes::DataType;
    use coload_serve::{Parameters, Rights};

    const TEXTS: [DataType; 2] = [DataType::Utf8, DataType::Utf8View];
    let scratch = Scratch::new();
    let database = &scratch.database;
    let text = |text: &str| -> ArrayRef { std::sync::Arc::new(StringArray::from(vec![text])) };
    let columns = ["$1", "$2", "$3"].into_iter().zip([text("a"), text("é"), text("")]);
    let values = RecordBatch::try_from_iter(columns).unwrap();
    let sql = "SELECT ? || ? || 'x' || ?";
    database.block_on(async {
        let open = database.plan(&Rights::all(), sql, Parameters::default()).await.unwrap();
        let fields = open.parameters().fields();
        assert_eq!(fields.len(), 3);
        assert!(fields.iter().all(|f| TEXTS.contains(f.data_type())), "{fields:?}");
        let parameters = Parameters::of_row(&values, 0).unwrap();
        let planned = database.plan(&Rights::all(), sql, parameters).await.unwrap();
        let rows = planned.run(database).await.unwrap().collect().await.unwrap();
        assert_eq!(rows[0].column(0).as_string_view().value(0), "aéx");
    });
}
