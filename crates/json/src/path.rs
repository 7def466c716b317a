//! Where in a record a byte stands, for messages.

/// Bytes of a path that are told.
const TOLD_BYTES_MAX: usize = 1 << 10;

/// The path of the value or key at a byte of a record: `a.b[3]`. Of a record that is not whole, as far as it goes; of a long
/// path its beginning, and `...`.
pub fn path_at(record: &[u8], byte: usize) -> String {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while at <= byte {
        match record.get(at) {
            Some(b'{') => steps.push(Step::Key(&[])),
            Some(b'[') => steps.push(Step::Item(0)),
            Some(b'}' | b']') if at < byte => {
                steps.pop();
            }
            Some(b',') => match steps.last_mut() {
                Some(Step::Item(number)) => *number += 1,
                Some(Step::Key(key)) if at < byte => *key = &[],
                _ => {}
            },
            Some(b'"') => {
                let end = string_end(record, at + 1);
                let is_key = record[end.min(record.len())..].trim_ascii_start().starts_with(b":");
                let inner = &record[at + 1..end.saturating_sub(1).max(at + 1)];
                if let (true, Some(Step::Key(key))) = (is_key, steps.last_mut()) {
                    *key = inner;
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
            Step::Key([]) => {}
            Step::Key(key) => {
                // What is told of it is cut then.
                let key = String::from_utf8_lossy(&key[..key.len().min(TOLD_BYTES_MAX + 4)]);
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(&key);
            }
            Step::Item(number) => path.push_str(&format!("[{number}]")),
        }
        if path.len() > TOLD_BYTES_MAX {
            path.truncate(path.floor_char_boundary(TOLD_BYTES_MAX));
            path.push_str("...");
            break;
        }
    }
    path
}

enum Step<'a> {
    Key(&'a [u8]),
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
        assert_eq!(path_at(b"{\"\xff\":{\"b\":1", 11), "\u{fffd}.b");
    }

    /// A path was written anew for each of its steps: a million brackets would have taken hours, and a record of long keys had
    /// a path of as many bytes.
    #[test]
    fn paths_of_many_steps_are_told_in_part() {
        let deep = vec![b'['; 1 << 20];
        let path = path_at(&deep, deep.len() - 1);
        assert!(path.starts_with("[0][0]") && path.ends_with("..."), "{path}");
        assert!(path.len() <= TOLD_BYTES_MAX + 3);
        let key = format!("{{\"{}\":", "é".repeat(1 << 10));
        let path = path_at(key.repeat(500).as_bytes(), key.len() * 500);
        assert!(path == format!("{}...", "é".repeat(TOLD_BYTES_MAX / 2)), "{path}");
    }
}
