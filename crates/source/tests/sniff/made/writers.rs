//! How programs write tables.

use super::kinds::{Kind, is_typed};
use crate::random::Random;

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

/// What is written and read with it.
#[derive(Debug, Clone)]
pub struct Form {
    pub delimiter: &'static str,
    pub decimal: char,
    pub thousands: Option<char>,
    pub date: &'static str,
    pub null: &'static str,
    pub end: &'static str,
    pub quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    None,
    Minimal,
    Text,
    All,
    /// Around text, and a backslash before quotes inside.
    TextBackslash,
    /// Around text, in tildes.
    Tildes,
}

pub fn form_of(writer: Writer, random: &mut Random) -> Form {
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

/// A value as the file has it.
pub fn shown(value: &str, kind: Kind, form: &Form) -> String {
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
pub fn field(value: Option<&str>, kind: Kind, form: &Form) -> String {
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

pub fn write(
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

pub fn delimited(
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
pub fn drawn(
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

pub fn encoded(writer: Writer, text: &str, random: &mut Random) -> Vec<u8> {
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
