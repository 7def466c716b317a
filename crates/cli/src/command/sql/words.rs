//! What the shell knows of its lines: words that may come next, and colours.

use std::ops::Range;
use std::path::Path;

use coload_ddl::quote_name;
use coload_serve::function_names;
use coload_serve::output::FORMATS;
use coload_types::same_name;

use super::commands::COMMANDS;
use super::editor::{Completion, Language};

/// Words of SQL that are completed and painted.
const WORDS: &str = "all alter analyze and any as asc between by case cast check copy create cross current date default delete \
    desc describe distinct drop else end except exists explain extract false fetch filter first following from full group \
    having if ilike in inner insert intersect interval into is join last lateral left like limit natural not null nulls \
    offset on or order outer over partition pivot preceding primary range recursive replace right rollup row rows select set show \
    some summarize table tables then time timestamp to true truncate try_cast unbounded union unique unpivot using values view when where \
    window with boolean smallint integer bigint decimal real double precision varchar text char binary uuid";

/// Words behind which a table stands.
const BEFORE_TABLES: [&str; 10] = [
    "from",
    "join",
    "into",
    "table",
    "describe",
    "truncate",
    "desc",
    "pivot",
    "unpivot",
    "summarize",
];
/// Files that are looked at for a completion.
const FILES_MAX: usize = 2_000;

const WORD_COLOUR: &str = "\u{1b}[1;34m";
const TEXT_COLOUR: &str = "\u{1b}[32m";
const NUMBER_COLOUR: &str = "\u{1b}[36m";
const COMMENT_COLOUR: &str = "\u{1b}[2m";
const NO_COLOUR: &str = "\u{1b}[0m";

/// Tables and their columns.
pub type TableNames = Vec<(String, Vec<String>)>;

/// SQL, over the tables there are.
pub struct Sql<'a> {
    /// Lines of the statement that are typed already.
    pub before: &'a str,
    pub names: &'a mut dyn FnMut() -> TableNames,
    pub has_colours: bool,
}

/// What a character is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Word,
    Number,
    /// A text, or a name in quotes.
    Quoted(char),
    Comment,
    LongComment,
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_word(text: &str) -> bool {
    WORDS.split_whitespace().any(|word| word.eq_ignore_ascii_case(text))
}

/// What each character is part of. Reads through quotes and comments that began earlier.
fn kinds(text: &[char]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let from = at;
        let next = text.get(at + 1).copied();
        let to_end_of = |end: &dyn Fn(usize) -> bool, skip: usize| {
            (from + skip..text.len()).find(|i| end(*i)).unwrap_or(text.len())
        };
        let (kind, end) = match text[at] {
            quote @ ('\'' | '"') => {
                let end = to_end_of(&|i| text[i] == quote, 1);
                (Kind::Quoted(quote), end + 1)
            }
            '-' if next == Some('-') => (Kind::Comment, to_end_of(&|i| text[i] == '\n', 2)),
            '/' if next == Some('*') => {
                let end = to_end_of(&|i| text[i] == '*' && text.get(i + 1) == Some(&'/'), 2);
                (Kind::LongComment, end + 2)
            }
            c if c.is_ascii_digit() => {
                let end = to_end_of(&|i| !is_name(text[i]) && text[i] != '.', 1);
                (Kind::Number, end)
            }
            c if is_name(c) => {
                let end = to_end_of(&|i| !is_name(text[i]), 1);
                let word: String = text[from..end].iter().collect();
                (if is_word(&word) { Kind::Word } else { Kind::Plain }, end)
            }
            _ => (Kind::Plain, at + 1),
        };
        at = end.min(text.len());
        kinds.resize(at, kind);
    }
    kinds
}

impl Sql<'_> {
    /// The statement up to a line, and what its characters are part of.
    fn kinds_with(&self, line: &[char]) -> (Vec<char>, Vec<Kind>) {
        let all: Vec<char> = self.before.chars().chain(line.iter().copied()).collect();
        let kinds = kinds(&all);
        (all, kinds)
    }

    fn candidates(&mut self, text: &[char], word: &str) -> Vec<String> {
        let mut words = text.split(|c| !is_name(*c) && *c != '.').filter(|word| !word.is_empty());
        let last: String = words.next_back().unwrap_or_default().iter().collect();
        let names = (self.names)();
        let quoted = |name: &String| quote_name(name);
        if let Some((table, _)) = word.rsplit_once('.') {
            let columns = columns_of(&names, table, text);
            return columns
                .iter()
                .map(|column| format!("{table}.{}", quote_name(column)))
                .collect();
        }
        let tables = names.iter().map(|(table, _)| quoted(table));
        if BEFORE_TABLES.iter().any(|before| before.eq_ignore_ascii_case(&last)) {
            return tables.collect();
        }
        let is_lower = word.chars().any(char::is_lowercase);
        let cased = |text: &str| if is_lower { text.to_owned() } else { text.to_uppercase() };
        let mut all: Vec<String> = WORDS.split_whitespace().map(cased).collect();
        all.extend(function_names().map(|name| cased(name) + "("));
        all.extend(names.iter().flat_map(|(_, columns)| columns).map(quoted));
        all.extend(tables);
        all
    }
}

/// The columns of a table, by its name or an alias that the statement gives it.
fn columns_of<'a>(names: &'a TableNames, table: &str, text: &[char]) -> &'a [String] {
    let text: String = text.iter().collect();
    let words: Vec<&str> = text.split(|c| !is_name(c)).filter(|word| !word.is_empty()).collect();
    let named = |wanted: &str| names.iter().find(|(name, _)| same_name(name, wanted));
    let by_alias = || {
        let pairs = words.windows(3).flat_map(|w| [(w[0], w[1]), (w[0], w[2])]);
        let ends = words.windows(2).map(|w| (w[0], w[1]));
        let mut found = pairs.chain(ends).filter(|(_, alias)| same_name(alias, table));
        found.find_map(|(name, _)| named(name))
    };
    named(table).or_else(by_alias).map_or(&[], |(_, columns)| columns)
}

/// Files whose names begin with a text; folders end in a slash.
fn files(typed: &str) -> Vec<String> {
    let (folder, start) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let home = std::env::var("HOME").unwrap_or_default();
    let place = match folder {
        "" => "./".to_owned(),
        folder => {
            folder.strip_prefix("~/").map_or(folder.to_owned(), |rest| format!("{home}/{rest}"))
        }
    };
    let Ok(entries) = std::fs::read_dir(Path::new(&place)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten().take(FILES_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && !start.starts_with('.');
        if is_hidden || !name.starts_with(start) || name.contains(['\'', '\n']) {
            continue;
        }
        let slash = if entry.path().is_dir() { "/" } else { "" };
        found.push(format!("{folder}{name}{slash}"));
    }
    found
}

/// Those that begin with a word in any case, in order, once each; at `start`.
fn matching(start: usize, word: &str, mut candidates: Vec<String>) -> Completion {
    let word = word.to_lowercase();
    candidates.retain(|candidate| {
        let folded = candidate.to_lowercase();
        folded.starts_with(&word) || folded.starts_with(&format!("\"{word}"))
    });
    candidates.sort();
    candidates.dedup();
    Completion { start, candidates }
}

impl Language for Sql<'_> {
    fn complete(&mut self, line: &[char], cursor: usize) -> Completion {
        let line = &line[..cursor];
        let typed = |start: usize| line[start..].iter().collect::<String>();
        if self.before.is_empty() && line.first() == Some(&'\\') {
            let Some(blank) = line.iter().rposition(|c| c.is_whitespace()) else {
                let names = COMMANDS.iter().map(|command| command.name.to_owned()).collect();
                return matching(0, &typed(0), names);
            };
            let (start, command) = (blank + 1, typed(0));
            let argument = typed(start);
            return match command.split_whitespace().next().unwrap_or_default() {
                "\\i" | "\\o" | "\\e" => matching(start, &argument, files(&argument)),
                "\\output" => {
                    matching(start, &argument, FORMATS.iter().map(|f| f.name.to_owned()).collect())
                }
                "\\d" => {
                    let tables = (self.names)().into_iter().map(|(table, _)| quote_name(&table));
                    matching(start, &argument, tables.collect())
                }
                _ => Completion { start: cursor, candidates: Vec::new() },
            };
        }
        let (all, kinds) = self.kinds_with(line);
        let open = match kinds.last() {
            Some(Kind::Comment | Kind::LongComment) => {
                return Completion { start: cursor, candidates: Vec::new() };
            }
            Some(Kind::Quoted('\'')) => {
                let quotes = all.iter().zip(&kinds);
                let quotes = quotes.filter(|(c, kind)| **c == '\'' && **kind == Kind::Quoted('\''));
                quotes.count() % 2 == 1
            }
            _ => false,
        };
        if open {
            let start = line.iter().rposition(|c| *c == '\'').map_or(0, |quote| quote + 1);
            return matching(start, &typed(start), files(&typed(start)));
        }
        let start = line.iter().rposition(|c| !is_name(*c) && *c != '.').map_or(0, |p| p + 1);
        let word = typed(start);
        let behind = all.len() - (cursor - start);
        let candidates = self.candidates(&all[..behind], &word);
        let is_wanted = !word.is_empty() || candidates.len() < WORDS.split_whitespace().count();
        matching(start, &word, if is_wanted { candidates } else { Vec::new() })
    }

    fn paint(&self, line: &[char], part: Range<usize>) -> String {
        let plain = || line[part.clone()].iter().collect();
        if !self.has_colours || line.first() == Some(&'\\') {
            return plain();
        }
        let (all, kinds) = self.kinds_with(line);
        let kinds = &kinds[all.len() - line.len()..];
        let (mut painted, mut last) = (String::new(), Kind::Plain);
        for (character, kind) in line.iter().zip(kinds).take(part.end).skip(part.start) {
            if *kind != last {
                painted.push_str(NO_COLOUR);
                painted.push_str(match kind {
                    Kind::Plain => "",
                    Kind::Word => WORD_COLOUR,
                    Kind::Number => NUMBER_COLOUR,
                    Kind::Quoted(_) => TEXT_COLOUR,
                    Kind::Comment | Kind::LongComment => COMMENT_COLOUR,
                });
                last = *kind;
            }
            painted.push(*character);
        }
        painted + if last == Kind::Plain { "" } else { NO_COLOUR }
    }
}

#[cfg(test)]
mod tests;
