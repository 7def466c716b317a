//! Tables with known names and values, written as programs write them.

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

const KINDS: [Kind; 14] = [
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

/// Who writes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    ExcelUs,
    ExcelGermany,
    ExcelFrance,
    ExcelUnicode,
    Pandas,
    RCsv,
    RTable,
    Psql,
    MysqlBatch,
    MysqlTable,
    MysqlOutfile,
    PostgresCopy,
    Bcp,
    Sap,
    Sheets,
    Statistics,
    Bank,
    Markdown,
    Unix,
    Pipe,
    Carets,
}

pub const WRITERS: [Writer; 21] = [
    Writer::ExcelUs,
    Writer::ExcelGermany,
    Writer::ExcelFrance,
    Writer::ExcelUnicode,
    Writer::Pandas,
    Writer::RCsv,
    Writer::RTable,
    Writer::Psql,
    Writer::MysqlBatch,
    Writer::MysqlTable,
    Writer::MysqlOutfile,
    Writer::PostgresCopy,
    Writer::Bcp,
    Writer::Sap,
    Writer::Sheets,
    Writer::Statistics,
    Writer::Bank,
    Writer::Markdown,
    Writer::Unix,
    Writer::Pipe,
    Writer::Carets,
];

/// A file and what it holds.
#[derive(Debug, Clone)]
pub struct Made {
    pub writer: Writer,
    pub bytes: Vec<u8>,
    /// `None` where the file has no names.
    pub names: Option<Vec<String>>,
    pub kinds: Vec<Kind>,
    /// Values as SQL writes them; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

const FIRST: [&str; 24] = [
    "Ann", "Bob", "Carla", "Dmitri", "Eve", "Farid", "Grace", "Hiro", "Ines", "Jürgen", "Käthe",
    "Léa", "María", "Noël", "Óscar", "Paulo", "René", "Søren", "Tomás", "Ursula", "Victor",
    "Wanda", "Zoë", "Åke",
];
const LAST: [&str; 22] = [
    "Lee", "Müller", "García", "O'Neil", "Smith", "van Dyk", "Dubois", "Rossi", "Núñez", "Jäger",
    "Brown", "da Silva", "Öberg", "Lefèvre", "Jones", "Kim", "Novak", "Fischer", "D'Arcy", "Weiß",
    "Patel", "Wong",
];
const PLACES: [&str; 20] = [
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
const WORDS: [&str; 30] = [
    "blue", "steel", "garden", "light", "river", "paper", "north", "table", "stone", "glass",
    "small", "open", "late", "green", "water", "round", "heavy", "quick", "plain", "wood",
    "cotton", "salt", "old", "window", "market", "winter", "summer", "bread", "coffee", "tea",
];
const CATEGORIES: [[&str; 4]; 6] = [
    ["red", "green", "blue", "grey"],
    ["Male", "Female", "Other", "Unknown"],
    ["OPEN", "CLOSED", "PENDING", "HELD"],
    ["North", "South", "East", "West"],
    ["A", "B", "C", "D"],
    ["Yes", "No", "Maybe", "Never"],
];
const EXTRA: [&str; 20] = [
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
fn name_of(kind: Kind, random: &mut Random) -> String {
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

/// What is written and read with it.
#[derive(Debug, Clone)]
struct Form {
    delimiter: &'static str,
    decimal: char,
    thousands: Option<char>,
    date: &'static str,
    null: &'static str,
    end: &'static str,
    quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Minimal,
    Text,
    All,
    /// Around text, and a backslash before quotes inside.
    TextBackslash,
    /// Around text, in tildes.
    Tildes,
}

/// Makes a table and its file.
pub fn make(seed: u64) -> Made {
    let mut random = Random::new(seed);
    let writer = *random.of(&WRITERS);
    let form = form_of(writer, &mut random);
    let mut kinds = vec![];
    let most = if matches!(writer, Writer::Markdown | Writer::Unix) { 6 } else { 12 };
    for _ in 0..random.between(2, most) {
        // R does not quote times, and a space stands between day and hour.
        let kind = *random.of(&KINDS);
        kinds.push(if writer == Writer::RTable && kind == Kind::Timestamp {
            Kind::Date
        } else {
            kind
        });
    }
    // Text of words alone has no names that anyone could tell from rows, if rows are few.
    if !kinds.iter().any(|kind| is_typed(*kind)) {
        kinds[0] = Kind::Id;
    }
    let header = match writer {
        Writer::PostgresCopy | Writer::MysqlOutfile | Writer::Bcp | Writer::Carets => {
            random.one_in(4)
        }
        Writer::Pandas | Writer::Pipe | Writer::Unix => !random.one_in(6),
        _ => true,
    };
    let count = match random.below(10) {
        0 => random.between(2, 4),
        1..=6 => random.between(5, 40),
        _ => random.between(40, 300),
    };
    let categories: Vec<usize> = kinds.iter().map(|_| random.below(CATEGORIES.len())).collect();
    let sparse: Vec<bool> = kinds.iter().map(|_| random.one_in(4)).collect();
    let plain = matches!(
        writer,
        Writer::Unix | Writer::Markdown | Writer::Psql | Writer::MysqlTable | Writer::Sap
    );
    let mut rows = Vec::new();
    for row in 0..count {
        let mut values = Vec::new();
        for (column, kind) in kinds.iter().enumerate() {
            let value = value_of(*kind, row, categories[column], plain, &form, &mut random);
            let is_null =
                sparse[column] && *kind != Kind::Id && random.one_in(5) && writer != Writer::Unix;
            values.push((!is_null).then_some(value));
        }
        rows.push(values);
    }
    // A column has a value, or nobody could tell what it is.
    for column in 0..kinds.len() {
        if rows.iter().all(|row| row[column].is_none()) {
            rows[0][column] =
                Some(value_of(kinds[column], 0, categories[column], plain, &form, &mut random));
        }
    }
    settle(&kinds, &mut rows, &form, &mut random);
    let mut names: Vec<String> = Vec::new();
    for kind in &kinds {
        let mut name = name_of(*kind, &mut random);
        if writer == Writer::Unix {
            name = name.replace(' ', "_");
        }
        while names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            name = format!("{name}{}", random.between(2, 99));
        }
        names.push(name);
    }
    let bytes = write(writer, &form, header.then_some(&names[..]), &kinds, &rows, &mut random);
    let rows = rows.into_iter().map(|row| read_back(row, &kinds, &form, writer)).collect();
    Made { writer, bytes, names: header.then_some(names), kinds, rows }
}

/// Whether a column has a type but text.
pub fn is_typed(kind: Kind) -> bool {
    use Kind::{Amount, Date, Flag, Float, Id, Integer, Timestamp};
    matches!(kind, Id | Integer | Amount | Float | Date | Timestamp | Flag)
}

/// What must be so that the form of dates and numbers can be told: a day over 12, and a number that is no thousand.
fn settle(kinds: &[Kind], rows: &mut [Vec<Option<String>>], form: &Form, random: &mut Random) {
    for (column, kind) in kinds.iter().enumerate() {
        let row = random.below(rows.len());
        match kind {
            Kind::Date | Kind::Timestamp if form.date != "%Y-%m-%d" => {
                let time = if *kind == Kind::Timestamp { " 10:30:00" } else { "" };
                rows[row][column] = Some(format!("2023-07-{}{time}", random.between(13, 28)));
            }
            Kind::Amount if form.thousands.is_some() || form.decimal == ',' => {
                rows[row][column] = Some(format!("{}234.56", random.between(1, 9)));
            }
            _ => {}
        }
    }
}

fn form_of(writer: Writer, random: &mut Random) -> Form {
    let base = Form {
        delimiter: ",",
        decimal: '.',
        thousands: None,
        date: "%Y-%m-%d",
        null: "",
        end: "\n",
        quoting: Quoting::Minimal,
    };
    match writer {
        Writer::ExcelUs => Form {
            end: "\r\n",
            date: if random.one_in(2) { "%m/%d/%Y" } else { base.date },
            ..base
        },
        Writer::ExcelGermany | Writer::Bank => Form {
            delimiter: ";",
            decimal: ',',
            thousands: random.one_in(2).then_some('.'),
            date: "%d.%m.%Y",
            end: "\r\n",
            quoting: if writer == Writer::Bank { Quoting::All } else { Quoting::Minimal },
            ..base
        },
        Writer::ExcelFrance => Form {
            delimiter: ";",
            decimal: ',',
            thousands: random.one_in(2).then_some('\u{a0}'),
            date: "%d/%m/%Y",
            end: "\r\n",
            ..base
        },
        Writer::ExcelUnicode => Form { delimiter: "\t", end: "\r\n", ..base },
        Writer::Pandas => Form {
            delimiter: random.of::<&str>(&[",", ";", "\t"]),
            quoting: *random.of(&[Quoting::Minimal, Quoting::Minimal, Quoting::Text, Quoting::All]),
            ..base
        },
        Writer::RCsv => Form { null: "NA", quoting: Quoting::Text, ..base },
        Writer::RTable => Form { delimiter: " ", null: "NA", quoting: Quoting::Text, ..base },
        Writer::MysqlBatch => {
            Form { delimiter: "\t", null: "NULL", quoting: Quoting::None, ..base }
        }
        Writer::MysqlOutfile => Form { null: "\\N", quoting: Quoting::TextBackslash, ..base },
        Writer::PostgresCopy => {
            Form { delimiter: "\t", null: "\\N", quoting: Quoting::None, ..base }
        }
        Writer::Bcp => Form {
            delimiter: random.of::<&str>(&["|", "\t", "||", "~|~"]),
            end: "\r\n",
            quoting: Quoting::None,
            ..base
        },
        Writer::Sheets => Form { end: "\r\n", ..base },
        Writer::Statistics => {
            Form { quoting: *random.of(&[Quoting::All, Quoting::Text, Quoting::Minimal]), ..base }
        }
        Writer::Pipe => Form { delimiter: "|", quoting: Quoting::Minimal, ..base },
        Writer::Carets => Form { delimiter: "^", quoting: Quoting::Tildes, ..base },
        Writer::MysqlTable => Form { null: "NULL", ..base },
        Writer::Psql | Writer::Sap | Writer::Markdown | Writer::Unix => base,
    }
}

/// A value as SQL writes it. `plain` text has nothing that an aligned table cannot hold.
fn value_of(
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

/// A value as the file has it.
fn shown(value: &str, kind: Kind, form: &Form) -> String {
    match kind {
        Kind::Integer | Kind::Amount | Kind::Float => {
            let (sign, digits) = value.strip_prefix('-').map_or(("", value), |rest| ("-", rest));
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let mut grouped = String::new();
            let group = form.thousands.filter(|_| kind == Kind::Amount);
            for (index, digit) in whole.chars().enumerate() {
                if index > 0 && (whole.len() - index) % 3 == 0 {
                    grouped.extend(group);
                }
                grouped.push(digit);
            }
            let point = if fraction.is_empty() { String::new() } else { form.decimal.to_string() };
            format!("{sign}{grouped}{point}{fraction}")
        }
        Kind::Date | Kind::Timestamp => {
            let (date, time) = value.split_at(10);
            let date = form
                .date
                .replace("%Y", &date[..4])
                .replace("%m", &date[5..7])
                .replace("%d", &date[8..]);
            format!("{date}{time}")
        }
        _ => value.to_owned(),
    }
}

/// A field as the file has it.
fn field(value: Option<&str>, kind: Kind, form: &Form) -> String {
    let Some(value) = value else {
        return form.null.to_owned();
    };
    let text = shown(value, kind, form);
    let special = |c: char| c == '"' || c == '\n' || c == '\r';
    let typed = is_typed(kind);
    let doubled =
        |quote: char| format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")));
    match form.quoting {
        Quoting::None => text,
        Quoting::Minimal if text.contains(special) || text.contains(form.delimiter) => doubled('"'),
        Quoting::Minimal => text,
        Quoting::Text if typed => text,
        Quoting::Text | Quoting::All => doubled('"'),
        Quoting::TextBackslash if typed => text,
        Quoting::TextBackslash => format!("\"{}\"", text.replace('"', "\\\"")),
        Quoting::Tildes if typed => text,
        Quoting::Tildes => format!("~{text}~"),
    }
}

fn write(
    writer: Writer,
    form: &Form,
    names: Option<&[String]>,
    kinds: &[Kind],
    rows: &[Vec<Option<String>>],
    random: &mut Random,
) -> Vec<u8> {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(kinds)
                .map(|(value, kind)| field(value.as_deref(), *kind, form))
                .collect()
        })
        .collect();
    let text = match writer {
        Writer::Psql | Writer::MysqlTable | Writer::Sap | Writer::Markdown | Writer::Unix => {
            drawn(writer, form, names.unwrap_or_default(), &cells, kinds)
        }
        _ => delimited(writer, form, names, &cells, random),
    };
    encoded(writer, &text, random)
}

fn delimited(
    writer: Writer,
    form: &Form,
    names: Option<&[String]>,
    cells: &[Vec<String>],
    random: &mut Random,
) -> String {
    let mut out = String::new();
    let end = form.end;
    match writer {
        Writer::Statistics if names.is_some() && random.one_in(2) => {
            out.push_str(&format!(
                "Table 5: Sales, by region and year{end}Source: Office of Statistics{end}{end}"
            ));
        }
        Writer::Bank => {
            out.push_str(&format!(
                "\"Account\";\"DE12 3456\";{end}\"From\";\"01.01.2024\";{end}{end}"
            ));
        }
        Writer::ExcelGermany if random.one_in(6) => out.push_str(&format!("sep=;{end}")),
        _ => {}
    }
    let trailing = writer == Writer::Pipe && random.one_in(2);
    let mut line = |fields: &[String]| {
        out.push_str(&fields.join(form.delimiter));
        out.push_str(if trailing { form.delimiter } else { "" });
        out.push_str(end);
    };
    if let Some(names) = names {
        let text: Vec<String> =
            names.iter().map(|name| field(Some(name), Kind::Word, form)).collect();
        line(&text);
    }
    cells.iter().for_each(|row| line(row));
    if writer == Writer::Statistics && cells.len() > 4 && random.one_in(4) {
        out.push_str(&format!("{end}Source: Office of Statistics{end}"));
    }
    if random.one_in(5) {
        out.truncate(out.len() - end.len());
    }
    out
}

/// Tables drawn with blanks.
fn drawn(
    writer: Writer,
    form: &Form,
    names: &[String],
    cells: &[Vec<String>],
    kinds: &[Kind],
) -> String {
    let mut widths: Vec<usize> = kinds.iter().map(|_| 3).collect();
    let all =
        std::iter::once(names.to_vec()).filter(|n| !n.is_empty()).chain(cells.iter().cloned());
    let all: Vec<Vec<String>> = all.collect();
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let padded = |row: &[String]| -> Vec<String> {
        let cell = |((cell, width), kind): ((&String, &usize), &Kind)| {
            let pad = " ".repeat(width - cell.chars().count());
            if is_typed(*kind) && writer != Writer::Unix {
                format!("{pad}{cell}")
            } else {
                format!("{cell}{pad}")
            }
        };
        row.iter().zip(&widths).zip(kinds).map(cell).collect()
    };
    let rule = |outer: &str, inner: &str| {
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        format!("{outer}{}{outer}\n", dashes.join(inner))
    };
    let mut out = String::new();
    let framed = |row: &[String]| format!("| {} |\n", padded(row).join(" | "));
    let has_names = !names.is_empty();
    match writer {
        Writer::Psql => {
            for (index, row) in all.iter().enumerate() {
                out.push_str(&format!(" {}\n", padded(row).join(" | ")));
                if index == 0 {
                    out.push_str(&rule("", "+"));
                }
            }
            out.push_str(&format!("({} rows)\n\n", cells.len()));
        }
        Writer::Unix => {
            for row in &all {
                out.push_str(&format!("{}\n", padded(row).join("  ").trim_end()));
            }
        }
        _ => {
            let line = match writer {
                Writer::MysqlTable => rule("+", "+"),
                Writer::Sap => {
                    format!("{}\n", "-".repeat(widths.iter().sum::<usize>() + 3 * widths.len() + 1))
                }
                _ => String::new(),
            };
            out.push_str(&line);
            for (index, row) in all.iter().enumerate() {
                out.push_str(&framed(row));
                if index == 0 && has_names {
                    out.push_str(if writer == Writer::Markdown { "" } else { &line });
                    if writer == Writer::Markdown {
                        out.push_str(&rule("|", "|"));
                    }
                }
            }
            out.push_str(&line);
            if writer == Writer::MysqlTable {
                out.push_str(&format!("{} rows in set (0.00 sec)\n", cells.len()));
            }
        }
    }
    debug_assert!(form.delimiter == ",");
    out
}

fn encoded(writer: Writer, text: &str, random: &mut Random) -> Vec<u8> {
    match writer {
        Writer::ExcelUnicode => {
            let marked = format!("\u{feff}{text}");
            marked.encode_utf16().flat_map(u16::to_le_bytes).collect()
        }
        Writer::ExcelGermany | Writer::ExcelFrance | Writer::ExcelUs | Writer::Bank
            if random.one_in(2) =>
        {
            text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
        }
        Writer::ExcelGermany | Writer::ExcelFrance if random.one_in(2) => {
            format!("\u{feff}{text}").into_bytes()
        }
        _ => text.as_bytes().to_vec(),
    }
}

/// What is meant by the values that a writer cannot tell apart: an empty text and NULL.
fn read_back(
    row: Vec<Option<String>>,
    kinds: &[Kind],
    form: &Form,
    writer: Writer,
) -> Vec<Option<String>> {
    let one = |(value, kind): (Option<String>, &Kind)| match value {
        // In columns of text these are text, as the file has them.
        None if !is_typed(*kind) && form.null == "NA" => Some("NA".to_owned()),
        None if !is_typed(*kind) && form.null == "NULL" && writer != Writer::Psql => {
            Some("NULL".to_owned())
        }
        value => value,
    };
    row.into_iter().zip(kinds).map(one).collect()
}
