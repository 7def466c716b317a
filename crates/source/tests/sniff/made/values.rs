//! Values as SQL writes them.

use super::kinds::Kind;
use super::writers::{Form, Quoting};
use crate::random::Random;

pub const FIRST: [&str; 24] = [
    "Ann", "Bob", "Carla", "Dmitri", "Eve", "Farid", "Grace", "Hiro", "Ines", "Jürgen", "Käthe",
    "Léa", "María", "Noël", "Óscar", "Paulo", "René", "Søren", "Tomás", "Ursula", "Victor",
    "Wanda", "Zoë", "Åke",
];

pub const LAST: [&str; 22] = [
    "Lee", "Müller", "García", "O'Neil", "Smith", "van Dyk", "Dubois", "Rossi", "Núñez", "Jäger",
    "Brown", "da Silva", "Öberg", "Lefèvre", "Jones", "Kim", "Novak", "Fischer", "D'Arcy", "Weiß",
    "Patel", "Wong",
];

pub const PLACES: [&str; 20] = [
    "Berlin",
    "São Paulo",
    "New York",
    "Zürich",
    "Paris",
    "Málaga",
    "Oslo",
    "Köln",
    "Washington, DC",
    "Rome",
    "Orléans",
    "Lagos",
    "Tokyo",
    "Göteborg",
    "Lima",
    "St. Gallen",
    "Malmö",
    "Cádiz",
    "Cairo",
    "Nîmes",
];

pub const WORDS: [&str; 30] = [
    "blue", "steel", "garden", "light", "river", "paper", "north", "table", "stone", "glass",
    "small", "open", "late", "green", "water", "round", "heavy", "quick", "plain", "wood",
    "cotton", "salt", "old", "window", "market", "winter", "summer", "bread", "coffee", "tea",
];

pub const CATEGORIES: [[&str; 4]; 6] = [
    ["red", "green", "blue", "grey"],
    ["Male", "Female", "Other", "Unknown"],
    ["OPEN", "CLOSED", "PENDING", "HELD"],
    ["North", "South", "East", "West"],
    ["A", "B", "C", "D"],
    ["Yes", "No", "Maybe", "Never"],
];

/// A value as SQL writes it. `plain` text has nothing that an aligned table cannot hold.
pub fn value_of(
    kind: Kind,
    row: usize,
    category: usize,
    plain: bool,
    form: &Form,
    random: &mut Random,
) -> String {
    let bare = form.quoting == Quoting::None;
    let held = |text: String| match plain || bare {
        // Nothing encloses it: a delimiter or a line end would end it.
        true => text
            .replace(form.delimiter, " ")
            .replace(['\n', '"', '|', '\t', '~', '^'], " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        false => text,
    };
    match kind {
        Kind::Id => (1000 + row).to_string(),
        Kind::Integer => match random.below(8) {
            0 => format!("-{}", random.between(1, 999)),
            1 => random.between(100_000, 9_999_999).to_string(),
            _ => random.between(0, 99).to_string(),
        },
        Kind::Amount => format!("{}.{:02}", random.between(0, 99_999), random.below(100)),
        Kind::Float => format!(
            "{}{}.{}",
            if random.one_in(4) { "-" } else { "" },
            random.below(90),
            random.between(1, 99_999)
        ),
        Kind::Date => format!(
            "20{:02}-{:02}-{:02}",
            random.below(30),
            random.between(1, 12),
            random.between(1, 28)
        ),
        Kind::Timestamp => format!(
            "20{:02}-{:02}-{:02} {:02}:{:02}:{:02}",
            random.below(30),
            random.between(1, 12),
            random.between(1, 28),
            random.below(24),
            random.below(60),
            random.below(60)
        ),
        Kind::Flag => (*random.of(&["true", "false"])).to_owned(),
        Kind::Code => match random.below(3) {
            0 => format!("{:05}", random.below(9999)),
            1 => format!("A{}-{}", random.between(10, 99), random.between(100, 999)),
            _ => format!("{}{}", random.of(&["DE", "FR", "X"]), random.between(1000, 9999)),
        },
        Kind::Person => held(format!("{} {}", random.of(&FIRST), random.of(&LAST))),
        Kind::Place => held((*random.of(&PLACES)).to_owned()),
        Kind::Word => held(format!("{} {}", random.of(&WORDS), random.of(&WORDS))),
        Kind::Note => {
            let mut text: Vec<String> =
                (0..random.between(2, 14)).map(|_| (*random.of(&WORDS)).to_owned()).collect();
            match random.below(12) {
                0 => text.insert(1, "and, so".to_owned()),
                1 => text.insert(1, "\"quoted\"".to_owned()),
                2 => text.insert(1, "line\nbreak".to_owned()),
                3 => text.insert(1, "semi; colon".to_owned()),
                4 => text.insert(1, "it's".to_owned()),
                _ => {}
            }
            held(text.join(" "))
        }
        Kind::Email => format!(
            "{}{}@example.{}",
            random.of(&WORDS),
            random.below(99),
            random.of(&["org", "com"])
        ),
        Kind::Category => CATEGORIES[category][random.below(4)].to_owned(),
    }
}
