#![allow(clippy::unwrap_used)]

use coload_types::parse_value;
use proptest::prelude::*;

use super::*;

fn types(list: &str) -> Vec<String> {
    let schema = parse_columns(list).unwrap();
    schema.columns().iter().map(|c| c.data_type.to_string()).collect()
}

fn error(sql: &str) -> String {
    let error = if sql.to_uppercase().contains("CREATE") {
        parse_create_table(sql).map(|_| ()).unwrap_err()
    } else {
        parse_columns(sql).map(|_| ()).unwrap_err()
    };
    error.to_string()
}

#[test]
fn reads_lineitem() {
    let (name, schema) = parse_create_table(
        "-- TPC-H\ncreate table if not exists public.\"Line Item\" (\n\
           l_orderkey BIGINT NOT NULL, /* key /* nested */ */\n\
           l_quantity DECIMAL(15, 2) not null default 0,\n\
           l_returnflag CHAR(1) NULL DEFAULT 'N',\n\
           l_shipdate DATE DEFAULT DATE '1996-03-13',\n\
           l_comment CHARACTER VARYING(44) DEFAULT 'it''s',\n\
           l_discount NUMERIC(4,2) DEFAULT (-.05),\n\
           l_open BOOL DEFAULT true,\n\
           l_none INT DEFAULT NULL\n);",
    )
    .unwrap();
    assert_eq!(name, "Line Item");
    let columns: Vec<String> = schema.columns().iter().map(column_sql).collect();
    assert_eq!(
        columns,
        [
            "l_orderkey BIGINT NOT NULL",
            "l_quantity DECIMAL(15,2) NOT NULL DEFAULT 0.00",
            "l_returnflag CHAR(1) DEFAULT 'N'",
            "l_shipdate DATE DEFAULT '1996-03-13'",
            "l_comment VARCHAR(44) DEFAULT 'it''s'",
            "l_discount DECIMAL(4,2) DEFAULT -0.05",
            "l_open BOOLEAN DEFAULT true",
            "l_none INTEGER",
        ]
    );
}

#[test]
fn synonyms_mean_the_type() {
    for (words, expected) in [
        ("BOOLEAN|bool", "BOOLEAN"),
        ("SMALLINT|int2|tinyint(4)", "SMALLINT"),
        ("INTEGER|INT|Int4|int(11)", "INTEGER"),
        ("BIGINT|INT8|bigint(20)|UINTEGER", "BIGINT"),
        ("DECIMAL|NUMERIC|dec(18,3)|number(18,3)", "DECIMAL(18,3)"),
        ("DECIMAL(9)|NUMERIC(9,0)", "DECIMAL(9,0)"),
        ("REAL|FLOAT4|FLOAT(24)", "REAL"),
        ("DOUBLE|DOUBLE PRECISION|FLOAT8|FLOAT|FLOAT(53)", "DOUBLE"),
        ("DATE", "DATE"),
        ("TIME|TIME(6)|TIME WITHOUT TIME ZONE", "TIME"),
        ("TIMESTAMP|DATETIME|TIMESTAMP(3)|TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP"),
        (
            "TIMESTAMPTZ|TIMESTAMP WITH TIME ZONE|TIMESTAMP(6) WITH TIME ZONE",
            "TIMESTAMP WITH TIME ZONE",
        ),
        ("CHAR|CHARACTER(1)|NCHAR(1)", "CHAR(1)"),
        ("VARCHAR|TEXT|STRING|CHARACTER VARYING|char varying|nvarchar(max)", "VARCHAR"),
        ("VARCHAR(7)|STRING(7)|CHARACTER VARYING (7)", "VARCHAR(7)"),
        ("BINARY|BYTEA|BLOB|VARBINARY", "BINARY"),
        ("VARBINARY(16)|BINARY(16)|BINARY VARYING(16)", "BINARY(16)"),
        ("UUID", "UUID"),
    ] {
        for word in words.split('|') {
            assert_eq!(types(&format!("a {word}")), [expected], "{word}");
        }
    }
}

#[test]
fn names_may_be_words_and_quoted() {
    let schema =
        parse_columns("date DATE, key INT, \"a \"\"b\"\"\" INT, `c` INT, [d e] INT").unwrap();
    let names: Vec<&str> = schema.columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["date", "key", "a \"b\"", "c", "d e"]);
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    for (sql, expected) in [
        ("", "columns 1:1: expected the name of a column, found the end"),
        ("a", "columns 1:2: expected a type for column a, found the end"),
        ("a BIGINT b INT", "columns 1:10: B is not understood"),
        (
            "a BIGINT,\n b DECIMAL(15 2)",
            "columns 2:15: expected ) after the precision and scale, found 2",
        ),
        ("a DECIMAL(39,2)", "columns 1:14: DECIMAL(39,2) is not a type"),
        ("a DECIMAL(4,5)", "DECIMAL(4,5) is not a type"),
        ("a JSON", "columns 1:3: JSON, the type of column a, is not known"),
        (
            "a INT REFERENCES b",
            "columns 1:7: REFERENCES is not enforced, leave it out (PRIMARY KEY and UNIQUE are)",
        ),
        ("a INT, UNIQUE (b)", "UNIQUE names b, and there is no such column (there is a)"),
        ("a INT, UNIQUE (a, A)", "UNIQUE names a column twice"),
        ("a INT, CONSTRAINT u UNIQUE (a), CONSTRAINT U UNIQUE (a)", "two indexes are named U"),
        ("a INT PRIMARY", "columns 1:7: PRIMARY: expected PRIMARY KEY"),
        ("a INT PRIMARY KEY, PRIMARY KEY (a)", "columns 1:32: a table has one key"),
        ("a INT, PRIMARY KEY (b)", "PRIMARY KEY names b, and there is no such column (there is a)"),
        ("a INT, PRIMARY KEY (a, A)", "PRIMARY KEY names a column twice"),
        ("a INT, PRIMARY KEY ()", "columns 1:21: expected the name of a column, found ')'"),
        (
            "a INT, CONSTRAINT k PRIMARY KEY (a)",
            "CONSTRAINT: only a CHECK or UNIQUE may have a name",
        ),
        ("a INT DEFAULT 1.5", "columns 1:15: the default 1.5 of a is not INTEGER: too many digits"),
        ("a INT DEFAULT now()", "columns 1:15: expected a literal"),
        ("a INT DEFAULT -'1'", "expected a literal"),
        ("a VARCHAR(0)", "a length is at least 1"),
        ("a VARCHAR(3000000000000)", "expected a length, found 3000000000000"),
        ("a TIMESTAMP(9)", "at most 6 are kept"),
        ("a TIME WITH TIME ZONE", "TIME WITH TIME ZONE is not a type here"),
        ("a INT, A INT", "column a is named twice"),
        ("a INT,", "columns 1:7: expected the name of a column, found the end"),
        ("a INT)", "columns 1:6: expected a comma between columns, found ')'"),
        ("\"\" INT", "expected the name of a column"),
        ("a INT /* b", "columns 1:7: the comment is not closed"),
        ("a INT DEFAULT 'b", "columns 1:15: ' is not closed"),
        ("CREATE VIEW v AS", "CREATE TABLE 1:8: expected TABLE, found VIEW"),
        (
            "CREATE TABLE t (a INT) PARTITION",
            "CREATE TABLE 1:24: expected nothing after the columns",
        ),
        ("CREATE TABLE t AS SELECT 1", "expected ( and the columns, found AS"),
    ] {
        let found = error(sql);
        assert!(found.contains(expected), "{sql:?}\n  gave     {found}\n  expected {expected}");
    }
}

#[test]
fn reserved_words_are_sorted() {
    assert!(RESERVED.is_sorted());
}

fn data_types() -> impl Strategy<Value = DataType> {
    let lengths = prop::option::of(1u32..50);
    prop_oneof![
        prop::sample::select(vec![
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::Date,
            DataType::Time,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
        ]),
        (1u8..=38, 0u8..=38).prop_map(|(p, s)| DataType::Decimal { precision: p, scale: s.min(p) }),
        (1u32..50).prop_map(DataType::Char),
        lengths.clone().prop_map(DataType::Varchar),
        lengths.prop_map(DataType::Binary),
    ]
}

/// Text of which some is a value of some type.
fn literals() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "1",
            "-0.5",
            "1e300",
            "inf",
            "NaN",
            "0001-01-01",
            "23:59:59.5",
            "1996-03-13 12:34:56",
            "\\x00ff",
            "it's",
            "",
            "-- no",
            "é\"",
            "00112233445566778899aabbccddeeff",
        ])
        .prop_map(str::to_owned),
        "[ -~\n]{0,8}",
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        name in "[a-zA-Z_\"' \n.é0-9]{1,6}",
        columns in prop::collection::vec(("[a-z_\"'\\[ \n;é0-9]{1,6}", data_types(), any::<bool>(), literals()), 1..6),
    ) {
        let columns = columns.into_iter().enumerate().map(|(i, (name, data_type, nullable, text))| Column {
            name: format!("{name}{i}"),
            data_type,
            nullable,
            default: parse_value(text.as_bytes(), data_type).ok(),
        });
        let schema = Schema::new(columns.collect()).unwrap();
        let sql = create_table_sql(&name, &schema);
        prop_assert_eq!(parse_create_table(&sql), Ok((name, schema)), "{}", sql);
    }

    #[test]
    fn any_text_gives_a_schema_or_an_error(text in "[a-zA-Z0-9'\"`\\[\\](),;./*\n é-]{0,30}") {
        let _ = parse_columns(&text);
        let _ = parse_create_table(&format!("CREATE TABLE {text}"));
    }
}

#[test]
fn indexes_are_read_and_written() {
    let columns = "a INT UNIQUE, \"B c\" VARCHAR, UNIQUE (\"B c\", a), CONSTRAINT u UNIQUE (a)";
    let schema = parse_columns(columns).unwrap();
    let said: Vec<(&str, &[usize], bool)> =
        schema.indexes().iter().map(|i| (&i.name[..], i.columns(), i.is_unique())).collect();
    assert_eq!(said, [("", &[0][..], true), ("", &[1, 0], true), ("u", &[0], true)]);
    assert_eq!(schema.indexes()[1].usual_name("t", schema.columns()), "t_B c_a_key");
    let sql = create_table_sql("t", &schema);
    assert!(
        sql.contains("UNIQUE (a),\n  UNIQUE (\"B c\", a),\n  CONSTRAINT u UNIQUE (a)\n"),
        "{sql}"
    );
    let (name, again) = parse_create_table(&sql).unwrap();
    assert_eq!((name.as_str(), &again), ("t", &schema));
    let plain = Index::new("i", crate::IndexKind::Plain, vec![1, 0]).unwrap();
    let indexes = [schema.indexes(), &[plain]].concat();
    let schema = schema.with_indexes(indexes).unwrap();
    assert_eq!(create_table_sql("t", &schema), sql);
    assert_eq!(create_indexes_sql("t", &schema), "\nCREATE INDEX i ON t (\"B c\", a);");
}

/// Clauses compared names by the case of ASCII only, and said that there is no such column.
#[test]
fn clauses_find_columns_in_any_case_of_any_script() {
    let columns = "größe INT NOT NULL, \"Ёлка\" VARCHAR";
    let clauses =
        "PRIMARY KEY (GRÖßE, ёЛКА), UNIQUE (ЁЛКА), CHECK (GRÖßE > 5), CHECK (length(ёлкА) < 9)";
    let schema = parse_columns(&format!("{columns}, {clauses}")).unwrap();
    assert_eq!(schema.key().unwrap().columns(), [0, 1]);
    assert_eq!(schema.indexes()[0].columns(), [1]);
    let checked: Vec<&[usize]> = schema.checks().iter().map(|check| check.columns()).collect();
    assert_eq!(checked, [[0], [1]]);
    let sql = format!("CREATE TABLE t ({columns}) CLUSTER BY (ЁЛКА)");
    let (_, schema) = parse_create_table(&sql).unwrap();
    assert_eq!(schema.key().unwrap().columns(), [1]);
    let index =
        |name| Index::of_names(name, crate::IndexKind::Plain, (&["ЁЛКА"], schema.columns()));
    assert_eq!(index("ä").unwrap().columns(), [1]);
    let twice = vec![index("ä").unwrap(), index("Ä").unwrap()];
    assert!(schema.with_indexes(twice).unwrap_err().to_string().contains("two indexes are named"));
    assert!(error("größe INT, GRÖßE INT").contains("column größe is named twice"));
}
