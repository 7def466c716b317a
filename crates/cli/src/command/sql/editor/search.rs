//! A search in the lines of before, the newest first.

/// The text that is looked for, and where it was found.
#[derive(Debug)]
pub(super) struct Search<'a> {
    history: &'a [String],
    text: String,
    /// The line that has it.
    at: Option<usize>,
}

impl<'a> Search<'a> {
    pub fn new(history: &'a [String]) -> Self {
        Search { history, text: String::new(), at: None }
    }

    /// The line that was found.
    pub fn found(&self) -> Option<&'a str> {
        self.at.map(|at| &*self.history[at])
    }

    /// What the terminal shows meanwhile.
    pub fn shown(&self) -> String {
        let missing = if self.at.is_none() && !self.text.is_empty() { "no " } else { "" };
        format!("({missing}search) {}: {}", self.text, self.found().unwrap_or_default())
    }

    pub fn add(&mut self, character: char) {
        self.text.push(character);
        self.look(self.at.map_or(self.history.len(), |at| at + 1));
    }

    pub fn shorten(&mut self) {
        self.text.pop();
        self.look(self.history.len());
    }

    /// Goes on to a line before.
    pub fn older(&mut self) {
        if let Some(at) = self.at {
            let last = self.at;
            self.look(at);
            self.at = self.at.or(last);
        }
    }

    fn look(&mut self, before: usize) {
        let text = self.text.to_lowercase();
        let has_it = |line: &String| !text.is_empty() && line.to_lowercase().contains(&text);
        self.at = self.history[..before].iter().rposition(has_it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_is_found_first_and_older_ones_after_it() {
        let history = ["SELECT a", "insert b", "select c"].map(str::to_owned);
        let mut search = Search::new(&history);
        search.add('s');
        assert_eq!(search.found(), Some("select c"));
        "elect".chars().for_each(|c| search.add(c));
        assert_eq!(search.found(), Some("select c"));
        search.older();
        assert_eq!(search.found(), Some("SELECT a"));
        search.older();
        assert_eq!(search.found(), Some("SELECT a"));
        "x".chars().for_each(|c| search.add(c));
        assert_eq!((search.found(), &*search.shown()), (None, "(no search) selectx: "));
        search.shorten();
        assert_eq!(search.found(), Some("select c"));
    }
}
