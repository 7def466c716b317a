//! Named points before every change of the data directory, and before the lock of a reader, where
//! tests inject errors, crashes and standstills.
//!
//! Without the feature `failpoints` a point is nothing at all. With it, a point set to
//! `return(ENOSPC)` fails as a full disk does, `return(EIO)` as a broken one, and a callback may
//! end the process.

use std::io;

/// Every point, in the order in which creating a store, a load and a cleaning pass them.
pub const POINTS: [&str; 21] = [
    "store::create::mkdir",
    "store::create::write_format",
    "store::create::link_format",
    "store::create::sync_root",
    "store::snapshot::lock",
    "store::begin::mkdir",
    "store::begin::lock",
    "store::segment::create",
    "store::segment::write",
    "store::segment::sync",
    "store::publish::sync_segment",
    "store::publish::rename",
    "store::publish::sync_segments_dir",
    "store::publish::write_manifest",
    "store::publish::link",
    "store::publish::sync_manifest_dir",
    "store::publish::remove_tmp",
    "store::clean::remove_tmp",
    "store::clean::sync_manifest_dir",
    "store::clean::remove_manifest",
    "store::clean::remove_segment",
];

/// The point that is passed when a table has more loads than its manifest keeps.
pub const WRITE_LOADS: &str = "store::publish::write_loads";

/// The point that is passed when more rows of a segment are deleted than its manifest keeps.
pub const WRITE_DELETED: &str = "store::publish::write_deleted";

/// The point that is passed when trees of indexes are written.
pub const WRITE_INDEX: &str = "store::publish::write_index";

/// Points that a load passes whose runs are merged.
pub const RUN_POINTS: [&str; 2] = ["store::run::write", "store::run::merge"];

/// Points that a repair passes.
pub const REPAIR_POINTS: [&str; 5] = [
    "store::repair::mkdir",
    "store::repair::link",
    "store::repair::write",
    "store::repair::rename",
    "store::repair::sync",
];

/// Fails if a test told `point` to.
#[cfg(feature = "failpoints")]
pub(crate) fn hit(point: &'static str) -> io::Result<()> {
    fail::fail_point!(point, |errno| Err(injected_error(errno.as_deref())));
    Ok(())
}

/// Does nothing: the feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn hit(_point: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "failpoints")]
fn injected_error(errno: Option<&str>) -> io::Error {
    match errno {
        Some("ENOSPC") => rustix::io::Errno::NOSPC.into(),
        _ => rustix::io::Errno::IO.into(),
    }
}
