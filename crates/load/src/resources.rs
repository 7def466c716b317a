//! What a load may use, and how large it makes things.

use coload_space::SpaceSpec;
use coload_transform::DictionaryPolicy;
use coload_types::{Error, Result};
use coload_wire::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};

/// Default bytes of a chunk (seed 000, section 4.4).
pub const CHUNK_BYTES: usize = 10 << 20;
/// Default fragments of a partition (seed 000, section 4.4).
pub const FRAGMENTS_PER_PARTITION: usize = 50;
/// Default columns merged at once (seed 000, section 4.4).
pub const MERGE_COLUMNS: usize = 2;

/// What a load may use, and how it stores what it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// Threads that work; at least 1.
    pub threads: usize,
    /// Most memory to use, in bytes.
    pub memory: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Fragments of a partition.
    pub fragments_per_partition: usize,
    /// Columns merged at once.
    pub merge_columns: usize,
    /// When columns get dictionaries.
    pub dictionaries: DictionaryPolicy,
    /// Where columns are while rows are put in the order of a key; memory if nobody says.
    pub sort_space: Option<SpaceSpec>,
    /// Where sorted runs are until they are merged; memory as far as it goes, then the store's disk, if nobody says.
    pub run_space: Option<SpaceSpec>,
}

impl Default for Resources {
    fn default() -> Self {
        Resources {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: default_memory(),
            chunk_bytes: CHUNK_BYTES,
            fragments_per_partition: FRAGMENTS_PER_PARTITION,
            merge_columns: MERGE_COLUMNS,
            dictionaries: DictionaryPolicy::Auto,
            sort_space: None,
            run_space: None,
        }
    }
}

impl Resources {
    /// The same with a sort buffer of the usual size.
    pub(crate) fn without_sort_space(&self) -> Self {
        Resources { sort_space: None, ..self.clone() }
    }

    /// Refuses spaces for rows that are not sorted.
    pub(crate) fn refuse_spaces(&self, what: &str) -> Result<()> {
        let given = [("--sort-space", &self.sort_space), ("--run-space", &self.run_space)];
        match given.into_iter().find_map(|(flag, space)| Some((flag, space.as_ref()?))) {
            None => Ok(()),
            Some((flag, space)) => Err(Error::Invalid(format!(
                "{flag} {space} is for rows that are put in the order of a key, and {what} (leave it out)"
            ))),
        }
    }

    /// Checks that a load can do with them.
    pub(crate) fn check(&self) -> Result<()> {
        let at_least_one = [
            ("--threads", self.threads),
            ("--fragments-per-partition", self.fragments_per_partition),
            ("--merge-columns", self.merge_columns),
        ];
        for (flag, value) in at_least_one {
            if value == 0 {
                return Err(Error::Invalid(format!("{flag} is 0; it is at least 1")));
            }
        }
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&self.chunk_bytes) {
            return Err(Error::Invalid(format!(
                "--chunk-size is {} bytes; it is {CHUNK_BYTES_MIN} to {CHUNK_BYTES_MAX}",
                self.chunk_bytes
            )));
        }
        Ok(())
    }
}

/// A quarter of the machine's memory, or 1 GiB where it does not say.
pub fn default_memory() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = info
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<usize>().ok());
    kib.map_or(1 << 30, |k| k * 1024 / 4)
}
