//! What SHOW FUNCTIONS lists: every function that a statement can call, with a word on each.

use datafusion::logical_expr::Documentation;

use super::{LISTED, TABLE_FUNCTIONS};
use crate::external::reference;
use crate::statement::tree::spoken_calls;

/// A function of the list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listing {
    /// What it is called by.
    pub name: String,
    /// What it is called with: SCALAR, AGGREGATE, WINDOW, TABLE.
    pub kind: &'static str,
    /// How it is called, where that is known.
    pub syntax: String,
    /// What it does, where that is known.
    pub description: String,
}

impl Listing {
    fn new(name: &str, kind: &'static str, of: Option<&Documentation>) -> Self {
        let syntax = of.map(|of| of.syntax_example.clone()).unwrap_or_default();
        let description = of.map(|of| of.description.trim().to_owned()).unwrap_or_default();
        Listing { name: name.to_owned(), kind, syntax, description }
    }
}

/// All functions, by name.
pub(crate) fn listing() -> Vec<Listing> {
    let mut all = Vec::new();
    let mut add = |kind, name: &str, aliases: &[String], of: Option<&Documentation>| {
        let names = std::iter::once(name).chain(aliases.iter().map(String::as_str));
        all.extend(names.map(|name| Listing::new(name, kind, of)));
    };
    for f in &LISTED.scalar {
        add("SCALAR", f.name(), f.aliases(), f.documentation());
    }
    for f in &LISTED.aggregate {
        add("AGGREGATE", f.name(), f.aliases(), f.documentation());
    }
    for f in &LISTED.window {
        add("WINDOW", f.name(), f.aliases(), f.documentation());
    }
    for name in TABLE_FUNCTIONS.into_iter().chain(reference::function_names()) {
        add("TABLE", name, &[], None);
    }
    for (name, syntax, meaning) in spoken_calls() {
        let description = format!("The same as {meaning}.");
        all.push(Listing { name: name.to_owned(), kind: "SCALAR", syntax, description });
    }
    all.push(Listing {
        name: "unnest".to_owned(),
        kind: "TABLE",
        syntax: "unnest(list)".to_owned(),
        description: "A row for each element of a list; in SELECT too.".to_owned(),
    });
    all.sort();
    all.dedup_by(|one, other| (&one.name, one.kind) == (&other.name, other.kind));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::function_names;

    #[test]
    fn every_function_is_listed() {
        let listed = listing();
        for name in function_names() {
            assert!(listed.iter().any(|listing| listing.name == name), "{name}");
        }
    }
}
