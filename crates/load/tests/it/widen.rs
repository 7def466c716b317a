//! Inferred columns that meet what their types do not hold.

use coload_format::ddl::column_sql;
use coload_load::{LoadOptions, LoadReport, load};
use coload_source::{DateFormat, Dialect, Formats, GivenDialect, Header, SampleEnd, sniff};
use coload_store::Store;

use crate::model::Row;
use crate::support::{inputs, options, rows, scratch, write};

/// Columns, rows and report of a load whose columns are inferred from the first `sample` bytes.
fn load_inferred(text: &str, sample: usize, threads: usize) -> (String, Vec<Row>, LoadReport) {
    let dir = scratch();
    let path = write(&dir, "in.csv", text.as_bytes());
    let given = GivenDialect::default();
    let found = sniff("in.csv", &text.as_bytes()[..sample], SampleEnd::Cut, &given, None).unwrap();
    let mut options = LoadOptions::new(inputs(&[path]), "t", found.schema, found.dialect);
    options.inferred = Some(found.forms);
    (options.threads, options.chunk_bytes) = (threads, 64);
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let report = load(&store, &options).unwrap();
    let snapshot = store.snapshot().unwrap();
    let columns = snapshot.table("t").unwrap().schema.columns().iter().map(column_sql);
    (columns.collect::<Vec<_>>().join(", "), rows(&store, "t"), report)
}

/// What was inferred becomes `expected`, and the rows are those of a load that declares it.
fn check(first: &str, then: &str, expected: &str) {
    let head = format!("id,x\n{}", first.repeat(40));
    let text = format!("{head}{then}\n{}", first.repeat(3));
    for threads in [1, 3] {
        let (columns, found, report) = load_inferred(&text, head.len(), threads);
        assert_eq!(columns, expected, "{first:?} then {then:?}");
        let dir = scratch();
        let path = write(&dir, "in.csv", text.as_bytes());
        let dialect = Dialect { header: Header::Present, ..Dialect::default() };
        let store = Store::create_or_open(dir.path().join("store")).unwrap();
        load(&store, &options(&[path], expected, dialect)).unwrap();
        assert_eq!(found, rows(&store, "t"));
        assert_eq!(report.reject_count(), 0);
        let line = head.lines().count() as u64 + 1;
        assert!(report.widened.iter().all(|w| w.place.line >= line), "{:?}", report.widened);
    }
}

#[test]
fn a_column_becomes_as_wide_as_its_fields() {
    check("7,1\n", "8,2.5", "id BIGINT, x DECIMAL(18,3)");
    check("7,1\n", "8,x", "id BIGINT, x VARCHAR");
    check("7,1\n", "8,1e300", "id BIGINT, x DOUBLE");
    check("7,1.5\n", "8,2.125\n9,3.0625", "id BIGINT, x DECIMAL(18,6)");
    check("7,1\n", "8,12345678901234567890", "id BIGINT, x DECIMAL(38,0)");
    check("7,2024-01-01\n", "8,2024-01-01 12:00:00", "id BIGINT, x TIMESTAMP");
    check("7,true\n", "8,1", "id BIGINT, x VARCHAR");
    // Both fields of the record.
    check("7,1\n", "a,b", "id VARCHAR, x VARCHAR");
    // One after the other.
    check("7,1\n", "8,2.5\n9,3\n9,x\ny,5", "id VARCHAR, x VARCHAR");
}

#[test]
fn leading_zeros_of_an_inferred_column_are_kept() {
    check("7,1\n", "8,007", "id BIGINT, x VARCHAR");
    check("7,1\n", "8,+49", "id BIGINT, x VARCHAR");
    let (columns, rows, report) = load_inferred("id\n7\n0\n-5\n0.5\n", 10, 2);
    assert_eq!((columns.as_str(), rows.len()), ("id DECIMAL(18,3)", 4));
    assert_eq!(report.widened.len(), 1);
}

#[test]
fn a_declared_column_rejects() {
    let dir = scratch();
    let path = write(&dir, "in.csv", b"1\n2.5\n");
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let options = options(&[path], "x BIGINT", Dialect::default());
    let report = load(&store, &options).unwrap();
    assert_eq!((report.rows(), report.reject_count()), (1, 1));
    assert!(report.widened.is_empty());
}

/// Numbers and dates of other forms give the rows that those of SQL give, in columns with and without
/// codes; what is of no form is a reject.
#[test]
fn other_forms_of_numbers_and_dates_are_read_alike() {
    let formats = Formats {
        decimal: b',',
        thousands: Some(b'.'),
        date: Some(DateFormat::parse("%d.%m.%Y").unwrap()),
    };
    let dialect = Dialect { delimiter: b';', formats, ..Dialect::default() };
    let plain = Dialect { delimiter: b';', ..Dialect::default() };
    let (mut text, mut expected) = (String::new(), String::new());
    for i in 0..3000 {
        let (thousands, cents) = (i * 7919 % 900 + 100, i % 100);
        let (day, month) = (i % 28 + 1, i % 12 + 1);
        text.push_str(&format!(
            "1.{thousands};{i},{cents:02};{day}.{month}.2024;{day:02}.{month:02}.2024 10:0{}\n",
            i % 10
        ));
        expected.push_str(&format!("1{thousands};{i}.{cents:02};2024-{month:02}-{day:02};2024-{month:02}-{day:02} 10:0{}\n", i % 10));
    }
    text.push_str("1;1.5;1.1.2024;\n1;;2024-01-01;\n1,5;;;\n");
    let columns = "a BIGINT, b DECIMAL(15,2), c DATE, d TIMESTAMP";
    let load = |text: &str, dialect: Dialect| {
        let dir = scratch();
        let path = write(&dir, "in.csv", text.as_bytes());
        let store = Store::create_or_open(dir.path().join("store")).unwrap();
        let report = load(&store, &options(&[path], columns, dialect)).unwrap();
        (rows(&store, "t"), report.reject_count())
    };
    let (found, rejects) = load(&text, dialect);
    assert_eq!((rejects, found.len()), (3, 3000));
    assert!(found == load(&expected, plain).0);
}
