//! Inputs with different fields, joined by name.

use crate::support::Sandbox;

const LOAD: [&str; 8] =
    ["load", "a.csv", "b.csv", "c.csv", "--into", "s", "--union-by-name", "--replace"];

/// Names and rows of a table, as they are exported.
fn exported(sandbox: &Sandbox, table: &str) -> String {
    sandbox.run(&["export", "s", table, "--quote", "needed"]).ok().out
}

fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "id,name\n1,x\n2,\n");
    sandbox.write("b.csv", "note,ID,price\nhello,3,1.50\n\"a,b\",4,22.25\n");
    sandbox.write("c.csv", "Price,id\n7.125,5\n");
    sandbox
}

const JOINED: &str =
    "id,name,note,price\n1,x,,\n2,,,\n3,,hello,1.500\n4,,\"a,b\",22.250\n5,,,7.125\n";

#[test]
fn columns_are_those_of_all_inputs_in_the_order_in_which_they_appear() {
    let sandbox = three();
    for more in [&["--threads", "1"][..], &["--chunk-size", "16"], &["--threads", "4"]] {
        let run = sandbox.run(&[&LOAD[..], more].concat()).ok();
        assert_eq!(exported(&sandbox, "a"), JOINED, "{more:?} {run:?}");
    }
    let run = sandbox.run(&[&LOAD[..], &["--all-text"]].concat()).ok();
    assert!(exported(&sandbox, "a").contains("3,,hello,1.50\n"), "{run:?}");
    let types = ["--types", "note VARCHAR(9), price DECIMAL(12,4), id VARCHAR"];
    sandbox.run(&[&LOAD[..], &types].concat()).ok();
    assert!(exported(&sandbox, "a").ends_with("5,,,7.1250\n"));
    let wrong = sandbox.run(&[&LOAD[..], &["--types", "cost BIGINT"]].concat());
    assert!(wrong.err.contains("no input has a field cost"), "{wrong:?}");
}

#[test]
fn compressed_inputs_and_those_without_records_are_joined_too() {
    let sandbox = three();
    sandbox.write("b.csv", gzip("note,ID,price\nhello,3,1.50\n\"a,b\",4,22.25\n"));
    sandbox.write("empty.csv", "");
    sandbox.write("head.csv", "last,id\n");
    let load = ["load", "empty.csv", "a.csv", "b.csv", "head.csv", "c.csv", "--into", "s"];
    let run = sandbox.run(&[&load[..], &["--table", "t", "--union-by-name"]].concat()).ok();
    let rows = exported(&sandbox, "t");
    let (_, expected) = JOINED.split_once('\n').unwrap();
    let expected = format!("id,name,note,price,last\n{}", expected.replace('\n', ",\n"));
    assert_eq!(rows, expected, "{run:?}");
}

/// A gzip file of one stored block.
fn gzip(text: &str) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = text.len() as u16;
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(text.bytes());
    let mut crc = !0u32;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    out.extend((!crc).to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out
}

#[test]
fn what_an_input_lacks_is_the_default_of_a_table_or_refused() {
    let sandbox = three();
    let columns = "price DECIMAL(9,3) DEFAULT 0.5, id BIGINT NOT NULL, name VARCHAR DEFAULT 'none', \
                   day DATE DEFAULT DATE '2024-02-29', ok BOOLEAN DEFAULT TRUE";
    sandbox.write("d.csv", "id,day,ok\n6,2024-01-01,false\n");
    let load = [
        "load",
        "a.csv",
        "b.csv",
        "c.csv",
        "d.csv",
        "--into",
        "s",
        "--union-by-name",
        "--table",
        "t",
    ];
    let expected = "price,id,name,day,ok\n0.500,1,x,2024-02-29,true\n0.500,2,,2024-02-29,true\n\
                    1.500,3,none,2024-02-29,true\n22.250,4,none,2024-02-29,true\n\
                    7.125,5,none,2024-02-29,true\n0.500,6,none,2024-01-01,false\n";
    let run = sandbox.run(&[&load[..], &["--columns", columns]].concat()).ok();
    assert_eq!(exported(&sandbox, "t"), expected, "{run:?}");
    // Into the table that is there.
    sandbox.run(&load).ok();
    let rows = expected.split_once('\n').unwrap().1;
    assert_eq!(exported(&sandbox, "t"), format!("{expected}{rows}"));
    let run = sandbox.run(
        &[&LOAD[..], &["--table", "u", "--columns", "id BIGINT, name VARCHAR NOT NULL"]].concat(),
    );
    assert!(run.err.contains("b.csv has no field for column name, which is NOT NULL"), "{run:?}");
    let run = sandbox.run(&[&LOAD[..], &["--table", "u", "--columns", "name VARCHAR"]].concat());
    assert!(run.err.contains("b.csv has no field of the name of a column"), "{run:?}");
}

/// Many rows in several chunks and partitions, with columns whose values are kept in all ways.
#[test]
fn many_rows_of_each_input_come_back() {
    let sandbox = Sandbox::new();
    let (mut a, mut b) = ("id,text,few\n".to_owned(), "few,number,long,id\n".to_owned());
    let (mut expected, mut of_b) = ("id,text,few,number,long\n".to_owned(), String::new());
    for i in 0..20_000u64 {
        let (few, number) = (i / 3000, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        a.push_str(&format!("{i},text {number} of a row,{few}\n"));
        expected.push_str(&format!("{i},text {number} of a row,{few},,\n"));
        b.push_str(&format!("{few},{number},x{number},{i}\n"));
        of_b.push_str(&format!("{i},,{few},{number},x{number}\n"));
    }
    sandbox.write("a.csv", &a);
    sandbox.write("b.csv", &b);
    for (order, chunk) in
        [(["a.csv", "b.csv"], "1MiB"), (["a.csv", "b.csv"], "64KiB"), (["a.csv", "b.csv"], "8MiB")]
    {
        let load = [
            "load",
            order[0],
            order[1],
            "--into",
            "s",
            "--table",
            "t",
            "--replace",
            "--union-by-name",
        ];
        let run = sandbox.run(&[&load[..], &["--chunk-size", chunk]].concat()).ok();
        let rows = exported(&sandbox, "t");
        assert!(rows == format!("{expected}{of_b}"), "{chunk} {run:?}");
    }
}

#[test]
fn a_wider_type_is_found_in_any_input_and_places_are_those_of_the_file() {
    let sandbox = Sandbox::new();
    let rows: String = (0..9000).map(|i| format!("{i},{i}\n")).collect();
    sandbox.write("a.csv", format!("id,n\n{rows}"));
    sandbox.write("b.csv", format!("n,more,id\n{}7,x\n", "1,2,3\n".repeat(9000)));
    sandbox.write("c.csv", format!("m,n\n{rows}1,no number\n"));
    let load =
        ["load", "a.csv", "b.csv", "c.csv", "--into", "s", "--table", "t", "--union-by-name"];
    let more =
        ["--sample", "1KiB", "--chunk-size", "4KiB", "--max-rejects", "1", "--rejects", "r.csv"];
    let run = sandbox.run(&[&load[..], &more].concat()).ok();
    let out = exported(&sandbox, "t");
    assert!(out.starts_with("id,n,more,m\n0,0,,\n1,1,,\n"), "{run:?}");
    assert_eq!(out.lines().count(), 1 + 9000 + 9000 + 9001);
    assert!(
        out.contains("\n3,1,2,\n") && out.ends_with("\n,8999,,8999\n,no number,,1\n"),
        "{run:?}"
    );
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    assert!(rejects.contains("\nb.csv,9002,54010,,"), "{rejects}");
}

#[test]
fn inputs_without_names_or_written_otherwise_are_refused() {
    for (text, expected) in [
        ("1,2\n3,4\n", "b.csv does not begin with names"),
        (
            "id;name;n\n1;2;3\n4;5;6\n",
            "b.csv is written otherwise than a.csv, as far as --delimiter says",
        ),
        ("# a note\nid,name,n\n1,x,3\n", "as far as --skip says"),
        ("id,name,n\n1,x,3\n# a note\n4,y,6\n5,z,7\n", "as far as --comment says"),
        ("id,name,n\n1,\"x\\\"y\",3\n4,\"z\",6\n", "as far as --escape says"),
        ("id,name,n\r\r\n1,x,3\r\r\n4,y,6\r\r\n", "as far as --line-end says"),
    ] {
        let sandbox = three();
        sandbox.write("b.csv", text);
        let run = sandbox.run(&LOAD);
        assert!(run.err.contains(expected), "{run:?}");
    }
}
