use super::*;

fn names() -> TableNames {
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    vec![
        ("lineitem".to_owned(), columns(&["l_orderkey", "l_comment"])),
        ("Odd name".to_owned(), columns(&["a b"])),
    ]
}

fn complete(before: &str, line: &str) -> (usize, Vec<String>) {
    let line: Vec<char> = line.chars().collect();
    let mut sql = Sql { before, names: &mut names, has_colours: false };
    let Completion { start, candidates } = sql.complete(&line, line.len());
    (start, candidates)
}

fn found(line: &str) -> Vec<String> {
    complete("", line).1
}

#[test]
fn words_functions_tables_and_columns_are_completed() {
    assert_eq!(complete("", "sel"), (0, vec!["select".into()]));
    assert_eq!(found("SEL"), ["SELECT"]);
    assert_eq!(found("select regexp_c"), ["regexp_count("]);
    assert_eq!(found("select l_"), ["l_comment", "l_orderkey"]);
    assert_eq!(complete("", "select * from li"), (14, vec!["lineitem".into()]));
    assert_eq!(found("select * from "), ["\"Odd name\"", "lineitem"]);
    assert_eq!(found("select * from odd"), ["\"Odd name\""]);
    assert_eq!(found("select lineitem.l_o"), ["lineitem.l_orderkey"]);
    assert_eq!(complete("select x.a from lineitem x ", "where x.l_c").1, ["x.l_comment"]);
    assert_eq!(complete("select x.a from lineitem as x ", "where x.l_c").1, ["x.l_comment"]);
    assert_eq!(found(""), [""; 0]);
    assert_eq!(found("select 1 -- sel"), [""; 0]);
}

#[test]
fn commands_and_files_are_completed() {
    assert_eq!(found("\\ti"), ["\\timing"]);
    assert_eq!(found("\\d li"), ["lineitem"]);
    assert_eq!(found("\\output ma"), ["markdown"]);
    assert_eq!(found("\\i src/main"), ["src/main.rs"]);
    assert_eq!(found("\\i sr"), ["src/"]);
    assert_eq!(complete("", "copy t to 'src/main"), (11, vec!["src/main.rs".into()]));
    assert_eq!(complete("select '\n", "src/main").1, ["src/main.rs"]);
    assert_eq!(found("select 'a', sel"), ["select"]);
}

#[test]
fn lines_are_painted_by_what_their_characters_are() {
    let paint = |before: &str, line: &str| {
        let characters: Vec<char> = line.chars().collect();
        let sql = Sql { before, names: &mut names, has_colours: true };
        sql.paint(&characters, 0..characters.len())
    };
    let end = NO_COLOUR;
    assert_eq!(paint("", "a select"), format!("a {end}{WORD_COLOUR}select{end}"));
    assert_eq!(
        paint("", "'x' 12"),
        format!("{end}{TEXT_COLOUR}'x'{end} {end}{NUMBER_COLOUR}12{end}")
    );
    assert_eq!(paint("'open\n", "on' b"), format!("{end}{TEXT_COLOUR}on'{end} b"));
    assert_eq!(paint("", "-- on"), format!("{end}{COMMENT_COLOUR}-- on{end}"));
    assert_eq!(paint("", "\\d from"), "\\d from");
    let plain = Sql { before: "", names: &mut names, has_colours: false };
    assert_eq!(plain.paint(&['o', 'n'], 0..2), "on");
}
