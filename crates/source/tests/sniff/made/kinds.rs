//! What columns hold, and their names.

use crate::random::Random;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Id,
    Integer,
    Amount,
    Float,
    Date,
    Timestamp,
    Flag,
    Code,
    Person,
    Place,
    Word,
    Note,
    Email,
    Category,
}

pub const KINDS: [Kind; 14] = [
    Kind::Id,
    Kind::Integer,
    Kind::Amount,
    Kind::Float,
    Kind::Date,
    Kind::Timestamp,
    Kind::Flag,
    Kind::Code,
    Kind::Person,
    Kind::Place,
    Kind::Word,
    Kind::Note,
    Kind::Email,
    Kind::Category,
];

/// Whether a column has a type but text.
pub fn is_typed(kind: Kind) -> bool {
    use Kind::{Amount, Date, Flag, Float, Id, Integer, Timestamp};
    matches!(kind, Id | Integer | Amount | Float | Date | Timestamp | Flag)
}

pub const EXTRA: [&str; 20] = [
    "value",
    "total",
    "score",
    "size",
    "level",
    "rate",
    "weight",
    "height",
    "rank",
    "count",
    "Quantity",
    "Unit Price",
    "netAmount",
    "GrossTotal",
    "balance_due",
    "Temp (C)",
    "pct_change",
    "Q1 sales",
    "Width",
    "max_speed",
];

/// Names that a column of a kind may have.
pub fn name_of(kind: Kind, random: &mut Random) -> String {
    let names: &[&str] = match kind {
        Kind::Id => &["id", "ID", "customer_id", "OrderID", "No.", "row", "key", "Nummer"],
        Kind::Integer => {
            &["count", "Quantity", "population", "age", "num_items", "Year", "visits", "Anzahl"]
        }
        Kind::Amount => {
            &["amount", "Price", "total", "Betrag", "UnitPrice", "balance", "montant", "Cost (EUR)"]
        }
        Kind::Float => {
            &["rate", "score", "Latitude", "temperature", "weight_kg", "mean", "x", "Temp (C)"]
        }
        Kind::Date => {
            &["date", "Day", "birthdate", "Datum", "order_date", "ShipDate", "from", "valid_from"]
        }
        Kind::Timestamp => &["timestamp", "created_at", "Time", "LastLogin", "updated"],
        Kind::Flag => &["active", "is_member", "Paid", "verified", "flag"],
        Kind::Code => &["code", "sku", "Product Code", "zip", "IBAN_suffix", "serial"],
        Kind::Person => &["name", "Full Name", "customer", "Author", "contact_name", "Nom"],
        Kind::Place => &["city", "Place", "location", "Ort", "Birth Place", "region_name"],
        Kind::Word => &["product", "material", "Item", "keyword", "tag"],
        Kind::Note => &["note", "Comment", "description", "Remarks", "free_text"],
        Kind::Email => &["email", "E-mail", "contactEmail"],
        Kind::Category => &["status", "Category", "type", "Group", "segment", "answer"],
    };
    if random.one_in(6) { (*random.of(&EXTRA)).to_owned() } else { (*random.of(names)).to_owned() }
}
