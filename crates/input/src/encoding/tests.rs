#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Text as bytes of an encoding.
fn encode(encoding: Encoding, text: &str) -> Vec<u8> {
    let utf16 = || text.encode_utf16();
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf32(ByteOrder::Little) | Encoding::Utf32ByMark => {
            text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect()
        }
        Encoding::Utf32(ByteOrder::Big) => {
            text.chars().flat_map(|c| (c as u32).to_be_bytes()).collect()
        }
        Encoding::Utf16ByMark => utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Standard(e) if e == encoding_rs::UTF_16LE => {
            utf16().flat_map(u16::to_le_bytes).collect()
        }
        Encoding::Standard(e) if e == encoding_rs::UTF_16BE => {
            utf16().flat_map(u16::to_be_bytes).collect()
        }
        Encoding::Standard(e) => e.encode(text).0.into_owned(),
        Encoding::Dos(page) => text.chars().map(|c| of_page(page, c)).collect(),
    }
}

fn of_page(page: DosPage, c: char) -> u8 {
    match page.upper().iter().position(|upper| *upper == c) {
        Some(index) => 0x80 + index as u8,
        None => u8::try_from(c).unwrap(),
    }
}

mod guesses;

const TABLE: &str =
    "id,name,city\n1,Jürgen Müller,München\n2,José Núñez,A Coruña\n3,Çelik,Zürich\n";
const RUSSIAN: &str = "номер,имя,город\n1,Иван Петров,Москва\n2,Мария Сидорова,Санкт-Петербург\n";
const JAPANESE: &str = "番号,名前,都市\n1,山田太郎,東京\n2,鈴木花子,大阪\n3,さとう,カタカナ\n";
const CHINESE: &str = "编号,姓名,城市\n1,王小明,北京\n2,李华,上海\n3,张伟,广州市的人们\n";

#[test]
fn labels_are_those_of_the_standard() {
    for (label, name) in [
        ("UTF-8", "utf-8"),
        ("latin1", "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("utf-16", "utf-16"),
        ("UTF-16BE", "utf-16be"),
        ("utf-32be", "utf-32be"),
        ("Shift_JIS", "shift_jis"),
        ("cp1251", "windows-1251"),
    ] {
        let encoding = Encoding::from_label(label).unwrap();
        assert_eq!(encoding.to_string(), name);
        assert_eq!(Encoding::from_label(name).unwrap(), encoding);
    }
    let error = Encoding::from_label("ebcdic").unwrap_err().to_string();
    assert!(error.contains("--encoding \"ebcdic\""), "{error}");
}

#[test]
fn encodings_are_told_from_the_text() {
    for (label, text) in [
        ("utf-8", TABLE),
        ("utf-8", "a,b\n1,2\n"),
        ("windows-1252", TABLE),
        ("utf-16le", TABLE),
        ("utf-16be", RUSSIAN),
        ("utf-16le", JAPANESE),
        ("utf-32le", TABLE),
        ("utf-32be", JAPANESE),
        ("windows-1251", RUSSIAN),
        ("koi8-u", RUSSIAN),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("gbk", CHINESE),
    ] {
        let encoding = Encoding::from_label(label).unwrap();
        let (found, why) = detect_encoding(&encode(encoding, text));
        assert_eq!(found.to_string(), label, "{why:?}");
        assert_eq!(why.is_none(), label == "utf-8");
        assert_eq!(convert_all(found, &encode(found, text), End::Here), text.as_bytes());
    }
}

#[test]
fn marks_tell_the_encoding_and_are_read_over() {
    for label in ["utf-16le", "utf-16be", "utf-32le", "utf-32be"] {
        let encoding = Encoding::from_label(label).unwrap();
        let bytes = encode(encoding, &format!("\u{feff}{TABLE}"));
        assert_eq!(detect_encoding(&bytes).0, encoding);
        let (found, mark) = Encoding::Utf8.of_text(&bytes, Said::Nobody);
        assert_eq!(found, encoding);
        assert_eq!(convert_all(found, &bytes[mark..], End::Here), TABLE.as_bytes());
        // What the user said is not overridden.
        assert_eq!(Encoding::Utf8.of_text(&bytes, Said::User), (Encoding::Utf8, 0));
        let by_mark = if label.starts_with("utf-16") { "utf-16" } else { "utf-32" };
        let by_mark = Encoding::from_label(by_mark).unwrap();
        assert_eq!(by_mark.of_text(&bytes, Said::User), (encoding, mark));
    }
}

#[test]
fn a_wrong_byte_in_utf_8_is_no_other_encoding() {
    for text in ["1,a", "1,ä\n2,ö\n3,\u{80}\n4,ü"] {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(b"\xff\n");
        let (found, why) = detect_encoding(&bytes);
        assert_eq!(found, Encoding::Utf8);
        assert!(why.unwrap().contains("--invalid-bytes"));
    }
    // A character that the end of a sample cuts is no wrong byte.
    assert_eq!(detect_encoding(&"1,aä".as_bytes()[..4]), (Encoding::Utf8, None));
}

#[test]
fn what_is_malformed_becomes_a_byte_that_is_not_utf_8() {
    for (label, bytes, text) in [
        ("utf-16le", &b"a\0\0\xd8b\0"[..], &b"a\xffb"[..]),
        ("utf-16le", b"a\0b", b"a\xff"),
        ("utf-32le", b"a\0\0\0\0\xd8\0\0b\0\0\0", b"a\xffb"),
        ("utf-32be", b"\0\0\0a\0\0", b"a\xff"),
        ("shift_jis", b"a\x82", b"a\xff"),
        ("gb18030", b"a\xff,b", b"a\xff,b"),
    ] {
        let encoding = Encoding::from_label(label).unwrap();
        assert_eq!(convert_all(encoding, bytes, End::Here), text, "{label}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn pieces_give_the_same_text_as_the_whole(
        text in "\\PC{0,60}", label in 0usize..9, bytes in prop::collection::vec(any::<u8>(), 0..40),
        sizes in prop::collection::vec(1usize..9, 1..6),
    ) {
        let labels = [
            "utf-16le", "utf-16be", "utf-32le", "utf-32be", "gb18030", "shift_jis", "euc-kr",
            "windows-1252", "iso-2022-jp",
        ];
        let encoding = Encoding::from_label(labels[label]).unwrap();
        let mut bytes_of_text = encode(encoding, &text);
        if label < 5 {
            prop_assert!(convert_all(encoding, &bytes_of_text, End::Here) == text.as_bytes());
        }
        // And whatever follows.
        bytes_of_text.extend(bytes);
        let whole = convert_all(encoding, &bytes_of_text, End::Here);
        let mut converter = Converter::new(encoding).unwrap();
        let (mut pieces, mut at, mut turn) = (Vec::new(), 0, 0);
        while at < bytes_of_text.len() {
            let end = (at + sizes[turn % sizes.len()]).min(bytes_of_text.len());
            converter.convert(&bytes_of_text[at..end], End::NotYet, &mut pieces);
            (at, turn) = (end, turn + 1);
        }
        converter.convert(&[], End::Here, &mut pieces);
        prop_assert!(pieces == whole);
    }
}
