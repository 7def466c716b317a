//! The size of a space, shared by its extents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coload_types::{Error, Result};

/// How much a space may hold.
#[derive(Debug)]
pub(crate) struct Quota {
    space: String,
    bytes_max: u64,
    taken: AtomicU64,
}

impl Quota {
    /// So many bytes, or as many as there are.
    pub fn new(space: &str, bytes_max: Option<u64>) -> Arc<Self> {
        let bytes_max = bytes_max.unwrap_or(u64::MAX);
        Arc::new(Quota { space: space.to_owned(), bytes_max, taken: AtomicU64::new(0) })
    }

    /// Nothing yet.
    pub fn begin(self: &Arc<Self>) -> Taken {
        Taken { quota: Arc::clone(self), bytes: 0 }
    }
}

/// What an extent holds of the size of its space.
#[derive(Debug)]
pub(crate) struct Taken {
    quota: Arc<Quota>,
    bytes: u64,
}

impl Taken {
    /// Takes more.
    ///
    /// # Errors
    /// `Limit` when the space would be over its size.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        let Quota { space, bytes_max, taken } = &*self.quota;
        let fits = |taken: u64| taken.checked_add(bytes).filter(|sum| sum <= bytes_max);
        match taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(taken) => Err(Error::Limit(format!(
                "cannot put {bytes} bytes more into space {space}: it holds {taken}, and its size is {bytes_max} (give it \
                 more with size=, or another space with --sort-space or --run-space)"
            ))),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.quota.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
