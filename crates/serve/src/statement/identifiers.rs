//! Names of columns without regard to case.
//!
//! DataFusion turns unquoted names to lower case and compares exactly. A store keeps names as they
//! were written. Where these differ, the words of a statement that mean a stored column are replaced
//! by its stored spelling, in quotes, before the statement is parsed.
//!
//! Left alone: aliases that the statement gives itself, names of functions, and words of date
//! literals, EXTRACT and INTERVAL.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use coload_store::Snapshot;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use super::split::Tokens;

/// The statement with the stored spelling of columns.
pub(crate) fn resolve<'a>(text: &'a str, snapshot: &Snapshot) -> Cow<'a, str> {
    // Quoted names keep their case in DataFusion, so those may need a change in any table.
    let any = text.contains('"') || snapshot.tables().iter().any(has_capitals);
    if !any {
        return Cow::Borrowed(text);
    }
    let tokens = Tokens::of(text);
    let words: Vec<(usize, &Word)> = tokens.words().collect();
    let stored = stored_names(&words, text.contains('"'), snapshot);
    if stored.is_empty() || !is_about_rows(&words) {
        return Cow::Borrowed(text);
    }
    let aliases = aliases(&words, &tokens);
    let mut changed = String::with_capacity(text.len() + 32);
    let mut copied = 0;
    for (index, word) in &words {
        let lower = word.value.to_lowercase();
        let Some(name) = stored.get(&lower) else { continue };
        if aliases.contains(&lower) || is_syntax(*index, word, &tokens) {
            continue;
        }
        let Some((start, end)) = tokens.range(*index) else { continue };
        changed.push_str(&text[copied..start]);
        changed.push('"');
        changed.push_str(&name.replace('"', "\"\""));
        changed.push('"');
        copied = end;
    }
    changed.push_str(&text[copied..]);
    Cow::Owned(changed)
}

fn has_capitals(table: &coload_store::TableEntry) -> bool {
    table.schema.columns().iter().any(|c| c.name.chars().any(char::is_uppercase))
}

/// Whether names in the statement can be columns of stored tables.
fn is_about_rows(words: &[(usize, &Word)]) -> bool {
    use Keyword as K;
    let first = words.first().map(|(_, word)| word.keyword);
    matches!(first, Some(K::SELECT | K::WITH | K::INSERT | K::EXPLAIN))
        || (first == Some(K::CREATE) && words.iter().any(|(_, word)| word.keyword == K::SELECT))
}

/// The columns of the tables that the statement names, by lower case.
fn stored_names(
    words: &[(usize, &Word)],
    quoted: bool,
    snapshot: &Snapshot,
) -> HashMap<String, String> {
    let tables: HashSet<String> = words.iter().map(|(_, w)| w.value.to_lowercase()).collect();
    snapshot
        .tables()
        .iter()
        .filter(|t| tables.contains(&t.name.to_lowercase()))
        .flat_map(|t| t.schema.columns())
        .map(|column| (column.name.to_lowercase(), column.name.clone()))
        .filter(|(lower, name)| quoted || lower != name)
        .collect()
}

/// The names that follow AS.
fn aliases(words: &[(usize, &Word)], tokens: &Tokens) -> HashSet<String> {
    words
        .iter()
        .filter(|(index, _)| tokens.is_word_before(*index, Keyword::AS))
        .map(|(_, word)| word.value.to_lowercase())
        .collect()
}

/// Whether the word is a part of the language here.
fn is_syntax(index: usize, word: &Word, tokens: &Tokens) -> bool {
    if word.quote_style.is_some() {
        return false;
    }
    let is_call = matches!(tokens.after(index), Some(Token::LParen))
        && word.keyword == Keyword::NoKeyword
        && !tokens.is_word_before(index, Keyword::INTO);
    let is_typed_literal = matches!(tokens.after(index), Some(Token::SingleQuotedString(_)));
    let is_unit = matches!(tokens.before(index), Some(Token::SingleQuotedString(_)));
    let is_extracted = tokens.is_call_before(index, Keyword::EXTRACT);
    is_call || is_typed_literal || is_unit || is_extracted
}
