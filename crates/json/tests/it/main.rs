//! Records of JSON against slow models: `serde_json`, and readers of one byte at a time.
#![allow(clippy::unwrap_used)]

mod accepted;
mod hostile;
mod rows;
mod split;

use coload_json::{LineBreaks, PADDING, check_value};
use proptest::prelude::*;

/// Bytes with room behind them.
pub fn padded(text: &[u8]) -> Vec<u8> {
    [text, &[b'"'; PADDING]].concat()
}

/// Whether a text is a value, with white space around it.
pub fn is_value(text: &[u8]) -> bool {
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let padded = [text, &[0; PADDING]].concat();
    let Ok(end) = check_value(&padded, start, LineBreaks::AreSpace) else { return false };
    end <= text.len()
        && text[end..].iter().all(u8::is_ascii_whitespace)
        && std::str::from_utf8(text).is_ok()
}

/// As many cases as are asked for.
pub fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(asked.unwrap_or(usual))
    }
}

/// Texts that are JSON, mostly.
pub fn json() -> impl Strategy<Value = String> {
    let string = prop::collection::vec(
        prop::sample::select(vec![
            "a",
            "b",
            " ",
            "é",
            "\u{1f600}",
            "\\n",
            "\\\"",
            "\\\\",
            "\\/",
            "\\u0041",
            "\\ud83d\\ude00",
            "long enough that it is looked at in several steps of many bytes each",
        ]),
        0..4,
    )
    .prop_map(|parts| format!("\"{}\"", parts.concat()));
    let scalar = prop_oneof![
        4 => prop::sample::select(vec!["0", "-0", "12", "-7.25", "1e5", "1E-2", "123456789012345678901234567890", "true", "false", "null"])
            .prop_map(str::to_owned),
        4 => string.clone(),
    ];
    let space = prop::sample::select(vec!["", "", " ", "\n", "\t\r\n "]);
    scalar.prop_recursive(4, 24, 4, move |inner| {
        let list = (space.clone(), prop::collection::vec(inner.clone(), 0..4)).prop_map(
            |(space, items)| format!("[{space}{}{space}]", items.join(&format!(",{space}"))),
        );
        let key =
            prop_oneof![3 => (0..6_u8).prop_map(|n| format!("\"k{n}\"")), 1 => string.clone()];
        let object = (space.clone(), prop::collection::vec((key, inner), 0..4)).prop_map(
            |(space, entries)| {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{key}{space}:{space}{value}"))
                    .collect();
                format!("{{{space}{}{space}}}", entries.join(&format!("{space},")))
            },
        );
        prop_oneof![list, object]
    })
}
