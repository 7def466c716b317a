//! Flags of a load that several workers do.

use clap::Args;
use coload_load::SplitRules;
use coload_store::LoadId;

use crate::size::parse_size;

/// Most inputs of which it is written down who reads what, if nothing else is asked for.
pub const EXPLICIT_MAX: usize = 4096;

/// Which share of a load is done.
#[derive(Debug, Clone, Args)]
pub struct ShareArgs {
    /// Do share K of a load that N workers do, each of which is called so with its own K, from 1; the load is visible when
    /// all are complete
    #[arg(
        long,
        value_name = "K/N",
        value_parser = WorkerNumber::parse,
        requires = "load_id",
        conflicts_with_all = ["again", "primary_key", "cluster_by"]
    )]
    pub worker: Option<WorkerNumber>,
    /// What all shares of the load are known by: 32 hexadecimal digits or a UUID, the same for all workers and of no load
    /// before
    #[arg(long, value_name = "ID", value_parser = parse_load_id, requires = "worker")]
    pub load_id: Option<LoadId>,
    /// How the inputs are shared.
    #[command(flatten)]
    pub splits: SplitArgs,
}

/// How inputs are shared by workers.
#[derive(Debug, Clone, Copy, Args)]
pub struct SplitArgs {
    /// Up to so many inputs it is written down which worker reads what; of more, the hash of the name says it
    #[arg(long, value_name = "N", default_value_t = EXPLICIT_MAX)]
    pub explicit_max: usize,
    /// Smallest split of an input that is cut
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4MiB")]
    pub split_min: usize,
}

impl SplitArgs {
    /// What a plan is told.
    pub fn rules(&self) -> SplitRules {
        SplitRules { explicit_max: self.explicit_max, split_bytes_min: self.split_min as u64 }
    }
}

/// The number of a worker, from 1, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerNumber {
    /// Its number.
    pub number: u32,
    /// How many there are.
    pub count: u32,
}

impl WorkerNumber {
    /// Reads `K/N`.
    ///
    /// # Errors
    /// What to say when it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some(WorkerNumber { number: number.parse().ok()?, count: count.parse().ok()? })
        });
        match numbers {
            Some(worker) if (1..=worker.count).contains(&worker.number) => Ok(worker),
            Some(worker) if worker.count > 0 => {
                Err(format!("workers are numbered from 1 to {0}, as in 1/{0}", worker.count))
            }
            _ => {
                Err("expected the number of the worker and how many there are, as in 3/8"
                    .to_owned())
            }
        }
    }
}

/// Reads the id of a load, or a UUID.
fn parse_load_id(text: &str) -> Result<LoadId, String> {
    let digits: String = match text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
        true => text.split('-').collect(),
        false => text.to_owned(),
    };
    digits.to_ascii_lowercase().parse().map_err(|_| {
        "expected 32 hexadecimal digits or a UUID, as uuidgen prints them; give all workers the same".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_numbered_from_one() {
        assert_eq!(WorkerNumber::parse("3/8"), Ok(WorkerNumber { number: 3, count: 8 }));
        for wrong in ["0/8", "9/8", "3", "/8", "3/", "-1/8", "1/0", "a/b"] {
            assert!(WorkerNumber::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_id_of_a_load_may_be_a_uuid() {
        let id = parse_load_id("6F1ed002ab5595859014ebf0951522d9");
        assert_eq!(parse_load_id("6f1ed002-ab55-9585-9014-ebf0951522d9"), id);
        assert!(id.is_ok());
        for wrong in [
            "",
            "load-1",
            "6f1ed002-ab55-9585-9014ebf0951522d9",
            "6f1ed002ab5595859014ebf0951522dg",
        ] {
            assert!(parse_load_id(wrong).is_err(), "{wrong}");
        }
    }
}
