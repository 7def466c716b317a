//! The rows of a load in the order of the table's key, before it is published.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use coload_threads::while_sizes_repeat;
use coload_types::Result;

use super::LoadDir;
use crate::change::LoadTarget;
use crate::directory::parse_segment_name;
use crate::keyed::{
    Keyed, LoadFiles, OrderedLoad, OrderedSegment, SortSpaces, SortTimes, SortWith, Sorting,
    TreeKey, order_load,
};
use crate::manifest::SegmentEntry;
use crate::on_conflict::{DeleteWhere, OnConflict};
use crate::segment_writer::SegmentWriter;

/// Share of the memory that a segment of merged runs takes in its file: its keys, the numbers of its rows and some columns are whole in
/// memory while it is made.
const SEGMENT_SHARE: u64 = 8;

impl LoadDir {
    /// Says what happens to keys that are in the table or come twice, before segments are put in order.
    ///
    /// # Errors
    /// `Invalid` when the table has no PRIMARY KEY.
    pub fn set_on_conflict(&mut self, on_conflict: OnConflict) -> Result<()> {
        on_conflict.check(&self.target.name, &self.target.schema, &self.keys)?;
        self.on_conflict = on_conflict;
        Ok(())
    }

    /// Says which rows are none of the table, and take those away that have their keys.
    ///
    /// # Errors
    /// `Invalid` when the table has no PRIMARY KEY or no such column, or its rows do not give way ([`Self::set_on_conflict`]).
    pub fn set_delete_where(&mut self, delete_where: DeleteWhere) -> Result<()> {
        let LoadTarget { name, schema, .. } = &self.target;
        delete_where.check(name, schema, self.key(), self.on_conflict)?;
        self.delete_where = Some(delete_where);
        Ok(())
    }

    /// Whether rows of it give way for values of UNIQUE.
    pub(super) fn ignores_unique(&self) -> bool {
        self.keys.has_unique && self.on_conflict.ignores_unique()
    }

    /// What its rows are put in order and compared by, if its table has a key.
    pub(super) fn keyed(&self) -> Option<Keyed<'_>> {
        let LoadDir { target: LoadTarget { name, schema, .. }, keys, on_conflict, .. } = self;
        let key = keys.key.as_ref()?;
        let tells_rows =
            key.is_unique() && on_conflict.of_key().tells_rows() || self.ignores_unique();
        Some(Keyed { table: name, schema, key, on_conflict: on_conflict.of_key(), tells_rows })
    }

    /// Puts the rows of all segments into one order, that of the table's key; where there is none they stay. Segments that are not
    /// in order, meet others in their ranges of keys or have rows that give way to others are written anew under other numbers, and
    /// removed. Segments come in the order of the input.
    ///
    /// # Errors
    /// `Invalid` when a key of a PRIMARY KEY comes twice and may not, `Limit` when a segment has too many rows or a space is too small,
    /// `Corrupt` when a run is not what was written, `Unavailable` when the disk fails.
    pub fn put_in_order(
        &mut self,
        segments: Vec<SegmentEntry>,
        sorting: &Sorting,
    ) -> Result<Vec<OrderedSegment>> {
        let (Some(of), None) = (self.keyed(), &self.origins) else {
            let as_it_is = |entry| OrderedSegment { entry, columns: None };
            return Ok(segments.into_iter().map(as_it_is).collect());
        };
        let numbers = segments.iter().filter_map(|s| parse_segment_name(&s.file)).map(|(_, n)| n);
        let next = numbers.max().map_or(0, |number| number + 1);
        let before: u64 = segments.iter().map(|segment| segment.rows).sum();
        let trees_before = self.sort_times().nodes;
        let OrderedLoad { segments, origins, mut times } = while_sizes_repeat(|| {
            order_load(of, segments, &mut Files { dir: self, next }, sorting)
        })?;
        // Trees are built while segments are written: of several by merges, of one where it is sorted.
        let trees = self.sort_times().nodes.saturating_sub(trees_before);
        let step = if times.merge.is_zero() { &mut times.sort } else { &mut times.merge };
        *step = step.saturating_sub(trees);
        self.dropped = before - segments.iter().map(|segment| segment.entry.rows).sum::<u64>();
        self.times = times;
        self.origins = Some(origins);
        Ok(segments)
    }

    /// How long it took to put the rows in order.
    pub fn sort_times(&self) -> SortTimes {
        let nodes = Duration::from_nanos(self.tree_ns.load(Ordering::Relaxed));
        SortTimes { nodes, ..self.times }
    }

    /// What is used where a load has so many threads and so much memory, and files of the load for what that does not hold.
    ///
    /// # Errors
    /// `Unavailable` when the space is not there.
    pub(super) fn sorting_with(&self, SortWith { threads, memory }: SortWith) -> Result<Sorting> {
        let with = SortWith { threads: threads.max(1), memory };
        let spaces = SortSpaces::open(None, None, memory, &self.work.join(""))?;
        Ok(Sorting { spaces, with, segment_bytes: Some(memory / SEGMENT_SHARE) })
    }

    /// What is used where nobody says more: what writers of the store may take, and files of the load for what memory does not hold.
    pub(super) fn usual_sorting(&self) -> Result<Sorting> {
        let with = self.store.sort_with();
        let spaces = SortSpaces::open(None, None, with.memory, &self.work.join(""))?;
        Ok(Sorting { spaces, with, segment_bytes: None })
    }
}

/// The files of a load whose rows are put in order.
struct Files<'a> {
    dir: &'a LoadDir,
    /// Number of the next segment.
    next: u32,
}

impl LoadFiles for Files<'_> {
    fn path(&self, file: &str) -> PathBuf {
        self.dir.work.join(file)
    }

    fn next(&mut self) -> (String, PathBuf) {
        let number = self.next;
        self.next += 1;
        (self.dir.segment_name(number), self.dir.segment_path(number))
    }

    fn writer(&self, path: &Path) -> Result<SegmentWriter> {
        let LoadDir { target, keys, tree_ns, .. } = self.dir;
        let key = TreeKey::of(&target.schema, keys.key.as_ref());
        Ok(SegmentWriter::create(path)?.with_key(key).with_tree_clock(tree_ns))
    }
}
