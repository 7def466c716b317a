#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BinaryViewArray, Float64Array, Int64Array, StringViewArray,
};
use datafusion::arrow::datatypes::{Field, Int64Type, Schema};

use super::*;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, c)| Field::new(*name, c.data_type().clone(), true)).collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn numbers(from: i64, to: i64) -> RecordBatch {
    batch(vec![("n", Arc::new(Int64Array::from_iter_values(from..to)))])
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringViewArray::from(values.to_vec()))
}

fn bytes_of(batches: &[RecordBatch], format: &str, layout: Layout) -> Vec<u8> {
    let mut out = Vec::new();
    let format = OutputFormat::of_name(format).unwrap();
    let mut writer = AnswerWriter::new(batches[0].schema(), format, layout, &mut out).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    out
}

fn shown(batches: &[RecordBatch], format: &str, layout: Layout) -> String {
    String::from_utf8(bytes_of(batches, format, layout)).unwrap()
}

fn plain(batches: &[RecordBatch], format: &str) -> String {
    shown(batches, format, Layout::default())
}

#[test]
fn names_and_endings_lead_to_one_form() {
    let mut endings = Vec::new();
    for format in FORMATS {
        assert_eq!(OutputFormat::of_name(format.name).unwrap(), *format);
        for ending in format.endings {
            let file = format!("x.{}", ending.to_uppercase());
            assert_eq!(OutputFormat::of_file(Path::new(&file)).unwrap(), *format);
            endings.push(*ending);
        }
    }
    let count = endings.len();
    endings.sort_unstable();
    endings.dedup();
    assert_eq!(endings.len(), count);
    let error = OutputFormat::of_file(Path::new("x.xls")).unwrap_err().to_string();
    assert!(error.contains(".parquet") && error.contains("--output"), "{error}");
}

#[test]
fn long_tables_show_their_first_and_last_rows() {
    let layout = |rows| Layout { max_rows: Some(rows), ..Layout::default() };
    let batches: Vec<RecordBatch> = (0..100).map(|i| numbers(i * 10, i * 10 + 10)).collect();
    let text = shown(&batches, "table", layout(5));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[3..9], ["|   0 |", "|   1 |", "|   2 |", "|   … |", "| 998 |", "| 999 |"]);
    assert_eq!(*lines.last().unwrap(), "(1000 rows, 5 shown)");
    // As many rows as there may be, and one more, in any batches.
    for cuts in [[0, 3, 6], [0, 6, 6], [0, 1, 6], [0, 5, 6]] {
        let batches = [numbers(cuts[0], cuts[1]), numbers(cuts[1], cuts[2])];
        let all = shown(&batches, "table", layout(6));
        assert!(all.ends_with("(6 rows)\n") && !all.contains('…'), "{all}");
        let some = shown(&batches, "table", layout(4));
        let rows: Vec<&str> = some.lines().skip(3).take(5).collect();
        assert_eq!(rows, ["| 0 |", "| 1 |", "| … |", "| 4 |", "| 5 |"], "{cuts:?}");
        assert!(shown(&batches, "table", layout(1)).contains("| 0 |\n| … |\n+"));
    }
}

#[test]
fn tables_of_all_rows_are_written_as_they_come() {
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);
    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let seen = Seen::default();
    let schema = numbers(0, 1).schema();
    let table = OutputFormat::table();
    let mut writer = AnswerWriter::new(schema, table, Layout::default(), seen.clone()).unwrap();
    writer.write(&numbers(0, 900)).unwrap();
    assert_eq!(seen.0.lock().unwrap().len(), 0);
    writer.write(&numbers(900, 1_100)).unwrap();
    assert!(seen.0.lock().unwrap().ends_with(b"| 1099 |\n"));
    writer.write(&numbers(99_999, 100_000)).unwrap();
    assert!(seen.0.lock().unwrap().ends_with(b"| 99999 |\n"));
    writer.finish().unwrap();
    assert!(seen.0.lock().unwrap().ends_with(b"+------+\n(1101 rows)\n"));
}

#[test]
fn tables_fit_the_terminal() {
    let long = "a long text that goes on and on and on and on";
    let columns: Vec<(String, ArrayRef)> =
        (0..9).map(|i| (format!("c{i}"), texts(&[Some(long), None]))).collect();
    let wide = batch(columns.iter().map(|(name, c)| (&**name, Arc::clone(c))).collect());
    for width in [20, 40, 61, 80, 200] {
        let layout = Layout { width: Some(width), max_rows: Some(40) };
        let text = shown(std::slice::from_ref(&wide), "table", layout);
        for line in text.lines() {
            assert!(cells::width(line) <= width.max(40), "{width}: {line}");
        }
        assert!(text.contains("| c0"), "{text}");
        let all = text.contains("c4");
        assert_eq!(!all, text.contains("; 9 columns, "), "{text}");
    }
    // What fits is not touched, and wide characters count as two columns.
    let narrow = batch(vec![("名", texts(&[Some("数数"), Some("x")]))]);
    let layout = Layout { width: Some(80), max_rows: None };
    assert_eq!(
        shown(&[narrow], "table", layout),
        "+------+\n| 名   |\n+------+\n| 数数 |\n| x    |\n+------+\n(2 rows)\n"
    );
}

#[test]
fn what_commands_a_terminal_is_shown_in_tables() {
    let values = texts(&[Some("\u{1b}[2J"), Some("a\tb"), Some("x\ny")]);
    let rows = batch(vec![("\u{1b}c", values)]);
    let table = plain(std::slice::from_ref(&rows), "table");
    assert!(!table.contains('\u{1b}') && table.contains("| \\u{1b}[2J |"), "{table}");
    assert!(table.contains("| a\\tb      |\n| x         |\n| y         |\n"), "{table}");
    let expanded = plain(&[rows], "expanded");
    assert!(expanded.contains("-[ row 3 ]-\n\\u{1b}c | x\n        | y\n(3 rows)"), "{expanded}");
}

#[test]
fn json_has_all_keys_and_all_floats() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(0.1),
        None,
        Some(f64::NAN),
        Some(f64::NEG_INFINITY),
        Some(1e300),
    ]));
    let values = texts(&[Some("\u{1b}\"\n"), None, Some(""), None, None]);
    let rows = batch(vec![("f", floats), ("t", values)]);
    let expected = [
        r#"{"f":0.1,"t":"\u001b\"\n"}"#,
        r#"{"f":null,"t":null}"#,
        r#"{"f":"NaN","t":""}"#,
        r#"{"f":"-Infinity","t":null}"#,
        r#"{"f":1e300,"t":null}"#,
    ];
    assert_eq!(plain(std::slice::from_ref(&rows), "jsonl").lines().collect::<Vec<_>>(), expected);
    let array = plain(&[rows.slice(0, 2), rows.slice(2, 3)], "json");
    assert_eq!(array, format!("[{}]\n", expected.join(",\n")));
    assert_eq!(plain(&[rows.slice(0, 0)], "json"), "[]\n");
    assert_eq!(plain(&[rows.slice(0, 0)], "jsonl"), "");
}

#[test]
fn tsv_markdown_and_html_keep_values_in_their_cells() {
    let bytes: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([b"\x0a\xff", b"ab"]));
    let values = texts(&[Some("a\tb\\c\n|<&>"), None]);
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let rows = batch(vec![("n", n), ("t|x", values), ("b", bytes)]);
    assert_eq!(
        plain(std::slice::from_ref(&rows), "tsv"),
        "n\tt|x\tb\n1\ta\\tb\\\\c\\n|<&>\t\\\\x0aff\n\\N\t\\N\t\\\\x6162\n"
    );
    assert_eq!(
        plain(std::slice::from_ref(&rows), "markdown"),
        "| n | t\\|x | b |\n|---:|---|---|\n| 1 | a\tb\\\\c<br>\\|&lt;&amp;> | \\\\x0aff |\n|  |  | \\\\x6162 |\n"
    );
    let html = plain(&[rows], "html");
    for part in [
        "<th>t|x</th>",
        "<td style=\"text-align:right\">1</td><td>a\tb\\c\n|&lt;&amp;&gt;</td>",
        "<td class=\"null\"></td>",
        "</tbody>\n</table>\n",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn files_of_parquet_and_arrow_are_read_back() {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
    let batches: Vec<RecordBatch> = (0..30)
        .map(|i| {
            let n: ArrayRef =
                Arc::new(Int64Array::from_iter_values(i * 10_000..i * 10_000 + 10_000));
            let t = StringViewArray::from_iter_values(
                (0..10_000).map(|i| format!("a longer text {i}")),
            );
            batch(vec![("n", n), ("t", Arc::new(t))])
        })
        .collect();
    let file = bytes_of(&batches, "parquet", Layout::default());
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let parquet: Vec<RecordBatch> =
        reader.build().unwrap().map(std::result::Result::unwrap).collect();
    let arrow = bytes_of(&batches, "arrow", Layout::default());
    let arrow = FileReader::try_new(std::io::Cursor::new(arrow), None).unwrap();
    let arrow: Vec<RecordBatch> = arrow.map(std::result::Result::unwrap).collect();
    let stream = bytes_of(&batches, "arrows", Layout::default());
    let stream = StreamReader::try_new(&stream[..], None).unwrap();
    let stream: Vec<RecordBatch> = stream.map(std::result::Result::unwrap).collect();
    for read in [parquet, arrow, stream] {
        let mut next = 0;
        for batch in &read {
            let texts = batch.column(1).as_string::<i32>();
            for (row, n) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate()
            {
                assert_eq!(*n, next);
                assert_eq!(texts.value(row), format!("a longer text {}", n % 10_000));
                next += 1;
            }
        }
        assert_eq!(next, 300_000);
    }
}
