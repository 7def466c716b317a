//! The inputs of a load: files, globs and standard input.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_format::{Error, Result};

use crate::archive::{Member, find_members, only_member, split_argument};
use crate::compression::Compression;
use crate::raw::{FileIdentity, RawFile, check_path};

/// The argument that means standard input.
pub const STDIN: &str = "-";

/// One input, as it was when the load was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// As the user named it, or as a glob found it; `-` is standard input.
    pub name: String,
    /// Where it is read from.
    pub source: InputSource,
}

/// Where an input is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// Standard input, read once, of unknown size.
    Stdin,
    /// A file of known size, any part of which can be read.
    File {
        /// Its path.
        path: PathBuf,
        /// Which file it was then.
        identity: FileIdentity,
    },
    /// A part of a file, any part of which can be read.
    Part {
        /// The file.
        path: PathBuf,
        /// First byte.
        start: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// A member of an archive.
    Member {
        /// The archive.
        archive: PathBuf,
        /// Which file it was when its members were listed.
        identity: FileIdentity,
        /// Where the member lies in it.
        member: Member,
    },
    /// A pipe or another thing that is read once, of unknown size.
    Stream {
        /// Its path.
        path: PathBuf,
    },
}

impl InputSource {
    /// Whether it can be read once only.
    pub fn is_read_once(&self) -> bool {
        matches!(self, InputSource::Stdin | InputSource::Stream { .. })
    }
}

impl InputFile {
    /// The size in bytes, if known.
    pub fn bytes(&self) -> Option<u64> {
        match self.source {
            InputSource::File { identity, .. } => Some(identity.bytes),
            InputSource::Part { bytes, .. } => Some(bytes),
            InputSource::Member { ref member, .. } => Some(member.bytes),
            _ => None,
        }
    }

    /// Which file it is, if it is one that can be told by that.
    pub fn identity(&self) -> Option<&FileIdentity> {
        match &self.source {
            InputSource::File { identity, .. } | InputSource::Member { identity, .. } => {
                Some(identity)
            }
            _ => None,
        }
    }

    /// Checks that a file is still as it was when the load was planned.
    ///
    /// # Errors
    /// `Unavailable` when it is another, or somebody wrote to it: a row may be missing or half new.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.source {
            InputSource::File { path, identity }
            | InputSource::Member { archive: path, identity, .. } => {
                check_path(&self.name, path, identity)
            }
            _ => Ok(()),
        }
    }

    /// The name of a table made of this input: the file's stem, with what no name may have replaced
    /// by underscores; `stdin` for standard input. `a.csv.gz` has the stem `a`.
    pub fn table_name(&self) -> String {
        let path = match &self.source {
            InputSource::Stdin => return "stdin".to_owned(),
            InputSource::Member { member, .. } => Path::new(&member.name),
            InputSource::File { path, .. }
            | InputSource::Part { path, .. }
            | InputSource::Stream { path } => path,
        };
        let inner = path.extension().filter(|e| Compression::is_extension(e));
        let stem = match (inner, path.file_stem()) {
            (Some(_), Some(stem)) => Path::new(stem).file_stem(),
            (_, stem) => stem,
        };
        let stem = stem.map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let mut name: String =
            stem.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            name.insert(0, 't');
        }
        name
    }
}

/// The inputs that arguments name, in their order; what a glob finds is sorted by name.
///
/// # Errors
/// `Invalid` for a missing file, a directory, a file that may not be read, a glob that finds
/// nothing, and an input that is named twice.
pub fn expand_inputs(args: &[String]) -> Result<Vec<InputFile>> {
    if args.is_empty() {
        return Err(Error::Invalid(
            "no input: give a file, a glob such as 'data/*.csv', or - for standard input"
                .to_owned(),
        ));
    }
    let mut inputs = Vec::new();
    let mut seen = Seen::default();
    for arg in args {
        for input in expand_one(arg)? {
            if let Some(first) = seen.add(&input, inputs.len(), &inputs)? {
                return Err(Error::Invalid(format!(
                    "{} is named twice, as {first} and as {}: its rows would be loaded twice",
                    input.name, input.name
                )));
            }
            inputs.push(input);
        }
    }
    Ok(inputs)
}

/// The inputs so far.
///
/// To know a file by its path costs a look at each folder above it, so that is done only for those that have the
/// same number on the same device: one file, or hard links of it, which may be meant.
#[derive(Default)]
struct Seen {
    files: HashMap<(u64, u64), usize>,
    links: HashSet<PathBuf>,
    others: HashMap<PathBuf, usize>,
}

impl Seen {
    /// Adds an input; gives the name of the one that it is, if it was named before.
    fn add(
        &mut self,
        input: &InputFile,
        number: usize,
        before: &[InputFile],
    ) -> Result<Option<String>> {
        let key = match &input.source {
            InputSource::File { path, identity } => {
                return self.add_file(path, (identity.device, identity.inode), number, before);
            }
            InputSource::Stdin => PathBuf::from(STDIN),
            InputSource::Stream { path } | InputSource::Part { path, .. } => canonical(path)?,
            InputSource::Member { archive, member, .. } => {
                // No name of a file has a NUL.
                let mut key = canonical(archive)?.into_os_string();
                key.push(format!("\0{}", member.name));
                PathBuf::from(key)
            }
        };
        Ok(self.others.insert(key, number).map(|first| before[first].name.clone()))
    }

    fn add_file(
        &mut self,
        path: &Path,
        key: (u64, u64),
        number: usize,
        before: &[InputFile],
    ) -> Result<Option<String>> {
        let first = match self.files.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(number);
                return Ok(None);
            }
            Entry::Occupied(entry) => &before[*entry.get()],
        };
        if let InputSource::File { path, .. } = &first.source {
            self.links.insert(canonical(path)?);
        }
        let new = self.links.insert(canonical(path)?);
        Ok((!new).then(|| first.name.clone()))
    }
}

fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| Error::io("open", path, &error))
}

/// The inputs of one argument. A file of that very name comes before a glob.
fn expand_one(arg: &str) -> Result<Vec<InputFile>> {
    if arg == STDIN {
        return Ok(vec![InputFile { name: STDIN.to_owned(), source: InputSource::Stdin }]);
    }
    let is_glob = arg.contains(['*', '?', '[']);
    if fs::symlink_metadata(arg).is_ok() {
        return Ok(vec![open_file(arg.to_owned(), Path::new(arg))?]);
    }
    if let Some((archive, member)) = split_argument(arg) {
        let shown = archive.to_string_lossy();
        return find_members(&archive, &shown, member);
    }
    if !is_glob {
        return Ok(vec![open_file(arg.to_owned(), Path::new(arg))?]);
    }
    let paths =
        glob::glob(arg).map_err(|error| Error::Invalid(format!("{arg} is no glob: {error}")))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| Error::io("read", error.path(), error.error()))?;
        // A directory beside the files is not meant by a glob.
        if !path.is_dir() {
            files.push(open_file(path.to_string_lossy().into_owned(), &path)?);
        }
    }
    if files.is_empty() {
        return Err(Error::Invalid(format!("no file matches {arg}")));
    }
    Ok(files)
}

/// Opens the file, so that one that may not be read is told before the load, not in its middle.
fn open_file(name: String, path: &Path) -> Result<InputFile> {
    let metadata = fs::metadata(path).map_err(|error| Error::io("open", path, &error))?;
    if metadata.is_dir() {
        return Err(Error::Invalid(format!(
            "{name} is a directory: name its files, as in '{}/*.csv'",
            name.trim_end_matches('/')
        )));
    }
    if !metadata.is_file() {
        return Ok(InputFile { name, source: InputSource::Stream { path: path.to_owned() } });
    }
    let file = Arc::new(RawFile::open(&name, path)?);
    if let Some(member) = only_member(&file, path, &name)? {
        return Ok(member);
    }
    let source = InputSource::File { path: path.to_owned(), identity: *file.identity() };
    Ok(InputFile { name, source })
}

#[cfg(test)]
mod tests;
