//! `map:DIR`: a file that is mapped when it is whole, so that its bytes are in the page cache as long as there is room.
//!
//! It is written by the system's call and not through the map: a store through a map to a full disk would end the process, and a
//! page that is written whole need not be read or zeroed first.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use coload_types::{Error, Result};
use rustix::fs::OFlags;

use crate::dram::no_such_part;
use crate::files::{Folder, Unnamed, in_space, wants_folder};
use crate::mapped::Mapped;
use crate::quota::{Quota, Taken};
use crate::space::{Extent, ExtentWriter, Piece, Space};
use crate::spec::{Kind, Opening};

/// The kind of it.
#[derive(Debug)]
pub(crate) struct MapKind;

impl Kind for MapKind {
    fn name(&self) -> &'static str {
        "map"
    }

    fn form(&self) -> &'static str {
        "map:DIR"
    }

    fn check(&self, argument: Option<&str>) -> Result<()> {
        wants_folder(argument)
    }

    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>> {
        Ok(Arc::new(MapSpace {
            name: given.name.to_owned(),
            folder: Folder::open(given.name, given.argument)?,
            quota: Quota::new(given.name, given.size),
        }))
    }
}

#[derive(Debug)]
struct MapSpace {
    name: String,
    folder: Folder,
    quota: Arc<Quota>,
}

impl Space for MapSpace {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> Result<Box<dyn ExtentWriter>> {
        let file = self.folder.make(OFlags::empty()).map_err(|e| self.folder.not_made(&e))?;
        Ok(Box::new(MapWriter::new(&self.name, file, self.quota.begin())))
    }
}

/// A file that is written by calls.
#[derive(Debug)]
pub(crate) struct MapWriter {
    space: String,
    file: Unnamed,
    bytes: u64,
    taken: Taken,
}

impl MapWriter {
    pub fn new(space: &str, file: Unnamed, taken: Taken) -> Self {
        MapWriter { space: space.to_owned(), file, bytes: 0, taken }
    }
}

impl ExtentWriter for MapWriter {
    fn append(&mut self, part: Vec<u8>) -> Result<()> {
        self.taken.grow(part.len() as u64)?;
        let Unnamed { file, path } = &self.file;
        file.write_all_at(&part, self.bytes)
            .map_err(|e| in_space(&self.space, Error::io("write", path, &e)))?;
        self.bytes += part.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Extent>> {
        let MapWriter { space, file, bytes, taken } = *self;
        Ok(Box::new(MapExtent::of(space, file, bytes, taken)?))
    }
}

/// A whole file, mapped.
#[derive(Debug)]
pub(crate) struct MapExtent {
    space: String,
    path: PathBuf,
    /// `None` when it has no bytes.
    map: Option<Mapped>,
    _taken: Taken,
}

impl MapExtent {
    /// Maps so many bytes of a file.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be mapped.
    pub fn of(space: String, file: Unnamed, bytes: u64, taken: Taken) -> Result<Self> {
        let Unnamed { file, path } = file;
        let map = match bytes {
            0 => None,
            _ => Some(
                Mapped::map(&file).map_err(|e| in_space(&space, Error::io("map", &path, &e)))?,
            ),
        };
        Ok(MapExtent { space, path, map, _taken: taken })
    }
}

impl Extent for MapExtent {
    fn name(&self) -> String {
        format!("space {}: {}", self.space, self.path.display())
    }

    fn read(&self, start: u64, bytes: u64) -> Result<Piece<'_>> {
        let all = self.map.as_deref().unwrap_or_default();
        let end = start.checked_add(bytes).filter(|end| *end <= all.len() as u64);
        let end = end.ok_or_else(|| no_such_part(&self.name(), start, bytes))?;
        Ok(Piece::InPlace(&all[start as usize..end as usize]))
    }

    fn leave(&self, start: u64, bytes: u64) {
        if let Some(map) = &self.map {
            map.leave(start, bytes);
        }
    }

    fn check(&self) -> Result<()> {
        match self.map.as_ref().is_some_and(Mapped::is_damaged) {
            false => Ok(()),
            true => Err(Error::Corrupt(format!("{}: a part of it cannot be read", self.name()))),
        }
    }
}
