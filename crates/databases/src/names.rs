//! Names of tables, as a user writes them and as SQL has them.

use std::fmt;

use coload_types::{Error, Result};

/// A table, and perhaps the schema that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Schema, or database of MySQL; the connection's own if `None`.
    pub schema: Option<String>,
    /// Name of the table.
    pub name: String,
}

impl TableName {
    /// Reads `name` or `schema.name`; a part in double quotes may hold anything.
    ///
    /// # Errors
    /// `Invalid` when a part is empty, there are more than two, or a quote is not closed.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Invalid(format!("--table {text}: {why}, as in name, schema.name or \"a.b\""))
        };
        let mut parts = vec![String::new()];
        let mut chars = text.chars().peekable();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            let part = parts.last_mut().ok_or_else(|| wrong("it is empty"))?;
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    part.push('"');
                }
                '"' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                '\0' => return Err(wrong("a name has no NUL")),
                other => part.push(other),
            }
        }
        if quoted {
            return Err(wrong("a quote is not closed"));
        }
        if parts.iter().any(String::is_empty) {
            return Err(wrong("a name is empty"));
        }
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), None, _) => Ok(TableName { schema: None, name }),
            (Some(schema), Some(name), None) => Ok(TableName { schema: Some(schema), name }),
            _ => Err(wrong("it has more than two parts")),
        }
    }

    /// Another table in the same schema.
    pub fn beside(&self, name: impl Into<String>) -> Self {
        TableName { schema: self.schema.clone(), name: name.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// How an engine writes names that may hold anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotes(pub char);

impl Quotes {
    /// A name in quotes.
    pub fn name(self, name: &str) -> String {
        let Quotes(open) = self;
        // Of brackets only the one that closes would end the name.
        let close = if open == '[' { ']' } else { open };
        let mut quoted = String::with_capacity(name.len() + 2);
        quoted.push(open);
        for c in name.chars() {
            quoted.push(c);
            if c == close {
                quoted.push(c);
            }
        }
        quoted.push(close);
        quoted
    }

    /// A table's name in quotes.
    pub fn table(self, table: &TableName) -> String {
        match &table.schema {
            Some(schema) => format!("{}.{}", self.name(schema), self.name(&table.name)),
            None => self.name(&table.name),
        }
    }

    /// Names in quotes, with commas between them.
    pub fn list<'a>(self, names: impl IntoIterator<Item = &'a str>) -> String {
        names.into_iter().map(|name| self.name(name)).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let read = |text| TableName::parse(text).map(|t| (t.schema, t.name)).ok();
        let some = |schema: &str, name: &str| Some((Some(schema.to_owned()), name.to_owned()));
        assert_eq!(read("orders"), Some((None, "orders".to_owned())));
        assert_eq!(read("sales.Orders"), some("sales", "Orders"));
        assert_eq!(read("\"a.b\".\"c\"\"d\""), some("a.b", "c\"d"));
        for wrong in ["", ".", "a.", ".a", "a.b.c", "\"a", "\"\"", "a\0"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_name_leaves_its_quotes() {
        assert_eq!(Quotes('"').name("a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
        assert_eq!(Quotes('`').name("a`b\"c"), "`a``b\"c`");
        assert_eq!(Quotes('[').name("a]; DROP [b]"), "[a]]; DROP [b]]]");
        let table = TableName::parse("s.\"T x\"").expect("a name");
        assert_eq!(Quotes('"').table(&table), "\"s\".\"T x\"");
    }
}
