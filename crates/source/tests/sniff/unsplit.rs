//! Text that is no table is one column, of which nothing is lost; a table with a few dirty rows stays one.

use coload_source::GivenDialect;

use crate::read::{read, read_given};

/// Reports and several tables in one file.
const NO_TABLES: [&str; 3] = [
    "*** Sat, 3 Sep 2016 ***\nVAR ESTIMATION RESULTS\nendogenous variables:     a b c\nlags:          4\n\n              realcons   realgdp\n\
     ------------------------------\nrealcons(t-1)|    1.399     1.268\n             |   (0.112)   (0.192)\n             |   {0.000}   {0.000}\n\
     realgdp (t-1)|   -0.238     0.566\n             |   (0.089)   (0.152)\n",
    "Statement,Header,Field Name,Field Value\nStatement,Data,Broker,X\nStatement,Data,Title,Activity\nAccount,Header,Field Name,Field Value\n\
     Account,Data,Name,John\nTrades,Header,Kind,Currency,Symbol,Time,Quantity\nTrades,Data,Order,USD,VTI,10:11,10\nTrades,Data,Order,USD,VTI,10:12,5\n",
    "The common case\n\n\t./configure\n\tmake all\n\tmake install\n\nDirectories\n\nuse DESTDIR=,\n\n\tmake DESTDIR=/x install\n\nall\tis\twell\n",
];

#[test]
fn what_is_no_table_is_one_column_and_loses_nothing() {
    for text in NO_TABLES {
        let found = read(text.as_bytes()).unwrap();
        let evidence = found.evidence.join("\n  ");
        let lines: Vec<Option<String>> =
            text.lines().map(|line| (!line.is_empty()).then(|| line.to_owned())).collect();
        let rows: Vec<Option<String>> = found.rows.iter().map(|row| row[0].clone()).collect();
        assert_eq!(found.types.len(), 1, "{text}\n  {evidence}");
        assert_eq!((found.rejects, found.dialect.skip), (0, 0), "{text}\n  {evidence}");
        assert!(
            lines.iter().flatten().eq(rows.iter().flatten().filter(|v| !v.is_empty())),
            "{rows:?}"
        );
        assert!(evidence.contains("one column"), "{evidence}");
    }
}

#[test]
fn dirty_rows_leave_a_table_what_it_is() {
    for text in [
        // One row in eight is short, and names are above.
        "id,name,size\n1,a,2\n2,b,3\n3,c,4\n4,d\n5,e,6\n6,f,7\n7,g,8\n8,h,9\n",
        // Without names, one in nine is too long.
        "1,a,2\n2,b,3\n3,c,4\n4,d,9,9\n5,e,6\n6,f,7\n7,g,8\n8,h,9\n9,i,3\n",
    ] {
        let found = read(text.as_bytes()).unwrap();
        assert_eq!(found.types.len(), 3, "{text}\n{:?}", found.evidence);
    }
}

#[test]
fn a_delimiter_that_is_given_splits() {
    let given = GivenDialect { delimiter: Some(b",".to_vec()), ..GivenDialect::default() };
    let found = read_given(NO_TABLES[1].as_bytes(), &given).unwrap();
    assert!(found.types.len() > 1);
}
