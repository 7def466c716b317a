//! Inferred columns that meet what their types do not hold.

use std::io::{Cursor, Write};
use std::sync::Arc;

use coload_ddl::Schema;
use coload_ddl::column_sql;
use coload_load::{LoadReport, OpenedStream, Progress};
use coload_source::{
    DateFormat, Dialect, Formats, GivenDialect, Header, InputFile, InputSource, SampleEnd, sniff,
};
use coload_store::Store;
use coload_wire::{FieldMap, RejectLimit};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::model::Row;
use crate::support::{Options, dry_run, inputs, load, options, rows, scratch, write};

/// How text comes to a load.
#[derive(Debug, Clone, Copy)]
enum From {
    File,
    Stream,
    Gzip,
}

/// A load whose columns are inferred from the first `sample` bytes.
fn inferred(dir: &TempDir, text: &str, sample: usize, from: From) -> Options {
    let given = GivenDialect::default();
    let found = sniff("in.csv", &text.as_bytes()[..sample], SampleEnd::Cut, &given, None).unwrap();
    let inputs = match from {
        From::File => inputs(&[write(dir, "in.csv", text.as_bytes())]),
        From::Stream => vec![InputFile { name: "-".to_owned(), source: InputSource::Stdin }].into(),
        From::Gzip => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            inputs(&[write(dir, "in.csv.gz", &gzip.finish().unwrap())])
        }
    };
    let mut options = Options::new(inputs, "t", found.schema, found.dialect);
    options.inferred = Some(found.forms);
    if let From::Stream = from {
        let text = text.as_bytes().to_vec();
        options.stream = Some(OpenedStream::new("-", Box::new(Cursor::new(text))));
    }
    options.resources.chunk_bytes = 64;
    options
}

/// Columns, rows and report of such a load.
fn load_inferred(
    text: &str,
    sample: usize,
    from: From,
    change: impl Fn(&mut Options),
) -> (String, Vec<Row>, LoadReport) {
    let dir = scratch();
    let mut options = inferred(&dir, text, sample, from);
    change(&mut options);
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
    for (threads, from) in [(1, From::File), (3, From::File), (2, From::Stream), (2, From::Gzip)] {
        let set = |options: &mut Options| options.resources.threads = threads;
        let (columns, found, report) = load_inferred(&text, head.len(), from, set);
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
    check("7,1\n", "8,1e+300", "id BIGINT, x DOUBLE");
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
fn what_is_no_text_either_is_a_reject() {
    let set = |options: &mut Options| options.max_rejects = RejectLimit::Count(1);
    let (columns, rows, report) = load_inferred("id\n7\n8\n\0\n9\n", 6, From::File, set);
    assert_eq!((columns.as_str(), rows.len(), report.reject_count()), ("id BIGINT", 3, 1));
}

#[test]
fn leading_zeros_of_an_inferred_column_are_kept() {
    check("7,1\n", "8,007", "id BIGINT, x VARCHAR");
    check("7,1\n", "8,+49", "id BIGINT, x VARCHAR");
    let (columns, rows, report) = load_inferred("id\n7\n0\n-5\n0.5\n", 10, From::File, |_| ());
    assert_eq!((columns.as_str(), rows.len()), ("id DECIMAL(18,3)", 4));
    assert_eq!(report.widened.len(), 1);
}

/// Each column that changed is told, with the number of its field in the file, of which some are not read.
#[test]
fn all_fields_of_a_record_are_told_that_do_not_fit() {
    let dir = scratch();
    let text = "id,note,x,y\n1,a,2,3\n1,a,b,2024-01-01\n";
    let mut options = inferred(&dir, text, 20, From::File);
    options.fields = Some(FieldMap { count: 4, of_column: vec![0, 2, 3] });
    let keep = |column: usize| [0, 2, 3].contains(&column);
    let columns = options.schema.columns().iter().enumerate().filter(|(c, _)| keep(*c));
    let schema = Schema::new(columns.map(|(_, column)| column.clone()).collect()).unwrap();
    options.schema = schema;
    let forms = options.inferred.iter().flatten().enumerate().filter(|(c, _)| keep(*c));
    options.inferred = Some(forms.map(|(_, forms)| *forms).collect());
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let report = load(&store, &options).unwrap();
    let told = report.widened.iter().map(|w| format!("{} {} {}", w.column, w.to, w.place.field));
    assert_eq!(told.collect::<Vec<_>>(), ["x VARCHAR 3", "y VARCHAR 4"]);
    assert_eq!(report.columns[0].data_type.to_string(), "BIGINT");
}

#[test]
fn what_the_sample_did_not_show_is_not_rounded() {
    // A DOUBLE is not that integer.
    check("7,1\n", "8,9007199254740993\n8,1e+5", "id BIGINT, x VARCHAR");
    check("7,1\n", "8,9007199254740992\n8,1e+5", "id BIGINT, x DOUBLE");
    // Names, as nothing says that they are numbers.
    check("7,1\n", "8,2\n8,1e5", "id BIGINT, x VARCHAR");
    check("7,-1\n", "8,2\n8,1e5", "id BIGINT, x DOUBLE");
    // More digits than a DOUBLE is printed with, in what is new and in what is stored.
    check("7,1.5\n", "8,0.12345678901234567890", "id BIGINT, x DECIMAL(38,22)");
    check("7,1e+3\n", "8,12345678901234567.89", "id BIGINT, x VARCHAR");
    check("7,1234567890123456.7\n", "8,1e+300", "id BIGINT, x VARCHAR");
    check("7,9007199254740992\n7,9007199254740991\n", "8,1e+5", "id BIGINT, x DOUBLE");
    // DECIMAL of 18 digits is too narrow for what is there already.
    check("7,1\n", "8,123456789012345678\n8,.25", "id BIGINT, x DECIMAL(38,4)");
    check("7,1\n", "8,0.25\n8,1e5\n9,-.125", "id BIGINT, x DOUBLE");
    check("7,1.25\n", "8,123456789012345678901\n9,NaN", "id BIGINT, x VARCHAR");
}

/// The text that a column needs is that of the file that was loaded, not of another in its place.
#[test]
fn a_file_that_was_replaced_is_not_read_again() {
    let dir = scratch();
    let text = "id,x\n1,7\n2,a\n3,8\n";
    let mut options = inferred(&dir, text, 9, From::File);
    let other = write(&dir, "other", text.replace('7', "6").as_bytes());
    let file = dir.path().join("in.csv");
    options.hooks.progress = Some(Arc::new(move |progress: &Progress| {
        if progress.rows() == 3 {
            let _ = std::fs::rename(&other, &file);
        }
    }));
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("taken its place"), "{error}");
    assert!(store.snapshot().unwrap().table("t").is_none());
}

/// Nothing is kept of a stream, and nothing read again, where the values tell all.
#[test]
fn a_stream_goes_on_with_wider_types() {
    let head = format!("id,x\n{}", "7,1\n".repeat(40));
    let text = format!("{head}8,0.5\n{}", "9,2\n".repeat(40));
    let dir = scratch();
    let options = inferred(&dir, &text, head.len(), From::Stream);
    let run = dry_run(None, &options).unwrap();
    assert_eq!((run.files.counts()[0].rows, run.rejects.len()), (81, 0));
    assert_eq!(run.widened[0].to.to_string(), "DECIMAL(18,3)");
    assert_eq!(run.widened[0].place.line, 42);
}

/// Fields of kinds, each of which is wider than the one before or text.
fn field(kind: usize) -> impl Strategy<Value = String> {
    match kind {
        0 => "-?[1-9][0-9]{0,2}".boxed(),
        1 => "-?[1-9][0-9]{0,16}".boxed(),
        // No -0.0: a DECIMAL has no such zero, and the DOUBLE that it becomes is 0.
        2 => "-?[1-9]\\.[0-9]{1,3}|0\\.[0-9]{1,3}".boxed(),
        3 => "[1-9]e-?[0-9]".boxed(),
        4 => "[1-9][0-9]{0,1}| [1-9]|0[0-9]|\\+1|true|a\"\"b".boxed(),
        5 => "20[0-2][0-9]-0[1-9]-[12][0-9]".boxed(),
        6 => "20[0-2][0-9]-0[1-9]-[12][0-9] 1[0-9]:[0-5][0-9]".boxed(),
        _ => "".boxed(),
    }
}

/// Kinds of fields of a column, and at which record each begins.
fn column() -> impl Strategy<Value = Vec<(usize, usize)>> {
    let numbers = prop::collection::vec((0..5_usize, 1..300_usize), 0..4);
    let dates = prop::collection::vec((4..7_usize, 1..300_usize), 0..2);
    prop_oneof![
        numbers.prop_map(|kinds| [vec![(0, 0)], kinds].concat()),
        dates.prop_map(|kinds| [vec![(5, 0)], kinds].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// However often columns become wider: the rows are those of a load that declares the columns, and
    /// the segments the same for any number of threads. Some records are rejects.
    #[test]
    fn a_load_that_goes_on_is_one_that_knew(
        (columns, fields) in prop::collection::vec(column(), 1..4).prop_flat_map(|columns| {
            let field_of = |column: &Vec<(usize, usize)>, row: usize| {
                let kind = column.iter().rfind(|(_, from)| *from <= row).map_or(0, |(kind, _)| *kind);
                prop_oneof![9 => field(kind), 1 => field(column[0].0), 1 => field(7)]
            };
            let rows = (0..300_usize).flat_map(|row| {
                columns.iter().map(move |column| field_of(column, row)).collect::<Vec<_>>()
            });
            let rows = rows.collect::<Vec<_>>();
            (Just(columns), rows)
        }),
        ragged in prop::collection::vec(40..300_usize, 0..3),
        chunk in 40..600_usize,
        fragments in 1..5_usize,
    ) {
        let width = columns.len();
        let mut text = (0..=width).map(|c| format!("c{c}")).collect::<Vec<_>>().join(",") + "\n";
        let mut sample = 0;
        for (row, record) in fields.chunks(width).enumerate() {
            if row == 30 {
                sample = text.len();
            }
            let extra = if ragged.contains(&row) { ",,x" } else { "" };
            text.push_str(&format!("{row},\"{}\"{extra}\n", record.join("\",\"")));
        }
        // A stream is cut into other chunks than a file, and how wide decimals become depends on what a chunk has.
        for (from, threads) in [(From::File, [1, 3]), (From::Stream, [1, 3]), (From::Gzip, [1, 2])] {
            let mut first: Option<(String, Vec<Row>, Vec<u64>)> = None;
            let mut typed_nulls = Vec::new();
            for threads in threads {
                let dir = scratch();
                let mut options = inferred(&dir, &text, sample, from);
                options.max_rejects = RejectLimit::Count(10);
                (options.resources.threads, options.resources.chunk_bytes) = (threads, chunk);
                options.resources.fragments_per_partition = fragments;
                let store = Store::create_or_open(dir.path().join("store")).unwrap();
                let report = load(&store, &options).unwrap();
                prop_assert!(report.reject_count() as usize <= ragged.len());
                let snapshot = store.snapshot().unwrap();
                let table = snapshot.table("t").unwrap();
                let sql: Vec<String> = table.schema.columns().iter().map(column_sql).collect();
                let bytes = table.segments.iter().map(|s| s.bytes).collect::<Vec<_>>();
                let found = (sql.join(", "), rows(&store, "t"), bytes);
                typed_nulls = options.request.dialect.typed_nulls;
                match &first {
                    None => first = Some(found),
                    Some(first) => prop_assert!(*first == found, "{:?} {}", from, found.0),
                }
            }
            let (sql, found, _) = first.unwrap();
            let dir = scratch();
            let path = write(&dir, "in.csv", text.as_bytes());
            let dialect = Dialect { header: Header::Present, typed_nulls, ..Dialect::default() };
            let store = Store::create_or_open(dir.path().join("store")).unwrap();
            let mut declared = options(&[path], &sql, dialect);
            declared.max_rejects = RejectLimit::Count(10);
            load(&store, &declared).unwrap();
            let known = rows(&store, "t");
            let other = found.iter().zip(&known).find(|(a, b)| a != b);
            prop_assert!(found == known, "{:?} {}: {:?}", from, sql, other);
        }
    }
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
        ..Formats::default()
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
