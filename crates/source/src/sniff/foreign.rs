//! Inputs that are no delimited text: what they look like, and what to do with them.
//!
//! The first bytes tell. Forms that are text, such as JSON, count only where nothing says how the text is delimited: who names the
//! delimiter, or the columns, wants the lines as they are.

use coload_types::{Error, Result};

use super::bom_len;
use crate::dialect::GivenDialect;

/// Bytes behind a magic word that are looked at.
const MAGIC_BYTES_LOOKED_AT: usize = 64;
/// Lines of JSON that are looked at.
const LINES_LOOKED_AT: usize = 8;
/// Statements of SQL that a dump begins with, in upper case.
const SQL_STARTS: [&str; 8] = [
    "CREATE TABLE ",
    "INSERT INTO ",
    "DROP TABLE ",
    "BEGIN TRANSACTION;",
    "PRAGMA ",
    "START TRANSACTION;",
    "SET NAMES ",
    "CREATE DATABASE ",
];

const DECOMPRESS: &str = "decompress it first, and pipe it: ... | coload load -";
const SPREADSHEET: &str = "save the sheet as CSV in the spreadsheet, and load that";
const COLUMNAR: &str =
    "write it as CSV first, as in: duckdb -c \"COPY (FROM 'FILE') TO 'FILE.csv'\"";
const NO_TABLE: &str = "only delimited text can be loaded";

/// First bytes, where they stand, what has them, and what to do.
const MAGIC: [(&[u8], usize, &str, &str); 43] = [
    (b"\x1f\x8b", 0, "gzip", DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", 0, "Zstandard", DECOMPRESS),
    (b"\xfd7zXZ\0", 0, "xz", DECOMPRESS),
    (b"BZh", 0, "bzip2", DECOMPRESS),
    (b"7z\xbc\xaf\x27\x1c", 0, "a 7z archive", DECOMPRESS),
    (b"Rar!\x1a\x07", 0, "a RAR archive", DECOMPRESS),
    (b"\x1f\x9d", 0, "compress (.Z)", DECOMPRESS),
    (b"\x1f\xa0", 0, "compress (.Z)", DECOMPRESS),
    (b"LZIP", 0, "lzip", DECOMPRESS),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        0,
        "an Excel workbook or another document of Microsoft Office",
        SPREADSHEET,
    ),
    (b"\x09\x08\x10\x00\x00\x06", 0, "an Excel workbook", SPREADSHEET),
    (b"PAR1", 0, "Parquet", COLUMNAR),
    (b"ARROW1", 0, "Arrow", COLUMNAR),
    (b"FEA1", 0, "Feather", COLUMNAR),
    (b"\xff\xff\xff\xff", 0, "a stream of Arrow", COLUMNAR),
    (b"ORC", 0, "ORC", COLUMNAR),
    (b"Obj\x01", 0, "Avro", COLUMNAR),
    (b"DUCK", 8, "a database of DuckDB", "write its table as CSV first: COPY t TO 'FILE.csv'"),
    (
        b"SQLite format 3\0",
        0,
        "a database of SQLite",
        "write its table as CSV first, as in: sqlite3 -csv -header FILE 'SELECT * FROM t'",
    ),
    (
        b"PGDMP",
        0,
        "a dump of PostgreSQL",
        "restore it, and write its tables as CSV: COPY t TO 'FILE.csv' CSV HEADER",
    ),
    (
        b"PGCOPY\n\xff\r\n\0",
        0,
        "COPY BINARY of PostgreSQL",
        "write it as text: COPY t TO 'FILE.csv' CSV HEADER",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        0,
        "HDF5",
        "write its table as CSV first, as in: pandas.read_hdf('FILE').to_csv('FILE.csv')",
    ),
    (b"CDF\x01", 0, "NetCDF", NO_TABLE),
    (b"CDF\x02", 0, "NetCDF", NO_TABLE),
    (b"$FL2", 0, "a file of SPSS", "export it as CSV first"),
    (b"$FL3", 0, "a file of SPSS", "export it as CSV first"),
    (b"<stata_dta>", 0, "a file of Stata", "export it as CSV first"),
    (
        b"RDX2\n",
        0,
        "data of R",
        "write it as CSV first: write.csv(x, 'FILE.csv', row.names = FALSE)",
    ),
    (
        b"RDX3\n",
        0,
        "data of R",
        "write it as CSV first: write.csv(x, 'FILE.csv', row.names = FALSE)",
    ),
    (
        b"X\n\0\0\0",
        0,
        "data of R",
        "write it as CSV first: write.csv(x, 'FILE.csv', row.names = FALSE)",
    ),
    (
        b"\x93NUMPY",
        0,
        "an array of NumPy",
        "write it as CSV first: numpy.savetxt('FILE.csv', x, delimiter=',')",
    ),
    (b"\x80\x04\x95", 0, "a pickle of Python", "write it as CSV first: to_csv('FILE.csv')"),
    (b"\x80\x05\x95", 0, "a pickle of Python", "write it as CSV first: to_csv('FILE.csv')"),
    (b"%PDF-", 0, "PDF", NO_TABLE),
    (b"\x89PNG\r\n\x1a\n", 0, "a PNG picture", NO_TABLE),
    (b"\xff\xd8\xff", 0, "a JPEG picture", NO_TABLE),
    (b"GIF87a", 0, "a GIF picture", NO_TABLE),
    (b"GIF89a", 0, "a GIF picture", NO_TABLE),
    (b"II*\0", 0, "a TIFF picture", NO_TABLE),
    (b"MM\0*", 0, "a TIFF picture", NO_TABLE),
    (b"\x7fELF", 0, "a program", NO_TABLE),
    (b"\xca\xfe\xba\xbe", 0, "a class of Java", NO_TABLE),
    (b"{\\rtf", 0, "rich text", NO_TABLE),
];

/// What documents in a zip file have as a member, and what they are.
const IN_ZIP: [(&[u8], &str, &str); 6] = [
    (b"xl/", "an Excel workbook", SPREADSHEET),
    (b"opendocument.spreadsheet", "a spreadsheet of OpenDocument", SPREADSHEET),
    (b"Index/Document.iwa", "a spreadsheet of Numbers", SPREADSHEET),
    (b"word/", "a Word document", NO_TABLE),
    (b"ppt/", "a PowerPoint document", NO_TABLE),
    (b"META-INF/MANIFEST.MF", "a Java archive", NO_TABLE),
];

/// Refuses what is another format as a whole.
///
/// # Errors
/// `Invalid` that names the format, and what to do.
pub(super) fn check_is_text(name: &str, sample: &[u8]) -> Result<()> {
    let is = |(magic, at, ..): &&(&[u8], usize, &str, &str)| {
        let found = sample.get(*at..).is_some_and(|rest| rest.starts_with(magic));
        // What may be a word is none where bytes follow that no text has.
        found && (!magic.iter().all(u8::is_ascii_alphanumeric) || has_controls(sample))
    };
    if let Some((_, _, what, help)) = MAGIC.iter().find(is) {
        return refuse(name, what, help);
    }
    if sample.starts_with(b"PK\x03\x04") {
        let inside = IN_ZIP.iter().find(|(part, ..)| memchr::memmem::find(sample, part).is_some());
        let (_, what, help) = inside.unwrap_or(&(b"", "zip", "unpack it first"));
        return refuse(name, what, help);
    }
    Ok(())
}

/// Whether there are control characters near the start that no text has.
fn has_controls(sample: &[u8]) -> bool {
    let head = &sample[..sample.len().min(MAGIC_BYTES_LOOKED_AT)];
    head.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Refuses text of another form, unless something says how it is delimited, or what its columns are.
///
/// # Errors
/// `Invalid` that names the form, and what to do.
pub(super) fn check_is_delimited(
    name: &str,
    text: &[u8],
    given: &GivenDialect,
    has_schema: bool,
) -> Result<()> {
    let told = given.delimiter.is_some() || given.fixed.is_some() || given.aligned.is_some();
    if told || has_schema {
        return Ok(());
    }
    let text = text[bom_len(text)..].trim_ascii_start();
    let as_lines = "give --delimiter to load its lines as they are";
    if is_json(text) {
        let jq = "write it as CSV first, as in: duckdb -c \"COPY (FROM read_json('FILE')) TO 'FILE.csv'\"";
        return refuse(name, "JSON", &format!("{jq}; or {as_lines}"));
    }
    let start = String::from_utf8_lossy(&text[..text.len().min(200)]).to_uppercase();
    if start.starts_with("<!DOCTYPE HTML") || start.starts_with("<HTML") {
        return refuse(
            name,
            "HTML",
            &format!("was a page saved instead of the file?; or {as_lines}"),
        );
    }
    if start.starts_with("<?XML") || start.starts_with("<SVG") {
        return refuse(name, "XML", &format!("write it as CSV first; or {as_lines}"));
    }
    if is_sql(text) {
        return refuse(
            name,
            "a dump of SQL",
            &format!("run it in its database, and write the tables as CSV; or {as_lines}"),
        );
    }
    Ok(())
}

fn refuse(name: &str, what: &str, help: &str) -> Result<()> {
    Err(Error::Invalid(format!("{name} looks like {what}, which is not read: {help}")))
}

/// Whether a text is an array or an object of JSON, or has one on each line.
pub(super) fn is_json(text: &[u8]) -> bool {
    match text.first() {
        Some(b'{') => {}
        Some(b'[') => {
            let inner = text[1..].trim_ascii_start();
            let object = inner.first() == Some(&b'{') && opens_object(inner);
            // Nested arrays of values: [[1,2],[3,4]].
            return object
                || inner.first() == Some(&b'[') && inner.len() > 1
                || is_array_line(text);
        }
        _ => return false,
    }
    opens_object(text)
}

/// Whether a text is one document of JSON without a key: `[]`, `{}`, `[{}, {}]`.
pub(super) fn is_empty_document(text: &[u8]) -> bool {
    let is_empty_object = |text: &[u8]| {
        let inner = text.trim_ascii().strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
        inner.is_some_and(|inner| inner.trim_ascii().is_empty())
    };
    let text = text.trim_ascii();
    match text.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
        Some(items) if items.trim_ascii().is_empty() => true,
        Some(items) => items.split(|byte| *byte == b',').all(is_empty_object),
        None => is_empty_object(text),
    }
}

/// Whether a line is an array of values by itself, and the next is one too.
fn is_array_line(text: &[u8]) -> bool {
    let mut lines =
        text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty());
    let closed = |line: &[u8]| {
        let comma = line.strip_suffix(b",").unwrap_or(line);
        comma.starts_with(b"[") && comma.ends_with(b"]") && comma.contains(&b',')
    };
    let looked_at: Vec<&[u8]> = lines.by_ref().take(LINES_LOOKED_AT).collect();
    !looked_at.is_empty() && looked_at.iter().all(|line| closed(line))
}

/// Whether an object of JSON begins: a brace, and a key in double quotes with a colon behind it, or a brace that closes.
fn opens_object(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"{") else { return false };
    let inner = inner.trim_ascii_start();
    let Some(key) = inner.strip_prefix(b"\"") else {
        // An empty object, alone or on a line.
        return inner.strip_prefix(b"}").is_some_and(|rest| {
            let rest = rest.trim_ascii_start();
            rest.is_empty() || rest.first() == Some(&b'{')
        });
    };
    let closes = |at: &usize| key[*at] == b'"' && (*at == 0 || key[at - 1] != b'\\');
    let end = (0..key.len()).find(closes);
    end.is_some_and(|end| key[end + 1..].trim_ascii_start().first() == Some(&b':'))
}

/// Whether a text begins with a statement of SQL, behind comments.
fn is_sql(mut text: &[u8]) -> bool {
    loop {
        text = text.trim_ascii_start();
        let comment = match text {
            [b'-', b'-', ..] => memchr::memchr(b'\n', text).map(|at| at + 1),
            [b'/', b'*', ..] => memchr::memmem::find(text, b"*/").map(|at| at + 2),
            _ => break,
        };
        let Some(end) = comment else { return false };
        // Comments that MySQL runs have a semicolon behind them.
        text = text[end..].strip_prefix(b";").unwrap_or(&text[end..]);
    }
    let start = String::from_utf8_lossy(&text[..text.len().min(64)]).to_uppercase();
    SQL_STARTS.iter().any(|statement| start.starts_with(statement))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn looks(text: &[u8]) -> Option<String> {
        let given = GivenDialect::default();
        let found =
            check_is_text("t", text).and_then(|()| check_is_delimited("t", text, &given, false));
        found.err().map(|error| error.to_string())
    }

    #[test]
    fn other_formats_are_named() {
        for (text, what) in [
            (&b"PAR1\x15\x04"[..], "Parquet"),
            (b"Obj\x01\x04\x14avro.codec", "Avro"),
            (b"ARROW1\0\0", "Arrow"),
            (b"ORC\x08\x03", "ORC"),
            (b"SQLite format 3\0", "a database of SQLite"),
            (b"%PDF-1.7", "PDF"),
            (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
            (b"PK\x03\x04\x14\0\x06\0xl/workbook.xml", "an Excel workbook"),
            (b"PK\x03\x04\x14\0\0\0a.csv", "zip"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook"),
            (b"{\"a\": 1}\n{\"a\": 2}\n", "JSON"),
            (b"\xef\xbb\xbf{ \"a\\\"b\" :1}", "JSON"),
            (b"[\n  {\n    \"a\": 1\n  }\n]\n", "JSON"),
            (b"[[1,2],[3,4]]", "JSON"),
            (b"[1,\"x\"]\n[2,\"y\"]\n", "JSON"),
            (b"{}\n{}\n", "JSON"),
            (b"<?xml version=\"1.0\"?><a/>", "XML"),
            (b"\n<!doctype html>\n<html>", "HTML"),
            (
                b"-- MySQL dump 10.13\n/*!40101 SET x */;\nDROP TABLE IF EXISTS t;\n",
                "a dump of SQL",
            ),
            (b"INSERT INTO t VALUES (1,2);\n", "a dump of SQL"),
        ] {
            let found = looks(text).unwrap_or_default();
            assert!(found.contains(&format!("looks like {what}")), "{what}: {found}");
            assert!(found.contains(": "), "{found}");
        }
    }

    #[test]
    fn delimited_text_is_not_taken_for_them() {
        for text in [
            "a,b\n{\"x\": 1},2\n",
            "{a},{b}\n1,2\n",
            "[id],[name]\n1,x\n",
            "[1],x\n[2],y\n",
            "insert,into\n1,2\n",
            "id|json\n1|{\"a\": 1}\n",
            "-- a comment\na,b\n1,2\n",
            "<b>,c\n1,2\n",
            "Order,Item\n1,2\n",
            "BZh,h\n1,2\n",
            "ORCID,name\n1,2\n",
            "\"{\"\"a\"\": 1}\",2\n",
            "",
            "{",
            "[",
        ] {
            assert_eq!(looks(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn who_names_the_delimiter_wants_the_lines() {
        let given = GivenDialect { delimiter: Some(vec![1]), ..GivenDialect::default() };
        check_is_delimited("t", b"{\"a\": 1}\n", &given, false).unwrap();
        check_is_delimited("t", b"{\"a\": 1}\n", &GivenDialect::default(), true).unwrap();
    }
}
