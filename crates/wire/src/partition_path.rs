//! Values that stand in the paths of inputs: `year=2026/month=11/part-0.parquet`, as Hive and Spark write them.

use std::borrow::Cow;

use coload_types::same_name;

/// What stands for NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The keys and values in the path of an input, the outermost first; `None` is NULL. The last part is the file's name.
pub fn partition_values(name: &str) -> impl Iterator<Item = (&str, Option<Cow<'_, str>>)> {
    let (folders, _) = name.rsplit_once('/').unwrap_or(("", name));
    folders.split('/').filter_map(|folder| {
        let (key, value) = folder.split_once('=')?;
        let is_null = value.is_empty() || value == NULL;
        (!key.is_empty()).then(|| (key, (!is_null).then(|| unescape(value))))
    })
}

/// The value of a key in the path of an input: `None` if the path does not have the key.
pub fn partition_value<'a>(name: &'a str, key: &str) -> Option<Option<Cow<'a, str>>> {
    let mut values = partition_values(name);
    values.find(|(known, _)| same_name(known, key)).map(|(_, value)| value)
}

/// Writers of partitions write what a path may not have as `%3A`.
fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('%') {
        return Cow::Borrowed(value);
    }
    let (bytes, mut out, mut at) = (value.as_bytes(), Vec::with_capacity(value.len()), 0);
    while at < bytes.len() {
        let hex =
            value.get(at + 1..at + 3).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    match String::from_utf8(out) {
        Ok(text) => Cow::Owned(text),
        // Escapes of something else: it stays as it stands.
        Err(_) => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_stand_in_folders() {
        let of = |name| partition_values(name).map(|(k, v)| (k, v.map(Cow::into_owned))).collect();
        let values: Vec<(&str, Option<String>)> =
            of("s3://b=c/year=2026/x/day=__HIVE_DEFAULT_PARTITION__/a=b.csv");
        assert_eq!(values, [("b", Some("c".into())), ("year", Some("2026".into())), ("day", None)]);
        let values: Vec<(&str, Option<String>)> = of("t=10%3A30/u=50%/v=%ff/w=a=b/x=/=y/f.csv");
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            ("t", some("10:30")),
            ("u", some("50%")),
            ("v", some("%ff")),
            ("w", some("a=b")),
            ("x", None),
        ];
        assert_eq!(values, expected);
        assert_eq!(partition_value("Year=1/f", "year"), Some(Some("1".into())));
        assert_eq!(partition_value("year=1", "year"), None);
    }
}
