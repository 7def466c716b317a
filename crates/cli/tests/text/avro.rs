//! `coload load` of files and streams of Avro, as fastavro writes them.

use crate::drivers::{passes, python};
use crate::support::Sandbox;

fn written() -> Sandbox {
    let sandbox = Sandbox::new();
    passes(python("avro_files.py").arg("write").arg(sandbox.path(".")));
    sandbox
}

/// Exports a table, and compares it with what fastavro reads of the file that it came from.
#[track_caller]
fn check(sandbox: &Sandbox, file: &str, table: &str) {
    sandbox.run(&["export", "store", table, "--output", "export.csv"]).ok();
    let mut check = python("avro_files.py");
    passes(check.arg("check").arg(sandbox.path(file)).arg(sandbox.path("export.csv")));
}

#[test]
fn all_that_fastavro_writes_is_loaded_as_it_is() {
    let sandbox = written();
    // Many chunks, and several partitions.
    let grain = ["--chunk-size", "64KiB", "--fragments-per-partition", "3"];
    for codec in ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"] {
        let file = format!("{codec}.avro");
        let load = ["load", &file, "--into", "store", "--table", codec];
        sandbox.run(&[&load[..], &grain].concat()).ok();
        check(&sandbox, &file, codec);
        let bytes = std::fs::read(sandbox.path(&file)).unwrap();
        let piped = format!("piped_{codec}");
        let load = ["load", "-", "--into", "store", "--table", &piped];
        sandbox.run_with_input(&[&load[..], &grain].concat(), &bytes).ok();
        check(&sandbox, &file, &piped);
    }
    // All of them as one.
    let all = ["load", "null.avro", "xz.avro", "snappy.avro", "--into", "store", "--table", "all"];
    let run = sandbox.run(&[&all[..], &["--report", "json"]].concat()).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["rows"], 12_000);
}

#[test]
fn later_logical_types_and_records_within_themselves_are_read() {
    let sandbox = written();
    sandbox.run(&["load", "raw.avro", "--into", "store", "--table", "raw"]).ok();
    let exported = sandbox.run(&["export", "store", "raw"]).ok().out;
    let rows = "nanos,local_nanos,\"span\",id,\"odd\"\n2017-07-14 02:40:00.123456+00,1969-12-31 23:59:59.999999,\
                \"P14M3DT1.500S\",00010203-0405-0607-0809-0a0b0c0d0e0f,\"no date\"\n";
    assert_eq!(exported, rows);
    sandbox.run(&["load", "chain.avro", "--into", "store", "--table", "chain"]).ok();
    let exported = sandbox.run(&["export", "store", "chain"]).ok().out;
    let next =
        (0..19).fold("null".to_owned(), |next, n| format!("{{\"value\": {n}, \"next\": {next}}}"));
    let rows = format!("value,\"next\"\n19,\"{}\"\n7,\n", next.replace('"', "\"\""));
    assert_eq!(exported, rows);
    // Without records there are columns, and no rows.
    sandbox.run(&["load", "empty.avro", "--into", "store", "--table", "empty"]).ok();
    assert_eq!(sandbox.run(&["export", "store", "empty"]).ok().out, "\"name\",id\n");
}

#[test]
fn fields_are_columns_by_name_or_in_their_order() {
    let sandbox = written();
    let columns = ["--columns", "id BIGINT, \"point.label.text\" VARCHAR", "--by-name"];
    let load = ["load", "deflate.avro", "--into", "store", "--table", "t"];
    let run = sandbox.run(&[&load[..], &columns].concat()).ok();
    assert!(run.err.contains("fields that are not read: number, big, single"), "{}", run.err);
    let swapped = ["load", "swapped.avro", "--into", "store", "--table", "u"];
    sandbox
        .run(&[&swapped[..], &["--columns", "id BIGINT, name VARCHAR"]].concat())
        .fails(1, &["field 1 is name, which is the name of column 2", "--by-name"]);
    let mapped = ["--columns", "a BIGINT, b VARCHAR", "--map", "id=a", "--map", "name=b"];
    sandbox.run(&[&swapped[..], &mapped].concat()).ok();
    assert_eq!(sandbox.run(&["export", "store", "u"]).ok().out, "a,\"b\"\n4,\"c\"\n");
    let types = ["--types", "id VARCHAR(3)"];
    let typed = ["load", "swapped.avro", "--into", "store", "--table", "v"];
    sandbox.run(&[&typed[..], &types].concat()).ok();
    assert_eq!(sandbox.run(&["export", "store", "v"]).ok().out, "name,\"id\"\n\"c\",\"4\"\n");
}

#[test]
fn what_is_no_row_is_told_with_its_place_and_can_be_set_aside() {
    let sandbox = written();
    let load = ["load", "null.avro", "--into", "store", "--types", "big SMALLINT"];
    sandbox.run(&load).fails(1, &["null.avro:1:3 (byte ", "is not SMALLINT", "column big"]);
    let aside = ["--max-rejects", "100%", "--rejects", "rejects.csv", "--report", "json"];
    let run = sandbox.run(&[&load[..], &aside].concat()).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let (rows, rejects) = (json["rows"].as_u64().unwrap(), json["rejects"].as_u64().unwrap());
    assert!(rows + rejects == 4_000 && rows > 100, "{rows} {rejects}");
}

#[test]
fn flags_of_text_and_damage_are_told() {
    let sandbox = written();
    let load = ["load", "swapped.avro", "--into", "store"];
    for flags in [&["--delimiter", ";"][..], &["--no-header"], &["--all-text"], &["--skip", "1"]] {
        sandbox.run(&[&load[..], flags].concat()).fails(1, &["swapped.avro is Avro", flags[0]]);
    }
    sandbox.write("a.csv", "name,id\nx,1\n");
    sandbox
        .run(&["load", "swapped.avro", "a.csv", "--into", "store"])
        .fails(1, &["swapped.avro is Avro, and a.csv is not"]);
    sandbox
        .run(&["load", "swapped.avro", "chain.avro", "--into", "store"])
        .fails(1, &["chain.avro has other fields than swapped.avro"]);
    let whole = std::fs::read(sandbox.path("deflate.avro")).unwrap();
    for (cut, told) in [(50, "middle of the header"), (whole.len() - 1, "middle of a block")] {
        sandbox.write("cut.avro", &whole[..cut]);
        sandbox.run(&["load", "cut.avro", "--into", "store"]).fails(1, &["cut.avro", told]);
    }
    let mut damaged = whole;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    sandbox.write("damaged.avro", &damaged);
    let told = ["damaged.avro", "block ", "the marker behind a block is not that of the file"];
    sandbox.run(&["load", "damaged.avro", "--into", "store"]).fails(1, &told);
    // A compression that nobody reads, by its name.
    let null = std::fs::read(sandbox.path("null.avro")).unwrap();
    let at = null.windows(4).position(|word| word == b"null").unwrap();
    let mut other = null;
    other[at..at + 4].copy_from_slice(b"lz77");
    // What comes first may be that of a schema.
    sandbox.write("other.avro", &other);
    sandbox.run(&["load", "other.avro", "--into", "store"]).fails(1, &["other.avro", "lz77"]);
}

#[test]
fn sniff_plan_and_dry_runs_tell_of_avro() {
    let sandbox = written();
    let run = sandbox.run(&["sniff", "swapped.avro"]).ok();
    assert!(run.out.starts_with("Avro, fields: name string, id long\n"), "{}", run.out);
    assert!(run.out.ends_with("coload load swapped.avro --into STORE\n"), "{}", run.out);
    let run = sandbox.run(&["sniff", "xz.avro", "--output", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&json["format"], &json["dialect"]), (&"avro".into(), &serde_json::Value::Null));
    let told = json["create_table"].as_str().unwrap();
    for column in
        ["id BIGINT NOT NULL", "money DECIMAL(12,2)", "\"key\" UUID", "ts_us TIMESTAMP WITH"]
    {
        assert!(told.contains(column), "{column}: {told}");
    }
    let dry = ["load", "zstandard.avro", "--into", "store", "--dry-run", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&dry).ok().out).unwrap();
    assert_eq!((&json["rows"], &json["dialect"]), (&4_000.into(), &serde_json::Value::Null));
    assert!(!sandbox.path("store").exists());
    let plan = ["plan", "null.avro", "xz.avro", "--workers", "2", "--output", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&plan).ok().out).unwrap();
    assert_eq!(json["splits"].as_array().map(Vec::len), Some(2), "{json}");
}

/// Half a million rows in blocks of 64 kB, in 64 MiB.
#[test]
fn memory_is_bounded() {
    let sandbox = Sandbox::new();
    let mut large = python("avro_files.py");
    passes(large.arg("large").arg(sandbox.path("large.avro")).arg("500000").arg("deflate"));
    let args = ["load", "large.avro", "--into", "store", "--memory", "64MiB", "--report", "json"];
    let run = sandbox.run(&args).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let peak = json["peak_memory_bytes"].as_u64().unwrap() >> 20;
    assert_eq!(json["rows"], 500_000);
    // The program itself takes some 30 MiB.
    assert!(peak < 104, "{peak} MiB of 64");
}
