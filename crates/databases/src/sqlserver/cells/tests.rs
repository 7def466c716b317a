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
