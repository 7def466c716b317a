//! Texts as they are written in many countries, and the encodings of their programs.

use super::*;

/// Checks that a text is known by its bytes: that what it is read as is the text.
fn check(label: &str, text: &str) {
    let encoding = Encoding::from_label(label).unwrap();
    let bytes = encode(encoding, text);
    let (found, why) = detect_encoding(&bytes);
    let read = String::from_utf8_lossy(&convert_all(found, &bytes, End::Here)).into_owned();
    assert_eq!(read, text, "{label} {why:?}");
}

/// Symptom: `£` was loaded as `Ł`. Cause: one byte counted for windows-1250, whatever stood around it.
#[test]
fn pounds_stay_pounds() {
    for text in [
        "item,price\nTea,£1.20\nCoffee,£2.40\n",
        "item,price\nTea,£5\n",
        "Organisation,Amount (£)\nHM Treasury,1200\nNHS England,33000\n",
        "name,fee\nBooth’s,£12\nJones – Sons,£7.50\n“Quoted”,£100\n",
        "Supplier;Amount £\nSmith’s;\"£1,234.00\"\n",
        "a,b\nspent £3m on café – it’s fine,£4\n",
        "body,total\nCouncil,£ 1200\n",
        "x,y\n1,up to £500 per year\n",
    ] {
        check("windows-1252", text);
    }
}

#[test]
fn signs_and_dashes_of_windows_are_known() {
    for text in [
        "q,a\n1,It’s “fine”\n",
        "range,n\n10–20,5\n20–30,7\n",
        "note\nwait…\nno\n",
        "t,v\n20°C,1\n25°C,2\n",
        "area,n\n12 m²,3\n",
        "name,n\nAcme™,2\nFoo®,3\n",
        "a,b\n1½,2\n",
        "price,n\n€5,1\n€7.50,2\n",
        "preis;n\n5 €;1\n",
        "name\tn\nNguyen\u{a0}Van\t3\n",
        "§ 12,3\n§ 14,4\n",
        "street;n\nHauptstraße 5;1\n",
        "a,b\n«oui»,2\n",
    ] {
        check("windows-1252", text);
    }
}

const WESTERN: [&str; 14] = [
    "id;Name;Ort\n1;Jürgen Müller;München\n2;Käthe Schäfer;Köln\n3;Übel & Söhne;Gießen\n",
    "id,nom,ville\n1,Hélène Lefèvre,Orléans\n2,François Côté,Besançon\n3,Noël,Évreux\n",
    "id,nombre,ciudad\n1,José Núñez,Málaga\n2,Íñigo Peña,A Coruña\n3,María,Cádiz\n",
    "id;nome;cidade\n1;João Conceição;São Paulo\n2;Inês Simões;Brasília\n",
    "id;nome;comune\n1;Nicolò;Forlì\n2;Città di Castello;perché è così\n",
    "id;namn;ort\n1;Åke Sjöström;Göteborg\n2;Märta Öberg;Älmhult\n",
    "id;navn;by\n1;Søren Ærø;Tromsø\n2;Åse;Ålesund\n",
    "id;nimi;kunta\n1;Päivi Hämäläinen;Jyväskylä\n2;Yrjö;Hyvinkää\n",
    "id,name\n1,Zoë\n2,André\n",
    "id;nafn\n1;Þórður Guðmundsson\n2;Sigríður Ýr\n",
    "naam,plaats\nCoördinator,België\nZeeën,Curaçao\n",
    "PAIS;AÑO\nESPAÑA;2019\nPERÚ;2020\nMÉXICO;2021\nPANAMÁ;2022\nLEÓN;2023\n",
    "STRASSE;GRÖSSE\nHÖHE;12\nFLÄCHE;13\n",
    "city,country\nSão Tomé,São Tomé and Príncipe\nMalé,Maldives\nAsunción,Paraguay\nReykjavík,Iceland\n",
];

#[test]
fn western_languages_are_known_in_the_encodings_of_windows_macintosh_and_dos() {
    for text in WESTERN {
        check("windows-1252", text);
        // Macintosh has no letters of Iceland.
        if !text.contains('ð') {
            check("macintosh", text);
        }
        check("cp850", text);
    }
    for text in [WESTERN[0], WESTERN[5], WESTERN[8]] {
        check("cp437", text);
    }
    check("macintosh", "q,a\n1,It’s “fine” – naïve café\n2,Müller’s\n");
    check("macintosh", "name,price\nCafé,£5\nThé,£7\n");
}

#[test]
fn central_languages_are_known() {
    let texts = [
        "id;imię;miasto\n1;Paweł Wąsik;Łódź\n2;Małgorzata Żak;Kraków\n3;Święcicki;Gdańsk\n",
        "id;jméno;město\n1;Jiří Dvořák;Plzeň\n2;Zdeněk Šťastný;České Budějovice\n",
        "id;név;város\n1;Kovács Győző;Győr\n2;Szűcs Ödön;Hódmezővásárhely\n",
        "id;ime;grad\n1;Željko Kovačić;Čakovec\n2;Đurđa Šimić;Šibenik\n",
        "id;ime;kraj\n1;Matjaž Žagar;Škofja Loka\n2;Črt;Celje\n",
        "id;meno;mesto\n1;Ľubomír Kováč;Košice\n2;Žofia;Nové Zámky\n",
    ];
    for text in texts {
        check("windows-1250", text);
        check("iso-8859-2", text);
        check("cp852", text);
    }
    check("windows-1250", "id;nume;oraş\n1;Ştefan Ţepeş;Iaşi\n2;Mădălina;Braşov\n");
    check("windows-1254", "id;ad;şehir\n1;Çağla Yıldız;İstanbul\n2;Gülşen Işık;Diyarbakır\n");
    check("windows-1257", "id;vardas;miestas\n1;Žydrūnas Šimkus;Šiauliai\n2;Eglė;Panevėžys\n");
    check("windows-1257", "id;vārds;pilsēta\n1;Jānis Bērziņš;Rīga\n2;Līga Kļaviņa;Jūrmala\n");
}

#[test]
fn other_scripts_are_known() {
    for label in ["windows-1251", "koi8-u", "ibm866"] {
        check(label, RUSSIAN);
        check(label, "Город;Население\nМосква;12600000\nОмск;1100000\n");
    }
    check("windows-1251", "Область;Місто\nКиївська;Біла Церква\nЛьвівська;Стрий\n");
    check("windows-1251", "Област;Град\nСофия;София\nПловдив;Асеновград\n");
    check("windows-1253", "Όνομα;Πόλη\nΓιώργος;Αθήνα\nΜαρία;Θεσσαλονίκη\n");
    check("iso-8859-7", "Όνομα;Πόλη\nΓιώργος;Αθήνα\nΆννα;Θεσσαλονίκη\n");
    check("windows-1255", "שם,עיר\nדוד,ירושלים\nרחל,חיפה\n");
    check("windows-1256", "الاسم,المدينة\nمحمد,القاهرة\nفاطمة,الرياض\n");
    check("windows-874", "ชื่อ,จังหวัด\nสมชาย,กรุงเทพ\nมาลี,เชียงใหม่\n");
    // One word of many that are ASCII.
    check("windows-1251", "id,city\n1,Москва\n");
}

#[test]
fn chinese_japanese_and_korean_are_known_from_few_characters() {
    for label in ["shift_jis", "euc-jp"] {
        for text in [
            JAPANESE,
            "都道府県,人口\n東京都,13960000\n大阪府,8840000\n北海道,5250000\n",
            "商品名,価格\nりんご,120\nみかん,80\n",
            "氏名,フリガナ\n佐藤一郎,サトウイチロウ\n",
            "date,code,銘柄名\n20240105,1301,極洋\n20240105,1305,上場投信\n",
        ] {
            check(label, text);
        }
    }
    check("gbk", CHINESE);
    check("gbk", "城市,人口\n北京,2154\n上海,2424\n广州,1490\n");
    check("gbk", "日期,收盘价\n2024-01-02,3.2\n2024-01-03,3.3\n");
    check("big5", "編號,姓名,城市\n1,王小明,臺北市\n2,陳美麗,高雄市\n3,張先生,臺中市\n");
    check("euc-kr", "번호,이름,도시\n1,김철수,서울\n2,이영희,부산\n3,박민수,대구\n");
    check("euc-kr", "지역,인구\n서울특별시,9700000\n경기도,13300000\n");
    check("iso-2022-jp", JAPANESE);
}

#[test]
fn what_rests_on_little_is_said() {
    let (found, why) = detect_encoding(b"a,b\nM\xfcller,1\n");
    assert_eq!(found.to_string(), "windows-1252");
    let why = why.unwrap();
    assert!(
        why.contains("is a guess from little: 1 character is not UTF-8, as in Müller"),
        "{why}"
    );
    assert!(why.contains("--encoding "), "{why}");
}

/// Symptom: text in UTF-8 with a few broken bytes was read as windows-1252 throughout.
#[test]
fn a_few_broken_bytes_do_not_change_the_encoding_of_the_others() {
    let mut text = "id,name\n1,Jürgen\n2,Zoë\n3,Ünal\n4,Łódź\n".as_bytes().to_vec();
    text.extend(b"5,caf\xe9\n6,na\xefve\n");
    assert_eq!(detect_encoding(&text).0, Encoding::Utf8);
}
