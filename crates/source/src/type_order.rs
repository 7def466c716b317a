//! The types that inference may take, and in what order.

use std::fmt;

/// A kind of type that inference may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// BOOLEAN: the words `true` and `false`.
    Boolean,
    /// BIGINT: integers that fit 64 bits.
    BigInt,
    /// Numbers with digits after the point, and longer integers.
    Decimal,
    /// DOUBLE: floats as programs print them.
    Double,
    /// DATE: days of the calendar.
    Date,
    /// TIME: times of day.
    Time,
    /// TIMESTAMP: days with times of day.
    Timestamp,
    /// Days with times and zones.
    TimestampTz,
    /// VARCHAR: what no other type holds.
    Varchar,
}

impl Candidate {
    /// All, in the order in which they are tried unless another one is given.
    pub const ALL: [Candidate; 9] = [
        Candidate::Boolean,
        Candidate::BigInt,
        Candidate::Decimal,
        Candidate::Double,
        Candidate::Date,
        Candidate::Time,
        Candidate::Timestamp,
        Candidate::TimestampTz,
        Candidate::Varchar,
    ];

    /// The name that `--type-order` has for the type.
    pub fn name(self) -> &'static str {
        match self {
            Candidate::Boolean => "BOOLEAN",
            Candidate::BigInt => "BIGINT",
            Candidate::Decimal => "DECIMAL",
            Candidate::Double => "DOUBLE",
            Candidate::Date => "DATE",
            Candidate::Time => "TIME",
            Candidate::Timestamp => "TIMESTAMP",
            Candidate::TimestampTz => "TIMESTAMPTZ",
            Candidate::Varchar => "VARCHAR",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let name = match name.to_ascii_uppercase().as_str() {
            "BOOL" => "BOOLEAN".to_owned(),
            "TIMESTAMP WITH TIME ZONE" => "TIMESTAMPTZ".to_owned(),
            "TEXT" => "VARCHAR".to_owned(),
            other => other.to_owned(),
        };
        Candidate::ALL.into_iter().find(|candidate| candidate.name() == name)
    }
}

/// Kinds of types in the order in which they are tried; VARCHAR, which holds all, ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeOrder {
    kinds: [Candidate; Candidate::ALL.len()],
    count: u8,
}

impl Default for TypeOrder {
    fn default() -> Self {
        TypeOrder { kinds: Candidate::ALL, count: Candidate::ALL.len() as u8 }
    }
}

impl TypeOrder {
    /// Reads a list such as `BIGINT, DOUBLE, DATE`; what is not in it is not inferred.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut order = TypeOrder { count: 0, ..TypeOrder::default() };
        let all = || Candidate::ALL.map(Candidate::name).join(", ");
        for name in text.split(',').map(str::trim) {
            let Some(kind) = Candidate::of_name(name) else {
                return Err(format!("\"{name}\" is no type that is inferred: there is {}", all()));
            };
            if order.candidates().any(|known| known == kind) {
                return Err(format!("{} is named twice", kind.name()));
            }
            if order.candidates().any(|known| known == Candidate::Varchar) {
                return Err(format!("{} follows VARCHAR, which holds everything", kind.name()));
            }
            order.push(kind);
        }
        if !order.has(Candidate::Varchar) {
            order.push(Candidate::Varchar);
        }
        Ok(order)
    }

    fn push(&mut self, kind: Candidate) {
        self.kinds[usize::from(self.count)] = kind;
        self.count += 1;
    }

    /// The kinds in order.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.kinds[..usize::from(self.count)].iter().copied()
    }

    /// Whether a kind may be taken.
    pub fn has(&self, kind: Candidate) -> bool {
        self.candidates().any(|known| known == kind)
    }

    /// Whether it is the order that is taken when none is given.
    pub fn is_default(&self) -> bool {
        *self == TypeOrder::default()
    }
}

impl fmt::Display for TypeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.candidates().map(Candidate::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn orders_are_read_and_refused() {
        for (text, expected) in [
            ("bigint, double", Ok("BIGINT,DOUBLE,VARCHAR")),
            ("DOUBLE,text", Ok("DOUBLE,VARCHAR")),
            ("varchar", Ok("VARCHAR")),
            ("bigint,bigint", Err("BIGINT is named twice")),
            ("varchar,date", Err("DATE follows VARCHAR, which holds everything")),
        ] {
            let found = TypeOrder::parse(text).map(|order| order.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
        assert!(TypeOrder::parse("INT").unwrap_err().contains("BOOLEAN, BIGINT"));
        assert!(TypeOrder::parse("").is_err());
        assert_eq!(TypeOrder::parse(&TypeOrder::default().to_string()), Ok(TypeOrder::default()));
    }
}
