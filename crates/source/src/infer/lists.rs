//! Elements of lists of JSON.

use coload_json::{Json, LineBreaks, PADDING, parse_tree};

/// How an element of a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// In quotes.
    String,
    /// Digits.
    Number,
    /// `true` or `false`.
    Truth,
}

/// The elements of a list of JSON that are not NULL; `None` when it is none, or one of lists or objects.
pub(super) fn list_items(field: &[u8]) -> Option<Vec<(Item, Vec<u8>)>> {
    let mut padded = field.to_vec();
    padded.extend([0; PADDING]);
    let inner = field.strip_prefix(b"[")?;
    let mut items = Vec::new();
    let mut at = 1;
    let end = field.len() - inner.len() + inner.iter().rposition(|byte| *byte == b']')?;
    loop {
        let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        at += padded[at..end].iter().take_while(is_between).count();
        if at >= end {
            return Some(items);
        }
        let (item, next) = parse_tree(&padded, at, LineBreaks::AreSpace).ok()?;
        at = next;
        items.push(match item {
            Json::Null => continue,
            Json::Bool(truth) => (Item::Truth, truth.to_string().into_bytes()),
            Json::Number(number) => (Item::Number, number.to_vec()),
            Json::Text(text) => (Item::String, text.into_owned()),
            Json::List(_) | Json::Object(..) => return None,
        });
    }
}
