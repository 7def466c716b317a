//! Files as programs write them, by hand: the bytes, and the table that was meant.

use crate::read::{read, same};

/// Checks names, types and values. The expected table: a line of names with types, then one for each row; `|` between fields, `~` is
/// NULL, and `\n` within a value a newline.
fn check(bytes: &[u8], expected: &str) {
    let shown = String::from_utf8_lossy(bytes).into_owned();
    let table = match read(bytes) {
        Ok(table) => table,
        Err(error) => panic!("{shown}\nrefused: {error}"),
    };
    let mut lines = expected.lines();
    let names: Vec<String> = table
        .names
        .iter()
        .zip(&table.types)
        .map(|(name, data_type)| format!("{name} {data_type}"))
        .collect();
    let evidence = table.evidence.join("\n  ");
    assert_eq!(names.join("|"), lines.next().unwrap(), "\n{shown}\n  {evidence}");
    let rows: Vec<Vec<Option<String>>> = lines
        .map(|line| line.split('|').map(|v| (v != "~").then(|| v.replace("\\n", "\n"))).collect())
        .collect();
    let alike = rows.len() == table.rows.len()
        && rows.iter().zip(&table.rows).all(|(a, b)| {
            a.len() == b.len()
                && a.iter().zip(b).zip(&table.types).all(|((a, b), t)| same(a, b, *t))
        });
    assert!(alike, "{shown}\nfound {:?}\nexpected {rows:?}\n  {evidence}", table.rows);
    assert_eq!(table.rejects, 0, "{shown}\n  {evidence}");
}

pub fn check_text(text: &str, expected: &str) {
    check(text.as_bytes(), expected);
}

/// Bytes of windows-1252.
fn latin(text: &str) -> Vec<u8> {
    let windows = |c: char| match c {
        '€' => 0x80,
        '–' => 0x96,
        '’' => 0x92,
        '“' => 0x93,
        '”' => 0x94,
        c => u8::try_from(c).unwrap(),
    };
    text.chars().map(windows).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn excel_of_germany_writes_semicolons_and_commas() {
    check(
        &latin(
            "Kunde;Betrag;Datum\r\nMüller GmbH;1.234,50;31.12.2024\r\nJäger & Söhne;-7,00;01.01.2025\r\n",
        ),
        "Kunde VARCHAR|Betrag DECIMAL(18,2)|Datum DATE\nMüller GmbH|1234.50|2024-12-31\nJäger & Söhne|-7.00|2025-01-01",
    );
}

#[test]
fn excel_names_its_separator_in_the_first_line() {
    check_text("sep=;\r\nid;name\r\n1;a,b\r\n2;c,d\r\n", "id BIGINT|name VARCHAR\n1|a,b\n2|c,d");
    check_text("\u{feff}sep=,\r\nid,name\r\n1,a\r\n", "id BIGINT|name VARCHAR\n1|a");
    check_text("\"sep=\t\"\nid\tname\n1\ta;b\n2\tc\n", "id BIGINT|name VARCHAR\n1|a;b\n2|c");
}

#[test]
fn excel_writes_unicode_text_with_tabs() {
    check(
        &utf16("\u{feff}Име\tn\r\nЕлена\t1\r\n\"a\tb\"\t2\r\n"),
        "Име VARCHAR|n BIGINT\nЕлена|1\na\tb|2",
    );
}

#[test]
fn a_mark_stands_before_quotes() {
    check_text("\u{feff}\"id\",\"na,me\"\n\"1\",\"x\"\n", "id BIGINT|na,me VARCHAR\n1|x");
}

#[test]
fn quotes_decide_where_names_are_more_than_fields() {
    check_text(
        "\"id\",\"title\",\"Reject\"\n\"39O0\",\"Answer a survey.\"\n\"3A10\",\"Rate it, please\"\n\"3B11\",\"Draw a box\"\n",
        "id VARCHAR|title VARCHAR|Reject VARCHAR\n39O0|Answer a survey.|~\n3A10|Rate it, please|~\n3B11|Draw a box|~",
    );
    check_text(
        "HITId,Title,Text\n\"A1 b\",\"Say it, now\",\"x\"\n\"C2 d\",\"Do it, then\",\"y\"\n",
        "HITId VARCHAR|Title VARCHAR|Text VARCHAR\nA1 b|Say it, now|x\nC2 d|Do it, then|y",
    );
}

#[test]
fn names_stand_above_text() {
    check_text(
        "state,2018\nAlabama,R+27\nAlaska,R+15\nArizona,R+9\nMaine,D+5\nOhio,R+7\n",
        "state VARCHAR|2018 VARCHAR\nAlabama|R+27\nAlaska|R+15\nArizona|R+9\nMaine|D+5\nOhio|R+7",
    );
    check_text(
        "What is your age group?,\"In general, how often do you fly each year?\",Do you recline?\n30-44,Never,Sometimes\n18-29,Once a month or less,Always\n30-44,Never,Never\n> 60,Once a year or less,Sometimes\n",
        "What is your age group? VARCHAR|In general, how often do you fly each year? VARCHAR|Do you recline? VARCHAR\n30-44|Never|Sometimes\n18-29|Once a month or less|Always\n30-44|Never|Never\n> 60|Once a year or less|Sometimes",
    );
    check_text(
        "firstName,lastName,eMail\nAnn,Lee,ann@x.org\nBob,Ray,bob@y.com\nCid,Fox,cid@z.net\n",
        "firstName VARCHAR|lastName VARCHAR|eMail VARCHAR\nAnn|Lee|ann@x.org\nBob|Ray|bob@y.com\nCid|Fox|cid@z.net",
    );
    check_text(
        "gene_symbol\tpathway\nTP53\tp53 signaling\nBRCA1\tDNA repair\nEGFR\tMAPK\n",
        "gene_symbol VARCHAR|pathway VARCHAR\nTP53|p53 signaling\nBRCA1|DNA repair\nEGFR|MAPK",
    );
    check_text(
        "Party,Vote\nDemocrat,Yes\nRepublican,No\nDemocrat,Yes\nDemocrat,No\nRepublican,No\n",
        "Party VARCHAR|Vote VARCHAR\nDemocrat|Yes\nRepublican|No\nDemocrat|Yes\nDemocrat|No\nRepublican|No",
    );
}

#[test]
fn rows_without_names_stay_rows() {
    check_text(
        "GET,/index.html,ok\nGET,/a.css,ok\nPOST,/login,denied\nGET,/b.css,ok\n",
        "c1 VARCHAR|c2 VARCHAR|c3 VARCHAR\nGET|/index.html|ok\nGET|/a.css|ok\nPOST|/login|denied\nGET|/b.css|ok",
    );
    check_text(
        "5.1,3.5,setosa\n4.9,3.0,setosa\n6.2,3.4,virginica\n",
        "c1 DECIMAL(18,1)|c2 DECIMAL(18,1)|c3 VARCHAR\n5.1|3.5|setosa\n4.9|3.0|setosa\n6.2|3.4|virginica",
    );
    check_text(
        "e,x,y\np,x,s\ne,b,s\np,x,y\ne,x,s\n",
        "c1 VARCHAR|c2 VARCHAR|c3 VARCHAR\ne|x|y\np|x|s\ne|b|s\np|x|y\ne|x|s",
    );
    check_text(
        "ann@x.org,Berlin\nbob@y.com,Paris\ncid@z.net,Rome\n",
        "c1 VARCHAR|c2 VARCHAR\nann@x.org|Berlin\nbob@y.com|Paris\ncid@z.net|Rome",
    );
    check_text(
        "AAPL,2024-01-02\nMSFT,2024-01-02\n",
        "c1 VARCHAR|c2 DATE\nAAPL|2024-01-02\nMSFT|2024-01-02",
    );
}

#[test]
fn a_preamble_with_commas_is_read_over() {
    check_text(
        "Report: Sales by region, product, and year\nGenerated 1 Jan 2020, 10:00\n\nid,name,amount,day\n1,Ann,2.50,2020-01-01\n2,Bob,3.50,2020-01-02\n3,Cid,4.50,2020-01-03\n",
        "id BIGINT|name VARCHAR|amount DECIMAL(18,2)|day DATE\n1|Ann|2.50|2020-01-01\n2|Bob|3.50|2020-01-02\n3|Cid|4.50|2020-01-03",
    );
    check_text(
        "Transactions of account 12345\n\nDate,Amount\n2024-01-02,5.00\n2024-01-03,-7.25\n2024-01-04,1.00\n",
        "Date DATE|Amount DECIMAL(18,2)\n2024-01-02|5.00\n2024-01-03|-7.25\n2024-01-04|1.00",
    );
}

#[test]
fn clients_of_databases_draw_tables() {
    check_text(
        " id | name  \n----+-------\n  1 | Ann\n  2 | \n(2 rows)\n\n",
        "id BIGINT|name VARCHAR\n1|Ann\n2|~",
    );
    check_text(
        " id |  name  | v \n----+--------+---\n  1 | Ann B. | 5\n  2 | Bob    | 6\n(2 rows)\n",
        "id BIGINT|name VARCHAR|v BIGINT\n1|Ann B.|5\n2|Bob|6",
    );
    check_text(
        "+----+------+\n| id | name |\n+----+------+\n|  1 | Ann  |\n|  2 | Bob  |\n+----+------+\n2 rows in set (0.00 sec)\n",
        "id BIGINT|name VARCHAR\n1|Ann\n2|Bob",
    );
    check_text(
        "id\tname\tday\n1\tAnn\t2024-01-02\n2\tNULL\tNULL\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Ann|2024-01-02\n2|NULL|~",
    );
}

#[test]
fn markdown_tables_have_bars_and_a_line_of_dashes() {
    check_text(
        "| id | name | amount |\n|----|:-----|-------:|\n| 1 | Ann Lee | 2.5 |\n| 2 | Bob | 3.5 |\n",
        "id BIGINT|name VARCHAR|amount DECIMAL(18,1)\n1|Ann Lee|2.5\n2|Bob|3.5",
    );
    check_text("id | name\n--- | ---\n1 | Ann\n2 | Bob\n", "id BIGINT|name VARCHAR\n1|Ann\n2|Bob");
}

#[test]
fn columns_are_aligned_with_spaces() {
    check_text(
        "PID   USER      CPU  MEM\n1     root      0.0  1.5\n23    daemon    0.5  10.25\n1234  postgres  12.0 3.0\n",
        "PID BIGINT|USER VARCHAR|CPU DECIMAL(18,1)|MEM DECIMAL(18,2)\n1|root|0.0|1.5\n23|daemon|0.5|10.25\n1234|postgres|12.0|3.0",
    );
    check_text(
        "  1959   1   -12.5\n  1960  10     3.25\n  1961   2   100.0\n  1962   3     0.5\n",
        "c1 BIGINT|c2 BIGINT|c3 DECIMAL(18,2)\n1959|1|-12.5\n1960|10|3.25\n1961|2|100.0\n1962|3|0.5",
    );
}

#[test]
fn delimiters_of_several_characters() {
    check_text(
        "id||name||v\n1||Ann||2.5\n2||Bob||\n",
        "id BIGINT|name VARCHAR|v DECIMAL(18,1)\n1|Ann|2.5\n2|Bob|~",
    );
    check_text(
        "id~^~name~^~v\n1~^~Ann~^~5\n2~^~Bob, Jr.~^~6\n",
        "id BIGINT|name VARCHAR|v BIGINT\n1|Ann|5\n2|Bob, Jr.|6",
    );
    check_text(
        "id::name::year\n1::Toy Story (1995)::1995\n2::Heat, a film::1996\n",
        "id BIGINT|name VARCHAR|year BIGINT\n1|Toy Story (1995)|1995\n2|Heat, a film|1996",
    );
    check_text("id|~|name\n1|~|Ann\n2|~|Bob\n", "id BIGINT|name VARCHAR\n1|Ann\n2|Bob");
}

#[test]
fn tildes_enclose_text_between_carets() {
    check_text(
        "~01001~^~0100~^~Butter, salted~^3.5\n~01002~^~0100~^~Cheese ^ blue~^6\n",
        "c1 VARCHAR|c2 VARCHAR|c3 VARCHAR|c4 DECIMAL(18,1)\n01001|0100|Butter, salted|3.5\n01002|0100|Cheese ^ blue|6",
    );
}

#[test]
fn r_names_rows_and_not_their_column() {
    check_text(
        "\"mpg\" \"cyl\"\n\"Mazda RX4\" 21 6\n\"Fiat 128\" 32.4 4\n",
        "c1 VARCHAR|mpg DECIMAL(18,1)|cyl BIGINT\nMazda RX4|21|6\nFiat 128|32.4|4",
    );
    check_text(
        "\"\",\"mpg\",\"cyl\"\n\"Mazda RX4\",21,6\n\"Fiat 128\",32.4,NA\n",
        "c1 VARCHAR|mpg DECIMAL(18,1)|cyl BIGINT\nMazda RX4|21|6\nFiat 128|32.4|~",
    );
    check_text(
        "weight\theight\nann\t60\t1.70\nbob\t80\t1.85\n",
        "c1 VARCHAR|weight BIGINT|height DECIMAL(18,2)\nann|60|1.70\nbob|80|1.85",
    );
}

#[test]
fn comments_stand_before_and_among_rows() {
    check_text(
        "// exported by tool\n// version 2, build 7\nid,name\n1,a\n2,b\n",
        "id BIGINT|name VARCHAR\n1|a\n2|b",
    );
    check_text(
        "# units: m, s\nt,x\n0,1.5\n1,2.5\n# restart\n2,3.5\n",
        "t BIGINT|x DECIMAL(18,1)\n0|1.5\n1|2.5\n2|3.5",
    );
    check_text(
        "id,name,v\n1,a,2\n// half, way\n2,b,3\n3,c,4\n",
        "id BIGINT|name VARCHAR|v BIGINT\n1|a|2\n2|b|3\n3|c|4",
    );
    check_text(
        "# station, 1, 2\n# a, b, c\n# d\n# e\nday,t,r\n2020-01-01,1.5,0\n2020-01-02,2.5,1\n",
        "day DATE|t DECIMAL(18,1)|r BIGINT\n2020-01-01|1.5|0\n2020-01-02|2.5|1",
    );
}

#[test]
fn single_quotes_enclose_where_few_rows_need_them() {
    check_text(
        "id,name,v\n1,Ann,5\n2,'Lee, Bob',6\n3,Cid,7\n4,Dee,8\n",
        "id BIGINT|name VARCHAR|v BIGINT\n1|Ann|5\n2|Lee, Bob|6\n3|Cid|7\n4|Dee|8",
    );
    check_text(
        "id,name\n1,it's\n2,O'Neil\n3,'t Hooft\n",
        "id BIGINT|name VARCHAR\n1|it's\n2|O'Neil\n3|'t Hooft",
    );
}

#[test]
fn carriage_returns_end_lines_though_a_quoted_field_has_a_newline() {
    check_text("id,note\r1,\"a\nb\"\r2,c\r3,d\r", "id BIGINT|note VARCHAR\n1|a\\nb\n2|c\n3|d");
}

#[test]
fn thousands_are_set_apart_by_spaces_and_apostrophes() {
    check_text(
        "land;n\nFR;1\u{a0}234\u{a0}567\nDE;12\u{a0}345\nES;7\n",
        "land VARCHAR|n BIGINT\nFR|1234567\nDE|12345\nES|7",
    );
    check_text(
        "land;n\nFR;1\u{202f}234,5\nDE;12\u{202f}345,25\n",
        "land VARCHAR|n DECIMAL(18,2)\nFR|1234.5\nDE|12345.25",
    );
    check_text(
        "land;n\nFR;1\u{2009}234\nDE;12\u{2009}345\n",
        "land VARCHAR|n BIGINT\nFR|1234\nDE|12345",
    );
    check_text(
        "Ort;CHF\nBern;1'234.50\nUri;12'345.00\n",
        "Ort VARCHAR|CHF DECIMAL(18,2)\nBern|1234.50\nUri|12345.00",
    );
    check_text(
        "Ort;CHF\nBern;1’234.50\nUri;12’345.00\n",
        "Ort VARCHAR|CHF DECIMAL(18,2)\nBern|1234.50\nUri|12345.00",
    );
}

#[test]
fn amounts_with_signs_are_text_and_it_is_said() {
    let table = read(b"item,price\nTea,\"$1,234.50\"\nPot,$2.00\n").unwrap();
    assert_eq!(table.types[1].to_string(), "VARCHAR");
    assert!(
        table.evidence.iter().any(|e| e.contains("price") && e.contains("'$'")),
        "{:?}",
        table.evidence
    );
    let table = read(b"item,share\nTea,12.5%\nPot,87.5%\n").unwrap();
    assert!(
        table.evidence.iter().any(|e| e.contains("share") && e.contains("'%'")),
        "{:?}",
        table.evidence
    );
    let table = read(b"item,sum\nTea,\"(1,234)\"\nPot,17\n").unwrap();
    assert!(
        table.evidence.iter().any(|e| e.contains("sum") && e.contains("parentheses")),
        "{:?}",
        table.evidence
    );
}

#[test]
fn pandas_writes_an_index_without_a_name() {
    check_text(",a,b\n0,1,x\n1,2,y\n", "c1 BIGINT|a BIGINT|b VARCHAR\n0|1|x\n1|2|y");
}

#[test]
fn dumps_of_postgresql_and_mysql_are_read() {
    check_text(
        "1\tAnn\\tB\t\\N\n2\tBob\t2024-01-02\n",
        "c1 BIGINT|c2 VARCHAR|c3 DATE\n1|Ann\\tB|~\n2|Bob|2024-01-02",
    );
    check_text(
        "\"1\",\"say \\\"hi\\\"\",\"x\"\n\"2\",\"b\",\"y\"\n",
        "c1 BIGINT|c2 VARCHAR|c3 VARCHAR\n1|say \"hi\"|x\n2|b|y",
    );
}

#[test]
fn exports_of_applications() {
    // Google Forms.
    check_text(
        "\"Timestamp\",\"Your name\",\"Why?\"\n\"2024/01/02 10:11:12 AM GMT+1\",\"Ann\",\"Well, because\nso\"\n\"2024/01/03 11:12:13 AM GMT+1\",\"Bob\",\"\"\n",
        "Timestamp VARCHAR|Your name VARCHAR|Why? VARCHAR\n2024/01/02 10:11:12 AM GMT+1|Ann|Well, because\\nso\n2024/01/03 11:12:13 AM GMT+1|Bob|",
    );
    // The World Bank.
    check_text(
        "\"Data Source\",\"World Development Indicators\",\n\n\"Last Updated Date\",\"2024-05-30\",\n\n\"Country Name\",\"Country Code\",\"1960\",\"1961\",\"1962\"\n\"Aruba\",\"ABW\",\"54608\",\"55811\",\"56682\"\n\"Bahamas, The\",\"BHS\",\"1\",\"2\",\"\"\n",
        "Country Name VARCHAR|Country Code VARCHAR|1960 BIGINT|1961 BIGINT|1962 BIGINT\nAruba|ABW|54608|55811|56682\nBahamas, The|BHS|1|2|~",
    );
    // A bank of Germany.
    check(
        &latin(
            "\"Kontonummer:\";\"DE12 / Girokonto\";\n\n\"Von:\";\"01.01.2024\";\n\"Bis:\";\"31.01.2024\";\n\n\"Buchungstag\";\"Empfänger\";\"Betrag (EUR)\";\n\"02.01.2024\";\"Stadtwerke Köln\";\"-1.050,25\";\n\"15.01.2024\";\"Lohn\";\"2.000,00\";\n",
        ),
        "Buchungstag DATE|Empfänger VARCHAR|Betrag (EUR) DECIMAL(18,2)\n2024-01-02|Stadtwerke Köln|-1050.25\n2024-01-15|Lohn|2000.00",
    );
    // SAP: bars around, and a line of dashes.
    check_text(
        "-------------------------\n| MATNR | Menge | ME |\n-------------------------\n| A-100 |    12 | ST |\n| B-200 |     7 | KG |\n-------------------------\n",
        "MATNR VARCHAR|Menge BIGINT|ME VARCHAR\nA-100|12|ST\nB-200|7|KG",
    );
    // Eurostat.
    check_text(
        "freq,geo\\TIME_PERIOD\t2019 \t2020 \t2021 \nA,DE\t1.5 \t: \t2.5 \nA,FR\t2.0 \t3.5 \t4.5 \n",
        "freq,geo\\TIME_PERIOD VARCHAR|2019 DECIMAL(18,1)|2020 DECIMAL(18,1)|2021 DECIMAL(18,1)\nA,DE|1.5|~|2.5\nA,FR|2.0|3.5|4.5",
    );
}

#[test]
fn two_columns_and_few_rows() {
    check_text("name,age\nAnn,30\n", "name VARCHAR|age BIGINT\nAnn|30");
    check_text("key;value\na;1\n", "key VARCHAR|value BIGINT\na|1");
    check_text("1,2\n", "c1 BIGINT|c2 BIGINT\n1|2");
    check_text("a\nb\n", "c1 VARCHAR\na\nb");
}

#[test]
fn rows_lack_fields_at_their_end() {
    check_text(
        "a,b,c,d\n1,2\n3,4,5\n6,7,8,9\n1,2,3,4\n",
        "a BIGINT|b BIGINT|c BIGINT|d BIGINT\n1|2|~|~\n3|4|5|~\n6|7|8|9\n1|2|3|4",
    );
    check_text("a,b\n1,2,\n3,4,\n", "a BIGINT|b BIGINT|c3 VARCHAR\n1|2|~\n3|4|~");
    check_text("a,b,c,\n1,2,3\n4,5,6\n", "a BIGINT|b BIGINT|c BIGINT\n1|2|3\n4|5|6");
}

#[test]
fn a_footer_of_totals_and_sources_is_left_out() {
    check_text(
        "region,n,v\nNorth,1,2.5\nSouth,2,3.5\n\nSource: Office of Statistics, 2024\nTotals may not add up\n",
        "region VARCHAR|n BIGINT|v DECIMAL(18,1)\nNorth|1|2.5\nSouth|2|3.5",
    );
}

#[test]
fn names_that_are_numbers_in_quotes_stand_above_numbers_without() {
    check_text(
        "\"\",\"142.24\",\"144.78\",\"147.32\"\n\"9.4\",0,0,0\n\"9.5\",0,0,1\n\"9.6\",2,0,0\n",
        "c1 DECIMAL(18,1)|142.24 BIGINT|144.78 BIGINT|147.32 BIGINT\n9.4|0|0|0\n9.5|0|0|1\n9.6|2|0|0",
    );
}

#[test]
fn names_are_quoted_otherwise_than_values() {
    check_text("'year'\t'votes'\n1996\t7\n1997\t8\n", "year BIGINT|votes BIGINT\n1996|7\n1997|8");
    check_text("`a`|`b`\n1|2\n3|4\n", "a BIGINT|b BIGINT\n1|2\n3|4");
    // An apostrophe that only some have is theirs.
    check_text("'t,n\n1,2\n3,4\n", "'t BIGINT|n BIGINT\n1|2\n3|4");
}

#[test]
fn names_that_are_written_keep_their_place() {
    check_text("\"\",C1,C2\nR1,1,2\nR2,3,4\n", "c1_2 VARCHAR|C1 BIGINT|C2 BIGINT\nR1|1|2\nR2|3|4");
}

#[test]
fn truth_values_among_quoted_texts_are_no_names() {
    check_text(
        "\"blue sea\",true,\"Ann\"\n\"old oak\",false,\"Bob\"\n\"dry sand\",true,\"Eve\"\n\"red hat\",true,\"Léa\"\n",
        "c1 VARCHAR|c2 BOOLEAN|c3 VARCHAR\nblue sea|true|Ann\nold oak|false|Bob\ndry sand|true|Eve\nred hat|true|Léa",
    );
}

/// Symptom: 1000 pieces were 1, and the prices text. Cause: `1.000` was taken for a fraction, so that no column might have decimal commas.
#[test]
fn points_beside_decimal_commas_are_those_of_thousands() {
    check_text(
        "Datum;Menge;Preis;Summe\n01.02.2024;1.000;12,50;12.500,00\n15.02.2024;20;3,99;79,80\n",
        "Datum DATE|Menge BIGINT|Preis DECIMAL(18,2)|Summe DECIMAL(18,2)\n\
         2024-02-01|1000|12.50|12500.00\n2024-02-15|20|3.99|79.80",
    );
    check_text(
        "Ort;Einwohner;Fläche\nA;1.234;10,5\nB;12.345;20,25\nC;999;3,0\n",
        "Ort VARCHAR|Einwohner BIGINT|Fläche DECIMAL(18,2)\nA|1234|10.5\nB|12345|20.25\nC|999|3.0",
    );
    // They may be codes, or come from elsewhere.
    check_text(
        "name;lat;preis\na;48.135;12,50\nb;52.520;3,99\n",
        "name VARCHAR|lat VARCHAR|preis DECIMAL(18,2)\na|48.135|12.50\nb|52.520|3.99",
    );
    // Fractions of seconds are none of numbers.
    check_text(
        "t;v\n2024-01-01 00:00:00.500;12,5\n2024-01-01 00:00:01.250;3,25\n",
        "t TIMESTAMP|v DECIMAL(18,2)\n2024-01-01 00:00:00.500|12.5\n2024-01-01 00:00:01.250|3.25",
    );
    // A point before a fraction.
    check_text(
        "lat;v\n48.1351;12,5\n48.123;3,25\n",
        "lat DECIMAL(18,4)|v VARCHAR\n48.1351|12,5\n48.123|3,25",
    );
}

#[test]
fn a_point_that_may_be_one_of_thousands_is_said() {
    let said =
        |text: &str| read(text.as_bytes()).unwrap().evidence.join(" ").contains("may be thousands");
    assert!(said("Ort;Einwohner\nA;1.234\nB;12.345\nC;999\n"));
    assert!(!said("Ort;v\nA;1.234\nB;12.345\nC;9.75\n"));
    assert!(!said("Ort;v\nA;0.234\nB;12.345\nC;9\n"));
}

/// Symptom: a row was a comment. Spreadsheets show `########` for dates before 1900.
#[test]
fn what_is_too_wide_for_its_column_is_no_comment() {
    check_text(
        "d,v\n2024-01-01,1\n########,2\n2024-01-03,3\n",
        "d VARCHAR|v BIGINT\n2024-01-01|1\n########|2\n2024-01-03|3",
    );
}

/// Symptom: with `--no-header` a first record of NULL was no row.
#[test]
fn a_first_record_of_null_is_a_row_where_there_is_no_header() {
    let given = coload_source::GivenDialect {
        header: Some(coload_source::Header::Absent),
        ..coload_source::GivenDialect::default()
    };
    let table = crate::read::read_given(b",,\na,1,x\nb,2,y\n,,\n", &given).unwrap();
    assert_eq!(table.rows.len(), 4, "{:?}", table.evidence);
    assert!(table.rows[0].iter().all(Option::is_none));
}

/// Symptom: units were a row, and all columns text.
#[test]
fn units_below_the_names_are_no_row() {
    check_text(
        "Date,Temp,Rain\n,°C,mm\n2024-01-01,5.5,0.0\n2024-01-02,6.5,1.2\n",
        "Date DATE|Temp °C DECIMAL(18,1)|Rain mm DECIMAL(18,1)\n2024-01-01|5.5|0.0\n2024-01-02|6.5|1.2",
    );
    check_text(
        "Zeit;Regen;Schnee\n;[mm];[mm]\n01.02.2024;1,5;0,0\n28.02.2024;2,25;1,5\n",
        "Zeit DATE|Regen [mm] DECIMAL(18,2)|Schnee [mm] DECIMAL(18,1)\n2024-02-01|1.5|0.0\n2024-02-28|2.25|1.5",
    );
    check_text(
        "\"TOA5\",\"Station\",\"CR1000\",\"12345\",\"CR1000.Std.28\",\"CPU:prog.CR1\",\"4321\",\"Table1\"\n\
         \"TIMESTAMP\",\"RECORD\",\"AirTC_Avg\",\"RH\"\n\"TS\",\"RN\",\"Deg C\",\"%\"\n\"\",\"\",\"Avg\",\"Smp\"\n\
         \"2024-01-01 00:00:00\",0,21.5,45.2\n\"2024-01-01 00:10:00\",1,21.6,45.3\n\"2024-01-01 00:20:00\",2,21.7,45.4\n",
        "TIMESTAMP TS TIMESTAMP|RECORD RN BIGINT|AirTC_Avg Deg C Avg DECIMAL(18,1)|RH % Smp DECIMAL(18,1)\n\
         2024-01-01 00:00:00|0|21.5|45.2\n2024-01-01 00:10:00|1|21.6|45.3\n2024-01-01 00:20:00|2|21.7|45.4",
    );
    let table = read(b"stat,a,b\nmax,x,\nmin,1,2\navg,3,4\n").unwrap();
    assert_eq!(table.rows.len(), 3, "{:?}", table.evidence);
    // A row with words where others have numbers is one.
    let table = read(b"id,temp,hum\nS1,missing,missing\nS2,20.5,45\nS3,21.5,46\n").unwrap();
    assert_eq!(table.rows.len(), 3, "{:?}", table.evidence);
}

/// Symptom: three records with tabs were one, as two titles have a quote each.
#[test]
fn quotes_that_begin_one_title_and_end_another_are_text() {
    check_text(
        "Author\tTitle\nSmith\t\"Quoted title\nLee\tPlain\nKim\tEnd\"\nPark\tx\n",
        "Author VARCHAR|Title VARCHAR\nSmith|\"Quoted title\nLee|Plain\nKim|End\"\nPark|x",
    );
    check_text("id\tnote\n1\t\"two\nlines\"\n2\tx\n", "id BIGINT|note VARCHAR\n1|two\\nlines\n2|x");
}

#[test]
fn a_mark_that_stands_twice_is_no_part_of_a_name() {
    check_text("\u{feff}\u{feff}id,name\n1,Ada\n", "id BIGINT|name VARCHAR\n1|Ada");
}

/// Symptom: rows that begin with a number sign and a space were comments.
#[test]
fn a_row_that_begins_as_a_comment_does_is_one_where_its_values_fit() {
    check_text(
        "name,n\n# 1 Main St,5\nElm St,6\nOak St,7\n",
        "name VARCHAR|n BIGINT\n# 1 Main St|5\nElm St|6\nOak St|7",
    );
    check_text("a,b\n% of total,5\nsum,6\nx,7\n", "a VARCHAR|b BIGINT\n% of total|5\nsum|6\nx|7");
    check_text("id,v\n1,2\n# 3, 4\n5,6\n7,8\n", "id BIGINT|v BIGINT\n1|2\n5|6\n7|8");
    check_text("id,v\n1,2\n# a, b\n5,6\n7,8\n", "id BIGINT|v BIGINT\n1|2\n5|6\n7|8");
    // Other lines are comments, and so is a row behind a mark.
    check_text("name,n\nAnn,5\n# left\n# Bob,6\nCarl,7\n", "name VARCHAR|n BIGINT\nAnn|5\nCarl|7");
}

/// Symptom: prices of one column were two columns, whose header had one name.
#[test]
fn one_name_above_decimal_commas_is_one_column() {
    check_text("Preis\n12,50\n3,99\n7\n", "Preis DECIMAL(18,2)\n12.50\n3.99\n7");
    let table = read(b"x\n1,5\n2,7\n3,9\n").unwrap();
    assert_eq!(table.types.len(), 2, "R names rows so: {:?}", table.evidence);
}
