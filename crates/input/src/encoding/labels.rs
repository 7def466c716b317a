//! Names of encodings as other programs spell them: Python's `cp949`, `utf_8` and `latin-1`, the numbers of code pages of Windows.

/// What the Encoding Standard calls a code page; those of 125x are `cp1252` and so on there too.
const PAGES: [(&str, &str); 18] = [
    ("874", "windows-874"),
    ("932", "shift_jis"),
    ("936", "gbk"),
    ("949", "euc-kr"),
    ("950", "big5"),
    ("1250", "windows-1250"),
    ("1251", "windows-1251"),
    ("1252", "windows-1252"),
    ("1253", "windows-1253"),
    ("1254", "windows-1254"),
    ("1255", "windows-1255"),
    ("1256", "windows-1256"),
    ("1257", "windows-1257"),
    ("1258", "windows-1258"),
    ("10000", "macintosh"),
    ("20932", "euc-jp"),
    ("54936", "gb18030"),
    ("65001", "utf-8"),
];
/// What stands before the number of a code page.
const BEFORE_PAGES: [&str; 5] = ["windows", "cp", "ms", "ibm", ""];
/// Names, without the signs between their words, that the standard has not in any spelling.
const NAMES: [(&str, &str); 9] = [
    ("latin9", "iso-8859-15"),
    ("latin10", "iso-8859-16"),
    ("utf8sig", "utf-8"),
    ("utf8bom", "utf-8"),
    ("macroman", "macintosh"),
    ("mskanji", "shift_jis"),
    ("uhc", "euc-kr"),
    ("big5hkscs", "big5"),
    ("eucjp", "euc-jp"),
];

/// The encoding of a name in small letters that is no label of the standard, if it is one with other signs between its words.
pub(super) fn other_spelling(name: &str) -> Option<&'static encoding_rs::Encoding> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let page = BEFORE_PAGES.iter().find_map(|before| {
        let number = plain.strip_prefix(before)?;
        PAGES.iter().find(|(page, _)| *page == number)
    });
    let named = || NAMES.iter().find(|(spelt, _)| *spelt == plain);
    if let Some((_, label)) = page.or_else(named) {
        return encoding_rs::Encoding::for_label_no_replacement(label.as_bytes());
    }
    // `iso8859_15`, `latin-1`, `utf_16_le`, `euc_kr`, `koi8_r`.
    let parts = plain.strip_prefix("iso8859").filter(|part| !part.is_empty());
    let spellings = [
        parts.map(|part| format!("iso-8859-{part}")),
        plain.strip_prefix("utf16").map(|order| format!("utf-16{order}")),
        Some(name.replace('_', "-")),
        Some(plain),
    ];
    let known = |label: String| encoding_rs::Encoding::for_label_no_replacement(label.as_bytes());
    spellings.into_iter().flatten().find_map(known)
}

#[cfg(test)]
mod tests {
    use crate::encoding::Encoding;

    #[test]
    fn names_of_other_programs_are_known() {
        for (name, label) in [
            ("cp949", "euc-kr"),
            ("CP-949", "euc-kr"),
            ("windows-949", "euc-kr"),
            ("uhc", "euc-kr"),
            ("cp932", "shift_jis"),
            ("932", "shift_jis"),
            ("cp936", "gbk"),
            ("cp950", "big5"),
            ("cp874", "windows-874"),
            ("cp_1252", "windows-1252"),
            ("Windows1252", "windows-1252"),
            ("1250", "windows-1250"),
            ("utf_8", "utf-8"),
            ("utf-8-sig", "utf-8"),
            ("UTF-8-BOM", "utf-8"),
            ("cp65001", "utf-8"),
            ("latin-1", "latin1"),
            ("latin_9", "iso-8859-15"),
            ("iso8859_15", "iso-8859-15"),
            ("ISO8859-2", "iso-8859-2"),
            ("euc_jp", "euc-jp"),
            ("eucjp", "euc-jp"),
            ("euc_kr", "euc-kr"),
            ("shift-jis", "shift_jis"),
            ("mac_roman", "macintosh"),
            ("koi8_r", "koi8-r"),
            ("utf_16_le", "utf-16le"),
            ("gb_18030", "gb18030"),
        ] {
            let label = Encoding::from_label(label).ok();
            assert!(label.is_some(), "{name}");
            assert_eq!(Encoding::from_label(name).ok(), label, "{name}");
        }
        for unknown in ["", "-", "johab", "ansi", "cp858", "utf-7", "cp", "windows", "klingon", "é"]
        {
            assert!(Encoding::from_label(unknown).is_err(), "{unknown}");
        }
    }
}
