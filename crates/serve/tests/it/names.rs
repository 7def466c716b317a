//! Any header of a file gives a table that can be queried, and takes nothing from the language.

use coload_serve::Database;
use coload_serve::arrow::array::{Array, RecordBatch};
use coload_serve::arrow::util::display::array_value_to_string;
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

use crate::support::Scratch;

/// The rows of an answer as text, and its columns.
fn ask(database: &Database, sql: &str) -> (Vec<String>, Vec<String>) {
    let batches = database.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let names = batches
        .first()
        .map(|b| b.schema())
        .map_or(Vec::new(), |schema| schema.fields().iter().map(|f| f.name().clone()).collect());
    let line = |batch: &RecordBatch, row: usize| {
        let value = |c: &std::sync::Arc<dyn Array>| array_value_to_string(c, row).unwrap();
        batch.columns().iter().map(value).collect::<Vec<_>>().join(",")
    };
    let rows =
        batches.iter().flat_map(|b| (0..b.num_rows()).map(|r| line(b, r)).collect::<Vec<_>>());
    (names, rows.collect())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table with these columns and one row: 0, 1, 2 and so on.
fn create(database: &Database, table: &str, columns: &[String]) {
    let declared: Vec<String> = columns.iter().map(|c| format!("{} BIGINT", quoted(c))).collect();
    database.query(&format!("CREATE TABLE {table} ({})", declared.join(", "))).unwrap();
    let values: Vec<String> = (0..columns.len()).map(|i| i.to_string()).collect();
    database.query(&format!("INSERT INTO {table} VALUES ({})", values.join(", "))).unwrap();
}

/// The same name in other case, where that is the same name.
fn cases(name: &str, draw: &mut impl FnMut() -> u64) -> Vec<String> {
    let mixed = name.chars().map(|c| {
        let (upper, lower) = (c.to_uppercase().to_string(), c.to_lowercase().to_string());
        let same = upper.to_lowercase() == lower && upper.chars().count() == 1;
        if same && draw().is_multiple_of(2) { upper } else { c.to_string() }
    });
    vec![name.to_owned(), mixed.collect()]
}

fn generator(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    }
}

/// At a1bdeed columns named by words of the language replaced these words in the text of a statement: a header
/// `Date,From,To` made a table that no statement could read, `x,True` changed `where true`.
#[test]
fn every_keyword_is_a_name_of_a_column() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let mut draw = generator(42);
    for (index, words) in ALL_KEYWORDS.chunks(100).enumerate() {
        let capital = |word: &&str| {
            let lower = word[1..].to_lowercase();
            format!("{}{lower}", &word[..1])
        };
        let columns: Vec<String> = words.iter().map(capital).collect();
        create(database, &format!("w{index}"), &columns);
        let expected: Vec<String> = (0..columns.len()).map(|i| i.to_string()).collect();
        let (names, rows) = ask(database, &format!("SELECT * FROM w{index}"));
        assert_eq!((names, rows), (columns.clone(), vec![expected.join(",")]));
        let spelled: Vec<String> =
            columns.iter().map(|c| quoted(&cases(c, &mut draw)[1])).collect();
        let (names, rows) = ask(database, &format!("SELECT {} FROM W{index}", spelled.join(", ")));
        assert_eq!((names, rows), (columns.clone(), vec![expected.join(",")]));
        let qualified: Vec<String> = spelled.iter().map(|c| format!("q.{c}")).collect();
        let sql = format!("SELECT {} FROM w{index} Q", qualified.join(", "));
        assert_eq!(ask(database, &sql).1, [expected.join(",")]);
    }
}

#[test]
fn odd_names_are_names_of_columns() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let mut draw = generator(7);
    let columns: Vec<String> = [
        "a.b",
        "A\"b",
        "with space",
        " ",
        "@id",
        "$1",
        "?",
        "1st",
        "count(*)",
        "Int64(1)",
        "Größe",
        "ÉTAT",
        "ÑANDÚ",
        "日本語",
        "x'y",
        "`tick`",
        "semi;colon",
        "--",
        "/*",
        "a,b",
        "t.a",
        "*",
        "__x",
        "ΔΕΛΤΑ",
        "o\u{301}",
        "null",
        "Salary",
        "%",
        "\\",
        "{}",
        "[0]",
    ]
    .map(str::to_owned)
    .to_vec();
    create(database, "odd", &columns);
    for (index, column) in columns.iter().enumerate() {
        let spellings = cases(column, &mut draw);
        for spelling in spellings {
            let spelling = quoted(&spelling);
            for sql in [
                format!("SELECT {spelling} FROM odd"),
                format!("SELECT o.{spelling} FROM odd AS o WHERE o.{spelling} = {index}"),
                format!("SELECT * FROM (SELECT {spelling} FROM odd) s ORDER BY {spelling}"),
                format!("SELECT {spelling} FROM odd GROUP BY {spelling} HAVING {spelling} >= 0"),
                format!("WITH c AS (SELECT {spelling} FROM odd) SELECT {spelling} FROM c"),
                format!("SELECT {spelling} FROM odd a JOIN odd b USING ({spelling})"),
            ] {
                let (names, rows) = ask(database, &sql);
                assert_eq!(rows, [index.to_string()], "{sql}");
                assert_eq!(names, std::slice::from_ref(column), "{sql}");
            }
        }
    }
}

/// Each statement means the same for a table whose columns are words of the language and for one without.
#[test]
fn words_of_the_language_keep_their_meaning() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let words = [
        "True",
        "False",
        "Null",
        "Count",
        "Sum",
        "Min",
        "Max",
        "Avg",
        "Order",
        "Group",
        "Where",
        "Limit",
        "Desc",
        "By",
        "And",
        "Or",
        "Not",
        "In",
        "Is",
        "Case",
        "When",
        "Then",
        "Else",
        "End",
        "Extract",
        "Left",
        "Right",
        "Join",
        "On",
        "Using",
        "From",
        "Select",
        "As",
        "Date",
        "Year",
        "Interval",
        "Day",
        "Cast",
        "Between",
        "Like",
        "Having",
        "Over",
        "Partition",
        "Row_number",
        "Coalesce",
        "Upper",
        "Trim",
        "Union",
        "All",
        "Distinct",
        "With",
        "Exists",
        "Values",
        "Filter",
        "Offset",
        "Asc",
        "Nulls",
        "First",
        "Last",
        "Rows",
        "Preceding",
        "Current",
        "Row",
        "Unbounded",
        "Lateral",
        "Substring",
        "Position",
        "Natural",
        "Cross",
        "Inner",
        "Timestamp",
        "Time",
        "Double",
        "Precision",
        "Varchar",
    ];
    let columns: Vec<String> = std::iter::once("x").chain(words).map(str::to_owned).collect();
    create(database, "words", &columns);
    create(database, "plain", &["x".to_owned()]);
    database.query("INSERT INTO words (x) VALUES (5)").unwrap();
    database.query("INSERT INTO plain (x) VALUES (5)").unwrap();
    for sql in [
        "select count(*) from T where true",
        "select count(*) from T where false or not true",
        "select coalesce(null, 5), null is null from T",
        "select x from T where x is not null order by x desc limit 1",
        "select x, count(*) as n from T group by x having count(*) > 0 order by 1 asc nulls first",
        "select case when x = 0 then 'zero' else 'other' end from T order by x",
        "select extract(year from date '2024-02-29'), date '2024-02-29' + interval '1' day from T",
        "select cast(x as double precision) as y, x::varchar as v, upper('a'), trim(both 'x' from 'xax') from T order by x",
        "select left('abc', 2), right('abc', 1), substring('abc' from 2 for 1), position('b' in 'abc') from T",
        "select a.x from T a join T b on a.x = b.x left join T c on c.x = a.x cross join T d order by 1",
        "select x from T a join T b using (x) order by 1",
        "select x from T where x in (select x from T) and exists (select 1 from T) and x between 0 and 9 order by x",
        "select sum(x) filter (where x > 0), min(x), max(x), avg(x) from T",
        "select row_number() over (partition by x order by x rows between unbounded preceding and current row) from T",
        "select distinct x from T union all select x from T order by x offset 1",
        "with w as (values (1), (2)) select column1, x from w, T order by 1, 2 fetch first 2 rows only",
        "select x from T where 'abc' like 'a%' order by x desc nulls last",
        "select timestamp '2024-01-01 00:00:00', time '10:00:00' from T",
    ] {
        let of =
            |table: &str| ask(database, &sql.replace('T', table).replace("Timestamp", "timestamp"));
        assert_eq!(of("words").1, of("plain").1, "{sql}");
    }
}

/// Messages say how a column is quoted whose name the parser takes for a word of the language.
#[test]
fn messages_show_how_to_quote() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE trips (\"Date\" DATE, \"From\" TEXT, \"To\" TEXT)").unwrap();
    database.query("INSERT INTO trips VALUES ('2024-01-01', 'A', 'B')").unwrap();
    assert_eq!(ask(database, "SELECT date, \"from\", t.to FROM trips t").1, ["2024-01-01,A,B"]);
    let error = database.query("SELECT from FROM trips").unwrap_err().to_string();
    assert!(error.contains("\"From\" in quotes"), "{error}");
    let error = database.query("SELECT Form FROM trips").unwrap_err().to_string();
    assert!(error.contains("did you mean \"From\"?"), "{error}");
}

/// Names are the same in all rules of SQL that compare names.
#[test]
fn joins_by_name_find_columns_in_any_case() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE one (\"Id\" INT, \"Name\" TEXT)").unwrap();
    database.query("CREATE TABLE two (id INT, \"NAME\" TEXT)").unwrap();
    database.query("INSERT INTO one VALUES (1, 'a'), (2, 'b')").unwrap();
    database.query("INSERT INTO two VALUES (2, 'b'), (3, 'c')").unwrap();
    assert_eq!(ask(database, "SELECT * FROM one NATURAL JOIN two").1, ["2,b"]);
    assert_eq!(ask(database, "SELECT ID FROM one JOIN two USING (ID)").1, ["2"]);
    assert_eq!(
        ask(database, "SELECT ONE.NAME, Two.name FROM one, two WHERE one.id = two.ID").1,
        ["b,b"]
    );
    let (names, rows) = ask(database, "SELECT id FROM one UNION SELECT iD FROM two ORDER BY Id");
    assert_eq!((names, rows), (vec!["Id".to_owned()], vec!["1".into(), "2".into(), "3".into()]));
    let (names, _) =
        ask(database, "SELECT n.\"Foo\", n.BAR FROM (SELECT 1 AS \"Foo\", 2 AS Bar) n");
    assert_eq!(names, ["Foo", "Bar"]);
    let (_, rows) = ask(database, "SHOW COLUMNS FROM ONE");
    assert_eq!(rows.len(), 2);
    assert!(ask(database, "DESCRIBE One").1[0].starts_with("Id"));
    database
        .query("CREATE TABLE three AS SELECT ID, count(*) AS \"How Many\" FROM one GROUP BY id")
        .unwrap();
    assert_eq!(ask(database, "SELECT * FROM three ORDER BY 1").0, ["Id", "How Many"]);
    database.query("INSERT INTO THREE (\"how many\", ID) VALUES (7, 9)").unwrap();
    assert_eq!(ask(database, "SELECT id, \"HOW MANY\" FROM three WHERE iD = 9").1, ["9,7"]);
    let subquery = "SELECT \"1\" FROM (SELECT 1) s";
    assert_eq!(ask(database, subquery).1, ["1"]);
}
