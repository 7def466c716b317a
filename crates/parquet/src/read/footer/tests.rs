#![allow(clippy::unwrap_used)]
use super::*;

/// The first column chunk.
fn first() -> Leaves {
    Leaves { numbers: vec![0], with_hints: false }
}

/// A field of a structure: the distance of its number, and its kind.
fn field(delta: u8, kind: u8) -> u8 {
    delta << 4 | kind
}

/// A footer of one column `a` of INT64, and a row group for each number of rows.
fn footer(groups: &[u64]) -> Vec<u8> {
    let number = |value: u64| {
        let (mut value, mut bytes) = (value << 1, Vec::new());
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let mut out = vec![field(1, 5), 2, field(1, 9), 0x2c];
    out.extend([field(4, 8), 1, b'm', field(1, 5), 2, 0]);
    out.extend([field(1, 5), 4, field(2, 5), 0, field(1, 8), 1, b'a', 0]);
    out.push(field(1, 6));
    out.extend(number(groups.iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows))));
    out.extend([field(1, 9), (groups.len() as u8) << 4 | 12]);
    for rows in groups {
        // One column chunk: INT64, 9 bytes at byte 4.
        out.extend([field(1, 9), 0x1c, field(3, 12)]);
        out.extend([field(1, 5), 4, field(5, 6), 18, field(1, 6), 18, field(2, 6), 8, 0, 0]);
        out.push(field(2, 6));
        out.extend(number(*rows));
        out.push(0);
    }
    out.push(0);
    out
}

#[test]
fn a_footer_tells_fields_and_row_groups() {
    let bytes = footer(&[3, 4]);
    let read = Footer::decode(&bytes, 100, 1 << 20, |_| Ok(first())).unwrap();
    assert_eq!((read.rows, read.raw_bytes, read.groups.len()), (7, 18, 2));
    let names: Vec<(&str, &str)> =
        read.fields.iter().map(|field| (field.name.as_str(), field.kind.as_str())).collect();
    assert_eq!(names, [("a", "INT64")]);
    let [column] = read.groups[1].columns[..] else { panic!("{:?}", read.groups[1]) };
    assert_eq!((column.start, column.bytes, read.groups[1].rows), (4, 9, 4));
    for cut in 0..bytes.len() {
        let cut = Footer::decode(&bytes[..cut], 100, 1 << 20, |_| Ok(first()));
        assert!(matches!(cut, Err(Fault::Damaged(_))), "{cut:?}");
    }
}

#[test]
fn what_a_footer_says_is_bounded() {
    let decode = |bytes: &[u8], data_bytes, bytes_max| {
        Footer::decode(bytes, data_bytes, bytes_max, |_| Ok(first())).unwrap_err()
    };
    let many = decode(&footer(&[1 << 40]), 100, 1 << 20);
    assert!(matches!(&many, Fault::Unknown(text) if text.contains("1099511627776 rows")));
    assert!(matches!(decode(&footer(&[1; 9]), 100, 500), Fault::TooLarge(_)));
    let outside = decode(&footer(&[1]), 12, 1 << 20);
    assert!(matches!(&outside, Fault::Damaged(text) if text.contains("outside the data")));
    // A million empty elements take a million bytes, and would take a hundred times as many.
    let mut bomb = vec![field(2, 9), 0xfc];
    bomb.extend([0xc0, 0x84, 0x3d]);
    bomb.extend(vec![0; 1_000_000]);
    assert!(matches!(decode(&bomb, 100, 10 << 20), Fault::TooLarge(_)));
}
