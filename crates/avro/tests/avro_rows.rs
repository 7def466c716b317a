//! Records by hand: what their columns are, and what is told of those that are none.
#![allow(clippy::unwrap_used)]

use coload_arrow::{Fault, SliceValues, write_scalar};
use coload_avro::{BlockHead, Layout, MAGIC, Schema, read_rows};

fn layout(schema: &str) -> Layout {
    Layout::new(Schema::parse(schema.as_bytes()).unwrap()).unwrap()
}

fn long(value: i64, out: &mut Vec<u8>) {
    let mut word = (value << 1 ^ value >> 63) as u64;
    while word >= 0x80 {
        out.push(word as u8 | 0x80);
        word >>= 7;
    }
    out.push(word as u8);
}

/// Numbers in the binary encoding.
fn longs(values: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| long(*value, &mut out));
    out
}

/// The rows of a block as texts, `-` for NULL; columns of which `is_read` is false are not there.
fn read_some(
    schema: &str,
    is_read: &[bool],
    raw: &[u8],
    rows: u64,
) -> Result<Vec<Vec<String>>, Fault> {
    let layout = layout(schema);
    let columns = read_rows(&layout, is_read, (raw, rows), 1 << 20)?;
    let text = |field: usize, row: usize| {
        let column = columns[field].as_ref()?;
        let mut out = Vec::new();
        match (&column.slice.values, layout.fields[field].dictionary()) {
            (SliceValues::Keys(keys, _), Some((values, symbols))) => {
                if column.slice.is_null(row) {
                    return Some("-".to_owned());
                }
                write_scalar(symbols.get(&values, keys[row] as usize).unwrap(), &mut out);
            }
            _ => match column.slice.get(&column.values, row) {
                None => return Some("-".to_owned()),
                Some(value) => write_scalar(value, &mut out),
            },
        }
        Some(String::from_utf8(out).unwrap())
    };
    let row = |row| (0..layout.fields.len()).filter_map(|field| text(field, row)).collect();
    Ok((0..rows as usize).map(row).collect())
}

fn read(schema: &str, raw: &[u8], rows: u64) -> Result<Vec<Vec<String>>, Fault> {
    read_some(schema, &vec![true; layout(schema).fields.len()], raw, rows)
}

/// A record of these fields.
fn record(fields: &[&str]) -> String {
    let field = |(number, of): (usize, &&str)| format!(r#"{{"name": "c{number}", "type": {of}}}"#);
    let fields: Vec<String> = fields.iter().enumerate().map(field).collect();
    format!(r#"{{"type": "record", "name": "r", "fields": [{}]}}"#, fields.join(", "))
}

fn names(schema: &str) -> Vec<String> {
    layout(schema).fields.into_iter().map(|field| field.name).collect()
}

#[test]
fn records_within_records_are_columns_and_null_in_all_of_them() {
    let inner = r#"{"type": "record", "name": "i", "fields": [{"name": "x", "type": "int"},
        {"name": "y", "type": ["null", "string"]}]}"#;
    let schema = record(&[r#""long""#, &format!(r#"["null", {inner}]"#), r#""i""#]);
    assert_eq!(names(&schema), ["c0", "c1.x", "c1.y", "c2.x", "c2.y"]);
    let nullable: Vec<bool> = layout(&schema).fields.iter().map(|field| field.nullable).collect();
    assert_eq!(nullable, [false, true, true, false, true]);
    // 1, NULL, {2, NULL}; then 3, {4, "z"}, {5, ""}
    let raw = [&longs(&[1, 0, 2, 0, 3, 1, 4, 1, 1])[..], b"z", &longs(&[5, 1, 0])].concat();
    let rows = read(&schema, &raw, 2).unwrap();
    assert_eq!(rows, [["1", "-", "-", "2", "-"], ["3", "4", "z", "5", ""]]);
    // Columns that are not read are passed over.
    let some = read_some(&schema, &[false, false, true, false, true], &raw, 2).unwrap();
    assert_eq!(some, [["-", "-"], ["z", ""]]);
    let none = read_some(&schema, &[false; 5], &raw, 2).unwrap();
    assert_eq!(none, [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn lists_maps_and_unions_are_json() {
    let schema = record(&[
        r#"{"type": "array", "items": ["null", "double"]}"#,
        r#"{"type": "map", "values": {"type": "array", "items": "bytes"}}"#,
        r#"["string", "null", "long", {"type": "fixed", "name": "f", "size": 2}]"#,
        r#"{"type": "record", "name": "e", "fields": []}"#,
    ]);
    let mut raw = longs(&[3, 0, 1]);
    raw.extend(1.5_f64.to_le_bytes());
    raw.extend(longs(&[1]));
    raw.extend(f64::NAN.to_le_bytes());
    raw.extend(longs(&[0]));
    // {"k\"": [00ff]}, by blocks with their bytes.
    raw.extend(longs(&[-1, 8, 2]));
    raw.extend(b"k\"");
    raw.extend(longs(&[1, 2]));
    raw.extend([0, 0xff]);
    raw.extend(longs(&[0, 0]));
    raw.extend(longs(&[3]));
    raw.extend([1, 0xab]);
    let rows = read(&schema, &raw, 1).unwrap();
    assert_eq!(rows, [[r#"[null, 1.5, "NaN"]"#, r#"{"k\"": ["00ff"]}"#, r#""01ab""#, "{}"]]);
    assert_eq!(read_some(&schema, &[false, false, true, false], &raw, 1).unwrap(), [["\"01ab\""]]);
    let kinds: Vec<String> = layout(&schema).fields.into_iter().map(|field| field.kind).collect();
    assert_eq!(kinds, ["array", "map", "union of string | null | long | fixed(2)", "record"]);
    // NULL of a union is NULL of the row, and the text "null" is none.
    let union = record(&[r#"["string", "null", "long"]"#]);
    let raw = [&longs(&[1, 0, 4])[..], b"null", &longs(&[2, -7])].concat();
    assert_eq!(read(&union, &raw, 3).unwrap(), [["-"], ["\"null\""], ["-7"]]);
}

#[test]
fn what_is_no_logical_type_is_what_it_is_written_as() {
    for (of, kind) in [
        (r#"{"type": "string", "logicalType": "date"}"#, "string"),
        (r#"{"type": "bytes", "logicalType": "decimal", "precision": 0}"#, "bytes"),
        (r#"{"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}"#, "bytes"),
        (r#"{"type": "bytes", "logicalType": "decimal", "precision": 4}"#, "bytes (decimal(4, 0))"),
        (
            r#"{"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 5}"#,
            "fixed(2)",
        ),
        (
            r#"{"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 4}"#,
            "fixed(2) (decimal(4, 0))",
        ),
        (r#"{"type": "long", "logicalType": "timestamp-nanos"}"#, "long (timestamp-nanos)"),
        (r#"{"type": {"type": "long", "logicalType": "time-micros"}}"#, "long (time-micros)"),
        (
            r#"{"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}"#,
            "fixed(16) (uuid)",
        ),
        (r#"{"type": "fixed", "name": "f", "size": 15, "logicalType": "uuid"}"#, "fixed(15)"),
    ] {
        assert_eq!(layout(&record(&[of])).fields[0].kind, kind, "{of}");
    }
}

/// A decimal that has more digits than its type is read as it is: its column says that it does not fit.
#[test]
fn long_decimals_keep_their_digits() {
    let of = r#"{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}"#;
    let raw =
        [&longs(&[1])[..], &[5], &longs(&[17]), &[1], &[0; 16], &longs(&[1]), &[0xff]].concat();
    let rows = read(&record(&[of]), &raw, 3).unwrap();
    assert_eq!(rows, [["0.5"], ["34028236692093846346337460743176821145.6"], ["-0.1"]]);
}

#[test]
fn names_are_looked_up_in_their_namespaces() {
    let schema = r#"{"type": "record", "name": "r", "namespace": "a.b", "fields": [
        {"name": "x", "type": {"type": "enum", "name": "e", "symbols": ["P", "Q"]}},
        {"name": "y", "type": "a.b.e"}, {"name": "z", "type": {"type": "record", "name": "c.d.r", "fields": [
            {"name": "v", "type": {"type": "fixed", "name": "f", "size": 1}}, {"name": "w", "type": "c.d.f"}]}},
        {"name": "q", "type": "e"}]}"#;
    assert_eq!(names(schema), ["x", "y", "z.v", "z.w", "q"]);
    let raw = [&longs(&[0, 1])[..], b"vw", &longs(&[1])].concat();
    assert_eq!(read(schema, &raw, 1).unwrap(), [["P", "Q", "\\x76", "\\x77", "Q"]]);
}

#[test]
fn schemas_that_are_none_are_told() {
    let part = r#"{"type": "record", "name": "r", "fields""#;
    for (schema, told) in [
        ("", "no JSON"),
        ("17", "stands for a type"),
        ("[]", "a union without types"),
        (r#""what""#, "there is no type what"),
        (r#"{"name": "x"}"#, "a type without type"),
        (r#"{"type": "record", "fields": []}"#, "without name"),
        (&format!("{part}: 3}}"), "fields that are no list"),
        (&format!("{part}: [{{\"name\": \"a\"}}]}}"), "a field without name or type"),
        (r#"{"type": "enum", "name": "e", "symbols": [1]}"#, "a symbol that is no text"),
        (r#"{"type": "fixed", "name": "f", "size": -1}"#, "the size of f"),
        (
            r#"[{"type": "fixed", "name": "f", "size": 1}, {"type": "fixed", "name": "f", "size": 1}]"#,
            "two types f",
        ),
        (&"[".repeat(10_000), "no JSON"),
    ] {
        match Schema::parse(schema.as_bytes()) {
            Err(Fault::Unknown(text)) => assert!(text.contains(told), "{schema}: {text}"),
            other => panic!("{schema}: {other:?}"),
        }
    }
}

/// Few types that are many columns, or many within each other.
#[test]
fn schemas_that_grow_are_told() {
    let grown = |level: usize, inner: String, name: &str| {
        let fields = ["a", "b"].map(|field| {
            let of = if field == "a" { inner.clone() } else { format!("\"{name}{}\"", level - 1) };
            format!(r#"{{"name": "{field}", "type": {of}}}"#)
        });
        format!(
            r#"{{"type": "record", "name": "{name}{level}", "fields": [{}]}}"#,
            fields.join(", ")
        )
    };
    let last = r#"{"type": "record", "name": "t0", "fields": [{"name": "x", "type": "int"}]}"#;
    let doubled = (1..30).fold(last.to_owned(), |inner, level| grown(level, inner, "t"));
    let made = Layout::new(Schema::parse(doubled.as_bytes()).unwrap());
    assert!(matches!(&made, Err(Fault::Unknown(text)) if text.contains("fields")), "{made:?}");
    // Types that name each other, so that their JSON is not deep.
    let chained = (1..200).fold(last.to_owned(), |types, level| {
        let field = format!(r#"{{"name": "x", "type": "t{}"}}"#, level - 1);
        format!(r#"{types}, {{"type": "record", "name": "t{level}", "fields": [{field}]}}"#)
    });
    let schema = record(&[&format!("[{chained}]"), "\"t199\""]);
    let made = Layout::new(Schema::parse(schema.as_bytes()).unwrap());
    assert!(
        matches!(&made, Err(Fault::Unknown(text)) if text.contains("within 64 records")),
        "{made:?}"
    );
}

#[test]
fn what_blocks_say_is_checked() {
    let of_longs = record(&[r#""long""#]);
    for (raw, rows, told) in [
        (longs(&[1, 2, 3]), 2, "bytes behind the last record"),
        (longs(&[1, 2]), 3, "3 records in 2 bytes"),
        (vec![0x80, 0x80], 2, "record 1 of the block: they end in the middle"),
        (vec![2, 0x80], 2, "record 2 of the block: they end in the middle"),
    ] {
        match read(&of_longs, &raw, rows) {
            Err(Fault::Damaged(text)) => assert!(text.contains(told), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let nulls = record(&[r#"{"type": "array", "items": "null"}"#]);
    let many = longs(&[1 << 50, 0]);
    assert!(matches!(read(&nulls, &many, 1), Err(Fault::TooLarge(_))));
    // Who does not read them passes over them, however many there are.
    assert_eq!(read_some(&nulls, &[false], &many, 1).unwrap(), [Vec::<String>::new()]);
    let itself = record(&[r#""r""#]);
    assert!(matches!(read(&itself, &[], 1), Err(Fault::Damaged(text)) if text.contains("within")));
    let rows_of_nothing = record(&[r#""null""#]);
    assert!(matches!(read(&rows_of_nothing, &[], 1 << 30), Err(Fault::TooLarge(_))));
    assert_eq!(read(&rows_of_nothing, &[], 2).unwrap(), [["-"], ["-"]]);
}

#[test]
fn heads_of_blocks_are_read_when_they_are_there() {
    let head = longs(&[700, 1 << 20]);
    for bytes in 0..head.len() {
        assert_eq!(BlockHead::decode(&head[..bytes]).unwrap(), None);
    }
    let whole = BlockHead::decode(&[&head[..], b"more"].concat()).unwrap().unwrap();
    assert_eq!((whole.rows, whole.bytes, whole.head_bytes), (700, 1 << 20, head.len()));
    let another = BlockHead::decode(MAGIC).unwrap_err().to_string();
    assert!(another.contains("another file begins"), "{another}");
    for wrong in [[-1, 5], [5, -1], [1 << 40, 5]] {
        assert!(BlockHead::decode(&longs(&wrong)).is_err());
    }
}
