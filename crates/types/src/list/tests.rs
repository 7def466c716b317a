#![allow(clippy::unwrap_used)]
//! Tests of lists.

use proptest::prelude::*;

use super::*;
use crate::display::write_value;
use crate::{Rule, TextForm, Value, parse_value};
use std::borrow::Cow;

const ALL: [ElementType; 13] = [
    ElementType::Boolean,
    ElementType::SmallInt,
    ElementType::Integer,
    ElementType::BigInt,
    ElementType::Decimal { precision: 12, scale: 2 },
    ElementType::Decimal { precision: 38, scale: 38 },
    ElementType::Real,
    ElementType::Double,
    ElementType::Date,
    ElementType::Time,
    ElementType::TimestampTz,
    ElementType::Varchar,
    ElementType::Uuid,
];

fn list(text: &str, element: ElementType) -> Vec<u8> {
    parse_list(text.as_bytes(), element).unwrap_or_else(|rule| panic!("{text}: {rule}"))
}

fn shown(list: &[u8], element: ElementType) -> String {
    let mut out = Vec::new();
    write_list(list, element, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn lists_are_json_or_as_postgresql_writes_them() {
    for (text, element, json, postgres) in [
        ("[]", ElementType::BigInt, "[]", "{}"),
        (" [ 1 ,-2,null ] ", ElementType::BigInt, "[1, -2, null]", "{1,-2,NULL}"),
        ("{1,-2,null}", ElementType::BigInt, "[1, -2, null]", "{1,-2,NULL}"),
        (
            r#"["a","\u00e9\n",null,""]"#,
            ElementType::Varchar,
            "[\"a\", \"é\\n\", null, \"\"]",
            "{a,\"é\n\",NULL,\"\"}",
        ),
        (
            r#"{a,"NULL","b\"\\c d"}"#,
            ElementType::Varchar,
            r#"["a", "NULL", "b\"\\c d"]"#,
            r#"{a,"NULL","b\"\\c d"}"#,
        ),
        (
            "[1.50, 2]",
            ElementType::Decimal { precision: 18, scale: 2 },
            "[1.50, 2.00]",
            "{1.50,2.00}",
        ),
        (
            r#"[1e300, "NaN", "-inf"]"#,
            ElementType::Double,
            r#"[1e300, "NaN", "-inf"]"#,
            "{1e300,NaN,-inf}",
        ),
        (r#"["2024-02-29"]"#, ElementType::Date, r#"["2024-02-29"]"#, "{2024-02-29}"),
        (
            r#"["2024-02-29 01:02:03"]"#,
            ElementType::Timestamp,
            r#"["2024-02-29 01:02:03"]"#,
            r#"{"2024-02-29 01:02:03"}"#,
        ),
        ("[true, false]", ElementType::Boolean, "[true, false]", "{true,false}"),
        ("[1, true]", ElementType::Varchar, r#"["1", "true"]"#, "{1,true}"),
    ] {
        let list = list(text, element);
        assert_eq!(shown(&list, element), json);
        let mut out = Vec::new();
        write_postgres_list(&list, element, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), postgres);
    }
}

#[test]
fn what_is_no_list_is_told() {
    use ElementType::{BigInt, Date, Varchar};
    for (text, element, rule) in [
        ("", BigInt, Rule::Empty),
        ("1", BigInt, Rule::NotAList),
        ("[1", BigInt, Rule::NotAList),
        ("[1}", BigInt, Rule::NotAList),
        ("[1,]", BigInt, Rule::NotAList),
        ("[,1]", BigInt, Rule::NotAList),
        ("[1 2]", BigInt, Rule::NotAList),
        ("[1,,2]", BigInt, Rule::NotAList),
        ("[a]", Varchar, Rule::NotAList),
        (r#"["a" "b"]"#, Varchar, Rule::NotAList),
        (r#"["a]"#, Varchar, Rule::NotAList),
        (r#"["a\"]"#, Varchar, Rule::NotAList),
        (r#"["\q"]"#, Varchar, Rule::NotAList),
        (r#"["\ud800"]"#, Varchar, Rule::NotAList),
        ("[\"\\u0000\"]", Varchar, Rule::NulByte),
        ("[\"\u{0}\"]", Varchar, Rule::NulByte),
        ("[[1]]", BigInt, Rule::ListInList),
        (r#"[{"a": 1}]"#, Varchar, Rule::ListInList),
        (r#"["1"]"#, BigInt, Rule::ElementInQuotes),
        ("[9223372036854775808]", BigInt, Rule::OutOfRange),
        (r#"["2023-02-29"]"#, Date, Rule::NoSuchDate),
        ("{a b\"c}", Varchar, Rule::NotAList),
        ("{\"a\\", Varchar, Rule::NotAList),
    ] {
        assert_eq!(parse_list(text.as_bytes(), element), Err(rule), "{text}");
    }
}

#[test]
fn the_order_of_bytes_is_that_of_lists() {
    let sorted = [
        "[]",
        "[-9223372036854775808]",
        "[-257]",
        "[-256]",
        "[-1]",
        "[-1, 5]",
        "[0]",
        "[0, null]",
        "[1]",
        "[255]",
        "[256]",
        "[9223372036854775807]",
        "[null]",
    ];
    for pair in sorted.windows(2) {
        assert!(
            list(pair[0], ElementType::BigInt) < list(pair[1], ElementType::BigInt),
            "{pair:?}"
        );
    }
    let sorted = [
        "[]",
        r#"[""]"#,
        r#"["", "b"]"#,
        r#"["a"]"#,
        r#"["a", ""]"#,
        r#"["ab"]"#,
        r#"["b"]"#,
        "[null]",
    ];
    for pair in sorted.windows(2) {
        assert!(
            list(pair[0], ElementType::Varchar) < list(pair[1], ElementType::Varchar),
            "{pair:?}"
        );
    }
}

fn element(of: ElementType) -> BoxedStrategy<Option<Element<'static>>> {
    let data_type = of.data_type();
    let (least, most) = data_type.facts().limits;
    let value = match data_type.physical() {
        Physical::Int => {
            prop_oneof![least..=most, Just(0), Just(most.min(255)), Just(least.max(-256))]
                .prop_map(Element::Int)
                .boxed()
        }
        Physical::Wide => {
            let most = if of == ElementType::Uuid { i128::MAX } else { 10_i128.pow(38) - 1 };
            prop_oneof![-most..=most, Just(0)].prop_map(Element::Wide).boxed()
        }
        Physical::Bytes => any::<String>()
            .prop_map(|text| Element::Bytes(Cow::Owned(text.replace('\0', "").into_bytes())))
            .boxed(),
    };
    prop_oneof![4 => value.prop_map(Some), 1 => Just(None)].boxed()
}

proptest! {
    /// What is written is read, as bytes, as text of both notations and as a column.
    #[test]
    fn lists_come_back((of, items) in proptest::sample::select(&ALL[..])
        .prop_flat_map(|of| (Just(of), proptest::collection::vec(element(of), 0..9))))
    {
        let mut list = Vec::new();
        items.iter().for_each(|item| put_element(&mut list, item.as_ref()));
        let read: Vec<_> = elements(&list, of).collect::<Result<_>>().unwrap();
        prop_assert_eq!(&read, &items);
        let mut column = Plain::empty(of.data_type().physical());
        prop_assert_eq!(elements_onto(&list, of, &mut column).unwrap(), items.len());
        for (row, item) in items.iter().enumerate() {
            let value = item.clone().map(|item| match item {
                Element::Int(value) => Value::Int(value),
                Element::Wide(value) => Value::Wide(value),
                Element::Bytes(value) => Value::Bytes(value.into()),
            });
            prop_assert_eq!(column.get(row), value);
        }
        // Floats that are no numbers have one form as text.
        let is_float = of.data_type().facts().text == TextForm::Float;
        if !is_float {
            let mut text = Vec::new();
            write_list(&list, of, &mut text);
            prop_assert_eq!(parse_list(&text, of).unwrap(), list.clone());
            let value = Value::Bytes(list.clone().into());
            let data_type = DataType::List(of);
            text.clear();
            write_value(&value, data_type, &mut text);
            prop_assert_eq!(parse_value(&text, data_type).unwrap(), value);
            text.clear();
            write_postgres_list(&list, of, &mut text);
            prop_assert_eq!(parse_list(&text, of).unwrap(), list);
        }
    }

    /// Bytes that are none of a list do not panic, and those that are one are its only ones.
    #[test]
    fn any_bytes_are_one_list_or_none(at in 0..ALL.len(), bytes in proptest::collection::vec(
        prop_oneof![Just(0u8), Just(1), Just(0xff), Just(0xfe), 0x30u8..0x52, any::<u8>()], 0..40)) {
        let of = ALL[at];
        if let Ok(items) = elements(&bytes, of).collect::<Result<Vec<_>>>() {
            let mut again = Vec::new();
            items.iter().for_each(|item| put_element(&mut again, item.as_ref()));
            prop_assert_eq!(&again, &bytes);
        }
        write_list(&bytes, of, &mut Vec::new());
        let _ = parse_list(&bytes, of);
    }
}
