//! A version has the trees of its indexes: those that its segments lack are built by whoever publishes it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;

use coload_types::{Error, Result};

use super::build::{build_index, bytes_held};
use super::file::{ALIGNMENT, IndexTree, MAGIC, PutBytes, SegmentIndex};
use super::give_way::GivingWay;
use super::unique::check_unique;
use crate::Store;
use crate::deleted::FilePart;
use crate::directory::{Layout, file_access_in, index_name, sync_dir};
use crate::failpoints;
use crate::held::HeldBytes;
use crate::manifest::{Manifest, SegmentEntry, TableEntry};
use crate::snapshot::open_segment;
use crate::work_dir::WorkDir;

/// Whether rows of a version that are new may have keys of others.
#[derive(Debug)]
pub(crate) enum Checking<'a> {
    /// They may.
    NewRows,
    /// They may, and those of these loads give way then.
    GivingWay(&'a mut [GivingWay]),
    /// They are rows that were there: segments were merged.
    SameRows,
}

/// Trees that were built for a version. Where another writer published first they are those of the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Built {
    trees: HashMap<(String, Vec<usize>), FilePart>,
    /// The files of tables that they go to.
    files: HashMap<u64, Growing>,
}

/// A file of trees, and how much of it is written.
#[derive(Debug)]
struct Growing {
    file: BufWriter<File>,
    end: u64,
}

/// Builds the trees that segments of a version lack, takes away those that no index of their table has, takes out rows that give way, and checks
/// that no key of a UNIQUE index comes twice. `base` is the version before.
///
/// # Errors
/// `Invalid` when such a key comes twice; `Corrupt` when a segment is not what was written; `Unavailable` when the disk fails.
pub(crate) fn complete(
    store: &Store,
    work: &mut WorkDir,
    (base, next): (&Manifest, &mut Manifest),
    checking: &mut Checking<'_>,
    built: &mut Built,
) -> Result<()> {
    for table in &mut next.tables {
        let TableEntry { id, schema, segments, .. } = &mut *table;
        let mut wanted: Vec<&[usize]> = schema.indexes().iter().map(|i| i.columns()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for segment in segments.iter_mut() {
            segment.trees.retain(|tree| wanted.contains(&&tree.columns[..]));
        }
        for columns in wanted {
            for segment in segments.iter_mut() {
                if segment.trees.iter().any(|tree| tree.columns == columns) {
                    continue;
                }
                let key = (segment.file.clone(), columns.to_vec());
                let part = match built.trees.get(&key) {
                    Some(part) => part.clone(),
                    None => {
                        let path = store.layout().segment(&segment.file);
                        let file = open_segment(&path, schema, segment, HeldBytes::new(0))?;
                        let bytes = bytes_held(&file, columns, store.sort_with())?;
                        let held = store.take_memory("an index that is built", bytes)?;
                        let part = built.append(store.layout(), work, *id, |put| {
                            build_index(&file, (schema, columns), store.sort_with(), put)
                        })?;
                        drop(held);
                        built.trees.entry(key).or_insert(part).clone()
                    }
                };
                segment.trees.push(IndexTree { columns: columns.to_vec(), part });
            }
        }
    }
    built.sync(store.layout())?;
    match checking {
        Checking::SameRows => return Ok(()),
        Checking::NewRows => {}
        Checking::GivingWay(loads) => {
            loads.iter_mut().try_for_each(|load| load.apply(store, next))?;
        }
    }
    next.tables.iter().try_for_each(|table| check_table(store, base, table))
}

/// Compares the keys of segments that a table did not have before, or of all for an index that it did not have.
fn check_table(store: &Store, base: &Manifest, table: &TableEntry) -> Result<()> {
    let before = base.tables.iter().find(|before| before.id == table.id);
    let all: HashSet<&str> = table.segments.iter().map(|s| s.file.as_str()).collect();
    for index in table.schema.indexes().iter().filter(|index| index.is_unique()) {
        let was_there = before.filter(|before| {
            let same =
                |old: &&coload_ddl::Index| old.is_unique() && old.columns() == index.columns();
            before.schema.indexes().iter().any(|old| same(&old))
        });
        let known: HashSet<&str> = was_there
            .map(|before| before.segments.iter().map(|s| s.file.as_str()).collect())
            .unwrap_or_default();
        let new: HashSet<&str> = all.difference(&known).copied().collect();
        if !new.is_empty() {
            check_unique(store, table, index, &new)?;
        }
    }
    Ok(())
}

impl Built {
    /// Writes a tree behind the others of its table: a call puts its bytes, and says how many these are and the checksum of the tree.
    fn append(
        &mut self,
        layout: &Layout,
        work: &mut WorkDir,
        table: u64,
        build: impl FnOnce(PutBytes<'_>) -> Result<(u64, u64)>,
    ) -> Result<FilePart> {
        let name = index_name(work.id(), table);
        let path = layout.segment(&name);
        let fail = |e: io::Error| Error::io("write", &path, &e);
        let growing = match self.files.entry(table) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                work.note_installed(path.clone());
                failpoints::hit(failpoints::WRITE_INDEX).map_err(fail)?;
                let mut options = File::options();
                options.write(true).create(true).truncate(true).mode(file_access_in(&path));
                let mut file = BufWriter::new(options.open(&path).map_err(fail)?);
                file.write_all(&MAGIC).map_err(fail)?;
                new.insert(Growing { file, end: MAGIC.len() as u64 })
            }
        };
        let offset = growing.end.next_multiple_of(ALIGNMENT);
        let padding = vec![0; (offset - growing.end) as usize];
        growing.file.write_all(&padding).map_err(fail)?;
        let (bytes, seal) = build(&mut |part| {
            failpoints::hit(failpoints::WRITE_INDEX)
                .and_then(|()| growing.file.write_all(part))
                .map_err(fail)
        })?;
        growing.end = offset + bytes;
        Ok(FilePart { file: name, offset, bytes, seal })
    }

    /// Makes what was written durable.
    fn sync(&mut self, layout: &Layout) -> Result<()> {
        for growing in self.files.values_mut() {
            let synced = growing.file.flush().and_then(|()| growing.file.get_ref().sync_all());
            synced.map_err(|e| Error::io("sync indexes in", &layout.segments, &e))?;
        }
        match self.files.is_empty() {
            true => Ok(()),
            false => sync_dir("store::publish::sync_segments_dir", &layout.segments),
        }
    }
}

/// Opens the tree of an index of a segment.
///
/// # Errors
/// `Corrupt` when it is not what was written, `Unavailable` when it cannot be read.
pub(crate) fn open_index(
    layout: &Layout,
    segment: &SegmentEntry,
    tree: &IndexTree,
) -> Result<SegmentIndex> {
    SegmentIndex::open(&layout.segment(&tree.part.file), &tree.part, segment.rows)
}
