//! Files that somebody made who did not know how they would be read.

use crate::read::read;
use crate::wild::check_text;

#[test]
fn commas_of_numbers_are_no_delimiter() {
    check_text(
        "Rome;109,74\nOslo;759,86\nParis;433,86\n",
        "c1 VARCHAR|c2 DECIMAL(18,2)\nRome|109.74\nOslo|759.86\nParis|433.86",
    );
    check_text(
        "Rome|109,74\nOslo|759,86\nParis|433,86\n",
        "c1 VARCHAR|c2 DECIMAL(18,2)\nRome|109.74\nOslo|759.86\nParis|433.86",
    );
    check_text(
        "Rome\t109,74\nOslo\t759,86\nParis\t433,86\n",
        "c1 VARCHAR|c2 DECIMAL(18,2)\nRome|109.74\nOslo|759.86\nParis|433.86",
    );
    check_text(
        "2019-05-13T13:14:38Z\t-25,75\t413,5\n2019-05-14T13:14:38Z\t-5,75\t13,5\n2019-05-15T13:14:38Z\t-2,75\t41,5\n",
        "c1 TIMESTAMP WITH TIME ZONE|c2 DECIMAL(18,2)|c3 DECIMAL(18,1)\n2019-05-13T13:14:38Z|-25.75|413.5\n2019-05-14T13:14:38Z|-5.75|13.5\n2019-05-15T13:14:38Z|-2.75|41.5",
    );
    check_text(
        "15.03.2016 23:54~88~1,03\n06.06.2013 05:41~33~-9,20\n01.09.2017 17:20~54~2,97\n",
        "c1 TIMESTAMP|c2 BIGINT|c3 DECIMAL(18,2)\n2016-03-15 23:54|88|1.03\n2013-06-06 05:41|33|-9.20\n2017-09-01 17:20|54|2.97",
    );
    check_text(
        "# Station: 3\nTime^T1^T2\n15.03.2016 23:54^88^1,03\n06.06.2013 05:41^33^-9,20\n01.09.2017 17:20^54^2,97\n",
        "Time TIMESTAMP|T1 BIGINT|T2 DECIMAL(18,2)\n2016-03-15 23:54|88|1.03\n2013-06-06 05:41|33|-9.20\n2017-09-01 17:20|54|2.97",
    );
    check_text(
        "City|Price\nRome|109,74\nOslo|759,86\nParis|433,86\n",
        "City VARCHAR|Price DECIMAL(18,2)\nRome|109.74\nOslo|759.86\nParis|433.86",
    );
}

#[test]
fn notes_right_behind_a_table_are_left_out() {
    check_text(
        "id,name,day\n1,Anna,2021-03-04\n2,Bob,2021-03-05\n--- End of report ---\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05",
    );
    check_text(
        "City;2019;2020\nRome;12;13\nOslo;14;15\nSource: Eurostat\n",
        "City VARCHAR|2019 BIGINT|2020 BIGINT\nRome|12|13\nOslo|14|15",
    );
    check_text("id,name\n1,Anna\n2,Bob\n-- end of file\n", "id BIGINT|name VARCHAR\n1|Anna\n2|Bob");
    check_text(
        "id,name,day\n1,Anna,2021-03-04\n2,Bob,2021-03-05\n3,Eve,2021-03-06\n3 rows\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05\n3|Eve|2021-03-06",
    );
}

#[test]
fn names_that_count_the_columns() {
    check_text(
        "0,1,2\n12.5,Anna,2021-03-04\n7.25,Bob,2021-03-05\n3.5,Eve,2021-03-06\n",
        "0 DECIMAL(18,2)|1 VARCHAR|2 DATE\n12.5|Anna|2021-03-04\n7.25|Bob|2021-03-05\n3.5|Eve|2021-03-06",
    );
    check_text(
        "City|1|2|3\nRome|127.8|273.9|255.3\nOslo|243.6|322.7|923.7\nParis|84.0|393.4|223.9\n",
        "City VARCHAR|1 DECIMAL(18,1)|2 DECIMAL(18,1)|3 DECIMAL(18,1)\nRome|127.8|273.9|255.3\nOslo|243.6|322.7|923.7\nParis|84.0|393.4|223.9",
    );
    check_text(
        ",0,1\n0,12.5,7.5\n1,7.25,3.0\n2,3.5,4.0\n",
        "c1 BIGINT|0 DECIMAL(18,2)|1 DECIMAL(18,1)\n0|12.5|7.5\n1|7.25|3.0\n2|3.5|4.0",
    );
}

#[test]
fn dashes_under_names_tell_the_columns() {
    check_text(
        "  ID NAME   HIRED\n---- ------ ---------\n   1 Anna   10-JUL-12\n   2 Bob    18-DEC-24\n\n2 rows selected.\n",
        "ID BIGINT|NAME VARCHAR|HIRED DATE\n1|Anna|2012-07-10\n2|Bob|2024-12-18",
    );
    check_text(
        "ID|NAME  \n--|------\n 1|Anna  \n 2|Bob   \n\n2 rows selected.\n",
        "ID BIGINT|NAME VARCHAR\n1|Anna\n2|Bob",
    );
}

#[test]
fn rows_are_named_without_a_name() {
    check_text(
        "\"name\" \"code\"\n\"1\" \"Anna\" \"DE\"\n\"2\" \"Bob\" \"FR\"\n\"3\" \"Eve\" \"DE\"\n",
        "c1 BIGINT|name VARCHAR|code VARCHAR\n1|Anna|DE\n2|Bob|FR\n3|Eve|DE",
    );
    check_text(
        "\"name\" \"score\"\n\"1\" \"Anna\" 0.5\n\"2\" \"Bob\" 1.5\n\"3\" \"Eve\" 2.5\n",
        "c1 BIGINT|name VARCHAR|score DECIMAL(18,1)\n1|Anna|0.5\n2|Bob|1.5\n3|Eve|2.5",
    );
    check_text(
        "\"id\" \"name\" \"score\"\n\"1\" 1 \"Anna\" 3.5\n\"2\" 2 \"Bob\" 4.5\n\"3\" 3 \"Eve\" 2.5\n",
        "c1 BIGINT|id BIGINT|name VARCHAR|score DECIMAL(18,1)\n1|1|Anna|3.5\n2|2|Bob|4.5\n3|3|Eve|2.5",
    );
}

#[test]
fn a_web_server_names_fields_in_a_comment() {
    check_text(
        "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2021-03-04 00:00:01\n#Fields: date time c-ip cs-method cs-uri-stem sc-status\n2021-03-04 00:00:01 10.0.0.1 GET /a.html 200\n2021-03-04 00:00:02 10.0.0.2 GET /b.html 404\n2021-03-04 00:00:05 10.0.0.1 POST /c.html 200\n",
        "date DATE|time TIME|c-ip VARCHAR|cs-method VARCHAR|cs-uri-stem VARCHAR|sc-status BIGINT\n2021-03-04|00:00:01|10.0.0.1|GET|/a.html|200\n2021-03-04|00:00:02|10.0.0.2|GET|/b.html|404\n2021-03-04|00:00:05|10.0.0.1|POST|/c.html|200",
    );
}

#[test]
fn addresses_and_markers_of_null_are_no_names() {
    check_text(
        "Ann Lee;Rome;ann@example.com\nBob Ray;Oslo;bob@example.com\nEve Fox;Paris;eve@example.com\n",
        "c1 VARCHAR|c2 VARCHAR|c3 VARCHAR\nAnn Lee|Rome|ann@example.com\nBob Ray|Oslo|bob@example.com\nEve Fox|Paris|eve@example.com",
    );
    check_text(
        "1\tN/A\tclosed\n2\t2\topen\n3\t6\topen\n4\t8\tpending\n",
        "c1 BIGINT|c2 VARCHAR|c3 VARCHAR\n1|N/A|closed\n2|2|open\n3|6|open\n4|8|pending",
    );
}

#[test]
fn delimiters_of_several_characters_beside_quotes_and_signs() {
    check_text(
        "'ID'|~|'ZIP'|~|'P'\n'1'|~|'03388'|~|'x'\n'2'|~|'03389'|~|'y'\n",
        "ID BIGINT|ZIP VARCHAR|P VARCHAR\n1|03388|x\n2|03389|y",
    );
    check_text(
        "Ann::10.1%::02706::x\nBob::94.2%::85784::y\nEve::95.2%::85785::z\n",
        "c1 VARCHAR|c2 VARCHAR|c3 VARCHAR|c4 VARCHAR\nAnn|10.1%|02706|x\nBob|94.2%|85784|y\nEve|95.2%|85785|z",
    );
    check_text(
        "a~b~c\n1.5~3.3%~x\n2.5~4.3%~y\n3.5~5.3%~z\n",
        "a DECIMAL(18,1)|b VARCHAR|c VARCHAR\n1.5|3.3%|x\n2.5|4.3%|y\n3.5|5.3%|z",
    );
    check_text(
        "1@@Ann@@+40 854@@x\n2@@Bob@@+41 123@@y\n3@@Eve@@+42 234@@z\n",
        "c1 BIGINT|c2 VARCHAR|c3 VARCHAR|c4 VARCHAR\n1|Ann|+40 854|x\n2|Bob|+41 123|y\n3|Eve|+42 234|z",
    );
    check_text(
        "id@@name@@day\n1@@Anna@@2021-03-04\n2@@Bob@@2021-03-05\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05",
    );
    check_text(
        "\"id\"^|^\"name\"^|^\"day\"\n\"1\"^|^\"Anna\"^|^\"2021-03-04\"\n\"2\"^|^\"Bob\"^|^\"2021-03-05\"\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05",
    );
    check_text(
        "'id'~|~'name'~|~'day'\n'1'~|~'Anna'~|~'2021-03-04'\n'2'~|~'Bob'~|~'2021-03-05'\n",
        "id BIGINT|name VARCHAR|day DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05",
    );
    check_text(
        "\"Nunez, Zoe\"\t\"23:30:31\"\n\"Wright, Ann\"\t\"11:30:31\"\n\"Green, Pat\"\t\"07:12:00\"\n",
        "c1 VARCHAR|c2 TIME\nNunez, Zoe|23:30:31\nWright, Ann|11:30:31\nGreen, Pat|07:12:00",
    );
}

#[test]
fn comments_and_titles_do_not_outvote_rows() {
    check_text(
        "-- Station: Hof 3\n-- Interval: 10 min, UTC\n05.02.2021 10:19:03,41.57,-108.09\n25.05.2022 09:44:47,431.38,-37.46\n07.05.2014 10:12:12,90.45,-83.62\n",
        "c1 TIMESTAMP|c2 DECIMAL(18,2)|c3 DECIMAL(18,2)\n2021-02-05 10:19:03|41.57|-108.09\n2022-05-25 09:44:47|431.38|-37.46\n2014-05-07 10:12:12|90.45|-83.62",
    );
    check_text(
        "# Station: Hof 3\n# Interval: 10 min, UTC\nTime^T1^T2\n2019-01-27T11:29:04^1.17^92.0\n2019-01-27T11:39:04^1.18^92.1\n2019-01-27T11:49:04^1.16^92.3\n",
        "Time TIMESTAMP|T1 DECIMAL(18,2)|T2 DECIMAL(18,1)\n2019-01-27T11:29:04|1.17|92.0\n2019-01-27T11:39:04|1.18|92.1\n2019-01-27T11:49:04|1.16|92.3",
    );
    check_text(
        "# ----------------------------------------\n# All Web Site Data\n# Pages\n# 20210101-20210131\n# ----------------------------------------\nPage,Pageviews,Bounce Rate\n/index.html,\"12,345,678\",52.01%\n/a/b.html,\"1,234\",41.20%\n/x.html,987,3.50%\n",
        "Page VARCHAR|Pageviews BIGINT|Bounce Rate VARCHAR\n/index.html|12345678|52.01%\n/a/b.html|1234|41.20%\n/x.html|987|3.50%",
    );
    check_text(
        "# Report\n#\n# Date: 2021\nAnn,Rome,9:43 PM,22:13:31\nBob,Oslo,10:33 PM,17:31:07\n",
        "c1 VARCHAR|c2 VARCHAR|c3 TIME|c4 TIME\nAnn|Rome|9:43 PM|22:13:31\nBob|Oslo|10:33 PM|17:31:07",
    );
    check_text(
        "Please call, wrong address; urgent\n\n1,Anna,2021-03-04\n2,Bob,2021-03-05\n3,Eve,2021-03-06\n",
        "c1 BIGINT|c2 VARCHAR|c3 DATE\n1|Anna|2021-03-04\n2|Bob|2021-03-05\n3|Eve|2021-03-06",
    );
    check_text(
        "Date|2021-03-04\nName|Ann\n\n1|2.5|2021-02-11 17:05:00|x1\n2|3.5|2021-02-12 17:05:00|x2\n3|4.5|2021-02-13 17:05:00|x3\n",
        "c1 BIGINT|c2 DECIMAL(18,1)|c3 TIMESTAMP|c4 VARCHAR\n1|2.5|2021-02-11 17:05:00|x1\n2|3.5|2021-02-12 17:05:00|x2\n3|4.5|2021-02-13 17:05:00|x3",
    );
}

#[test]
fn single_quotes_with_escapes() {
    check_text(
        "'ID'|'NAME'|'TIME'\n'1'|'Linda'|'13:57'\n'2'|'Zoe O\\'Brien'|'20:40'\n'3'|'Eve'|'20:41'\n",
        "ID BIGINT|NAME VARCHAR|TIME VARCHAR\n1|Linda|13:57\n2|Zoe O'Brien|20:40\n3|Eve|20:41",
    );
    check_text(
        "'id','note','day'\n'1','ei tietoa','2021-03-04'\n'2','it\\'s','2021-03-05'\n'3','x','2021-03-06'\n",
        "id BIGINT|note VARCHAR|day DATE\n1|ei tietoa|2021-03-04\n2|it's|2021-03-05\n3|x|2021-03-06",
    );
}

#[test]
fn a_quote_inside_a_field_costs_no_tabs() {
    check_text(
        "60\t423.64\tf\tRed set \"Pro\"\n62\t560.80\tt\tBlue set\n",
        "c1 BIGINT|c2 DECIMAL(18,2)|c3 VARCHAR|c4 VARCHAR\n60|423.64|f|Red set \"Pro\"\n62|560.80|t|Blue set",
    );
    check_text(
        "1\t245.08\tDesk lamp\n2\t608.96\tArt print\n3\t168.91\tUSB cable\n4\t694.53\tCoffee cup\n",
        "c1 BIGINT|c2 DECIMAL(18,2)|c3 VARCHAR\n1|245.08|Desk lamp\n2|608.96|Art print\n3|168.91|USB cable\n4|694.53|Coffee cup",
    );
}

/// Text in an encoding of the Encoding Standard.
fn encoded(label: &str, text: &str) -> Vec<u8> {
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
    let (bytes, _, lost) = encoding.encode(text);
    assert!(!lost, "{label}: {text}");
    bytes.into_owned()
}

#[test]
fn a_phrase_in_each_row_does_not_choose_the_encoding() {
    let repeated = |phrase: &str| [phrase; 40].join(" ");
    for (label, names, value, phrase) in [
        ("gbk", "产品名称;状态;姓名", "咖啡杯;处理中;王芳", "加急处理"),
        ("koi8-r", "Дата;Примечание;Город", "2021-01-26;ждёт подтверждения;Москва", "брак"),
        ("windows-1250", "Név;Megjegyzés;Összeg", "Zsófia Szűcs;sürgős;Győr", "hűtő"),
        ("euc-kr", "전화번호;상태;번호", "서울특별시;완료;배송 준비", "완료"),
    ] {
        let text = format!("{names}\n{value}\nx;{};y\n", repeated(phrase));
        let table = read(&encoded(label, &text)).unwrap();
        assert_eq!(table.names.join(";"), names, "{label}: {:?}", table.evidence);
        assert_eq!(table.rows[1][1].as_deref(), Some(&*repeated(phrase)), "{label}");
    }
}

#[test]
fn a_currency_sign_among_western_letters_is_the_euro() {
    let text = "Artikel;Preis €\nTürgriff;12\nGehäuse;15\nSchlüssel;18\n";
    let table = read(&encoded("iso-8859-15", text)).unwrap();
    assert_eq!(table.names, ["Artikel", "Preis €"], "{:?}", table.evidence);
}

#[test]
fn korean_in_utf_16_without_a_mark_is_text() {
    let text = "번호;단가;코드\n1;990.08;가510\n2;697.92;C469\n3;475.94;C058\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let table = read(&bytes).unwrap();
    assert_eq!(table.names, ["번호", "단가", "코드"], "{:?}", table.evidence);
}
