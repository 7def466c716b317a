//! Books made by hand: what becomes of their cells, and what of books that are damaged or mean harm.

use std::fs;
use std::path::Path;

use coload_input::{
    Area, Compression, Filled, InputFile, PlaceOptions, SheetChoice, expand_inputs_with,
    sample_input,
};
use coload_types::{Error, Result};

use crate::archives::zip;

const WORKBOOK: &str = r#"<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://r"><workbookPr/>
<sheets><sheet name="Hidden" sheetId="1" state="hidden" r:id="rId1"/><sheet name="Q1!A" sheetId="2" r:id="rId2"/><sheet name="Chart" sheetId="3" r:id="rId3"/></sheets></workbook>"#;
const RELATIONS: &str = r#"<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="http://x/worksheet" Target="/xl/worksheets/sheet2.xml"/><Relationship Id="rId3" Type="http://x/chartsheet" Target="c.xml"/>
<Relationship Id="rId4" Type="http://x/styles" Target="styles.xml"/><Relationship Id="rId5" Type="http://x/sharedStrings" Target="../xl/./sharedStrings.xml"/></Relationships>"#;
const STYLES: &str = r#"<styleSheet><numFmts count="2"><numFmt numFmtId="165" formatCode="[h]:mm:ss"/><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd\ hh:mm"/></numFmts>
<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="9"/></cellXfs></styleSheet>"#;
const TEXTS: &str = r#"<sst count="4" uniqueCount="4"><si><t>id</t></si><si><r><t xml:space="preserve">a </t></r><r><rPr/><t>"b"</t></r><rPh><t>sound</t></rPh></si><si><t>x_x000D_
y\</t></si><si/></sst>"#;
const SHEET: &str = r#"<worksheet><dimension ref="A1:XFD1048576"/><sheetData>
<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="inlineStr"><is><t>when</t></is></c><c r="E3" t="str"><f>1</f><v/></c></row>
<row r="4"><c t="b" r="B4"><v>1</v></c><c r="C4" s="1"><v>46053</v></c><c r="D4" s="9"><v>1.5E-2</v></c><c r="E4" t="e"><v>#N/A</v></c></row>
<row r="5"><c r="B5" s="1"/><c r="C5"><v></v></c></row>
<row r="7"><c r="B7" t="s"><v>1</v></c><c s="2"><v>46053.5</v></c><c r="D7" s="3"><v>1.5</v></c><c t="s"><v>2</v></c></row>
<row><c/><c r="B8"><v>12345678901234567890</v></c><c t="d"><v>2026-01-31T08:30:00</v></c><c s="4"><v>0.12</v></c><c t="s"><v>3</v></c></row>
</sheetData><mergeCells><mergeCell ref="B5:C6"/></mergeCells></worksheet>"#;
const LINES: &str = "\"id\",\"when\",,\"\"\ntrue,2026-01-31,0.015,#N/A\n\n\n\"a \\\"b\\\"\",2026-01-31 12:00:00,36:00:00,\"x\\r\\ny\\\\\"\n\
    12345678901234567890,2026-01-31T08:30:00,0.12,\"\"\n";

/// Parts of a book, in which some are others.
fn parts<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, String)> {
    let all = [
        ("xl/workbook.xml", WORKBOOK),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/styles.xml", STYLES),
        ("xl/sharedStrings.xml", TEXTS),
        ("xl/worksheets/sheet1.xml", "<worksheet><sheetData/></worksheet>"),
        ("xl/worksheets/sheet2.xml", SHEET),
    ];
    let other = |name: &str| others.iter().find(|(part, _)| *part == name).map(|(_, text)| *text);
    all.into_iter().map(|(name, text)| (name, other(name).unwrap_or(text).to_owned())).collect()
}

fn book(others: &[(&str, &str)]) -> Vec<u8> {
    let parts = parts(others);
    let members: Vec<_> = parts
        .iter()
        .map(|(name, text)| (*name, text.as_bytes(), Some(Compression::Deflate)))
        .collect();
    zip(&members)
}

fn choice(sheet: Option<&str>, area: Option<&str>) -> SheetChoice {
    SheetChoice {
        sheet: sheet.map(str::to_owned),
        area: area.map(|area| Area::parse(area).unwrap()),
    }
}

fn find(path: &Path, member: &str, choice: &SheetChoice) -> Result<Vec<InputFile>> {
    let name = format!("{}{member}", path.display());
    Ok(expand_inputs_with(&[name], &PlaceOptions::default(), choice, 0)?.iter().collect())
}

/// The text of the sheets of a book.
fn read(book: &[u8], member: &str, choice: &SheetChoice) -> Result<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.xlsx");
    fs::write(&path, book).unwrap();
    let text = |input: InputFile| {
        let (text, state) = sample_input(&input, 64 << 20)?;
        assert_eq!(state, Filled::Done);
        Ok(String::from_utf8(text).unwrap())
    };
    find(&path, member, choice)?.into_iter().map(text).collect()
}

#[test]
fn cells_are_lines_of_text() {
    let book = book(&[]);
    let all = SheetChoice::default();
    // The first sheet that is seen; what the part says of its size is not believed.
    assert_eq!(read(&book, "", &all).unwrap(), [LINES]);
    assert_eq!(read(&book, "!Q1!A", &all).unwrap(), [LINES]);
    assert_eq!(read(&book, "", &choice(Some("2"), None)).unwrap(), [LINES]);
    assert_eq!(read(&book, "!*", &all).unwrap(), ["", LINES]);
    assert_eq!(read(&book, "", &choice(Some("Hidden"), None)).unwrap(), [""]);
    let part = "\n\"when\",\ntrue,2026-01-31,0.015\n";
    assert_eq!(
        read(&book, "", &choice(None, Some("B2:D4"))).unwrap(),
        [part.replace("\"when\",", "\"id\",\"when\",")]
    );
    assert_eq!(
        read(&book, "!Q1!A!D4:F7", &all).unwrap(),
        ["0.015,#N/A,\n\n\n36:00:00,\"x\\r\\ny\\\\\",\n"]
    );
    assert_eq!(
        read(&book, "", &choice(None, Some("D7:E"))).unwrap(),
        ["36:00:00,\"x\\r\\ny\\\\\"\n0.12,\"\"\n"]
    );
}

#[test]
fn places_are_those_of_the_sheet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.xlsx");
    fs::write(&path, book(&[])).unwrap();
    let shown = path.display();
    let input = find(&path, "", &SheetChoice::default()).unwrap().remove(0);
    assert_eq!(input.name, format!("{shown}!Q1!A"));
    assert_eq!((input.lines_before(), input.table_name().as_str()), (2, "book"));
    assert_eq!(input.place_name(7, Some(2)), format!("{shown}!Q1!A!C7"));
    assert_eq!(input.sheet().map(|sheet| sheet.merged), Some(1));
    let input = find(&path, "", &choice(None, Some("C4:D9"))).unwrap().remove(0);
    assert_eq!(input.name, format!("{shown}!Q1!A!C4:D9"));
    assert_eq!(input.place_name(7, Some(2)), format!("{shown}!Q1!A!D7"));
    assert_eq!(input.place_name(7, None), format!("{shown}!Q1!A"));
}

#[test]
fn what_is_not_there_is_told() {
    let told = |member: &str, choice: &SheetChoice| {
        read(&book(&[]), member, choice).unwrap_err().to_string()
    };
    let all = SheetChoice::default();
    assert!(told("!Q2", &all).contains("has no sheet Q2; it has Hidden, Q1!A"));
    assert!(told("", &choice(Some("7"), None)).contains("has no sheet 7"));
    assert!(told("!x*", &all).contains("has no sheet x*"));
    assert!(told("!Hidden", &choice(Some("1"), None)).contains("names sheets already"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    fs::write(&path, "a,b\n").unwrap();
    let error = find(&path, "", &choice(None, Some("A1:B2"))).unwrap_err().to_string();
    assert!(error.starts_with("--range: ") && error.contains("is no workbook"), "{error}");
}

#[test]
fn damaged_cells_are_told_with_their_place() {
    for (sheet, expected) in [
        (
            r#"<row r="2"><c r="A2"><f>A1</f></c></row>"#,
            "!Q1!A!A2:2:1 (byte 0): the formula has no value",
        ),
        // As openpyxl writes them.
        (r#"<row r="2"><c r="A2"><f>A1</f><v /></c></row>"#, "the formula has no value"),
        (r#"<row r="2"><c r="A2"><f>A1</f><v></v></c></row>"#, "the formula has no value"),
        (r#"<row r="2"><c r="A2"><v> </v><f>A1</f></c></row>"#, "the formula has no value"),
        (r#"<row r="2"><c r="A2" t="b"><f>A1</f><v/></c></row>"#, "the formula has no value"),
        (r#"<row r="2"><c r="A2" t="s"><v>4</v></c></row>"#, "is no text of the 4 in the book"),
        (r#"<row r="2"><c r="A2" t="b"><v>2</v></c></row>"#, "is no truth value"),
        (r#"<row r="2"><c r="A2"><v>1,5</v></c></row>"#, "is no number"),
        (r#"<row r="2"><c r="A2" t="e"><v>N/A</v></c></row>"#, "is no error"),
        (r#"<row r="2"><c r="A2" t="d"><v>today</v></c></row>"#, "is no date"),
        (r#"<row r="2"><c r="A2"><v>1</v><v>2</v></c></row>"#, "two values"),
        (r#"<row r="2"/><row r="2"/>"#, "row 2 stands behind row 2"),
        (
            r#"<row r="2"><c r="B2"><v>1</v></c><c r="A2"><v>1</v></c></row>"#,
            "cell A2 stands behind cell B2",
        ),
        (r#"<row r="2"><c r="A3"><v>1</v></c></row>"#, "cell A3 stands behind"),
        (r#"<row r="1048577"/>"#, "there is no row 1048577"),
        (r#"<row r="1"><c r="XFE1"/></row>"#, "there is no cell XFE1"),
        (r#"<row r="1"><c t="zzz"/></row>"#, "no type zzz"),
        (r#"<row r="1"><c r="A1"><v>1</v></row>"#, "an end tag is not that of its element"),
    ] {
        let text = format!("<worksheet><sheetData>{sheet}</sheetData></worksheet>");
        let error =
            read(&book(&[("xl/worksheets/sheet2.xml", &text)]), "", &SheetChoice::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{sheet}: {error}");
    }
}

#[test]
fn books_that_mean_harm_are_refused() {
    let refused = |part: &str, text: &str| {
        read(&book(&[(part, text)]), "", &SheetChoice::default()).unwrap_err()
    };
    // A text of 6 MiB in one cell, a few KB in the file.
    let long = "x".repeat(6 << 20);
    let cell = format!(
        "<worksheet><sheetData><row><c t=\"str\"><v>{long}</v></c></row></sheetData></worksheet>"
    );
    assert!(matches!(refused("xl/worksheets/sheet2.xml", &cell), Error::Limit(_)));
    let deep = "<worksheet>".repeat(1 << 16);
    assert!(refused("xl/worksheets/sheet2.xml", &deep).to_string().contains("deeper than 64"));
    let entities = "<!DOCTYPE x [<!ENTITY a 'b'>]><workbook/>";
    assert!(refused("xl/workbook.xml", entities).to_string().contains("document type"));
    // A row of texts, each of which is there once.
    let text = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(1 << 20));
    let cells = "<c t=\"s\"><v>0</v></c>".repeat(100);
    let sheet = format!("<worksheet><sheetData><row>{cells}</row></sheetData></worksheet>");
    let bomb = book(&[("xl/sharedStrings.xml", &text), ("xl/worksheets/sheet2.xml", &sheet)]);
    assert!(matches!(read(&bomb, "", &SheetChoice::default()), Err(Error::Limit(_))));
    // The directory says less than there is, or names a part twice.
    let mut lying = book(&[]);
    let length = (SHEET.len() as u32).to_le_bytes();
    for at in memchr::memmem::find_iter(&lying.clone(), &length) {
        lying[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
    }
    let error = read(&lying, "", &SheetChoice::default()).unwrap_err().to_string();
    assert!(error.contains("is not that of the directory"), "{error}");
    let parts = parts(&[]);
    let mut twice: Vec<_> =
        parts.iter().map(|(name, text)| (*name, text.as_bytes(), None)).collect();
    twice.push(("xl/workbook.xml", WORKBOOK.as_bytes(), None));
    assert!(
        read(&zip(&twice), "", &SheetChoice::default()).unwrap_err().to_string().contains("twice")
    );
}

/// Each cut and each changed byte ends in the text, or in an error.
#[test]
fn any_damage_ends_in_text_or_an_error() {
    let parts = parts(&[]);
    let members: Vec<_> = parts.iter().map(|(name, text)| (*name, text.as_bytes(), None)).collect();
    let whole = zip(&members);
    for cut in (0..whole.len()).step_by(61) {
        assert_ne!(
            read(&whole[..cut], "!*", &SheetChoice::default()).ok(),
            Some(vec![String::new(), LINES.to_owned()])
        );
    }
    for (number, (name, text)) in parts.iter().enumerate() {
        for at in (number..text.len()).step_by(13) {
            for flip in [1, 0x90] {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= flip;
                let mut members: Vec<(&str, &[u8], _)> = members.clone();
                members[number] = (*name, &damaged, None);
                let _ = read(&zip(&members), "!*", &SheetChoice::default());
            }
        }
    }
}
