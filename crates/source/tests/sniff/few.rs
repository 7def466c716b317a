//! Files of a row or two, and lines above tables that have no names: what little there is must tell.

use coload_source::{FixedWidths, GivenDialect};

use crate::read::{read, read_given};
use crate::wild::check_text;

#[test]
fn a_comma_between_words_is_no_delimiter_beside_another() {
    for delimiter in ['\t', ';', '|'] {
        check_text(
            &format!(
                "01:25{delimiter}Lee, Ann\n08:25{delimiter}Kim, Bob\n09:53{delimiter}Wong, Eve\n"
            ),
            "c1 VARCHAR|c2 VARCHAR\n01:25|Lee, Ann\n08:25|Kim, Bob\n09:53|Wong, Eve",
        );
    }
    check_text("a, b\n1, 2\n3, 4\n", "a BIGINT|b BIGINT\n1|2\n3|4");
}

#[test]
fn addresses_of_hosts_are_no_numbers() {
    check_text(
        "ip\tn\n214.245.177.191\t1\n9.152.181.121\t2\n216.201.219.104\t3\n",
        "ip VARCHAR|n BIGINT\n214.245.177.191|1\n9.152.181.121|2\n216.201.219.104|3",
    );
    check_text("n;m\n1.234.567.890;1\n2.000.000;2\n", "n BIGINT|m BIGINT\n1234567890|1\n2000000|2");
}

#[test]
fn delimiters_of_several_signs_are_told_by_one_line() {
    check_text(
        "1@@Ann Lee@@2.5@@x, y\n",
        "c1 BIGINT|c2 VARCHAR|c3 DECIMAL(18,1)|c4 VARCHAR\n1|Ann Lee|2.5|x, y",
    );
    check_text("1|~|Ann Lee|~|2.5\n", "c1 BIGINT|c2 VARCHAR|c3 DECIMAL(18,1)\n1|Ann Lee|2.5");
    check_text(
        "\"a\"|~|\"b\"\n1|~|\"x\ny\"\n2|~|\"z\nu\"\n3|~|\"v\"\n",
        "a BIGINT|b VARCHAR\n1|x\\ny\n2|z\\nu\n3|v",
    );
    check_text("1||'it''s'||2.5\n", "c1 BIGINT|c2 VARCHAR|c3 DECIMAL(18,1)\n1|it's|2.5");
    check_text("'70';;'Ann';;'x, y'\n", "c1 BIGINT|c2 VARCHAR|c3 VARCHAR\n70|Ann|x, y");
    // Values, not signs between delimiters.
    check_text("1,-,2\n3,-,4\n", "c1 BIGINT|c2 VARCHAR|c3 BIGINT\n1|-|2\n3|-|4");
}

#[test]
fn keys_and_numbers_are_two_columns() {
    check_text("ON=5.36\nFR=22.77\n", "c1 VARCHAR|c2 DECIMAL(18,2)\nON|5.36\nFR|22.77");
    check_text(
        "city:price\nRome:138.39\nOslo:91.94\n",
        "city VARCHAR|price DECIMAL(18,2)\nRome|138.39\nOslo|91.94",
    );
    check_text(
        "48213:-70,18745\n48214:183,12335\n48215:243,74194\n",
        "c1 BIGINT|c2 DECIMAL(18,5)\n48213|-70.18745\n48214|183.12335\n48215|243.74194",
    );
    check_text("pen:789\nmug:68\ncup:31\n", "c1 VARCHAR|c2 BIGINT\npen|789\nmug|68\ncup|31");
    check_text("a.org:80\nb.org:81\nc.org:82\n", "c1 VARCHAR\na.org:80\nb.org:81\nc.org:82");
    check_text("12:30\n12:31\n12:32\n", "c1 VARCHAR\n12:30\n12:31\n12:32");
}

#[test]
fn lines_above_a_table_without_names() {
    check_text(
        "VERSION 1.2\nEXPORT;2021\n1;Ann;2.5;x\n2;Bob;3.5;y\n3;Eve;4.5;z\n4;Kim;5.5;x\n",
        "c1 BIGINT|c2 VARCHAR|c3 DECIMAL(18,1)|c4 VARCHAR\n1|Ann|2.5|x\n2|Bob|3.5|y\n3|Eve|4.5|z\n4|Kim|5.5|x",
    );
    check_text(
        "Date: 2021-03-04\nName: Ann, of Rome\n\n1,2.5,x\n2,3.5,y\n3,4.5,z\n4,5.5,x\n",
        "c1 BIGINT|c2 DECIMAL(18,1)|c3 VARCHAR\n1|2.5|x\n2|3.5|y\n3|4.5|z\n4|5.5|x",
    );
    for banner in [
        "/*\n * Stations, of Rome\n */\n",
        "/* Stations, of Rome */\n",
        "*****\n*** Stations, of Rome ***\n*****\n",
    ] {
        check_text(
            &format!("{banner}id,name,day\n1,Ann,2021-03-04\n2,Bob,2021-03-05\n3,Eve,2021-03-06\n"),
            "id BIGINT|name VARCHAR|day DATE\n1|Ann|2021-03-04\n2|Bob|2021-03-05\n3|Eve|2021-03-06",
        );
    }
}

#[test]
fn names_may_end_with_a_delimiter_that_rows_have_not() {
    check_text(
        "n\tname\tphone\t\n8\tAnn Lee\t+46 948 26\n9\tBob Lee\t+40 197 21\n7\tEve Lee\t+41 197 21\n8\tKim Lee\t+42 197 21\n\
         1\tA Lee\t+46 948 26\n2\tB Lee\t+40 197 21\n3\tC Lee\t+41 197 21\n4\tD Lee\t+42 197 21\n5\tE Lee\t+40 197 21\n6\tF Lee\t+40 197 21\n",
        "n BIGINT|name VARCHAR|phone VARCHAR\n8|Ann Lee|+46 948 26\n9|Bob Lee|+40 197 21\n7|Eve Lee|+41 197 21\n8|Kim Lee|+42 197 21\n\
         1|A Lee|+46 948 26\n2|B Lee|+40 197 21\n3|C Lee|+41 197 21\n4|D Lee|+42 197 21\n5|E Lee|+40 197 21\n6|F Lee|+40 197 21",
    );
}

#[test]
fn a_carriage_return_ends_the_only_line() {
    check_text("1,\"a; b\",\"c\"\r", "c1 BIGINT|c2 VARCHAR|c3 VARCHAR\n1|a; b|c");
}

#[test]
fn an_escaped_quote_before_a_delimiter_is_escaped() {
    let mut text = "\"\" \"id\" \"size\"\n".to_owned();
    for row in 1..=12 {
        let size = if row == 7 { "5\\\" pipe" } else { "pipe" };
        text.push_str(&format!("\"{row}\" {} \"{size}\"\n", 700 + row));
    }
    let table = read(text.as_bytes()).unwrap();
    assert_eq!((table.rejects, table.rows.len()), (0, 12), "{:?}", table.evidence);
    assert_eq!(table.rows[6][2].as_deref(), Some("5\" pipe"), "{:?}", table.evidence);
}

#[test]
fn a_record_of_fixed_widths_may_have_no_field() {
    let fixed = Some(FixedWidths::parse("5-6").unwrap());
    let given = GivenDialect { fixed, ..GivenDialect::default() };
    for text in ["abcdefgh\nabcdefgh\n\nabc\n", "abcd12\nabcd13\nabc\n", "abc\nabc\n\nx\n"] {
        read_given(text.as_bytes(), &given).unwrap();
    }
}

#[test]
fn a_long_fraction_above_shorter_ones_is_no_name() {
    check_text(
        "Rome|21,995673344132783\nOslo|-37,2391066000075\n",
        "c1 VARCHAR|c2 DOUBLE\nRome|21.995673344132783\nOslo|-37.2391066000075",
    );
}

#[test]
fn a_line_behind_a_short_table_tells_no_delimiter() {
    check_text(
        "1::Ann Lee::13:02:43::260,76::x, y\n2::Bob Lee::15:29:00::515,04::y, z\n3::Eve Lee::20:16:33::646,71::z, u\n\n3 rows\n",
        "c1 BIGINT|c2 VARCHAR|c3 TIME|c4 DECIMAL(18,2)|c5 VARCHAR\n\
         1|Ann Lee|13:02:43|260.76|x, y\n2|Bob Lee|15:29:00|515.04|y, z\n3|Eve Lee|20:16:33|646.71|z, u",
    );
}

#[test]
fn signs_beside_a_delimiter_are_of_the_values() {
    check_text(
        "name|sum\nAnn|+731,58\nBob|+128,64\nEve|+496,48\nKim|+318,84\nLee|+1,5\nAda|+1,5\nUma|+2,5\nIda|+3,5\nZoe|+4,5\nPia|+5,5\n",
        "name VARCHAR|sum VARCHAR\nAnn|+731,58\nBob|+128,64\nEve|+496,48\nKim|+318,84\nLee|+1,5\nAda|+1,5\nUma|+2,5\nIda|+3,5\nZoe|+4,5\nPia|+5,5",
    );
    check_text(
        "2025-06-14 20:38:40 | WARN | com.example.Main | user \"x\" came in\n2020-10-28 01:02:18 | WARN | com.example.Db | came after 30 s\n\
         2022-10-27 02:01:24 | ERROR | com.example.Db | came after 30 s\n",
        "c1 TIMESTAMP|c2 VARCHAR|c3 VARCHAR|c4 VARCHAR\n2025-06-14 20:38:40|WARN|com.example.Main|user \"x\" came in\n\
         2020-10-28 01:02:18|WARN|com.example.Db|came after 30 s\n2022-10-27 02:01:24|ERROR|com.example.Db|came after 30 s",
    );
}

#[test]
fn a_line_of_values_above_names_is_none() {
    check_text(
        "VERSION 1.2\nEXPORT,2021-03-04,10:00\nid,a,b,c,d\n1,x,2,y,z\n2,y,3,z,u\n3,z,4,u,v\n",
        "id BIGINT|a VARCHAR|b BIGINT|c VARCHAR|d VARCHAR\n1|x|2|y|z\n2|y|3|z|u\n3|z|4|u|v",
    );
}

#[test]
fn codes_above_codes_are_no_names() {
    check_text(
        "Coffee Cup 50%\tDE51942247768961294982\nhose\tDE17727665148481498609\nplate 3/4\tDE13736770355867633609\nplate\tDE42843966280797338836\n",
        "c1 VARCHAR|c2 VARCHAR\nCoffee Cup 50%|DE51942247768961294982\nhose|DE17727665148481498609\nplate 3/4|DE13736770355867633609\nplate|DE42843966280797338836",
    );
}

#[test]
fn names_of_numbers() {
    check_text(
        ",0\n1821,269\n1822,321\n1823,585\n",
        "c1 BIGINT|0 BIGINT\n1821|269\n1822|321\n1823|585",
    );
    check_text(",0\n,269\n1822,321\n", "c1 BIGINT|c2 BIGINT\n~|0\n~|269\n1822|321");
    check_text(
        "type,0.0,0.5,1.0,1.5,2.0,2.5\nA,0.0,0.0,5.0,7.5,7.5,7.5\nB,0.0,0.0,4.0,6.5,7.5,7.5\n",
        "type VARCHAR|0.0 DECIMAL(18,1)|0.5 DECIMAL(18,1)|1.0 DECIMAL(18,1)|1.5 DECIMAL(18,1)|2.0 DECIMAL(18,1)|2.5 DECIMAL(18,1)\n\
         A|0.0|0.0|5.0|7.5|7.5|7.5\nB|0.0|0.0|4.0|6.5|7.5|7.5",
    );
}

#[test]
fn rows_that_r_names_by_numbers_of_its_own() {
    check_text(
        "\"x\",\"y\"\n\"18\",-0.5,1.5\n\"15\",-1.5,0.5\n\"24\",-1.5,2.5\n",
        "c1 BIGINT|x DECIMAL(18,1)|y DECIMAL(18,1)\n18|-0.5|1.5\n15|-1.5|0.5\n24|-1.5|2.5",
    );
}

#[test]
fn words_that_are_as_many_by_chance_are_no_columns() {
    check_text(
        "Name: Bank AG\nDate: 2021-04-01 08:15\nday;day 2;note;note 2;sum\n2021-01-02;2021-01-03;wrong address;call back;16,95\n\
         2021-01-04;2021-01-05;call back;call soon;42,55\n2021-01-06;2021-01-07;call soon;call back;47,07\n\
         2021-01-08;2021-01-09;sent back;call soon;13,27\n",
        "day DATE|day 2 DATE|note VARCHAR|note 2 VARCHAR|sum DECIMAL(18,2)\n\
         2021-01-02|2021-01-03|wrong address|call back|16.95\n2021-01-04|2021-01-05|call back|call soon|42.55\n\
         2021-01-06|2021-01-07|call soon|call back|47.07\n2021-01-08|2021-01-09|sent back|call soon|13.27",
    );
}

#[test]
fn a_backslash_before_a_delimiter_escapes_it_where_records_agree_then() {
    check_text(
        "id,place,n\n1,Rome\\, Italy,5\n2,Oslo,7\n3,Lima,9\n",
        "id BIGINT|place VARCHAR|n BIGINT\n1|Rome, Italy|5\n2|Oslo|7\n3|Lima|9",
    );
    check_text(
        "1,Rome\\, Italy,a\\nb\n2,\\N,c\\\\d\n3,Lima\\, Peru,e\n",
        "c1 BIGINT|c2 VARCHAR|c3 VARCHAR\n1|Rome, Italy|a\\nb\n2|~|c\\d\n3|Lima, Peru|e",
    );
    // Backslashes of paths are text, whether or not a delimiter follows.
    check_text(
        "id,path,n\n1,C:\\temp\\,5\n2,D:\\old\\,7\n",
        "id BIGINT|path VARCHAR|n BIGINT\n1|C:\\temp\\|5\n2|D:\\old\\|7",
    );
    let table = read(b"id,path,n\n1,C:\\Users\\,x,5\n2,D:\\Users\\a,7\n3,b,8\n4,c,9\n").unwrap();
    assert_eq!(table.dialect.escapes, coload_source::Escapes::Quoted, "{:?}", table.evidence);
}

#[test]
fn a_given_decimal_separator_leaves_the_thousands_to_be_found() {
    let given = GivenDialect { decimal: Some(b','), ..Default::default() };
    let text = "day;a;b\n1;1.197,5;1.195\n2;1.196,25;1.105\n3;7;12\n";
    let found = read_given(text.as_bytes(), &given).unwrap();
    let types: Vec<String> = found.types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["BIGINT", "DECIMAL(18,2)", "BIGINT"], "{:?}", found.evidence);
    assert_eq!(found.rows[1][1..], [Some("1196.25".to_owned()), Some("1105".to_owned())]);
    // What is given of thousands holds.
    let given = GivenDialect { thousands: Some(b'\''), ..given };
    let found = read_given(text.as_bytes(), &given).unwrap();
    assert!(found.types[1].to_string().starts_with("VARCHAR"));
}
