//! Where in a record a byte stands, for messages.

/// The path of the value or key at a byte of a record: `a.b[3]`. Of a record that is not whole, as far as it goes.
pub fn path_at(record: &[u8], byte: usize) -> String {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while at <= byte {
        match record.get(at) {
            Some(b'{') => steps.push(Step::Key(String::new())),
            Some(b'[') => steps.push(Step::Item(0)),
            Some(b'}' | b']') if at < byte => {
                steps.pop();
            }
            Some(b',') => match steps.last_mut() {
                Some(Step::Item(number)) => *number += 1,
                Some(Step::Key(key)) if at < byte => key.clear(),
                _ => {}
            },
            Some(b'"') => {
                let end = string_end(record, at + 1);
                let is_key = record[end.min(record.len())..].trim_ascii_start().starts_with(b":");
                let inner = &record[at + 1..end.saturating_sub(1).max(at + 1)];
                if let (true, Some(Step::Key(key))) = (is_key, steps.last_mut()) {
                    *key = String::from_utf8_lossy(inner).into_owned();
                }
                at = end;
                continue;
            }
            Some(_) => {}
            None => break,
        }
        at += 1;
    }
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) if key.is_empty() => {}
            Step::Key(key) if path.is_empty() => path = key,
            Step::Key(key) => path = format!("{path}.{key}"),
            Step::Item(number) => path = format!("{path}[{number}]"),
        }
    }
    path
}

enum Step {
    Key(String),
    Item(usize),
}

/// The byte behind the quote that closes a string, or the end.
fn string_end(record: &[u8], mut at: usize) -> usize {
    loop {
        match record.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return record.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_keys_and_items() {
        let record = br#"{"a": 1, "b": {"c": [1, {"d": 07}], "e": 1}, "f": tru}"#;
        for (byte, path) in [(6, "a"), (21, "b.c[0]"), (30, "b.c[1].d"), (41, "b.e"), (50, "f")] {
            assert_eq!(path_at(record, byte), path, "{byte}");
        }
        assert_eq!(path_at(b"{\"a", 9), "");
        assert_eq!(path_at(b"{\"a\":\"\\", 9), "a");
    }
}
