//! LIKE patterns on bytes: `%` is any text, `_` one character, `\` takes the next as it is.

/// A pattern, cut at its `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Like {
    /// Pieces between the `%`; the first stands at the start, the last at the end.
    pieces: Vec<Vec<Part>>,
}

/// A part of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Bytes that must stand here.
    Bytes(Vec<u8>),
    /// One character of any kind (`_`).
    Any,
}

/// What a pattern asks, when it is something simpler than a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Equal to this text: the pattern has no wildcard.
    Exactly(Vec<u8>),
    /// This text and anything after it.
    Prefix(Vec<u8>),
    /// Any other pattern, which is matched string by string.
    Pattern,
}

impl Like {
    /// Takes the pattern apart at its wildcards (`%` and `_`); `\` takes their meaning.
    pub fn new(pattern: &str) -> Self {
        let mut pieces = vec![Vec::new()];
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            let literal = match c {
                '%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                '_' => {
                    if let Some(piece) = pieces.last_mut() {
                        piece.push(Part::Any);
                    }
                    continue;
                }
                // A backslash at the end is itself.
                '\\' => rest.next().unwrap_or('\\'),
                other => other,
            };
            if let Some(piece) = pieces.last_mut() {
                push_char(piece, literal);
            }
        }
        Like { pieces }
    }

    /// The simpler question that this one is.
    pub fn shape(&self) -> Shape {
        match self.pieces.as_slice() {
            [only] => match only.as_slice() {
                [] => Shape::Exactly(Vec::new()),
                [Part::Bytes(bytes)] => Shape::Exactly(bytes.clone()),
                _ => Shape::Pattern,
            },
            [first, rest @ ..] if rest.iter().all(Vec::is_empty) => match first.as_slice() {
                [] => Shape::Prefix(Vec::new()),
                [Part::Bytes(bytes)] => Shape::Prefix(bytes.clone()),
                _ => Shape::Pattern,
            },
            _ => Shape::Pattern,
        }
    }

    /// Whether the pattern fits the whole of `text`, in UTF-8.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some(mut at) = match_at(first, text, 0) else { return false };
        let Some((last, middle)) = rest.split_last() else { return at == text.len() };
        for piece in middle {
            match find(piece, text, at) {
                Some(end) => at = end,
                None => return false,
            }
        }
        match_end(last, text, at)
    }
}

fn push_char(piece: &mut Vec<Part>, c: char) {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).as_bytes();
    match piece.last_mut() {
        Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
        _ => piece.push(Part::Bytes(bytes.to_vec())),
    }
}

/// Where the piece ends if it stands at `at`.
fn match_at(piece: &[Part], text: &[u8], mut at: usize) -> Option<usize> {
    for part in piece {
        match part {
            Part::Bytes(bytes) => {
                at = text[at..].starts_with(bytes).then_some(at + bytes.len())?;
            }
            Part::Any => at = after_char(text, at)?,
        }
    }
    Some(at)
}

fn after_char(text: &[u8], at: usize) -> Option<usize> {
    if at >= text.len() {
        return None;
    }
    let mut end = at + 1;
    while end < text.len() && text[end] & 0xc0 == 0x80 {
        end += 1;
    }
    Some(end)
}

/// Where the first occurrence of the piece at or after `at` ends.
fn find(piece: &[Part], text: &[u8], at: usize) -> Option<usize> {
    match piece {
        [] => Some(at),
        [Part::Bytes(bytes)] => {
            find_bytes(bytes, &text[at..]).map(|start| at + start + bytes.len())
        }
        _ => (at..=text.len())
            .filter(|start| text.get(*start).is_none_or(|b| b & 0xc0 != 0x80))
            .find_map(|start| match_at(piece, text, start)),
    }
}

/// The first occurrence of bytes that are not none.
fn find_bytes(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let first = bytes[0];
    let last_start = text.len().checked_sub(bytes.len())?;
    let mut at = 0;
    while at <= last_start {
        at += text[at..=last_start].iter().position(|b| *b == first)?;
        if text[at..].starts_with(bytes) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether the piece can stand at the end of the text, not before `at`.
fn match_end(piece: &[Part], text: &[u8], at: usize) -> bool {
    match piece {
        [] => true,
        [Part::Bytes(bytes)] => text.len() >= at + bytes.len() && text.ends_with(bytes),
        _ => (at..=text.len())
            .filter(|start| text.get(*start).is_none_or(|b| b & 0xc0 != 0x80))
            .any(|start| match_at(piece, text, start) == Some(text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow obvious matcher.
    fn model(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|i| model(rest, &text[i..])),
            Some(('_', rest)) => !text.is_empty() && model(rest, &text[1..]),
            Some((c, rest)) => text.first() == Some(c) && model(rest, &text[1..]),
        }
    }

    /// All words of up to `length` letters.
    fn words(letters: &[char], length: usize) -> Vec<Vec<char>> {
        let mut all = vec![Vec::new()];
        let mut start = 0;
        for _ in 0..length {
            let end = all.len();
            for i in start..end {
                for c in letters {
                    let mut word = all[i].clone();
                    word.push(*c);
                    all.push(word);
                }
            }
            start = end;
        }
        all
    }

    #[test]
    fn short_patterns_match_as_the_model_says() {
        let texts = words(&['a', 'é'], 5);
        for pattern in words(&['a', 'é', '%', '_'], 4) {
            let like = Like::new(&pattern.iter().collect::<String>());
            for text in &texts {
                let string: String = text.iter().collect();
                assert_eq!(
                    like.matches(string.as_bytes()),
                    model(&pattern, text),
                    "{pattern:?} {text:?}"
                );
            }
        }
    }

    #[test]
    fn simple_patterns_are_told() {
        assert_eq!(Like::new("ab").shape(), Shape::Exactly(b"ab".to_vec()));
        assert_eq!(Like::new("ab%").shape(), Shape::Prefix(b"ab".to_vec()));
        assert_eq!(Like::new("a\\%%").shape(), Shape::Prefix(b"a%".to_vec()));
        assert_eq!(Like::new("%").shape(), Shape::Prefix(Vec::new()));
        assert_eq!(Like::new("a_%").shape(), Shape::Pattern);
        assert_eq!(Like::new("%b").shape(), Shape::Pattern);
    }
}
