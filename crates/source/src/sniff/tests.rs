#![allow(clippy::unwrap_used)]

use coload_ddl::column_sql;
use coload_ddl::parse_columns;
use proptest::prelude::*;

use super::delimiter::DELIMITERS;
use super::*;
use crate::aligned::Aligned;
use crate::dialect::{GivenPolicies, InvalidBytes, LineEnd};

fn sniff_whole(text: &str) -> Sniffed {
    sniff("t.csv", text.as_bytes(), SampleEnd::Whole, &GivenDialect::default(), None).unwrap()
}

fn columns(schema: &Schema) -> String {
    schema.columns().iter().map(column_sql).collect::<Vec<_>>().join(", ")
}

/// Checks delimiter, header and columns.
fn check(text: &str, delimiter: char, header: Header, expected: &str) {
    let found = sniff_whole(text);
    assert_eq!(found.dialect.delimiter as char, delimiter, "{text:?} {:?}", found.evidence);
    assert_eq!(found.dialect.header, header, "{text:?} {:?}", found.evidence);
    assert_eq!(columns(&found.schema), expected, "{text:?} {:?}", found.evidence);
}

#[test]
fn reads_lineitem() {
    let text = "1|155190|7706|17.00|21168.23|0.04|N|O|1996-03-13|egular courts, above the|\n\
                1|67310|7311|36.00|45983.16|0.09|N|O|1996-04-12|ly final dependencies: sl|\n\
                2|63700|3701|8.00|13309.60|0.10|N|O|1996-01-29|riously. regular, express dep|\n";
    check(
        text,
        '|',
        Header::Absent,
        "c1 BIGINT, c2 BIGINT, c3 BIGINT, c4 DECIMAL(18,2), c5 DECIMAL(18,2), c6 DECIMAL(18,2), \
         c7 VARCHAR, c8 VARCHAR, c9 DATE, c10 VARCHAR",
    );
    assert_eq!(sniff_whole(text).dialect.trailing, Trailing::Delimiter);
}

#[test]
fn delimiters_and_headers_are_found() {
    use Header::{Absent, Present};
    check("id,name\n1,Ann\n2,Bob\n", ',', Present, "id BIGINT, name VARCHAR");
    check("1,Ann\r\n2,Bob\r\n", ',', Absent, "c1 BIGINT, c2 VARCHAR");
    check("a;b\n1,5;x\n2,5;y\n", ';', Present, "a DECIMAL(18,1), b VARCHAR");
    check("a\tb\n1\t2020-01-01\n", '\t', Present, "a BIGINT, b DATE");
    check("on|ok\ntrue|1e+3\nfalse|2\n", '|', Present, "\"on\" BOOLEAN, ok DOUBLE");
    check("zip,n\n00123,1\n10115,2\n", ',', Present, "zip VARCHAR, n BIGINT");
    check("name,city\nAnn,Rome\nBob,Oslo\n", ',', Present, "name VARCHAR, city VARCHAR");
    check("x,y\ny,x\nx,y\n", ',', Absent, "c1 VARCHAR, c2 VARCHAR");
    // Without names it may be an empty column, which is kept.
    check("Ann!,it is,\nBob!,so,\n", ',', Absent, "c1 VARCHAR, c2 VARCHAR, c3 VARCHAR");
    check("a,b,\n1,2,\n", ',', Present, "a BIGINT, b BIGINT");
    check("a,b\n1,\n2,\n", ',', Present, "a BIGINT, b VARCHAR");
    // More digits in the first row than in the others do not make it a header.
    check("1.255\n0.5\n0.25\n", ',', Absent, "c1 DECIMAL(18,3)");
    check("1.5,x\n2,x\n", ',', Absent, "c1 DECIMAL(18,1), c2 VARCHAR");
    check("\n\nid\n1\n", ',', Present, "id BIGINT");
}

#[test]
fn one_column_works() {
    use Header::{Absent, Present};
    check("1\n2\n3", ',', Absent, "c1 BIGINT");
    check("n\n1\n2\n", ',', Present, "n BIGINT");
    check("apple\npear\n", ',', Absent, "c1 VARCHAR");
    check("1\n", ',', Absent, "c1 BIGINT");
}

#[test]
fn header_only_is_text() {
    check("id,name\n", ',', Header::Present, "id VARCHAR, name VARCHAR");
    check("id,name", ',', Header::Present, "id VARCHAR, name VARCHAR");
}

#[test]
fn names_are_unique() {
    let given = GivenDialect { header: Some(Header::Present), ..GivenDialect::default() };
    let text = b"a,A,,a_2, b \n1,2,3,4,5\n";
    let found = sniff("t", text, SampleEnd::Whole, &given, None).unwrap();
    assert_eq!(columns(&found.schema), "a BIGINT, \"A_3\" BIGINT, c3 BIGINT, a_2 BIGINT, b BIGINT");
}

#[test]
fn quotes_are_found() {
    let multi = "id,note\n1,\"a, b\nand \"\"c\"\"\"\n2,\"x\"\n";
    check(multi, ',', Header::Present, "id BIGINT, note VARCHAR");
    assert_eq!(sniff_whole(multi).dialect.quote, Some(b'"'));
    let single = "1;'a;b'\n2;'c'\n";
    check(single, ';', Header::Absent, "c1 BIGINT, c2 VARCHAR");
    assert_eq!(sniff_whole(single).dialect.quote, Some(b'\''));
    let inches = "1|\"x 5\n2|\"y\" z\n3|\"\n";
    assert_eq!(sniff_whole(inches).dialect.quote, None);
    let escaped = "1,\"a \\\"b\\\", c\"\n2,\"d\"\n";
    assert_eq!(sniff_whole(escaped).dialect.escape, Some(b'\\'));
    assert_eq!(columns(&sniff_whole(escaped).schema), "c1 BIGINT, c2 VARCHAR");
}

#[test]
fn stray_quotes_are_text_where_the_fields_agree_then() {
    let text = "1,'it's a','b'\n2,'won't','c, d'\n3,'e','f'\n4,'can't','g'\n";
    let found = sniff_whole(text);
    assert_eq!(
        (found.dialect.quote, found.dialect.policies.quotes),
        (Some(b'\''), Quotes::Lenient)
    );
    assert_eq!(found.schema.len(), 3);
}

#[test]
fn lines_before_the_table_and_several_header_rows_are_found() {
    let text = "Sales of May\n\nid,amount,day\n1,2.5,2024-05-01\n2,3.5,2024-05-02\n";
    let found = sniff_whole(text);
    assert_eq!((found.dialect.skip, found.dialect.header_rows), (2, 1), "{:?}", found.evidence);
    let text = "amount,day\nin EUR,of sale\n1.5,2024-05-01\n2.5,2024-05-02\n";
    let found = sniff_whole(text);
    assert_eq!(found.dialect.header_records(), 2);
    assert_eq!(columns(&found.schema), "\"amount in EUR\" DECIMAL(18,1), \"day of sale\" DATE");
}

#[test]
fn ragged_records_are_padded_where_names_tell_the_columns() {
    let found = sniff_whole("a,b,c\n1,2,3\n4,5\n6,7,8\n9,1\n");
    assert_eq!(found.dialect.policies.ragged, Ragged::Pad);
    assert_eq!(columns(&found.schema), "a BIGINT, b BIGINT, c BIGINT");
    let found = sniff_whole("1,2,3\n4,5\n6,7,8\n9,1\n5,5,5\n");
    assert_eq!(found.dialect.policies.ragged, Ragged::Reject);
}

#[test]
fn a_header_that_comes_again_is_still_one() {
    check("a,b\n1,x\na,b\n2,y\n", ',', Header::Present, "a VARCHAR, b VARCHAR");
}

#[test]
fn unusual_delimiters_are_found_and_those_inside_values_are_not() {
    for (text, delimiter) in [
        ("a, b, c\n1, 2, x\n3, 4, y\n", ", "),
        ("a\u{a7}b\u{a7}c\n1\u{a7}2\u{a7}x\n", "\u{a7}"),
        ("a^b^c\n1^2^x\n3^4^y\n", "^"),
        ("a~b~c\n1~2~x\n3~4~y\n", "~"),
        ("12:30:01\n12:30:02\n", ","),
        ("at 12:30 see http://a.b\nat 12:31 see http://c.d\n", " "),
    ] {
        let found = sniff_whole(text);
        let split = match &found.dialect.long_delimiter {
            Some(long) => long.bytes().to_vec(),
            None => vec![found.dialect.delimiter],
        };
        assert_eq!(String::from_utf8_lossy(&split), delimiter, "{text:?} {:?}", found.evidence);
    }
}

#[test]
fn numbers_and_dates_are_read_where_they_can_only_be_of_one_form() {
    for (rows, expected) in [
        ("12,50;x\n1.234,75;y\n", "DECIMAL(18,2)"),
        ("1,234.5;x\n2;y\n", "DECIMAL(18,1)"),
        ("1,234,567;x\n2;y\n", "BIGINT"),
        // A thousand or a fraction.
        ("1,234;x\n2;y\n", "VARCHAR"),
        ("31.12.2024;x\n1.1.2024;y\n", "DATE"),
        ("31/12/2024 10:00;x\n1/1/2024 09:30:15;y\n", "TIMESTAMP"),
        ("12/31/24;x\n1/1/24;y\n", "DATE"),
        ("5-Mar-2024;x\n06-may-2024;y\n", "DATE"),
        // The first of May, or the fifth of January.
        ("1/5/2024;x\n2/5/2024;y\n", "VARCHAR"),
        ("28.13.2024;x\n1.1.2024;y\n", "VARCHAR"),
    ] {
        check(&format!("a;b\n{rows}"), ';', Header::Present, &format!("a {expected}, b VARCHAR"));
    }
    check(
        "May;;\n;;\nname;amount;day\nAnn;1.234,50;31.12.2024\nBob;7,5;1.2.2024\n",
        ';',
        Header::Present,
        "name VARCHAR, amount DECIMAL(18,2), day DATE",
    );
    let found = sniff_whole("a;b\n1/5/2024;x\n2/5/2024;y\n");
    assert!(
        found.evidence.iter().any(|e| e.contains("%d/%m/%Y or %m/%d/%Y")),
        "{:?}",
        found.evidence
    );
}

#[test]
fn backslash_n_is_null() {
    let found = sniff_whole("1\t\\N\n\\N\t2\n");
    assert_eq!(columns(&found.schema), "c1 BIGINT, c2 BIGINT");
    assert_eq!(found.dialect.nulls, [b"".to_vec(), b"\\N".to_vec()]);
}

#[test]
fn given_parts_stay() {
    let given = GivenDialect {
        delimiter: Some(b".".to_vec()),
        quote: Some(None),
        header: Some(Header::Absent),
        nulls: Some(vec![b"NA".to_vec()]),
        skip: Some(1),
        comment: Some(Some(b'#')),
        trailing: Some(Trailing::Newline),
        ..GivenDialect::default()
    };
    let text = b"junk\n#x.y\na.NA.\n\"1.5.\n";
    let found = sniff("t", text, SampleEnd::Whole, &given, None).unwrap();
    let expected = Dialect {
        delimiter: b'.',
        quote: None,
        nulls: vec![b"NA".to_vec()],
        skip: 1,
        comment: Some(b'#'),
        ..Dialect::default()
    };
    assert_eq!(found.dialect, expected);
    assert_eq!(columns(&found.schema), "c1 VARCHAR, c2 BIGINT, c3 VARCHAR");
}

#[test]
fn a_given_schema_tells_fields_and_header() {
    let schema = parse_columns("id BIGINT, note VARCHAR").unwrap();
    let found = |text: &str| {
        let given = GivenDialect::default();
        sniff("t", text.as_bytes(), SampleEnd::Whole, &given, Some(&schema)).unwrap().dialect
    };
    let dialect = found("1|a,b,c\n2|d,e,f\n");
    assert_eq!((dialect.delimiter, dialect.header), (b'|', Header::Absent));
    assert_eq!(found("ID,NOTE\n7,x\n").header, Header::Present);
    assert_eq!(found("key,text\n7,x\n").header, Header::Present);
    assert_eq!(found("7.5,x\n8,x\n").header, Header::Absent);
    assert_eq!(found("x 7,x\n8,x\n").header, Header::Present);
    assert_eq!(found("N/A?!,x\n8,x\n").header, Header::Absent);
    assert_eq!(found("1,\n2,\n").trailing, Trailing::Newline);
    assert_eq!(found("1,x,\n2,y,\n").trailing, Trailing::Delimiter);
    assert_eq!(found(""), Dialect::default());
    let one = parse_columns("line VARCHAR").unwrap();
    let text = b"a,b\nc,d\n";
    let dialect =
        sniff("t", text, SampleEnd::Whole, &GivenDialect::default(), Some(&one)).unwrap().dialect;
    assert_ne!(dialect.delimiter, b',');
}

#[test]
fn a_header_in_another_order_than_the_schema_is_refused() {
    let schema = parse_columns("a BIGINT, b BIGINT, c BIGINT").unwrap();
    let given = GivenDialect::default();
    let error = sniff("t.csv", b"A,c,b\n1,2,3\n", SampleEnd::Whole, &given, Some(&schema));
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("the header of t.csv has c as column 2, and the table has b there"),
        "{error}"
    );
    // Other names than the schema's are no mistake.
    sniff("t.csv", b"a,x,y\n1,2,3\n", SampleEnd::Whole, &given, Some(&schema)).unwrap();
}

#[test]
fn what_is_no_text_is_refused() {
    for (sample, expected) in [
        (&b""[..], "t.csv holds no record, so that its columns cannot be told: give --columns"),
        (b"\n\n", "holds no record"),
        (b"\x1f\x8b\x08", "t.csv looks like gzip, which is not read: decompress it first"),
        (b"PAR1\x15\x04", "looks like Parquet"),
        (b"a\0,b\0\0\n", "looks like binary data"),
    ] {
        let error = sniff("t.csv", sample, SampleEnd::Whole, &GivenDialect::default(), None);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = sniff("t.csv", b"abc", SampleEnd::Cut, &GivenDialect::default(), None);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("has no end of a record in its first 3 bytes"), "{error}");
}

#[test]
fn text_of_other_encodings_is_read_as_utf_8() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (sample, encoding, says) in [
        (utf16("\u{feff}name,n\nJürgen,1\n"), "utf-16le", "byte order mark"),
        (utf16("name,n\nJürgen,1\n"), "utf-16le", "are zeros where it has them"),
        (b"name,n\nJ\xfcrgen,1\nZo\xeb,2\n".to_vec(), "windows-1252", "2 characters are not UTF-8"),
    ] {
        let sniffed =
            sniff("t", &sample, SampleEnd::Whole, &GivenDialect::default(), None).unwrap();
        assert_eq!(sniffed.dialect.encoding.encoding.to_string(), encoding);
        assert!(sniffed.evidence[0].contains(says), "{:?}", sniffed.evidence);
        assert_eq!(columns(&sniffed.schema), "name VARCHAR, n BIGINT");
    }
    // Who says what becomes of wrong bytes says that the others are right.
    let policies =
        GivenPolicies { invalid_bytes: Some(InvalidBytes::Replace), ..Default::default() };
    let given = GivenDialect { policies, ..GivenDialect::default() };
    let sniffed = sniff("t", b"a,b\n\xfc,1\n", SampleEnd::Whole, &given, None).unwrap();
    assert_eq!(sniffed.dialect.encoding.encoding, coload_input::Encoding::Utf8);
}

#[test]
fn lone_carriage_returns_end_lines() {
    check("a,b\r1,2\r3,4\r", ',', Header::Present, "a BIGINT, b BIGINT");
    assert_eq!(sniff_whole("a,b\r1,2\r3,4\r").dialect.line_end, LineEnd::Any);
    assert_eq!(sniff_whole("a,b\r\n1,2\r\n").dialect.line_end, LineEnd::Newline);
}

#[test]
fn a_byte_order_mark_is_no_name() {
    check("\u{feff}id,name\n1,Ann\n", ',', Header::Present, "id BIGINT, name VARCHAR");
}

#[test]
fn a_cut_record_does_not_count() {
    let given = GivenDialect::default();
    let found = sniff("t", b"1,2\n3,4\n5,\"x", SampleEnd::Cut, &given, None).unwrap();
    assert_eq!(columns(&found.schema), "c1 BIGINT, c2 BIGINT");
}

proptest! {
    #[test]
    fn any_bytes_give_a_dialect_or_an_error(
        sample in prop::collection::vec(
            prop::sample::select(b"ab1.,;\t|\"'\\\n\r\0\xff#".to_vec()), 0..60),
        cut in any::<bool>(),
    ) {
        let end = if cut { SampleEnd::Cut } else { SampleEnd::Whole };
        let _ = sniff("t", &sample, end, &GivenDialect::default(), None);
        let schema = parse_columns("a BIGINT, b VARCHAR").unwrap();
        let _ = sniff("t", &sample, end, &GivenDialect::default(), Some(&schema));
    }

    #[test]
    fn a_plain_table_is_recognised(
        rows in prop::collection::vec((0i64..1000, "[a-z]{1,5}", 0u32..100), 2..20),
        delimiter in prop::sample::select(DELIMITERS.to_vec()),
        header in any::<bool>(),
        trailing in any::<bool>(),
    ) {
        let d = delimiter as char;
        let end = if trailing { format!("{d}\n") } else { "\n".to_owned() };
        let mut text = if header { format!("id{d}word{d}amount{end}") } else { String::new() };
        for (id, word, cents) in &rows {
            text.push_str(&format!("{id}{d}{word}{d}{id}.{cents:02}{end}"));
        }
        let found = sniff_whole(&text);
        prop_assert_eq!(found.dialect.delimiter, delimiter);
        prop_assert_eq!(found.dialect.header == Header::Present, header);
        let sure = header || delimiter == b'|';
        prop_assert_eq!(found.dialect.trailing == Trailing::Delimiter, trailing && sure);
        let names = if header { ["id", "word", "amount"] } else { ["c1", "c2", "c3"] };
        let more = if trailing && !sure { ", c4 VARCHAR" } else { "" };
        let [id, word, amount] = names;
        let expected = format!("{id} BIGINT, {word} VARCHAR, {amount} DECIMAL(18,2){more}");
        prop_assert_eq!(columns(&found.schema), expected);
    }
}

#[test]
fn lines_of_another_width_stand_before_names() {
    // As statistics and banks write it.
    let years = "\"Source\",\"Indicators\",\n\n\"Updated\",\"2024-05-30\",\n\n\"Name\",\"Code\",\"2010\",\"2011\",\"2012\",\"2013\"\n\
                 \"A, Rep.\",\"AR\",\"1\",\"2\",\"3\",\"4\"\n\"B\",\"BB\",\"5\",\"6\",\"7\",\"8\"\n";
    check(
        years,
        ',',
        Header::Present,
        "\"Name\" VARCHAR, \"Code\" VARCHAR, \"2010\" BIGINT, \"2011\" BIGINT, \"2012\" BIGINT, \"2013\" BIGINT",
    );
    assert_eq!(sniff_whole(years).dialect.skip, 4);
    let bank = "\"Account\";\"DE1\";\n\n\"From\";\"01.01.2024\";\n\n\"Day\";\"Text\";\"Amount\";\"Balance\";\n\
                \"13.02.2024\";\"Rent\";\"-1,50\";\"10,25\";\n\"14.02.2024\";\"Food\";\"-2,50\";\"7,75\";\n";
    check(
        bank,
        ';',
        Header::Present,
        "\"Day\" DATE, \"Text\" VARCHAR, \"Amount\" DECIMAL(18,2), \"Balance\" DECIMAL(18,2)",
    );
    assert_eq!(sniff_whole(bank).dialect.skip, 4);
    // Names may be fewer than the fields: they are no title.
    check(
        "a,b\n1,2,3,4,5\n6,7,8,9,10\n",
        ',',
        Header::Present,
        "a BIGINT, b BIGINT, c3 BIGINT, c4 BIGINT, c5 BIGINT",
    );
    // Years of rows name nothing.
    let rows = "Ann,1980,1990,2000\nBob,1981,1982,1999\nCid,1970,1971,1999\n";
    check(rows, ',', Header::Absent, "c1 VARCHAR, c2 BIGINT, c3 BIGINT, c4 BIGINT");
}

#[test]
fn drawn_tables_of_database_clients_are_read() {
    let psql = " id | name  \n----+-------\n  1 | a\n -2 | b\n(2 rows)\n\n";
    let found = sniff_whole(psql);
    assert_eq!(found.dialect.aligned, Some(Aligned::Bars), "{:?}", found.evidence);
    let psql = " id | name  | n\n----+-------+---\n  1 | a     | 5\n -2 | b     | 6\n(2 rows)\n\n";
    let found = sniff_whole(psql);
    assert_eq!(
        (found.dialect.aligned, found.dialect.footer),
        (Some(Aligned::Bars), 2),
        "{:?}",
        found.evidence
    );
    assert_eq!(columns(&found.schema), "id BIGINT, name VARCHAR, n BIGINT");
    let mysql = "+----+------+\n| id | name |\n+----+------+\n|  1 | a    |\n|  2 | b    |\n+----+------+\n2 rows in set (0.00 sec)\n";
    let found = sniff_whole(mysql);
    assert_eq!(
        (found.dialect.aligned, found.dialect.footer),
        (Some(Aligned::FramedBars), 1),
        "{:?}",
        found.evidence
    );
    // Rows that begin like the line may follow.
    for text in
        ["a,b\n-----+-----\n-1,2\n", "a,b\n---+---\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n"]
    {
        assert_eq!(sniff_whole(text).dialect.comment, None, "{text:?}");
    }
}

#[test]
fn notes_after_a_table_are_found_where_a_blank_line_sets_them_apart() {
    let rows = "id,name,v\n1,a,2\n2,b,3\n3,c,4\n";
    let found = sniff_whole(&format!("{rows}\nSource: the office\nAll rights reserved\n"));
    assert_eq!(found.dialect.footer, 2, "{:?}", found.evidence);
    assert_eq!(columns(&found.schema), "id BIGINT, name VARCHAR, v BIGINT");
    // It may be a record that was cut.
    assert_eq!(sniff_whole(&format!("{rows}4")).dialect.footer, 0);
    let cut = sniff(
        "t",
        format!("{rows}\nSource\n").as_bytes(),
        SampleEnd::Cut,
        &GivenDialect::default(),
        None,
    );
    assert_eq!(cut.unwrap().dialect.footer, 0);
}

#[test]
fn two_records_of_names_may_have_any_characters() {
    let text = "GEO,NAME,B1,M1\nid,Area Name,Estimate!!Total,Margin of Error!!Total\n1a,\"X, Y\",5,6\n2a,\"Z, Y\",7,8\n";
    assert_eq!(
        columns(&sniff_whole(text).schema),
        "\"GEO id\" VARCHAR, \"NAME Area Name\" VARCHAR, \"B1 Estimate!!Total\" BIGINT, \
         \"M1 Margin of Error!!Total\" BIGINT"
    );
}

#[test]
fn delimiters_are_told_by_what_they_leave() {
    let delimiter = |text: &str| {
        let split = sniff_whole(text).dialect;
        let long = split.long_delimiter.map(|long| long.bytes().to_vec());
        String::from_utf8(long.unwrap_or(vec![split.delimiter])).unwrap()
    };
    // Twice between all fields.
    assert_eq!(delimiter("id||name||v\n1||a||2\n2||||3\n"), "||");
    assert_eq!(delimiter("id^^name^^v\n1^^a^^2\n2^^b^^3\n"), "^^");
    assert_eq!(delimiter("a,,b,,c\n1,2,3,4,5\n"), ",");
    // The first record has no comma.
    let text = (0..20).map(|i| format!("{i}~N {i}, x~{i}\n")).collect::<String>();
    assert_eq!(delimiter(&format!("ID~NAME~VAL\n{text}")), "~");
    // Of two that split alike the one that leaves numbers.
    assert_eq!(delimiter("u,s,g\t2001 \t2002 \na,b,c\t1 \t2 \na,b,d\t3 \t4 \n"), "\t");
    // The one whose fields the quotes enclose.
    let line = |i: u64| format!("10.0.0.{i} - \"GET /{i} HTTP\" 200 {i} \"Agent (X11; Linux)\"\n");
    assert_eq!(delimiter(&(0..9).map(line).collect::<String>()), " ");
    assert_eq!(delimiter("a\tb\n1\t5\" pipe 1\n2\t5\" pipe 2\n"), "\t");
}

#[test]
fn what_stands_for_null_among_numbers_is_text_elsewhere() {
    let text =
        "id,price,day,country,size\n1,1.5,NA,NA,-\n2,NA,2024-01-02,DE,3\n3,2.25,\"NA\",\"\",\"\"\n";
    let found = sniff_whole(text);
    assert_eq!(found.dialect.typed_nulls, [&b""[..], b"-", b"NA"], "{:?}", found.evidence);
    assert_eq!(
        columns(&found.schema),
        "id BIGINT, price DECIMAL(18,2), day DATE, country VARCHAR, size BIGINT"
    );
    // In other forms too.
    let found = sniff_whole("a;b;c\n1,5;01.02.2024;x\n-;n/a;x\n2,5;13.02.2024;x\n");
    assert_eq!(
        columns(&found.schema),
        "a DECIMAL(18,1), b DATE, c VARCHAR",
        "{:?}",
        found.evidence
    );
    // Codes and not-a-numbers are what they are; a column of markers only is text.
    for (text, expected) in [
        ("a,b\n007,1\nNA,2\n", "a VARCHAR, b BIGINT"),
        ("a,b\n1.5,1\nnan,2\n", "a DOUBLE, b BIGINT"),
        ("a,b\n-,1\n-,2\n", "a VARCHAR, b BIGINT"),
        ("a,b\n1,1\nx,2\nNA,3\n", "a VARCHAR, b BIGINT"),
    ] {
        let found = sniff_whole(text);
        assert_eq!(columns(&found.schema), expected, "{:?}", found.evidence);
        assert!(found.dialect.typed_nulls.is_empty(), "{:?}", found.evidence);
    }
    let given = GivenDialect { typed_nulls: Some(vec![b"0".to_vec()]), ..GivenDialect::default() };
    let text = "a,b\n1,1\nNA,0\n";
    let found = sniff("t", text.as_bytes(), SampleEnd::Whole, &given, None).unwrap();
    assert_eq!(columns(&found.schema), "a VARCHAR, b BIGINT");
}

#[test]
fn comments_among_rows_are_found_where_none_is_like_a_row() {
    let comment = |text: &str| sniff_whole(text).dialect.comment;
    let text = "# made by hand\na,b,c\n1,2,3\n# checked, so far\n4,5,6\n7,8,9\n";
    assert_eq!(comment(text), Some(b'#'));
    assert_eq!(columns(&sniff_whole(text).schema), "a BIGINT, b BIGINT, c BIGINT");
    // Before the table they are lines to read over; rows may begin with it, and names.
    assert_eq!(comment("# made by hand\na,b,c\n1,2,3\n4,5,6\n"), None);
    assert_eq!(comment("#a,b,c\n1,2,3\n4,5,6\n"), None);
    assert_eq!(comment("a,b,c\n#1,2,3\n# x\n4,5,6\n4,5,6\n"), None);
    let given = GivenDialect { comment: Some(None), ..GivenDialect::default() };
    let found = sniff("t", text.as_bytes(), SampleEnd::Whole, &given, None).unwrap();
    assert_eq!(found.dialect.comment, None);
}

/// A text that is longer than the sample left a quote open at its end. Quotes were taken for text then, and the file was
/// refused where the text had its first newline.
#[test]
fn a_quote_that_the_end_of_the_sample_leaves_open_is_no_stray_one() {
    let given = GivenDialect::default();
    let long = "word ".repeat(20_000);
    for text in
        [format!("1,short,end\n2,\"{long}"), format!("1,\"a\"\n2,\"b\"\n3,\"{long}\n{long}")]
    {
        let found = sniff("t", text.as_bytes(), SampleEnd::Cut, &given, None).unwrap();
        assert_eq!(found.dialect.policies.quotes, Quotes::Strict, "{:?}", found.evidence);
    }
}
