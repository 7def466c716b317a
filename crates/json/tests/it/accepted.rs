//! What is JSON, and what is not.

use std::collections::HashSet;

use coload_json::{DEPTH_MAX, LineBreaks, Rule, check_value};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{cases, is_value, json, padded};

const ACCEPTED: [&str; 38] = [
    "[]",
    "{}",
    "[ ]",
    "{ }",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e5",
    "1E+5",
    "1e-05",
    "0.0",
    "0e0",
    "-0.0e-0",
    "123456789012345678901234567890.123456789e-400",
    "true",
    "false",
    "null",
    "\"\"",
    "\"a\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0000\"",
    "\"\\uD834\\udd1e\"",
    "\"\u{7f}\"",
    "\"\u{2028}\"",
    "[1,[2,[3,[]]]]",
    "{\"a\":{\"a\":1}}",
    "{\"\":1}",
    "[1 , 2]",
    " [1] ",
    "\t\r\n1\n",
    "{\"a\" : 1}",
    "[{\"a\":1},{\"a\":1}]",
    "\"\u{10ffff}\"",
    "[\"\",\"\"]",
    "{\"a\":1,\"A\":1}",
    "[null,true,false]",
    "{\"a\":[{\"b\":{}}],\"b\":[]}",
];

const REFUSED: [(&str, Rule); 56] = [
    ("", Rule::NoValue),
    (" ", Rule::NoValue),
    ("[", Rule::NoValue),
    ("{", Rule::NoKey),
    ("]", Rule::NoValue),
    ("[1", Rule::NoComma),
    ("[1,", Rule::NoValue),
    ("[1,]", Rule::TrailingComma),
    ("[,1]", Rule::NoValue),
    ("[1,,2]", Rule::NoValue),
    ("[1 2]", Rule::NoComma),
    ("[1}", Rule::NoComma),
    ("{\"a\":1]", Rule::NoComma),
    ("{\"a\"}", Rule::NoColon),
    ("{\"a\":}", Rule::NoValue),
    ("{\"a\":1,}", Rule::TrailingComma),
    ("{a:1}", Rule::NoKey),
    ("{'a':1}", Rule::NoKey),
    ("{1:1}", Rule::NoKey),
    ("{\"a\":1,,\"b\":2}", Rule::NoKey),
    ("{\"a\":1 \"b\":2}", Rule::NoComma),
    ("{\"a\"::1}", Rule::NoValue),
    ("{,}", Rule::NoKey),
    ("{\"a\":1,\"a\":2}", Rule::TwiceTheKey),
    ("{\"a\":1,\"\\u0061\":2}", Rule::TwiceTheKey),
    ("[{\"b\":{\"a\":1,\"a\":1}}]", Rule::TwiceTheKey),
    ("01", Rule::Number),
    ("-01", Rule::Number),
    ("00", Rule::Number),
    ("1.", Rule::Number),
    ("-", Rule::Number),
    ("1e", Rule::Number),
    ("1e+", Rule::Number),
    ("1.e5", Rule::Number),
    ("-.5", Rule::Number),
    (".5", Rule::NoValue),
    ("+1", Rule::NoValue),
    ("NaN", Rule::NoValue),
    ("Infinity", Rule::NoValue),
    ("-Infinity", Rule::Number),
    ("True", Rule::NoValue),
    ("nul", Rule::NoValue),
    ("tru", Rule::NoValue),
    ("\"", Rule::Open),
    ("\"a", Rule::Open),
    ("\"\n\"", Rule::Control),
    ("\"\t\"", Rule::Control),
    ("\"\u{0}\"", Rule::Control),
    ("\"\\x\"", Rule::Escape),
    ("\"\\u12\"", Rule::Escape),
    ("\"\\u12G4\"", Rule::Escape),
    ("\"\\ud800\"", Rule::Surrogate),
    ("\"\\udc00\\ud800\"", Rule::Surrogate),
    ("\"\\ud800\\u0041\"", Rule::Surrogate),
    ("\"\\ud800x\"", Rule::Surrogate),
    ("// a\n1", Rule::NoValue),
];

#[test]
fn what_the_standard_says_is_accepted_and_refused() {
    for text in ACCEPTED {
        assert!(is_value(text.as_bytes()), "{text}");
    }
    for (text, rule) in REFUSED {
        let start = text.len() - text.trim_start().len();
        let padded = [text.as_bytes(), &[0; coload_json::PADDING]].concat();
        let found = check_value(&padded, start, LineBreaks::AreSpace).map_err(|fault| fault.rule);
        // The padding ends a string that nothing else does: a control character in it.
        let rule = if rule == Rule::Open { Rule::Control } else { rule };
        assert_eq!(found, Err(rule), "{text}");
    }
    for text in ["1 2", "{}{}", "[]]", "true false", "1,", "truex", "1a", "\"a\"b"] {
        assert!(!is_value(text.as_bytes()), "{text}");
    }
    assert!(!is_value(b"\"\xff\"") && !is_value(b"\"\xed\xa0\x80\""));
}

#[test]
fn what_is_too_deep_is_refused_whatever_its_length() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let of = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(is_value(of(DEPTH_MAX).as_bytes()));
        for depth in [DEPTH_MAX + 1, 1_000_000] {
            let fault = check_value(&padded(of(depth).as_bytes()), 0, LineBreaks::AreSpace);
            assert_eq!(fault.map_err(|fault| fault.rule), Err(Rule::TooDeep));
        }
    }
    let open = padded("[".repeat(1_000_000).as_bytes());
    assert!(check_value(&open, 0, LineBreaks::AreSpace).is_err());
}

#[test]
fn many_keys_are_looked_up() {
    let object = |last: &str| {
        let keys: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{},\"{last}\":0}}", keys.join(","))
    };
    assert!(is_value(object("k1000").as_bytes()));
    assert!(!is_value(object("k500").as_bytes()));
    assert!(!is_value(object("k\\u0035").as_bytes()));
}

/// What `serde_json` takes, but for keys that come twice.
struct Model;

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelVisitor)
    }
}

struct ModelVisitor;

impl<'de> Visitor<'de> for ModelVisitor {
    type Value = Model;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_str<E>(self, _: &str) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_unit<E>(self) -> Result<Model, E> {
        Ok(Model)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Model, A::Error> {
        while seq.next_element::<Model>()?.is_some() {}
        Ok(Model)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Model, A::Error> {
        let mut keys = HashSet::new();
        while let Some((key, _)) = map.next_entry::<String, Model>()? {
            if !keys.insert(key) {
                return Err(serde::de::Error::custom("a key twice"));
            }
        }
        Ok(Model)
    }
}

/// Whether a text is JSON; unknown where a number is larger than the model's.
fn is_value_of_model(text: &[u8]) -> Option<bool> {
    match serde_json::from_slice::<Model>(text) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn texts_are_accepted_as_by_serde(text in json(), cut in any::<prop::sample::Index>(), change: (u16, u8), kind in 0..4_u8) {
        let mut bytes = text.into_bytes();
        let at = usize::from(change.0) % bytes.len();
        match kind {
            0 => bytes.truncate(cut.index(bytes.len() + 1)),
            1 => { bytes.remove(at); }
            2 => bytes.insert(at, b"{}[],:\"\\0e.-tu \n"[usize::from(change.1) % 16]),
            _ => {}
        }
        let model = is_value_of_model(&bytes);
        prop_assert!(model.is_none_or(|model| model == is_value(&bytes)), "{}", bytes.escape_ascii());
    }

    #[test]
    fn any_bytes_are_accepted_as_by_serde(bytes in prop::collection::vec(prop::sample::select(b"{}[],:\"\\01.e-+ntrue\xc3\xa9 \n".to_vec()), 0..12)) {
        let model = is_value_of_model(&bytes);
        prop_assert!(model.is_none_or(|model| model == is_value(&bytes)), "{}", bytes.escape_ascii());
    }
}
