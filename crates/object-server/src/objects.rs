//! Objects in memory, or files of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
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
    /// Some of its bytes.
    pub fn part(&self, range: Range<u64>) -> std::io::Result<Vec<u8>> {
        match &self.from {
            Bytes::Memory(bytes) => Ok(bytes[range.start as usize..range.end as usize].to_vec()),
            Bytes::File(path) => {
                let mut part = vec![0; (range.end - range.start) as usize];
                fs::File::open(path)?.read_exact_at(&mut part, range.start)?;
                Ok(part)
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
            walk(root, Path::new(""), &mut files);
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
