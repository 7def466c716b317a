//! Loads a file with a progress callback, and queries it.
//!
//! `cargo run --example load_and_query`
#![allow(clippy::print_stdout, missing_docs)]

use std::error::Error;
use std::sync::Arc;

use coload::{Coload, Hooks, PlanRequest, ProgressCallback, RejectLimit, Resources, arrow};

pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("people.csv");
    std::fs::write(&file, "name,born\nAda,1815-12-10\nAlan,1912-06-23\nNobody,1912-13-01\n")?;

    // Delimiter and header are found out from the file; so would be columns that are not given.
    let store = Coload::create_or_open(folder.path().join("store"))?;
    let mut request = PlanRequest::new([file.to_string_lossy()]);
    request.schema = Some(coload::parse_columns("name VARCHAR NOT NULL, born DATE NOT NULL")?);
    let mut plan = store.plan(&request)?;
    for line in &plan.evidence {
        println!("{line}");
    }

    // A record may be set aside, and the progress is told.
    plan.request.max_rejects = RejectLimit::Count(1);
    let progress: ProgressCallback = Arc::new(|p| println!("{} rows", p.rows()));
    let hooks = Hooks { progress: Some(progress), ..Hooks::default() };
    let report = store.load(&plan.request, &Resources::default(), &hooks)?;
    assert_eq!((report.rows(), report.reject_count()), (2, 1));
    println!("set aside: {}", report.rejects[0].to_error());

    let batches = store.query("SELECT name FROM people ORDER BY born")?;
    println!("{}", arrow::util::pretty::pretty_format_batches(&batches)?);
    let names = arrow::array::AsArray::as_string_view(batches[0].column(0));
    assert_eq!(names.iter().flatten().collect::<Vec<_>>(), ["Ada", "Alan"]);
    Ok(())
}
