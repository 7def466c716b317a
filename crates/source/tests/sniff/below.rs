//! Tables of few rows below as many lines of another form, as banks, instruments and spreadsheets export them.

use crate::read::{Table, read};
use crate::wild::check_text;

fn table(text: &str) -> Table {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\nrefused: {error}"))
}

#[test]
fn pairs_above_few_rows_are_no_rows() {
    check_text(
        "Umsatzanzeige;Datei erstellt am: 02.12.2025 19:04\r\n\r\nIBAN;DE50\r\nKontoname;Girokonto\r\nBank;ING\r\nKunde;Admin\r\n\
         Saldo;2.776,45;EUR\r\n\r\nSortierung;Datum absteigend\r\n\r\n\r\nBuchung;Auftraggeber;Saldo;Währung;Betrag;Währung\r\n\
         02.12.2025;Empfänger;2.776,45;EUR;-206,44;EUR\r\n",
        "Buchung DATE|Auftraggeber VARCHAR|Saldo DECIMAL(18,2)|Währung VARCHAR|Betrag DECIMAL(18,2)|Währung_2 VARCHAR\n\
         2025-12-02|Empfänger|2776.45|EUR|-206.44|EUR",
    );
    check_text(
        "Datum von:;2021-01-01\nDatum bis:;2021-01-31\nBuchungsart:;Alle\nKonto:;CH1234\nWährung:;CHF\n\n\
         Datum;Text;Gutschrift;Lastschrift\n2021-01-29;GIRO;100.00;\n2021-01-28;KAUF;;-12.30\n",
        "Datum DATE|Text VARCHAR|Gutschrift DECIMAL(18,2)|Lastschrift DECIMAL(18,2)\n2021-01-29|GIRO|100.00|~\n2021-01-28|KAUF|~|-12.30",
    );
    // No blank line sets the table apart.
    check_text(
        "Sample,A-17\nOperator,Jo\nMode,fast\nDevice,X9\nStep,Force,Length\n1,2.5,3.5\n2,2.75,3.25\n",
        "Step BIGINT|Force DECIMAL(18,2)|Length DECIMAL(18,2)\n1|2.5|3.5\n2|2.75|3.25",
    );
}

#[test]
fn two_delimiters_in_a_summary_are_not_one() {
    check_text(
        "Description,,Summary Amt.\nBeginning balance,,\"1,000.00\"\nTotal credits,,\"2,500.00\"\nTotal debits,,\"-12.34\"\n\n\
         Date,Description,Amount,Running Bal.\n01/30/2020,PAYROLL,\"2,500.00\",\"3,500.00\"\n01/31/2020,\"A\",\"-12.34\",\"3,487.66\"\n",
        "Date DATE|Description VARCHAR|Amount DECIMAL(18,2)|Running Bal. DECIMAL(18,2)\n\
         2020-01-30|PAYROLL|2500.00|3500.00\n2020-01-31|A|-12.34|3487.66",
    );
}

#[test]
fn spreadsheets_fill_lines_above_a_table_with_delimiters() {
    let padded = "Report,Sales,,,\nDate,2020-01-01,,,\n,,,,\nId,Name,Qty,Price,Total\n1,a,2,3.5,7\n2,b,1,2.5,2.5\n";
    check_text(
        padded,
        "Id BIGINT|Name VARCHAR|Qty BIGINT|Price DECIMAL(18,1)|Total DECIMAL(18,1)\n1|a|2|3.5|7\n2|b|1|2.5|2.5",
    );
    // Names above names stay.
    let merged = table("Region,2019,,2020,\nName,Q1,Q2,Q3,Q4\nA,1,2,3,4\nB,5,6,7,8\n");
    assert_eq!(merged.dialect.skip, 0, "{:?}", merged.evidence);
}

#[test]
fn totals_behind_such_a_table_are_no_rows() {
    let bank = table(
        "Umsätze;;;Kunde: 123\n\n01.09.2016 - 30.09.2016\nAlter Kontostand;;;;1.234,56\nVorgemerkte Umsätze sind nicht enthalten.\n\
         Tag;Wert;Art;Text;Betrag;Soll;Haben\n01.09.2016;01.09.2016;Karte;A;-34,99;;\n02.09.2016;02.09.2016;Lohn;B;;;2.034,99\n\
         Kontostand;;;;3.234,56\n",
    );
    assert_eq!((bank.rows.len(), bank.rejects, bank.dialect.footer), (2, 0, 1));
    // A row that lacks fields is a row.
    let short = table(
        "Umsätze;Mai\nKunde;123\nKonto;9\n\nTag;Art;Text;Betrag\n01.09.2016;Karte;A;-34,99\n02.09.2016;Lohn\n",
    );
    assert_eq!((short.rows.len(), short.dialect.footer), (2, 0), "{:?}", short.evidence);
}

#[test]
fn a_table_above_another_is_not_left_out() {
    for text in [
        "a,b,c\n1,x,y\n2,x,y\n3,x,z\n\nname,size,count,unit,note\nA,1,2,kg,x\nB,3,4,kg,y\n",
        "id,value,unit\n1,2.5,kg\n2,3.5,kg\n3,4.5,kg\nname,size,count,sum,note\nA,1,2,3,x\nB,3,4,7,y\n",
    ] {
        if let Ok(found) = read(text.as_bytes()) {
            assert_eq!(found.dialect.skip, 0, "{text}\n{:?}", found.evidence);
        }
    }
}

#[test]
fn what_is_said_of_its_start_holds() {
    let text = "Sample,A-17\nOperator,Jo\nMode,fast\nStep,Force,Length\n1,2.5,3.5\n";
    let given = coload_source::GivenDialect { skip: Some(0), ..Default::default() };
    let found = crate::read::read_given(text.as_bytes(), &given).unwrap();
    assert_eq!(found.dialect.skip, 0);
}

#[test]
fn rows_of_values_stand_below_lines_of_other_widths() {
    let header = "LOCATION,Denver,CO,USA,TMY3,724666,39.74,-105.18,-7.0,1829.0\n\
                  DESIGN CONDITIONS,1,Climate Design Data,,Heating,12,-18.8,-15.6,-23.4,0.6,-10.4,Cooling,7,15.2,34.6\n\
                  HOLIDAYS/DAYLIGHT SAVINGS,No,0,0,0\nCOMMENTS 1,Custom\nDATA PERIODS,1,1,Data,Sunday, 1/ 1,12/31\n";
    let rows: String = (1..9).map(|hour| format!("1999,1,1,{hour},0,?9,3.0,-8.0\n")).collect();
    let found = table(&format!("{header}{rows}"));
    assert_eq!(
        (found.rows.len(), found.rejects, found.dialect.skip),
        (8, 0, 5),
        "{:?}",
        found.evidence
    );
    // Names that are more than the fields are names.
    let named = table("a,b,c,d\n1,2,3\n4,5,6\n7,8,9\n1,2,3\n");
    assert_eq!(named.names, ["a", "b", "c", "d"]);
}

#[test]
fn the_last_comment_names_columns() {
    check_text(
        "# SOURCE: THE INSTITUTE\n#\n# FHVEC    = mean speed (in 0.1 m/s);\n#\n# STN,YYYYMMDD,DDVEC,   FG\n#\n  260,20200101,  137,   16\n  \
         260,20200102,  195,   33\n  260,20200103,  201,   48\n",
        "STN BIGINT|YYYYMMDD BIGINT|DDVEC BIGINT|FG BIGINT\n260|20200101|137|16\n260|20200102|195|33\n260|20200103|201|48",
    );
    // A sentence with as many commas does not.
    let sentence = table(
        "# this was measured in May, June and the last days of July, by hand\n#\n1,2,3\n4,5,6\n7,8,9\n",
    );
    assert_eq!(sentence.names, ["c1", "c2", "c3"], "{:?}", sentence.evidence);
}

#[test]
fn a_drawn_line_ends_a_table() {
    let found = table(
        "number,time,amount\n2020010122001,2020-01-01 12:01:02,12.50\n2020010122002,2020-01-02 12:01:02,100.00\n\
         ----------------------\n2 in all\n",
    );
    assert_eq!(
        (found.rows.len(), found.rejects, found.dialect.footer),
        (2, 0, 2),
        "{:?}",
        found.evidence
    );
}

#[test]
fn rows_above_names_that_come_again_are_not_lost() {
    for text in [
        "a,b,c\n1,2,3\n4,5,6\n\na,b,c\n7,8,9\n",
        "name,size,note\nx,1,p\ny,2,q\n\nplace,count,remark\nz,3,r\nw,4,s\nv,5,t\n",
    ] {
        if let Ok(found) = read(text.as_bytes()) {
            let kept = found.rows.len() + found.rejects + usize::from(found.names[0] != "c1");
            assert_eq!(found.dialect.skip, 0, "{text}\n{:?}", found.evidence);
            assert_eq!(kept, text.lines().filter(|line| !line.is_empty()).count(), "{text}");
        }
    }
}

#[test]
fn sections_name_what_follows_them() {
    check_text(
        "[Header],,,\nVersion,4,,\nDate,1/31/2020,,\n,,,\n[Reads],,,\n151,,,\n,,,\n[Data],,,\nSample_ID,Sample_Name,Well,index\n\
         S1,a,7,TAAG\nS2,b,8,CGTA\n",
        "Sample_ID VARCHAR|Sample_Name VARCHAR|Well BIGINT|index VARCHAR\nS1|a|7|TAAG\nS2|b|8|CGTA",
    );
}
