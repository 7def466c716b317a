//! The data directory: segments, manifests, snapshots, publish.
//!
//! ```text
//!   begin_load -> LoadDir -> publish -> a new version of the manifest
//!                                            |
//!                                        snapshot -> tables -> segments
//! ```
//!
//! A store is a directory. Its tables are immutable segment files; one manifest names them all, and
//! a new version of the manifest is the only way in which anything becomes visible.
//!
//! Invariants: nothing that is published is ever changed. A load becomes visible whole or not at
//! all, whatever happens to the process. A reader never waits for a writer. No other crate writes
//! into the directory. There is no SQL here, and no network.

mod addition;
mod alter;
mod change;
mod counted;
mod deleted;
mod directory;
pub mod failpoints;
mod gc;
mod held;
mod index;
mod join;
mod journal;
mod keyed;
mod load_record;
mod lock;
mod manifest;
mod membership;
mod merge_small;
mod older_loads;
mod on_conflict;
mod publish;
mod retype;
mod row_change;
mod segment;
mod segment_builder;
mod segment_writer;
mod shares;
mod snapshot;
mod store;
mod verify;
mod work_dir;

pub use alter::Alteration;
pub use change::{LoadMode, LoadTarget, OnExisting, OnMissing};
pub use counted::{CountedBytes, CountsMemory};
pub use deleted::{DeletedEntry, DeletedRows, Deletions, PlacedRows};
pub use gc::Cleaned;
pub use held::ExpandedPages;
pub use index::{IndexKey, IndexTree, SegmentIndex, Within};
pub use journal::{JournalEntry, LoadJournal};
pub use keyed::{
    ColumnOf, KeySide, OrderedSegment, SortSpaces, SortTimes, SortWith, SortedRows, Sorting,
    TreeKey, is_in_order, key_values, may_have_keys, row_of_key, rows_before_key, sort_partition,
    write_reordered,
};
pub use load_record::{
    INPUT_NAME_BYTES_MAX, INPUTS_KEPT_MAX, LOADS_KEPT_MAX, LoadId, LoadKind, LoadRecord,
};
pub use lock::{Lock, LockedFile};
pub use manifest::{
    BOUND_BYTES_MAX, ColumnStats, MANIFEST_BYTES_MAX, Manifest, REMEMBER_DAYS, SegmentEntry,
    StoredColumn, TABLE_NAME_BYTES_MAX, TableEntry, ViewEntry,
};
pub use merge_small::{MergeReport, merge_small, merge_small_within};
pub use older_loads::{OlderLoads, RememberedLoad};
pub use on_conflict::{DeleteWhere, KeyCounts, OnConflict};
pub use publish::{
    ConflictingRow, LoadDir, MeetsKey, MergeDir, MergeOutcome, PublishedAs, ReadyLoad, Settled,
    Shown,
};
pub use retype::{Reread, RereadPage, TypeChange, converts, converts_type, text_columns};
pub use row_change::{Basis, Changed};
pub use segment::{SegmentColumn, SegmentFile, append_page};
pub use segment_builder::{ClosedSegment, OpenSegment, PlainWrite};
pub use segment_writer::{
    FinishedColumn, SegmentSummary, SegmentWriter, column_stats, encode_dictionary,
};
pub use shares::{
    FinishedShare, PublishedShares, ReadyShare, SettledShares, ShareOf, ShareSegment, SharesAre,
    SharesLock, SharesReady, SharesTotal, SplitSpan,
};
pub use snapshot::Snapshot;
pub use store::Store;
pub use verify::{
    Damage, LostRows, Part, Repaired, RestoredRows, VerifyOptions, VerifyProgress, VerifyReport,
    repair, verify,
};
