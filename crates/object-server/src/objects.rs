//! Objects in memory, or files of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// What there is.
#[derive(Debug)]
pub struct Objects {
    /// A folder whose folders are buckets.
    pub root: Option<PathBuf>,
    /// Whether versions are told.
    pub has_etags: bool,
    /// Whether lists tell them.
    pub lists_etags: bool,
    in_memory: BTreeMap<String, (Arc<Vec<u8>>, u64)>,
    versions: u64,
}

impl Default for Objects {
    fn default() -> Self {
        Objects {
            root: None,
            has_etags: true,
            lists_etags: true,
            in_memory: BTreeMap::new(),
            versions: 0,
        }
    }
}

/// Where the bytes of an object are.
#[derive(Debug, Clone)]
enum Bytes {
    Memory(Arc<Vec<u8>>),
    File(PathBuf),
}

/// An object.
#[derive(Debug, Clone)]
pub struct Object {
    from: Bytes,
    /// Its length.
    pub bytes: u64,
    /// What its version is called; empty if it is not told.
    pub etag: String,
}

impl Object {
    /// Sends some of its bytes; those of a file go from the kernel's memory to the other end without a copy here.
    pub fn send(&self, range: Range<u64>, to: &mut TcpStream) -> io::Result<()> {
        match &self.from {
            Bytes::Memory(bytes) => to.write_all(&bytes[range.start as usize..range.end as usize]),
            Bytes::File(path) => {
                let mut file = fs::File::open(path)?;
                file.seek(SeekFrom::Start(range.start))?;
                let length = range.end - range.start;
                match io::copy(&mut file.take(length), to)? == length {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        }
    }
}

impl Objects {
    pub fn put(&mut self, path: &str, bytes: Vec<u8>) {
        self.versions += 1;
        self.in_memory.insert(path.to_owned(), (Arc::new(bytes), self.versions));
    }

    pub fn remove(&mut self, path: &str) {
        self.in_memory.remove(path);
    }

    pub fn get(&self, path: &str) -> Option<Object> {
        let etag = |version: String| match self.has_etags {
            true => format!("\"v{version}\""),
            false => String::new(),
        };
        if let Some((bytes, version)) = self.in_memory.get(path) {
            let from = Bytes::Memory(Arc::clone(bytes));
            let etag = etag(version.to_string());
            return Some(Object { from, bytes: bytes.len() as u64, etag });
        }
        let file = self.root.as_ref()?.join(path);
        let meta = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?;
        let written = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let etag = etag(format!("{written}-{}", meta.len()));
        Some(Object { from: Bytes::File(file), bytes: meta.len(), etag })
    }

    /// The paths that begin so, in their order.
    pub fn paths(&self, prefix: &str) -> Vec<String> {
        let known = self.in_memory.keys().filter(|path| path.starts_with(prefix)).cloned();
        let mut paths: Vec<String> = known.collect();
        if let Some(root) = &self.root {
            let mut files = Vec::new();
            // A bucket of the laboratory may have a hundred thousand files, and others are not looked at for its list.
            let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
            walk(root, Path::new(folder), &mut files);
            paths.extend(files.into_iter().filter(|path| path.starts_with(prefix)));
        }
        paths.sort_unstable();
        paths
    }
}

fn walk(root: &Path, below: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        match entry.path().is_dir() {
            true => walk(root, &path, found),
            false => found.push(path.to_string_lossy().into_owned()),
        }
    }
}
