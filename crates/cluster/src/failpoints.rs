//! Named points at the steps of a load into a cluster, where tests end the process as `kill -9` does.
//!
//! Without the feature `failpoints` a point is nothing at all. With it, the variable `FAILPOINTS` says which
//! point ends the process: `cluster::commit::before=return(abort)`.

/// Every point, in the order in which a load passes them.
pub const POINTS: [&str; 10] = [
    "cluster::client::begun",
    "cluster::client::sent",
    "cluster::leaf::finished",
    "cluster::leaf::prepared",
    "cluster::client::prepared",
    "cluster::commit::before",
    "cluster::commit::held",
    "cluster::leaf::fits",
    "cluster::commit::after",
    "cluster::leaf::published",
];

/// Ends the process if a test wants that here.
#[cfg(feature = "failpoints")]
pub fn hit(point: &'static str) {
    use std::sync::OnceLock;

    static SCENARIO: OnceLock<()> = OnceLock::new();
    // Whoever comes first reads the variable, for the life of the process.
    SCENARIO.get_or_init(|| std::mem::forget(fail::FailScenario::setup()));
    fail::fail_point!(point, |_| std::process::abort());
}

/// Does nothing: the feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_point: &'static str) {}
