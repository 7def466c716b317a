//! Journals: what was acknowledged of loads that are not published.

use std::path::Path;

use coload_types::{Error, Result};

use super::{Damage, Part, VerifyReport, names};
use crate::directory::{Layout, parse_segment_name};
use crate::journal::{LOAD_NAME, is_whole_file, part_number, read_whole};
use crate::load_record::LoadId;
use crate::segment::SegmentFile;

/// Verifies all journals. What a server writes meanwhile appears whole, by rename.
pub(super) fn verify_all(layout: &Layout, report: &mut VerifyReport) -> Result<()> {
    if !layout.loads.is_dir() {
        return Ok(());
    }
    for name in names(&layout.loads)?.into_iter().filter(|n| n.parse::<LoadId>().is_ok()) {
        let dir = layout.loads.join(&name);
        report.journals += 1;
        match verify_journal(&dir) {
            Ok(()) => {}
            // Published or dropped meanwhile.
            Err(_) if !dir.join(LOAD_NAME).exists() => {}
            Err(Error::Corrupt(what) | Error::Invalid(what)) => {
                let part = Part::Journal;
                report.damages.push(Damage { part, path: dir, what, table: None, rows: 0 });
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn verify_journal(dir: &Path) -> Result<()> {
    let all = names(dir)?;
    for name in all.iter().filter(|name| is_whole_file(name)) {
        read_whole(&dir.join(name))?;
    }
    let is_acknowledged = |number: u32| all.iter().any(|name| part_number(name) == Some(number));
    for name in &all {
        let Some((load, number)) = parse_segment_name(name) else { continue };
        let of_journal = dir.file_name().is_some_and(|dir| *dir == *load.to_string());
        if of_journal && is_acknowledged(number) {
            verify_segment(&dir.join(name))?;
        }
    }
    Ok(())
}

/// Reads all of a segment whose columns only the journal's owner knows.
fn verify_segment(path: &Path) -> Result<()> {
    let file = SegmentFile::open(path)?;
    for column in 0..file.column_count() {
        file.dictionary(column)?;
        for page in 0..file.page_rows().len() {
            file.stored_page(column, page)?;
        }
    }
    file.check()
}
