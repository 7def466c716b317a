//! Cells as the protocol has them.

use super::*;

fn column(type_name: &str, data_type: DataType, page: u32) -> TableColumn {
    TableColumn {
        name: "c".to_owned(),
        type_name: type_name.to_owned(),
        data_type,
        cell: Cell::OfType,
        nullable: true,
        is_generated: false,
        has_default: false,
        type_number: page,
        array_number: 0,
    }
}

/// The cell of a value, as MS-TDS has it.
fn cell(type_name: &str, data_type: DataType, values: &Values) -> Vec<u8> {
    let kind = CellKind::of(&column(type_name, data_type, 0)).expect("a type");
    let mut out = Vec::new();
    ColumnCells { kind, data_type }.put(values, 0, &mut out);
    assert_eq!(kind.cell_bytes(&out), Some(out.len()), "{type_name}");
    assert_eq!(kind.cell_bytes(kind.null_cell()), Some(kind.null_cell().len()));
    out
}

#[test]
fn cells_are_as_the_protocol_has_them() {
    let int = |value| Values::Int(vec![value]);
    assert_eq!(cell("int", DataType::Integer, &int(-2)), [4, 0xfe, 0xff, 0xff, 0xff]);
    let decimal = DataType::Decimal { precision: 5, scale: 1 };
    assert_eq!(cell("decimal(5,2)", decimal, &int(-123)), [5, 0, 0xce, 4, 0, 0]);
    assert_eq!(cell("date", DataType::Date, &int(-719_162)), [3, 0, 0, 0]);
    assert_eq!(cell("time(0)", DataType::Time, &int(61_000_000)), [3, 61, 0, 0]);
    let moment = [9, 1, 0, 0, 0, 0x3a, 0xf9, 0x0a, 0, 0];
    assert_eq!(cell("datetimeoffset(6)", DataType::TimestampTz, &int(1))[..2], [10, 1]);
    assert_eq!(cell("datetimeoffset(3)", DataType::TimestampTz, &int(1000))[..], moment[..]);
    assert_eq!(
        cell("datetime", DataType::Timestamp, &int(3000)),
        [8, 0xdf, 0x63, 0, 0, 1, 0, 0, 0]
    );
    let money = DataType::Decimal { precision: 19, scale: 4 };
    assert_eq!(cell("money", money, &int(-1)), [8, 255, 255, 255, 255, 255, 255, 255, 255]);
    let mut strings = coload_types::Strings::default();
    strings.push("é😀".as_bytes());
    let text = Values::Bytes(strings);
    assert_eq!(
        cell("nvarchar(3)", DataType::Varchar(Some(3)), &text),
        [6, 0, 0xe9, 0, 0x3d, 0xd8, 0, 0xde]
    );
    let parts = cell("nvarchar(max)", DataType::Varchar(None), &text);
    assert_eq!(parts[..12], [0xfe, 255, 255, 255, 255, 255, 255, 255, 6, 0, 0, 0]);
    assert_eq!(parts[18..], [0, 0, 0, 0]);
}

#[test]
fn characters_that_would_come_back_as_others_are_refused() {
    let why = |page, text: &str| {
        let kind = CellKind::of(&column("varchar(9)", DataType::Varchar(Some(9)), page));
        kind.expect("a type").why_no_bytes(text.as_bytes())
    };
    assert_eq!(why(1252, "café €"), None);
    assert!(why(1252, "Ω").is_some());
    assert_eq!(why(932, "日本"), None);
    assert!(why(932, "¥").is_some(), "it shares its byte with the backslash");
    assert!(CellKind::of(&column("varchar(9)", DataType::Varchar(Some(9)), 950)).is_err());
    assert!(CellKind::of(&column("varchar(9)", DataType::Varchar(Some(9)), 437)).is_err());
}

/// Values of a type that a column may not hold are asked for, and those of others are not: it costs a call for each.
#[test]
fn columns_that_hold_all_values_of_a_type_are_not_asked() {
    let asks = |type_name, data_type, page| {
        let kind = CellKind::of(&column(type_name, data_type, page)).expect("a type");
        ColumnCells { kind, data_type }.may_refuse()
    };
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    for (type_name, data_type, page) in [
        ("int", DataType::Integer, 0),
        ("datetime2(6)", DataType::Timestamp, 0),
        ("time(7)", DataType::Time, 0),
        ("decimal(15,2)", decimal(15, 2), 0),
        ("decimal(15,4)", decimal(13, 2), 0),
        ("nvarchar(max)", DataType::Varchar(None), 0),
        ("nvarchar(20)", DataType::Varchar(Some(10)), 0),
        ("varchar(40)", DataType::Varchar(Some(10)), UTF8),
        ("varchar(max)", DataType::Varchar(None), UTF8),
        ("varbinary(max)", DataType::Binary(None), 0),
        ("varbinary(9)", DataType::Binary(Some(9)), 0),
    ] {
        assert!(!asks(type_name, data_type, page), "{type_name}");
    }
    for (type_name, data_type, page) in [
        ("tinyint", DataType::SmallInt, 0),
        ("real", DataType::Real, 0),
        ("datetime2(5)", DataType::Timestamp, 0),
        ("datetimeoffset(7)", DataType::TimestampTz, 0),
        ("datetime", DataType::Timestamp, 0),
        ("decimal(15,4)", decimal(14, 2), 0),
        ("money", decimal(19, 4), 0),
        ("nvarchar(20)", DataType::Varchar(Some(11)), 0),
        ("nvarchar(20)", DataType::Varchar(None), 0),
        ("varchar(40)", DataType::Varchar(Some(11)), UTF8),
        ("varchar(40)", DataType::Varchar(Some(10)), 1252),
        ("binary(9)", DataType::Binary(Some(9)), 0),
        ("varbinary(9)", DataType::Binary(Some(10)), 0),
    ] {
        assert!(asks(type_name, data_type, page), "{type_name}");
    }
}

#[test]
fn moments_that_a_column_does_not_hold_are_refused_and_none_is_changed() {
    let day = |days: i64| days * DAY_MICROS;
    let why = |type_name, data_type, value: i64| {
        let kind = CellKind::of(&column(type_name, data_type, 0)).expect("a type");
        kind.why_no_number(i128::from(value))
    };
    let first = day(-719_162);
    let end = day(2_932_897);
    for (type_name, data_type) in
        [("datetime2(7)", DataType::Timestamp), ("datetimeoffset(7)", DataType::TimestampTz)]
    {
        assert_eq!(why(type_name, data_type, first), None);
        assert_eq!(why(type_name, data_type, end - 1), None);
        // A zone moves the first and the last moment of the years that there are out of them.
        assert!(why(type_name, data_type, first - 1).is_some(), "{type_name}");
        assert!(why(type_name, data_type, end).is_some(), "{type_name}");
    }
    let datetime = |value| why("datetime", DataType::Timestamp, value);
    assert_eq!(datetime(day(-79_257)), None);
    assert_eq!(datetime(end - 3_000), None, "23:59:59.997 of the last day");
    for value in [day(-79_257) - 3_000, end, end - 1, end - 1_000, i64::MIN, i64::MAX, 1_000, 3_333]
    {
        assert!(datetime(value).is_some(), "{value}");
    }
}
